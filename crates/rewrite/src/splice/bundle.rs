//! Plain clang offload bundles; their layout is described where they are read, in `codeobj`.

use super::{PAGE_BITS, ccob, next_content, number, set_number};
use crate::error::{Error, Result};
use codeobj::container::{self, Kind};
use std::ops::Range;

const MAGIC: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";

/// One row of the header: where it is, and what it says.
struct Row {
    at: usize,
    offset: usize,
    size: usize,
}

/// Starts of the bundles in a region, plain and compressed.
pub(super) fn starts(region: &[u8]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(rest) = region.get(at..).filter(|rest| !rest.is_empty()) {
        let size = match container::sniff(rest) {
            Some(Kind::Bundle) => rows(rest)
                .ok()
                .map(|(rows, end)| rows.iter().fold(end, |end, row| end.max(row.offset.saturating_add(row.size)))),
            Some(Kind::CompressedBundle) => ccob::stored_size(rest),
            _ => {
                at += next_content(rest);
                continue;
            }
        };
        starts.push(at);
        at += size.unwrap_or(1).clamp(1, rest.len());
    }
    starts
}

/// The rows of the header, and where it ends.
fn rows(bundle: &[u8]) -> Result<(Vec<Row>, usize)> {
    let count = number(bundle, MAGIC.len(), 8)?;
    let mut at = MAGIC.len() + 8;
    let mut rows = Vec::new();
    for _ in 0..count {
        rows.push(Row { at, offset: number(bundle, at, 8)?, size: number(bundle, at + 8, 8)? });
        let id_size = number(bundle, at + 16, 8)?;
        let id = at.checked_add(24).and_then(|start| start.checked_add(id_size));
        at = id.filter(|end| *end <= bundle.len()).ok_or_else(|| Error::input("a bundle ends inside its header"))?;
    }
    Ok((rows, at))
}

/// The bundle that `slot` starts with, its entry at `range` exchanged. Later entries move by whole units of the
/// bundle's alignment.
pub(super) fn put(slot: &[u8], range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
    let (rows, header_end) = rows(slot)?;
    let is_around =
        |row: &&Row| row.size != 0 && row.offset <= range.start && range.end <= row.offset.saturating_add(row.size);
    let mut around = rows.iter().filter(is_around);
    let entry = around.next().ok_or_else(|| Error::input("the member is in no entry of its bundle"))?;
    if around.next().is_some() {
        return Err(Error::unsupported("two entries of the bundle share this code object"));
    }
    let end = entry.offset + entry.size;
    let overlaps = |row: &Row| {
        row.size != 0 && row.at != entry.at && row.offset < end && entry.offset < row.offset.saturating_add(row.size)
    };
    if rows.iter().any(overlaps) {
        return Err(Error::unsupported("entries of the bundle overlap"));
    }
    let inside = range.start - entry.offset..range.end - entry.offset;
    let content = super::put(&slot[entry.offset..end], inside, new)?;
    let with_content = rows.iter().filter(|row| row.size != 0);
    let align = 1_usize << with_content.map(|row| row.offset.trailing_zeros().min(PAGE_BITS)).min().unwrap_or(0);
    let behind = |size: usize| (entry.offset + size).next_multiple_of(align);
    let later = rows.iter().filter(|row| row.offset >= end).map(|row| row.offset).min();
    let mut bundle = slot[..entry.offset].to_vec();
    bundle.extend(&content);
    if let Some(later) = later {
        // What was between the entries beyond alignment stays between them.
        let gap = later.saturating_sub(behind(entry.size));
        bundle.resize(behind(content.len()) + gap, 0);
        let last = rows.iter().map(|row| row.offset.saturating_add(row.size)).max().unwrap_or(end);
        bundle.extend(slot.get(later..last).ok_or_else(|| Error::input("a bundle entry runs past the bundle"))?);
    }
    set_number(&mut bundle, entry.at + 8, 8, content.len())?;
    for row in rows.iter().filter(|row| row.offset >= end) {
        set_number(&mut bundle, row.at, 8, row.offset + behind(content.len()) - behind(entry.size))?;
    }
    debug_assert!(header_end <= entry.offset);
    Ok(bundle)
}
