//! Descriptors and metadata as text: as directives where LLVM makes the very bytes of them again, else as bytes with what
//! they mean in comments.

pub(crate) mod descriptor;
pub mod edits;
mod metadata;

use std::fmt::Write;

use codeobj::CodeObject;
use llvm::{Assembler, Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection};

use crate::disasm::symbols::{directives, quoted};
use crate::error::Result;
use crate::object::Object;

/// Descriptors and metadata of one code object, written down.
pub struct Facts {
    text: String,
}

impl Facts {
    /// Those of `object`, each checked by assembling it.
    ///
    /// # Errors
    /// As [`Assembler::assemble`]; metadata that is damaged.
    pub fn of(toolchain: &Toolchain, object: &Object<'_>) -> Result<Facts> {
        let mut text = String::new();
        for kernel in &object.code_object.kernels {
            let Ok(placed) = &kernel.descriptor else { continue };
            let bytes = placed.descriptor.bytes();
            let block = object.family().and_then(|family| {
                descriptor::block(&placed.descriptor, family, &object.code_object.target, &kernel.name)
            });
            let assembled = match &block {
                Some(block) => descriptor::assemble(toolchain, object, block)?,
                None => None,
            };
            text += "\n\t.section .rodata,\"a\",@progbits\n\t.p2align 6\n";
            match block.filter(|_| assembled.is_some_and(|other| descriptor::same(bytes, &other))) {
                Some(block) => text += &block,
                None => {
                    let symbol = format!("{}.kd", kernel.name);
                    if let Some(symbol) = object.symbols.iter().find(|own| own.name == symbol) {
                        text += &directives(symbol);
                    }
                    text += &descriptor::as_bytes(&placed.descriptor, object.family(), &kernel.name);
                }
            }
        }
        if let Some(range) = CodeObject::metadata_range(object.bytes)? {
            text += &metadata::write(toolchain, object, &object.bytes[range])?;
        }
        Ok(Facts { text })
    }

    /// Appends them.
    pub fn write(&self, text: &mut String) {
        text.push_str(&self.text);
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
fn prologue(object: &Object<'_>) -> String {
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
