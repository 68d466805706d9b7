//! One kernel: its metadata entry, the descriptor that its symbol names, and the code that the descriptor names.
//!
//! ```text
//! metadata .symbol "k.kd" ──▶ symbol k.kd ──▶ 64 bytes ──▶ entry ──▶ body
//! ```

use super::code::{Bodies, CodeRange};
use super::entry::Entries;
use super::symbols::{Spot, SymbolMap};
use crate::descriptor::{self, Descriptor};
use crate::elf::{Elf, Symbol};
use crate::metadata::KernelMetadata;
use std::collections::HashSet;
use std::ops::Range;

/// A kernel of a code object.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// `.name`, else `.symbol` without `.kd`; empty when the entry has neither.
    pub name: String,
    /// Its entry in the metadata.
    pub metadata: KernelMetadata,
    /// Its descriptor, or why it was not found.
    pub descriptor: Result<PlacedDescriptor, String>,
    /// Its body, from the entry on, or why it was not found.
    pub code: Result<CodeRange, String>,
    /// What contradicts itself about this kernel: missing parts, facts recorded twice that differ. What is wrong
    /// inside the metadata entry is in `metadata.problems`.
    pub problems: Vec<String>,
}

/// A descriptor and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedDescriptor {
    /// The 64 bytes, decoded.
    pub descriptor: Descriptor,
    /// Its address; in relocatable objects the offset into its section.
    pub address: u64,
    /// Its bytes in the code object.
    pub file_range: Range<usize>,
}

/// A kernel whose body is not bounded yet.
pub(super) struct Found {
    symbol: String,
    metadata: KernelMetadata,
    descriptor: Result<PlacedDescriptor, String>,
    entry: Result<Spot, String>,
}

impl Found {
    /// Follows the entry's symbol to its descriptor and on to its code.
    pub fn new(file: &Elf<'_>, symbols: &SymbolMap<'_, '_>, entries: &Entries, metadata: KernelMetadata) -> Found {
        let symbol = match (&metadata.symbol, &metadata.name) {
            (Some(symbol), _) => symbol.clone(),
            (None, Some(name)) => format!("{name}.kd"),
            (None, None) => String::new(),
        };
        let placed = find_descriptor(file, symbols, &symbol);
        let entry = match &placed {
            Ok((spot, placed)) => entries.of(symbols, *spot, &placed.descriptor),
            Err(_) => Err("its descriptor was not found".to_string()),
        };
        Found { symbol, metadata, descriptor: placed.map(|(_, placed)| placed), entry }
    }

    /// Where its code starts.
    pub fn entry(&self) -> Option<Spot> {
        self.entry.as_ref().ok().copied()
    }

    /// The kernel, now that all starts are known.
    pub fn with_body(self, bodies: &Bodies<'_, '_, '_>) -> Kernel {
        let code = self.entry.and_then(|spot| bodies.body(spot));
        // Without a descriptor there is no code either; one reason is enough.
        let missing = self.descriptor.as_ref().err().or(code.as_ref().err());
        Kernel {
            name: self.metadata.name.clone().unwrap_or_else(|| self.symbol.trim_end_matches(".kd").to_string()),
            problems: missing.into_iter().cloned().collect(),
            metadata: self.metadata,
            descriptor: self.descriptor,
            code,
        }
    }
}

fn find_descriptor(
    file: &Elf<'_>,
    symbols: &SymbolMap<'_, '_>,
    name: &str,
) -> Result<(Spot, PlacedDescriptor), String> {
    const SIZE: u64 = descriptor::SIZE as u64;
    if name.is_empty() {
        return Err("its metadata entry has neither .name nor .symbol".to_string());
    }
    let symbol = symbols.get(name).ok_or_else(|| format!("there is no symbol `{name}` for its descriptor"))?;
    let spot = symbols.spot(symbol).ok_or_else(|| format!("symbol `{name}` lies outside its section"))?;
    if ![0, SIZE].contains(&symbol.size) {
        return Err(format!("descriptor `{name}` is {} bytes, expected {SIZE}", symbol.size));
    }
    let section = symbols.section(spot);
    let past = || format!("descriptor `{name}` at {}+{:#x} runs past the section", section.name, spot.offset);
    let file_range = symbols.file_range(spot, SIZE).ok_or_else(past)?;
    let bytes = file.bytes.get(file_range.clone()).and_then(|bytes| bytes.try_into().ok()).ok_or_else(past)?;
    Ok((spot, PlacedDescriptor { descriptor: Descriptor::new(bytes), address: symbols.address(spot), file_range }))
}

/// Problems: objects that look like descriptors and that no metadata entry names, so that the runtime cannot launch
/// their kernels.
pub(super) fn unclaimed(symbols: &SymbolMap<'_, '_>, found: &[Found]) -> Vec<String> {
    let claimed: HashSet<&str> = found.iter().map(|found| &*found.symbol).collect();
    let is_descriptor = |s: &&Symbol<'_>| s.is_object && s.size == descriptor::SIZE as u64 && s.name.ends_with(b".kd");
    let descriptors = symbols.defined().iter().filter(is_descriptor);
    let mut names: Vec<String> = descriptors.map(|s| String::from_utf8_lossy(s.name).into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !claimed.contains(&**name));
    names.into_iter().map(|name| format!("descriptor `{name}` has no metadata entry")).collect()
}
