//! The one error of this crate: what kind, what was found and expected, and where.

use std::fmt;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why an input was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What a caller may branch on.
    pub kind: ErrorKind,
    /// What was found and what was expected; no place, no trailing full stop.
    pub message: String,
    /// Where in the input.
    pub place: Place,
}

/// The outcomes that a caller may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is something else than what was asked for (a text, an ELF of another machine).
    WrongFormat,
    /// The input contradicts its format, or ends too early.
    Malformed,
    /// Valid, but a kind that this crate does not read (code object v2, a thin archive).
    Unsupported,
    /// A bound of ours was reached (nesting, decompressed size).
    Limit,
    /// A container path names nothing that is there.
    NotFound,
}

/// Where an [`Error`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The input as a whole.
    Whole,
    /// A byte offset from the start of the file or container member.
    File(u64),
    /// An offset inside a section, and where the section's header puts it in the file.
    Section {
        /// Section name.
        name: String,
        /// Bytes from the start of the section.
        offset: u64,
        /// Bytes from the start of the file.
        file_offset: u64,
    },
    /// A place in a text, both counted from 1.
    Text {
        /// Line number.
        line: usize,
        /// Column number, in characters.
        column: usize,
    },
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, place: Place, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), place }
    }

    /// Bytes at `offset` of the file contradict the format.
    pub(crate) fn malformed(offset: u64, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Malformed, Place::File(offset), message)
    }

    /// The input as a whole is a different format.
    pub(crate) fn wrong_format(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::WrongFormat, Place::Whole, message)
    }

    pub(crate) fn unsupported(place: Place, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Unsupported, place, message)
    }

    pub(crate) fn limit(place: Place, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Limit, place, message)
    }

    /// The same error, said of the container member `path`.
    pub(crate) fn within(mut self, path: &str) -> Error {
        if !path.is_empty() {
            self.message = format!("`{path}`: {}", self.message);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.message, self.place)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Place {
    /// ` at …`, or nothing for [`Place::Whole`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::File(offset) => write!(f, " at file offset {offset:#x}"),
            Place::Section { name, offset, file_offset } => {
                write!(f, " at {name}+{offset:#x} (file offset {file_offset:#x})")
            }
            Place::Text { line, column } => write!(f, " at line {line}, column {column}"),
        }
    }
}
