//! What an edit may break although its text assembles: registers that the kernel was not given, addresses computed from
//! the program counter.

use llvm::Toolchain;

use super::lds;
use crate::assemble::Section;
use crate::code::Code;
use crate::error::{Message, Result};
use crate::object::{CodeSection, Object, Span};
use crate::part::{Part, VGPR_BANK};
use crate::registers::File;

/// What control does not run past.
const ENDS: [&str; 5] = ["s_endpgm", "s_setpc_b64", "s_set_pc_i64", "s_branch", "s_add_pc_i64"];

/// What came of the comparison.
#[derive(Default)]
pub(super) struct Findings {
    /// What could not be checked.
    pub notes: Vec<Message>,
    /// Registers beyond what a kernel was given.
    pub beyond: Vec<Beyond>,
    /// Addresses that are wrong where the code is.
    pub addresses: Vec<Message>,
    /// Code that does not end any more.
    pub ends: Vec<Message>,
    /// LDS that it did not use.
    pub lds: Vec<lds::Use>,
}

/// A file of which a kernel needs more registers than it was given.
pub(super) struct Beyond {
    /// Its name.
    pub kernel: String,
    pub file: File,
    pub count: u32,
    /// Which register, on which line, and the way out.
    pub message: Message,
}

impl Findings {
    /// These too.
    pub fn add(&mut self, other: Findings) {
        self.notes.extend(other.notes);
        self.beyond.extend(other.beyond);
        self.addresses.extend(other.addresses);
        self.ends.extend(other.ends);
        self.lds.extend(other.lds);
    }
}

/// Compares the old and the new code of a section whose spans are now those of `layout`.
///
/// # Errors
/// As [`Code::decode_bytes`].
pub(super) fn check(
    toolchain: &Toolchain,
    object: &Object<'_>,
    section: &CodeSection,
    layout: &CodeSection,
    new: &Section,
) -> Result<Findings> {
    let old = Code::decode(toolchain, object, section)?;
    let decoded = Code::decode_bytes(toolchain, &object.target, layout, &new.bytes, super::named(&new.labels))?;
    let mut findings = Findings::default();
    for (span, now) in section.spans.iter().zip(&layout.spans) {
        let (old, decoded) = (Part::new(&old, span), Part::new(&decoded, now));
        if old.bytes() == decoded.bytes() {
            continue;
        }
        addresses(&old, &decoded, new, &mut findings.addresses);
        end(&old, &decoded, new, &mut findings);
        findings.lds.extend(lds::fresh(now, &old, &decoded, new));
        let notes = &mut findings.notes;
        match object.kernel(span) {
            Some(_) => allocation(object, span, &old, &decoded, new, &mut findings),
            None if decoded.counts() != old.counts() => notes.push(Message::new(format!(
                "the registers of {} are not checked: which kernels call it is not known",
                if span.name.is_empty() { "code in front of the first entry" } else { &span.name }
            ))),
            None => {}
        }
    }
    Ok(findings)
}

/// Whether a kernel or function that ended still does. Behind its last instruction follow filler, and then the next one.
fn end(old: &Part<'_>, new: &Part<'_>, section: &Section, findings: &mut Findings) {
    let is_end = |text: &str| ENDS.iter().any(|end| text.starts_with(end));
    if new.span.name.is_empty() || !old.texts().any(|(_, text)| is_end(text)) {
        return;
    }
    let name = &new.span.name;
    let line = section.line_at(new.last().map_or(new.span.range.start, |(offset, _)| offset));
    if !new.texts().any(|(_, text)| is_end(text)) {
        let message = format!("the new code of `{name}` does not end: it has no s_endpgm, return or jump");
        findings.ends.push(Message::at(line, message).help("what stands behind it would be run next"));
    } else if old.last().is_some_and(|(_, text)| is_end(text)) && !new.last().is_some_and(|(_, text)| is_end(text)) {
        let message = format!("`{name}` ended with an s_endpgm, return or jump, and does not any more");
        findings.notes.push(Message::at(line, message).help("what stands behind it may be run next"));
    }
}

/// An address is the program counter and a distance in a literal, which nothing adjusts here.
fn addresses(old: &Part<'_>, new: &Part<'_>, section: &Section, messages: &mut Vec<Message>) {
    let (before, after) = (old.program_counters(), new.program_counters());
    if let Some(moved) = after.iter().find(|offset| before.binary_search(offset).is_err()) {
        let text = new.texts().find(|(offset, _)| offset == moved).map_or("", |(_, text)| text);
        let message = format!("`{text}` is not where it was, and the distances added to its result are not adjusted");
        let help = "--grow adjusts them; or keep what stands before it at its size: put `s_nop 0` in the place of what you \
                    take out";
        messages.push(Message::at(section.line_at(*moved), message).help(help));
    }
}

/// Registers beyond the allocation, where the reference does not name them either.
fn allocation(
    object: &Object<'_>,
    span: &Span,
    old: &Part<'_>,
    new: &Part<'_>,
    section: &Section,
    findings: &mut Findings,
) {
    let Findings { notes, beyond, .. } = findings;
    let Some(kernel) = object.kernel(span) else { return };
    let (Ok(placed), Some(family)) = (&kernel.descriptor, object.family()) else {
        notes
            .push(Message::new(format!("the registers of {} are not checked: its descriptor is not known", span.name)));
        return;
    };
    let (before, after) = (old.counts(), new.counts());
    if new.is_banked() && before != after {
        let message = format!("the VGPRs of {} are not checked: {VGPR_BANK} changes what they mean", span.name);
        notes.push(Message::new(message));
    }
    for found in new.beyond(&placed.descriptor, family, before) {
        let help = "raise the allocation with --update-descriptor, or use a lower register";
        let message = Message::at(section.line_at(found.offset), found.describe(&span.name)).help(help);
        beyond.push(Beyond { kernel: kernel.name.clone(), file: found.file, count: found.count, message });
    }
}
