//! The state of a device: clocks, temperature, throttling, who else is on it. From NVIDIA's management library and from
//! the Linux driver's files for AMD; a thing that cannot be asked is left out and never stops a run.

pub mod nvml;
pub mod sysfs;
