//! The two flavors of the interface: names, numbers, and how a device is asked what it is.

use std::ffi::{c_char, c_int};
use std::path::Path;

use super::api::Api;
use crate::telemetry;
use crate::{DeviceInfo, Result};

/// Whose hardware it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// HIP.
    Amd,
    /// CUDA.
    Nvidia,
}

/// One flavor of the interface.
pub struct Flavor {
    /// For messages.
    pub name: &'static str,
    /// In the names of devices.
    pub kind: &'static str,
    pub vendor: Vendor,
    /// Names the library and nothing else is tried.
    pub library_variable: &'static str,
    /// Names for the loader, best first.
    pub library_names: &'static [&'static str],
    /// What hides devices, the one that renumbers them first.
    pub visible_devices: &'static [&'static str],
    /// What to do when there is no library.
    pub way_out: &'static str,
    /// The numbers that stand for pointer, size and end in the `extra` of a launch.
    pub launch_buffer_tags: [usize; 3],
    attributes: Attributes,
}

/// Numbers of device attributes.
struct Attributes {
    max_work_group_size: c_int,
    wave_size: c_int,
    clock_khz: c_int,
    compute_units: c_int,
    memory_clock_khz: c_int,
    memory_bus_bits: c_int,
    last_level_cache_bytes: c_int,
    max_lds_bytes: c_int,
}

/// CUDA's driver interface (`cuda.h`: `CUdevice_attribute`, `CU_LAUNCH_PARAM_*`).
pub static CUDA: Flavor = Flavor {
    name: "CUDA",
    kind: "cuda",
    vendor: Vendor::Nvidia,
    library_variable: "COAX_CUDA",
    library_names: &["libcuda.so.1"],
    visible_devices: &["CUDA_VISIBLE_DEVICES"],
    way_out: "it comes with NVIDIA's driver",
    launch_buffer_tags: [1, 2, 0],
    attributes: Attributes {
        max_work_group_size: 1,
        wave_size: 10,
        clock_khz: 13,
        compute_units: 16,
        memory_clock_khz: 36,
        memory_bus_bits: 37,
        last_level_cache_bytes: 38,
        max_lds_bytes: 97, // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    },
};

/// HIP's (`hip_runtime_api.h`: `hipDeviceAttribute_t`, whose numbers are the same in ROCm 5.2, 6 and 7;
/// `HIP_LAUNCH_PARAM_*`).
pub static HIP: Flavor = Flavor {
    name: "HIP",
    kind: "hip",
    vendor: Vendor::Amd,
    library_variable: "COAX_HIP",
    library_names: &["libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"],
    visible_devices: &["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"],
    way_out: "install ROCm's HIP runtime (Debian, Ubuntu: apt install libamdhip64-5), or name it with $COAX_HIP",
    launch_buffer_tags: [1, 2, 3],
    attributes: Attributes {
        max_work_group_size: 56,
        wave_size: 87,
        clock_khz: 5,
        compute_units: 63,
        memory_clock_khz: 60,
        memory_bus_bits: 59,
        last_level_cache_bytes: 19,
        max_lds_bytes: 74,
    },
};

/// Attributes of functions; the numbers are the same in both interfaces (`CUfunction_attribute`,
/// `hipFunction_attribute`).
pub const MAX_WORK_GROUP: c_int = 0;
/// As [`MAX_WORK_GROUP`].
pub const STATIC_LDS: c_int = 1;
/// As [`MAX_WORK_GROUP`].
pub const SCRATCH: c_int = 3;
/// As [`MAX_WORK_GROUP`].
pub const REGISTERS: c_int = 4;
/// As [`MAX_WORK_GROUP`].
pub const MAX_DYNAMIC_LDS: c_int = 8;

/// CUDA's attributes for the compute capability; HIP has no attribute that names the target.
const CUDA_COMPUTE_CAPABILITY: [c_int; 2] = [75, 76];

/// Words that a memory of doubled data rate moves per clock. Both drivers tell the clock itself.
const TRANSFERS_PER_CLOCK: f64 = 2.0;

impl Flavor {
    /// `; HIP_VISIBLE_DEVICES=7 may hide it` for each variable that is set; an empty one hides all.
    pub fn hidden_by(&self) -> String {
        let set = self.visible_devices.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        set.map(|(name, value)| format!("; {name}={} may hide it", value.to_string_lossy())).collect()
    }

    /// The paths to try: ROCm's own folder first, then the loader's.
    pub fn libraries(&self) -> Vec<String> {
        let mut paths = Vec::new();
        if self.vendor == Vendor::Amd {
            let rocm = std::env::var_os("ROCM_PATH").filter(|path| !path.is_empty());
            let folders = rocm.into_iter().map(|path| Path::new(&path).join("lib")).chain(["/opt/rocm/lib".into()]);
            let names = |folder: std::path::PathBuf| self.library_names.iter().map(move |name| folder.join(name));
            let files = folders.flat_map(names).filter(|file| file.exists());
            paths.extend(files.map(|file| file.to_string_lossy().into_owned()));
        }
        paths.extend(self.library_names.iter().map(|name| (*name).to_owned()));
        paths
    }
}

/// Asks a device what it is. What the driver does not tell is 0 or none.
pub fn describe(api: &Api, flavor: &Flavor, device: c_int, number: u32) -> Result<DeviceInfo> {
    let attribute = |attribute: c_int| -> Option<u32> {
        let mut value: c_int = 0;
        // SAFETY: an int to fill; an attribute that the driver does not know is a status.
        let status = unsafe { (api.device_attribute)(&mut value, attribute, device) };
        (status == 0).then(|| u32::try_from(value).ok()).flatten()
    };
    let text = |function: unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int| -> String {
        let mut buffer = [0u8; 256];
        // SAFETY: the buffer is as long as the function is told.
        let status = unsafe { function(buffer.as_mut_ptr().cast(), 255, device) };
        let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
        if status == 0 { String::from_utf8_lossy(&buffer[..end]).trim().to_owned() } else { String::new() }
    };
    let numbers = &flavor.attributes;
    let id = format!("{}:{number}", flavor.kind);
    // Without one, two runs that name the device alike still keep out of each other's way.
    let bus_id = Some(text(api.device_bus_id)).filter(|told| !told.is_empty()).unwrap_or_else(|| id.clone());
    let cache_bytes = attribute(numbers.last_level_cache_bytes).unwrap_or_default().into();
    let target = match flavor.vendor {
        Vendor::Nvidia => match CUDA_COMPUTE_CAPABILITY.map(attribute) {
            [Some(major), Some(minor)] => format!("sm_{major}{minor}"),
            _ => String::new(),
        },
        Vendor::Amd => telemetry::sysfs::target(&bus_id).unwrap_or_default(),
    };
    let last_level_cache_bytes = match flavor.vendor {
        Vendor::Nvidia => cache_bytes,
        // HIP tells the L2. What stands behind it on some devices (Infinity Cache) only the system knows.
        Vendor::Amd => telemetry::sysfs::largest_cache_bytes(&bus_id).unwrap_or_default().max(cache_bytes),
    };
    let memory_clock_hz = attribute(numbers.memory_clock_khz).filter(|khz| *khz > 0).map(|khz| f64::from(khz) * 1e3);
    let bus_bytes = attribute(numbers.memory_bus_bits).filter(|bits| *bits > 0).map(|bits| f64::from(bits) / 8.0);
    Ok(DeviceInfo {
        id,
        name: text(api.device_name),
        target,
        driver: api.describe(flavor),
        bus_id,
        compute_units: attribute(numbers.compute_units).unwrap_or_default(),
        wave_size: attribute(numbers.wave_size).unwrap_or_default(),
        last_level_cache_bytes,
        max_lds_bytes: attribute(numbers.max_lds_bytes).unwrap_or_default(),
        max_work_group_size: attribute(numbers.max_work_group_size).unwrap_or_default(),
        peak_bytes_per_second: memory_clock_hz.zip(bus_bytes).map(|(hz, bytes)| hz * bytes * TRANSFERS_PER_CLOCK),
        max_clock_hz: attribute(numbers.clock_khz).filter(|khz| *khz > 0).map(|khz| f64::from(khz) * 1e3),
    })
}
