//! Instructions of a relocatable object whose constant a linker fills in, with the symbol in the place of the constant.
//!
//! Where the constant stands in an instruction's text is found by giving it a value that nothing else has and decoding
//! again. What is written so is assembled, and used only where the same bytes and the same relocation come of it. The
//! others keep their number, and a `.reloc` behind them says the rest.

use std::collections::HashMap;
use std::fmt::Write;

use llvm::{Assembler, Decoder, State, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationFlags};

use super::data::{kind_name, modifier};
use super::names::Names;
use crate::code::Code;
use crate::error::Result;
use crate::facts;
use crate::object::Object;
use crate::tables::{Reference, Tables};

/// What is written for an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relocated {
    /// This, in the place of its text.
    Text(String),
    /// These lines behind it.
    Behind(String),
}

/// By section and offset of the instruction.
type Found = HashMap<(usize, u32), Relocated>;

/// An instruction that is tried.
struct Try<'a> {
    place: (usize, u32),
    text: String,
    bytes: &'a [u8],
    /// Where in the instruction, and the kind.
    field: (u64, u32),
    behind: String,
}

/// A word that no kernel has for another reason is not needed: it must only be there once in one instruction's text.
const MARK: [u8; 8] = [0xd1, 0x5e, 0x7a, 0x6b, 0xc3, 0x4d, 0x2f, 0x71];

/// All of `object`'s instructions with a relocation, and by name the relocations that cannot be written.
pub(super) fn write(
    toolchain: &Toolchain,
    object: &Object<'_>,
    codes: &[Code<'_>],
    tables: &Tables,
    names: &Names,
) -> Result<(Found, Vec<String>)> {
    let (mut found, mut failed) = (Found::new(), Vec::new());
    let mut tries = Vec::new();
    for code in codes {
        let starts: Vec<(u32, u32, bool)> = code
            .instructions()
            .map(|(at, _, i)| (at, u32::from(i.len), i.state == State::Decoded && !i.untrusted))
            .collect();
        for reference in tables.references_of(code.section.index) {
            let index = starts.partition_point(|(at, ..)| u64::from(*at) <= reference.offset).checked_sub(1);
            let whole = index
                .map(|index| starts[index])
                .filter(|(at, len, _)| reference.offset + reference.size() <= u64::from(*at) + u64::from(*len));
            let line = whole.and_then(|(at, len, _)| behind(reference, names, at + len));
            let (Some((at, len, is_certain)), Some(behind)) = (whole, line) else {
                let (name, offset) = (&code.section.name, reference.offset);
                failed.push(format!("the relocation of type {} at {name}+{offset:#x}", reference.kind));
                continue;
            };
            let place = (code.section.index, at);
            let bytes = &code.bytes[at as usize..(at + len) as usize];
            // A second relocation of an instruction keeps both as lines.
            if let Some(other) = found.get_mut(&place) {
                if let Relocated::Behind(lines) = other {
                    lines.push_str(&behind);
                }
                continue;
            }
            let text = if is_certain { expressed(toolchain, object, bytes, at, reference, names)? } else { None };
            let field = (reference.offset - u64::from(at), reference.kind);
            if let Some(text) = text {
                tries.push(Try { place, text, bytes, field, behind: behind.clone() });
            }
            found.insert(place, Relocated::Behind(behind));
        }
    }
    for (tried, is_same) in tries.iter().zip(same(toolchain, object, &tries)?) {
        let only = found.get(&tried.place) == Some(&Relocated::Behind(tried.behind.clone()));
        if is_same && only {
            found.insert(tried.place, Relocated::Text(tried.text.clone()));
        }
    }
    Ok((found, failed))
}

/// `.reloc` for an instruction that ends at `end`.
fn behind(reference: &Reference, names: &Names, end: u32) -> Option<String> {
    let (name, added) = names.expression(reference)?;
    let back = u64::from(end) - reference.offset;
    Some(format!("\t.reloc .-{back}, {}, {name}{added}\n", kind_name(reference.kind)?))
}

/// The instruction's text with the symbol in the place of its constant.
fn expressed(
    decoder: &dyn Decoder,
    object: &Object<'_>,
    bytes: &[u8],
    at: u32,
    reference: &Reference,
    names: &Names,
) -> Result<Option<String>> {
    let field = (reference.offset - u64::from(at)) as usize;
    let size = reference.size() as usize;
    let (Some((name, added)), Some(modifier)) = (names.expression(reference), modifier(reference.kind)) else {
        return Ok(None);
    };
    let mut marked = bytes.to_vec();
    let Some(place) = marked.get_mut(field..field + size).filter(|_| size >= 4) else { return Ok(None) };
    place.copy_from_slice(&MARK[..size]);
    let listing = decoder.decode(&object.target, &marked)?;
    let [only] = listing.instructions() else { return Ok(None) };
    let number = MARK[..size].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let text = listing.text(only);
    let marks = [format!("lit64({number:#x})"), format!("lit({number:#x})"), format!("{number:#x}")];
    let Some(mark) = marks.iter().find(|mark| text.contains(&***mark)) else { return Ok(None) };
    if text.matches(&**mark).count() != 1 {
        return Ok(None);
    }
    Ok(Some(text.replacen(&**mark, &format!("{name}{modifier}{added}"), 1)))
}

/// Which of them assemble to their own bytes and relocation.
fn same(toolchain: &Toolchain, object: &Object<'_>, tries: &[Try<'_>]) -> Result<Vec<bool>> {
    let mut source = facts::prologue(object) + "\t.text\n";
    for (number, tried) in tries.iter().enumerate() {
        let _ = writeln!(source, "\"coax.try.{number}\":\n\t{}", tried.text);
    }
    let _ = writeln!(source, "\"coax.try.{}\":", tries.len());
    let Some(assembled) = toolchain.assemble(&object.target, &source)?.object else {
        // One bad text spoils all: halves, down to single ones.
        return match tries {
            [] | [_] => Ok(vec![false; tries.len()]),
            _ => {
                let (one, other) = tries.split_at(tries.len() / 2);
                Ok([same(toolchain, object, one)?, same(toolchain, object, other)?].concat())
            }
        };
    };
    let none = || vec![false; tries.len()];
    let Ok(file) = ElfFile::<FileHeader64<LittleEndian>>::parse(&*assembled) else { return Ok(none()) };
    let Some(section) = file.section_by_name(".text") else { return Ok(none()) };
    let mut starts = vec![None; tries.len() + 1];
    for symbol in file.symbols() {
        let number = symbol.name().ok().and_then(|name| name.strip_prefix("coax.try.")?.parse::<usize>().ok());
        if let Some(start) = number.and_then(|number| starts.get_mut(number)) {
            *start = Some(symbol.address());
        }
    }
    let relocations: HashMap<u64, u32> = section
        .relocations()
        .filter_map(|(at, relocation)| match relocation.flags() {
            RelocationFlags::Elf { r_type } => Some((at, r_type.0)),
            _ => None,
        })
        .collect();
    let code = section.data().unwrap_or_default();
    let is_same = |(tried, ends): (&Try<'_>, &[Option<u64>])| {
        let [Some(start), Some(end)] = ends else { return false };
        let (field, kind) = tried.field;
        code.get(*start as usize..*end as usize) == Some(tried.bytes)
            && relocations.get(&(start + field)) == Some(&kind)
    };
    Ok(tries.iter().zip(starts.windows(2)).map(is_same).collect())
}
