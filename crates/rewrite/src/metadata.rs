//! Numbers in the metadata note, changed where they are.
//!
//! A number that needs as many bytes as before is written over. One that needs more (or fewer) moves the rest of the
//! note: into the note's padding where that suffices, else the note's section grows and everything behind it moves, as
//! it does for code.

use crate::change;
use crate::edit::{self, Edit, Labels};
use crate::error::{Error, ErrorKind, Result};
use crate::grow::Grown;
use crate::msgpack;
use codeobj::CodeObject;
use llvm::Decoder;
use std::ops::Range;

/// `n_type` of the note with MessagePack metadata; its owner is `AMDGPU`.
const NT_AMDGPU_METADATA: u32 = 32;
const SHT_NOTE: u32 = 7;

/// The metadata note of a code object.
struct Note {
    /// ELF index of its section.
    section: usize,
    /// Its content, by section offset; the padding behind it not included.
    content: Range<usize>,
}

/// Changes numbers of a kernel's metadata entry, `(key, value)`. A key that is not there is not added: all of them are
/// optional to the loader or were there before.
///
/// # Errors
/// `NotFound` without metadata or such a kernel; `BadInput` for a value that is no number; when the note has to grow,
/// as [`change::exchange`].
pub fn set_counts(decoder: &dyn Decoder, code_object: &[u8], kernel: &str, counts: &[(&str, u64)]) -> Result<Grown> {
    let object = CodeObject::parse(code_object)?;
    let (note, bytes) = find(&object, code_object)?;
    let content = &bytes[note.content.clone()];
    let entry = entry(content, kernel)?;
    let mut edits = Vec::new();
    for (key, value) in counts {
        let Some(range) = msgpack::value(content, entry, key) else { continue };
        if !matches!(content.get(range.start), Some(0x00..=0x7f | 0xcc..=0xd3 | 0xe0..=0xff)) {
            return Err(Error::input(format!("`{key}` of kernel `{kernel}` is no number in the metadata")));
        }
        let old = (note.content.start + range.start) as u64..(note.content.start + range.end) as u64;
        edits.push(Edit { old, new: msgpack::unsigned(*value), labels: Labels::Before });
    }
    edits.sort_by_key(|edit| edit.old.start);
    let change = |edit: &Edit| edit.new.len() as i64 - (edit.old.end - edit.old.start) as i64;
    let size = (note.content.len() as i64 + edits.iter().map(change).sum::<i64>()) as usize;
    let size_field = note.content.start - DESCRIPTOR_SIZE_BEFORE;
    let new_size = u32::try_from(size).map_err(|_| Error::no_room("the metadata note exceeds 4 GiB"))?;
    edits.insert(0, replace(size_field..size_field + 4, new_size.to_le_bytes().to_vec()));
    let padding = |content: usize| content.next_multiple_of(NOTE_ALIGN) - content;
    let end = note.content.end;
    edits.push(replace(end..(end + padding(note.content.len())).min(bytes.len()), vec![0; padding(size)]));
    let edit = edit::splice(note.section, bytes, &edits)?;
    if edit.new_code.len() == bytes.len() {
        let mut changed = code_object.to_vec();
        changed[object.sections[note.section].file_range.clone()].copy_from_slice(&edit.new_code);
        return Ok(Grown { code_object: changed, warnings: Vec::new() });
    }
    change::resize_data(decoder, code_object, &edit)
}

/// Notes are aligned to 4 bytes.
const NOTE_ALIGN: usize = 4;
/// From `n_descsz` to the content: itself, `n_type`, and the owner `AMDGPU\0` with its padding.
const DESCRIPTOR_SIZE_BEFORE: usize = 16;

fn replace(old: Range<usize>, new: Vec<u8>) -> Edit {
    Edit { old: old.start as u64..old.end as u64, new, labels: Labels::Before }
}

/// The first metadata note with kernels, and the bytes of its section.
fn find<'a>(object: &CodeObject, bytes: &'a [u8]) -> Result<(Note, &'a [u8])> {
    for (index, section) in object.sections.iter().enumerate().filter(|(_, s)| s.section_type == SHT_NOTE) {
        let bytes = &bytes[section.file_range.clone()];
        let mut at = 0;
        while let Some(header) = bytes.get(at..at + 12) {
            let word = |i: usize| u32::from_le_bytes([header[i], header[i + 1], header[i + 2], header[i + 3]]);
            let (owner_size, size, kind) = (word(0) as usize, word(4) as usize, word(8));
            let start = at + 12 + owner_size.next_multiple_of(NOTE_ALIGN);
            let Some(content) = bytes.get(start..start.saturating_add(size)) else { break };
            let is_metadata = kind == NT_AMDGPU_METADATA && bytes.get(at + 12..at + 20) == Some(b"AMDGPU\0\0");
            if is_metadata && msgpack::value(content, 0, "amdhsa.kernels").is_some() {
                return Ok((Note { section: index, content: start..start + size }, bytes));
            }
            at = start + size.next_multiple_of(NOTE_ALIGN);
        }
    }
    Err(Error::new(ErrorKind::NotFound, "the code object has no metadata note that lists kernels"))
}

/// Where the map of a kernel is in the note's content.
fn entry(content: &[u8], kernel: &str) -> Result<usize> {
    let list = msgpack::value(content, 0, "amdhsa.kernels");
    let entries = list.and_then(|list| msgpack::items(content, list.start));
    let entries = entries.ok_or_else(|| Error::input("`amdhsa.kernels` is damaged"))?;
    let name =
        |at: usize, key: &str| msgpack::value(content, at, key).and_then(|range| msgpack::text(content, range.start));
    let is_it = |range: &&Range<usize>| {
        name(range.start, ".name") == Some(kernel)
            || name(range.start, ".symbol").and_then(|s| s.strip_suffix(".kd")) == Some(kernel)
    };
    let found = entries.iter().find(is_it);
    found
        .map(|range| range.start)
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no kernel `{kernel}` in the metadata")))
}
