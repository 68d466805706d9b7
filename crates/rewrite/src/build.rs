//! A whole code object out of a complete `.s`: assembled by LLVM, bits of hints put in, linked by `ld.lld`.

use std::path::Path;

use llvm::{Assembler, Severity, Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection};

use crate::assemble::{self, Pins};
use crate::error::{Error, ErrorKind, Message, Result};
use crate::hint;
use crate::source::Source;

/// The linked code object that `source` describes, for its own target. `llvm` is the user's choice of an LLVM.
///
/// # Errors
/// A text without a target; what does not assemble; [`ErrorKind::Unavailable`] without a linker.
pub fn code_object(toolchain: &Toolchain, llvm: Option<&Path>, source: &Source<'_>) -> Result<Vec<u8>> {
    let Some(target) = assemble::target_of(source)? else {
        let message = Message::new("the text does not say for which target it is");
        return Err(message
            .help("start it with `.amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"`, or patch a reference")
            .into());
    };
    let mut object = relocatable(toolchain, &target, source)?;
    if source.text.contains(hint::MARK) || source.unknown_hint.is_some() {
        let hinted = assemble::assemble(toolchain, &target, source, &Pins::default())?;
        let sections = code_sections(&object)?;
        for section in &hinted.sections {
            let place =
                sections.iter().find(|(name, place)| *name == section.name && place.len() == section.bytes.len());
            match place {
                Some((_, place)) => object[place.clone()].copy_from_slice(&section.bytes),
                None => return Err(Error::input(format!("section {} assembled to another size", section.name))),
            }
        }
    }
    Ok(llvm::link(llvm, &object)?)
}

/// What LLVM makes of `source`, not linked; hints are not looked at.
pub(crate) fn relocatable(toolchain: &Toolchain, target: &Target, source: &Source<'_>) -> Result<Vec<u8>> {
    let assembly = toolchain.assemble(target, source.text)?;
    let errors = assembly.diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let messages: Vec<Message> = errors
        .map(|diagnostic| Message { column: diagnostic.column, ..Message::at(diagnostic.line, diagnostic.message) })
        .collect();
    match assembly.object {
        Some(object) if messages.is_empty() => Ok(object),
        _ if messages.is_empty() => Err(Error::input("LLVM made no object of the text")),
        _ => Err(Error { kind: ErrorKind::Input, messages }),
    }
}

/// Names and places of the sections with code.
fn code_sections(object: &[u8]) -> Result<Vec<(String, std::ops::Range<usize>)>> {
    let damaged = |error: object::read::Error| Error::input(format!("LLVM's object: {error}"));
    let file = ElfFile::<FileHeader64<LittleEndian>>::parse(object).map_err(damaged)?;
    let mut found = Vec::new();
    for section in file.sections().filter(|section| section.kind() == object::SectionKind::Text) {
        if let Some((start, size)) = section.file_range() {
            found.push((section.name().map_err(damaged)?.to_owned(), start as usize..(start + size) as usize));
        }
    }
    Ok(found)
}
