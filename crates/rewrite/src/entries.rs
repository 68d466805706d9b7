//! Where kernels may start, and the padding that puts them there.
//!
//! - The hardware takes the address of a kernel's first instruction in units of 256 bytes.
//! - A kernel whose arguments may be preloaded has a second entry, 256 bytes behind the first ("Preloaded Kernel
//!   Arguments", AMDGPUUsage): older firmware starts at the first, which loads them itself and goes on to the second.
//!
//! Assemblers fill up to such a place with `s_nop 0` (or `s_code_end`); this filler takes what an edit before it adds
//! or removes.

use crate::edit::{Edit, Labels, OffsetMap};
use crate::error::{Error, Result};
use crate::linked::Code;

/// Unit of kernel entries, and the distance of a second entry; bytes.
const ENTRY_ALIGN: u64 = 256;
const S_NOP_0: u32 = 0xbf80_0000;
/// `s_nop 0`, `s_code_end` of gfx10 and later, zeros.
const FILLERS: [u32; 3] = [S_NOP_0, 0xbf9f_0000, 0];

/// A place that has to be somewhere.
struct Anchor<'c> {
    kernel: &'c str,
    offset: u64,
    /// Earliest byte that may be filler.
    floor: u64,
    rule: Rule,
}

enum Rule {
    Aligned,
    /// 256 bytes behind the kernel's first entry.
    SecondEntry {
        first: u64,
    },
}

/// `edits` and those of the filler that they make necessary, in order.
///
/// # Errors
/// `NoRoom` when a second entry cannot stay where it has to be.
pub(crate) fn fit(code: &Code<'_>, edits: &[Edit]) -> Result<Vec<Edit>> {
    let mut fitted = edits.to_vec();
    for anchor in anchors(code) {
        // Alignment never needs a whole unit of filler; what is more than that was put there for another reason.
        let floor = match anchor.rule {
            Rule::Aligned => anchor.floor.max(anchor.offset.saturating_sub(ENTRY_ALIGN - 4)),
            Rule::SecondEntry { .. } => anchor.floor,
        };
        let filler = filler_start(code.bytes, floor, anchor.offset);
        if edits.iter().any(|edit| edit.old.start < anchor.offset && edit.old.end > filler) {
            continue; // Whoever edits the filler is responsible for it; `check` looks at the outcome.
        }
        let is_before = |edit: &&Edit| {
            edit.old.start < anchor.offset
                || (edit.old.start == anchor.offset && edit.old.is_empty() && edit.labels == Labels::Behind)
        };
        let added: u64 = fitted.iter().filter(is_before).map(|edit| edit.new.len() as u64).sum();
        let removed: u64 = fitted.iter().filter(is_before).map(|edit| edit.old.end - edit.old.start).sum();
        let at = code.address + filler + added - removed;
        let end = match anchor.rule {
            Rule::Aligned => at.next_multiple_of(ENTRY_ALIGN),
            Rule::SecondEntry { first } => code.address + new_place(&fitted, first) + ENTRY_ALIGN,
        };
        let size = end.checked_sub(at).ok_or_else(|| {
            Error::no_room(format!(
                "the prologue of kernel `{}` has {ENTRY_ALIGN} bytes up to its second entry, and {} of filler; the edit adds {} too many",
                anchor.kernel,
                anchor.offset - filler,
                at - end
            ))
        })?;
        if size == anchor.offset - filler {
            continue;
        }
        let word = filler_word(code.bytes, filler, anchor.offset);
        let new = word.to_le_bytes().into_iter().cycle().take(size as usize).collect();
        let labels = if filler == anchor.offset { Labels::Behind } else { Labels::Before };
        let behind = |edit: &Edit| edit.old.start > filler || (edit.old.start == filler && filler == anchor.offset);
        let index = fitted.iter().position(behind).unwrap_or(fitted.len());
        fitted.insert(index, Edit { old: filler..anchor.offset, new, labels });
    }
    Ok(fitted)
}

/// Makes sure that each kernel starts where it may.
pub(crate) fn check(code: &Code<'_>, map: &OffsetMap) -> Result<()> {
    for anchor in anchors(code) {
        let new = map.place(anchor.offset);
        match anchor.rule {
            Rule::Aligned if !(code.address + new).is_multiple_of(ENTRY_ALIGN) => {
                return Err(Error::no_room(format!(
                    "kernel `{}` would start at .text+{new:#x}, and a kernel has to start at a multiple of {ENTRY_ALIGN}; align it with .p2align 8",
                    anchor.kernel
                )));
            }
            Rule::SecondEntry { first } if new != map.place(first) + ENTRY_ALIGN => {
                return Err(Error::no_room(format!(
                    "the second entry of kernel `{}` would be {} bytes behind its first, and has to be {ENTRY_ALIGN}; take filler out of its prologue",
                    anchor.kernel,
                    new - map.place(first)
                )));
            }
            _ => {}
        }
    }
    Ok(())
}

/// In order of their offsets.
fn anchors<'c>(code: &'c Code<'_>) -> Vec<Anchor<'c>> {
    let mut anchors = Vec::new();
    let mut floor = 0;
    for entry in &code.entries {
        if (code.address + entry.offset).is_multiple_of(ENTRY_ALIGN) {
            anchors.push(Anchor { kernel: &entry.kernel, offset: entry.offset, floor, rule: Rule::Aligned });
        }
        floor = entry.offset;
        if entry.preloads && entry.offset + ENTRY_ALIGN <= code.bytes.len() as u64 {
            let offset = entry.offset + ENTRY_ALIGN;
            let rule = Rule::SecondEntry { first: entry.offset };
            anchors.push(Anchor { kernel: &entry.kernel, offset, floor, rule });
            floor = offset;
        }
    }
    anchors
}

fn new_place(edits: &[Edit], old: u64) -> u64 {
    let is_before = |edit: &&Edit| {
        edit.old.start < old || (edit.old.start == old && edit.old.is_empty() && edit.labels == Labels::Behind)
    };
    edits
        .iter()
        .filter(is_before)
        .fold(old, |at, edit| at + edit.new.len() as u64 - (edit.old.end.min(old) - edit.old.start))
}

fn word_at(code: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_le_bytes(*code.get(at as usize..)?.first_chunk()?))
}

/// Where the filler before `end` starts, not before `floor`.
fn filler_start(code: &[u8], floor: u64, end: u64) -> u64 {
    let mut start = end;
    while start >= floor + 4 && word_at(code, start - 4).is_some_and(|w| FILLERS.contains(&w)) {
        start -= 4;
    }
    start
}

/// What to fill with: what is there already.
fn filler_word(code: &[u8], start: u64, end: u64) -> u32 {
    if start < end { word_at(code, start).unwrap_or(S_NOP_0) } else { S_NOP_0 }
}
