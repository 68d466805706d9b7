//! A whole code object out of a complete `.s`: assembled by LLVM, bits of hints put in, linked by `ld.lld`.

use std::path::Path;

use llvm::{Assembler, Severity, Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection};

use crate::assemble::{self, Pins};
use crate::code::Code;
use crate::distance;
use crate::error::{Error, ErrorKind, Message, Result};
use crate::hint;
use crate::object::{CodeSection, Object};
use crate::part::{Highest, Part, VGPR_BANK};
use crate::registers::{Counts, File};
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
    let mut object = match with_names(toolchain, &target, source)? {
        Some(object) => object,
        None => relocatable(toolchain, &target, source)?,
    };
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

/// Whether the kernels of `code_object`, which was made of `source`, were given the registers that their code names, but
/// for those that the text says its reference named; gives what could not be checked.
///
/// # Errors
/// Each file of registers of a kernel that is too small, with the line of the highest one.
pub fn check(toolchain: &Toolchain, code_object: &[u8], source: &Source<'_>) -> Result<Vec<Message>> {
    let object = Object::parse(code_object)?;
    let assembled = match distance::has_fixed(source.text) {
        true => Some(assemble::assemble(toolchain, &object.target, source, &Pins::default())?),
        false => None,
    };
    let mut notes = distance::check(source.text, assembled.as_ref(), code_object)?;
    let (mut beyond, mut functions) = (Vec::new(), Vec::new());
    for section in &object.sections {
        let code = Code::decode(toolchain, &object, section)?;
        for span in &section.spans {
            let part = Part::new(&code, span);
            let name = &span.name;
            let Some(kernel) = object.kernel(span) else {
                functions.extend(Some(format!("`{name}`")).filter(|_| !name.is_empty()));
                continue;
            };
            let (Ok(placed), Some(family)) = (&kernel.descriptor, object.family()) else {
                notes.push(Message::new(format!("the registers of `{name}` are not checked: no descriptor is known")));
                continue;
            };
            let lds = u64::from(placed.descriptor.group_segment_fixed_size());
            if let Some(recorded) = kernel.metadata.group_segment_fixed_size.value().filter(|bytes| *bytes != lds) {
                let message = format!(
                    "the descriptor gives `{name}` {lds} bytes of LDS, its metadata .group_segment_fixed_size is {recorded}"
                );
                notes.push(Message::new(message).help("say the same in both: runtimes read either"));
            }
            if part.is_banked() {
                let message = format!("the VGPRs of `{name}` are not checked: {VGPR_BANK} changes what they mean");
                notes.push(Message::new(message));
            }
            let mut known = Counts::default();
            let of_reference = source.known_registers.iter().filter(|(kernel, ..)| kernel == name);
            of_reference.for_each(|(_, file, count)| known.raise_file(*file, *count));
            let found = part.beyond(&placed.descriptor, family, known);
            beyond.extend(found.into_iter().map(|found| (section, name, found)));
        }
    }
    if !functions.is_empty() {
        let message =
            format!("the registers of {} are not checked: which kernels call them is not known", functions.join(", "));
        notes.push(Message::new(message));
    }
    if beyond.is_empty() {
        return Ok(notes);
    }
    let assembled = assemble::assemble(toolchain, &object.target, source, &Pins::default())?;
    let describe = |(section, name, found): &(&CodeSection, &String, Highest)| {
        let own = assembled.sections.iter().find(|own| own.name == section.name);
        let line = own.map_or(0, |own| own.line_at(found.offset));
        let directive = match found.file {
            File::Vgpr => ".amdhsa_next_free_vgpr (with AGPRs .amdhsa_accum_offset too)",
            File::Agpr => ".amdhsa_next_free_vgpr",
            File::Sgpr => ".amdhsa_next_free_sgpr",
        };
        let help = format!("raise {directive} and the metadata's count, or use a lower register");
        Message::at(line, found.describe(name)).help(help)
    };
    let messages: Vec<Message> = beyond.iter().map(describe).collect();
    Err(Error { kind: ErrorKind::Input, messages })
}

/// What LLVM makes of `source` with names in the places of the distances that have one, not linked; none where no
/// distance has one.
///
/// # Errors
/// As [`distance::with_names`]; what does not assemble.
pub(crate) fn with_names(toolchain: &Toolchain, target: &Target, source: &Source<'_>) -> Result<Option<Vec<u8>>> {
    let named = distance::with_names(source.text)?;
    named.map(|text| relocatable(toolchain, target, &Source { text: &text, ..Source::default() })).transpose()
}

/// What LLVM makes of `source`, not linked; hints are not looked at.
pub(crate) fn relocatable(toolchain: &Toolchain, target: &Target, source: &Source<'_>) -> Result<Vec<u8>> {
    let assembly = toolchain.assemble(target, source.text)?;
    let errors = assembly.diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let messages: Vec<Message> =
        errors.map(|found| Message { column: found.column, ..assemble::message_of(&found, source.text) }).collect();
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
