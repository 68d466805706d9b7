//! Symbols and places of a code object, in the same terms for linked and relocatable ones.

use super::ObjectKind;
use crate::elf::{Elf, Relocation, Section, Symbol};
use crate::error::Result;
use std::collections::HashMap;
use std::ops::Range;

/// A place in a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub section: usize,
    pub offset: u64,
}

/// The symbols of a code object, prepared for look-ups.
pub(super) struct SymbolMap<'a, 'f> {
    kind: ObjectKind,
    sections: &'f [Section],
    symbols: Vec<Symbol<'a>>,
    by_name: HashMap<&'a [u8], usize>,
}

impl<'a, 'f> SymbolMap<'a, 'f> {
    pub fn new(file: &'f Elf<'a>, kind: ObjectKind) -> Result<SymbolMap<'a, 'f>> {
        let mut symbols = file.symbols()?;
        symbols.retain(|symbol| symbol.section.is_some());
        let mut by_name = HashMap::with_capacity(symbols.len());
        for (index, symbol) in symbols.iter().enumerate() {
            by_name.entry(symbol.name).or_insert(index);
        }
        Ok(SymbolMap { kind, sections: &file.sections, symbols, by_name })
    }

    /// All defined symbols; those that are in two tables come twice.
    pub fn defined(&self) -> &[Symbol<'a>] {
        &self.symbols
    }

    /// The defined symbol of this name.
    pub fn get(&self, name: &str) -> Option<&Symbol<'a>> {
        self.by_name.get(name.as_bytes()).map(|index| &self.symbols[*index])
    }

    pub fn section(&self, spot: Spot) -> &'f Section {
        &self.sections[spot.section]
    }

    /// Where a symbol is; none when its value is outside its section.
    pub fn spot(&self, symbol: &Symbol<'_>) -> Option<Spot> {
        let section = symbol.section?;
        let offset = symbol.value.checked_sub(self.base(section))?;
        (offset <= self.sections[section].size).then_some(Spot { section, offset })
    }

    /// The place of an address of a linked object, when it is code.
    pub fn code_at(&self, address: u64) -> Option<Spot> {
        let around = |s: &Section| s.is_executable() && (s.address..s.address + s.size).contains(&address);
        let section = self.sections.iter().position(around)?;
        Some(Spot { section, offset: address - self.sections[section].address })
    }

    /// What a relocation against a symbol of `table` points to, `correction` bytes on, when it is code.
    pub fn relocated(&self, table: &[Symbol<'_>], relocation: &Relocation, correction: i64) -> Option<Spot> {
        let spot = self.spot(table.get(relocation.symbol)?)?;
        let offset = spot.offset.checked_add_signed(relocation.addend.checked_add(correction)?)?;
        let section = self.section(spot);
        (section.is_executable() && offset < section.size).then_some(Spot { offset, ..spot })
    }

    /// Address of a spot; in relocatable objects the offset.
    pub fn address(&self, spot: Spot) -> u64 {
        self.base(spot.section) + spot.offset
    }

    /// `size` bytes of the file from a spot on, when they are all in its section.
    pub fn file_range(&self, spot: Spot, size: u64) -> Option<Range<usize>> {
        let bytes = &self.section(spot).file_range;
        let start = (bytes.start as u64).checked_add(spot.offset)?;
        let end = start.checked_add(size)?;
        (end <= bytes.end as u64).then_some(start as usize..end as usize)
    }

    fn base(&self, section: usize) -> u64 {
        match self.kind {
            ObjectKind::Relocatable => 0,
            ObjectKind::Dynamic => self.sections[section].address,
        }
    }
}
