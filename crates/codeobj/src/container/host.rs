//! Host executables, libraries and objects: the sections that carry device code.
//!
//! `.hipFatBinSegment` holds only pointers into `.hip_fatbin` and is not read.

use crate::elf::Elf;
use crate::error::Result;

/// A section with device code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceSection {
    /// `.hip_fatbin`: bundles back to back.
    HipFatbin,
    /// `.llvm.offloading`: offload packages back to back.
    Offloading,
}

/// The sections of a host ELF file that may carry device code, in file order.
pub(super) fn device_sections(bytes: &[u8]) -> Result<Vec<(DeviceSection, &[u8])>> {
    let file = Elf::parse(bytes)?;
    let named = file.sections.iter().filter_map(|section| {
        let kind = match section.name.as_str() {
            ".hip_fatbin" => DeviceSection::HipFatbin,
            ".llvm.offloading" => DeviceSection::Offloading,
            _ => return None,
        };
        Some((kind, file.bytes_of(section)))
    });
    Ok(named.filter(|(_, bytes)| !bytes.is_empty()).collect())
}
