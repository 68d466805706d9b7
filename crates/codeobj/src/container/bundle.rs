//! Clang offload bundles, plain and compressed, back to back.
//!
//! "Bundled Code Object File Layout" in clang's ClangOffloadBundler document; all numbers are little-endian u64:
//!
//! ```text
//! "__CLANG_OFFLOAD_BUNDLE__"  count  { offset  size  id length  id }…  padding, code objects at their offsets
//! ```
//!
//! Offsets count from the magic. The host entry is usually empty and shares its offset with the first device entry.

use super::{ccob, foreign};
use crate::error::{Error, Result};
use crate::target::TargetId;
use memchr::memmem;

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
    let mut header = Reader { bytes, at: MAGIC.len() };
    let count = header.number("the number of entries")?;
    let mut entries = Vec::new();
    let mut end = 0;
    for index in 0..count {
        let at = header.at as u64;
        let offset = header.number("an entry's offset")?;
        let size = header.number("an entry's size")?;
        let id_size = header.number("the size of an entry's ID")?;
        let id = header.take(id_size, "an entry's ID")?;
        let id = std::str::from_utf8(id).map_err(|_| Error::malformed(at, "the ID of a bundle entry is not UTF-8"))?;
        let range = offset.checked_add(size).filter(|end| *end <= bytes.len() as u64);
        let Some(entry_end) = range else {
            let message = format!(
                "bundle entry {index} (`{id}`) claims {size:#x} bytes at {offset:#x} of the bundle, which has {:#x}",
                bytes.len()
            );
            return Err(Error::malformed(at, message));
        };
        entries.push(BundleEntry { id, bytes: &bytes[offset as usize..entry_end as usize] });
        end = end.max(entry_end as usize);
    }
    let end = end.max(header.at);
    if let Some(inside) = entries.iter().find(|e| !e.bytes.is_empty() && start_of(e.bytes, bytes) < header.at) {
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
    if let crate::Place::File(offset) = &mut error.place {
        *offset += by as u64;
    }
    error
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, size: u64, what: &str) -> Result<&'a [u8]> {
        let end = (self.at as u64).checked_add(size).filter(|end| *end <= self.bytes.len() as u64);
        let end =
            end.ok_or_else(|| Error::malformed(self.at as u64, format!("the bundle ends inside {what}")))? as usize;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, what: &str) -> Result<u64> {
        let bytes = self.take(8, what)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}
