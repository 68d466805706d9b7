//! A section's code, decoded: instructions from its first byte to its last, and the names of the places that branches
//! and symbols point to.
//!
//! An instruction starts at every entry and every branch target. Where decoding in sequence disagrees, behind words
//! that LLVM does not know, it starts again there: the code is then held in several pieces.

use std::collections::{BTreeSet, HashSet};

use llvm::{Decoder, Instruction, Listing, State, Target};

use crate::branch;
use crate::error::Result;
use crate::object::{CodeSection, Object};
use crate::resync;

/// So often decoding starts again at places found to be starts of instructions.
const MAX_ROUNDS: usize = 8;

/// Decoded code.
pub struct Code<'a> {
    /// Where it is.
    pub section: &'a CodeSection,
    /// All of it.
    pub bytes: &'a [u8],
    /// In address order, without gaps.
    pub pieces: Vec<Piece>,
    /// In address order.
    pub labels: Vec<Label>,
}

/// Code that was decoded in one go.
pub struct Piece {
    /// Offset in the section.
    pub start: u32,
    /// Its instructions; their offsets count from `start`.
    pub listing: Listing,
}

/// A name for a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Offset in the section.
    pub offset: u32,
    /// As the symbol table has it, or `.L0`, `.L1`, ….
    pub name: String,
    /// Whether the symbol table has it.
    pub is_symbol: bool,
}

impl<'a> Code<'a> {
    /// Decodes a section of `object`.
    ///
    /// # Errors
    /// As [`Decoder::decode`]; never because of what the code contains.
    pub fn decode(decoder: &dyn Decoder, object: &'a Object<'a>, section: &'a CodeSection) -> Result<Self> {
        let names = object.symbols_of(section).into_iter().map(|(offset, symbol)| (offset, symbol.name.clone()));
        Code::decode_bytes(decoder, &object.target, section, object.code(section), names.collect())
    }

    /// Decodes `bytes` as the content of a section with these names in it.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn decode_bytes(
        decoder: &dyn Decoder,
        target: &Target,
        section: &'a CodeSection,
        bytes: &'a [u8],
        names: Vec<(u32, String)>,
    ) -> Result<Self> {
        let mut code = Code { section, bytes, pieces: Vec::new(), labels: Vec::new() };
        let entries: Vec<u32> = section.spans.iter().map(|span| span.range.start).collect();
        let mut cuts = BTreeSet::from([0]);
        let mut targets = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            code.pieces = code.decode_pieces(decoder, target, &cuts)?;
            code.trust_what_is_certain(decoder, target)?;
            targets = code.targets(&entries);
            let missing = code.starts_missing(entries.iter().chain(&targets));
            let before = cuts.len();
            cuts.extend(missing);
            if cuts.len() == before {
                break;
            }
        }
        let missing: HashSet<u32> = code.starts_missing(&targets).into_iter().collect();
        code.labels = labels(names, section, targets.into_iter().filter(|target| !missing.contains(target)));
        Ok(code)
    }

    /// All instructions with their offsets in the section and the listing that has their text.
    pub fn instructions(&self) -> impl Iterator<Item = (u32, &Listing, &Instruction)> {
        self.pieces.iter().flat_map(|piece| {
            let place = |i: &'_ Instruction| piece.start + i.offset;
            piece.listing.instructions().iter().map(move |i| (place(i), &piece.listing, i))
        })
    }

    /// The bytes of an instruction.
    pub fn bytes_of(&self, offset: u32, instruction: &Instruction) -> &'a [u8] {
        &self.bytes[offset as usize..offset as usize + usize::from(instruction.len)]
    }

    /// The first word of an instruction.
    pub fn word(&self, offset: u32) -> u32 {
        self.bytes[offset as usize..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// The label of a place at which an instruction starts, that is no symbol; it gets one if it has none.
    pub(crate) fn name_place(&mut self, offset: u32) -> Option<String> {
        let first = self.labels.partition_point(|label| label.offset < offset);
        let mut here = self.labels[first..].iter().take_while(|label| label.offset == offset);
        if let Some(label) = here.find(|label| !label.is_symbol) {
            return Some(label.name.clone());
        }
        if !self.starts_missing([&offset]).is_empty() || offset as usize >= self.bytes.len() {
            return None;
        }
        let is_taken = |name: &String| self.labels.iter().any(|label| label.name == *name);
        let name = (self.labels.len()..).map(|number| format!(".L{number}")).find(|name| !is_taken(name))?;
        let at = self.labels.partition_point(|label| label.offset <= offset);
        self.labels.insert(at, Label { offset, name: name.clone(), is_symbol: false });
        Some(name)
    }

    /// The label at `offset`.
    pub fn label_at(&self, offset: u32) -> Option<&Label> {
        let at = self.labels.partition_point(|label| label.offset < offset);
        self.labels.get(at).filter(|label| label.offset == offset)
    }

    /// Where the branch goes, when it is a direct one to a place that has a label.
    pub fn branch<'t>(&self, offset: u32, text: &'t str) -> Option<(&'t str, &Label)> {
        let (head, _) = branch::split(text)?;
        let target = u32::try_from(branch::target(offset, self.word(offset))).ok()?;
        Some((head, self.label_at(target)?))
    }

    fn decode_pieces(&self, decoder: &dyn Decoder, target: &Target, cuts: &BTreeSet<u32>) -> Result<Vec<Piece>> {
        let ends = cuts.iter().copied().skip(1).chain([self.bytes.len() as u32]);
        let ranges = cuts.iter().zip(ends).filter(|(start, end)| **start < *end);
        let decode = |(start, end): (&u32, u32)| {
            let listing = decoder.decode(target, &self.bytes[*start as usize..end as usize])?;
            Ok(Piece { start: *start, listing })
        };
        ranges.map(decode).collect()
    }

    /// Trusts code again where instructions certainly start behind a word that LLVM does not know.
    fn trust_what_is_certain(&mut self, decoder: &dyn Decoder, target: &Target) -> Result<()> {
        for piece in &mut self.pieces {
            let mut certain_from = 0;
            for at in 0..piece.listing.instructions().len() {
                let instruction = piece.listing.instructions()[at];
                if instruction.state == State::Decoded || instruction.offset < certain_from {
                    continue;
                }
                let start = piece.start + instruction.offset;
                match resync::behind(decoder, target, self.bytes, start)?.and_then(|at| at.checked_sub(piece.start)) {
                    Some(certain) if piece.listing.resynchronise(certain) => certain_from = certain,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Targets of all branches that can be trusted. Where code is trusted again at an entry or a target, the branches
    /// in it count too.
    fn targets(&mut self, entries: &[u32]) -> BTreeSet<u32> {
        for entry in entries {
            self.resynchronise(*entry);
        }
        let mut targets = BTreeSet::new();
        loop {
            let new: Vec<u32> = self.trusted_targets().filter(|target| !targets.contains(target)).collect();
            if new.is_empty() {
                return targets;
            }
            let mut again = false;
            for target in new {
                again |= self.resynchronise(target);
                targets.insert(target);
            }
            if !again {
                return targets;
            }
        }
    }

    fn trusted_targets(&self) -> impl Iterator<Item = u32> {
        let size = self.bytes.len() as u32;
        self.instructions().filter_map(move |(offset, listing, instruction)| {
            if instruction.untrusted || instruction.len != 4 || instruction.state != State::Decoded {
                return None;
            }
            branch::split(listing.text(instruction))?;
            let target = u32::try_from(branch::target(offset, self.word(offset))).ok()?;
            (target <= size).then_some(target)
        })
    }

    /// Whether that made code trusted which was not.
    fn resynchronise(&mut self, offset: u32) -> bool {
        let at = self.pieces.partition_point(|piece| piece.start <= offset);
        let Some(piece) = at.checked_sub(1).map(|at| &mut self.pieces[at]) else { return false };
        let inner = offset - piece.start;
        let found = piece.listing.instructions().binary_search_by_key(&inner, |instruction| instruction.offset);
        let untrusted = found.is_ok_and(|at| piece.listing.instructions()[at].untrusted);
        untrusted && piece.listing.resynchronise(inner)
    }

    /// Those of `offsets` at which no instruction starts.
    fn starts_missing<'o>(&self, offsets: impl IntoIterator<Item = &'o u32>) -> Vec<u32> {
        let starts_at = |offset: u32| {
            let at = self.pieces.partition_point(|piece| piece.start <= offset);
            let Some(piece) = at.checked_sub(1).map(|at| &self.pieces[at]) else { return true };
            let inner = offset - piece.start;
            piece.listing.instructions().binary_search_by_key(&inner, |instruction| instruction.offset).is_ok()
        };
        let end = self.bytes.len() as u32;
        offsets.into_iter().copied().filter(|offset| *offset < end && offset % 4 == 0 && !starts_at(*offset)).collect()
    }
}

/// The labels of a section: its symbols, and numbered ones for the other targets.
fn labels(symbols: Vec<(u32, String)>, section: &CodeSection, targets: impl Iterator<Item = u32>) -> Vec<Label> {
    let mut names = HashSet::new();
    // An entry that has no symbol is a kernel's: its metadata names it.
    let entries = section.spans.iter().filter(|span| !span.name.is_empty());
    let entries = entries.map(|span| (span.range.start, span.name.clone()));
    let mut labels: Vec<Label> = symbols
        .into_iter()
        .chain(entries)
        .filter(|(_, name)| !name.is_empty() && names.insert(name.clone()))
        .map(|(offset, name)| Label { offset, name, is_symbol: true })
        .collect();
    let named: HashSet<u32> = labels.iter().map(|label| label.offset).collect();
    let mut number = 0;
    for offset in targets.filter(|target| !named.contains(target)) {
        let mut name = format!(".L{number}");
        while names.contains(&name) {
            number += 1;
            name = format!(".L{number}");
        }
        number += 1;
        labels.push(Label { offset, name, is_symbol: false });
    }
    labels.sort_by_key(|label| label.offset);
    labels
}
