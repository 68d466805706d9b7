//! A code object as the rewriter sees it: its sections of code, each divided into the spans of kernels and functions.
//!
//! A span runs from one entry to the next, so that the spans of a section cover all of it: what lies between functions
//! (padding, tables) belongs to the one before. Bounds come from entries and never from `st_size`, which hand-written
//! code leaves 0.

use std::collections::BTreeMap;
use std::ops::Range;

use codeobj::CodeObject;
use codeobj::code_object::{Kernel, NamedSymbol, ObjectKind, SymbolKind};
use codeobj::descriptor::Family;

use crate::error::{Error, Result};

/// A code object and what the rewriter needs to know of it.
pub struct Object<'a> {
    /// The whole file.
    pub bytes: &'a [u8],
    /// As parsed.
    pub code_object: CodeObject,
    /// Defined symbols, each once.
    pub symbols: Vec<NamedSymbol>,
    /// What its code is decoded for.
    pub target: llvm::Target,
    /// Its code.
    pub sections: Vec<CodeSection>,
}

/// A section with code.
#[derive(Clone, Debug)]
pub struct CodeSection {
    /// ELF index.
    pub index: usize,
    /// `.text`
    pub name: String,
    /// 0 in relocatable objects.
    pub address: u64,
    /// Its bytes in the file.
    pub file_range: Range<usize>,
    /// In address order, without gaps.
    pub spans: Vec<Span>,
}

/// From the entry of a kernel or function to the next one's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Bytes of the section.
    pub range: Range<u32>,
    /// The entry's name; empty for code in front of the first entry.
    pub name: String,
    /// Index of the kernel in [`CodeObject::kernels`] whose entry this is.
    pub kernel: Option<usize>,
}

impl<'a> Object<'a> {
    /// Parses a code object.
    ///
    /// # Errors
    /// As [`CodeObject::parse`]; a processor that has no name here; a section of 4 GiB.
    pub fn parse(bytes: &'a [u8]) -> Result<Self> {
        let code_object = CodeObject::parse(bytes)?;
        let mut symbols = CodeObject::symbols(bytes)?;
        let mut seen = std::collections::HashSet::new();
        symbols.retain(|s| s.kind != SymbolKind::Other && seen.insert((s.name.clone(), s.section, s.value)));
        let target = target(&code_object)?;
        let mut object = Object { bytes, code_object, symbols, target, sections: Vec::new() };
        let executable = object.code_object.sections.iter().enumerate();
        object.sections = executable
            .filter(|(_, section)| section.is_executable() && !section.file_range.is_empty())
            .map(|(index, _)| object.code_section(index))
            .collect::<Result<_>>()?;
        Ok(object)
    }

    /// The code of a section.
    pub fn code(&self, section: &CodeSection) -> &'a [u8] {
        &self.bytes[section.file_range.clone()]
    }

    /// The kernel whose span this is.
    pub fn kernel(&self, span: &Span) -> Option<&Kernel> {
        self.code_object.kernels.get(span.kernel?)
    }

    /// The family of processors, when this program knows its descriptors.
    pub fn family(&self) -> Option<Family> {
        self.code_object.target.processor.as_deref().and_then(Family::of)
    }

    /// Symbols of a section with their offsets, in address order.
    pub fn symbols_of(&self, section: &CodeSection) -> Vec<(u32, &NamedSymbol)> {
        let offset = |symbol: &NamedSymbol| self.offset_in(section, symbol.section, symbol.value);
        let mut found: Vec<(u32, &NamedSymbol)> =
            self.symbols.iter().filter_map(|symbol| Some((offset(symbol)?, symbol))).collect();
        found.sort_by_key(|(offset, symbol)| (*offset, symbol.kind != SymbolKind::Function));
        found
    }

    fn offset_in(&self, section: &CodeSection, index: usize, value: u64) -> Option<u32> {
        let offset = value.checked_sub(section.address)?;
        (index == section.index && offset <= section.file_range.len() as u64).then_some(offset as u32)
    }

    fn code_section(&self, index: usize) -> Result<CodeSection> {
        let section = &self.code_object.sections[index];
        let Ok(size) = u32::try_from(section.file_range.len()) else {
            return Err(Error::input(format!("section {} has 4 GiB of code or more", section.name)));
        };
        let address = if self.code_object.kind == ObjectKind::Relocatable { 0 } else { section.address };
        let (name, file_range) = (section.name.clone(), section.file_range.clone());
        let mut found = CodeSection { index, name, address, file_range, spans: Vec::new() };
        let mut starts: BTreeMap<u32, (String, Option<usize>)> = BTreeMap::new();
        for (offset, symbol) in self.symbols_of(&found) {
            if symbol.kind == SymbolKind::Function && offset < size {
                starts.entry(offset).or_insert_with(|| (symbol.name.clone(), None));
            }
        }
        for (number, kernel) in self.code_object.kernels.iter().enumerate() {
            let Ok(code) = &kernel.code else { continue };
            if let Some(offset) = self.offset_in(&found, code.section, code.address).filter(|offset| *offset < size) {
                starts.entry(offset).or_insert_with(|| (kernel.name.clone(), None)).1.get_or_insert(number);
            }
        }
        starts.entry(0).or_default();
        let ends = starts.keys().copied().skip(1).chain([size]);
        found.spans = starts
            .iter()
            .zip(ends)
            .map(|((start, (name, kernel)), end)| Span { range: *start..end, name: name.clone(), kernel: *kernel })
            .collect();
        Ok(found)
    }
}

/// In wave64 when a kernel says so on a processor that has the choice.
fn target(code_object: &CodeObject) -> Result<llvm::Target> {
    let id = &code_object.target;
    let Some(processor) = &id.processor else {
        return Err(Error::input(format!("the {} has no name here: nothing can decode its code", id.text)));
    };
    let wave64 = Family::of(processor).is_some_and(Family::has_wave32)
        && code_object
            .kernels
            .iter()
            .any(|kernel| kernel.descriptor.as_ref().is_ok_and(|placed| !placed.descriptor.wavefront_size32()));
    Ok(llvm::Target::from_id(&id.short())?.with_wave64(wave64))
}
