//! NVIDIA's devices through `libnvidia-ml.so.1` (NVML API reference).

use std::ffi::{CString, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::ptr;

use libloading::Library;

use crate::Telemetry;

type Handle = *mut c_void;

const CLOCK_SM: c_int = 1;
const CLOCK_MEMORY: c_int = 2;
const TEMPERATURE_GPU: c_int = 0;

/// Reasons that hold a clock down (`nvmlClocksEventReasons`). Idle and settings that the user made are none of them.
const THROTTLING: [(c_ulonglong, &str); 5] = [
    (0x04, "power cap"),
    (0x08, "hardware slowdown"),
    (0x20, "software thermal slowdown"),
    (0x40, "hardware thermal slowdown"),
    (0x80, "hardware power brake"),
];

/// `nvmlProcessInfo_t` of `nvmlDeviceGetComputeRunningProcesses_v3`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Process {
    pid: c_uint,
    used_bytes: c_ulonglong,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

/// The state of the device at that PCI address.
pub fn read(bus_id: &str) -> Telemetry {
    read_with(bus_id).unwrap_or_default()
}

fn read_with(bus_id: &str) -> Option<Telemetry> {
    // SAFETY: NVIDIA's library; the functions below have the documented signatures, every pointer is to a local of the
    // type that they fill, and the library outlives all calls.
    unsafe {
        let library = Library::new("libnvidia-ml.so.1").ok()?;
        let init = library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2").ok()?;
        if init() != 0 {
            return None;
        }
        let by_bus = library
            .get::<unsafe extern "C" fn(*const c_char, *mut Handle) -> c_int>(b"nvmlDeviceGetHandleByPciBusId_v2")
            .ok()?;
        let mut device: Handle = ptr::null_mut();
        let address = CString::new(bus_id).ok()?;
        if by_bus(address.as_ptr(), &mut device) != 0 {
            return None;
        }
        let selected = |name: &[u8], which: c_int| -> Option<f64> {
            let function = library.get::<unsafe extern "C" fn(Handle, c_int, *mut c_uint) -> c_int>(name).ok()?;
            let mut value: c_uint = 0;
            (function(device, which, &mut value) == 0).then(|| f64::from(value))
        };
        let power = library.get::<unsafe extern "C" fn(Handle, *mut c_uint) -> c_int>(b"nvmlDeviceGetPowerUsage").ok();
        let mut milliwatts: c_uint = 0;
        let power_watts =
            power.and_then(|function| (function(device, &mut milliwatts) == 0).then(|| f64::from(milliwatts) / 1e3));
        Some(Telemetry {
            clock_hz: selected(b"nvmlDeviceGetClockInfo", CLOCK_SM).map(|mhz| mhz * 1e6),
            memory_clock_hz: selected(b"nvmlDeviceGetClockInfo", CLOCK_MEMORY).map(|mhz| mhz * 1e6),
            temperature_celsius: selected(b"nvmlDeviceGetTemperature", TEMPERATURE_GPU),
            power_watts,
            throttling: throttling(&library, device),
            other_processes: other_processes(&library, device),
        })
    }
}

/// # Safety
/// `device` is a handle of `library`'s.
unsafe fn throttling(library: &Library, device: Handle) -> Vec<String> {
    let mut reasons: c_ulonglong = 0;
    // SAFETY: see `read_with`.
    let known = unsafe {
        library
            .get::<unsafe extern "C" fn(Handle, *mut c_ulonglong) -> c_int>(
                b"nvmlDeviceGetCurrentClocksThrottleReasons",
            )
            .is_ok_and(|function| function(device, &mut reasons) == 0)
    };
    let named = THROTTLING.iter().filter(|(bit, _)| known && reasons & bit != 0);
    named.map(|(_, name)| (*name).to_owned()).collect()
}

/// # Safety
/// `device` is a handle of `library`'s.
unsafe fn other_processes(library: &Library, device: Handle) -> Vec<String> {
    let mut processes = [Process::default(); 64];
    let mut count = processes.len() as c_uint;
    type List = unsafe extern "C" fn(Handle, *mut c_uint, *mut Process) -> c_int;
    // SAFETY: see `read_with`; the array is as long as `count` says.
    let known = unsafe {
        library
            .get::<List>(b"nvmlDeviceGetComputeRunningProcesses_v3")
            .is_ok_and(|function| function(device, &mut count, processes.as_mut_ptr()) == 0)
    };
    let own = std::process::id();
    let listed = processes.iter().take(if known { count as usize } else { 0 });
    let others = listed.filter(|process| process.pid != own && process.pid != 0);
    others
        .map(|process| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", process.pid)).unwrap_or_default();
            format!("process {} {}", process.pid, name.trim()).trim_end().to_owned()
        })
        .collect()
}
