//! What LLVM's code generator adds to an object that has nothing but module-level assembly, and how it is avoided or
//! taken off, so that the object equals `llvm-mc`'s:
//!
//! 1. Filling in the section `.text` (by LLVM 14 and 15 even when it is empty). So the code is assembled into another
//!    section of that name, [`CODE`], and the first one is taken off.
//! 2. The value 0 for the symbols `amdgpu.max_num_vgpr` and so on, over what the source sets. So the source sets
//!    symbols of other names, as long, that get theirs back ([`MAXIMUM`]).
//! 3. A metadata note without kernels, the last in `.note`.
//! 4. The empty sections [`EMPTY`], unless the source has them too.
//!
//! The sections that stay are laid out anew as LLVM lays them out.

use std::collections::HashMap;

use object::LittleEndian as LE;
use object::elf::{
    FileHeader64, SHN_LORESERVE, SHT_GROUP, SHT_NOBITS, SHT_REL, SHT_RELA, SHT_SYMTAB, SectionHeader64, SectionType,
    Sym64, SymbolSection,
};
use object::pod::{bytes_of, from_bytes, slice_from_bytes, slice_from_bytes_mut};

use crate::string_table::StringTable;

/// Switches to a section `.text` that is not the code generator's; the number is any.
const CODE: &str = ".section .text,\"ax\",@progbits,unique,7061";
/// What LLVM fills with: `s_code_end` and, where there is none, `s_nop 0`.
const FILLING: [&[u8]; 2] = [&0xbf9f_0000_u32.to_le_bytes(), &0xbf80_0000_u32.to_le_bytes()];
/// Sections that are empty in a module without functions.
const EMPTY: [&str; 2] = [".AMDGPU.gpr_maximums", ".note.GNU-stack"];
/// How the names of symbols begin that LLVM sets, and how they begin in a source without extras.
const MAXIMUM: [&str; 2] = ["amdgpu.max_num_", "coax...max_num_"];
/// What a metadata note without kernels has in it: a key, and MessagePack's empty list.
const NO_KERNELS: &[u8] = b"amdhsa.kernels\x90";
const NOTE: &str = ".note";
const TEXT: &str = ".text";
const SECTION: &str = ".section";
const PUSH: &str = ".pushsection";
/// Namesz, descsz, type (ELF specification, "Note Section").
const NOTE_HEADER_BYTES: usize = 12;
/// A section index.
const INDEX_BYTES: usize = 4;

/// What [`avoid`] puts before the source: every `.text` is aligned to an instruction.
const BEFORE: [&str; 2] = [CODE, ".p2align 2"];
/// As the diagnostics see it.
pub(crate) const LINES_BEFORE: u32 = BEFORE.len() as u32;

/// `source` with other code sections and symbols.
pub(crate) fn avoid(source: &str) -> String {
    let source = source.replace(MAXIMUM[0], MAXIMUM[1]);
    let mut avoiding = String::with_capacity(source.len() + 1024);
    for line in BEFORE.into_iter().chain(source.lines()) {
        match directive_to_text(line) {
            Some(PUSH) => avoiding.extend([PUSH, CODE.trim_start_matches(SECTION)]),
            Some(_) => avoiding += CODE,
            None => avoiding += line,
        }
        avoiding.push('\n');
    }
    avoiding
}

/// The directive of a line that switches to `.text`: `.text`, `.section .text,"ax",@progbits`, `.pushsection .text`.
fn directive_to_text(line: &str) -> Option<&str> {
    let line = line.split([';', '/']).next()?.trim();
    let (directive, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let section = argument.split(',').next()?.trim().trim_matches('"');
    match directive {
        TEXT if section.is_empty() => Some(directive),
        SECTION | PUSH if section == TEXT => Some(directive),
        _ => None,
    }
}

/// A section while it is taken apart.
struct Section<'a> {
    header: SectionHeader64<LE>,
    name: &'a [u8],
    data: Vec<u8>,
    /// Where it was in the table of sections.
    index: u32,
}

/// Takes the extras off the object of `source`, as [`avoid`] changed it; `None` when it does not look as expected.
pub(crate) fn strip(object: &[u8], source: &str) -> Option<Vec<u8>> {
    let (header, _) = from_bytes::<FileHeader64<LE>>(object).ok()?;
    let mut sections = read(object, header)?;
    if let Some(note) = sections.iter_mut().find(|section| section.name == NOTE.as_bytes()) {
        let last = last_note(&note.data)?;
        if note.data[last..].windows(NO_KERNELS.len()).any(|bytes| bytes == NO_KERNELS) {
            note.data.truncate(last);
        }
    }
    let text = sections.iter().position(|section| section.name == TEXT.as_bytes())?;
    if !sections.remove(text).data.chunks(4).all(|word| FILLING.contains(&word)) {
        return None; // code in a subsection, `.text 1`
    }
    sections.retain(|section| {
        let extra = |name: &&str| section.name == name.as_bytes() && !source.contains(*name);
        !EMPTY.iter().any(extra) && (section.name != NOTE.as_bytes() || !section.data.is_empty())
    });
    let numbers: HashMap<u32, u32> = (0..).zip(&sections).map(|(new, section)| (section.index, new)).collect();
    let new_index = |old| numbers.get(&old).copied();
    sections.iter_mut().try_for_each(|section| renumber(section, new_index))?;
    let names_index = new_index(header.e_shstrndx.get(LE).0.into())? as usize;
    let mut names = sections.get(names_index)?.data.clone();
    replace(&mut names, MAXIMUM[1].as_bytes(), MAXIMUM[0].as_bytes());
    rename(&mut sections, &names, names_index)?;
    Some(write(*header, sections, names_index))
}

impl Section<'_> {
    fn is(&self, kind: SectionType) -> bool {
        self.header.sh_type.get(LE) == kind
    }
}

fn read<'a>(object: &'a [u8], header: &FileHeader64<LE>) -> Option<Vec<Section<'a>>> {
    let table = object.get(usize::try_from(header.e_shoff.get(LE)).ok()?..)?;
    let (headers, _) = slice_from_bytes::<SectionHeader64<LE>>(table, header.e_shnum.get(LE).into()).ok()?;
    let data = |header: &SectionHeader64<LE>| {
        if header.sh_type.get(LE) == SHT_NOBITS {
            return Some(&[][..]);
        }
        let start = usize::try_from(header.sh_offset.get(LE)).ok()?;
        object.get(start..start.checked_add(usize::try_from(header.sh_size.get(LE)).ok()?)?)
    };
    let names = data(headers.get(usize::from(header.e_shstrndx.get(LE).0))?)?;
    let sections = (0..).zip(headers).map(|(index, header)| {
        let name = name_at(names, header.sh_name.get(LE))?;
        Some(Section { header: *header, name, data: data(header)?.to_vec(), index })
    });
    sections.collect()
}

fn name_at(names: &[u8], at: u32) -> Option<&[u8]> {
    names.get(at as usize..)?.split(|byte| *byte == 0).next()
}

/// Where the last note starts.
fn last_note(notes: &[u8]) -> Option<usize> {
    let (mut last, mut next) = (0, 0);
    while next < notes.len() {
        let word = |i: usize| {
            let at = next + 4 * i;
            Some(u32::from_le_bytes(*notes.get(at..)?.first_chunk()?) as usize)
        };
        let (name_bytes, desc_bytes) = (word(0)?, word(1)?);
        last = next;
        next += NOTE_HEADER_BYTES + name_bytes.next_multiple_of(4) + desc_bytes.next_multiple_of(4);
    }
    (next == notes.len()).then_some(last)
}

/// Gives a section the other sections' new numbers, wherever it has their old ones.
fn renumber(section: &mut Section, new_index: impl Fn(u32) -> Option<u32>) -> Option<()> {
    let header = &mut section.header;
    header.sh_link.set(LE, new_index(header.sh_link.get(LE))?);
    match header.sh_type.get(LE) {
        SHT_REL | SHT_RELA => header.sh_info.set(LE, new_index(header.sh_info.get(LE))?),
        SHT_SYMTAB => {
            for symbol in symbols_mut(&mut section.data)? {
                let old = symbol.st_shndx.get(LE);
                if old.0 < SHN_LORESERVE {
                    symbol.st_shndx.set(LE, SymbolSection(new_index(old.0.into())? as u16));
                }
            }
        }
        SHT_GROUP => {
            for member in section.data.chunks_exact_mut(INDEX_BYTES).skip(1) {
                let new = new_index(u32::from_le_bytes(*member.first_chunk()?))?;
                member.copy_from_slice(&new.to_le_bytes());
            }
        }
        _ => {}
    }
    Some(())
}

/// Puts the names that are still in use into a new string table.
fn rename(sections: &mut [Section], names: &[u8], names_index: usize) -> Option<()> {
    let mut used: Vec<&[u8]> = sections.iter().map(|section| section.name).collect();
    for table in sections.iter_mut().filter(|section| section.is(SHT_SYMTAB)) {
        for symbol in symbols_mut(&mut table.data)? {
            used.push(name_at(names, symbol.st_name.get(LE))?);
        }
    }
    let table = StringTable::new(used);
    for section in sections.iter_mut() {
        section.header.sh_name.set(LE, table.place(section.name));
        if section.is(SHT_SYMTAB) {
            for symbol in symbols_mut(&mut section.data)? {
                symbol.st_name.set(LE, table.place(name_at(names, symbol.st_name.get(LE))?));
            }
        }
    }
    sections.get_mut(names_index)?.data = table.bytes;
    Some(())
}

/// Replaces every `from` by `to`, which is as long.
fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    for start in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[start..].starts_with(from) {
            bytes[start..start + to.len()].copy_from_slice(to);
        }
    }
}

fn symbols_mut(table: &mut [u8]) -> Option<&mut [Sym64<LE>]> {
    let count = table.len() / size_of::<Sym64<LE>>();
    slice_from_bytes_mut(table, count).ok().map(|(symbols, _)| symbols)
}

/// Lays the sections out in the order in which they were, and the table of them behind.
fn write(mut header: FileHeader64<LE>, mut sections: Vec<Section>, names_index: usize) -> Vec<u8> {
    let mut order: Vec<usize> = (1..sections.len()).collect();
    // An empty section has the place of the one behind it.
    order.sort_by_key(|i| (sections[*i].header.sh_offset.get(LE), !sections[*i].data.is_empty(), *i));
    let mut object = vec![0; size_of::<FileHeader64<LE>>()];
    for i in order {
        let Section { header, data, .. } = &mut sections[i];
        object.resize(object.len().next_multiple_of(header.sh_addralign.get(LE).max(1) as usize), 0);
        header.sh_offset.set(LE, object.len() as u64);
        if header.sh_type.get(LE) != SHT_NOBITS {
            header.sh_size.set(LE, data.len() as u64);
            object.extend_from_slice(data);
        }
    }
    object.resize(object.len().next_multiple_of(size_of::<u64>()), 0);
    header.e_shoff.set(LE, object.len() as u64);
    header.e_shnum.set(LE, sections.len() as u16);
    header.e_shstrndx.set(LE, SymbolSection(names_index as u16));
    object[..size_of::<FileHeader64<LE>>()].copy_from_slice(bytes_of(&header));
    sections.iter().for_each(|section| object.extend(bytes_of(&section.header)));
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_the_code_section_leads_to_the_other_one() {
        let source =
            ".text\n\t.section\t.text,\"ax\",@progbits ; a\n.pushsection .text\n.section .text.f\n.text 1\n.textile\n";
        let other = ".text,\"ax\",@progbits,unique,7061";
        let expected = format!(
            ".section {other}\n.p2align 2\n.section {other}\n.section {other}\n.pushsection {other}\n\
             .section .text.f\n.text 1\n.textile\n"
        );
        assert_eq!(avoid(source), expected);
    }

    #[test]
    fn the_last_note_is_found_and_a_cut_one_is_refused() {
        let note = |desc: &[u8]| [&[4, 0, 0, 0, desc.len() as u8, 0, 0, 0, 32, 0, 0, 0], &b"abc\0"[..], desc].concat();
        let notes = [note(b"1234"), note(b"")].concat();
        assert_eq!(last_note(&notes), Some(20));
        assert_eq!(last_note(&notes[..notes.len() - 1]), None);
    }

    #[test]
    fn a_damaged_object_is_refused() {
        for object in [&b""[..], b"\x7fELF", &[0xff; 64], &[0; 4096]] {
            assert_eq!(strip(object, ""), None);
        }
    }
}
