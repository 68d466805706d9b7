//! How a text says which place it means: a symbol, a symbol and a distance, or a label of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use codeobj::code_object::ObjectKind;

use super::symbols::quoted;
use crate::code::Code;
use crate::object::Object;
use crate::tables::{Place, Reference, Symbol, Tables, Target};

/// Names of places.
pub(super) struct Names {
    /// By section, in address order.
    symbols: BTreeMap<usize, Vec<Named>>,
    /// Labels that only the text has.
    labels: BTreeMap<(usize, u64), String>,
    /// Which place a name means.
    owners: HashMap<String, Place>,
}

/// A symbol of a section.
struct Named {
    offset: u64,
    size: u64,
    name: String,
    /// Whether it cannot be replaced by another object's: it may stand for its place.
    is_own: bool,
}

impl Names {
    /// Those of the symbols in `tables`, and labels for every other place that a reference, there or in `more`, leads to:
    /// in code where an instruction starts, in data anywhere.
    pub fn new<'r>(
        object: &Object<'_>,
        codes: &mut [Code<'_>],
        tables: &'r Tables,
        more: impl Iterator<Item = &'r Reference>,
    ) -> Names {
        let mut names = Names { symbols: BTreeMap::new(), labels: BTreeMap::new(), owners: HashMap::new() };
        for symbol in tables.symbols.iter().filter(|symbol| is_written(symbol)) {
            if names.owners.contains_key(&symbol.name) {
                continue;
            }
            names.owners.insert(symbol.name.clone(), symbol.place);
            if let Place::In { section, offset } = symbol.place {
                let own = names.symbols.entry(section).or_default();
                let is_linked = object.code_object.kind == ObjectKind::Dynamic;
                let is_own = symbol.binding == 0 || is_linked && symbol.visibility != 0;
                own.push(Named { offset, size: symbol.size, name: symbol.name.clone(), is_own });
            }
        }
        names.symbols.values_mut().for_each(|symbols| symbols.sort_by_key(|symbol| symbol.offset));
        let mut taken: HashSet<String> = names.owners.keys().cloned().collect();
        taken.extend(codes.iter().flat_map(|code| &code.labels).map(|label| label.name.clone()));
        let mut number = 0;
        for reference in tables.references.iter().chain(more) {
            let Some((section, offset)) = names.meant(reference) else { continue };
            let Ok(offset) = u64::try_from(offset) else { continue };
            let code = codes.iter().position(|code| code.section.index == section);
            // Code that is edited moves: a label moves with it, a distance from a symbol does not.
            let around = names.symbol_around(section, offset);
            if around.is_some_and(|(start, _)| code.is_none() || start == offset)
                || names.labels.contains_key(&(section, offset))
            {
                continue;
            }
            if let Some(code) = code.and_then(|at| codes.get_mut(at)) {
                let label = u32::try_from(offset).ok().and_then(|offset| code.name_place(offset));
                names.labels.extend(label.map(|name| ((section, offset), name)));
            } else if object.code_object.sections.get(section).is_some_and(|section| offset <= section.size) {
                let name = loop {
                    let name = format!(".Ldata{number}");
                    number += 1;
                    if taken.insert(name.clone()) {
                        break name;
                    }
                };
                names.labels.insert((section, offset), name);
            }
        }
        names
    }

    /// Labels of a section that is no code, with their offsets.
    pub fn labels_of(&self, section: usize) -> impl Iterator<Item = (u64, &str)> {
        self.labels.range((section, 0)..=(section, u64::MAX)).map(|((_, offset), name)| (*offset, &**name))
    }

    /// A reference's symbol and what is added to it, as text; none where no name is near.
    pub fn expression(&self, reference: &Reference) -> Option<(String, String)> {
        if let Target::Symbol(name, place) = &reference.target
            && self.owners.get(name) == Some(place)
        {
            return Some((quoted(name).into_owned(), signed(reference.addend)));
        }
        let (section, offset) = self.meant(reference)?;
        let bias = bias(reference);
        let near = u64::try_from(offset).ok();
        if let Some(label) = near.and_then(|offset| self.labels.get(&(section, offset))) {
            return Some((quoted(label).into_owned(), signed(bias)));
        }
        let (start, name) = near.and_then(|offset| self.symbol_around(section, offset)).or_else(|| {
            // No label can be there: counted from the name before, or from the first one.
            let symbols = self.symbols.get(&section)?;
            let behind = symbols.partition_point(|symbol| near.is_some_and(|offset| symbol.offset <= offset));
            symbols.get(behind.saturating_sub(1)).map(|symbol| (symbol.offset, &*symbol.name))
        })?;
        Some((quoted(name).into_owned(), signed(offset.wrapping_sub(start as i64).wrapping_add(bias))))
    }

    /// Whether the symbol is the one that its name means here.
    pub fn owns(&self, symbol: &Symbol) -> bool {
        self.owners.get(&symbol.name) == Some(&symbol.place)
    }

    /// The place that a reference means, where that has no name of its own.
    fn meant(&self, reference: &Reference) -> Option<(usize, i64)> {
        if let Target::Symbol(name, place) = &reference.target
            && self.owners.get(name) == Some(place)
        {
            return None;
        }
        let (section, offset) = reference.place()?;
        Some((section, offset.wrapping_sub(bias(reference))))
    }

    /// The symbol whose bytes hold a place, or that starts there.
    fn symbol_around(&self, section: usize, offset: u64) -> Option<(u64, &str)> {
        let symbols = self.symbols.get(&section)?;
        let behind = symbols.partition_point(|symbol| symbol.offset <= offset);
        let mut before = symbols[..behind].iter().rev().take(NEAR).filter(|symbol| symbol.is_own);
        let found = before.find(|symbol| offset - symbol.offset < symbol.size.max(1));
        found.map(|symbol| (symbol.offset, &*symbol.name))
    }
}

/// So many symbols are looked at in front of a place.
const NEAR: usize = 16;

/// Whether a text can have it: sections and files are no symbols there, and what starts with `.L` is dropped.
pub(super) fn is_written(symbol: &Symbol) -> bool {
    use object::elf::{STT_FILE, STT_SECTION};
    !symbol.name.is_empty()
        && symbol.kind != STT_SECTION.0
        && symbol.kind != STT_FILE.0
        && !symbol.name.starts_with(".L")
}

/// What the usual sequences add to the symbol because the field is not where the program counter was read (see
/// `pc_relative`). Only decides which name is chosen.
fn bias(reference: &Reference) -> i64 {
    match reference.kind {
        8 | 10 => 4,
        9 | 11 => 12,
        _ => 0,
    }
}

/// `+4`, `-4`, nothing for 0.
fn signed(number: i64) -> String {
    match number {
        0 => String::new(),
        number => format!("{number:+}"),
    }
}
