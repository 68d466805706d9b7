//! Everything of a code object that goes into its text beside plain instructions: descriptors and metadata, data,
//! symbols in the order of their table, relocations, and by name what a text cannot say.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use codeobj::CodeObject;
use codeobj::code_object::{ObjectKind, Section};
use llvm::Toolchain;

use super::computed::{Distances, Found};
use super::data::{self, Fate};
use super::names::{self, Names};
use super::relocated::{self, Relocated};
use super::symbols::quoted;
use crate::code::Code;
use crate::distance;
use crate::error::Result;
use crate::facts::Facts;
use crate::object::Object;
use crate::tables::{Place, Symbol, Tables};

/// An address.
const GOT_SLOT_BYTES: u64 = 8;

/// What is written beside code.
pub struct Rest {
    pub(super) facts: Facts,
    pub(super) tables: Tables,
    pub(super) names: Names,
    pub(super) fates: Vec<Fate>,
    /// Instructions of a relocatable object with a relocation, by section and offset.
    pub(super) relocated: HashMap<(usize, u32), Relocated>,
    /// Instructions of a linked object that compute an address from the program counter.
    pub(super) distances: Distances,
    /// Kernels whose visibility is said behind their descriptor, which otherwise would get it too.
    pub(super) late: HashSet<String>,
    /// What the text leaves out, by name.
    pub omitted: Vec<String>,
    /// The same of what nobody misses; only the text says so.
    producers: Vec<String>,
}

impl Rest {
    /// That of `object`, whose `codes` get labels for the places that data points to.
    ///
    /// # Errors
    /// As [`Facts::of`]; damaged tables.
    pub fn of(toolchain: &Toolchain, object: &Object<'_>, codes: &mut [Code<'_>]) -> Result<Rest> {
        let mut facts = Facts::of(toolchain, object)?;
        let tables = Tables::read(object.bytes)?;
        let metadata = CodeObject::metadata_range(object.bytes)?;
        let sections = 0..object.code_object.sections.len();
        let fates: Vec<Fate> = sections.map(|index| data::fate(object, index, metadata.as_ref())).collect();
        let found = Found::of(toolchain, object, codes, &tables, &fates)?;
        let names = Names::new(object, codes, &tables, found.references());
        let distances = found.named(object, &names);
        let (relocated, failed) = match object.code_object.kind {
            ObjectKind::Relocatable => relocated::write(toolchain, object, codes, &tables, &names)?,
            ObjectKind::Dynamic => Default::default(),
        };
        let late = facts.adjust_symbols(&tables.symbols);
        let mut rest =
            Rest { facts, tables, names, fates, relocated, distances, late, omitted: failed, producers: Vec::new() };
        rest.omit(object);
        Ok(rest)
    }

    /// The symbols of a section that is no code, as the text has them.
    pub(super) fn symbols_of(&self, section: usize) -> impl Iterator<Item = &Symbol> {
        let is_in = move |symbol: &&Symbol| matches!(symbol.place, Place::In { section: own, .. } if own == section);
        self.tables.symbols.iter().filter(is_in).filter(|symbol| names::is_written(symbol) && self.names.owns(symbol))
    }

    pub(super) fn has_symbols(&self, section: usize) -> bool {
        self.symbols_of(section).next().is_some() || self.names.labels_of(section).next().is_some()
    }

    /// Says what is left out and, where the text would have the linker see them in another order, the global symbols.
    pub(super) fn head(&self, object: &Object<'_>, text: &mut String) {
        for omitted in self.omitted.iter().chain(&self.producers) {
            let _ = writeln!(text, "; not in this text: {omitted}");
        }
        self.places(object, text);
        let is_global = |symbol: &&Symbol| symbol.binding != 0 && names::is_written(symbol);
        let wanted: Vec<&Symbol> = self.tables.symbols.iter().filter(is_global).collect();
        let rank: HashMap<&str, usize> = wanted.iter().enumerate().map(|(at, symbol)| (&*symbol.name, at)).collect();
        let mut natural: Vec<usize> = Vec::new();
        for section in &object.sections {
            natural.extend(object.symbols_of(section).iter().filter_map(|(_, symbol)| rank.get(&*symbol.name)));
        }
        for (index, _) in self.fates.iter().enumerate().filter(|(_, fate)| **fate == Fate::Data) {
            let mut own: Vec<(u64, usize)> = self
                .symbols_of(index)
                .filter_map(|symbol| match symbol.place {
                    Place::In { offset, .. } => Some((offset, *rank.get(&*symbol.name)?)),
                    _ => None,
                })
                .collect();
            own.sort_by_key(|(offset, _)| *offset);
            natural.extend(own.into_iter().map(|(_, rank)| rank));
        }
        let unplaced = wanted.iter().enumerate().filter(|(_, symbol)| !matches!(symbol.place, Place::In { .. }));
        natural.extend(unplaced.map(|(rank, _)| rank));
        if natural.is_sorted() {
            return;
        }
        for symbol in wanted {
            let directive = if symbol.binding == 2 { "weak" } else { "globl" };
            let _ = writeln!(text, "\t.{directive} {}", quoted(&symbol.name));
        }
    }

    /// Where sections are, for texts with numbers that may be distances between them.
    fn places(&self, object: &Object<'_>, text: &mut String) {
        let sections = || object.code_object.sections.iter().enumerate().filter(|(_, section)| section.is_allocated());
        let has_numbers = |(index, section): (usize, &Section)| {
            let described = self.facts.descriptor_bytes(index);
            self.fates[index] == Fate::Data && !section.file_range.is_empty() && section.size > described
        };
        if object.code_object.kind != ObjectKind::Dynamic
            || self.distances.fixed.is_empty() && !sections().any(has_numbers)
        {
            return;
        }
        for (index, section) in sections() {
            let is_code = object.sections.iter().any(|code| code.index == index);
            if (is_code || self.fates[index] == Fate::Data) && !section.name.contains(['\n', '\r']) {
                text.push_str(&distance::section(section.address, section.size, &section.name));
            }
        }
    }

    /// Appends everything that stands behind the code.
    pub(super) fn write(&self, object: &Object<'_>, text: &mut String) {
        data::write(object, self, text);
        for symbol in self.tables.symbols.iter().filter(|symbol| self.late.contains(&symbol.name)) {
            if let Some(directive) = data::visibility(symbol) {
                let _ = writeln!(text, "\t.{directive} {}", quoted(&symbol.name));
            }
        }
        // The assembler refers to a local symbol by its section, of which a slot would be: the linker makes these local.
        for symbol in self.tables.symbols.iter().filter(|symbol| symbol.binding == 0 && self.names.owns(symbol)) {
            let name = quoted(&symbol.name);
            if self.distances.slot_symbols.contains(&*name) {
                let _ = writeln!(text, "\t.globl {name}\n\t.hidden {name}");
            }
        }
        text.push_str(&self.facts.metadata);
        data::unplaced(self, text);
    }

    /// Whether the code asks by name for all that a section of the linker's has.
    fn is_named(&self, index: usize, section: &Section) -> bool {
        let slots = self.distances.slots.iter().filter(|(own, _)| *own == index).count() as u64;
        slots > 0 && slots * GOT_SLOT_BYTES == section.size
    }

    /// Collects by name what the text does not have.
    fn omit(&mut self, object: &Object<'_>) {
        let sections = &object.code_object.sections;
        let named = |fate: Fate| -> Vec<&str> {
            let own = self.fates.iter().enumerate().filter(|(_, own)| **own == fate);
            let named = own.filter(|(index, _)| fate != Fate::Linkers || !self.is_named(*index, &sections[*index]));
            named.map(|(index, _)| &*sections[index].name).collect()
        };
        let mut omitted = Vec::new();
        for (fate, why) in [
            (Fate::NotLoaded, "which no GPU loads"),
            (Fate::Linkers, "which the linker makes only for code that asks for it"),
            (Fate::Notes, "which has notes besides the metadata"),
        ] {
            let names = named(fate);
            if !names.is_empty() {
                omitted.push(format!("{}, {why}", names.join(", ")));
            }
        }
        let producers = named(Fate::Producer);
        if !producers.is_empty() {
            self.producers = vec![format!("{}, which no GPU loads", producers.join(", "))];
        }
        for (signature, members) in &self.tables.groups {
            let members: Vec<&str> = members.iter().filter_map(|index| Some(&*sections.get(*index)?.name)).collect();
            omitted.push(format!(
                "the COMDAT group `{signature}` of {}: a linker will not take these for another object's copies",
                members.join(", ")
            ));
        }
        for (section, offset) in &self.distances.fixed {
            let name = &sections[*section].name;
            omitted.push(format!("what the program counter of {name}+{offset:#x} leads to, which is not understood"));
        }
        for (index, section) in sections.iter().enumerate().filter(|(index, _)| self.fates[*index] == Fate::Data) {
            let flags = data::unknown_flags(section);
            if flags != 0 {
                omitted.push(format!("flags {flags:#x} of section {}", section.name));
            }
            let before = &sections[..index];
            if before.iter().zip(&self.fates).any(|(other, fate)| *fate == Fate::Data && other.name == section.name) {
                omitted.push(format!("that there are several sections {}: they become one", section.name));
            }
        }
        for name in &self.tables.unread {
            omitted.push(format!("{name}, relocations of a kind that is not known here"));
        }
        let is_linked = object.code_object.kind == ObjectKind::Dynamic;
        let is_code = |index: usize| object.sections.iter().any(|code| code.index == index);
        for reference in &self.tables.references {
            if is_linked && is_code(reference.section) {
                let (section, offset) = (&sections[reference.section].name, reference.offset);
                omitted.push(format!("the relocation of type {} at {section}+{offset:#x}", reference.kind));
            }
            if self.fates[reference.section] != Fate::Data {
                continue;
            }
            if self.facts.descriptor_at(reference.section, reference.offset).is_some() || self.facts.covers(reference) {
                continue;
            }
            if !data::is_known(reference) || self.names.expression(reference).is_none() {
                let (section, offset) = (&sections[reference.section].name, reference.offset);
                omitted.push(format!("the relocation of type {} at {section}+{offset:#x}", reference.kind));
            }
        }
        for symbol in self.tables.symbols.iter().filter(|symbol| !symbol.name.is_empty()) {
            let Place::In { section, offset } = symbol.place else { continue };
            let is_symbol = ![object::elf::STT_SECTION.0, object::elf::STT_FILE.0].contains(&symbol.kind);
            let is_linkers = ["_DYNAMIC", "_GLOBAL_OFFSET_TABLE_"].contains(&&*symbol.name);
            let Some(home) = sections.get(section).filter(|_| is_symbol && !is_linkers) else { continue };
            let is_code = object.sections.iter().any(|code| code.index == section);
            let is_placed = (is_code || self.fates[section] == Fate::Data) && offset <= home.size;
            if !is_placed || !names::is_written(symbol) || !self.names.owns(symbol) {
                omitted.push(format!("symbol {} in {}", symbol.name, home.name));
            }
        }
        self.omitted.extend(omitted);
    }
}
