//! Where code is: symbols by name, function starts, and where each body ends.
//!
//! Hand-written code objects leave `st_size` 0, so a body without a size runs to the next function's start. Labels
//! (`STT_NOTYPE`) start no function.

use super::{Kernel, ObjectKind};
use crate::elf::{Elf, Relocation, Section, Symbol};
use crate::error::Result;
use std::collections::HashMap;
use std::ops::Range;

/// The body of a kernel or function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeRange {
    /// ELF index of its section.
    pub section: usize,
    /// Address of the first instruction; in relocatable objects the offset into the section.
    pub address: u64,
    /// Its bytes in the code object.
    pub file_range: Range<usize>,
}

/// A device function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Symbol name; bytes that are no UTF-8 are replaced.
    pub name: String,
    /// Its body.
    pub code: CodeRange,
}

/// A place in a section, in the same terms for linked and relocatable objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spot {
    pub section: usize,
    pub offset: u64,
}

/// Symbols of a code object, prepared for look-ups.
pub(super) struct CodeMap<'a> {
    kind: ObjectKind,
    sections: Vec<Section>,
    pub symbols: Vec<Symbol<'a>>,
    by_name: HashMap<&'a [u8], usize>,
    /// Function symbols in executable sections with their sizes, sorted; one per spot, the largest size.
    functions: Vec<(Spot, u64)>,
}

impl<'a> CodeMap<'a> {
    pub fn new(file: &Elf<'a>, kind: ObjectKind) -> Result<CodeMap<'a>> {
        let symbols = file.symbols()?;
        let mut map = CodeMap {
            kind,
            sections: file.sections.clone(),
            by_name: HashMap::with_capacity(symbols.len()),
            symbols,
            functions: Vec::new(),
        };
        for (index, symbol) in map.symbols.iter().enumerate() {
            if symbol.section.is_some() {
                map.by_name.entry(symbol.name).or_insert(index);
            }
        }
        let mut functions: Vec<(Spot, u64)> =
            map.function_symbols().map(|(spot, symbol)| (spot, symbol.size)).collect();
        functions.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        functions.dedup_by_key(|(spot, _)| *spot);
        map.functions = functions;
        Ok(map)
    }

    /// The defined symbol of this name.
    pub fn symbol(&self, name: &[u8]) -> Option<&Symbol<'a>> {
        self.by_name.get(name).map(|index| &self.symbols[*index])
    }

    /// Where a symbol is; none when its value is outside its section.
    pub fn spot(&self, symbol: &Symbol<'_>) -> Option<Spot> {
        let section = symbol.section?;
        let offset = symbol.value.checked_sub(self.base(section))?;
        (offset <= self.sections[section].size).then_some(Spot { section, offset })
    }

    /// The executable section around an address of a linked object.
    pub fn code_at(&self, address: u64) -> Option<Spot> {
        let around = |s: &Section| s.is_executable() && (s.address..s.address + s.size).contains(&address);
        let section = self.sections.iter().position(around)?;
        Some(Spot { section, offset: address - self.sections[section].address })
    }

    /// What a relocation against a symbol of `table` points to.
    pub fn relocated(&self, table: &[Symbol<'_>], relocation: &Relocation, correction: i64) -> Option<Spot> {
        let spot = self.spot(table.get(relocation.symbol)?)?;
        let offset = spot.offset.checked_add_signed(relocation.addend.checked_add(correction)?)?;
        let section = &self.sections[spot.section];
        (section.is_executable() && offset < section.size).then_some(Spot { offset, ..spot })
    }

    /// Address of a spot; in relocatable objects the offset.
    pub fn address(&self, spot: Spot) -> u64 {
        self.base(spot.section) + spot.offset
    }

    /// `size` bytes of the file from a spot on.
    pub fn file_range(&self, spot: Spot, size: u64) -> Option<Range<usize>> {
        let bytes = &self.sections[spot.section].file_range;
        let start = (bytes.start as u64).checked_add(spot.offset)?;
        let end = start.checked_add(size)?;
        (end <= bytes.end as u64).then_some(start as usize..end as usize)
    }

    /// The bodies that start at `entries`: to the symbol's size, else to the next start, else to the section's end.
    pub fn bodies(&self, entries: &[Option<Spot>]) -> Vec<Option<std::result::Result<CodeRange, String>>> {
        let starts = self.starts(entries.iter().flatten().copied());
        entries.iter().map(|entry| entry.map(|spot| self.body(spot, &starts))).collect()
    }

    /// Functions that are no kernel, in address order.
    pub fn functions(&self, kernels: &[Kernel]) -> Vec<Function> {
        let entries = kernels
            .iter()
            .filter_map(|kernel| kernel.code.as_ref().ok())
            .map(|code| Spot { section: code.section, offset: code.address - self.base(code.section) });
        let entries: Vec<Spot> = entries.collect();
        let starts = self.starts(entries.iter().copied());
        let is_entry: std::collections::HashSet<Spot> = entries.into_iter().collect();
        let mut named: Vec<(Spot, &[u8])> = self.function_symbols().map(|(spot, symbol)| (spot, symbol.name)).collect();
        named.sort_unstable();
        named.dedup();
        let others = named.into_iter().filter(|(spot, _)| !is_entry.contains(spot));
        let function = |(spot, name): (Spot, &[u8])| {
            let code = self.body(spot, &starts).ok()?;
            Some(Function { name: String::from_utf8_lossy(name).into_owned(), code })
        };
        others.filter_map(function).collect()
    }

    fn starts(&self, entries: impl Iterator<Item = Spot>) -> Vec<Spot> {
        let mut starts: Vec<Spot> = self.functions.iter().map(|(spot, _)| *spot).chain(entries).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    fn body(&self, spot: Spot, starts: &[Spot]) -> std::result::Result<CodeRange, String> {
        let section = &self.sections[spot.section];
        let sized =
            self.functions.binary_search_by_key(&spot, |(start, _)| *start).map_or(0, |at| self.functions[at].1);
        let size = if sized != 0 {
            sized
        } else {
            let next = starts.get(starts.partition_point(|start| *start <= spot));
            let end = next.filter(|next| next.section == spot.section).map_or(section.size, |next| next.offset);
            end - spot.offset
        };
        let file_range = self.file_range(spot, size).ok_or_else(|| {
            format!("its code, {size:#x} bytes at {}+{:#x}, runs past the section", section.name, spot.offset)
        })?;
        Ok(CodeRange { section: spot.section, address: self.address(spot), file_range })
    }

    fn function_symbols(&self) -> impl Iterator<Item = (Spot, &Symbol<'a>)> {
        let functions = self.symbols.iter().filter(|symbol| symbol.is_function);
        let placed = functions.filter_map(|symbol| Some((self.spot(symbol)?, symbol)));
        placed.filter(|(spot, _)| self.sections[spot.section].is_executable())
    }

    fn base(&self, section: usize) -> u64 {
        match self.kind {
            ObjectKind::Relocatable => 0,
            ObjectKind::Dynamic => self.sections[section].address,
        }
    }
}
