//! Where `ld.lld` puts sections and segments, replayed for sections of another size.
//!
//! The rules (lld's `Writer.cpp` and `LinkerScript.cpp` describe them; measured with `ld.lld` 22 and held by tests):
//!
//! - A section follows the one before it, aligned. One that begins a segment skips a page and keeps the place within
//!   it (`align(dot, page) + dot % page`), so that the file needs no padding; its file offset is the next that is
//!   congruent to its address.
//! - `.relro_padding` fills its page, and what follows is placed as if it were empty. `PT_GNU_RELRO` ends at a page.
//! - Sections that are not loaded follow in the file, aligned. The section headers come last, aligned to 8.
//!
//! Nothing is guessed: when the rules do not give the file's own layout for its own sizes, it is refused.

use crate::error::{Error, Result};
use crate::image::{Image, LE, Section, Segment};
use object::elf;

/// `ld.lld`'s maximum and common page size for AMD GPUs.
const PAGE: u64 = 0x1000;
/// The largest alignment that is replayed: the largest page size of any ELF target.
const MAX_ALIGN: u64 = 0x1_0000;
/// What the linker adds behind the sections that become read-only after relocation.
const RELRO_PADDING: &str = ".relro_padding";

/// Where each section and segment is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// At the ELF index.
    pub sections: Vec<Place>,
    /// As in the program headers.
    pub segments: Vec<Extent>,
    /// `e_shoff`
    pub section_headers: u64,
}

/// Where a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub address: u64,
    pub offset: u64,
    pub size: u64,
}

/// What a segment covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub address: u64,
    pub offset: u64,
    pub file_size: u64,
    pub memory_size: u64,
}

impl Layout {
    /// As the headers say.
    pub fn recorded(image: &Image<'_>) -> Layout {
        let place =
            |s: &Section<'_>| Place { address: s.address(), offset: s.header.sh_offset.get(LE), size: s.size() };
        Layout {
            sections: image.sections.iter().map(place).collect(),
            segments: image.segments.iter().map(extent).collect(),
            section_headers: image.header.e_shoff.get(LE),
        }
    }

    /// The layout with section `resized` of `size` bytes.
    ///
    /// # Errors
    /// `Unsupported`, by name, when the file was not laid out by these rules.
    pub fn with_size(image: &Image<'_>, resized: usize, size: u64) -> Result<Layout> {
        check_kinds(image)?;
        let recorded = Layout::recorded(image);
        let own = replay(image, resized, recorded.sections[resized].size)?;
        own.check_against(&recorded, image)?;
        replay(image, resized, size)
    }

    fn check_against(&self, recorded: &Layout, image: &Image<'_>) -> Result<()> {
        let sections = self.sections.iter().zip(&recorded.sections).zip(&image.sections);
        if let Some(((ours, theirs), section)) = sections.clone().find(|((ours, theirs), _)| ours != theirs) {
            return Err(Error::unsupported(format!(
                "section {} is at address {:#x}, file offset {:#x}, where ld.lld would put it at {:#x}, {:#x}; what is \
                 behind the code of such a file cannot be moved",
                section.name, theirs.address, theirs.offset, ours.address, ours.offset
            )));
        }
        if let Some(index) = (0..self.segments.len()).find(|i| self.segments[*i] != recorded.segments[*i]) {
            return Err(Error::unsupported(format!(
                "program header {index} covers {:#x} bytes at address {:#x}, where ld.lld would have it cover {:#x} at {:#x}",
                recorded.segments[index].memory_size,
                recorded.segments[index].address,
                self.segments[index].memory_size,
                self.segments[index].address,
            )));
        }
        if self.section_headers != recorded.section_headers {
            return Err(Error::unsupported("the section headers are not where ld.lld puts them"));
        }
        Ok(())
    }
}

/// Refuses sections and segments whose rules are not among those above.
fn check_kinds(image: &Image<'_>) -> Result<()> {
    let known = [elf::PT_PHDR, elf::PT_LOAD, elf::PT_DYNAMIC, elf::PT_GNU_RELRO, elf::PT_GNU_STACK, elf::PT_NOTE];
    if let Some(other) = image.segments.iter().map(|s| s.p_type.get(LE)).find(|kind| !known.contains(kind)) {
        return Err(Error::unsupported(format!("a program header of type {:#x} cannot be moved", other.0)));
    }
    let thread_local = |s: &&Section<'_>| s.is_allocated() && s.header.sh_flags.get(LE).contains(elf::SHF_TLS);
    match image.sections.iter().find(thread_local) {
        Some(section) => Err(Error::unsupported(format!("thread-local section {} cannot be moved", section.name))),
        None => Ok(()),
    }
}

fn replay(image: &Image<'_>, resized: usize, size: u64) -> Result<Layout> {
    let too_large = || Error::unsupported("the new layout does not fit into 64 bits");
    let mut layout = Layout::recorded(image);
    layout.sections[resized].size = size;
    let first = layout.sections[resized];
    let mut dot = first.address.checked_add(size).ok_or_else(too_large)?;
    let mut file_end = first.offset.checked_add(size).ok_or_else(too_large)?;
    // The segment that is being filled: addresses and offsets in it run in parallel.
    let mut load = first;
    for (index, section) in image.sections.iter().enumerate().skip(resized + 1) {
        let place = &mut layout.sections[index];
        let align = section.header.sh_addralign.get(LE).max(1);
        if !align.is_power_of_two() || align > MAX_ALIGN || dot > 1 << 62 || file_end > 1 << 62 {
            return Err(too_large());
        }
        if section.is_allocated() {
            let begins = begins_load(image, section);
            if begins.is_some() {
                dot = dot.next_multiple_of(PAGE) + dot % PAGE;
            }
            place.address = dot.next_multiple_of(align);
            if section.name == RELRO_PADDING {
                place.size = dot.next_multiple_of(PAGE) - dot;
            }
            place.offset = match begins {
                Some(segment_align) => next_congruent(file_end, place.address, segment_align),
                None if section.has_bytes() => load.offset + (place.address - load.address),
                None => file_end,
            };
            if begins.is_some() {
                load = *place;
            }
            // The padding has no content, and what follows it is placed as if it were not there.
            let size = if section.name == RELRO_PADDING { 0 } else { place.size };
            dot = place.address.checked_add(size).ok_or_else(too_large)?;
        } else {
            place.offset = file_end.next_multiple_of(align);
        }
        if section.has_bytes() {
            file_end = place.offset.checked_add(place.size).ok_or_else(too_large)?;
        }
    }
    layout.section_headers = file_end.next_multiple_of(8);
    for (extent, segment) in layout.segments.iter_mut().zip(&image.segments) {
        *extent = cover(image, &layout.sections, segment)?;
    }
    Ok(layout)
}

/// Alignment of the segment that this section is the first of, if any.
fn begins_load(image: &Image<'_>, section: &Section<'_>) -> Option<u64> {
    let loads = image.segments.iter().filter(|segment| segment.p_type.get(LE) == elf::PT_LOAD);
    let starts = loads.filter(|segment| segment.p_vaddr.get(LE) == section.address());
    starts.map(|segment| segment.p_align.get(LE).clamp(1, MAX_ALIGN).next_power_of_two()).next()
}

/// The smallest offset from `from` on that is congruent to `address`.
fn next_congruent(from: u64, address: u64, modulus: u64) -> u64 {
    from + (address.wrapping_sub(from) & (modulus - 1))
}

/// What a segment covers now: the sections that it covered before.
fn cover(image: &Image<'_>, places: &[Place], segment: &Segment) -> Result<Extent> {
    let old = extent(segment);
    if [elf::PT_PHDR, elf::PT_GNU_STACK].contains(&segment.p_type.get(LE)) {
        return Ok(old);
    }
    let end = old.address.checked_add(old.memory_size);
    let end = end.ok_or_else(|| Error::input("a program header runs past the last address"))?;
    let is_inside = |s: &Section<'_>| {
        let range = s.addresses();
        s.is_allocated() && old.address <= range.start && range.end <= end && range.start < end
    };
    let inside: Vec<usize> = (0..places.len()).filter(|index| is_inside(&image.sections[*index])).collect();
    let (Some(first), Some(last)) = (inside.first(), inside.last()) else { return Ok(old) };
    let with_bytes = inside.iter().rev().find(|index| image.sections[**index].has_bytes());
    let mut new = old;
    // The first segment begins with the ELF header, which stays.
    if image.sections[*first].address() == old.address {
        (new.address, new.offset) = (places[*first].address, places[*first].offset);
    }
    let size = |from: u64, to: u64| {
        to.checked_sub(from)
            .ok_or_else(|| Error::unsupported("the sections of a segment are not in the order of their addresses"))
    };
    new.file_size = with_bytes.map_or(Ok(0), |index| size(new.offset, places[*index].offset + places[*index].size))?;
    new.memory_size = size(new.address, places[*last].address + places[*last].size)?;
    if segment.p_type.get(LE) == elf::PT_GNU_RELRO {
        let end = new.offset.saturating_add(new.memory_size);
        new.memory_size = end.checked_next_multiple_of(PAGE).unwrap_or(end) - new.offset;
    }
    Ok(new)
}

fn extent(segment: &Segment) -> Extent {
    Extent {
        address: segment.p_vaddr.get(LE),
        offset: segment.p_offset.get(LE),
        file_size: segment.p_filesz.get(LE),
        memory_size: segment.p_memsz.get(LE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_offsets_are_congruent_to_addresses() {
        assert_eq!(next_congruent(0x14bc, 0x34c0, 0x1000), 0x14c0);
        assert_eq!(next_congruent(0x14c0, 0x34c0, 0x1000), 0x14c0);
        assert_eq!(next_congruent(0x2000, 0x34c0, 0x1000), 0x24c0);
    }
}
