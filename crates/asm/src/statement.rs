//! What one line says: labels, then a directive, an assignment, an instruction, or nothing.
//!
//! The AMDGPU assembler has one statement a line; `;` and `//` start a comment, `#` does in column 0.

use std::borrow::Cow;

use crate::symbol::{self, is_name_byte};

/// One statement; a label leaves the rest of its line to be read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement<'a> {
    /// Nothing but blanks and comments.
    Blank,
    /// `name:`; `rest` is what follows the colon.
    Label {
        /// The symbol, unquoted.
        name: Cow<'a, [u8]>,
        /// The rest of the line, itself a statement.
        rest: &'a [u8],
    },
    /// `.name arguments`.
    Directive {
        /// With its dot.
        name: &'a [u8],
        /// Everything behind the name; comments are still in it (see [`strip_comment`]).
        arguments: &'a [u8],
    },
    /// `symbol = expression`.
    Assignment {
        /// The symbol, unquoted.
        name: Cow<'a, [u8]>,
        /// The expression; comments are still in it.
        value: &'a [u8],
    },
    /// `mnemonic operands`.
    Instruction {
        /// The mnemonic.
        mnemonic: &'a [u8],
        /// Everything behind it; comments are still in it.
        operands: &'a [u8],
    },
    /// Something else, which an assembler would refuse.
    Unknown,
}

impl<'a> Statement<'a> {
    /// Reads the statement at the start of `text`, which is a line or the rest of one.
    #[inline]
    pub fn parse(text: &'a [u8]) -> Statement<'a> {
        let text = trim_start(text);
        match text.first() {
            None | Some(b';' | b'#') => return Statement::Blank,
            Some(b'/') if text.starts_with(b"//") => return Statement::Blank,
            Some(b'"') => return Self::quoted(text),
            _ => {}
        }
        let end = text.iter().position(|&b| !is_name_byte(b)).unwrap_or(text.len());
        if end == 0 {
            return Statement::Unknown;
        }
        let (name, rest) = text.split_at(end);
        match rest.first() {
            Some(b':') => return Statement::Label { name: Cow::Borrowed(name), rest: &rest[1..] },
            Some(b' ' | b'\t' | b'=') if is_assignment(rest) => {
                return Statement::Assignment { name: Cow::Borrowed(name), value: &trim_start(rest)[1..] };
            }
            _ => {}
        }
        if name[0] == b'.' {
            Statement::Directive { name, arguments: rest }
        } else {
            Statement::Instruction { mnemonic: name, operands: rest }
        }
    }

    fn quoted(text: &'a [u8]) -> Statement<'a> {
        match symbol::split(text) {
            Some((name, [b':', rest @ ..])) => Statement::Label { name, rest },
            Some((name, rest)) if is_assignment(rest) => Statement::Assignment { name, value: &trim_start(rest)[1..] },
            _ => Statement::Unknown,
        }
    }
}

/// `= value`, but not `== value`.
#[inline]
fn is_assignment(rest: &[u8]) -> bool {
    matches!(trim_start(rest), [b'=', next @ ..] if next.first() != Some(&b'='))
}

/// Without leading blanks. A form feed is a blank to LLVM too.
#[inline]
pub fn trim_start(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|b| !matches!(b, b' ' | b'\t' | 0x0b | 0x0c | b'\r')).unwrap_or(text.len());
    &text[start..]
}

/// Without a trailing comment and without blanks at either end. Quotes are respected.
pub fn strip_comment(text: &[u8]) -> &[u8] {
    let mut quoted = false;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => quoted = !quoted,
            b'\\' if quoted => at += 1,
            b';' if !quoted => break,
            b'/' if !quoted && text.get(at + 1) == Some(&b'/') => break,
            _ => {}
        }
        at += 1;
    }
    text[..at.min(text.len())].trim_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let s = String::from_utf8_lossy;
        match Statement::parse(text.as_bytes()) {
            Statement::Blank => "blank".into(),
            Statement::Label { name, rest } => format!("label {} | {}", s(&name), s(rest)),
            Statement::Directive { name, arguments } => {
                format!("directive {} |{}", s(name), s(strip_comment(arguments)))
            }
            Statement::Assignment { name, value } => format!("assign {} |{}", s(&name), s(strip_comment(value))),
            Statement::Instruction { mnemonic, operands } => {
                format!("instruction {} |{}", s(mnemonic), s(strip_comment(operands)))
            }
            Statement::Unknown => "unknown".into(),
        }
    }

    #[test]
    fn lines_are_what_llvm_takes_them_for() {
        for (text, want) in [
            ("", "blank"),
            ("\t; v_mfma_f32 in a comment", "blank"),
            ("# 1 \"x.s\"", "blank"),
            ("\ts_endpgm", "instruction s_endpgm |"),
            ("ds_read_b32 v0, v1 ; why", "instruction ds_read_b32 |v0, v1"),
            ("lbl: ds_read_b32 v0, v1", "label lbl |  ds_read_b32 v0, v1"),
            ("\"k<float, 4>\":  ; @k", "label k<float, 4> |   ; @k"),
            ("\t.set a.num_vgpr, max(1, 2)", "directive .set |a.num_vgpr, max(1, 2)"),
            (".LBB0_2:", "label .LBB0_2 | "),
            ("x = 5 // five", "assign x |5"),
            ("\t.ascii \"; no comment\" ; one", "directive .ascii |\"; no comment\""),
            ("<junk>", "unknown"),
        ] {
            assert_eq!(show(text), want, "{text:?}");
        }
    }
}
