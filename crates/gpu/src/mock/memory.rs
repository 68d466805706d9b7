//! The mock's memory: an access outside an allocation is a fault. Addresses that were given back are given out again,
//! lowest first, as real allocators do: a kernel that remembers pointers must meet them again.

use std::collections::BTreeMap;

const FIRST: u64 = 0x7f00_0000_0000;
const ALIGNMENT: u64 = 256;

/// Allocations by address.
#[derive(Default)]
pub struct MockMemory {
    allocations: BTreeMap<u64, Vec<u8>>,
    /// What every word of LDS holds.
    pub lds: u32,
    /// Kernels other than the one that did it are slow.
    pub slowed: bool,
    /// They write the same number everywhere.
    pub patched: bool,
}

impl MockMemory {
    /// Bytes in use.
    pub fn in_use(&self) -> u64 {
        self.allocations.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// Takes the first gap that is large enough.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let mut at = FIRST;
        for (address, content) in &self.allocations {
            if at + bytes.max(1) <= *address {
                break;
            }
            at = (address + content.len().max(1) as u64).next_multiple_of(ALIGNMENT);
        }
        // What is not written before it is read shows: neither zero nor a number that looks right.
        self.allocations.insert(at, vec![0xa5; bytes as usize]);
        at
    }

    /// Gives an allocation back.
    pub fn free(&mut self, at: u64) -> Result<(), String> {
        self.allocations.remove(&at).map(|_| ()).ok_or_else(|| format!("{at:#x} is not allocated"))
    }

    /// The bytes at an address.
    pub fn at(&self, address: u64, length: usize) -> Result<&[u8], String> {
        let (base, content) = self.allocations.range(..=address).next_back().ok_or_else(|| fault(address))?;
        let start = (address - base) as usize;
        content.get(start..start.saturating_add(length)).ok_or_else(|| fault(address))
    }

    /// As [`MockMemory::at`], for writing.
    pub fn at_mut(&mut self, address: u64, length: usize) -> Result<&mut [u8], String> {
        let (base, content) = self.allocations.range_mut(..=address).next_back().ok_or_else(|| fault(address))?;
        let start = (address - base) as usize;
        content.get_mut(start..start.saturating_add(length)).ok_or_else(|| fault(address))
    }
}

fn fault(address: u64) -> String {
    format!("memory access fault at {address:#x}")
}
