//! A `.s` to the code of its sections, with the line of every instruction: by single instructions, each distinct one
//! encoded once, where [`Source`] can read the text (`direct`); else by LLVM as a whole (`whole`).

mod bits;
mod direct;
mod whole;

use std::collections::HashMap;

use llvm::{Diagnostic, Target, Toolchain};

use crate::error::{Error, Message, Result};
use crate::source::Source;

/// The word that pads: `s_nop 0` on every processor.
pub const S_NOP: u32 = 0xbf80_0000;

/// Places that labels and lines must have: padded to with `s_nop 0` where the code before is shorter.
#[derive(Clone, Debug, Default)]
pub struct Pins {
    /// Label and offset in its section.
    pub labels: HashMap<String, u32>,
    /// Line of an instruction and its offset.
    pub lines: HashMap<u32, u32>,
    /// Section and size.
    pub sizes: HashMap<String, u32>,
    /// Whether alignments of entries, to [`ENTRY_ALIGN`] or more, are left to the caller; not where LLVM reads the text.
    pub entries_by_caller: bool,
}

/// Unit of the addresses at which kernels start, and the distance of a second entry; bytes.
pub const ENTRY_ALIGN: u32 = 256;

impl Pins {
    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.lines.is_empty() && self.sizes.is_empty() && !self.entries_by_caller
    }
}

/// The code of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assembled {
    /// Those with code, in the order of the text.
    pub sections: Vec<Section>,
}

/// A section's code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// `.text`
    pub name: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What each line gave, in address order.
    pub lines: Vec<LineCode>,
    /// Labels and their offsets, in the order of the text.
    pub labels: Vec<(String, u32)>,
    /// Lines with a symbol that has its value only when linked, and the symbol.
    pub links: Vec<(u32, String)>,
    /// Where symbols are put in when linked.
    pub relocations: Vec<Relocation>,
}

/// A field of the code that has its value only when linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relocation {
    /// Of the field, in the section.
    pub offset: u32,
    /// `R_AMDGPU_*`
    pub kind: u32,
    /// A name and what is added, or a section and an offset.
    pub leads_to: String,
}

/// What a line gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineCode {
    /// Where it begins in the section.
    pub offset: u32,
    /// From 1; 0 for padding that no line asked for.
    pub line: u32,
}

impl Section {
    /// The line that gave the byte at `offset`.
    pub fn line_at(&self, offset: u32) -> u32 {
        let at = self.lines.partition_point(|line| line.offset <= offset);
        at.checked_sub(1).map_or(0, |at| self.lines[at].line)
    }

    /// The offset of a label.
    pub fn label(&self, name: &str) -> Option<u32> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, offset)| *offset)
    }
}

/// Assembles `source` for `target`.
///
/// # Errors
/// Lines that do not assemble, labels that are missing or out of reach, hints that do not fit; as
/// [`llvm::Encoder::encode`].
pub fn assemble(toolchain: &Toolchain, target: &Target, source: &Source<'_>, pins: &Pins) -> Result<Assembled> {
    unknown_hints(source)?;
    if source.beyond.is_none()
        && let Some(assembled) = direct::assemble(toolchain, target, source, pins)?
    {
        return Ok(assembled);
    }
    whole::assemble(toolchain, target, source, pins)
}

/// A diagnostic as a message. What LLVM does not get through has no line.
pub(crate) fn message_of(diagnostic: &Diagnostic, text: &str) -> Message {
    let message = Message::at(diagnostic.line, diagnostic.message.as_str());
    let repeats = [".rept", ".irp", ".macro", ".fill", ".space", ".skip", ".zero", ".org"];
    match repeats.iter().find(|name| diagnostic.line == 0 && text.contains(**name)) {
        Some(name) => message.help(format!("does the text repeat too much, with a `{name}`?")),
        None => message,
    }
}

/// A misspelt hint would be a comment, and the bits that it keeps lost.
fn unknown_hints(source: &Source<'_>) -> Result<()> {
    if let Some((line, word)) = source.unknown_hint {
        let message = format!("`;@{word}` is no hint, expected `{}` or `;@reference`", crate::hint::MARK);
        return Err(Error::line(line, message));
    }
    Ok(())
}

/// The target that a text names, when it does.
///
/// # Errors
/// A target that makes no sense.
pub fn target_of(source: &Source<'_>) -> Result<Option<Target>> {
    match source.target {
        None => Ok(None),
        Some((line, id)) => match Target::of_source(source.text) {
            Some(target) => Ok(Some(target)),
            None => Err(Error::line(line, format!("`{id}` is no target, expected `amdgcn-amd-amdhsa--gfx942`"))),
        },
    }
}
