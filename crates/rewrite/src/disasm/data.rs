//! Sections that are loaded and are no code: constants, variables, zeros, descriptors, as labels and data directives.
//!
//! What a linker makes by itself (`.dynsym`, `.dynamic`, `.got` …) is left to it. What a text cannot say is counted in
//! [`Rest::omitted`] by name, and the text says so too.

use std::collections::BTreeMap;
use std::fmt::Write;

use codeobj::code_object::{ObjectKind, Section};
use object::elf;

use super::names::{self, Names};
use super::rest::Rest;
use super::symbols::quoted;
use crate::object::Object;
use crate::tables::{Place, RELATIVE64, Reference, Symbol, Target};

/// Shorter runs of zeros are written with what is around them.
const SHORTEST_ZEROS: usize = 16;
/// Flags of sections and the letters of `.section`.
const FLAGS: [(u32, char); 6] = [
    (elf::SHF_ALLOC.0 as u32, 'a'),
    (elf::SHF_WRITE.0 as u32, 'w'),
    (elf::SHF_EXECINSTR.0 as u32, 'x'),
    (elf::SHF_MERGE.0 as u32, 'M'),
    (elf::SHF_STRINGS.0 as u32, 'S'),
    (elf::SHF_TLS.0 as u32, 'T'),
];
/// `SHF_INFO_LINK` and `SHF_LINK_ORDER` name other sections, `SHF_GROUP` one of several; none means anything when linked.
const NO_FLAGS: u64 = 0x40 | 0x80 | 0x200;

/// What becomes of a section.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// Code, metadata, tables that an assembler or linker makes: not here.
    Elsewhere,
    /// Written as data.
    Data,
    /// Not loaded, and not in the text.
    NotLoaded,
    /// The same, with nothing in it but who made the file, or what only a linker reads.
    Producer,
    /// The linker makes it again where the text gives it a reason to.
    Linkers,
    /// Notes besides metadata.
    Notes,
}

/// What becomes of section `index`.
pub(super) fn fate(object: &Object<'_>, index: usize, metadata: Option<&std::ops::Range<usize>>) -> Fate {
    let section = &object.code_object.sections[index];
    let is_linked = object.code_object.kind == ObjectKind::Dynamic;
    let kind = elf::SectionType(section.section_type);
    let tables = [elf::SHT_SYMTAB, elf::SHT_STRTAB, elf::SHT_RELA, elf::SHT_REL, elf::SHT_SYMTAB_SHNDX, elf::SHT_NULL];
    let dynamic = [elf::SHT_DYNAMIC, elf::SHT_DYNSYM, elf::SHT_HASH, elf::SHT_GNU_HASH];
    let versions = 0x6fff_fffd..=0x6fff_ffff;
    let is_table = tables.contains(&kind) || dynamic.contains(&kind) || versions.contains(&section.section_type);
    if is_table || object.sections.iter().any(|code| code.index == index) {
        return Fate::Elsewhere;
    }
    if !section.is_allocated() {
        return match &*section.name {
            _ if section.size == 0 || kind == elf::SHT_GROUP => Fate::Elsewhere,
            ".comment" | ".note.GNU-stack" | ".llvm_addrsig" => Fate::Producer,
            _ => Fate::NotLoaded,
        };
    }
    if is_linked && section.name == ".relro_padding" {
        return Fate::Elsewhere;
    }
    if is_linked && [".got", ".got.plt", ".plt"].contains(&&*section.name) {
        return Fate::Linkers;
    }
    if let Some(range) = metadata.filter(|range| section.file_range.contains(&range.start)) {
        // Three words and the owner in front of the content, and up to three bytes of padding behind it.
        let is_all =
            range.start.checked_sub(20) == Some(section.file_range.start) && section.file_range.end < range.end + 4;
        return if is_all { Fate::Elsewhere } else { Fate::Notes };
    }
    Fate::Data
}

/// Writes every such section, in the order of the file.
pub(super) fn write(object: &Object<'_>, rest: &Rest, text: &mut String) {
    for (index, section) in object.code_object.sections.iter().enumerate() {
        if rest.fates[index] == Fate::Data && (section.size > 0 || rest.has_symbols(index)) {
            Writer::new(object, rest, index, section).write(text);
        }
    }
}

/// The directive that switches to a section. Merging again would move what is merged, so linked sections are not merged.
fn directive(object: &Object<'_>, rest: &Rest, index: usize, section: &Section) -> String {
    let is_linked = object.code_object.kind == ObjectKind::Dynamic;
    let dropped = if is_linked { elf::SHF_MERGE.0 | elf::SHF_STRINGS.0 } else { 0 };
    let flags = section.flags & !u64::from(dropped as u32);
    let letters: String =
        FLAGS.iter().filter(|(flag, _)| flags & u64::from(*flag) != 0).map(|(_, letter)| letter).collect();
    let kind = match elf::SectionType(section.section_type) {
        elf::SHT_PROGBITS => "progbits".to_owned(),
        elf::SHT_NOBITS => "nobits".to_owned(),
        elf::SHT_NOTE => "note".to_owned(),
        elf::SHT_INIT_ARRAY => "init_array".to_owned(),
        elf::SHT_FINI_ARRAY => "fini_array".to_owned(),
        elf::SHT_PREINIT_ARRAY => "preinit_array".to_owned(),
        other => format!("{:#x}", other.0),
    };
    let size = match letters.contains('M') {
        true => format!(",{}", rest.tables.sections[index].entry_size),
        false => String::new(),
    };
    format!("\n\t.section {},\"{letters}\",@{kind}{size}\n", quoted(&section.name))
}

/// Flags that a text cannot give a section, if there are any.
pub(super) fn unknown_flags(section: &Section) -> u64 {
    let known = FLAGS.iter().fold(NO_FLAGS, |known, (flag, _)| known | u64::from(*flag));
    section.flags & !known
}

/// The directive that gives a symbol its visibility.
pub(super) fn visibility(symbol: &Symbol) -> Option<&'static str> {
    match symbol.visibility {
        0 => None,
        3 => Some("protected"),
        1 => Some("internal"),
        _ => Some("hidden"),
    }
}

/// Directives that give a symbol binding, visibility and type.
pub(super) fn attributes(symbol: &Symbol) -> String {
    let name = quoted(&symbol.name);
    let mut text = String::new();
    let binding = match symbol.binding {
        0 => None,
        2 => Some("weak"),
        10 => None, // STB_GNU_UNIQUE comes with the type.
        _ => Some("globl"),
    };
    for directive in binding.into_iter().chain(visibility(symbol)) {
        let _ = writeln!(text, "\t.{directive} {name}");
    }
    let kind = match symbol.kind {
        1 if symbol.binding == 10 => "gnu_unique_object",
        1 => "object",
        2 => "function",
        6 => "tls_object",
        10 => "gnu_indirect_function",
        _ => return text,
    };
    let _ = writeln!(text, "\t.type {name},@{kind}");
    text
}

/// A section on its way to text.
struct Writer<'w> {
    object: &'w Object<'w>,
    rest: &'w Rest,
    index: usize,
    section: &'w Section,
    names: &'w Names,
    /// What stands in front of the byte at an offset.
    labels: BTreeMap<u64, String>,
    references: BTreeMap<u64, &'w Reference>,
}

impl<'w> Writer<'w> {
    fn new(object: &'w Object<'w>, rest: &'w Rest, index: usize, section: &'w Section) -> Self {
        let names = &rest.names;
        let mut labels: BTreeMap<u64, String> = BTreeMap::new();
        for symbol in rest.symbols_of(index) {
            let Place::In { offset, .. } = symbol.place else { continue };
            if rest.facts.descriptor_at(index, offset).is_some_and(|placed| placed.symbol == symbol.name) {
                continue;
            }
            let name = quoted(&symbol.name);
            let text = labels.entry(offset).or_default();
            *text += &attributes(symbol);
            if symbol.size != 0 {
                let _ = writeln!(text, "\t.size {name}, {}", symbol.size);
            }
            let _ = writeln!(text, "{name}:");
        }
        for (offset, name) in names.labels_of(index) {
            let _ = writeln!(labels.entry(offset).or_default(), "{}:", quoted(name));
        }
        let references = rest.tables.references_of(index).map(|reference| (reference.offset, reference)).collect();
        Writer { object, rest, index, section, names, labels, references }
    }

    fn write(&self, text: &mut String) {
        *text += &directive(self.object, self.rest, self.index, self.section);
        let align = self.rest.tables.sections[self.index].align;
        let first = self.rest.facts.descriptor_at(self.index, 0);
        if align > 1 && align.is_power_of_two() && (first.is_none() || align != 64) {
            let _ = writeln!(text, "\t.p2align {}", align.trailing_zeros());
        }
        let bytes = &self.object.bytes[self.section.file_range.clone()];
        let end = if bytes.is_empty() { self.section.size } else { bytes.len() as u64 };
        let mut at = 0;
        while at < end {
            text.push_str(self.labels.get(&at).map_or("", |labels| labels));
            let next = self.next_mark(at, end);
            if let Some(placed) = self.rest.facts.descriptor_at(self.index, at) {
                if align >= 64 && at.is_multiple_of(64) {
                    text.push_str("\t.p2align 6\n");
                }
                text.push_str(&placed.text);
                at += placed.size;
                continue;
            }
            if bytes.is_empty() {
                let _ = writeln!(text, "\t.zero {}", next - at);
                at = next;
                continue;
            }
            if let Some(reference) = self.references.get(&at)
                && let Some(written) = self.reference(reference, &bytes[at as usize..next as usize])
            {
                text.push_str(&written);
                at += reference.size();
                continue;
            }
            data(&bytes[at as usize..next as usize], at, text);
            at = next;
        }
        self.labels.range(end..).for_each(|(_, labels)| text.push_str(labels));
    }

    /// Where something begins that is not just bytes.
    fn next_mark(&self, at: u64, end: u64) -> u64 {
        let behind = at + 1..;
        let label = self.labels.range(behind.clone()).next().map(|(offset, _)| *offset);
        let reference = self.references.range(behind.clone()).next().map(|(offset, _)| *offset);
        let descriptor = self.rest.facts.next_descriptor(self.index, at);
        [label, reference, descriptor].into_iter().flatten().fold(end, u64::min)
    }

    /// A field that holds an address, as an expression; none when `bytes` is not room enough for it.
    fn reference(&self, reference: &Reference, bytes: &[u8]) -> Option<String> {
        let own = bytes.get(..reference.size() as usize)?;
        let (name, added) = self.names.expression(reference)?;
        let is_filled = reference.kind == RELATIVE64 || self.object.code_object.kind == ObjectKind::Dynamic;
        let expression = match reference.kind {
            3 | RELATIVE64 => format!(".quad {name}{added}"),
            5 => format!(".quad {name}{added}-."),
            4 => format!(".long {name}{added}-."),
            6 => format!(".long {name}{added}"),
            1 | 2 | 7..=11 => format!(".long {name}{}{added}", modifier(reference.kind)?),
            _ => String::new(),
        };
        // The assembler leaves zeros in the field; where the file has something else, that is said with it.
        if !expression.is_empty() && (is_filled || own.iter().all(|byte| *byte == 0)) {
            return Some(format!("\t{expression}\n"));
        }
        let mut text = format!("\t.reloc ., {}, {name}{added}\n", kind_name(reference.kind)?);
        data(own, 1, &mut text);
        Some(text)
    }
}

/// `@rel32@lo`: what a relocation is written as behind a symbol's name.
pub(super) fn modifier(kind: u32) -> Option<&'static str> {
    Some(match kind {
        1 => "@abs32@lo",
        2 => "@abs32@hi",
        3 => "@abs64",
        4 => "@rel32",
        5 => "@rel64",
        6 => "",
        7 => "@gotpcrel",
        8 => "@gotpcrel32@lo",
        9 => "@gotpcrel32@hi",
        10 => "@rel32@lo",
        11 => "@rel32@hi",
        _ => return None,
    })
}

/// The name of a relocation, as `.reloc` takes it.
pub(super) fn kind_name(kind: u32) -> Option<&'static str> {
    Some(match kind {
        0 => "R_AMDGPU_NONE",
        1 => "R_AMDGPU_ABS32_LO",
        2 => "R_AMDGPU_ABS32_HI",
        3 => "R_AMDGPU_ABS64",
        4 => "R_AMDGPU_REL32",
        5 => "R_AMDGPU_REL64",
        6 => "R_AMDGPU_ABS32",
        7 => "R_AMDGPU_GOTPCREL",
        8 => "R_AMDGPU_GOTPCREL32_LO",
        9 => "R_AMDGPU_GOTPCREL32_HI",
        10 => "R_AMDGPU_REL32_LO",
        11 => "R_AMDGPU_REL32_HI",
        13 => "R_AMDGPU_RELATIVE64",
        14 => "R_AMDGPU_REL16",
        _ => return None,
    })
}

/// Bytes that start at an offset, as words where they are aligned.
fn data(bytes: &[u8], at: u64, text: &mut String) {
    let mut rest = bytes;
    while !rest.is_empty() {
        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
        if zeros >= SHORTEST_ZEROS || zeros == rest.len() && zeros > 1 {
            let _ = writeln!(text, "\t.zero {zeros}");
            rest = &rest[zeros..];
            continue;
        }
        let position = at + (bytes.len() - rest.len()) as u64;
        let ahead = rest[1..].windows(SHORTEST_ZEROS).position(|run| run.iter().all(|byte| *byte == 0));
        let room = ahead.map_or(rest.len(), |zeros| zeros + 1).min(16);
        let (words, take) = match position.is_multiple_of(4) && room >= 4 {
            true => (true, room / 4 * 4),
            false => (false, room.min((4 - position % 4) as usize)),
        };
        let (line, behind) = rest.split_at(take);
        let values: Vec<String> = match words {
            true => line
                .chunks_exact(4)
                .map(|word| format!("{:#010x}", u32::from_le_bytes([word[0], word[1], word[2], word[3]])))
                .collect(),
            false => line.iter().map(|byte| format!("{byte:#04x}")).collect(),
        };
        let _ = writeln!(text, "\t{} {}", if words { ".long" } else { ".byte" }, values.join(", "));
        rest = behind;
    }
}

/// Symbols that are in no section: values, tentative definitions, variables in LDS, and what others define.
pub(super) fn unplaced(rest: &Rest, text: &mut String) {
    let mut lines = String::new();
    for symbol in rest.tables.symbols.iter().filter(|symbol| names::is_written(symbol) && rest.names.owns(symbol)) {
        let name = quoted(&symbol.name);
        let _ = match symbol.place {
            Place::In { .. } => continue,
            Place::Absolute(value) => writeln!(lines, "{}\t.set {name}, {value:#x}", attributes(symbol)),
            // LLVM reads the alignment as a power of two for this target.
            Place::Common(align) => {
                let power = align.max(1).trailing_zeros();
                writeln!(lines, "{}\t.comm {name},{},{power}", attributes(symbol), symbol.size)
            }
            Place::Lds(align) => {
                writeln!(lines, "{}\t.amdgpu_lds {name}, {}, {align}", attributes(symbol), symbol.size)
            }
            Place::Undefined => writeln!(lines, "{}", attributes(symbol).trim_end_matches('\n')),
        };
    }
    if !lines.trim().is_empty() {
        // `.set` in a section of code would have the text read as one with symbols of its own.
        *text += "\n\t.section .note.GNU-stack,\"\",@progbits\n";
        *text += &lines;
    }
}

/// Whether the target of a reference is known by name or place.
pub(super) fn is_known(reference: &Reference) -> bool {
    !matches!(reference.target, Target::None) && kind_name(reference.kind).is_some()
}
