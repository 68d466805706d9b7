//! Where each old address goes.

use crate::edit::OffsetMap;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::layout::Layout;

/// The move of everything in a code object, from its image to a new layout.
pub(crate) struct Moves<'i, 'a> {
    pub image: &'i Image<'a>,
    pub layout: Layout,
    /// The section whose content changes, and how its places move.
    pub changed: usize,
    map: &'i OffsetMap,
}

impl<'i, 'a> Moves<'i, 'a> {
    /// The move that goes with a section whose content changes.
    ///
    /// # Errors
    /// As [`Layout::with_size`]; `BadInput` when the map is not one of this section.
    pub fn new(image: &'i Image<'a>, changed: usize, map: &'i OffsetMap) -> Result<Moves<'i, 'a>> {
        let section = image.sections.get(changed).filter(|section| section.has_bytes());
        let section = section.ok_or_else(|| Error::input(format!("there is no section {changed} to change")))?;
        if section.size() != map.old_len() {
            return Err(Error::input(format!(
                "the edit is of {:#x} bytes, section {} has {:#x}",
                map.old_len(),
                section.name,
                section.size()
            )));
        }
        let layout = Layout::with_size(image, changed, map.new_len())?;
        Ok(Moves { image, layout, changed, map })
    }

    /// Where the place `offset` bytes into a section goes; an address.
    pub fn in_section(&self, section: usize, offset: u64) -> u64 {
        let offset = if section == self.changed { self.map.place(offset) } else { offset };
        self.layout.sections[section].address.wrapping_add(offset)
    }

    /// Where the place at an address goes; none for an address that is in no section.
    pub fn address(&self, old: u64) -> Option<u64> {
        let section = self.image.section_at(old)?;
        Some(self.in_section(section, old - self.image.sections[section].address()))
    }

    /// Where the byte at an address is now; none when it was replaced or in no section.
    pub fn byte(&self, old: u64) -> Option<u64> {
        let section = self.image.section_at(old)?;
        let offset = old - self.image.sections[section].address();
        let offset = if section == self.changed { self.map.kept(offset)? } else { offset };
        self.layout.sections[section].address.checked_add(offset)
    }

    /// Size of what began at `offset` of a section and had `size` bytes.
    pub fn size(&self, section: usize, offset: u64, size: u64) -> u64 {
        match offset.checked_add(size) {
            Some(end) if size != 0 && section == self.changed && end <= self.map.old_len() => {
                self.map.end(end).saturating_sub(self.map.place(offset))
            }
            _ => size,
        }
    }
}
