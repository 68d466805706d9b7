//! Addresses that linked code computes from the program counter, by name: the numbers stay in the text, and a hint says
//! what each stands for ([`crate::distance`]). Without one an edit would leave them leading to where things were.
//!
//! A number has a name where the computation is understood ([`crate::pc_relative`]), its constants are literals of their
//! own, and what it leads to is code, data, or the slot of a known symbol in the `.got`, which the linker then makes
//! again. Where one has none, its hint says so, and `coax asm` takes no edit that moves anything.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use codeobj::code_object::ObjectKind;
use llvm::{Instruction, Toolchain};

use super::data::Fate;
use super::names::Names;
use crate::code::Code;
use crate::distance;
use crate::error::Result;
use crate::linked;
use crate::object::Object;
use crate::pc_relative::{self, Computed};
use crate::tables::{Reference, Tables, Target};

/// What is known of them, by section and offset of the instruction.
#[derive(Default)]
pub(super) struct Distances {
    pub hints: HashMap<(usize, u32), String>,
    /// Those that read the program counter for something without a name: section and offset.
    pub fixed: BTreeSet<(usize, u32)>,
    /// Slots of the `.got` that have a name now: section and offset.
    pub slots: BTreeSet<(usize, u64)>,
    /// Symbols that slots are for, as the text names them.
    pub slot_symbols: BTreeSet<String>,
}

/// `R_AMDGPU_REL32`: as a reference that has its symbol without anything added for the field's place.
const REL32: u32 = 4;

/// A computation that gets a name if there is one for where it leads.
struct Candidate {
    section: usize,
    /// Offset of what reads the program counter.
    base: u32,
    adds: Vec<Literal>,
    reference: Reference,
    /// The slot that it leads to, and through which to the symbol.
    slot: Option<(usize, u64)>,
}

/// A constant: offset of the instruction, and how its text has the number.
struct Literal {
    at: u32,
    number: String,
}

/// All that was found, before there are names.
#[derive(Default)]
pub(super) struct Found {
    candidates: Vec<Candidate>,
    fixed: BTreeSet<(usize, u32)>,
}

impl Found {
    /// Those of a linked object's code.
    ///
    /// # Errors
    /// As [`linked::Code::of_section`].
    pub fn of(
        toolchain: &Toolchain,
        object: &Object<'_>,
        codes: &[Code<'_>],
        tables: &Tables,
        fates: &[Fate],
    ) -> Result<Found> {
        let mut found = Found::default();
        if object.code_object.kind != ObjectKind::Dynamic {
            return Ok(found);
        }
        let reads_pc = |mnemonic: &str| matches!(mnemonic, "s_getpc_b64" | "s_get_pc_i64" | "s_add_pc_i64");
        for own in codes {
            if !own.instructions().any(|(_, listing, instruction)| reads_pc(listing.mnemonic(instruction))) {
                continue;
            }
            let code = linked::Code::of_section(toolchain, object, own.section)?;
            let mut all = Vec::new();
            for (index, instruction) in code.instructions().iter().enumerate() {
                match pc_relative::of(&code, index) {
                    Ok(computed) => all.extend(computed),
                    Err(_) => found.fix(own, instruction),
                }
            }
            // A constant that serves several bases has no one name.
            let mut uses: HashMap<usize, BTreeSet<(usize, u64)>> = HashMap::new();
            for computed in &all {
                for add in &computed.adds {
                    uses.entry(add.instruction).or_default().insert((computed.base, computed.target));
                }
            }
            for computed in &all {
                let is_shared = computed.adds.iter().any(|add| uses[&add.instruction].len() > 1);
                let candidate = if is_shared { None } else { candidate(object, &code, computed, tables, fates) };
                match candidate {
                    Some(candidate) => found.candidates.push(candidate),
                    None => found.fix(own, &code.instructions()[computed.base]),
                }
            }
        }
        Ok(found)
    }

    fn fix(&mut self, code: &Code<'_>, base: &Instruction) {
        self.fixed.insert((code.section.index, base.offset));
    }

    /// What needs a name.
    pub fn references(&self) -> impl Iterator<Item = &Reference> {
        self.candidates.iter().map(|candidate| &candidate.reference)
    }

    /// With the names that there are.
    pub fn named(self, object: &Object<'_>, names: &Names) -> Distances {
        let mut distances = Distances { fixed: self.fixed, ..Distances::default() };
        let mut numbers: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let mut named = Vec::new();
        for candidate in self.candidates {
            match name(object, names, &candidate) {
                Some(name) => named.push((candidate, name)),
                None => drop(distances.fixed.insert((candidate.section, candidate.base))),
            }
        }
        for (candidate, name) in named {
            let base = (candidate.section, candidate.base);
            if distances.fixed.contains(&base) {
                continue;
            }
            let next = numbers.len();
            let number = *numbers.entry(base).or_insert(next);
            let suffixes: &[&str] = match (&*candidate.adds, candidate.slot) {
                ([only], None) if only.at == candidate.base => &[""],
                ([_], None) => &["@rel64"],
                ([_, _], None) => &["@rel32@lo", "@rel32@hi"],
                _ => &["@gotpcrel32@lo", "@gotpcrel32@hi"],
            };
            distances.hints.entry(base).or_insert_with(|| distance::base(number));
            for (add, suffix) in candidate.adds.iter().zip(suffixes) {
                let (symbol, added) = &name;
                let expression = format!("{symbol}{suffix}{added}");
                distances.hints.insert((candidate.section, add.at), distance::add(number, &add.number, &expression));
            }
            if let Some(slot) = candidate.slot {
                distances.slots.insert(slot);
                distances.slot_symbols.insert(name.0);
            }
        }
        for (section, offset) in &distances.fixed {
            distances.hints.insert((*section, *offset), distance::fixed(*offset));
        }
        distances
    }
}

/// The computation in a form that a hint can say; none for another.
fn candidate(
    object: &Object<'_>,
    code: &linked::Code<'_>,
    computed: &Computed,
    tables: &Tables,
    fates: &[Fate],
) -> Option<Candidate> {
    let instructions = code.instructions();
    let base = &instructions[computed.base];
    let is_branch = computed.adds.len() == 1 && computed.adds[0].instruction == computed.base;
    let length = if computed.adds.len() == 2 { 8 } else { 12 };
    let mut adds = Vec::new();
    for add in &computed.adds {
        let instruction = &instructions[add.instruction];
        // The text has them in this order too, for a hint refers to the line above.
        let is_behind = is_branch || instruction.offset > base.offset;
        if add.negative || !is_behind || instruction.len != length {
            return None;
        }
        let value = add.operand.value as u64 & if length == 8 { 0xffff_ffff } else { u64::MAX };
        let text = code.listing.text(instruction);
        let number = distance::number_in(text, value)?;
        adds.push(Literal { at: instruction.offset, number });
    }
    let sections = &object.code_object.sections;
    let (section, offset) = place(object, computed.target, fates)?;
    let field = u64::from(adds.first()?.at) + 4;
    let reference = |target, addend| Reference { section: code.section, offset: field, kind: REL32, target, addend };
    let is_code = object.sections.iter().any(|own| own.index == section);
    let (reference, slot) = match fates[section] {
        Fate::Linkers if sections[section].name == ".got" && adds.len() == 2 => {
            let held = tables.references_of(section).find(|held| held.offset == offset)?;
            (reference(held.target.clone(), held.addend), Some((section, offset)))
        }
        Fate::Data => (reference(Target::Section(section), offset as i64), None),
        _ if is_code => (reference(Target::Section(section), offset as i64), None),
        _ => return None,
    };
    (!is_branch || section == code.section).then_some(())?;
    Some(Candidate { section: code.section, base: base.offset, adds, reference, slot })
}

/// The section that holds an address, or ends there, and the offset.
fn place(object: &Object<'_>, address: u64, fates: &[Fate]) -> Option<(usize, u64)> {
    let sections = object.code_object.sections.iter().enumerate();
    let loaded = sections.filter(|(_, section)| section.is_allocated());
    let offset = |section: &codeobj::code_object::Section| address.checked_sub(section.address);
    let within = loaded
        .clone()
        .find_map(|(index, section)| Some((index, offset(section).filter(|offset| *offset < section.size)?)));
    let mut at_end = loaded.filter(|(index, _)| fates[*index] == Fate::Data);
    within.or_else(|| {
        at_end.find_map(|(index, section)| Some((index, offset(section).filter(|at| *at == section.size)?)))
    })
}

/// What to write for where a computation leads.
fn name(object: &Object<'_>, names: &Names, candidate: &Candidate) -> Option<(String, String)> {
    let (name, added) = names.expression(&candidate.reference)?;
    let in_code = object.sections.iter().any(|own| Target::Section(own.index) == candidate.reference.target);
    // Code is edited: only a label moves with it. A slot is a symbol's, not one of a place near it.
    let is_exact = added.is_empty() && (candidate.slot.is_none() || !name.trim_start_matches('"').starts_with(".L"));
    let is_whole = is_exact || (!in_code && candidate.slot.is_none());
    (is_whole && !name.contains([';', '\n', '\r'])).then_some((name, added))
}
