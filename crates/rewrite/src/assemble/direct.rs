//! Assembling by single instructions. A branch to a label is laid out first, and encoded when all places are known,
//! as the text with the number that LLVM would print.

use std::collections::HashMap;
use std::fmt::Write;

use foldhash::fast::FixedState;
use llvm::{Encoded, Encoder, Target, Toolchain};

use super::bits::Bits;
use super::{Assembled, ENTRY_ALIGN, LineCode, Pins, S_NOP, Section};
use crate::branch;
use crate::error::{Error, Message, Result};
use crate::source::{Item, Source, SourceSection};

/// Every direct branch is one word.
const BRANCH_BYTES: u32 = 4;

/// Distinct texts by number.
type Numbers<'a> = HashMap<&'a str, u32, FixedState>;

/// `None` when LLVM has to see the text as a whole, if only to say what is wrong with it.
pub(super) fn assemble(
    toolchain: &Toolchain,
    target: &Target,
    source: &Source<'_>,
    pins: &Pins,
) -> Result<Option<Assembled>> {
    let mut bits = Bits::new(toolchain, target);
    let mut assembled = Assembled::default();
    for section in &source.sections {
        let Some(mut layout) = Layout::new(toolchain, target, section)? else { return Ok(None) };
        layout.place(section, pins, &mut bits)?;
        if !layout.resolve(toolchain, target, &mut bits)? {
            return Ok(None);
        }
        assembled.sections.push(layout.done);
    }
    Ok(Some(assembled))
}

struct Layout<'s> {
    /// Of each instruction in turn, which distinct text it is.
    numbers: Vec<u32>,
    encoded: Vec<Encoded>,
    labels: HashMap<&'s str, u32, FixedState>,
    branches: Vec<Branch<'s>>,
    done: Section,
}

struct Branch<'s> {
    offset: u32,
    line: u32,
    head: &'s str,
    label: &'s str,
    hint: Option<&'s str>,
}

impl<'s> Layout<'s> {
    /// Encodes every distinct instruction but branches to labels.
    fn new(toolchain: &Toolchain, target: &Target, section: &'s SourceSection<'s>) -> Result<Option<Self>> {
        let mut distinct = Numbers::default();
        let mut texts = Vec::new();
        let mut numbers = Vec::with_capacity(section.items.len());
        for (_, item) in &section.items {
            if let Item::Instruction { text, .. } = item {
                let number = *distinct.entry(text).or_insert_with(|| {
                    texts.push(*text);
                    texts.len() as u32 - 1
                });
                numbers.push(number);
            }
        }
        let encoded = toolchain.encode(target, &texts)?;
        if encoded.iter().any(|encoded| encoded.is_err()) {
            return Ok(None);
        }
        let done = Section { name: section.name.to_string(), ..Section::default() };
        Ok(Some(Layout { numbers, encoded, labels: HashMap::default(), branches: Vec::new(), done }))
    }

    /// Gives everything its place.
    fn place(&mut self, section: &'s SourceSection<'s>, pins: &Pins, bits: &mut Bits<'s>) -> Result<()> {
        let mut numbers = std::mem::take(&mut self.numbers).into_iter();
        self.done.lines.reserve(section.items.len());
        for (line, item) in &section.items {
            if let Some(pin) = pins.lines.get(line)
                && !matches!(item, Item::Label(_))
            {
                self.pad(*pin);
            }
            match item {
                Item::Label(name) => {
                    if let Some(pin) = pins.labels.get(&**name) {
                        self.pad(*pin);
                    }
                    let offset = self.done.bytes.len() as u32;
                    if self.labels.insert(name, offset).is_some() {
                        return Err(Error::line(*line, format!("label `{name}` is there already")));
                    }
                    self.done.labels.push((name.to_string(), offset));
                }
                Item::Instruction { hint, .. } => {
                    let number = numbers.next().unwrap_or_default() as usize;
                    let Some(Ok(bytes)) = self.encoded.get(number) else { continue };
                    self.done.lines.push(LineCode { offset: self.done.bytes.len() as u32, line: *line });
                    match hint {
                        None => self.done.bytes.extend_from_slice(bytes),
                        Some(hint) => self.done.bytes.extend_from_slice(bits.apply(*line, bytes, hint)?),
                    }
                }
                Item::Branch { head, label, hint } => {
                    let offset = self.done.bytes.len() as u32;
                    self.branches.push(Branch { offset, line: *line, head, label, hint: *hint });
                    self.append(*line, &[0; BRANCH_BYTES as usize]);
                }
                Item::Bytes(bytes) => self.append(*line, bytes),
                Item::Align(to) if pins.entries_by_caller && *to >= ENTRY_ALIGN => {}
                Item::Align(to) => {
                    let offset = self.done.bytes.len() as u32;
                    self.pad(offset.next_multiple_of(*to));
                }
            }
            if u32::try_from(self.done.bytes.len()).is_err() {
                return Err(Error::line(*line, "4 GiB of code and more"));
            }
        }
        if let Some(size) = pins.sizes.get(&self.done.name) {
            self.pad(*size);
        }
        Ok(())
    }

    /// Encodes the branches. `false`: LLVM does not take one.
    fn resolve(&mut self, toolchain: &Toolchain, target: &Target, bits: &mut Bits<'s>) -> Result<bool> {
        let mut messages = Vec::new();
        let mut texts = String::new();
        let mut ends = Vec::with_capacity(self.branches.len());
        for branch in &self.branches {
            let operand = match self.labels.get(branch.label) {
                None => Err(format!("label `{}` is not defined", branch.label)),
                Some(to) => branch::operand(branch.offset, *to).map_err(|words| {
                    format!("`{}` is {words} words away, a branch reaches {} at most", branch.label, branch::REACH)
                }),
            };
            match operand {
                Ok(operand) => {
                    let _ = write!(texts, "{}{operand}", branch.head);
                    ends.push(texts.len());
                }
                Err(why) => messages.push(Message::at(branch.line, why)),
            }
        }
        if let Some(first) = messages.first() {
            return Err(Error { messages: messages.clone(), ..Error::from(first.clone()) });
        }
        let starts = [0].into_iter().chain(ends.iter().copied());
        let pieces: Vec<&str> = starts.zip(&ends).map(|(start, end)| &texts[start..*end]).collect();
        for (branch, encoded) in self.branches.iter().zip(toolchain.encode(target, &pieces)?) {
            let Ok(mut bytes) = encoded else { return Ok(false) };
            if bytes.len() != BRANCH_BYTES as usize {
                return Ok(false);
            }
            if let Some(hint) = branch.hint {
                bytes = bits.apply(branch.line, &bytes, hint)?.into();
            }
            self.done.bytes[branch.offset as usize..][..BRANCH_BYTES as usize].copy_from_slice(&bytes);
        }
        Ok(true)
    }

    fn append(&mut self, line: u32, bytes: &[u8]) {
        self.done.lines.push(LineCode { offset: self.done.bytes.len() as u32, line });
        self.done.bytes.extend_from_slice(bytes);
    }

    /// `s_nop 0` up to `offset`, if that is ahead.
    fn pad(&mut self, offset: u32) {
        let missing = (offset as usize).saturating_sub(self.done.bytes.len());
        if missing > 0 {
            self.append(0, &S_NOP.to_le_bytes().repeat(missing / 4));
        }
    }
}
