//! The one error of this crate: a kind to branch on and a message that names the way out.

use std::fmt;

/// What a caller may want to treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// No LLVM, or no linker, on this machine (exit code 3 of a command).
    NotFound,
    /// No LLVM that was found knows the processor or one of its features.
    UnknownTarget,
    /// A worker process could not be started, kept dying for no word's sake, or has no room for its temporary files.
    WorkerFailed,
    /// Code of 4 GiB or more.
    TooLarge,
    /// The linker refuses the object.
    LinkFailed,
}

impl ErrorKind {
    /// All, by their numbers.
    pub(crate) const ALL: [ErrorKind; 5] = [
        ErrorKind::NotFound,
        ErrorKind::UnknownTarget,
        ErrorKind::WorkerFailed,
        ErrorKind::TooLarge,
        ErrorKind::LinkFailed,
    ];
}

/// A failure to find or to use LLVM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error { kind, message: message.into() }
    }

    /// What to branch on.
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
