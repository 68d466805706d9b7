//! Clang offload bundles, plain and compressed, back to back.
//!
//! "Bundled Code Object File Layout" in clang's ClangOffloadBundler document; all numbers are little-endian u64:
//!
//! ```text
//! "__CLANG_OFFLOAD_BUNDLE__"  count  { offset  size  id length  id }…  padding, code objects at their offsets
//! ```
//!
//! Offsets count from the magic. The host entry is usually empty and shares its offset with the first device entry.

use super::field::Field;
use super::{ccob, foreign};
use crate::error::{Error, Place, Result};
use crate::target::TargetId;
use memchr::memmem;
use std::ops::Range;

/// First bytes of a plain bundle.
pub(super) const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// One bundle of a row.
pub(super) enum Part<'a> {
    Plain(Vec<BundleEntry<'a>>),
    Compressed(&'a [u8]),
}

/// One entry of a plain bundle.
pub(super) struct BundleEntry<'a> {
    /// `hipv4-amdgcn-amd-amdhsa--gfx942`
    pub id: &'a str,
    pub bytes: &'a [u8],
}

impl BundleEntry<'_> {
    pub fn is_host(&self) -> bool {
        self.id.starts_with("host-") || self.id == "host"
    }

    /// Whether the ID says that this is for something known that is no AMD GPU.
    pub fn is_known_foreign(&self) -> bool {
        self.is_host() || self.id.split_once('-').is_some_and(|(_offload_kind, triple)| foreign::is_known(triple))
    }

    /// The target after the offload kind; none when it is not for an AMD GPU.
    pub fn target(&self) -> Result<Option<TargetId>> {
        match self.id.split_once('-') {
            Some((_offload_kind, target)) if target.starts_with("amdgcn") || target.starts_with("amdgpu") => {
                TargetId::parse(target).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Splits a region into its bundles; the strings tell of bytes that are neither bundle nor zero padding.
pub(super) fn split(region: &[u8]) -> Result<(Vec<Part<'_>>, Vec<String>)> {
    let mut parts = Vec::new();
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(padding) = region[at..].iter().position(|b| *b != 0) {
        at += padding;
        let rest = &region[at..];
        let size = if rest.starts_with(MAGIC) {
            let (entries, size) = plain(rest).map_err(|error| moved(error, at))?;
            parts.push(Part::Plain(entries));
            size
        } else if rest.starts_with(ccob::MAGIC) {
            let size =
                ccob::stored_size(rest).map_err(|error| moved(error, at))?.unwrap_or_else(|| next_magic(rest, 1));
            parts.push(Part::Compressed(&rest[..size]));
            size
        } else {
            let size = next_magic(rest, 0);
            problems.push(format!("{size} bytes at offset {at:#x} are neither an offload bundle nor zero padding"));
            size
        };
        at += size;
    }
    Ok((parts, problems))
}

/// Entries of the bundle that `bytes` start with, and its size up to the last of them.
fn plain(bytes: &[u8]) -> Result<(Vec<BundleEntry<'_>>, usize)> {
    let (rows, header_end) = rows(bytes)?;
    let mut entries = Vec::new();
    let mut end = 0;
    for (index, Row { at, offset, size, id }) in rows.into_iter().enumerate() {
        let id = std::str::from_utf8(id)
            .map_err(|_| Error::malformed(at as u64, "the ID of a bundle entry is not UTF-8"))?;
        let range = offset.checked_add(size).filter(|end| *end <= bytes.len() as u64);
        let Some(entry_end) = range else {
            let message = format!(
                "bundle entry {index} (`{id}`) claims {size:#x} bytes at {offset:#x} of the bundle, which has {:#x}",
                bytes.len()
            );
            return Err(Error::malformed(at as u64, message));
        };
        entries.push(BundleEntry { id, bytes: &bytes[offset as usize..entry_end as usize] });
        end = end.max(entry_end as usize);
    }
    let end = end.max(header_end);
    if let Some(inside) = entries.iter().find(|e| !e.bytes.is_empty() && start_of(e.bytes, bytes) < header_end) {
        let message = format!("bundle entry `{}` overlaps the bundle's header", inside.id);
        return Err(Error::malformed(start_of(inside.bytes, bytes) as u64, message));
    }
    Ok((entries, end))
}

fn start_of(part: &[u8], whole: &[u8]) -> usize {
    part.as_ptr() as usize - whole.as_ptr() as usize
}

/// Distance to the next bundle of either kind from `from` on, or to the end.
fn next_magic(bytes: &[u8], from: usize) -> usize {
    let find = |magic| memmem::find(&bytes[from..], magic).map(|at| at + from);
    [find(MAGIC), find(ccob::MAGIC)].into_iter().flatten().min().unwrap_or(bytes.len())
}

/// The error, with its offset counted from `by` bytes earlier.
fn moved(mut error: Error, by: usize) -> Error {
    if let Place::File(offset) = &mut error.place {
        *offset += by as u64;
    }
    error
}

const COUNT: Field = Field::new(MAGIC.len(), 8);
const ROWS: usize = COUNT.at + COUNT.size;
/// The numbers of a row; its ID follows.
const OFFSET: Field = Field::new(0, 8);
const SIZE: Field = Field::new(8, 8);
const ID_SIZE: Field = Field::new(16, 8);
const ID: usize = 24;

/// One row of the header: where it is, and what it says.
struct Row<'a> {
    at: usize,
    offset: u64,
    size: u64,
    id: &'a [u8],
}

impl Row<'_> {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.size)
    }
}

/// The rows of the header, and where it ends.
fn rows(bytes: &[u8]) -> Result<(Vec<Row<'_>>, usize)> {
    let cut = |at: usize, what: &str| Error::malformed(at as u64, format!("the bundle ends inside {what}"));
    let count = COUNT.get(bytes, 0).ok_or_else(|| cut(COUNT.at, "the number of entries"))?;
    let (mut rows, mut at) = (Vec::new(), ROWS);
    for _ in 0..count {
        let number = |field: Field, what| field.get(bytes, at).ok_or_else(|| cut(at + field.at, what));
        let offset = number(OFFSET, "an entry's offset")?;
        let size = number(SIZE, "an entry's size")?;
        let id_size = number(ID_SIZE, "the size of an entry's ID")?;
        let start = at + ID;
        let end = usize::try_from(id_size).ok().and_then(|size| start.checked_add(size));
        let id = end.and_then(|end| bytes.get(start..end)).ok_or_else(|| cut(start, "an entry's ID"))?;
        rows.push(Row { at, offset, size, id });
        at = start + id.len();
    }
    Ok((rows, at))
}

/// Bytes of the plain bundle that `bytes` start with, up to its last entry.
pub(super) fn size(bytes: &[u8]) -> Result<usize> {
    let (rows, header_end) = rows(bytes)?;
    Ok(rows.iter().fold(header_end, |end, row| end.max(row.end() as usize)))
}

/// Bundles are aligned to pages at most.
const PAGE_BITS: u32 = 12;

/// The row around `range`, which no other row may share.
fn around<'r, 'a>(rows: &'r [Row<'a>], range: &Range<usize>) -> Result<&'r Row<'a>> {
    let is_around = |row: &&Row<'_>| row.size != 0 && row.offset <= range.start as u64 && range.end as u64 <= row.end();
    let mut around = rows.iter().filter(is_around);
    let missing = || Error::malformed(range.start as u64, "the member is in no entry of its bundle");
    let entry = around.next().ok_or_else(missing)?;
    if around.next().is_some() {
        return Err(Error::unsupported(Place::Whole, "two entries of the bundle share this code object"));
    }
    let overlaps =
        |row: &Row<'_>| row.size != 0 && row.at != entry.at && row.offset < entry.end() && entry.offset < row.end();
    if rows.iter().any(overlaps) {
        return Err(Error::unsupported(Place::Whole, "entries of the bundle overlap"));
    }
    Ok(entry)
}

/// Where the content of the entry around `range` is.
pub(super) fn entry_around(bundle: &[u8], range: &Range<usize>) -> Result<Range<usize>> {
    let (rows, _) = rows(bundle)?;
    let row = around(&rows, range)?;
    let entry = row.offset as usize..row.end() as usize;
    let damaged = || Error::malformed(row.at as u64, "a bundle entry runs past the bundle");
    bundle.get(entry.clone()).map(|_| entry).ok_or_else(damaged)
}

/// The bundle with `content` in the entry that is at `entry`. Later entries move by whole units of the bundle's
/// alignment.
pub(super) fn with_entry(bundle: &[u8], entry: &Range<usize>, content: &[u8]) -> Result<Vec<u8>> {
    let (rows, _) = rows(bundle)?;
    let row = around(&rows, entry)?;
    let with_content = rows.iter().filter(|row| row.size != 0);
    let align = 1_u64 << with_content.map(|row| row.offset.trailing_zeros().min(PAGE_BITS)).min().unwrap_or(0);
    let behind = |size: u64| (row.offset + size).next_multiple_of(align);
    let (old_size, new_size) = (row.size, content.len() as u64);
    let is_later = |other: &&Row<'_>| other.offset >= row.end();
    let damaged = || Error::malformed(row.at as u64, "a bundle entry runs past the bundle");
    let mut written = bundle.get(..entry.start).ok_or_else(damaged)?.to_vec();
    written.extend(content);
    if let Some(later) = rows.iter().filter(is_later).map(|row| row.offset).min() {
        // What was between the entries beyond alignment stays between them.
        let gap = later.saturating_sub(behind(old_size));
        let last = rows.iter().map(Row::end).max().unwrap_or(row.end());
        let rest = bundle.get(later as usize..last as usize).ok_or_else(damaged)?;
        written.resize((behind(new_size) + gap) as usize, 0);
        written.extend(rest);
    }
    SIZE.set(&mut written, row.at, new_size)?;
    for later in rows.iter().filter(is_later) {
        OFFSET.set(&mut written, later.at, later.offset + behind(new_size) - behind(old_size))?;
    }
    Ok(written)
}
