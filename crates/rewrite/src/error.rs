//! The one error of this crate: what kind, and a message that names the place and the way out.

use std::fmt;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not rewritten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What a caller may branch on.
    pub kind: ErrorKind,
    /// What was found, where, and what to do; no trailing full stop.
    pub message: String,
}

/// The outcomes that a caller may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is damaged, or is not what was asked for.
    BadInput,
    /// Valid, but of a kind that cannot be rewritten without guessing: said by name.
    Unsupported,
    /// The new content does not fit where it has to stay: a branch distance, a padded slot, a bit field.
    NoRoom,
    /// A kernel, field or container path that is not there.
    NotFound,
    /// What was written is not what it should be; nothing of it may be used.
    CheckFailed,
    /// LLVM is missing, or does not know the target.
    Llvm,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into() }
    }

    pub(crate) fn bad_input(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::BadInput, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    pub(crate) fn no_room(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::NoRoom, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<codeobj::Error> for Error {
    fn from(error: codeobj::Error) -> Error {
        let kind = match error.kind {
            codeobj::ErrorKind::Unsupported => ErrorKind::Unsupported,
            codeobj::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::BadInput,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<llvm::Error> for Error {
    fn from(error: llvm::Error) -> Error {
        Error::new(ErrorKind::Llvm, error.to_string())
    }
}
