//! ELF files as this crate needs them: sections whose extents were checked, symbols, notes, relocations.
//!
//! Any 64-bit little-endian machine: code objects here, hosts that carry them in [`crate::container`]. `object` reads
//! the records; the checks with a section and an offset to name are made here, once, when the file is opened.

use crate::error::{Error, ErrorKind, Place, Result};
use object::elf::{self, FileHeader64, SectionHeader64};
use object::read::elf::{FileHeader, NoteIterator, ProgramHeader, SectionHeader, SectionTable, Sym};
use object::{LittleEndian, SectionIndex};
use std::ops::Range;

pub(crate) const MAGIC: &[u8] = b"\x7fELF";
const LE: LittleEndian = LittleEndian;
const HEADER_SIZE: usize = 64;

/// A section header, its extent known to lie in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// `sh_addr`; 0 in relocatable objects.
    pub address: u64,
    /// `sh_size`, bytes in memory.
    pub size: u64,
    /// `sh_type`
    pub section_type: u32,
    /// `sh_flags`
    pub flags: u64,
    /// Where its bytes are; empty for `SHT_NOBITS`.
    pub file_range: Range<usize>,
}

impl Section {
    /// Whether it holds code (`SHF_EXECINSTR`).
    pub fn is_executable(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }

    /// Whether it takes memory when loaded (`SHF_ALLOC`).
    pub fn is_allocated(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }

    /// Place of a byte of this section, for an error.
    pub(crate) fn place(&self, offset: u64) -> Place {
        let file_offset = (self.file_range.start as u64).saturating_add(offset);
        Place::Section { name: self.name.clone(), offset, file_offset }
    }
}

/// A named place in a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol<'a> {
    pub name: &'a [u8],
    /// `st_value`: an address, in relocatable objects an offset into the section.
    pub value: u64,
    pub size: u64,
    /// Index of a defining section that exists.
    pub section: Option<usize>,
    pub is_function: bool,
    pub is_object: bool,
    pub binding: elf::SymbolBind,
    pub visibility: elf::SymbolVisibility,
    pub symbol_type: elf::SymbolType,
}

/// One note.
pub(crate) struct Note<'a> {
    pub owner: &'a [u8],
    pub note_type: u32,
    pub descriptor: &'a [u8],
    /// Where the descriptor is.
    pub place: Place,
}

/// One relocation with an addend.
pub(crate) struct Relocation {
    pub offset: u64,
    pub symbol: usize,
    pub addend: i64,
}

/// An ELF file.
pub(crate) struct Elf<'a> {
    pub bytes: &'a [u8],
    header: &'a FileHeader64<LittleEndian>,
    table: SectionTable<'a, FileHeader64<LittleEndian>>,
    pub sections: Vec<Section>,
}

impl<'a> Elf<'a> {
    /// Reads headers and checks every section's and segment's extent.
    pub fn parse(bytes: &'a [u8]) -> Result<Elf<'a>> {
        if !bytes.starts_with(MAGIC) {
            return Err(Error::wrong_format(format!(
                "this is {}, expected an ELF file",
                crate::container::describe(bytes)
            )));
        }
        if bytes.len() < HEADER_SIZE {
            let message = format!("the ELF header is cut short: {} bytes, expected {HEADER_SIZE}", bytes.len());
            return Err(Error::malformed(0, message));
        }
        if bytes[4..6] != [elf::ELFCLASS64.0, elf::ELFDATA2LSB.0] {
            return Err(Error::wrong_format("this ELF file is not 64-bit little-endian, as AMD GPU code objects are"));
        }
        let damaged = |what: &'static str| move |e: object::read::Error| Error::malformed(0, format!("{what}: {e}"));
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(damaged("damaged ELF header"))?;
        refuse_cut_tables(header, bytes.len())?;
        let table = header.sections(LE, bytes).map_err(damaged("damaged section header table"))?;
        let sections = table.iter().map(|raw| section(&table, raw, bytes.len())).collect::<Result<_>>()?;
        let file = Elf { bytes, header, table, sections };
        file.check_segments()?;
        Ok(file)
    }

    pub fn machine(&self) -> u16 {
        self.header.e_machine(LE).0
    }

    pub fn file_type(&self) -> u16 {
        self.header.e_type(LE).0
    }

    pub fn flags(&self) -> u32 {
        self.header.e_flags(LE).0
    }

    pub fn abi_version(&self) -> u8 {
        self.header.e_ident.abi_version
    }

    pub fn bytes_of(&self, section: &Section) -> &'a [u8] {
        &self.bytes[section.file_range.clone()]
    }

    fn check_segments(&self) -> Result<()> {
        for segment in self.program_headers()? {
            let (offset, size) = segment.file_range(LE);
            if file_range(offset, size, self.bytes.len()).is_none() {
                let message = format!("a segment claims {size:#x} bytes, the file has {:#x}", self.bytes.len());
                return Err(Error::malformed(offset, message));
            }
        }
        Ok(())
    }

    fn program_headers(&self) -> Result<&'a [elf::ProgramHeader64<LittleEndian>]> {
        let headers = self.header.program_headers(LE, self.bytes);
        headers.map_err(|e| Error::malformed(0, format!("damaged program header table: {e}")))
    }

    /// Symbols of `.symtab`, then those of `.dynsym`; the same symbol is usually in both.
    pub fn symbols(&self) -> Result<Vec<Symbol<'a>>> {
        let mut symbols = Vec::new();
        for (index, section) in self.sections.iter().enumerate() {
            if section.section_type == elf::SHT_SYMTAB.0 {
                symbols.splice(0..0, self.symbol_table(index)?);
            } else if section.section_type == elf::SHT_DYNSYM.0 {
                symbols.extend(self.symbol_table(index)?);
            }
        }
        Ok(symbols)
    }

    /// The symbols of one table, at the index that relocations use.
    fn symbol_table(&self, section: usize) -> Result<Vec<Symbol<'a>>> {
        let holder = self.sections.get(section);
        let holder =
            holder.ok_or_else(|| Error::malformed(0, format!("there is no section {section} with symbols")))?;
        let damaged =
            |at: u64, e: object::read::Error| malformed(holder.place(at), format!("damaged symbol table: {e}"));
        let table =
            self.table.symbol_table_by_index(LE, self.bytes, SectionIndex(section)).map_err(|e| damaged(0, e))?;
        let mut symbols = Vec::with_capacity(table.len());
        for (index, raw) in table.enumerate() {
            let at = (index.0 * size_of::<elf::Sym64<LittleEndian>>()) as u64;
            let name = table.symbol_name(LE, raw).map_err(|e| damaged(at, e))?;
            let defined_in = table.symbol_section(LE, raw, index).map_err(|e| damaged(at, e))?;
            symbols.push(Symbol {
                name,
                value: raw.st_value(LE),
                size: raw.st_size(LE),
                section: defined_in.map(|s| s.0).filter(|s| *s < self.sections.len()),
                is_function: raw.st_type() == elf::STT_FUNC,
                is_object: raw.st_type() == elf::STT_OBJECT,
                binding: raw.st_bind(),
                visibility: raw.st_visibility(),
                symbol_type: raw.st_type(),
            });
        }
        Ok(symbols)
    }

    /// Relocations with addends that apply to `section`, with the symbols that they number.
    pub fn relocations(&self, section: usize) -> Result<Vec<(Vec<Symbol<'a>>, Vec<Relocation>)>> {
        let mut found = Vec::new();
        for (raw, holder) in self.table.iter().zip(&self.sections) {
            if raw.sh_info(LE) as usize != section {
                continue;
            }
            let damaged = |e| malformed(holder.place(0), format!("damaged relocations: {e}"));
            if let Some((rows, symbols)) = raw.rela(LE, self.bytes).map_err(damaged)? {
                let rows = rows.iter().map(|row| Relocation {
                    offset: row.r_offset.get(LE),
                    symbol: row.r_sym(LE, false) as usize,
                    addend: row.r_addend.get(LE),
                });
                found.push((self.symbol_table(symbols.0)?, rows.collect()));
            }
        }
        Ok(found)
    }

    /// Notes of the sections of type `SHT_NOTE`.
    pub fn section_notes(&self) -> Result<Vec<Note<'a>>> {
        let mut notes = Vec::new();
        for (raw, section) in self.table.iter().zip(&self.sections) {
            if section.section_type == elf::SHT_NOTE.0 {
                let data = self.bytes_of(section);
                self.read_notes(data, raw.sh_addralign(LE), |offset| section.place(offset), &mut notes)?;
            }
        }
        Ok(notes)
    }

    /// Notes of the segments of type `PT_NOTE`; usually those of the sections again.
    pub fn segment_notes(&self) -> Result<Vec<Note<'a>>> {
        let mut notes = Vec::new();
        for segment in self.program_headers()?.iter().filter(|segment| segment.p_type(LE) == elf::PT_NOTE) {
            let (start, size) = segment.file_range(LE);
            let Some(range) = file_range(start, size, self.bytes.len()) else { continue };
            self.read_notes(&self.bytes[range], segment.p_align(LE), |offset| Place::File(start + offset), &mut notes)?;
        }
        Ok(notes)
    }

    fn read_notes(
        &self,
        data: &'a [u8],
        align: u64,
        place: impl Fn(u64) -> Place,
        notes: &mut Vec<Note<'a>>,
    ) -> Result<()> {
        let damaged = |e| malformed(place(0), format!("damaged note: {e}"));
        let mut rest = NoteIterator::<FileHeader64<LittleEndian>>::new(LE, align, data).map_err(damaged)?;
        while let Some(note) = rest.next().map_err(damaged)? {
            let descriptor = note.desc();
            let offset = descriptor.as_ptr() as usize - data.as_ptr() as usize;
            let place = place(offset as u64);
            notes.push(Note { owner: note.name(), note_type: note.n_type(LE).0, descriptor, place });
        }
        Ok(())
    }
}

/// Says of a file that ends before its section or program headers do, what it should have had. Counts that do not fit
/// the header are left to `object`, which finds them in section 0.
fn refuse_cut_tables(header: &FileHeader64<LittleEndian>, file_size: usize) -> Result<()> {
    const PHOFF_AT: u64 = 32;
    const SHOFF_AT: u64 = 40;
    const PN_XNUM: u16 = 0xffff;
    let sections = if header.e_shoff(LE) == 0 { 0 } else { header.e_shnum(LE).max(1) };
    let segments = if header.e_phnum(LE) == PN_XNUM { 1 } else { header.e_phnum(LE) };
    let tables = [
        ("section", header.e_shoff(LE), sections, size_of::<SectionHeader64<LittleEndian>>(), SHOFF_AT),
        ("program", header.e_phoff(LE), segments, size_of::<elf::ProgramHeader64<LittleEndian>>(), PHOFF_AT),
    ];
    for (what, offset, count, size, stated_at) in tables {
        let end = u128::from(offset) + u128::from(count) * size as u128;
        if count != 0 && end > file_size as u128 {
            let message = format!(
                "the file is cut or its header damaged: it has {file_size} bytes ({file_size:#x}), but the {what} header table ends at \
                 {end:#x}, as stated"
            );
            return Err(Error::malformed(stated_at, message));
        }
    }
    Ok(())
}

fn section(
    table: &SectionTable<'_, FileHeader64<LittleEndian>>,
    raw: &SectionHeader64<LittleEndian>,
    file_size: usize,
) -> Result<Section> {
    let offset = raw.sh_offset(LE);
    let name =
        table.section_name(LE, raw).map_err(|e| malformed(Place::File(offset), format!("damaged section: {e}")))?;
    let name = String::from_utf8_lossy(name).into_owned();
    let size = raw.sh_size(LE);
    let has_bytes = ![elf::SHT_NOBITS, elf::SHT_NULL].contains(&raw.sh_type(LE));
    let range = if has_bytes { file_range(offset, size, file_size) } else { Some(0..0) };
    let Some(file_range) = range else {
        let message = format!("section {name} claims {size:#x} bytes, the file has {file_size:#x}");
        return Err(malformed(Place::Section { name, offset: 0, file_offset: offset }, message));
    };
    let address = raw.sh_addr(LE);
    if address.checked_add(size).is_none() {
        let message = format!("section {name} has {size:#x} bytes from address {address:#x}, past the last address");
        return Err(malformed(Place::Section { name, offset: 0, file_offset: offset }, message));
    }
    Ok(Section { name, address, size, section_type: raw.sh_type(LE).0, flags: raw.sh_flags(LE).0, file_range })
}

fn malformed(place: Place, message: String) -> Error {
    Error::new(ErrorKind::Malformed, place, message)
}

/// `offset..offset + size`, when it lies in the file.
fn file_range(offset: u64, size: u64, file_size: usize) -> Option<Range<usize>> {
    let end = offset.checked_add(size)?;
    (end <= file_size as u64).then_some(offset as usize..end as usize)
}
