//! The symbols of a code object as a caller of the library needs them: the rewriter names branch targets by them and
//! writes them down again.

use super::CodeObject;
use crate::elf::Elf;
use crate::error::Result;
use object::elf;
use std::ops::Range;

/// A defined symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSymbol {
    /// Name; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// ELF index of its section.
    pub section: usize,
    /// `st_value`: an address, in relocatable objects an offset into the section.
    pub value: u64,
    /// `st_size`, 0 in most hand-written code objects.
    pub size: u64,
    /// What it names.
    pub kind: SymbolKind,
    /// Who may see it while linking.
    pub binding: Binding,
    /// Who may see it when loaded.
    pub visibility: Visibility,
}

/// `STT_*`, as far as code objects use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// `STT_FUNC`
    Function,
    /// `STT_OBJECT`
    Object,
    /// `STT_NOTYPE`
    Label,
    /// Sections, files and what has no use here.
    Other,
}

/// `STB_*`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// `STB_LOCAL`
    Local,
    /// `STB_GLOBAL`
    Global,
    /// `STB_WEAK`
    Weak,
}

/// `STV_*`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// `STV_DEFAULT`
    Default,
    /// `STV_HIDDEN`, and `STV_INTERNAL`, which AMD GPUs treat alike.
    Hidden,
    /// `STV_PROTECTED`
    Protected,
}

impl CodeObject {
    /// The defined symbols of the code object in `bytes`, those of `.symtab` before those of `.dynsym`, in the order of
    /// the tables; a symbol is usually in both.
    ///
    /// # Errors
    /// As [`CodeObject::parse`], for headers and symbol tables.
    pub fn symbols(bytes: &[u8]) -> Result<Vec<NamedSymbol>> {
        let defined = |symbol: &crate::elf::Symbol<'_>| {
            Some(NamedSymbol {
                name: String::from_utf8_lossy(symbol.name).into_owned(),
                section: symbol.section?,
                value: symbol.value,
                size: symbol.size,
                kind: match symbol.symbol_type {
                    elf::STT_FUNC => SymbolKind::Function,
                    elf::STT_OBJECT => SymbolKind::Object,
                    elf::STT_NOTYPE => SymbolKind::Label,
                    _ => SymbolKind::Other,
                },
                binding: match symbol.binding {
                    elf::STB_LOCAL => Binding::Local,
                    elf::STB_WEAK => Binding::Weak,
                    _ => Binding::Global,
                },
                visibility: match symbol.visibility {
                    elf::STV_DEFAULT => Visibility::Default,
                    elf::STV_PROTECTED => Visibility::Protected,
                    _ => Visibility::Hidden,
                },
            })
        };
        Ok(Elf::parse(bytes)?.symbols()?.iter().filter_map(defined).collect())
    }

    /// Where the content of the metadata note lies in `bytes`: MessagePack. None when there is no note with content.
    ///
    /// # Errors
    /// As [`CodeObject::parse`], for headers and notes.
    pub fn metadata_range(bytes: &[u8]) -> Result<Option<Range<usize>>> {
        let file = Elf::parse(bytes)?;
        let mut notes = file.section_notes()?;
        notes.retain(super::is_metadata);
        if notes.is_empty() {
            notes = file.segment_notes()?;
            notes.retain(super::is_metadata);
        }
        let range = |descriptor: &[u8]| {
            let start = descriptor.as_ptr() as usize - bytes.as_ptr() as usize;
            start..start + descriptor.len()
        };
        Ok(notes.iter().find(|note| !note.descriptor.is_empty()).map(|note| range(note.descriptor)))
    }
}
