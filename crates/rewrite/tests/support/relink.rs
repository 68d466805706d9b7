//! A code object written as assembly source with labels, so that `ld.lld` can link it again with something inserted.
//!
//! Code is written as words, but branch distances and PC-relative constants as differences of labels: what the
//! assembler resolves here owes nothing to the crate under test.

use codeobj::CodeObject;
use llvm::{Decoder, Listing, Target, Toolchain};
use object::elf::{self, FileHeader64, Sym64};
use object::read::elf::{FileHeader, SectionHeader};
use object::{LittleEndian, SectionIndex};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::process::Command;

const LE: LittleEndian = LittleEndian;

/// Bytes to insert at section offsets; labels at the same place stay before them.
pub type Insertions = BTreeMap<u64, Vec<u8>>;

/// Program headers and loaded bytes, which is what a loader sees. The ELF header counts sections, and is left out.
pub fn loadable(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let header = FileHeader64::<LittleEndian>::parse(bytes).expect("an ELF header");
    let mut image = Vec::new();
    for segment in header.program_headers(LE, bytes).expect("program headers") {
        let (offset, size) = (segment.p_offset.get(LE), segment.p_filesz.get(LE));
        let skipped = if offset == 0 { 64.min(size) } else { 0 };
        let content = bytes[(offset + skipped) as usize..(offset + size) as usize].to_vec();
        let content = if segment.p_type.get(LE) == elf::PT_LOAD { content } else { Vec::new() };
        image.push((format!("{segment:x?}"), content));
    }
    image
}

/// Links the object again, with `insertions`; an error says what the source cannot express.
pub fn relink(toolchain: &Toolchain, bytes: &[u8], insertions: &Insertions) -> Result<Vec<u8>, String> {
    let object = CodeObject::parse(bytes).map_err(|e| e.to_string())?;
    let target = Target::from_id(&object.target.short()).map_err(|e| e.to_string())?;
    let source = Source::new(toolchain, &target, bytes, &object)?.text(insertions)?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    std::fs::write(folder.path().join("in.s"), source).map_err(|e| e.to_string())?;
    let run = |tool: &str, arguments: &[&str]| {
        let output = Command::new(tool)
            .args(arguments)
            .current_dir(folder.path())
            .output()
            .map_err(|e| format!("{tool}: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() { Ok(()) } else { Err(format!("{tool}: {said}")) }
    };
    let (id, processor) = (object.target.short(), target.processor());
    let features: Vec<String> =
        id.split(':').skip(1).map(|f| format!("{}{}", &f[f.len() - 1..], &f[..f.len() - 1])).collect();
    let (mcpu, mattr) = (format!("-mcpu={processor}"), format!("-mattr={}", features.join(",")));
    run("llvm-mc-22", &["-triple=amdgcn-amd-amdhsa", &mcpu, &mattr, "-filetype=obj", "in.s", "-o", "in.o"])?;
    run("ld.lld-22", &["-shared", "in.o", "-o", "out.co"])?;
    std::fs::read(folder.path().join("out.co")).map_err(|e| e.to_string())
}

/// Offset and size of a constant, the base that it counts from, and the target.
type Constant = (u64, u64, u64, u64);

struct Source<'a> {
    bytes: &'a [u8],
    object: &'a CodeObject,
    code: &'a [u8],
    text: usize,
    listing: Listing,
    symbols: Vec<(String, Sym64<LittleEndian>)>,
}

impl<'a> Source<'a> {
    fn new(toolchain: &Toolchain, target: &Target, bytes: &'a [u8], object: &'a CodeObject) -> Result<Self, String> {
        let text = object.sections.iter().position(|s| s.name == ".text").ok_or("no .text")?;
        let known = [
            ".note",
            ".rodata",
            ".text",
            ".dynsym",
            ".gnu.hash",
            ".hash",
            ".dynstr",
            ".dynamic",
            ".relro_padding",
            ".bss",
        ];
        if let Some(other) = object.sections.iter().find(|s| s.is_allocated() && !known.contains(&&*s.name)) {
            return Err(format!("section {}", other.name));
        }
        let code = &bytes[object.sections[text].file_range.clone()];
        let listing = toolchain.decode(target, code).map_err(|e| e.to_string())?;
        let header = FileHeader64::<LittleEndian>::parse(bytes).map_err(|e| e.to_string())?;
        let sections = header.sections(LE, bytes).map_err(|e| e.to_string())?;
        let mut symbols = Vec::new();
        for (index, section) in sections.iter().enumerate() {
            if section.sh_type(LE) == elf::SHT_SYMTAB {
                let table =
                    sections.symbol_table_by_index(LE, bytes, SectionIndex(index)).map_err(|e| e.to_string())?;
                for symbol in table.iter().filter(|symbol| symbol.st_bind() != elf::STB_LOCAL) {
                    let name = table.symbol_name(LE, symbol).map_err(|e| e.to_string())?;
                    symbols.push((String::from_utf8_lossy(name).into_owned(), *symbol));
                }
            }
        }
        Ok(Source { bytes, object, code, text, listing, symbols })
    }

    fn address(&self) -> u64 {
        self.object.sections[self.text].address
    }

    /// Where each PC-relative computation adds: instruction offset to `(offset of the constant, bytes, base, target)`.
    fn computations(&self) -> Result<BTreeMap<u64, Constant>, String> {
        let mut found = BTreeMap::new();
        let instructions = self.listing.instructions();
        for (index, base) in instructions.iter().enumerate() {
            let mnemonic = self.listing.mnemonic(base);
            let word =
                |at: u64| u32::from_le_bytes(self.code[at as usize..at as usize + 4].try_into().expect("4 bytes"));
            let pc = u64::from(base.offset) + 4;
            let is_extension = |next: &llvm::Instruction| self.listing.mnemonic(next) == "s_sext_i32_i16";
            let skipped = usize::from(instructions.get(index + 1).is_some_and(is_extension));
            match (mnemonic, instructions.get(index + 1 + skipped..index + 3 + skipped)) {
                ("s_getpc_b64", Some([low, high])) if low.len == 8 && high.len == 8 => {
                    let names = [self.listing.mnemonic(low), self.listing.mnemonic(high)];
                    if names != ["s_add_u32", "s_addc_u32"] && names != ["s_add_co_u32", "s_add_co_ci_u32"] {
                        return Err(format!("{names:?} behind s_getpc_b64"));
                    }
                    let at = u64::from(low.offset) + 4;
                    let target = pc.wrapping_add(word(at) as i32 as i64 as u64);
                    found.insert(low.offset.into(), (at, 4, pc, target));
                }
                ("s_get_pc_i64", Some([add, _])) if self.listing.mnemonic(add) == "s_add_nc_u64" => {
                    let at = u64::from(add.offset) + 4;
                    let target = pc.wrapping_add(u64::from(word(at)) | u64::from(word(at + 4)) << 32);
                    found.insert(add.offset.into(), (at, 8, pc, target));
                }
                ("s_getpc_b64", _) => return Err("what follows s_getpc_b64".to_string()),
                _ => {}
            }
        }
        Ok(found)
    }

    fn text(&self, insertions: &Insertions) -> Result<String, String> {
        let mut s = format!(".amdgcn_target \"{}\"\n", self.object.target.canonical());
        // Symbols are in the order in which an assembler meets them.
        for (name, symbol) in self.symbols.iter().filter(|(_, symbol)| symbol.st_shndx.get(LE).0 < elf::SHN_LORESERVE) {
            let bind = if symbol.st_bind() == elf::STB_WEAK { "weak" } else { "globl" };
            _ = writeln!(s, ".{bind} \"{name}\"");
        }
        for section in &self.object.sections {
            let bytes = &self.bytes[section.file_range.clone()];
            match &*section.name {
                ".note" => {
                    s += ".section .note,\"a\",@note\n.p2align 2\n";
                    raw(&mut s, bytes);
                }
                ".rodata" => self.rodata(&mut s, section, bytes)?,
                ".bss" => {
                    s += ".bss\n.p2align 0\n";
                    let index = self.object.sections.iter().position(|other| other == section).expect("one of them");
                    self.declare(&mut s, section.address, index);
                    _ = writeln!(s, ".zero {}", section.size);
                }
                _ => {}
            }
        }
        self.code(&mut s, insertions)?;
        Ok(s)
    }

    fn declare(&self, s: &mut String, at: u64, section: usize) {
        for (name, symbol) in self
            .symbols
            .iter()
            .filter(|(_, y)| usize::from(y.st_shndx.get(LE).0) == section && y.st_value.get(LE) == at)
        {
            let kind = if symbol.st_type() == elf::STT_OBJECT {
                "object"
            } else if symbol.st_type() == elf::STT_FUNC {
                "function"
            } else {
                "notype"
            };
            let visibility = match symbol.st_visibility() {
                elf::STV_PROTECTED => format!(".protected \"{name}\"\n"),
                elf::STV_HIDDEN => format!(".hidden \"{name}\"\n"),
                _ => String::new(),
            };
            _ = writeln!(s, "{visibility}.type \"{name}\",@{kind}\n\"{name}\":");
            let size = symbol.st_size.get(LE);
            if size != 0 {
                let size = if section == self.text {
                    format!(".Lend{:x}-\"{name}\"", at - self.address() + size)
                } else {
                    size.to_string()
                };
                _ = writeln!(s, ".size \"{name}\", {size}");
            }
        }
    }

    fn rodata(&self, s: &mut String, section: &codeobj::code_object::Section, bytes: &[u8]) -> Result<(), String> {
        let index = self.object.sections.iter().position(|other| other == section).expect("one of them");
        let entries: BTreeMap<u64, (u64, i64)> = self
            .object
            .kernels
            .iter()
            .filter_map(|kernel| kernel.descriptor.as_ref().ok())
            .map(|d| (d.address - section.address, (d.address, d.descriptor.kernel_code_entry_byte_offset())))
            .collect();
        *s += ".section .rodata,\"a\",@progbits\n.p2align 6\n";
        let mut at = 0;
        while at < bytes.len() as u64 {
            self.declare(s, section.address + at, index);
            let field = at.checked_sub(16).and_then(|start| Some((start, entries.get(&start)?)));
            if let Some((_, (descriptor, distance))) = field {
                let entry = descriptor.wrapping_add_signed(*distance).wrapping_sub(self.address());
                _ = writeln!(s, ".quad .Lentry{entry:x}-.+16");
                at += 8;
            } else {
                raw(s, &bytes[at as usize..(at as usize + 4).min(bytes.len())]);
                at += 4;
            }
        }
        Ok(())
    }

    fn code(&self, s: &mut String, insertions: &Insertions) -> Result<(), String> {
        *s += ".text\n.p2align 8\n";
        let computations = self.computations()?;
        let mut labels = BTreeSet::new();
        for instruction in self.listing.instructions() {
            if let Some(target) = self.branch(instruction) {
                labels.insert(target);
            }
        }
        labels.extend(computations.values().flat_map(|(_, _, base, target)| [*base, *target]));
        let in_text = |y: &&(String, Sym64<LittleEndian>)| usize::from(y.1.st_shndx.get(LE).0) == self.text;
        let starts: BTreeSet<u64> =
            self.symbols.iter().filter(in_text).map(|(_, y)| y.st_value.get(LE) - self.address()).collect();
        let ends: BTreeSet<u64> = self
            .symbols
            .iter()
            .filter(in_text)
            .map(|(_, y)| y.st_value.get(LE) - self.address() + y.st_size.get(LE))
            .collect();
        let kernels: BTreeSet<u64> = self
            .object
            .kernels
            .iter()
            .filter_map(|k| k.code.as_ref().ok())
            .map(|c| c.address - self.address())
            .collect();
        let mut fills = BTreeSet::new();
        for kernel in kernels.iter().filter(|at| **at != 0) {
            let mut at = *kernel;
            while at >= 4 && kernel - at < 252 && self.code[at as usize - 4..at as usize] == [0, 0, 0x80, 0xbf] {
                at -= 4;
                fills.insert(at);
            }
        }
        for instruction in self.listing.instructions() {
            let at = u64::from(instruction.offset);
            self.place(s, at, &labels, &starts, &ends, &kernels);
            if let Some(bytes) = insertions.get(&at) {
                raw(s, bytes);
            }
            if fills.contains(&at) {
                continue;
            }
            let bytes = &self.code[at as usize..at as usize + usize::from(instruction.len)];
            if let Some(target) = self.branch(instruction).filter(|target| *target <= self.code.len() as u64) {
                _ = writeln!(
                    s,
                    "1: .short (.L{target:x}-1b-4)/4\n.short {:#x}",
                    u16::from_le_bytes([bytes[2], bytes[3]])
                );
                raw(s, &bytes[4..]);
            } else if let Some((constant, size, base, target)) = computations.get(&at) {
                raw(s, &bytes[..(constant - at) as usize]);
                let kind = if *size == 4 { ".long" } else { ".quad" };
                _ = writeln!(s, "{kind} .L{target:x}-.Lpc{base:x}");
            } else {
                raw(s, bytes);
            }
            if computations.values().any(|(_, _, base, _)| *base == at + 4) {
                _ = writeln!(s, ".Lpc{:x}:", at + 4);
            }
        }
        self.place(s, self.code.len() as u64, &labels, &starts, &ends, &kernels);
        Ok(())
    }

    fn place(
        &self,
        s: &mut String,
        at: u64,
        labels: &BTreeSet<u64>,
        starts: &BTreeSet<u64>,
        ends: &BTreeSet<u64>,
        kernels: &BTreeSet<u64>,
    ) {
        if ends.contains(&at) {
            _ = writeln!(s, ".Lend{at:x}:");
        }
        if kernels.contains(&at) {
            _ = writeln!(s, ".p2align 8\n.Lentry{at:x}:");
        }
        if starts.contains(&at) {
            self.declare(s, self.address() + at, self.text);
        }
        if labels.contains(&at) {
            _ = writeln!(s, ".L{at:x}:");
        }
    }

    fn branch(&self, instruction: &llvm::Instruction) -> Option<u64> {
        let mnemonic = self.listing.mnemonic(instruction);
        let is_branch =
            ["s_branch", "s_cbranch_", "s_call_", "s_subvector_loop"].iter().any(|name| mnemonic.starts_with(name));
        let at = instruction.offset as usize;
        let words = i16::from_le_bytes(self.code[at..at + 2].try_into().ok()?);
        is_branch.then(|| (at as u64 + 4).wrapping_add_signed(i64::from(words) * 4))
    }
}

fn raw(s: &mut String, bytes: &[u8]) {
    for chunk in bytes.chunks(4) {
        match chunk.try_into() {
            Ok(word) => _ = writeln!(s, ".long {:#x}", u32::from_le_bytes(word)),
            Err(_) => chunk.iter().for_each(|byte| _ = writeln!(s, ".byte {byte:#x}")),
        }
    }
}
