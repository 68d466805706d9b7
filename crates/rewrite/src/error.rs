//! The one error of this crate: a kind to branch on, and messages that name the line and the way out.

use std::fmt;

/// Result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// What a caller may want to treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The input is wrong, or of a kind that cannot be worked on (exit code 2 of a command).
    Input,
    /// Valid, but of a kind that cannot be rewritten without guessing: said by name (exit code 2).
    Unsupported,
    /// A kernel, field or container path that is not there (exit code 2).
    NotFound,
    /// The new code needs more room than there is (exit code 1).
    Larger,
    /// The new content does not fit where it has to stay: a branch distance, a padded slot, a bit field (exit code 1).
    NoRoom,
    /// In place, what code computes the address of would move away from it (exit code 2).
    Moved,
    /// What was written is not what it should be; nothing of it may be used (exit code 2).
    CheckFailed,
    /// LLVM or a linker is not on this machine (exit code 3).
    Unavailable,
}

/// Why something was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What to branch on.
    pub kind: ErrorKind,
    /// At least one.
    pub messages: Vec<Message>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What was found and what was expected.
    pub text: String,
    /// In the assembly text, from 1; 0 when the message is about no line.
    pub line: u32,
    /// In bytes, from 1; 0 when it is about the whole line.
    pub column: u32,
    /// The way out.
    pub help: Option<String>,
}

impl Message {
    /// About the input as a whole.
    pub fn new(text: impl Into<String>) -> Self {
        Message { text: text.into(), line: 0, column: 0, help: None }
    }

    /// About a line of the text.
    pub fn at(line: u32, text: impl Into<String>) -> Self {
        Message { line, ..Message::new(text) }
    }

    /// With the way out.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Error { kind, ..Error::input(text) }
    }

    pub(crate) fn unsupported(text: impl Into<String>) -> Self {
        Error::new(ErrorKind::Unsupported, text)
    }

    pub(crate) fn no_room(text: impl Into<String>) -> Self {
        Error::new(ErrorKind::NoRoom, text)
    }

    /// The input is at fault.
    pub fn input(text: impl Into<String>) -> Self {
        Error::from(Message::new(text))
    }

    /// The text is at fault, on a line.
    pub fn line(line: u32, text: impl Into<String>) -> Self {
        Error::from(Message::at(line, text))
    }
}

impl From<Message> for Error {
    fn from(message: Message) -> Self {
        Error { kind: ErrorKind::Input, messages: vec![message] }
    }
}

impl From<codeobj::Error> for Error {
    fn from(error: codeobj::Error) -> Self {
        let kind = match error.kind {
            codeobj::ErrorKind::Unsupported => ErrorKind::Unsupported,
            codeobj::ErrorKind::NotFound => ErrorKind::NotFound,
            _ => ErrorKind::Input,
        };
        Error::new(kind, error.to_string())
    }
}

impl From<llvm::Error> for Error {
    fn from(error: llvm::Error) -> Self {
        let kind = match error.kind() {
            llvm::ErrorKind::NotFound => ErrorKind::Unavailable,
            _ => ErrorKind::Input,
        };
        Error { kind, messages: vec![Message::new(error.to_string())] }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, message) in self.messages.iter().enumerate() {
            let separator = if i == 0 { "" } else { "\n" };
            match message.line {
                0 => write!(f, "{separator}{}", message.text)?,
                line => write!(f, "{separator}line {line}: {}", message.text)?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
