//! A code object as a `.s` that assembles again: [`write()`] gives the text and what had to be said otherwise than in
//! plain instructions.
//!
//! ```text
//! ;@reference sha256 …                     which file it is
//! ;@beyond v255 kernel                     a register that it names and was not given
//!         .amdgcn_target "…"
//!         .text
//! kernel:                                  one label per entry and branch target
//!         s_load_dwordx2 s[8:9], …         ; +0x8: C0060200 00000000
//! ```

mod computed;
mod data;
pub(crate) mod instructions;
mod names;
mod relocated;
mod remarks;
pub mod rest;
pub(crate) mod symbols;
mod verify;

use std::collections::BTreeMap;

use codeobj::CodeObject;
use codeobj::code_object::ObjectKind;
use llvm::Toolchain;

use crate::assemble::{self, Pins};
use crate::build;
use crate::code::Code;
use crate::error::Result;
use crate::facts::descriptor;
use crate::facts::edits::Described;
use crate::identity::{Identities, Reason};
use crate::object::Object;
use crate::part::Part;
use crate::reference;
use crate::registers;
use crate::source::Source;
use rest::Rest;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// A comment with offset and words behind each instruction; with the VGPR banks in force, where the code sets them
    /// (`?`: paths join with different ones). Labels say in how many loops they are.
    pub comments: bool,
}

/// A code object as text.
pub struct Disassembly {
    /// The `.s`.
    pub text: String,
    /// What became of the instructions.
    pub counts: Counts,
    /// What the text leaves out, by name; the text says so too.
    pub omitted: Vec<String>,
}

/// How the instructions were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All.
    pub instructions: usize,
    /// As text with a hint.
    pub hints: usize,
    /// As words, by reason.
    pub words: BTreeMap<Reason, usize>,
    /// Behind a word that LLVM does not know, up to the next entry or branch target.
    pub untrusted: usize,
}

impl Counts {
    /// Adds what another object had.
    pub fn add(&mut self, other: &Counts) {
        self.instructions += other.instructions;
        self.hints += other.hints;
        self.untrusted += other.untrusted;
        for (reason, count) in &other.words {
            *self.words.entry(*reason).or_default() += count;
        }
    }

    /// All that were written as words.
    pub fn all_words(&self) -> usize {
        self.words.values().sum()
    }
}

/// Writes `object`, whose `codes` are those of all its sections; `rest` is everything else that it has, or none to leave
/// that out.
///
/// # Errors
/// As [`Identities::of`].
pub fn write(
    object: &Object<'_>,
    codes: &[Code<'_>],
    identities: &Identities<'_>,
    rest: Option<&Rest>,
    options: Options,
) -> Result<Disassembly> {
    let code_bytes: usize = codes.iter().map(|code| code.bytes.len()).sum();
    let mut text = String::with_capacity(1024 + code_bytes * if options.comments { 16 } else { 8 });
    header(object, &mut text);
    if let Some(rest) = rest {
        rest.head(object, &mut text);
    }
    let mut counts = Counts::default();
    for code in codes {
        text += &section_directive(&code.section.name);
        instructions::write(object, code, identities, rest, options, &mut text, &mut counts)?;
    }
    if let Some(rest) = rest {
        rest.write(object, &mut text);
    }
    let omitted = rest.map_or_else(Vec::new, |rest| rest.omitted.clone());
    Ok(Disassembly { text, counts, omitted })
}

/// Decodes, checks and writes one code object.
///
/// # Errors
/// As [`Code::decode`] and [`write()`].
pub fn disassemble(toolchain: &Toolchain, object: &Object<'_>, options: Options) -> Result<Disassembly> {
    let codes = object.sections.iter().map(|section| Code::decode(toolchain, object, section));
    let mut codes = codes.collect::<Result<Vec<_>>>()?;
    let rest = Rest::of(toolchain, object, &mut codes)?;
    let identities = Identities::check(toolchain, &object.target, &codes)?;
    let mut disassembly = write(object, &codes, &identities, Some(&rest), options)?;
    let at = disassembly.text.find('\n').map_or(0, |end| end + 1); // behind the reference
    disassembly.text.insert_str(at, &beyond(object, &codes));
    Ok(disassembly)
}

/// Lines about registers that kernels name beyond their allocations.
fn beyond(object: &Object<'_>, codes: &[Code<'_>]) -> String {
    let mut lines = String::new();
    for code in codes {
        for span in code.section.spans.iter().filter(|span| !span.name.contains(['\n', '\r'])) {
            let placed = object.kernel(span).and_then(|kernel| kernel.descriptor.as_ref().ok());
            let Some((placed, family)) = placed.zip(object.family()) else { continue };
            for found in Part::new(code, span).beyond(&placed.descriptor, family, registers::Counts::default()) {
                lines += &reference::beyond_line(&span.name, found.file, found.count, found.allocated);
            }
        }
    }
    lines
}

/// Assembles what was `written` of `object`, and says where code, data, a descriptor, the metadata, and in relocatable
/// objects symbols and relocations, that come of it differ; none when they do not.
///
/// # Errors
/// As [`assemble::assemble`].
pub fn check(toolchain: &Toolchain, object: &Object<'_>, written: &Disassembly) -> Result<Option<String>> {
    let text = &*written.text;
    let source = Source::read(text);
    let assembled = assemble::assemble(toolchain, &object.target, &source, &Pins::default())?;
    for section in &object.sections {
        let own = object.code(section);
        let other = assembled.sections.iter().find(|other| other.name == section.name);
        let other = other.map_or(&[][..], |other| &other.bytes);
        if own != other {
            let at = own.iter().zip(other).position(|(a, b)| a != b).unwrap_or(own.len().min(other.len()));
            return Ok(Some(format!("{}+{at:#x}", section.name)));
        }
    }
    let made = match build::relocatable(toolchain, &object.target, &source) {
        Ok(made) => made,
        Err(error) => return Ok(Some(format!("its own text, which LLVM does not take as a whole: {error}"))),
    };
    if let Err(error) = build::with_names(toolchain, &object.target, &source) {
        return Ok(Some(format!("its own text with names in the places of distances: {error}")));
    }
    let described = Described::in_object(&made)?;
    for kernel in &object.code_object.kernels {
        let own = kernel.descriptor.as_ref().ok().map(|placed| placed.descriptor.bytes());
        let other = described.descriptors.iter().find(|(name, _)| *name == kernel.name).map(|(_, bytes)| bytes);
        let is_same = own.zip(other).is_some_and(|(own, other)| descriptor::same(own, other));
        if own.is_some() && !is_same {
            return Ok(Some(format!("the descriptor of {}", kernel.name)));
        }
    }
    let metadata = CodeObject::metadata_range(object.bytes)?.map(|range| &object.bytes[range]);
    let is_same = metadata.is_none() || metadata == described.metadata.as_deref();
    if !is_same {
        return Ok(Some("the metadata".to_owned()));
    }
    verify::check(object, &made, &written.omitted)
}

fn header(object: &Object<'_>, text: &mut String) {
    *text += &reference::line(object.bytes);
    if object.code_object.kind == ObjectKind::Relocatable {
        *text += "; not linked\n";
    }
    *text += &format!("\t.amdgcn_target \"amdgcn-amd-amdhsa--{}\"\n", object.code_object.target.short());
    // EI_ABIVERSION 2 is code object v4 (AMDGPU backend guide, "ELF Header").
    let version = object.code_object.abi_version + 2;
    if (4..=6).contains(&version) {
        *text += &format!("\t.amdhsa_code_object_version {version}\n");
    }
}

/// What switches to a section with code.
fn section_directive(name: &str) -> String {
    match name {
        ".text" => "\t.text\n".to_owned(),
        name => format!("\t.section {},\"ax\",@progbits\n", symbols::quoted(name)),
    }
}
