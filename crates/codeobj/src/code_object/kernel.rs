//! One kernel: its metadata entry, the descriptor that its symbol names, and the code that the descriptor names.
//!
//! ```text
//! metadata .symbol "k.kd" ──▶ symbol k.kd ──▶ 64 bytes ──▶ entry = address + kernel_code_entry_byte_offset
//!                                                           (relocatable: the R_AMDGPU_REL64 at byte 16)
//! ```

use super::code::{CodeMap, CodeRange, Spot};
use crate::descriptor::{self, Descriptor};
use crate::elf::{Elf, Relocation, Symbol};
use crate::error::Result;
use crate::metadata::KernelMetadata;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A kernel of a code object.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// `.name`, else `.symbol` without `.kd`; empty when the entry has neither.
    pub name: String,
    /// Its entry in the metadata.
    pub metadata: KernelMetadata,
    /// Its descriptor, or why it was not found.
    pub descriptor: std::result::Result<PlacedDescriptor, String>,
    /// Its body, from the entry on, or why it was not found.
    pub code: std::result::Result<CodeRange, String>,
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

/// Finds the parts of every entry, and names descriptors that no entry claims in `problems`.
pub(super) fn locate(
    file: &Elf<'_>,
    code: &CodeMap<'_>,
    entries: Vec<KernelMetadata>,
    problems: &mut Vec<String>,
) -> Result<Vec<Kernel>> {
    let mut relocations = Relocations::default();
    let mut claimed = HashSet::new();
    let mut kernels = Vec::with_capacity(entries.len());
    let mut spots = Vec::with_capacity(entries.len());
    for metadata in entries {
        let symbol = match (&metadata.symbol, &metadata.name) {
            (Some(symbol), _) => symbol.clone(),
            (None, Some(name)) => format!("{name}.kd"),
            (None, None) => String::new(),
        };
        let placed = find_descriptor(file, code, &symbol);
        let entry = match &placed {
            Ok((spot, placed)) => relocations.entry(file, code, *spot, placed)?,
            Err(_) => Err("its descriptor was not found".to_string()),
        };
        let name = metadata.name.clone().unwrap_or_else(|| symbol.trim_end_matches(".kd").to_string());
        claimed.insert(symbol);
        spots.push(entry.as_ref().ok().copied());
        let code = entry.map(|_| CodeRange { section: 0, address: 0, file_range: 0..0 });
        let descriptor = placed.map(|(_, placed)| placed);
        kernels.push(Kernel { name, metadata, descriptor, code, problems: Vec::new() });
    }
    for (kernel, body) in kernels.iter_mut().zip(code.bodies(&spots)) {
        if let Some(body) = body {
            kernel.code = body;
        }
        kernel.problems.extend(kernel.descriptor.as_ref().err().cloned());
        if kernel.descriptor.is_ok() {
            kernel.problems.extend(kernel.code.as_ref().err().cloned());
        }
    }
    problems.extend(unclaimed(code, &claimed));
    Ok(kernels)
}

fn find_descriptor(
    file: &Elf<'_>,
    code: &CodeMap<'_>,
    symbol_name: &str,
) -> std::result::Result<(Spot, PlacedDescriptor), String> {
    if symbol_name.is_empty() {
        return Err("its metadata entry has neither .name nor .symbol".to_string());
    }
    let symbol = code.symbol(symbol_name.as_bytes());
    let symbol = symbol.ok_or_else(|| format!("there is no symbol `{symbol_name}` for its descriptor"))?;
    let spot = code.spot(symbol).ok_or_else(|| format!("symbol `{symbol_name}` lies outside its section"))?;
    if symbol.size != 0 && symbol.size != descriptor::SIZE as u64 {
        return Err(format!("descriptor `{symbol_name}` is {} bytes, expected {}", symbol.size, descriptor::SIZE));
    }
    let holder = &file.sections[spot.section];
    let file_range = code.file_range(spot, descriptor::SIZE as u64);
    let cut = || format!("descriptor `{symbol_name}` at {}+{:#x} runs past the section", holder.name, spot.offset);
    let file_range = file_range.ok_or_else(cut)?;
    let start = spot.offset as usize;
    let bytes = file.bytes_of(holder).get(start..start + descriptor::SIZE).and_then(|b| b.try_into().ok());
    let descriptor = Descriptor::new(bytes.ok_or_else(cut)?);
    Ok((spot, PlacedDescriptor { descriptor, address: code.address(spot), file_range }))
}

/// Descriptors by their symbols' look that no metadata entry names: the runtime cannot launch them.
fn unclaimed(code: &CodeMap<'_>, claimed: &HashSet<String>) -> Vec<String> {
    let looks_like = |s: &&Symbol<'_>| s.is_object && s.size == descriptor::SIZE as u64 && s.name.ends_with(b".kd");
    let defined = code.symbols.iter().filter(looks_like).filter(|s| s.section.is_some());
    let mut names: Vec<String> = defined.map(|s| String::from_utf8_lossy(s.name).into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !claimed.contains(name));
    names.into_iter().map(|name| format!("descriptor `{name}` has no metadata entry")).collect()
}

/// Entry points; relocations are read once per section that holds descriptors.
#[derive(Default)]
struct Relocations<'a> {
    by_section: HashMap<usize, Vec<(Vec<Symbol<'a>>, HashMap<u64, Relocation>)>>,
}

impl<'a> Relocations<'a> {
    fn entry(
        &mut self,
        file: &Elf<'a>,
        code: &CodeMap<'_>,
        spot: Spot,
        placed: &PlacedDescriptor,
    ) -> Result<std::result::Result<Spot, String>> {
        let kind = object::elf::FileType(file.file_type());
        if kind != object::elf::ET_REL {
            let distance = placed.descriptor.kernel_code_entry_byte_offset();
            let address = placed.address.checked_add_signed(distance);
            return Ok(address.and_then(|address| code.code_at(address)).ok_or_else(|| {
                format!(
                    "its entry, {distance:+#x} from the descriptor at {:#x}, is in no executable section",
                    placed.address
                )
            }));
        }
        if !self.by_section.contains_key(&spot.section) {
            let mut tables = Vec::new();
            for (table, rows) in file.relocations(spot.section)? {
                let symbols = if table < file.sections.len() { file.symbol_table(table)? } else { Vec::new() };
                tables.push((symbols, rows.into_iter().map(|row| (row.offset, row)).collect()));
            }
            self.by_section.insert(spot.section, tables);
        }
        let at = spot.offset + descriptor::ENTRY_OFFSET_AT;
        // REL64 stores S + A − P with P 16 bytes behind the descriptor, so the entry is S + A − 16.
        let correction = -(descriptor::ENTRY_OFFSET_AT as i64);
        let tables = self.by_section.get(&spot.section).into_iter().flatten();
        let entry = tables.filter_map(|(symbols, rows)| code.relocated(symbols, rows.get(&at)?, correction)).next();
        Ok(entry.ok_or_else(|| "no relocation of its descriptor names its entry".to_string()))
    }
}
