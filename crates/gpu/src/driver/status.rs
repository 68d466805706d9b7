//! What the drivers' status numbers mean. HIP took CUDA's over, so one table serves both (CUresult in the CUDA Driver API
//! reference; hipError_t in `hip_runtime_api.h`, the same in ROCm 5, 6 and 7).

use super::api::Status;
use crate::ErrorKind;

const KINDS: [(Status, ErrorKind); 23] = [
    (2, ErrorKind::OutOfMemory),   // OUT_OF_MEMORY
    (9, ErrorKind::BadLaunch),     // hipErrorInvalidConfiguration
    (98, ErrorKind::BadImage),     // hipErrorInvalidDeviceFunction: compiled for another target
    (100, ErrorKind::NoDevice),    // NO_DEVICE
    (101, ErrorKind::NoDevice),    // INVALID_DEVICE
    (200, ErrorKind::BadImage),    // INVALID_IMAGE
    (209, ErrorKind::BadImage),    // NO_BINARY_FOR_GPU
    (214, ErrorKind::Fault),       // ECC_UNCORRECTABLE
    (218, ErrorKind::BadImage),    // INVALID_PTX, hipErrorInvalidKernelFile
    (222, ErrorKind::BadImage),    // UNSUPPORTED_PTX_VERSION
    (300, ErrorKind::BadImage),    // INVALID_SOURCE
    (301, ErrorKind::BadImage),    // FILE_NOT_FOUND
    (303, ErrorKind::BadImage),    // SHARED_OBJECT_INIT_FAILED
    (500, ErrorKind::NoKernel),    // NOT_FOUND
    (700, ErrorKind::Fault),       // ILLEGAL_ADDRESS
    (701, ErrorKind::BadLaunch),   // LAUNCH_OUT_OF_RESOURCES
    (702, ErrorKind::Fault),       // LAUNCH_TIMEOUT
    (710, ErrorKind::Fault),       // ASSERT
    (715, ErrorKind::Fault),       // ILLEGAL_INSTRUCTION
    (716, ErrorKind::Fault),       // MISALIGNED_ADDRESS
    (718, ErrorKind::Fault),       // INVALID_PC
    (719, ErrorKind::Fault),       // LAUNCH_FAILED
    (801, ErrorKind::Unsupported), // NOT_SUPPORTED
];

/// The kind of a status that is not success.
pub fn kind(status: Status) -> ErrorKind {
    KINDS.iter().find(|(known, _)| *known == status).map_or(ErrorKind::Driver, |(_, kind)| *kind)
}

/// The driver is there and has no device.
pub fn means_no_device(status: Status) -> bool {
    kind(status) == ErrorKind::NoDevice
}

/// There is nothing of that name.
pub fn means_not_found(status: Status) -> bool {
    kind(status) == ErrorKind::NoKernel
}
