//! From a descriptor to the kernel's first instruction.
//!
//! A linker stores the distance in the descriptor. Before linking, the relocation `R_AMDGPU_REL64` of that field names
//! the function: it will store S + A − P, where P is the field's place.

use super::ObjectKind;
use super::symbols::{Spot, SymbolMap};
use crate::descriptor::{Descriptor, ENTRY_OFFSET_AT};
use crate::elf::Elf;
use crate::error::Result;
use std::collections::HashMap;

/// Finds entries in one code object.
pub(super) enum Entries {
    /// By the distance in the descriptor.
    Linked,
    /// By the relocation at each place.
    Relocated(HashMap<Spot, Spot>),
}

impl Entries {
    pub fn new(file: &Elf<'_>, symbols: &SymbolMap<'_, '_>, kind: ObjectKind) -> Result<Entries> {
        if kind == ObjectKind::Dynamic {
            return Ok(Entries::Linked);
        }
        let mut relocated = HashMap::new();
        let holders = file.sections.iter().enumerate().filter(|(_, s)| s.is_allocated() && !s.is_executable());
        for (section, _) in holders {
            for (table, rows) in file.relocations(section)? {
                // Entry − descriptor = S + A − P, and P is this far behind the descriptor.
                let correction = -(ENTRY_OFFSET_AT as i64);
                let targets =
                    rows.iter().filter_map(|row| Some((row.offset, symbols.relocated(&table, row, correction)?)));
                relocated.extend(targets.map(|(offset, target)| (Spot { section, offset }, target)));
            }
        }
        Ok(Entries::Relocated(relocated))
    }

    /// The entry of the kernel whose descriptor is at `spot`.
    pub fn of(
        &self,
        symbols: &SymbolMap<'_, '_>,
        spot: Spot,
        descriptor: &Descriptor,
    ) -> std::result::Result<Spot, String> {
        match self {
            Entries::Linked => {
                let distance = descriptor.kernel_code_entry_byte_offset();
                let address = symbols.address(spot).checked_add_signed(distance);
                address.and_then(|address| symbols.code_at(address)).ok_or_else(|| {
                    format!("its entry, {distance} bytes from its descriptor, is in no executable section")
                })
            }
            Entries::Relocated(targets) => {
                let field = Spot { offset: spot.offset + ENTRY_OFFSET_AT, ..spot };
                let target = targets.get(&field).copied();
                target.ok_or_else(|| "no relocation of its descriptor names its entry".to_string())
            }
        }
    }
}
