//! What COMGR writes into the log of an action, read as diagnostics:
//!
//! ```text
//! /tmp/comgr-1d68ba/input/coax.s:2:17: error: register index is out of range
//!   v_mov_b32 v0, v900
//!                 ^
//! error: unable to open output file '/tmp/comgr-1d68ba/output/coax.s.o': 'No space left on device'
//! ```

use crate::assembler::{Diagnostic, Severity};

/// clang's words for them.
const SEVERITIES: [(&str, Severity); 4] = [
    ("error: ", Severity::Error),
    ("fatal error: ", Severity::Error),
    ("warning: ", Severity::Warning),
    ("note: ", Severity::Note),
];

/// The diagnostics of a log, in its order.
pub(super) fn diagnostics(log: &str) -> Vec<Diagnostic> {
    let mut lines = log.lines().peekable();
    let mut diagnostics = Vec::new();
    while let Some(line) = lines.next() {
        let Some(diagnostic) = diagnostic(line) else { continue };
        if diagnostic.line != 0 && lines.next().is_some() {
            // The line of the source, which may look like anything, and the caret below it.
            lines.next_if(|line| line.trim_matches([' ', '\t', '^', '~']).is_empty());
        }
        diagnostics.push(diagnostic);
    }
    diagnostics
}

/// Reads `PLACE: SEVERITY: MESSAGE` or `SEVERITY: MESSAGE`. The place is a path, which may have colons, a line and a
/// column.
fn diagnostic(line: &str) -> Option<Diagnostic> {
    let found = SEVERITIES.iter().filter_map(|(word, severity)| Some((line.find(word)?, *word, *severity)));
    let (at, word, severity) = found.min_by_key(|(at, ..)| *at)?;
    let (place, message) = (&line[..at], line[at + word.len()..].to_owned());
    let numbers = place.strip_suffix(": ").and_then(|place| {
        let (place, column) = place.rsplit_once(':')?;
        let (_, line) = place.rsplit_once(':')?;
        Some((line.parse().ok()?, column.parse().ok()?))
    });
    let (line, column) = match numbers {
        Some(numbers) => numbers,
        // `error: …`, `clang: error: …`
        None if !place.contains(' ') || place.ends_with(": ") => (0, 0),
        None => return None,
    };
    Some(Diagnostic { severity, line, column, message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_and_its_quotations_are_not() {
        let log = "/tmp/comgr-1d68ba/input/coax.s:2:17: error: register index is out of range\n  v_mov_b32 v0, v900\n\
                   \x20               ^\n/tmp/a:b/input/coax.s:3:1: warning: hey\n.warning \"error: none\"\n^\n\
                   error: unable to open output file 'coax.s.o': 'No space left on device'\n1 error generated.\n";
        let found: Vec<String> = diagnostics(log).iter().map(Diagnostic::to_string).collect();
        let expected = [
            "2:17: error: register index is out of range",
            "3:1: warning: hey",
            "0:0: error: unable to open output file 'coax.s.o': 'No space left on device'",
        ];
        assert_eq!(found, expected);
    }
}
