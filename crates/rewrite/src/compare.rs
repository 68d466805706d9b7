//! Where two code objects, or a code object and a text, differ: by section, kernel and instruction.

use std::collections::HashSet;
use std::path::Path;

use llvm::{Instruction, Target, Toolchain};
use similar::DiffOp;

use crate::assemble::{self, Pins};
use crate::build;
use crate::code::{Code, Piece};
use crate::error::{Error, Result};
use crate::facts::descriptor;
use crate::kept;
use crate::object::{CodeSection, Object, Span};
use crate::source::Source;

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `.text: kernel axpy+0x1a4`
    pub place: String,
    /// What stands there on each side, a line each.
    pub sides: [Vec<String>; 2],
}

/// Code that is compared, of a code object or of a text.
pub struct Side {
    target: Target,
    sections: Vec<(CodeSection, Vec<u8>)>,
    names: Vec<Vec<(u32, String)>>,
}

impl Side {
    /// That of a code object.
    pub fn of_object(object: &Object<'_>) -> Side {
        let names = |section: &CodeSection| {
            object.symbols_of(section).into_iter().map(|(offset, symbol)| (offset, symbol.name.clone())).collect()
        };
        Side {
            target: object.target.clone(),
            sections: object.sections.iter().map(|s| (s.clone(), object.code(s).to_vec())).collect(),
            names: object.sections.iter().map(names).collect(),
        }
    }

    /// That of a text, for its own target or for `default`; linked, where symbols have their values only then and
    /// `link` says so. `llvm` is the user's choice of an LLVM.
    ///
    /// # Errors
    /// As [`assemble::assemble`] and [`build::code_object`]; a text for no target.
    pub fn of_source(
        toolchain: &Toolchain,
        llvm: Option<&Path>,
        source: &Source<'_>,
        default: Option<&Target>,
        link: bool,
    ) -> Result<Side> {
        let target = assemble::target_of(source)?.or_else(|| default.cloned());
        let target = target.ok_or_else(|| Error::input("neither side says for which target it is"))?;
        let assembled = assemble::assemble(toolchain, &target, source, &Pins::default())?;
        if link && assembled.sections.iter().any(|section| !section.links.is_empty()) {
            let linked = build::code_object(toolchain, llvm, source)?;
            return Ok(Side::of_object(&Object::parse(&linked)?));
        }
        let (mut sections, mut names) = (Vec::new(), Vec::new());
        for section in assembled.sections {
            let labels: Vec<(u32, String)> = section
                .labels
                .iter()
                .filter(|(name, _)| !name.starts_with(".L"))
                .map(|(name, offset)| (*offset, name.clone()))
                .collect();
            let size = section.bytes.len() as u32;
            let mut starts: Vec<(u32, String)> = labels.clone();
            if starts.first().is_none_or(|(offset, _)| *offset != 0) {
                starts.insert(0, (0, String::new()));
            }
            let ends = starts.iter().skip(1).map(|(offset, _)| *offset).chain([size]);
            let spans = starts
                .iter()
                .zip(ends)
                .map(|((start, name), end)| Span { range: *start..end, name: name.clone(), kernel: None })
                .collect();
            let own =
                CodeSection { index: 0, name: section.name, address: 0, file_range: 0..section.bytes.len(), spans };
            sections.push((own, section.bytes));
            names.push(labels);
        }
        Ok(Side { target, sections, names })
    }

    /// What it was assembled or made for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    fn decode(&self, toolchain: &Toolchain, at: usize) -> Result<Code<'_>> {
        let (section, bytes) = &self.sections[at];
        Code::decode_bytes(toolchain, &self.target, section, bytes, self.names[at].clone())
    }
}

/// Where the code of two sides differs.
///
/// # Errors
/// As [`Code::decode`].
pub fn code(toolchain: &Toolchain, sides: [&Side; 2]) -> Result<Vec<Difference>> {
    let mut differences = Vec::new();
    let [one, other] = sides;
    if one.target != other.target {
        let sides = [one, other].map(|side| vec![side.target.to_string()]);
        differences.push(Difference { place: "target".into(), sides });
        return Ok(differences);
    }
    for (at, (section, bytes)) in one.sections.iter().enumerate() {
        let Some(twin) = other.sections.iter().position(|(twin, _)| twin.name == section.name) else {
            let sides = [vec![format!("{} bytes", bytes.len())], vec![]];
            differences.push(Difference { place: section.name.clone(), sides });
            continue;
        };
        if *bytes != other.sections[twin].1 {
            let (old, new) = (one.decode(toolchain, at)?, other.decode(toolchain, twin)?);
            differences.extend(instructions(&old, &new));
        }
    }
    for (section, bytes) in &other.sections {
        if !one.sections.iter().any(|(twin, _)| twin.name == section.name) {
            let sides = [vec![], vec![format!("{} bytes", bytes.len())]];
            differences.push(Difference { place: section.name.clone(), sides });
        }
    }
    Ok(differences)
}

fn instructions(old: &Code<'_>, new: &Code<'_>) -> Vec<Difference> {
    let (before, after) = (kept::keys(old), kept::keys(new));
    let mut found = Vec::new();
    for op in kept::differences(&before, &after) {
        if matches!(op, DiffOp::Equal { .. }) {
            continue;
        }
        let (old_range, new_range) = (op.old_range(), op.new_range());
        let start = |keys: &[kept::Key], at: usize, code: &Code<'_>| {
            keys.get(at).map_or(code.bytes.len() as u32, |key| key.offset)
        };
        let first = start(&before, old_range.start, old);
        let second = start(&after, new_range.start, new);
        let sides = told_apart([(old, &before[old_range]), (new, &after[new_range])]);
        found.push(Difference { place: places([(old, first), (new, second)]), sides });
    }
    if found.is_empty() {
        // The same instructions in the same order: a branch goes elsewhere, or unused bits differ.
        for (one, other) in before.iter().zip(&after) {
            let texts = [text(old, one.offset), text(new, other.offset)];
            let target = |code: &Code<'_>, offset| code.branch(offset, &text(code, offset)).map(|(_, to)| to.offset);
            let moved = target(old, one.offset) != target(new, other.offset);
            if texts[0] != texts[1] || moved {
                found.push(Difference {
                    place: places([(old, one.offset), (new, other.offset)]),
                    sides: texts.map(|text| vec![text]),
                });
            }
        }
    }
    found
}

/// Where that is on both sides, in few words when it is the same place.
fn places(sides: [(&Code<'_>, u32); 2]) -> String {
    let [one, other] = sides.map(|(code, offset)| place(code, offset));
    if one == other { one } else { format!("{one} in the first, {other} in the second") }
}

/// `.text: axpy+0x1a4`
fn place(code: &Code<'_>, offset: u32) -> String {
    let spans = &code.section.spans;
    let at = spans.partition_point(|span| span.range.start <= offset).saturating_sub(1);
    match spans.get(at) {
        Some(span) if !span.name.is_empty() => {
            format!("{}: {}+{:#x}", code.section.name, span.name, offset - span.range.start)
        }
        _ => format!("{}+{offset:#x}", code.section.name),
    }
}

/// A line per instruction; those that read alike on both sides with their words.
fn told_apart(sides: [(&Code<'_>, &[kept::Key]); 2]) -> [Vec<String>; 2] {
    let texts = sides.map(|(code, keys)| keys.iter().map(|key| text(code, key.offset)).collect::<Vec<_>>());
    let sets: [HashSet<&str>; 2] = [0, 1].map(|at| texts[at].iter().map(String::as_str).collect());
    [0, 1].map(|at| {
        let (code, keys) = sides[at];
        let line = |(text, key): (&String, &kept::Key)| match sets[1 - at].contains(text.as_str()) {
            true => format!("{text} ; {}", words(code, key.offset)),
            false => text.clone(),
        };
        texts[at].iter().zip(keys).map(line).collect()
    })
}

/// The words of the instruction at an offset: `7E000281`.
fn words(code: &Code<'_>, offset: u32) -> String {
    let bytes = instruction(code, offset).map_or(&[][..], |(_, instruction)| code.bytes_of(offset, instruction));
    let words = bytes.chunks(4).map(|word| word.iter().rev().map(|byte| format!("{byte:02X}")).collect::<String>());
    words.collect::<Vec<_>>().join(" ")
}

/// The text at an offset, a branch with its label; words where there is none.
fn text(code: &Code<'_>, offset: u32) -> String {
    let Some((piece, instruction)) = instruction(code, offset) else { return String::new() };
    match piece.listing.text(instruction) {
        "" => format!(".long {:#010x}", code.word(offset)),
        text => match code.branch(offset, text) {
            Some((head, label)) => format!("{head}{}", label.name),
            None => text.to_owned(),
        },
    }
}

/// The instruction at an offset.
fn instruction<'c>(code: &'c Code<'_>, offset: u32) -> Option<(&'c Piece, &'c Instruction)> {
    let piece = &code.pieces[code.pieces.partition_point(|piece| piece.start <= offset).checked_sub(1)?];
    let instructions = piece.listing.instructions();
    let at = instructions.binary_search_by_key(&(offset - piece.start), |instruction| instruction.offset).ok()?;
    Some((piece, &instructions[at]))
}

/// Where two code objects differ outside their code: descriptors by field, other sections by offset, the rest by file
/// offset.
pub fn rest(one: &Object<'_>, other: &Object<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    for kernel in &one.code_object.kernels {
        let twin = other.code_object.kernels.iter().find(|twin| twin.name == kernel.name);
        let (Ok(own), Some(Ok(twin))) = (&kernel.descriptor, twin.map(|twin| &twin.descriptor)) else { continue };
        let (own, twin) = (own.descriptor.bytes(), twin.descriptor.bytes());
        for (field, a, b) in descriptor::differing(own, twin, one.family()) {
            let sides = [a, b].map(|value| vec![value.to_string()]);
            found.push(Difference { place: format!("descriptor of {}: {field}", kernel.name), sides });
        }
    }
    let sections = &one.code_object.sections;
    for section in sections.iter().filter(|section| !section.is_executable()) {
        let Some(twin) = other.code_object.sections.iter().find(|twin| twin.name == section.name) else {
            let sides = [vec![format!("{} bytes", section.size)], vec!["not there".into()]];
            found.push(Difference { place: format!("section {}", section.name), sides });
            continue;
        };
        let (own, twin) = (&one.bytes[section.file_range.clone()], &other.bytes[twin.file_range.clone()]);
        // What a descriptor holds has been named by field.
        if own != twin && (section.name != ".rodata" || found.is_empty()) {
            let at = own.iter().zip(twin).position(|(a, b)| a != b).unwrap_or(own.len().min(twin.len()));
            let shown = |bytes: &[u8]| match bytes.get(at) {
                Some(byte) => vec![format!("{byte:#04x} ({} bytes in all)", bytes.len())],
                None => vec![format!("ends ({} bytes in all)", bytes.len())],
            };
            found.push(Difference {
                place: format!("section {}+{at:#x}", section.name),
                sides: [shown(own), shown(twin)],
            });
        }
    }
    if found.is_empty() && one.bytes != other.bytes {
        let at = one.bytes.iter().zip(other.bytes).position(|(a, b)| a != b);
        let at = at.unwrap_or(one.bytes.len().min(other.bytes.len()));
        let shown = |bytes: &[u8]| vec![bytes.get(at).map_or("ends".into(), |byte| format!("{byte:#04x}"))];
        found.push(Difference { place: format!("file offset {at:#x}"), sides: [shown(one.bytes), shown(other.bytes)] });
    }
    found
}
