//! New code in the place of the old: [`Plan::new`] assembles a text and compares its layout with the reference's,
//! [`Plan::in_place`] writes it into a copy of the file, every other byte kept.
//!
//! In place, entries never move. Where the code of a kernel or function became shorter, `s_nop 0` fills up to the next
//! entry; where it became longer, the plan has no room for it, and [`Plan::grown`] makes room.

mod checks;
mod distances;
mod growth;
mod lds;
mod lowered;
mod relocations;
mod second_entry;
mod whole;

use codeobj::code_object::ObjectKind;
use llvm::Toolchain;

use crate::assemble::{self, Assembled, Pins, Section};
use crate::code::Code;
use crate::error::{Error, ErrorKind, Message, Result};
use crate::facts::edits::{self, FieldEdit};
use crate::kept::Kept;
use crate::object::{CodeSection, Object, Span};
use crate::source::Source;
use crate::update::Update;
use checks::Findings;
pub use whole::check as check_whole;

/// What becomes of descriptor and metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// They stay: what a text says otherwise is an error, and so is code that needs more.
    Keep,
    /// They follow the text, and allocations follow the code.
    Update,
}

/// What a text does to a reference's code.
pub struct Plan<'a> {
    toolchain: &'a Toolchain,
    object: &'a Object<'a>,
    source: &'a Source<'a>,
    fields: Fields,
    field_edits: Vec<FieldEdit>,
    /// Entries where the text puts them, second entries too.
    natural: Assembled,
    /// With second entries where they must be; the error is why that cannot be.
    pinned: Result<Assembled>,
    second_entries: second_entry::Lines,
    /// One per section of the text that has code.
    pub sections: Vec<SectionPlan<'a>>,
    /// What does not stop the patch.
    pub warnings: Vec<Message>,
}

/// What a text does to one section.
pub struct SectionPlan<'a> {
    /// The reference's.
    pub section: &'a CodeSection,
    /// Bytes of the new code, before padding.
    pub new_size: u32,
    /// The spans of the reference, in order, with the bytes of each one's new code before padding.
    pub spans: Vec<(&'a Span, u32)>,
    /// Its place in the assembled text.
    at: usize,
}

/// `s_nop 0` that was put behind the code of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Padding {
    /// The kernel or function.
    pub span: String,
    /// In bytes.
    pub bytes: u32,
}

/// A patched code object.
pub struct Patched {
    /// The whole file.
    pub bytes: Vec<u8>,
    /// What was filled up.
    pub padding: Vec<Padding>,
    /// Fields of descriptor and metadata that changed, and what that costs.
    pub changes: Vec<String>,
    /// What was not checked, and what looks wrong.
    pub notes: Vec<Message>,
}

impl<'a> Plan<'a> {
    /// Assembles `source` against `object`.
    ///
    /// # Errors
    /// As [`assemble::assemble`]; a text for another target, or with other sections or functions than the reference.
    pub fn new(
        toolchain: &'a Toolchain,
        object: &'a Object<'a>,
        source: &'a Source<'a>,
        fields: Fields,
    ) -> Result<Self> {
        check_target(object, source)?;
        let field_edits = edits::field_edits(toolchain, object, source)?;
        if fields == Fields::Keep {
            edits::refuse(&field_edits)?;
        }
        let natural = assemble::assemble(toolchain, &object.target, source, &Pins::default())?;
        // In an object that is not linked they stand for its relocations, which are held against it further on.
        let is_linked = object.code_object.kind != ObjectKind::Relocatable;
        let links = natural.sections.iter().filter(|_| is_linked);
        let links = links.flat_map(|section| &section.links).map(|(line, symbol)| {
            let message = format!("`{symbol}` has its value only when linked: `coax asm` links, `coax patch` does not");
            let help = "refer to a label in the code of this text; or make it a complete text, for `coax asm`";
            Message::at(*line, message).help(help)
        });
        let messages: Vec<Message> = links.collect();
        if !messages.is_empty() {
            return Err(Error { kind: ErrorKind::Input, messages });
        }
        let mut sections = Vec::new();
        let mut second_entries = second_entry::Lines::default();
        let mut found = Ok(());
        for (at, section) in natural.sections.iter().enumerate().filter(|(_, section)| !section.bytes.is_empty()) {
            let plan = SectionPlan::new(object, section, at)?;
            found = found.and_then(|()| second_entry::find(toolchain, object, &plan, section, &mut second_entries));
            sections.push(plan);
        }
        if sections.is_empty() {
            let help = "expected instructions, as `coax disasm` writes them";
            return Err(Message::at(1, "the text has no code").help(help).into());
        }
        let pins = Pins { lines: second_entries.natural.clone(), ..Pins::default() };
        let pinned = found.and_then(|()| match pins.is_empty() {
            true => Ok(natural.clone()),
            false => assemble::assemble(toolchain, &object.target, source, &pins),
        });
        let warnings = Vec::new();
        let mut plan = Plan {
            toolchain,
            object,
            source,
            fields,
            field_edits,
            natural,
            pinned,
            second_entries,
            sections,
            warnings,
        };
        plan.warn_of_drift();
        plan.warn_of_numbers()?;
        Ok(plan)
    }

    /// Whether the code has the size that it had.
    pub fn same_size(&self) -> bool {
        self.sections.iter().all(|plan| plan.new_size as usize == plan.section.file_range.len())
    }

    /// The reference with the new code.
    ///
    /// # Errors
    /// [`ErrorKind::Larger`] when a span's new code is larger than the old; what an edit breaks without its text
    /// saying so: registers beyond the allocation, the second entry; [`ErrorKind::Moved`] for addresses computed from the
    /// program counter, which [`grown`](Self::grown) adjusts, also of code that is not larger.
    pub fn in_place(&self) -> Result<Patched> {
        let pinned = self.pinned.as_ref().map_err(Clone::clone)?;
        let (mut over, mut over_with_filler) = (0, 0);
        for plan in &self.sections {
            // With the second entries where they must be.
            let code = &pinned.sections[plan.at];
            let placed = SectionPlan::new(self.object, code, plan.at)?;
            let mut end = 0;
            for (span, size) in &placed.spans {
                end += size;
                over_with_filler += excess(span, *size);
                // An entry that is aligned moves by whole units; what has to go is less.
                let filler = filler_before(&code.bytes[..end as usize]).min(*size);
                over += excess(span, size - filler);
            }
        }
        if over_with_filler > 0 {
            let (mut over, mut filler) = (over, String::new());
            if over == 0 {
                over = over_with_filler;
            } else if over < over_with_filler {
                filler = format!(" (which alignment rounds up to {over_with_filler})");
            }
            let message = Message::new("new code is larger than original — cannot patch in place").help(format!(
                "it is {over} bytes too large{filler}: use --grow, or take {over} bytes of `s_nop 0` or other instructions \
                 out"
            ));
            return Err(Error { kind: ErrorKind::Larger, ..Error::from(message) });
        }
        let mut padding = Vec::new();
        for plan in &self.sections {
            let short = plan.spans.iter().filter(|(span, size)| *size < span.range.len() as u32);
            padding.extend(short.map(|(span, size)| Padding {
                span: if span.name.is_empty() { plan.section.name.clone() } else { span.name.clone() },
                bytes: span.range.len() as u32 - size,
            }));
        }
        let padded = if padding.is_empty() { None } else { Some(self.padded()?) };
        let assembled = padded.as_ref().unwrap_or(pinned);
        let mut bytes = self.object.bytes.to_vec();
        for plan in &self.sections {
            let code = &assembled.sections[plan.at].bytes;
            let place = &mut bytes[plan.section.file_range.clone()];
            if code.len() != place.len() {
                let (new, old) = (code.len(), place.len());
                return Err(Error::input(format!("padding gave {new} bytes of code in place of {old}")));
            }
            place.copy_from_slice(code);
        }
        let mut findings = Findings::default();
        for plan in &self.sections {
            let new = &assembled.sections[plan.at];
            relocations::refuse_others(self.object, plan.section, new)?;
            if new.bytes != self.object.code(plan.section) {
                findings.addresses.extend(self.places(plan, new)?);
                findings.add(checks::check(self.toolchain, self.object, plan.section, plan.section, new)?);
            }
        }
        let refused = std::mem::take(&mut findings.addresses);
        let layout = |plan: &SectionPlan<'a>| (plan.section.clone(), &assembled.sections[plan.at]);
        let sections: Vec<_> = self.sections.iter().map(layout).collect();
        self.finish(bytes, padding, findings, refused, &sections)
    }

    /// The reference with room for the new code: what follows it moves.
    ///
    /// # Errors
    /// As [`crate::change::exchange`]; registers beyond the allocation.
    pub fn grown(&self) -> Result<Patched> {
        let [plan] = &self.sections[..] else {
            let message = "code in several sections cannot grow: they might refer to each other";
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        // Growth puts entries where they must be, out of the filler in front of them.
        let pins = Pins { entries_by_caller: true, ..Pins::default() };
        let assembled = assemble::assemble(self.toolchain, &self.object.target, self.source, &pins)?;
        let new = &assembled.sections[plan.at];
        let plan = &SectionPlan::new(self.object, new, plan.at)?;
        let grown = growth::grow(self.toolchain, self.object, plan, new)?;
        let layout = plan.new_section(new);
        let mut findings = checks::check(self.toolchain, self.object, plan.section, &layout, new)?;
        findings.notes.extend(grown.warnings.into_iter().map(Message::new));
        self.finish(grown.code_object, Vec::new(), findings, Vec::new(), &[(layout, new)])
    }

    /// Refuses what was found, or makes descriptor and metadata follow; `sections` have their code as it was assembled.
    fn finish(
        &self,
        bytes: Vec<u8>,
        padding: Vec<Padding>,
        findings: Findings,
        mut refused: Vec<Message>,
        sections: &[(CodeSection, &Section)],
    ) -> Result<Patched> {
        let Findings { mut notes, beyond, ends, lds, .. } = findings;
        let kind = if refused.is_empty() { ErrorKind::Input } else { ErrorKind::Moved };
        refused.extend(ends);
        if self.fields == Fields::Keep {
            let (lds_beyond, lds_notes) = lds::judge(self.object, &bytes, &lds)?;
            notes.extend(lds_notes);
            refused.extend(beyond.iter().map(|beyond| beyond.message.clone()));
            refused.extend(lds_beyond.into_iter().map(|beyond| beyond.message));
        }
        if !refused.is_empty() {
            return Err(Error { kind, messages: refused });
        }
        if self.fields == Fields::Keep {
            return Ok(Patched { bytes, padding, changes: Vec::new(), notes });
        }
        let mut update = Update::new(self.toolchain, bytes);
        update.apply(&self.field_edits)?;
        let (lds_beyond, lds_notes) = lds::judge(self.object, update.bytes(), &lds)?;
        notes.extend(lds_notes);
        for beyond in &beyond {
            update.raise(&beyond.kernel, beyond.file, beyond.count)?;
        }
        for beyond in lds_beyond {
            // What the text itself says of the allocation is not overruled.
            if self.field_edits.iter().any(|edit| edit.is_of_lds(&beyond.kernel)) {
                return Err(beyond.message.help("the text says how much that is: raise it there").into());
            }
            update.raise_lds(&beyond.kernel, beyond.bytes)?;
        }
        let updated = update.finish(self.object.bytes)?;
        notes.extend(updated.warnings.into_iter().map(Message::new));
        notes.extend(lowered::check(self.toolchain, self.object, &Object::parse(&updated.bytes)?, sections)?);
        Ok(Patched { bytes: updated.bytes, padding, changes: updated.changes, notes })
    }

    /// What refers to places in the code by other means than labels, and is wrong now.
    ///
    /// # Errors
    /// As [`relocations::check`].
    fn places(&self, plan: &SectionPlan<'a>, new: &Section) -> Result<Vec<Message>> {
        let old = Code::decode(self.toolchain, self.object, plan.section)?;
        let target = &self.object.target;
        let code = Code::decode_bytes(self.toolchain, target, plan.section, &new.bytes, named(&new.labels))?;
        if self.object.code_object.kind == ObjectKind::Relocatable {
            relocations::check(self.object, plan.section, [&old, &code], new)?;
        }
        distances::check(self.toolchain, self.object, plan.section, [&old, &code], new)
    }

    /// Assembled again with every entry where the reference has it.
    fn padded(&self) -> Result<Assembled> {
        let mut pins = Pins { lines: self.second_entries.in_place.clone(), ..Pins::default() };
        for plan in &self.sections {
            let starts = plan.spans.iter().filter(|(span, _)| !span.name.is_empty());
            pins.labels.extend(starts.map(|(span, _)| (span.name.clone(), span.range.start)));
            pins.sizes.insert(plan.section.name.clone(), plan.section.file_range.len() as u32);
        }
        assemble::assemble(self.toolchain, &self.object.target, self.source, &pins)
    }

    /// A branch whose distance is written as a number does not follow what an edit moves.
    fn warn_of_numbers(&mut self) -> Result<()> {
        for plan in &self.sections {
            let lines = self.source.branches_by_number(&plan.section.name);
            let new = &self.natural.sections[plan.at];
            let Some(first) = lines.first().filter(|_| new.bytes != self.object.code(plan.section)) else { continue };
            let (old, section) = (Code::decode(self.toolchain, self.object, plan.section)?, plan.new_section(new));
            let target = &self.object.target;
            let new = Code::decode_bytes(self.toolchain, target, &section, &new.bytes, named(&new.labels))?;
            if Kept::between(&old, &new).pairs().iter().any(|(old, new)| old != new) {
                let message = match lines.len() {
                    1 => "this branch has its distance as a number, which the edit does not adjust".to_owned(),
                    count => {
                        format!("{count} branches have their distance as a number, which the edit does not adjust")
                    }
                };
                self.warnings.push(Message::at(*first, message).help("give what they branch to a label"));
            }
        }
        Ok(())
    }

    fn warn_of_drift(&mut self) {
        let Some(written_for) = self.source.reference else { return };
        let own = crate::reference::sha256(self.object.bytes);
        if written_for != own {
            let message = format!("the text was made of another reference: sha256 {written_for}, this one has {own}");
            self.warnings.push(Message::new(message).help("disassemble this reference again if that was not meant"));
        }
    }
}

impl<'a> SectionPlan<'a> {
    /// The reference's section with the spans that the new code has.
    fn new_section(&self, new: &Section) -> CodeSection {
        let mut start = 0;
        let spans = self.spans.iter().map(|(span, size)| {
            let range = start..start + size;
            start += size;
            Span { range, ..(*span).clone() }
        });
        let spans = spans.collect();
        CodeSection { name: new.name.clone(), spans, ..self.section.clone() }
    }

    fn new(object: &'a Object<'a>, section: &Section, at: usize) -> Result<Self> {
        let found = object.sections.iter().filter(|own| own.name == section.name);
        let own = match found.collect::<Vec<_>>()[..] {
            [only] => only,
            [] => return Err(Error::input(format!("the reference has no code in a section `{}`", section.name))),
            _ => return Err(Error::input(format!("the reference has several sections `{}`", section.name))),
        };
        let mut starts = Vec::with_capacity(own.spans.len() + 1);
        for (number, span) in own.spans.iter().enumerate() {
            match section.label(&span.name) {
                _ if number == 0 => starts.push(0), // also of a text without labels
                Some(offset) => starts.push(offset),
                None => {
                    let message =
                        format!("the text has no label `{}`, where the reference has that function", span.name);
                    return Err(Error::input(message));
                }
            }
        }
        starts.push(section.bytes.len() as u32);
        if !starts.is_sorted() {
            return Err(Error::input("the text has its functions in another order than the reference"));
        }
        let sizes = starts.windows(2).map(|ends| ends[1] - ends[0]);
        let spans = own.spans.iter().zip(sizes).collect();
        Ok(SectionPlan { section: own, new_size: section.bytes.len() as u32, spans, at })
    }
}

/// Labels as [`Code::decode_bytes`] takes them.
fn named(labels: &[(String, u32)]) -> Vec<(u32, String)> {
    labels.iter().filter(|(name, _)| !name.starts_with(".L")).map(|(name, offset)| (*offset, name.clone())).collect()
}

/// Bytes by which a span's new code is larger than the old.
fn excess(span: &Span, size: u32) -> u32 {
    size.saturating_sub(span.range.end - span.range.start)
}

/// Bytes of `s_nop 0` at the end of code.
fn filler_before(code: &[u8]) -> u32 {
    4 * code.rchunks_exact(4).take_while(|word| **word == assemble::S_NOP.to_le_bytes()).count() as u32
}

fn check_target(object: &Object<'_>, source: &Source<'_>) -> Result<()> {
    let Some(named) = assemble::target_of(source)? else { return Ok(()) };
    let wanted = object.target.clone().with_wave64(false).to_string();
    let named = named.with_wave64(false).to_string();
    if wanted != named {
        let line = source.target.map_or(0, |(line, _)| line);
        return Err(Error::line(line, format!("the text is for {named}, the reference for {wanted}")));
    }
    Ok(())
}
