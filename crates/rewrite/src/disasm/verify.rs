//! What a text assembles to, beside code, against the object that it was made of.

use std::collections::{BTreeMap, BTreeSet};

use codeobj::CodeObject;
use codeobj::code_object::ObjectKind;

use super::data::{self, Fate};
use super::names;
use crate::error::Result;
use crate::facts::descriptor::ENTRY_OFFSET;
use crate::object::Object;
use crate::tables::{Place, Symbol, Tables};

/// Where `made`, an object out of LLVM's assembler, has other data, symbols or relocations than `object`; none where it
/// has none. `omitted` was said to be missing already.
pub(super) fn check(object: &Object<'_>, made: &[u8], omitted: &[String]) -> Result<Option<String>> {
    let metadata = CodeObject::metadata_range(object.bytes)?;
    let tables = [Tables::read(object.bytes)?, Tables::read(made)?];
    let made_object = CodeObject::parse(made)?;
    let sections = &object.code_object.sections;
    let mut pairs = BTreeMap::new();
    for (index, section) in sections.iter().enumerate() {
        let fate = data::fate(object, index, metadata.as_ref());
        let is_code = object.sections.iter().any(|code| code.index == index);
        let is_only = sections.iter().filter(|other| other.name == section.name).count() == 1;
        if (fate != Fate::Data && !is_code) || !is_only {
            continue;
        }
        let Some(other) = made_object.sections.iter().position(|other| other.name == section.name) else {
            match section.size {
                0 => continue,
                _ => return Ok(Some(format!("section {}, which is missing", section.name))),
            }
        };
        pairs.insert(index, other);
        if is_code {
            continue;
        }
        if section.size != made_object.sections[other].size {
            return Ok(Some(format!("the size of {}", section.name)));
        }
        let (mut own, mut new) = (
            object.bytes[section.file_range.clone()].to_vec(),
            made[made_object.sections[other].file_range.clone()].to_vec(),
        );
        let descriptors = object.code_object.kernels.iter().filter_map(|kernel| kernel.descriptor.as_ref().ok());
        let entries = descriptors
            .filter_map(|placed| placed.file_range.start.checked_sub(section.file_range.start))
            .map(|start| start + ENTRY_OFFSET.start..start + ENTRY_OFFSET.end);
        let fields = tables[0].references_of(index).map(|reference| {
            let start = reference.offset as usize;
            start..start + reference.size() as usize
        });
        for range in entries.chain(fields) {
            for bytes in [&mut own, &mut new] {
                if let Some(field) = bytes.get_mut(range.clone()) {
                    field.fill(0);
                }
            }
        }
        if let Some(at) = own.iter().zip(&new).position(|(a, b)| a != b) {
            return Ok(Some(format!("{}+{at:#x}", section.name)));
        }
    }
    if object.code_object.kind != ObjectKind::Relocatable
        || !omitted.is_empty() && sections.iter().any(|own| duplicates(sections, &own.name))
    {
        return Ok(None);
    }
    for (index, other) in &pairs {
        let [own, new] =
            [(&tables[0], *index), (&tables[1], *other)].map(|(tables, section)| relocations(tables, section));
        if let Some((offset, ..)) = own.symmetric_difference(&new).next() {
            let name = &sections[*index].name;
            let is_named = omitted.iter().any(|what| what.contains(&format!("{name}+{offset:#x}")));
            if !is_named {
                return Ok(Some(format!("the relocation at {name}+{offset:#x}")));
            }
        }
    }
    let known = |symbol: &&Symbol| match symbol.place {
        Place::In { section, .. } => pairs.contains_key(&section),
        _ => true,
    };
    let new: BTreeSet<(&str, String)> = tables[1].symbols.iter().map(|symbol| (&*symbol.name, facts(symbol))).collect();
    let mut own = tables[0].symbols.iter().filter(|symbol| names::is_written(symbol)).filter(known);
    let missing = own.find(|symbol| {
        !new.contains(&(&*symbol.name, facts(symbol)))
            && !omitted.iter().any(|what| what.starts_with(&format!("symbol {} ", symbol.name)))
    });
    Ok(missing.map(|symbol| format!("symbol {}", symbol.name)))
}

fn duplicates(sections: &[codeobj::code_object::Section], name: &str) -> bool {
    sections.iter().filter(|section| section.name == name).count() > 1
}

/// What a symbol is, without the number of its section.
fn facts(symbol: &Symbol) -> String {
    let place = match symbol.place {
        Place::In { offset, .. } => Place::In { section: 0, offset },
        other => other,
    };
    format!("{place:?} {} {} {} {}", symbol.size, symbol.kind, symbol.binding, symbol.visibility)
}

/// Offset, kind, and where each leads: a name, where that is not of this file or may be replaced, else a place.
fn relocations(tables: &Tables, section: usize) -> BTreeSet<(u64, u32, String)> {
    tables.references_of(section).map(|own| (own.offset, own.kind, own.leads_to(tables))).collect()
}
