//! Devices that run kernels, behind one trait: HIP and CUDA, loaded at run time, and a scripted one for tests. What a
//! kernel computes, and what its times mean, is not known here.
//!
//! [`open()`] takes the name that a user gives (`hip:0`, `cuda:1`, `mock`). A device belongs to the thread that opened
//! it. Whoever cannot trust the kernels that it runs (a wrong edit hangs the GPU, a fault ends the process) opens it in
//! a child process, under the device's [`Lock`].
//!
//! Seam: an emulator of the instruction set would be one more [`Device`], named `emu`.

#![allow(unsafe_code)] // this crate talks to the drivers' C libraries; every block says why it is sound

pub mod device;
mod driver;
pub mod error;
mod lock;
pub mod mock;
mod open;
mod telemetry;
pub mod watched;

pub use device::{Address, Device, DeviceInfo, Event, Kernel, KernelLimits, Launch, Memory, Module, Telemetry};
pub use error::{Error, ErrorKind, Result};
pub use lock::{Held, Lock};
pub use open::{DeviceName, first, list, open};
