//! The ELF tables of a code object as its text needs them: sections, symbols in the order of their table, and what
//! refers to a symbol or a place by a relocation ("Relocation Records", AMDGPUUsage).

use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader, Sym};
use object::{LittleEndian, SectionIndex};

use crate::error::{Error, Result};

const LE: LittleEndian = LittleEndian;
/// `st_shndx` of a variable in LDS that the linker places.
const SHN_AMDGPU_LDS: u16 = 0xff00;
/// `r_type` of a word that the loader fills with load address + addend.
pub(crate) const RELATIVE64: u32 = 13;

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// At their ELF index.
    pub sections: Vec<Header>,
    /// Those of `.symtab`; in a stripped file those of `.dynsym`, in the order in which the linker saw them.
    pub symbols: Vec<Symbol>,
    pub references: Vec<Reference>,
    /// Groups of sections, of which a linker keeps one: what names them, and the sections.
    pub groups: Vec<(String, Vec<usize>)>,
    /// Sections with relocations that are not understood.
    pub unread: Vec<String>,
}

/// What [`codeobj::code_object::Section`] does not say of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    pub name: String,
    pub align: u64,
    pub entry_size: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol {
    pub name: String,
    pub place: Place,
    pub size: u64,
    /// `STT_*`, `STB_*`, `STV_*`
    pub kind: u8,
    pub binding: u8,
    pub visibility: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Undefined,
    Absolute(u64),
    /// Tentative definitions; the alignment.
    Common(u64),
    Lds(u64),
    /// A byte of a section.
    In {
        section: usize,
        offset: u64,
    },
}

/// A field that is filled in with an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub section: usize,
    pub offset: u64,
    /// `R_AMDGPU_*`
    pub kind: u32,
    pub target: Target,
    pub addend: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A symbol's name, and its place.
    Symbol(String, Place),
    /// A section's start.
    Section(usize),
    /// Nothing, and the addend counts.
    None,
}

impl Reference {
    /// The same as a place, where it leads to one.
    pub fn place(&self) -> Option<(usize, i64)> {
        match &self.target {
            Target::Symbol(_, Place::In { section, offset }) => {
                Some((*section, (*offset as i64).wrapping_add(self.addend)))
            }
            Target::Section(section) => Some((*section, self.addend)),
            _ => None,
        }
    }

    /// Where it leads, in words that mean the same in two objects: a name, where others may define it, else a section's
    /// name and an offset.
    pub fn leads_to(&self, tables: &Tables) -> String {
        if let Target::Symbol(name, place) = &self.target {
            let is_local =
                tables.symbols.iter().any(|own| own.name == *name && own.place == *place && own.binding == 0);
            if !is_local {
                return format!("`{name}`{:+}", self.addend);
            }
        }
        match self.place() {
            Some((section, offset)) => {
                let name = tables.sections.get(section).map_or("?", |header| &header.name);
                format!("{name}{offset:+}")
            }
            None => format!("{:?}{:+}", self.target, self.addend),
        }
    }

    /// Bytes of the field.
    pub fn size(&self) -> u64 {
        match self.kind {
            3 | 5 | RELATIVE64 => 8,
            14 => 2,
            _ => 4,
        }
    }
}

impl Tables {
    /// Those that apply to a section.
    pub fn references_of(&self, section: usize) -> impl Iterator<Item = &Reference> {
        let first = self.references.partition_point(|reference| reference.section < section);
        self.references[first..].iter().take_while(move |reference| reference.section == section)
    }

    /// Those of the file in `bytes`.
    ///
    /// # Errors
    /// Damage.
    pub fn read(bytes: &[u8]) -> Result<Tables> {
        let damaged = |error: object::read::Error| Error::input(format!("damaged ELF file: {error}"));
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(damaged)?;
        let is_relocatable = header.e_type(LE) == elf::ET_REL;
        let raw = header.sections(LE, bytes).map_err(damaged)?;
        let headers: Vec<&SectionHeader64<LittleEndian>> = raw.iter().collect();
        let mut tables = Tables::default();
        for section in &headers {
            let name = String::from_utf8_lossy(raw.section_name(LE, section).unwrap_or(b"?")).into_owned();
            let (align, entry_size) = (section.sh_addralign(LE), section.sh_entsize(LE));
            tables.sections.push(Header { name, align, entry_size });
        }
        let symbols = |table: usize| -> Result<Vec<(u32, Symbol)>> {
            let table = raw.symbol_table_by_index(LE, bytes, SectionIndex(table)).map_err(damaged)?;
            let read = table.enumerate().map(|(index, symbol)| {
                let name = table.symbol_name(LE, symbol).map_err(damaged)?;
                let defined_in = table.symbol_section(LE, symbol, index).map_err(damaged)?.map(|section| section.0);
                let value = symbol.st_value(LE);
                let place = match (defined_in, symbol.st_shndx(LE).0) {
                    (Some(section), _) => {
                        let start = headers.get(section).map_or(0, |header| header.sh_addr(LE));
                        Place::In { section, offset: value.wrapping_sub(if is_relocatable { 0 } else { start }) }
                    }
                    (None, index) if index == elf::SHN_ABS.0 => Place::Absolute(value),
                    (None, index) if index == elf::SHN_COMMON.0 => Place::Common(value),
                    (None, SHN_AMDGPU_LDS) => Place::Lds(value),
                    _ => Place::Undefined,
                };
                let name = String::from_utf8_lossy(name).into_owned();
                let (kind, binding) = (symbol.st_type().0, symbol.st_bind().0);
                let visibility = symbol.st_visibility().0;
                Ok((symbol.st_name(LE), Symbol { name, place, size: symbol.st_size(LE), kind, binding, visibility }))
            });
            read.collect()
        };
        let table = |kind: elf::SectionType| headers.iter().position(|section| section.sh_type(LE) == kind);
        let chosen = match table(elf::SHT_SYMTAB) {
            Some(table) => symbols(table)?,
            None => {
                let mut dynamic = table(elf::SHT_DYNSYM).map_or(Ok(Vec::new()), symbols)?;
                // The linker appends names as it meets the symbols, and sorts the table for its hash afterwards.
                dynamic.sort_by_key(|(name, _)| *name);
                dynamic
            }
        };
        tables.symbols = chosen.into_iter().map(|(_, symbol)| symbol).collect();
        let within = |address: u64| {
            let holds = |section: &&SectionHeader64<LittleEndian>| {
                let start = section.sh_addr(LE);
                let is_loaded = section.sh_flags(LE).contains(elf::SHF_ALLOC);
                is_loaded && address >= start && address - start < section.sh_size(LE)
            };
            headers.iter().position(holds)
        };
        for (index, section) in headers.iter().enumerate() {
            if section.sh_type(LE) == elf::SHT_REL || section.sh_type(LE).0 == 19 {
                // 19: SHT_RELR
                tables.unread.push(tables.sections[index].name.clone());
            }
            if let Some((_, members)) = section.group(LE, bytes).map_err(damaged)? {
                let known = symbols(section.sh_link(LE) as usize)?;
                let signature = known.get(section.sh_info(LE) as usize).map_or("?", |(_, symbol)| &symbol.name);
                let members = members.iter().map(|member| member.get(LE) as usize);
                tables.groups.push((signature.to_owned(), members.collect()));
            }
            let Some((rows, link)) = section.rela(LE, bytes).map_err(damaged)? else { continue };
            let known = if link.0 == 0 { Vec::new() } else { symbols(link.0)? };
            let applies_to = section.sh_info(LE) as usize;
            if is_relocatable && headers.get(applies_to).is_none() {
                return Err(Error::input(format!(
                    "section {index} has relocations for section {applies_to}, which is not there"
                )));
            }
            for row in rows {
                let (at, kind, addend) = (row.r_offset.get(LE), row.r_type(LE, false).0, row.r_addend.get(LE));
                let (section, offset) = match (is_relocatable, within(at)) {
                    (true, _) => (applies_to, at),
                    (false, Some(section)) => (section, at - headers[section].sh_addr(LE)),
                    (false, None) => continue,
                };
                let symbol = known.get(row.r_sym(LE, false) as usize).map(|(_, symbol)| symbol);
                let (target, addend) = match (symbol, within(addend as u64)) {
                    (_, Some(to)) if kind == RELATIVE64 => {
                        (Target::Section(to), addend.wrapping_sub(headers[to].sh_addr(LE) as i64))
                    }
                    (Some(symbol), _) if symbol.kind == elf::STT_SECTION.0 || symbol.name.is_empty() => match symbol
                        .place
                    {
                        Place::In { section, offset } => (Target::Section(section), addend.wrapping_add(offset as i64)),
                        _ => (Target::None, addend),
                    },
                    (Some(symbol), _) => (Target::Symbol(symbol.name.clone(), symbol.place), addend),
                    (None, _) => (Target::None, addend),
                };
                tables.references.push(Reference { section, offset, kind, target, addend });
            }
        }
        tables.references.sort_by_key(|reference| (reference.section, reference.offset));
        Ok(tables)
    }
}
