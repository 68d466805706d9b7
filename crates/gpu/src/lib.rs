//! Devices that run kernels, behind one trait: HIP and CUDA, loaded at run time, and a scripted one for tests. What a
//! kernel computes, and what its times mean, is not known here.
//!
//! A device belongs to the thread that opened it. Whoever cannot trust the kernels that it runs (a wrong edit hangs the
//! GPU, a fault ends the process) opens it in a child process.

pub mod device;
pub mod error;

pub use device::{Address, Device, DeviceInfo, Event, Kernel, KernelLimits, Launch, Memory, Module, Telemetry};
pub use error::{Error, ErrorKind, Result};
