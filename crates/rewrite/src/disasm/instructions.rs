//! The lines of a section: labels, instructions, filling.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

use codeobj::code_object::{NamedSymbol, Visibility};
use llvm::{Instruction, Listing};

use super::relocated::Relocated;
use super::remarks::Remarks;
use super::rest::Rest;
use super::symbols::{directives, quoted};
use super::{Counts, Options};
use crate::code::{Code, Label};
use crate::distance;
use crate::error::Result;
use crate::identity::{Identities, Identity};
use crate::object::Object;

/// Where comments begin; the tab in front of an instruction counts as one.
const COMMENT_COLUMN: usize = 72;
/// The packet processor starts kernels at such addresses (AMDGPU backend guide, "Kernel Descriptor": the low 8 bits of
/// the entry's address are not stored).
const KERNEL_ALIGNMENT: u64 = 256;
/// A kernel with preloaded arguments has its second entry there (the same, "Preloaded Kernel Arguments").
pub(crate) const PRELOAD_ENTRY: u32 = 256;
/// Zeros and `s_code_end`: what linkers and compilers put behind code.
const FILLING: [u32; 2] = [0, 0xbf9f_0000];
/// Shorter runs are written as what they decode to.
const SHORTEST_FILLING: usize = 8;

/// Writes all of a section.
pub(super) fn write(
    object: &Object<'_>,
    code: &Code<'_>,
    identities: &Identities<'_>,
    rest: Option<&Rest>,
    options: Options,
    text: &mut String,
    counts: &mut Counts,
) -> Result<()> {
    let remarks = rest.filter(|_| options.comments).map(|_| Remarks::of(code));
    let mut lines = Lines { code, identities, rest, options, remarks, text, counts, function: 0, skip_to: 0 };
    lines.alignment();
    let symbols: HashMap<&str, &NamedSymbol> =
        object.symbols_of(code.section).into_iter().map(|(_, symbol)| (&*symbol.name, symbol)).collect();
    let mut labels = code.labels.iter().peekable();
    let mut spans = code.section.spans.iter().peekable();
    let mut preload = None;
    for (offset, listing, instruction) in code.instructions() {
        if let Some(span) = spans.next_if(|span| span.range.start <= offset) {
            lines.function = span.range.start;
            if span.kernel.is_some() && (code.section.address + u64::from(offset)).is_multiple_of(KERNEL_ALIGNMENT) {
                lines.text.push_str("\n\t.p2align 8\n");
            }
            let descriptor = object.kernel(span).and_then(|kernel| kernel.descriptor.as_ref().ok());
            let preloads = descriptor.is_some_and(|placed| placed.descriptor.kernarg_preload_length() != 0);
            preload = preloads.then_some(offset + PRELOAD_ENTRY);
        }
        if preload == Some(offset) {
            lines.text.push_str("\t.p2align 8\t; the second entry, for kernels whose arguments are preloaded\n");
        }
        while let Some(label) = labels.next_if(|label| label.offset <= offset) {
            lines.label(label.is_symbol.then(|| symbols.get(&*label.name).copied()), label);
        }
        lines.instruction(offset, listing, instruction)?;
    }
    for label in labels {
        lines.label(label.is_symbol.then(|| symbols.get(&*label.name).copied()), label);
    }
    for (_, symbol) in object.symbols_of(code.section).iter().filter(|(_, symbol)| symbol.size != 0) {
        let _ = writeln!(lines.text, "\t.size {}, {}", quoted(&symbol.name), symbol.size);
    }
    Ok(())
}

struct Lines<'w> {
    code: &'w Code<'w>,
    identities: &'w Identities<'w>,
    rest: Option<&'w Rest>,
    options: Options,
    remarks: Option<Remarks>,
    text: &'w mut String,
    counts: &'w mut Counts,
    /// Where the function starts that is being written.
    function: u32,
    /// Everything before is written.
    skip_to: u32,
}

impl Lines<'_> {
    /// A label; `symbol` is what the symbol table has for it, if it is a symbol at all.
    fn label(&mut self, symbol: Option<Option<&NamedSymbol>>, label: &Label) {
        let name = &label.name;
        match symbol {
            Some(Some(symbol)) if self.rest.is_some_and(|rest| rest.late.contains(&symbol.name)) => {
                let symbol = NamedSymbol { visibility: Visibility::Default, ..symbol.clone() };
                self.text.push_str(&directives(&symbol));
            }
            Some(Some(symbol)) => self.text.push_str(&directives(symbol)),
            Some(None) => {
                let _ = writeln!(self.text, "\t.type {},@function", quoted(name));
            }
            None => {}
        }
        self.text.push_str(&quoted(name));
        let depth = self.remarks.as_ref().map_or(0, |remarks| remarks.depth(label.offset));
        let _ = match depth {
            0 => writeln!(self.text, ":"),
            depth => writeln!(self.text, ":\t; loop depth {depth}"),
        };
    }

    /// That of the section, where no kernel asks for as much.
    fn alignment(&mut self) {
        let section = self.code.section;
        let align = self.rest.and_then(|rest| rest.tables.sections.get(section.index)).map_or(0, |header| header.align);
        let is_aligned = |start: u32| (section.address + u64::from(start)).is_multiple_of(KERNEL_ALIGNMENT);
        let has_kernel = section.spans.iter().any(|span| span.kernel.is_some() && is_aligned(span.range.start));
        if align > if has_kernel { KERNEL_ALIGNMENT } else { 4 } && align.is_power_of_two() {
            let _ = writeln!(self.text, "\t.p2align {}", align.trailing_zeros());
        }
    }

    fn instruction(&mut self, offset: u32, listing: &Listing, instruction: &Instruction) -> Result<()> {
        if offset < self.skip_to {
            return Ok(());
        }
        if let Some(count) = self.filling(offset) {
            let _ = writeln!(self.text, "\t.fill {count}, 4, {:#x}", self.code.word(offset));
            self.skip_to = offset + 4 * count as u32;
            return Ok(());
        }
        self.counts.instructions += 1;
        self.counts.untrusted += usize::from(instruction.untrusted);
        let bytes = self.code.bytes_of(offset, instruction);
        let start = self.text.len();
        self.text.push('\t');
        let mut remark = "";
        let relocated = self.rest.and_then(|rest| rest.relocated.get(&(self.code.section.index, offset)));
        if let Some(Relocated::Text(relocated)) = relocated {
            self.text.push_str(relocated);
            if self.options.comments {
                self.comment(start, offset, bytes, relocated);
            }
            self.text.push('\n');
            return Ok(());
        }
        let distance = self.rest.and_then(|rest| rest.distances.hints.get(&(self.code.section.index, offset)));
        let mut distance = distance.map(|hint| Cow::Borrowed(&**hint));
        match self.identities.of(bytes, listing, instruction)? {
            Identity::Text => self.statement(offset, listing, instruction),
            Identity::Hint(hint) => {
                self.counts.hints += 1;
                self.statement(offset, listing, instruction);
                let _ = write!(self.text, " {hint}");
            }
            Identity::Words(reason) => {
                *self.counts.words.entry(reason).or_default() += 1;
                self.words(bytes);
                // No name can be put in there.
                distance = distance.map(|_| distance::fixed(offset).into());
                remark = reason.describe();
            }
        }
        if let Some(distance) = distance {
            let _ = write!(self.text, " {distance}");
        }
        if !remark.is_empty() {
            let printed = listing.text(instruction);
            let separator = if printed.is_empty() { "" } else { ": " };
            let _ = write!(self.text, " ; {remark}{separator}{}", printed.replace(';', ","));
        }
        if instruction.untrusted {
            self.text.push_str(" ; untrusted");
        }
        if self.options.comments {
            self.comment(start, offset, bytes, listing.text(instruction));
        }
        self.text.push('\n');
        if let Some(Relocated::Behind(lines)) = relocated {
            self.text.push_str(lines);
        }
        Ok(())
    }

    /// The instruction as text, a branch with its label.
    fn statement(&mut self, offset: u32, listing: &Listing, instruction: &Instruction) {
        let printed = listing.text(instruction);
        let target = if instruction.untrusted { None } else { self.code.branch(offset, printed) };
        match target {
            Some((head, label)) => {
                self.text.push_str(head);
                self.text.push_str(&quoted(&label.name));
            }
            None => self.text.push_str(printed),
        }
    }

    fn words(&mut self, bytes: &[u8]) {
        if !bytes.len().is_multiple_of(4) {
            let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            let _ = write!(self.text, ".byte {}", bytes.join(", "));
            return;
        }
        let words: Vec<String> = words(bytes).map(|word| format!("{word:#010x}")).collect();
        let _ = write!(self.text, ".long {}", words.join(", "));
    }

    fn comment(&mut self, start: usize, offset: u32, bytes: &[u8], printed: &str) {
        let width = self.text.len() - start;
        self.text.extend(std::iter::repeat_n(' ', COMMENT_COLUMN.saturating_sub(width).max(1)));
        let _ = write!(self.text, "; +{:#x}:", offset - self.function);
        words(bytes).for_each(|word| {
            self.text.push(' ');
            hexadecimal(word, self.text);
        });
        if let Some(remarks) = &mut self.remarks {
            remarks.banks(offset, printed, self.text);
        }
    }

    /// How many equal words of filling there are from here to the end of the function; none while code follows.
    fn filling(&self, offset: u32) -> Option<usize> {
        let word = self.code.word(offset);
        if !FILLING.contains(&word) || self.code.bytes.len() - (offset as usize) < 4 * SHORTEST_FILLING {
            return None;
        }
        let end = self.run_end(offset);
        if let Some(rest) = self.rest.filter(|rest| !rest.relocated.is_empty()) {
            let mut words = (offset..end as u32).step_by(4);
            if words.any(|word| rest.relocated.contains_key(&(self.code.section.index, word))) {
                return None;
            }
        }
        let run = &self.code.bytes[offset as usize..end];
        (run.len() >= 4 * SHORTEST_FILLING && run.len().is_multiple_of(4) && words(run).all(|other| other == word))
            .then_some(run.len() / 4)
    }

    /// Where the span around `offset` ends, or the next label stands.
    fn run_end(&self, offset: u32) -> usize {
        let spans = &self.code.section.spans;
        let span = spans.partition_point(|span| span.range.end <= offset);
        let end = spans.get(span).map_or(self.code.bytes.len(), |span| span.range.end as usize);
        let label = self.code.labels.partition_point(|label| label.offset <= offset);
        self.code.labels.get(label).map_or(end, |label| end.min(label.offset as usize))
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_le_bytes(word)
    })
}

/// Eight capital digits; this runs once per word of every kernel.
fn hexadecimal(word: u32, text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for shift in (0..32).step_by(4).rev() {
        text.push(char::from(DIGITS[(word >> shift & 15) as usize]));
    }
}
