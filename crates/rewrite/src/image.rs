//! A linked code object taken apart into headers and section contents, and written again.
//!
//! Writing puts each section at the place its header says and zeros between them. [`Image::parse`] makes sure that
//! this gives the file it was read from, so that nothing outside the headers and sections can get lost.

use crate::error::{Error, Result};
use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, SectionHeader};
use object::{LittleEndian, bytes_of};
use std::borrow::Cow;
use std::ops::Range;

pub(crate) const LE: LittleEndian = LittleEndian;
type Header = FileHeader64<LittleEndian>;
pub(crate) type Segment = ProgramHeader64<LittleEndian>;

/// A section: its header and its bytes.
pub(crate) struct Section<'a> {
    pub name: String,
    pub header: SectionHeader64<LittleEndian>,
    /// Empty for `SHT_NOBITS`.
    pub data: Cow<'a, [u8]>,
}

impl Section<'_> {
    pub fn address(&self) -> u64 {
        self.header.sh_addr.get(LE)
    }

    pub fn size(&self) -> u64 {
        self.header.sh_size.get(LE)
    }

    pub fn section_type(&self) -> elf::SectionType {
        self.header.sh_type.get(LE)
    }

    /// Whether it takes memory when loaded.
    pub fn is_allocated(&self) -> bool {
        self.header.sh_flags.get(LE).contains(elf::SHF_ALLOC)
    }

    /// Whether it holds code.
    pub fn is_executable(&self) -> bool {
        self.header.sh_flags.get(LE).contains(elf::SHF_EXECINSTR)
    }

    /// Whether it takes room in the file.
    pub fn has_bytes(&self) -> bool {
        ![elf::SHT_NOBITS, elf::SHT_NULL].contains(&self.section_type())
    }

    /// Its addresses when loaded.
    pub fn addresses(&self) -> Range<u64> {
        self.address()..self.address().saturating_add(self.size())
    }
}

/// Bytes between two sections that alignment can explain.
const GAP_LIMIT: u64 = 0x2_0000;

/// A linked code object in parts.
pub(crate) struct Image<'a> {
    pub header: Header,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section<'a>>,
}

impl<'a> Image<'a> {
    /// Takes a linked code object apart.
    pub fn parse(bytes: &'a [u8]) -> Result<Image<'a>> {
        let damaged = |error: object::read::Error| Error::input(format!("damaged ELF file: {error}"));
        let header = Header::parse(bytes).map_err(damaged)?;
        if header.e_type.get(LE) != elf::ET_DYN {
            return Err(Error::unsupported(
                "only a linked code object (ET_DYN) has room that can be moved; link this one first, or change its source",
            ));
        }
        let table = header.sections(LE, bytes).map_err(damaged)?;
        let mut sections = Vec::new();
        for raw in table.iter() {
            let name = String::from_utf8_lossy(table.section_name(LE, raw).map_err(damaged)?).into_owned();
            sections.push(Section { name, header: *raw, data: Cow::Borrowed(raw.data(LE, bytes).map_err(damaged)?) });
        }
        let segments = header.program_headers(LE, bytes).map_err(damaged)?.to_vec();
        let image = Image { header: *header, segments, sections };
        match image.write_within(bytes.len()) {
            Some(again) if again == bytes => Ok(image),
            _ => Err(Error::unsupported(
                "the file has bytes outside its headers and sections, or sections that overlap; it cannot be moved apart",
            )),
        }
    }

    /// The file.
    pub fn write(&self) -> Result<Vec<u8>> {
        let end = self.extents().map(|(_, end)| end).max().unwrap_or(0);
        // Gaps are alignment only: damage must not make a file of gigabytes.
        let contents: u64 = self.sections.iter().map(|section| section.data.len() as u64 + GAP_LIMIT).sum();
        let end = Some(end).filter(|end| *end <= contents.saturating_add(GAP_LIMIT));
        end.and_then(|end| usize::try_from(end).ok())
            .and_then(|size| self.write_within(size))
            .ok_or_else(|| Error::unsupported("the new layout does not fit into a file"))
    }

    /// Start and end of every part in the file, section headers included.
    fn extents(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let sections = self.sections.iter().filter(|section| section.has_bytes());
        let contents = sections.map(|section| (section.header.sh_offset.get(LE), section.data.len() as u64));
        let segments = (self.header.e_phoff.get(LE), (self.segments.len() * size_of::<Segment>()) as u64);
        let headers =
            (self.header.e_shoff.get(LE), (self.sections.len() * size_of::<SectionHeader64<LittleEndian>>()) as u64);
        let all = contents.chain([(0, size_of::<Header>() as u64), segments, headers]);
        all.map(|(offset, size)| (offset, offset.saturating_add(size)))
    }

    /// The file, when it has exactly `size` bytes or fewer parts than that; none when a part lies outside.
    fn write_within(&self, size: usize) -> Option<Vec<u8>> {
        let mut file = vec![0; size];
        let mut put = |offset: u64, bytes: &[u8]| {
            let start = usize::try_from(offset).ok()?;
            file.get_mut(start..start.checked_add(bytes.len())?)?.copy_from_slice(bytes);
            Some(())
        };
        put(0, bytes_of(&self.header))?;
        for (index, segment) in self.segments.iter().enumerate() {
            put(self.header.e_phoff.get(LE).checked_add((index * size_of::<Segment>()) as u64)?, bytes_of(segment))?;
        }
        for (index, section) in self.sections.iter().enumerate() {
            if section.has_bytes() {
                put(section.header.sh_offset.get(LE), &section.data)?;
            }
            let at = index * size_of::<SectionHeader64<LittleEndian>>();
            put(self.header.e_shoff.get(LE).checked_add(at as u64)?, bytes_of(&section.header))?;
        }
        Some(file)
    }

    /// The section whose addresses hold `address`.
    pub fn section_at(&self, address: u64) -> Option<usize> {
        let holds = |s: &Section<'_>| s.is_allocated() && s.addresses().contains(&address);
        self.sections.iter().position(holds)
    }
}
