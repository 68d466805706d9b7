//! Leaving out the `.debug_*` sections: they describe code that has changed.

use crate::error::{Error, Result};
use crate::image::{Image, LE, Section};
use object::elf;

/// Takes out the sections that describe the old code, and closes the gap. Returns a warning when there were any.
pub(crate) fn drop_all(image: &mut Image<'_>) -> Result<Option<String>> {
    let is_debug = |s: &Section<'_>| !s.is_allocated() && s.name.starts_with(".debug_");
    let names: Vec<String> = image.sections.iter().filter(|s| is_debug(s)).map(|s| s.name.clone()).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let mut renumbered = Vec::new();
    let mut next = 0_u16;
    for section in &image.sections {
        renumbered.push((!is_debug(section)).then_some(next));
        next += u16::from(!is_debug(section));
    }
    let new_number = |old: usize| renumbered.get(old).copied().flatten();
    for section in image.sections.iter_mut().filter(|s| [elf::SHT_SYMTAB, elf::SHT_DYNSYM].contains(&s.section_type()))
    {
        let damaged = Error::input(format!("{} is not a whole number of symbols", section.name));
        let symbols: &mut [elf::Sym64<object::LittleEndian>] =
            object::pod::slice_from_all_bytes_mut(section.data.to_mut()).map_err(|()| damaged)?;
        for symbol in symbols {
            let index = symbol.st_shndx.get(LE);
            if index != elf::SHN_UNDEF && index.0 < elf::SHN_LORESERVE {
                let new = new_number(usize::from(index.0)).ok_or_else(|| {
                    Error::unsupported("a symbol is defined in a .debug_ section, which has to be dropped")
                })?;
                symbol.st_shndx.set(LE, elf::SymbolSection(new));
            }
        }
    }
    image.sections.retain(|section| !is_debug(section));
    let mut end = 0;
    for section in &mut image.sections {
        let link = section.header.sh_link.get(LE) as usize;
        section.header.sh_link.set(LE, new_number(link).unwrap_or(0).into());
        if !section.has_bytes() {
            continue;
        }
        if !section.is_allocated() {
            end = u64::next_multiple_of(end, section.header.sh_addralign.get(LE).max(1));
            section.header.sh_offset.set(LE, end);
        }
        end = end.max(section.header.sh_offset.get(LE) + section.data.len() as u64);
    }
    image.header.e_shoff.set(LE, end.next_multiple_of(8));
    image.header.e_shnum.set(LE, image.sections.len() as u16);
    let names_in = new_number(usize::from(image.header.e_shstrndx.get(LE).0));
    let names_in = names_in.ok_or_else(|| Error::input("the section names are in a .debug_ section"))?;
    image.header.e_shstrndx.set(LE, elf::SymbolSection(names_in));
    Ok(Some(format!("dropped {}: they describe the old code", names.join(", "))))
}
