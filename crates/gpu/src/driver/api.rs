//! The functions of a driver library, loaded by name.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use libloading::Library;

use super::attributes::{Flavor, Vendor};
use super::status;
use crate::{Error, ErrorKind, Result};

/// A module, function, stream, event or context of the driver's.
pub type Handle = *mut c_void;
/// CUresult, hipError_t; 0 is success.
pub type Status = c_int;

type LaunchFn = unsafe extern "C" fn(
    Handle,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    Handle,
    *mut *mut c_void,
    *mut *mut c_void,
) -> Status;
type LaunchWithEventsFn = unsafe extern "C" fn(
    Handle,
    u32,
    u32,
    u32,
    u32,
    u32,
    u32,
    usize,
    Handle,
    *mut *mut c_void,
    *mut *mut c_void,
    Handle,
    Handle,
    u32,
) -> Status;

/// `hipExtModuleLaunchKernel` is the one function that `hip_ext.h` declares without C linkage, so that libraries export its C++
/// name (libamdhip64 of ROCm 5.2: `nm -D`).
const EXT_LAUNCH: [&str; 2] = [
    "hipExtModuleLaunchKernel",
    "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_j",
];

/// Makes the struct of functions and the loading of each under the name that the flavor's column gives it.
macro_rules! functions {
    ($($field:ident: $type:ty = $cuda:literal / $hip:literal;)*) => {
        /// The driver's functions. Device pointers are 64-bit numbers (`CUdeviceptr`; `hipDeviceptr_t` is a `void *`,
        /// which is passed alike).
        pub struct Api {
            $(pub $field: $type,)*
            /// Current context by device: CUDA's primary context.
            retain_context: Option<unsafe extern "C" fn(*mut Handle, c_int) -> Status>,
            set_context: Option<unsafe extern "C" fn(Handle) -> Status>,
            /// HIP's `hipSetDevice`.
            set_device: Option<unsafe extern "C" fn(c_int) -> Status>,
            /// CUDA's, with an out parameter.
            error_name_into: Option<unsafe extern "C" fn(Status, *mut *const c_char) -> Status>,
            /// HIP's, which returns the text.
            error_name_of: Option<unsafe extern "C" fn(Status) -> *const c_char>,
            /// CUDA's, since 12.4: offset and size of a parameter by position.
            pub parameter: Option<unsafe extern "C" fn(Handle, usize, *mut usize, *mut usize) -> Status>,
            pub set_function_attribute: Option<unsafe extern "C" fn(Handle, c_int, c_int) -> Status>,
            /// `hipExtModuleLaunchKernel`: start and stop are stamped by the device around the kernel alone.
            pub launch_with_events: Option<LaunchWithEventsFn>,
            /// The library as it was found.
            pub path: String,
            /// Last, so that it outlives the functions.
            _library: Library,
        }

        impl Api {
            fn resolve(library: Library, path: String, vendor: Vendor) -> Result<Api> {
                let nvidia = vendor == Vendor::Nvidia;
                Ok(Api {
                    // SAFETY: each symbol is the driver interface's function of that name, whose documented signature is
                    // the field's type.
                    $($field: unsafe { symbol(&library, &path, if nvidia { $cuda } else { $hip })? },)*
                    // SAFETY: as above.
                    retain_context: unsafe { optional(&library, nvidia, "cuDevicePrimaryCtxRetain") },
                    // SAFETY: as above.
                    set_context: unsafe { optional(&library, nvidia, "cuCtxSetCurrent") },
                    // SAFETY: as above.
                    set_device: unsafe { optional(&library, !nvidia, "hipSetDevice") },
                    // SAFETY: as above.
                    error_name_into: unsafe { optional(&library, nvidia, "cuGetErrorName") },
                    // SAFETY: as above.
                    error_name_of: unsafe { optional(&library, !nvidia, "hipGetErrorName") },
                    // SAFETY: as above.
                    parameter: unsafe { optional(&library, nvidia, "cuFuncGetParamInfo") },
                    // SAFETY: as above. HIP's function of that name takes a host function and is of no use here.
                    set_function_attribute: unsafe { optional(&library, nvidia, "cuFuncSetAttribute") },
                    // SAFETY: as above.
                    launch_with_events: unsafe {
                        EXT_LAUNCH.iter().find_map(|name| optional(&library, !nvidia, name))
                    },
                    path,
                    _library: library,
                })
            }
        }
    };
}

functions! {
    init: unsafe extern "C" fn(c_uint) -> Status = "cuInit" / "hipInit";
    driver_version: unsafe extern "C" fn(*mut c_int) -> Status = "cuDriverGetVersion" / "hipRuntimeGetVersion";
    device_count: unsafe extern "C" fn(*mut c_int) -> Status = "cuDeviceGetCount" / "hipGetDeviceCount";
    device_get: unsafe extern "C" fn(*mut c_int, c_int) -> Status = "cuDeviceGet" / "hipDeviceGet";
    device_name: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status = "cuDeviceGetName" / "hipDeviceGetName";
    device_bus_id: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> Status =
        "cuDeviceGetPCIBusId" / "hipDeviceGetPCIBusId";
    device_attribute: unsafe extern "C" fn(*mut c_int, c_int, c_int) -> Status =
        "cuDeviceGetAttribute" / "hipDeviceGetAttribute";
    memory_info: unsafe extern "C" fn(*mut usize, *mut usize) -> Status = "cuMemGetInfo_v2" / "hipMemGetInfo";
    allocate: unsafe extern "C" fn(*mut u64, usize) -> Status = "cuMemAlloc_v2" / "hipMalloc";
    free: unsafe extern "C" fn(u64) -> Status = "cuMemFree_v2" / "hipFree";
    to_device: unsafe extern "C" fn(u64, *const c_void, usize) -> Status = "cuMemcpyHtoD_v2" / "hipMemcpyHtoD";
    from_device: unsafe extern "C" fn(*mut c_void, u64, usize) -> Status = "cuMemcpyDtoH_v2" / "hipMemcpyDtoH";
    within_device: unsafe extern "C" fn(u64, u64, usize, Handle) -> Status =
        "cuMemcpyDtoDAsync_v2" / "hipMemcpyDtoDAsync";
    fill: unsafe extern "C" fn(u64, c_uint, usize, Handle) -> Status = "cuMemsetD32Async" / "hipMemsetD32Async";
    load: unsafe extern "C" fn(*mut Handle, *const c_void) -> Status = "cuModuleLoadData" / "hipModuleLoadData";
    unload: unsafe extern "C" fn(Handle) -> Status = "cuModuleUnload" / "hipModuleUnload";
    get_function: unsafe extern "C" fn(*mut Handle, Handle, *const c_char) -> Status =
        "cuModuleGetFunction" / "hipModuleGetFunction";
    function_attribute: unsafe extern "C" fn(*mut c_int, c_int, Handle) -> Status =
        "cuFuncGetAttribute" / "hipFuncGetAttribute";
    launch: LaunchFn = "cuLaunchKernel" / "hipModuleLaunchKernel";
    event_create: unsafe extern "C" fn(*mut Handle, c_uint) -> Status = "cuEventCreate" / "hipEventCreateWithFlags";
    event_destroy: unsafe extern "C" fn(Handle) -> Status = "cuEventDestroy_v2" / "hipEventDestroy";
    event_record: unsafe extern "C" fn(Handle, Handle) -> Status = "cuEventRecord" / "hipEventRecord";
    event_synchronize: unsafe extern "C" fn(Handle) -> Status = "cuEventSynchronize" / "hipEventSynchronize";
    event_elapsed: unsafe extern "C" fn(*mut f32, Handle, Handle) -> Status =
        "cuEventElapsedTime" / "hipEventElapsedTime";
    synchronize: unsafe extern "C" fn() -> Status = "cuCtxSynchronize" / "hipDeviceSynchronize";
}

impl Api {
    /// Finds and loads the flavor's library.
    pub fn load(flavor: &Flavor) -> Result<Api> {
        let explicit = std::env::var_os(flavor.library_variable).filter(|path| !path.is_empty());
        let candidates: Vec<String> = match &explicit {
            Some(path) => vec![path.to_string_lossy().into_owned()],
            None => flavor.libraries(),
        };
        let mut failures = Vec::new();
        for path in candidates {
            // SAFETY: loading a driver library runs its constructors, which is what its users ask for.
            match unsafe { Library::new(&path) } {
                Ok(library) => return Api::resolve(library, path, flavor.vendor),
                Err(error) => {
                    // The loader's own words are the source of the error.
                    let said = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                    // A guess that is not there says nothing; one that is there and lacks another library does.
                    let is_absent = said.starts_with(&format!("{path}: cannot open shared object file: No such file"));
                    if explicit.is_some() || !is_absent {
                        failures.push(said);
                    }
                }
            }
        }
        let why = match failures.is_empty() {
            true => format!("no {} here", flavor.library_names.join(" or ")),
            false => failures.join("; "),
        };
        Err(Error::new(ErrorKind::NoDriver, format!("{} is not available: {why}; {}", flavor.name, flavor.way_out)))
    }

    /// `HIP 60443484 (/opt/rocm/lib/libamdhip64.so.6.4.43484)`.
    pub fn describe(&self, flavor: &Flavor) -> String {
        let mut version: c_int = 0;
        // SAFETY: an int to fill.
        let status = unsafe { (self.driver_version)(&mut version) };
        let version = if status == 0 { version.to_string() } else { "of unknown version".into() };
        format!("{} {version} ({})", flavor.name, loaded_from(&self.path))
    }

    /// Makes the device the one that this thread talks to.
    pub fn make_current(&self, device: c_int) -> Result<()> {
        let mut context: Handle = ptr::null_mut();
        // SAFETY: `device` is one that the driver named; the context is filled before it is used.
        unsafe {
            if let Some(set) = self.set_device {
                return self.check(set(device), "selecting the device");
            }
            if let (Some(retain), Some(set)) = (self.retain_context, self.set_context) {
                self.check(retain(&mut context, device), "taking the device's primary context")?;
                return self.check(set(context), "selecting the device");
            }
        }
        Err(Error::new(ErrorKind::Driver, format!("{}: no function that selects a device", self.path)))
    }

    /// The driver's name of a status.
    pub fn error_name(&self, code: Status) -> String {
        let mut text: *const c_char = ptr::null();
        // SAFETY: both functions give a constant text of the library's, or leave/return null.
        unsafe {
            if let Some(name) = self.error_name_into {
                name(code, &mut text);
            } else if let Some(name) = self.error_name_of {
                text = name(code);
            }
            if text.is_null() {
                return format!("error {code}");
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    }

    /// The error of a status that is not success; `what` failed.
    pub fn error(&self, code: Status, what: &str) -> Error {
        Error::new(status::kind(code), format!("{what}: {}", self.error_name(code)))
    }

    /// A status as a result.
    pub fn check(&self, code: Status, what: &str) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.error(code, what)) }
    }
}

/// Where the loader found a library that was asked for by its name alone, as the process's own map says.
fn loaded_from(name: &str) -> String {
    if name.contains('/') {
        return name.to_owned();
    }
    let map = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = map.lines().filter_map(|line| line.split_once('/')).map(|(_, path)| format!("/{path}"));
    // `libcuda.so.1` is a link to `libcuda.so.550.54`, and the map has the file behind it.
    let stem = name.split(".so").next().unwrap_or(name);
    let is_it = |path: &String| path.rsplit('/').next().is_some_and(|file| file.starts_with(&format!("{stem}.so")));
    files.into_iter().find(is_it).unwrap_or_else(|| name.to_owned())
}

/// # Safety
/// The symbol's type is `T`.
unsafe fn symbol<T: Copy>(library: &Library, path: &str, name: &str) -> Result<T> {
    // SAFETY: the caller knows the type.
    match unsafe { library.get::<T>(name.as_bytes()) } {
        Ok(symbol) => Ok(*symbol),
        Err(_) => Err(Error::new(
            ErrorKind::NoDriver,
            format!("{path} has no {name}: is it a driver library of another age?"),
        )),
    }
}

/// # Safety
/// The symbol's type is `T`.
unsafe fn optional<T: Copy>(library: &Library, wanted: bool, name: &str) -> Option<T> {
    // SAFETY: the caller knows the type.
    wanted.then(|| unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)).flatten()
}
