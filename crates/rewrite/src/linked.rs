//! The decoded code of a linked code object: its one section with code, its instructions, its kernels' entries.

use crate::error::{Error, Result};
use crate::object::{CodeSection, Object, Span};
use crate::reach;
use crate::resync;
use codeobj::CodeObject;
use codeobj::code_object::{ObjectKind, Section};
use codeobj::descriptor::Family;
use llvm::{Decoder, Instruction, Listing, State, Target};

/// Code at higher addresses is damage; below, no sum of addresses and sizes overflows.
const ADDRESS_LIMIT: u64 = 1 << 48;

/// The code of a linked code object.
pub(crate) struct Code<'a> {
    /// ELF index of the section.
    pub section: usize,
    /// Address of its first byte.
    pub address: u64,
    pub bytes: &'a [u8],
    pub listing: Listing,
    /// Sorted by offset.
    pub entries: Vec<Entry>,
}

/// Where a kernel starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub kernel: String,
    /// From the start of the section.
    pub offset: u64,
    /// Whether it has a second entry for hardware that preloads kernel arguments.
    pub preloads: bool,
}

impl<'a> Code<'a> {
    /// Decodes the code of `object`, which `bytes` hold.
    pub fn read(decoder: &dyn Decoder, bytes: &'a [u8], object: &CodeObject) -> Result<Code<'a>> {
        if object.kind != ObjectKind::Dynamic {
            return Err(Error::unsupported("only a linked code object can be changed in length; link this one first"));
        }
        let is_code = |(_, s): &(usize, &Section)| s.is_executable() && !s.file_range.is_empty();
        let mut with_code = object.sections.iter().enumerate().filter(is_code);
        let (index, section) = with_code.next().ok_or_else(|| Error::input("the code object has no code"))?;
        if let Some((_, other)) = with_code.next() {
            return Err(Error::unsupported(format!("code in both {} and {}", section.name, other.name)));
        }
        if section.address > ADDRESS_LIMIT {
            return Err(Error::unsupported(format!(
                "{} is at address {:#x}, where no linker puts code",
                section.name, section.address
            )));
        }
        let code = bytes.get(section.file_range.clone()).unwrap_or_default();
        let mut entries = Vec::new();
        for kernel in &object.kernels {
            let name = &kernel.name;
            let damaged = |reason: &String| Error::input(format!("kernel `{name}`: {reason}"));
            let (body, descriptor) =
                (kernel.code.as_ref().map_err(damaged)?, kernel.descriptor.as_ref().map_err(damaged)?);
            let preloads = descriptor.descriptor.kernarg_preload_length() != 0 && preloads_have_a_second_entry(object);
            entries.push(Entry { kernel: name.clone(), offset: body.address - section.address, preloads });
        }
        entries.sort_by_key(|entry| entry.offset);
        let target = target(object)?;
        let mut listing = decoder.decode(&target, code)?;
        trust_what_is_certain(decoder, &target, &mut listing, code)?;
        let functions = object.functions.iter().map(|function| function.code.address - section.address);
        let starts = entries.iter().map(|entry| entry.offset).chain(functions);
        resynchronise(&mut listing, code, starts.collect());
        Ok(Code { section: index, address: section.address, bytes: code, listing, entries })
    }

    /// Decodes one section with code of an object of any kind; who preloads is not looked at.
    pub fn of_section(decoder: &dyn Decoder, object: &'a Object<'a>, section: &CodeSection) -> Result<Code<'a>> {
        let bytes = object.code(section);
        let mut listing = decoder.decode(&object.target, bytes)?;
        trust_what_is_certain(decoder, &object.target, &mut listing, bytes)?;
        resynchronise(&mut listing, bytes, section.spans.iter().map(|span| span.range.start.into()).collect());
        let kernels = section.spans.iter().filter(|span| span.kernel.is_some());
        let entry = |span: &Span| Entry { kernel: span.name.clone(), offset: span.range.start.into(), preloads: false };
        let entries = kernels.map(entry).collect();
        Ok(Code { section: section.index, address: section.address, bytes, listing, entries })
    }

    pub fn instructions(&self) -> &[Instruction] {
        self.listing.instructions()
    }

    /// Index of the instruction that starts at `offset`.
    pub fn index_at(&self, offset: u64) -> Option<usize> {
        self.instructions().binary_search_by_key(&offset, |instruction| instruction.offset.into()).ok()
    }

    /// Bytes of an instruction.
    pub fn bytes_of(&self, instruction: &Instruction) -> &'a [u8] {
        bytes_of(self.bytes, instruction)
    }

    /// `.text+0x1a4: s_branch 5`, for messages.
    pub fn describe(&self, instruction: &Instruction) -> String {
        let text = self.listing.text(instruction);
        let kernel = self.entries.iter().rev().find(|entry| entry.offset <= u64::from(instruction.offset));
        let kernel = kernel.map_or(String::new(), |entry| format!(" of `{}`", entry.kernel));
        format!(
            "`{}` at .text+{:#x}{kernel}",
            if text.is_empty() { "an unknown word" } else { text },
            instruction.offset
        )
    }
}

fn bytes_of<'c>(code: &'c [u8], instruction: &Instruction) -> &'c [u8] {
    let start = instruction.offset as usize;
    code.get(start..start + usize::from(instruction.len)).unwrap_or_default()
}

/// gfx90a, gfx942 and gfx950 ("Preloaded Kernel Arguments", AMDGPUUsage); `llc-22` writes a second entry for these and
/// none for gfx1250, which preloads too.
fn preloads_have_a_second_entry(object: &CodeObject) -> bool {
    object.target.processor.as_deref().and_then(Family::of) == Some(Family::Gfx90a)
}

/// What LLVM decodes the code for.
fn target(object: &CodeObject) -> Result<Target> {
    let wave32 =
        |kernel: &codeobj::Kernel| kernel.descriptor.as_ref().is_ok_and(|placed| placed.descriptor.wavefront_size32());
    let family = object.target.processor.as_deref().and_then(Family::of);
    let wave64 =
        family.is_some_and(Family::has_wave32) && !object.kernels.is_empty() && !object.kernels.iter().any(wave32);
    Ok(Target::from_id(&object.target.short())?.with_wave64(wave64))
}

/// Trusts the listing again where instructions certainly start behind an unknown word, however long that one is.
fn trust_what_is_certain(decoder: &dyn Decoder, target: &Target, listing: &mut Listing, code: &[u8]) -> Result<()> {
    let mut certain_from = 0;
    for at in 0..listing.instructions().len() {
        let instruction = listing.instructions()[at];
        if instruction.state == State::Decoded || instruction.offset < certain_from {
            continue;
        }
        match resync::behind(decoder, target, code, instruction.offset)? {
            Some(certain) if listing.resynchronise(certain) => certain_from = certain,
            _ => break,
        }
    }
    Ok(())
}

/// Trusts the listing again behind unknown words, where something is known to start: at `starts`, and at the targets
/// of the branches that are trusted already.
fn resynchronise(listing: &mut Listing, code: &[u8], starts: Vec<u64>) {
    for start in starts {
        if let Ok(start) = u32::try_from(start) {
            listing.resynchronise(start);
        }
    }
    let mut followed = vec![false; listing.instructions().len()];
    let mut at = 0;
    while at < followed.len() {
        let instruction = listing.instructions()[at];
        let is_certain = !instruction.untrusted && instruction.state == State::Decoded;
        let follow = is_certain && !std::mem::replace(&mut followed[at], true);
        at += 1;
        if !follow {
            continue;
        }
        let target = reach::target(listing.mnemonic(&instruction), &instruction, bytes_of(code, &instruction));
        let Some(target) = target.and_then(|target| u32::try_from(target).ok()) else { continue };
        let found = listing.instructions().binary_search_by_key(&target, |instruction| instruction.offset);
        if let Some(index) = found.ok().filter(|index| listing.instructions()[*index].untrusted) {
            listing.resynchronise(target);
            at = at.min(index);
        }
    }
}
