//! The relocations of an object that is not linked stay where they are: the instructions that they apply to have to stay
//! too, and so has everything in the code that they point to, but for entries.

use std::collections::HashSet;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationTarget, SymbolIndex};

use crate::assemble::Section;
use crate::code::Code;
use crate::error::{Error, Message, Result};
use crate::kept::Kept;
use crate::object::{CodeSection, Object};
use crate::tables::Tables;

/// Something that a relocation needs where it is.
enum Place {
    /// The instruction that it changes.
    Applies,
    /// What it points to; some of the code may not move.
    PointsTo,
}

/// Compares the old and the new code of a section.
///
/// # Errors
/// Each relocated instruction that is not where it was, with the relocation's offset and symbol.
pub(super) fn check(object: &Object<'_>, section: &CodeSection, codes: [&Code<'_>; 2], new: &Section) -> Result<()> {
    let damaged = |error: object::read::Error| Error::input(format!("damaged ELF file: {error}"));
    let elf = ElfFile64::<LittleEndian>::parse(object.bytes).map_err(damaged)?;
    let kept = Kept::between(codes[0], codes[1]);
    let starts: Vec<(u32, u32)> = codes[0].instructions().map(|(at, _, i)| (at, at + u32::from(i.len))).collect();
    let moved = kept.pairs().iter().find(|(old, new)| old != new);
    let mut messages = Vec::new();
    for from in elf.sections().filter(|from| is_loaded(from.flags())) {
        let is_code = from.index().0 == section.index;
        for (at, relocation) in from.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let name = name(&elf, index);
            let place = match &moved {
                _ if is_code && !stays(&starts, &kept, at) => Place::Applies,
                Some(_) if leads_inside(&elf, section, index, relocation.addend()) => Place::PointsTo,
                _ => continue,
            };
            let at_text = format!("the relocation at {}+{at:#x} for `{name}`", from.name().unwrap_or("?"));
            let (line, text) = match (place, moved) {
                (Place::Applies, _) => {
                    (new.line_at(at as u32), format!("{at_text} stays there, and its instruction does not"))
                }
                (Place::PointsTo, moved) => {
                    let line = moved.map_or(0, |(_, to)| new.line_at(*to));
                    (line, format!("{at_text} leads into the code, which moves from this line on"))
                }
            };
            let help = "keep every instruction at its place: put `s_nop 0` where you take one out; or link first";
            messages.push(Message::at(line, text).help(help));
        }
    }
    match messages.first().cloned() {
        Some(first) => Err(Error { messages, ..Error::from(first) }),
        None => Ok(()),
    }
}

/// The relocations that a text asks for have to be those that the reference has.
///
/// # Errors
/// Each that it does not have.
pub(super) fn refuse_others(object: &Object<'_>, section: &CodeSection, new: &Section) -> Result<()> {
    if new.relocations.is_empty() {
        return Ok(());
    }
    let tables = Tables::read(object.bytes)?;
    let own: HashSet<(u64, u32, String)> =
        tables.references_of(section.index).map(|own| (own.offset, own.kind, own.leads_to(&tables))).collect();
    let others = new
        .relocations
        .iter()
        .filter(|other| !own.contains(&(u64::from(other.offset), other.kind, other.leads_to.clone())));
    let messages: Vec<Message> = others
        .map(|other| {
            let text = format!(
                "this needs a relocation at {}+{:#x} for {}, which the reference does not have",
                section.name, other.offset, other.leads_to
            );
            let help = "`coax patch` keeps the relocations as they are; `coax asm` makes a new object";
            Message::at(new.line_at(other.offset), text).help(help)
        })
        .collect();
    match messages.first().cloned() {
        Some(first) => Err(Error { messages, ..Error::from(first) }),
        None => Ok(()),
    }
}

fn is_loaded(flags: object::SectionFlags) -> bool {
    match flags {
        object::SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_ALLOC),
        _ => true,
    }
}

/// Whether the instruction with the byte at `at` was kept at its place.
fn stays(starts: &[(u32, u32)], kept: &Kept, at: u64) -> bool {
    let index = starts.partition_point(|(start, _)| u64::from(*start) <= at).checked_sub(1);
    let found = index.map(|index| starts[index]).filter(|(_, end)| at < u64::from(*end));
    found.is_some_and(|(start, _)| kept.new_offset(start) == Some(start))
}

/// Whether a place inside the code of a kernel or function is meant: entries stay.
fn leads_inside(elf: &ElfFile64<'_, LittleEndian>, section: &CodeSection, index: SymbolIndex, addend: i64) -> bool {
    let Ok(symbol) = elf.symbol_by_index(index) else { return false };
    if symbol.section_index().is_none_or(|own| own.0 != section.index) {
        return false;
    }
    let place = match symbol.kind() {
        object::SymbolKind::Section => symbol.address().wrapping_add_signed(addend),
        _ => symbol.address(),
    };
    !section.spans.iter().any(|span| u64::from(span.range.start) == place)
}

fn name(elf: &ElfFile64<'_, LittleEndian>, index: SymbolIndex) -> String {
    let Ok(symbol) = elf.symbol_by_index(index) else { return format!("symbol {}", index.0) };
    let section = || elf.section_by_index(symbol.section_index()?).ok()?.name().ok().map(str::to_owned);
    match symbol.name() {
        Ok(name) if !name.is_empty() => name.to_owned(),
        _ => section().unwrap_or_else(|| format!("symbol {}", index.0)),
    }
}
