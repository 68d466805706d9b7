//! The one error of this crate: a message that says what was found, what was expected, and the way out.

use std::fmt;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was refused. Callers do not branch on it; who knows a place puts it in front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    message: String,
}

impl Error {
    /// An error with its message: no place, no trailing full stop.
    pub fn new(message: impl Into<String>) -> Error {
        Error { message: message.into() }
    }

    /// The same error, said of a place: `PLACE: message`.
    pub fn at(self, place: impl fmt::Display) -> Error {
        Error { message: format!("{place}: {}", self.message) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
