//! What can go wrong with a device.

use std::fmt;

/// The result of every call.
pub type Result<T> = std::result::Result<T, Error>;

/// Kinds that callers tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No driver library on this machine.
    NoDriver,
    /// The driver is there and does not start, or has no device, or none of that number.
    NoDevice,
    /// The image is for another target, or the driver cannot load it.
    BadImage,
    /// What was given is no image at all, as far as the device itself can tell.
    NoImage,
    /// The image has no such kernel.
    NoKernel,
    /// Not enough device memory; the message has the sizes asked for and free.
    OutOfMemory,
    /// The launch was refused: its grid, block, LDS or arguments do not fit.
    BadLaunch,
    /// The device faulted while it ran; it is not usable any more in this process.
    Fault,
    /// The driver cannot do this.
    Unsupported,
    /// Anything else that the driver reports.
    Driver,
}

/// An error of a device: its kind, and a message with the driver's own name of it.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// Makes one.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    /// The same error, said of one of several: `test: …`.
    #[must_use]
    pub fn of(self, what: &str) -> Error {
        Error { message: format!("{what}: {}", self.message), ..self }
    }

    /// Its kind.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
