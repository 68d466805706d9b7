//! Makes a code object with more (or less) code, and moves everything behind it.
//!
//! The loadable image is the one that `ld.lld` makes when it links the changed code: see `layout` for the
//! placement and `addresses` for what is rewritten. Branches and PC-relative addresses inside the code are
//! the business of `resolve`.

use crate::addresses;
use crate::debug_sections;
use crate::edit::CodeEdit;
use crate::error::{Error, ErrorKind, Result};
use crate::image::{Image, LE, Section};
use crate::moves::Moves;
use codeobj::{CodeObject, descriptor};
use object::elf;
use std::borrow::Cow;

/// A code object whose code was exchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grown {
    /// The new file.
    pub code_object: Vec<u8>,
    /// What was left out, or kept without being understood; sentences for the user.
    pub warnings: Vec<String>,
}

/// Sections that are not loaded and hold no address.
const WITHOUT_ADDRESSES: [&str; 7] =
    [".comment", ".shstrtab", ".strtab", ".AMDGPU.csdata", ".AMDGPU.gpr_maximums", ".AMDGPU.disasm", ".note.GNU-stack"];

/// Exchanges the code of a section for `edit.new_code` and moves what follows.
///
/// # Errors
/// `Unsupported`, by name, for everything that might hold an address and is not understood: relocatable objects, other
/// linkers' layouts, relocations of unknown type, unknown dynamic tags and program headers, a second section with code.
/// `BadInput` for damage and for an edit that is not of this code object.
pub fn grow(code_object: &[u8], edit: &CodeEdit) -> Result<Grown> {
    let image = Image::parse(code_object)?;
    let is_code = |s: &&Section<'_>| s.is_executable() && s.size() != 0;
    if !image.sections.get(edit.section).as_ref().is_some_and(is_code) {
        return Err(Error::input(format!("section {} holds no code", edit.section)));
    }
    if edit.new_code.len() as u64 != edit.map.new_len() {
        return Err(Error::input("the edit's map is not one of its code"));
    }
    if let Some(other) = image.sections.iter().filter(is_code).find(|s| s.name != image.sections[edit.section].name) {
        let name = &image.sections[edit.section].name;
        return Err(Error::unsupported(format!(
            "code in both {name} and {}: it might refer to each other",
            other.name
        )));
    }
    let moves = Moves::new(&image, edit.section, &edit.map)?;
    move_all(&moves, &[edit])
}

/// The file of `moves`, with the new content of the sections of `edits`.
pub(crate) fn move_all(moves: &Moves<'_, '_>, edits: &[&CodeEdit]) -> Result<Grown> {
    let image = moves.image;
    let mut warnings = Vec::new();
    let mut sections = Vec::new();
    let mut words = Vec::new();
    for (index, section) in image.sections.iter().enumerate() {
        let edited = edits.iter().find(|edit| edit.section == index);
        let mut data = edited.map_or_else(|| section.data.to_vec(), |edit| edit.new_code.clone());
        match section.section_type() {
            elf::SHT_SYMTAB | elf::SHT_DYNSYM => addresses::symbols(moves, section, &mut data)?,
            elf::SHT_DYNAMIC => addresses::dynamic(moves, section, &mut data)?,
            elf::SHT_RELA if section.is_allocated() => words.extend(addresses::relocations(moves, section, &mut data)?),
            elf::SHT_RELA | elf::SHT_REL | elf::SHT_RELR => {
                let message = format!("relocation section {} of a linked code object cannot be moved", section.name);
                return Err(Error::unsupported(message));
            }
            _ if section.is_allocated() || section.size() == 0 => {}
            _ if section.name.starts_with(".debug_") => {}
            _ if WITHOUT_ADDRESSES.contains(&&*section.name) => {}
            _ => warnings.push(format!(
                "section {} was kept as it is; if it holds addresses of code, they are those of the old code",
                section.name
            )),
        }
        let header = section.header;
        sections.push(Section { name: section.name.clone(), header, data: Cow::Owned(data) });
    }
    for address in addresses::descriptors(&image.sections)? {
        let bytes = bytes_at(&image.sections, image, address, descriptor::SIZE)?.try_into();
        let bytes = bytes.map_err(|_| Error::input("a descriptor is cut short"))?;
        let distance = addresses::entry_distance(moves, address, bytes)?;
        put_at(&mut sections, image, address + ENTRY_OFFSET_AT, &distance.to_le_bytes())?;
    }
    // `ld.lld` leaves the words zero unless told to apply relocations itself.
    for (address, old, new) in words {
        if bytes_at(&image.sections, image, address, 8).is_ok_and(|bytes| bytes == old.to_le_bytes()) {
            put_at(&mut sections, image, address, &new.to_le_bytes())?;
        }
    }
    let mut grown = Image { header: image.header, segments: image.segments.clone(), sections };
    place(&mut grown, moves)?;
    warnings.extend(debug_sections::drop_all(&mut grown)?);
    let code_object = grown.write()?;
    CodeObject::parse(&code_object).map_err(|error| {
        Error::new(
            ErrorKind::CheckFailed,
            format!("the result does not read, so the file has parts that are not understood: {error}"),
        )
    })?;
    Ok(Grown { code_object, warnings })
}

/// Byte offset of `kernel_code_entry_byte_offset` in a kernel descriptor.
const ENTRY_OFFSET_AT: u64 = 16;

fn bytes_at<'s>(sections: &'s [Section<'_>], image: &Image<'_>, address: u64, size: usize) -> Result<&'s [u8]> {
    let bytes = image.section_at(address).and_then(|index| {
        let start = (address - image.sections[index].address()) as usize;
        sections[index].data.get(start..start.checked_add(size)?)
    });
    bytes.ok_or_else(|| Error::input(format!("there are no {size} bytes at address {address:#x}")))
}

fn put_at(sections: &mut [Section<'_>], image: &Image<'_>, address: u64, bytes: &[u8]) -> Result<()> {
    let place = image.section_at(address).and_then(|index| {
        let start = (address - image.sections[index].address()) as usize;
        sections[index].data.to_mut().get_mut(start..start.checked_add(bytes.len())?)
    });
    let place = place.ok_or_else(|| Error::input(format!("there are no bytes at address {address:#x}")))?;
    place.copy_from_slice(bytes);
    Ok(())
}

/// Writes the layout into the headers.
fn place(grown: &mut Image<'_>, moves: &Moves<'_, '_>) -> Result<()> {
    for (section, place) in grown.sections.iter_mut().zip(&moves.layout.sections) {
        section.header.sh_addr.set(LE, place.address);
        section.header.sh_offset.set(LE, place.offset);
        section.header.sh_size.set(LE, place.size);
    }
    for (segment, extent) in grown.segments.iter_mut().zip(&moves.layout.segments) {
        segment.p_vaddr.set(LE, extent.address);
        segment.p_paddr.set(LE, extent.address);
        segment.p_offset.set(LE, extent.offset);
        segment.p_filesz.set(LE, extent.file_size);
        segment.p_memsz.set(LE, extent.memory_size);
    }
    grown.header.e_shoff.set(LE, moves.layout.section_headers);
    let entry = grown.header.e_entry.get(LE);
    if entry != 0 {
        let new = moves.address(entry);
        grown.header.e_entry.set(LE, new.ok_or_else(|| Error::input("the ELF entry is in no section"))?);
    }
    Ok(())
}
