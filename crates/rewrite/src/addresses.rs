//! Rewrites what holds an address: symbols, `.dynamic`, relocations, kernel descriptors.
//!
//! One function per kind of table. A kind that is not known here is refused by name, for it might hold an address.

use crate::error::{Error, Result};
use crate::image::{LE, Section};
use crate::moves::Moves;
use codeobj::descriptor::{self, Descriptor};
use object::elf::{self, Dyn64, Rela64, Sym64};
use object::pod::{slice_from_all_bytes, slice_from_all_bytes_mut};
use object::{LittleEndian, Pod};
use std::collections::BTreeSet;

/// `r_type` of a word that the loader fills with load address + addend ("Relocation Records", AMDGPUUsage).
const R_AMDGPU_RELATIVE64: u32 = 13;
/// `r_type`s whose value the loader takes from a symbol: `R_AMDGPU_ABS64`, `_ABS32_LO`, `_ABS32_HI`, `_ABS32`.
const SYMBOLIC: [u32; 4] = [3, 1, 2, 6];

/// Dynamic tags whose value is an address: PLTGOT, HASH, STRTAB, SYMTAB, RELA, INIT, FINI, JMPREL, INIT_ARRAY,
/// FINI_ARRAY, PREINIT_ARRAY, GNU_HASH, VERSYM, VERDEF, VERNEED.
const ADDRESS_TAGS: [i64; 15] =
    [3, 4, 5, 6, 7, 12, 13, 23, 25, 26, 32, 0x6fff_fef5, 0x6fff_fff0, 0x6fff_fffc, 0x6fff_fffe];
/// Dynamic tags whose value is none: NULL, NEEDED, PLTRELSZ, RELASZ, RELAENT, STRSZ, SYMENT, SONAME, RPATH, SYMBOLIC,
/// PLTREL, TEXTREL, BIND_NOW, INIT_ARRAYSZ, FINI_ARRAYSZ, RUNPATH, FLAGS, PREINIT_ARRAYSZ, RELACOUNT, FLAGS_1,
/// VERDEFNUM, VERNEEDNUM.
const OTHER_TAGS: [i64; 22] = [
    0,
    1,
    2,
    8,
    9,
    10,
    11,
    14,
    15,
    16,
    20,
    22,
    24,
    27,
    28,
    29,
    30,
    33,
    0x6fff_fff9,
    0x6fff_fffb,
    0x6fff_fffd,
    0x6fff_ffff,
];

/// Bytes that are a table of `T`.
fn table<'d, T: Pod>(section: &Section<'_>, data: &'d mut [u8]) -> Result<&'d mut [T]> {
    slice_from_all_bytes_mut(data).map_err(|()| not_whole(section))
}

fn not_whole(section: &Section<'_>) -> Error {
    Error::input(format!("{} is not a whole number of entries", section.name))
}

/// Symbols of `.symtab` or `.dynsym`.
pub(crate) fn symbols(moves: &Moves<'_, '_>, section: &Section<'_>, data: &mut [u8]) -> Result<()> {
    for symbol in table::<Sym64<LittleEndian>>(section, data)? {
        let index = symbol.st_shndx.get(LE);
        if index == elf::SHN_XINDEX {
            return Err(Error::unsupported("a symbol table with extended section numbers cannot be moved"));
        }
        if index == elf::SHN_UNDEF || index.0 >= elf::SHN_LORESERVE {
            continue;
        }
        let index = usize::from(index.0);
        let Some(defined_in) = moves.image.sections.get(index).filter(|section| section.is_allocated()) else {
            continue;
        };
        let (value, size) = (symbol.st_value.get(LE), symbol.st_size.get(LE));
        // A symbol outside its section stays at its distance from it.
        let offset = value.wrapping_sub(defined_in.address());
        symbol.st_value.set(LE, moves.in_section(index, offset));
        symbol.st_size.set(LE, moves.size(index, offset, size));
    }
    Ok(())
}

/// The entries of `.dynamic`.
pub(crate) fn dynamic(moves: &Moves<'_, '_>, section: &Section<'_>, data: &mut [u8]) -> Result<()> {
    for entry in table::<Dyn64<LittleEndian>>(section, data)? {
        let (tag, value) = (entry.d_tag.get(LE).0, entry.d_val.get(LE));
        if ADDRESS_TAGS.contains(&tag) {
            let new = moves.address(value);
            let new = new.ok_or_else(|| {
                Error::input(format!("{} names address {value:#x}, which is in no section", section.name))
            })?;
            entry.d_val.set(LE, new);
        } else if !OTHER_TAGS.contains(&tag) {
            return Err(Error::unsupported(format!(
                "dynamic tag {tag:#x} might hold an address; such a file cannot be moved"
            )));
        }
    }
    Ok(())
}

/// The loader's relocations. Returns the words that they apply to and that hold an address themselves, as `(address,
/// old content, new content)`.
pub(crate) fn relocations(
    moves: &Moves<'_, '_>,
    section: &Section<'_>,
    data: &mut [u8],
) -> Result<Vec<(u64, u64, u64)>> {
    let mut words = Vec::new();
    for row in table::<Rela64<LittleEndian>>(section, data)? {
        let (at, addend) = (row.r_offset.get(LE), row.r_addend.get(LE));
        let kind = row.r_info.get(LE) as u32;
        let new_at = moves.byte(at).ok_or_else(|| {
            Error::unsupported(format!(
                "a relocation of {} applies to {at:#x}, which was replaced or is in no section",
                section.name
            ))
        })?;
        row.r_offset.set(LE, new_at);
        if kind == R_AMDGPU_RELATIVE64 {
            let new = moves.address(addend as u64).ok_or_else(|| {
                Error::unsupported(format!(
                    "a relocation of {} leads to {addend:#x}, which is in no section",
                    section.name
                ))
            })?;
            row.r_addend.set(LE, new as i64);
            words.push((at, addend as u64, new));
        } else if !SYMBOLIC.contains(&kind) {
            return Err(Error::unsupported(format!("a relocation of type {kind} in {} cannot be moved", section.name)));
        }
    }
    Ok(words)
}

/// Addresses of all kernel descriptors: the symbols `….kd`, whether or not the metadata names them.
pub(crate) fn descriptors(sections: &[Section<'_>]) -> Result<BTreeSet<u64>> {
    let mut found = BTreeSet::new();
    for section in sections.iter().filter(|s| [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&s.section_type())) {
        let names = sections.get(section.header.sh_link.get(LE) as usize).map_or(&[][..], |names| &names.data);
        let symbols: &[Sym64<LittleEndian>] = slice_from_all_bytes(&section.data).map_err(|()| not_whole(section))?;
        for symbol in symbols {
            let name = names.get(symbol.st_name.get(LE) as usize..).unwrap_or_default();
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let size = symbol.st_size.get(LE);
            let is_descriptor = name.ends_with(b".kd") && [0, descriptor::SIZE as u64].contains(&size);
            if is_descriptor && symbol.st_shndx.get(LE) != elf::SHN_UNDEF {
                found.insert(symbol.st_value.get(LE));
            }
        }
    }
    Ok(found)
}

/// The distance from the descriptor at `address`, which `bytes` hold, to where its kernel's entry went.
pub(crate) fn entry_distance(moves: &Moves<'_, '_>, address: u64, bytes: [u8; descriptor::SIZE]) -> Result<i64> {
    let distance = Descriptor::new(bytes).kernel_code_entry_byte_offset();
    let entry = address.checked_add_signed(distance);
    let moved = moves.address(address).zip(entry.and_then(|entry| moves.address(entry)));
    let (descriptor, entry) = moved.ok_or_else(|| {
        Error::input(format!("the entry of the descriptor at {address:#x}, {distance} bytes from it, is in no section"))
    })?;
    Ok(entry.wrapping_sub(descriptor) as i64)
}
