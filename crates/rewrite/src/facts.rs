//! Descriptors and metadata as text: as directives where LLVM makes the very bytes of them again, else as bytes with what
//! they mean in comments.

pub(crate) mod descriptor;
pub mod edits;
mod metadata;

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

use codeobj::CodeObject;
use llvm::{Assembler, Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection};

use crate::disasm::symbols::{directives, quoted};
use crate::error::Result;
use crate::object::Object;
use crate::tables::{Reference, Symbol};

/// Descriptors and metadata of one code object, written down.
pub struct Facts {
    /// By section and offset.
    descriptors: BTreeMap<(usize, u64), Placed>,
    /// The note.
    pub(crate) metadata: String,
}

/// A descriptor as text, with its label.
pub(crate) struct Placed {
    pub text: String,
    pub symbol: String,
    /// Bytes.
    pub size: u64,
    kernel: String,
    /// Whether the text is a block of directives, which takes binding and visibility from the kernel.
    is_block: bool,
}

impl Facts {
    /// Those of `object`, each checked by assembling it.
    ///
    /// # Errors
    /// As [`Assembler::assemble`]; metadata that is damaged.
    pub fn of(toolchain: &Toolchain, object: &Object<'_>) -> Result<Facts> {
        let mut facts = Facts { descriptors: BTreeMap::new(), metadata: String::new() };
        for kernel in &object.code_object.kernels {
            let Ok(placed) = &kernel.descriptor else { continue };
            let start = placed.file_range.start;
            let sections = object.code_object.sections.iter();
            let Some((section, offset)) = sections
                .enumerate()
                .find(|(_, section)| section.file_range.contains(&start))
                .map(|(index, section)| (index, start - section.file_range.start))
            else {
                continue;
            };
            let bytes = placed.descriptor.bytes();
            let block = object.family().and_then(|family| {
                descriptor::block(&placed.descriptor, family, &object.code_object.target, &kernel.name)
            });
            let assembled = match &block {
                Some(block) => descriptor::assemble(toolchain, object, block)?,
                None => None,
            };
            let symbol = format!("{}.kd", kernel.name);
            let block = block.filter(|_| assembled.is_some_and(|other| descriptor::same(bytes, &other)));
            let is_block = block.is_some();
            let text = block.unwrap_or_else(|| {
                let own = object.symbols.iter().find(|own| own.name == symbol);
                let symbol = own.map(directives).unwrap_or_default();
                symbol + &descriptor::as_bytes(&placed.descriptor, object.family(), &kernel.name)
            });
            let (size, kernel) = (bytes.len() as u64, kernel.name.clone());
            facts.descriptors.insert((section, offset as u64), Placed { text, symbol, size, kernel, is_block });
        }
        if let Some(range) = CodeObject::metadata_range(object.bytes)? {
            facts.metadata = metadata::write(toolchain, object, &object.bytes[range])?;
        }
        Ok(facts)
    }

    /// The descriptor that starts at an offset of a section.
    pub(crate) fn descriptor_at(&self, section: usize, offset: u64) -> Option<&Placed> {
        self.descriptors.get(&(section, offset))
    }

    /// Bytes of a section that are descriptors.
    pub(crate) fn descriptor_bytes(&self, section: usize) -> u64 {
        self.descriptors.range((section, 0)..=(section, u64::MAX)).map(|(_, placed)| placed.size).sum()
    }

    /// Where the next descriptor behind an offset starts.
    pub(crate) fn next_descriptor(&self, section: usize, offset: u64) -> Option<u64> {
        let mut behind = self.descriptors.range((section, offset.checked_add(1)?)..=(section, u64::MAX));
        behind.next().map(|((_, offset), _)| *offset)
    }

    /// Whether a field is a descriptor's.
    pub(crate) fn covers(&self, reference: &Reference) -> bool {
        let before = self.descriptors.range((reference.section, 0)..=(reference.section, reference.offset)).next_back();
        before.is_some_and(|((_, start), placed)| reference.offset - start < placed.size)
    }

    /// Gives descriptors binding and visibility where they have others than their kernels. The kernels of the names that
    /// come back must get theirs behind the descriptors.
    pub(crate) fn adjust_symbols(&mut self, symbols: &[Symbol]) -> HashSet<String> {
        let mut late = HashSet::new();
        let of = |name: &str| symbols.iter().find(|symbol| symbol.name == name);
        for placed in self.descriptors.values_mut().filter(|placed| placed.is_block) {
            let (Some(own), Some(kernel)) = (of(&placed.symbol), of(&placed.kernel)) else { continue };
            let name = quoted(&placed.symbol);
            if own.binding != kernel.binding && own.binding != 0 {
                let directive = if own.binding == 2 { "weak" } else { "globl" };
                let _ = writeln!(placed.text, "\t.{directive} {name}");
            }
            match (own.visibility, kernel.visibility) {
                (own, kernel) if own == kernel => {}
                (0, _) => {
                    late.insert(placed.kernel.clone());
                }
                (3, _) => placed.text += &format!("\t.protected {name}\n"),
                _ => placed.text += &format!("\t.hidden {name}\n"),
            }
        }
        late
    }
}

/// The content of a section of what LLVM makes of a text for `target`; none when it refuses the text.
fn section_of(toolchain: &Toolchain, target: &Target, source: &str, section: &str) -> Result<Option<Vec<u8>>> {
    let Some(object) = toolchain.assemble(target, source)?.object else { return Ok(None) };
    let file = ElfFile::<FileHeader64<LittleEndian>>::parse(&*object).ok();
    let section = file.as_ref().and_then(|file| file.section_by_name(section));
    Ok(section.and_then(|section| section.data().ok()).map(<[u8]>::to_vec))
}

/// What a text of ours begins with so that LLVM knows for what it is.
pub(crate) fn prologue(object: &Object<'_>) -> String {
    let mut text = format!("\t.amdgcn_target \"amdgcn-amd-amdhsa--{}\"\n", object.code_object.target.short());
    let _ = writeln!(text, "\t.amdhsa_code_object_version {}", object.code_object.abi_version + 2);
    text
}

/// Bytes as `.byte` lines.
fn byte_lines(bytes: &[u8]) -> String {
    bytes.chunks(16).fold(String::new(), |text, line| {
        let line: Vec<String> = line.iter().map(|byte| format!("{byte:#04x}")).collect();
        text + &format!("\t.byte {}\n", line.join(", "))
    })
}

/// The label of a kernel's descriptor.
fn descriptor_name(kernel: &str) -> String {
    quoted(&format!("{kernel}.kd")).into_owned()
}
