//! A whole source text to a relocatable object, and what LLVM says about it.

use std::fmt;

use crate::{Error, Target};

/// Assembles whole source texts. Shared by all threads.
pub trait Assembler: Send + Sync {
    /// Assembles `source` for `target` into a relocatable ELF object, byte for byte what `llvm-mc -filetype=obj` makes
    /// of it. Spellings of the target in `.amdgcn_target` that only newer assemblers know are understood.
    /// [`Target::of_source`] reads a target from that directive.
    ///
    /// # Errors
    /// Never because of what `source` contains, even if LLVM dies of it: that is in [`Assembly::diagnostics`]. Only an
    /// unknown target, no worker, or a text of more than 128 MiB.
    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error>;
}

/// What came of a source text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembly {
    /// The object; `None` when a diagnostic is an error.
    pub object: Option<Vec<u8>>,
    /// What LLVM said, in its order.
    pub diagnostics: Vec<Diagnostic>,
}

/// One message of LLVM about a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Error, warning or less.
    pub severity: Severity,
    /// From 1; 0 when LLVM names no place.
    pub line: u32,
    /// In bytes, from 1; 0 when LLVM names no place.
    pub column: u32,
    /// Without the place: `invalid operand for instruction`.
    pub message: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// There is no object.
    Error,
    /// There is one.
    Warning,
    /// Further information about the message before.
    Note,
}

impl Severity {
    /// All, by their numbers.
    pub(crate) const ALL: [Severity; 3] = [Severity::Error, Severity::Warning, Severity::Note];
}

/// `12:7: error: invalid operand for instruction`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(f, "{}:{}: {severity}: {}", self.line, self.column, self.message)
    }
}

/// The place that LLVM gives what has no file.
const INLINE_ASSEMBLY: &str = "<inline asm>:";

impl Diagnostic {
    /// Says that LLVM died or hung, and how.
    pub(crate) fn of_death(how: &str) -> Self {
        Diagnostic { severity: Severity::Error, line: 0, column: 0, message: format!("LLVM dies of it: {how}") }
    }

    /// Reads LLVM's text, `<inline asm>:LINE:COLUMN: MESSAGE`, behind which stand the line itself and a caret.
    pub(crate) fn parse(severity: Severity, text: &str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        let placed = first.strip_prefix(INLINE_ASSEMBLY).and_then(|rest| {
            let (line, rest) = rest.split_once(':')?;
            let (column, message) = rest.split_once(':')?;
            Some((line.parse().ok()?, column.parse().ok()?, message.trim()))
        });
        let (line, column, message) = placed.unwrap_or((0, 0, first));
        Diagnostic { severity, line, column, message: message.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_has_place_and_message() {
        let text = "<inline asm>:12:7: invalid operand: x\ns_nop x\n      ^\n";
        let diagnostic = Diagnostic::parse(Severity::Error, text);
        assert_eq!(diagnostic.to_string(), "12:7: error: invalid operand: x");
        assert_eq!(Diagnostic::parse(Severity::Warning, "out of memory").to_string(), "0:0: warning: out of memory");
    }
}
