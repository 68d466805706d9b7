//! Where the body of each kernel and function begins and ends.
//!
//! Hand-written code objects leave `st_size` 0, so a body without a size runs to the next function's start. Labels
//! (`STT_NOTYPE`) start no function.

use super::symbols::{Spot, SymbolMap};
use crate::elf::Symbol;
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

/// The starts of all bodies.
pub(super) struct Bodies<'a, 'f, 's> {
    symbols: &'s SymbolMap<'a, 'f>,
    /// Entries of kernels, sorted.
    entries: Vec<Spot>,
    /// Entries and function symbols with the symbol's size or 0, sorted; one per spot, the largest size.
    starts: Vec<(Spot, u64)>,
}

impl<'a, 'f, 's> Bodies<'a, 'f, 's> {
    pub fn new(symbols: &'s SymbolMap<'a, 'f>, mut entries: Vec<Spot>) -> Bodies<'a, 'f, 's> {
        entries.sort_unstable();
        let sized = function_symbols(symbols).map(|(spot, symbol)| (spot, symbol.size));
        let mut starts: Vec<(Spot, u64)> = sized.chain(entries.iter().map(|spot| (*spot, 0))).collect();
        starts.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
        starts.dedup_by_key(|(spot, _)| *spot);
        Bodies { symbols, entries, starts }
    }

    /// From `spot` for the size that its symbol states, else to the next start, else to the section's end.
    pub fn body(&self, spot: Spot) -> Result<CodeRange, String> {
        let section = self.symbols.section(spot);
        let after = self.starts.partition_point(|(start, _)| *start <= spot);
        let stated =
            after.checked_sub(1).map(|at| self.starts[at]).filter(|(start, size)| *start == spot && *size != 0);
        let next = self.starts.get(after).filter(|(next, _)| next.section == spot.section);
        let size = match (stated, next) {
            (Some((_, size)), _) => size,
            (None, Some((next, _))) => next.offset - spot.offset,
            (None, None) => section.size - spot.offset,
        };
        let file_range = self.symbols.file_range(spot, size).ok_or_else(|| {
            format!("its code, {size:#x} bytes at {}+{:#x}, runs past the section", section.name, spot.offset)
        })?;
        Ok(CodeRange { section: spot.section, address: self.symbols.address(spot), file_range })
    }

    /// Functions that are no kernel, in address order.
    pub fn functions(&self) -> Vec<Function> {
        let mut named: Vec<(Spot, &[u8])> =
            function_symbols(self.symbols).map(|(spot, symbol)| (spot, symbol.name)).collect();
        named.sort_unstable();
        named.dedup();
        let others = named.into_iter().filter(|(spot, _)| self.entries.binary_search(spot).is_err());
        let function = |(spot, name): (Spot, &[u8])| {
            let code = self.body(spot).ok()?;
            Some(Function { name: String::from_utf8_lossy(name).into_owned(), code })
        };
        others.filter_map(function).collect()
    }
}

fn function_symbols<'s, 'a>(symbols: &'s SymbolMap<'a, '_>) -> impl Iterator<Item = (Spot, &'s Symbol<'a>)> {
    let functions = symbols.defined().iter().filter(|symbol| symbol.is_function);
    let placed = functions.filter_map(|symbol| Some((symbols.spot(symbol)?, symbol)));
    placed.filter(|(spot, _)| symbols.section(*spot).is_executable())
}
