//! Hints, applied: only where what comes out still decodes to the same text.

use std::collections::HashMap;

use llvm::{Decoder, State, Target, Toolchain};

use crate::error::{Error, Result};
use crate::hint::Hint;

/// What the assembler made of a text, and its hint.
type Pair<'a> = (Box<[u8]>, &'a str);

/// Applies hints, each pair of bytes and hint once.
pub(super) struct Bits<'a> {
    toolchain: &'a Toolchain,
    target: &'a Target,
    done: HashMap<Pair<'a>, Box<[u8]>>,
}

impl<'a> Bits<'a> {
    pub fn new(toolchain: &'a Toolchain, target: &'a Target) -> Self {
        Bits { toolchain, target, done: HashMap::new() }
    }

    /// `bytes` of the instruction on `line` with the hint `text` applied.
    ///
    /// # Errors
    /// A hint that makes another instruction of it, or none.
    pub fn apply(&mut self, line: u32, bytes: &[u8], text: &'a str) -> Result<&[u8]> {
        let key = (Box::from(bytes), text);
        if !self.done.contains_key(&key) {
            let hint = Hint::parse(text).map_err(|why| Error::line(line, why))?;
            let mut changed = bytes.to_vec();
            let (before, after) = match hint.apply(&mut changed) {
                true => (self.text(bytes)?, self.text(&changed)?),
                false => (self.text(bytes)?, None),
            };
            if before.is_none() || before != after {
                let became = after.map_or("none".to_owned(), |text| format!("`{text}`"));
                let message = format!("the hint `{hint}` does not fit this instruction: it makes {became} of it");
                let help = "take the hint off this line; it kept bits of the instruction that stood here";
                return Err(crate::error::Message::at(line, message).help(help).into());
            }
            self.done.insert(key.clone(), changed.into());
        }
        Ok(&self.done[&key])
    }

    /// What these bytes are, when they are one instruction.
    fn text(&self, bytes: &[u8]) -> Result<Option<String>> {
        let listing = self.toolchain.decode(self.target, bytes)?;
        Ok(match listing.instructions() {
            [only] if only.state == State::Decoded => Some(listing.text(only).to_owned()),
            _ => None,
        })
    }
}
