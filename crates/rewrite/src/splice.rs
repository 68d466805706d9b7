//! Writing a changed code object back into a copy of its container.
//!
//! [`codeobj::container`] says where the member is. From the outermost container inwards, each format finds its part
//! around that place, has the part rewritten, and repairs what it records about sizes and offsets: bundles and packages
//! in [`codeobj::container::write`], archives and host files here. The result is opened again: the member has to be the
//! new one, and every other member the old one.

mod archive;
mod host;

use crate::error::{Error, ErrorKind, Result};
use codeobj::CodeObject;
use codeobj::container::{self, Kind, STEP, write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The container with the member at `member_path` exchanged; paths are those of [`container::open`]. The file itself,
/// when it is one code object, has the empty path.
///
/// # Errors
/// `NotFound` for another path; `BadInput` when the new object is none, or is for another target; `NoRoom` where the
/// member has to stay in its place and the new one is larger, with what would have to move; `Unsupported`, by name, for
/// a form of container that is not written here.
pub fn replace(container: &[u8], member_path: &str, new_object: &[u8]) -> Result<Vec<u8>> {
    let old = container::select(container, member_path)?;
    let [old_member] = old.as_slice() else {
        let paths: Vec<String> = old.iter().map(|member| format!("`{}`", member.path)).collect();
        return Err(Error::input(format!("`{member_path}` names several code objects: {}", paths.join(", "))));
    };
    let (was, is) = (CodeObject::parse(&old_member.bytes)?, CodeObject::parse(new_object)?);
    if !was.target.same_as(&is.target) {
        let message = format!(
            "the new code object is for {}, `{}` is for {}",
            is.target.short(),
            old_member.path,
            was.target.short()
        );
        return Err(Error::input(message));
    }
    let new = replace_unchecked(container, &old_member.path, new_object)?;
    check(container, &new, &old_member.path, new_object)?;
    Ok(new)
}

/// Files beside a `.hsaco` of a Triton cache entry that describe the code object as it was: the `.amdgcn` text and the
/// `.json`.
pub fn stale_companions(file: &Path) -> Vec<PathBuf> {
    if file.extension().is_none_or(|extension| extension != "hsaco") {
        return Vec::new();
    }
    let companions = ["amdgcn", "json"].map(|extension| file.with_extension(extension));
    companions.into_iter().filter(|companion| companion.is_file()).collect()
}

/// `path` names exactly one code object.
fn replace_unchecked(container: &[u8], path: &str, new_object: &[u8]) -> Result<Vec<u8>> {
    let entries = container::open(container)?.entries;
    let inner_path = |entry: &container::Entry<'_>| {
        let rest = path.strip_prefix(&*entry.path)?;
        if entry.path.is_empty() { Some(rest.to_string()) } else { rest.strip_prefix(STEP).map(str::to_string) }
    };
    for entry in entries {
        let range = range_of(entry.bytes, container);
        if entry.kind == Kind::CodeObject && entry.path == path {
            return put(container, range, new_object);
        }
        if let Some(inner) = (entry.kind == Kind::CompressedBundle).then(|| inner_path(&entry)).flatten() {
            let bundle = write::decompress(entry.bytes)?;
            let new_bundle = replace_unchecked(&bundle, &inner, new_object)?;
            return put(container, range, &write::compress(entry.bytes, &new_bundle).map_err(no_room)?);
        }
    }
    Err(Error::new(ErrorKind::NotFound, format!("there is no `{path}`")))
}

/// Where `part`, which borrows from `whole`, is.
fn range_of(part: &[u8], whole: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// `bytes`, whose member at `range` is exchanged.
fn put(bytes: &[u8], range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
    if range == (0..bytes.len()) {
        return Ok(new.to_vec());
    }
    match container::sniff(bytes) {
        Some(Kind::Bundle | Kind::CompressedBundle) => Row::bundles(bytes).put(range, new),
        Some(Kind::OffloadPackage) => Row::packages(bytes)?.put(range, new),
        Some(Kind::Archive) => archive::put(bytes, range, new),
        Some(Kind::HostElf) => host::put(bytes, range, new),
        Some(Kind::CodeObject) | None => Err(Error::input("the member is in no container")),
    }
}

/// Bundles or packages back to back, with padding between them.
struct Row<'a> {
    bytes: &'a [u8],
    /// Where each starts, in order.
    starts: Vec<usize>,
}

impl<'a> Row<'a> {
    fn bundles(bytes: &'a [u8]) -> Row<'a> {
        let is_bundle = |kind| matches!(kind, Kind::Bundle | Kind::CompressedBundle);
        // Where a header does not say, the next bundle is looked for from its second byte on.
        let size = |rest: &[u8]| Ok(write::size(rest).ok().flatten().unwrap_or(1));
        Row { bytes, starts: starts(bytes, is_bundle, size).unwrap_or_default() }
    }

    fn packages(bytes: &'a [u8]) -> Result<Row<'a>> {
        let size = |rest: &[u8]| Ok(write::size(rest)?.unwrap_or(1));
        Ok(Row { bytes, starts: starts(bytes, |kind| kind == Kind::OffloadPackage, size)? })
    }

    /// The slot of the part that holds `range`: from its start to the next part's.
    fn slot(&self, range: &Range<usize>) -> Result<Range<usize>> {
        let next = self.starts.partition_point(|start| *start <= range.start);
        let start = next.checked_sub(1).map(|index| self.starts[index]);
        let start = start.ok_or_else(|| Error::input("the member is before the first bundle"))?;
        Ok(start..self.starts.get(next).copied().unwrap_or(self.bytes.len()))
    }

    /// The new content of the slot, without the padding at its end.
    fn part(&self, slot: &Range<usize>, range: &Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
        let part = &self.bytes[slot.clone()];
        let inside = range.start - slot.start..range.end - slot.start;
        match container::sniff(part) {
            Some(Kind::Bundle | Kind::OffloadPackage) => {
                let entry = write::entry_around(part, &inside)?;
                let inside = inside.start - entry.start..inside.end - entry.start;
                let content = put(&part[entry.clone()], inside, new)?;
                write::with_entry(part, &entry, &content).map_err(no_room)
            }
            // What follows a compressed bundle in its slot is padding.
            Some(Kind::CompressedBundle) if inside.start == 0 => Ok(new.to_vec()),
            _ => Err(Error::input("the member is in no bundle")),
        }
    }

    /// The row with what follows moved, each part as well aligned as before.
    fn put(&self, range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
        let slot = self.slot(&range)?;
        let mut row = self.bytes[..slot.start].to_vec();
        row.extend(self.part(&slot, &range, new)?);
        let later = self.starts.iter().skip_while(|start| **start < slot.end);
        let align = later.map(|start| 1 << start.trailing_zeros().min(PAGE_BITS)).min().unwrap_or(1);
        if slot.end < self.bytes.len() {
            row.resize(row.len().next_multiple_of(align), 0);
            row.extend(&self.bytes[slot.end..]);
        }
        Ok(row)
    }

    /// The row in the same place and of the same size.
    fn put_in_place(&self, range: Range<usize>, new: &[u8], what: &str) -> Result<Vec<u8>> {
        let slot = self.slot(&range)?;
        let part = self.part(&slot, &range, new)?;
        let room = slot.len();
        if part.len() > room {
            let follows = if slot.end < self.bytes.len() { "the next one" } else { "the end of the section" };
            return Err(Error::no_room(format!(
                "{what} would need {} bytes and has {room} up to {follows}: {} too many. Host code holds the addresses of what \
                 follows, so it cannot move; make the code smaller, compress the bundle, or link the host again",
                part.len(),
                part.len() - room
            )));
        }
        let mut row = self.bytes.to_vec();
        row[slot.clone()].fill(0);
        row[slot.start..slot.start + part.len()].copy_from_slice(&part);
        Ok(row)
    }
}

/// Bundles are aligned to pages at most.
const PAGE_BITS: u32 = 12;

/// Distance to the next byte behind the first that is no padding.
fn next_content(bytes: &[u8]) -> usize {
    let found = bytes.iter().skip(1).position(|byte| *byte != 0);
    found.map_or(bytes.len(), |at| at + 1)
}

/// Where the parts of a region start that `is_part` takes, each of the size that `size` gives.
fn starts(region: &[u8], is_part: impl Fn(Kind) -> bool, size: impl Fn(&[u8]) -> Result<usize>) -> Result<Vec<usize>> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(rest) = region.get(at..).filter(|rest| !rest.is_empty()) {
        if !container::sniff(rest).is_some_and(&is_part) {
            at += next_content(rest);
            continue;
        }
        starts.push(at);
        at += size(rest)?.clamp(1, rest.len());
    }
    Ok(starts)
}

/// A limit of a header is one of room.
fn no_room(error: codeobj::Error) -> Error {
    match error.kind {
        codeobj::ErrorKind::Limit => Error::no_room(error.message),
        _ => error.into(),
    }
}

/// Makes sure that only the member at `path` changed.
fn check(old: &[u8], new: &[u8], path: &str, object: &[u8]) -> Result<()> {
    let failed =
        |what: String| Error::new(ErrorKind::CheckFailed, format!("the rewritten container is damaged: {what}"));
    let (was, is) =
        (container::select(old, "")?, container::select(new, "").map_err(|error| failed(error.to_string()))?);
    if was.len() != is.len() {
        return Err(failed(format!("it holds {} code objects instead of {}", is.len(), was.len())));
    }
    for (was, is) in was.iter().zip(&is) {
        let wanted = if was.path == path { object } else { &was.bytes };
        if was.path != is.path || *is.bytes != *wanted {
            return Err(failed(format!("`{}` is not what it should be", was.path)));
        }
    }
    Ok(())
}
