//! Host executables, libraries and objects: device code changes inside its section and nothing moves.
//!
//! `.hipFatBinSegment` holds the address of each bundle in `.hip_fatbin`, and the host's code may refer to whatever
//! follows the section, so a bundle keeps its place. It may grow into the padding up to the next one.

use super::Row;
use crate::error::{Error, Result};
use object::LittleEndian as LE;
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, SectionHeader};
use std::ops::Range;

/// The host file, the code object at `range` exchanged.
pub(super) fn put(host: &[u8], range: Range<usize>, new: &[u8]) -> Result<Vec<u8>> {
    let damaged = |error: object::read::Error| Error::input(format!("damaged host ELF file: {error}"));
    let header = FileHeader64::<LE>::parse(host).map_err(damaged)?;
    let sections = header.sections(LE, host).map_err(damaged)?;
    for section in sections.iter() {
        let Some((offset, size)) = section.file_range(LE) else { continue };
        let (start, end) = (offset as usize, offset.saturating_add(size) as usize);
        let region = host.get(start..end).filter(|_| start <= range.start && range.end <= end);
        let name = sections.section_name(LE, section).map_err(damaged)?;
        let Some(region) = region else { continue };
        let inside = range.start - start..range.end - start;
        let changed = match name {
            b".hip_fatbin" => Row::bundles(region).put_in_place(inside, new, "the bundle in .hip_fatbin")?,
            b".llvm.offloading" => {
                Row::packages(region)?.put_in_place(inside, new, "the package in .llvm.offloading")?
            }
            _ => continue,
        };
        let mut written = host.to_vec();
        written[start..end].copy_from_slice(&changed);
        return Ok(written);
    }
    Err(Error::input("the code object is in no section with device code"))
}
