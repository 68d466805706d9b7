//! The code of one kernel or function as text, and which of the registers that it names are beyond what a descriptor
//! allocates.

use std::collections::HashMap;

use codeobj::Descriptor;
use codeobj::descriptor::Family;
use llvm::{EncodingId, Listing};

use crate::code::Code;
use crate::object::Span;
use crate::registers::{self, Counts, File};

/// The instruction that chooses which 256 of up to 1024 VGPRs a number means (gfx1250).
pub(crate) const VGPR_BANK: &str = "s_set_vgpr_msb";

/// The code of a span.
pub(crate) struct Part<'a> {
    code: &'a Code<'a>,
    /// Which.
    pub span: &'a Span,
}

/// The highest register of a file that code names, where that is beyond the allocation.
pub(crate) struct Highest {
    /// Of which file.
    pub file: File,
    /// Its number and one.
    pub count: u32,
    /// How many there are.
    pub allocated: u32,
    /// Of an instruction that names it, in the section.
    pub offset: u32,
}

impl Highest {
    /// ```v99` is out of range: …``
    pub fn describe(&self, kernel: &str) -> String {
        let register = format!("{}{}", self.file.letter(), self.count - 1);
        format!("`{register}` is out of range: kernel `{kernel}` allocates {} {}", self.allocated, self.file.name())
    }
}

impl<'a> Part<'a> {
    /// That of `span` in `code`.
    pub fn new(code: &'a Code<'a>, span: &'a Span) -> Self {
        Part { code, span }
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.code.bytes[self.span.range.start as usize..self.span.range.end as usize]
    }

    /// Each instruction with its offset in the section.
    pub fn texts(&self) -> impl Iterator<Item = (u32, &'a str)> {
        let (start, end) = (self.span.range.start, self.span.range.end);
        let inside = self.code.instructions().skip_while(move |(offset, ..)| *offset < start);
        let inside = inside.take_while(move |(offset, ..)| *offset < end);
        inside.map(|(offset, listing, instruction)| (offset, listing.text(instruction)))
    }

    /// The last instruction in front of the filler.
    pub fn last(&self) -> Option<(u32, &'a str)> {
        self.texts().filter(|(_, text)| !is_filler(text)).last()
    }

    /// How many registers of each file it names.
    pub fn counts(&self) -> Counts {
        let mut seen: HashMap<EncodingId, ()> = HashMap::new();
        let mut counts = Counts::default();
        let inside = self.code.instructions().filter(|(offset, ..)| self.span.range.contains(offset));
        for (_, listing, instruction) in inside {
            if seen.insert(instruction.encoding, ()).is_none() {
                counts.raise(Counts::of(Listing::text(listing, instruction)));
            }
        }
        counts
    }

    /// Whether a VGPR's number alone does not say which one it is.
    pub fn is_banked(&self) -> bool {
        self.texts().any(|(_, text)| text.starts_with(VGPR_BANK))
    }

    /// Where it names registers beyond those that `descriptor` allocates and those of `known`; VGPRs that are banked are
    /// not looked at.
    pub fn beyond(&self, descriptor: &Descriptor, family: Family, known: Counts) -> Vec<Highest> {
        let counts = self.counts();
        let find = |file: File| {
            let allocated = registers::allocated(descriptor, family, file)?;
            let count = counts.get(file);
            if count <= allocated.max(known.get(file)) || (file == File::Vgpr && self.is_banked()) {
                return None;
            }
            let (offset, _) = self.texts().find(|(_, text)| Counts::of(text).get(file) == count)?;
            Some(Highest { file, count, allocated, offset })
        };
        File::ALL.into_iter().filter_map(find).collect()
    }

    /// Where the program counter is read.
    pub fn program_counters(&self) -> Vec<u32> {
        let reads = |text: &str| text.starts_with("s_getpc") || text.starts_with("s_get_pc");
        self.texts().filter(|(_, text)| reads(text)).map(|(offset, _)| offset).collect()
    }
}

/// What may stand behind the end of code: nothing that LLVM knows is an empty text.
fn is_filler(text: &str) -> bool {
    text.is_empty() || text.starts_with("s_nop") || text.starts_with("s_code_end")
}
