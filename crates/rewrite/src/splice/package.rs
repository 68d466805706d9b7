//! Offload packages; their layout is described where they are read, in `codeobj`.

use super::{next_content, number, set_number};
use crate::error::{Error, Result};
use codeobj::container::{self, Kind};
use std::ops::Range;

const ENTRY_SIZE: usize = 40;
/// LLVM aligns images and packages to 8 bytes.
const ALIGN: usize = 8;

/// Starts of the packages in a region.
pub(super) fn starts(region: &[u8]) -> Result<Vec<usize>> {
    let mut starts = Vec::new();
    let mut at = 0;
    while let Some(rest) = region.get(at..).filter(|rest| !rest.is_empty()) {
        if container::sniff(rest) != Some(Kind::OffloadPackage) {
            at += next_content(rest);
            continue;
        }
        starts.push(at);
        at += number(rest, 8, 8)?.clamp(1, rest.len());
    }
    Ok(starts)
}

/// The package that `slot` starts with, its image at `range` exchanged.
pub(super) fn put(slot: &[u8], range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
    let size = number(slot, 8, 8)?;
    let package = slot.get(..size).ok_or_else(|| Error::input("an offload package is cut short"))?;
    let table = number(package, 16, 8)?;
    let count = if number(package, 4, 4)? == 1 { 1 } else { number(package, 24, 8)? };
    let mut images = Vec::new();
    for index in 0..count {
        let at = index.checked_mul(ENTRY_SIZE).and_then(|offset| offset.checked_add(table));
        let at = at.ok_or_else(|| Error::input("an offload package is damaged"))?;
        images.push((at, number(package, at + 24, 8)?, number(package, at + 32, 8)?));
    }
    let is_around = |(_, offset, size): &&(usize, usize, usize)| {
        *offset <= range.start && range.end <= offset.saturating_add(*size)
    };
    let (at, offset, old_size) =
        *images.iter().find(is_around).ok_or_else(|| Error::input("the member is in no image of its package"))?;
    let end = offset + old_size;
    let tables_behind = images.iter().any(|(entry, ..)| *entry >= end)
        || images
            .iter()
            .map(|(entry, ..)| number(package, entry + 8, 8))
            .any(|strings| strings.is_ok_and(|strings| strings >= end));
    if tables_behind {
        return Err(Error::unsupported("the tables of the offload package are behind its images"));
    }
    let content = super::put(&package[offset..end], range.start - offset..range.end - offset, new)?;
    let rest = end.next_multiple_of(ALIGN).min(package.len());
    let mut written = package[..offset].to_vec();
    written.extend(&content);
    written.resize(written.len().next_multiple_of(ALIGN), 0);
    let moved = written.len();
    written.extend(&package[rest..]);
    set_number(&mut written, at + 32, 8, content.len())?;
    for (entry, later, _) in images.iter().filter(|(_, later, size)| *later >= end && *size != 0) {
        let later = later
            .checked_sub(rest)
            .ok_or_else(|| Error::unsupported("the images of the offload package are not aligned"))?;
        set_number(&mut written, entry + 24, 8, later + moved)?;
    }
    let size = written.len();
    set_number(&mut written, 8, 8, size)?;
    Ok(written)
}
