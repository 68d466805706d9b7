//! A shared library of a gigabyte whose `.hip_fatbin` section holds many offload bundles back to back, as the libraries
//! of ROCm do. The bytes that stand for instructions are a hole in the file, so it takes little disk.
//!
//! ```text
//! ELF header | bundle, padded to 4096 | bundle | … | .shstrtab | section headers
//! ```
//!
//! Each bundle holds an empty host entry, which shares its offset with the device entry, and one code object.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const PAGE: u64 = 4096;
const NAMES: &[u8] = b"\0.hip_fatbin\0.shstrtab\0";
const SECTION_HEADER_BYTES: u64 = 64;
const X86_64: u16 = 62;
const SHARED_OBJECT: u16 = 3;

/// Writes a library of about `bytes` with `count` bundles.
pub fn write(path: &Path, count: usize, bytes: u64, sources: &[PathBuf]) -> io::Result<()> {
    let objects = sources.iter().map(std::fs::read).collect::<io::Result<Vec<_>>>()?;
    let pitch = bytes.checked_div(count as u64).unwrap_or(0) / PAGE * PAGE;
    if objects.iter().any(|object| object.len() as u64 + PAGE > pitch) {
        return Err(io::Error::other(format!("an object is larger than the {pitch} bytes that each bundle gets")));
    }
    let mut file = File::create(path)?;
    for (index, object) in objects.iter().cycle().take(count).enumerate() {
        let start = PAGE + index as u64 * pitch;
        file.seek(SeekFrom::Start(start))?;
        file.write_all(&bundle_header(pitch - PAGE))?;
        file.seek(SeekFrom::Start(start + PAGE))?;
        file.write_all(object)?;
    }
    let fatbin_bytes = count as u64 * pitch;
    let names_at = PAGE + fatbin_bytes;
    file.seek(SeekFrom::Start(names_at))?;
    file.write_all(NAMES)?;
    let sections_at = (names_at + NAMES.len() as u64).next_multiple_of(8);
    file.seek(SeekFrom::Start(sections_at))?;
    file.write_all(&[0; SECTION_HEADER_BYTES as usize])?;
    file.write_all(&section_header(1, PAGE, fatbin_bytes, PAGE))?;
    file.write_all(&section_header(13, names_at, NAMES.len() as u64, 1))?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&elf_header(sections_at))
}

/// The header of a bundle whose device entry starts one page further on.
fn bundle_header(device_bytes: u64) -> Vec<u8> {
    let mut header = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    let entries = [("host-x86_64-unknown-linux-gnu-", 0), ("hipv4-amdgcn-amd-amdhsa--gfx942", device_bytes)];
    header.extend((entries.len() as u64).to_le_bytes());
    for (target, bytes) in entries {
        for number in [PAGE, bytes, target.len() as u64] {
            header.extend(number.to_le_bytes());
        }
        header.extend(target.bytes());
    }
    header
}

/// An `Elf64_Ehdr` without program headers.
fn elf_header(sections_at: u64) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    header.extend(SHARED_OBJECT.to_le_bytes());
    header.extend(X86_64.to_le_bytes());
    header.extend(1u32.to_le_bytes()); // e_version
    header.extend([0u8; 16]); // e_entry, e_phoff
    header.extend(sections_at.to_le_bytes());
    header.extend(0u32.to_le_bytes()); // e_flags
    // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum, e_shstrndx
    for number in [64u16, 56, 0, SECTION_HEADER_BYTES as u16, 3, 2] {
        header.extend(number.to_le_bytes());
    }
    header
}

/// An `Elf64_Shdr`. Type 1 is data, 3 is strings; the fatbin is loaded, so it has the flag for that and an address.
fn section_header(name: u32, offset: u64, bytes: u64, alignment: u64) -> Vec<u8> {
    let is_fatbin = alignment == PAGE;
    let mut header = name.to_le_bytes().to_vec();
    header.extend(if is_fatbin { 1u32 } else { 3 }.to_le_bytes());
    let (flags, address) = if is_fatbin { (2u64, offset) } else { (0, 0) };
    for number in [flags, address, offset, bytes, 0, alignment, 0] {
        header.extend(number.to_le_bytes());
    }
    header
}
