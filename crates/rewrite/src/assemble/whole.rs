//! Assembling by LLVM as a whole, for texts with macros, symbols or conditions. A label of ours at the head of every
//! line that may hold code tells where its bytes are.

use std::collections::HashMap;
use std::fmt::Write;

use asm::lines::Lines;
use asm::statement::Statement;
use llvm::{Assembler, Severity, Target, Toolchain};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object as _, ObjectSection, ObjectSymbol, RelocationTarget, SectionFlags, SectionIndex};

use super::bits::Bits;
use super::{Assembled, LineCode, Pins, Relocation, S_NOP, Section};
use crate::error::{Error, ErrorKind, Message, Result};
use crate::hint;
use crate::source::Source;
use crate::tables::{Reference, Tables};

type Elf<'d> = ElfFile<'d, FileHeader64<LittleEndian>>;

/// What our labels begin with; a line number follows.
const LABEL: &str = "coax.line.";

pub(super) fn assemble(toolchain: &Toolchain, target: &Target, source: &Source<'_>, pins: &Pins) -> Result<Assembled> {
    let natural = run(toolchain, target, source, &Before::default(), "")?;
    if pins.is_empty() {
        return Ok(natural);
    }
    let (mut before, mut behind) = (Before::default(), String::new());
    for section in &natural.sections {
        let labels =
            section.labels.iter().filter_map(|(name, offset)| Some((*offset, *pins.labels.get(name)?, Ok(name))));
        let lines = section.lines.iter().filter_map(|at| Some((at.offset, *pins.lines.get(&at.line)?, Err(at.line))));
        let mut pinned: Vec<_> = labels.chain(lines).collect();
        pinned.sort_by_key(|(offset, ..)| *offset);
        let mut shift = 0;
        for (offset, pin, place) in pinned {
            let Some(missing) = pin.checked_sub(offset + shift) else { continue };
            match place {
                Ok(label) => before.labels.insert(label, missing / 4).is_none(),
                Err(line) => before.lines.insert(line, missing / 4).is_none(),
            };
            shift += missing;
        }
        let end = section.bytes.len() as u32 + shift;
        if let Some(missing) = pins.sizes.get(&section.name).and_then(|size| size.checked_sub(end)) {
            let _ = write!(behind, "\n\t.section {}\n\t.fill {}, 4, {S_NOP:#x}\n", section.name, missing / 4);
        }
    }
    run(toolchain, target, source, &before, &behind)
}

/// How many `s_nop` stand in front of labels and of lines.
#[derive(Default)]
struct Before<'a> {
    labels: HashMap<&'a str, u32>,
    lines: HashMap<u32, u32>,
}

/// Assembles `source` with `s_nop` put in, and with more text behind it.
fn run(
    toolchain: &Toolchain,
    target: &Target,
    source: &Source<'_>,
    before: &Before<'_>,
    behind: &str,
) -> Result<Assembled> {
    let marked = mark(source.text, before);
    let assembly = toolchain.assemble(target, &(marked.text + behind))?;
    let errors = assembly.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    let messages: Vec<Message> = errors
        .map(|diagnostic| {
            let ours = marked.shift.get(&diagnostic.line).copied().unwrap_or(0);
            let column = diagnostic.column.saturating_sub(ours);
            Message { column, ..super::message_of(diagnostic, source.text) }
        })
        .collect();
    let Some(object) = assembly.object.filter(|_| messages.is_empty()) else {
        let messages =
            if messages.is_empty() { vec![Message::new("LLVM made no object of the text")] } else { messages };
        return Err(Error { kind: ErrorKind::Input, messages });
    };
    let damaged = |error: object::read::Error| Error::input(format!("LLVM's object: {error}"));
    let tables = Tables::read(&object)?;
    let object = Elf::parse(&*object).map_err(damaged)?;
    let mut assembled = Assembled::default();
    for section in object.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        if sh_flags.0 & object::elf::SHF_EXECINSTR.0 == 0 {
            continue;
        }
        let mut done = places(&object, section.index(), section.name().map_err(damaged)?);
        done.bytes = section.data().map_err(damaged)?.to_vec();
        done.links = links(&object, &section, &done);
        let relocation =
            |own: &Reference| Relocation { offset: own.offset as u32, kind: own.kind, leads_to: own.leads_to(&tables) };
        done.relocations = tables.references_of(section.index().0).map(relocation).collect();
        apply_hints(toolchain, target, &marked.hints, &mut done)?;
        assembled.sections.push(done);
    }
    Ok(assembled)
}

/// A text with our labels.
struct Marked<'a> {
    text: String,
    /// Columns that we put in front of a line.
    shift: HashMap<u32, u32>,
    /// Lines with a hint.
    hints: HashMap<u32, &'a str>,
}

fn mark<'a>(text: &'a str, before: &Before<'_>) -> Marked<'a> {
    let mut marked =
        Marked { text: String::with_capacity(text.len() * 2), shift: HashMap::new(), hints: HashMap::new() };
    let mut nesting = 0u32;
    let mut in_comment = false;
    for line in Lines::new(text.as_bytes()) {
        let content = &text[line.offset..line.offset + line.text.len()];
        let start = marked.text.len();
        // Between such directives a label would be defined as often as the lines are used.
        let word = content.trim_start().split([' ', '\t']).next().unwrap_or_default();
        nesting += u32::from(matches!(word, ".macro" | ".rept" | ".irp" | ".irpc"));
        let is_data = matches!(word, ".long" | ".fill" | ".byte" | ".int" | ".4byte");
        let statement = Statement::parse(content.as_bytes());
        let words = before.lines.get(&line.number).or_else(|| match &statement {
            Statement::Label { name, .. } => before.labels.get(std::str::from_utf8(name).ok()?),
            _ => None,
        });
        if let Some(words) = words {
            // The marker keeps the number of the line.
            let _ = write!(marked.text, ".fill {words}, 4, {S_NOP:#x}\n# {} \"<inline asm>\"\n", line.number);
        }
        let is_instruction = matches!(statement, Statement::Instruction { .. });
        if (is_instruction || is_data) && nesting == 0 && !in_comment {
            let _ = write!(marked.text, "{LABEL}{}: ", line.number);
        }
        nesting = nesting.saturating_sub(u32::from(matches!(word, ".endm" | ".endr")));
        in_comment = match (in_comment, content.rfind("/*"), content.rfind("*/")) {
            (_, Some(open), Some(close)) => open > close,
            (_, Some(_), None) => true,
            (_, None, Some(_)) => false,
            (before, None, None) => before,
        };
        marked.shift.insert(line.number, (marked.text.len() - start) as u32);
        if let Some(hint) = hint::within(content) {
            marked.hints.insert(line.number, hint);
        }
        marked.text.push_str(content);
        marked.text.push('\n');
    }
    marked
}

/// The labels of a section, the text's own and ours.
fn places(object: &Elf<'_>, index: SectionIndex, name: &str) -> Section {
    let mut done = Section { name: name.to_owned(), ..Section::default() };
    for symbol in object.symbols().filter(|symbol| symbol.section_index() == Some(index)) {
        let Ok(name) = symbol.name() else { continue };
        let offset = symbol.address() as u32;
        match name.strip_prefix(LABEL).and_then(|number| number.parse().ok()) {
            Some(line) => done.lines.push(LineCode { offset, line }),
            None if !name.is_empty() => done.labels.push((name.to_owned(), offset)),
            None => {}
        }
    }
    done.lines.sort_by_key(|line| (line.offset, line.line));
    done.labels.sort_by_key(|label| label.1);
    done
}

/// What a linker would fill in.
fn links<'d>(object: &Elf<'_>, section: &impl ObjectSection<'d>, done: &Section) -> Vec<(u32, String)> {
    let name = |target| {
        let RelocationTarget::Symbol(index) = target else { return None };
        let symbol = object.symbol_by_index(index).ok()?;
        let section = || object.section_by_index(symbol.section_index()?).ok()?.name().ok().map(str::to_owned);
        symbol.name().ok().filter(|name| !name.is_empty()).map(str::to_owned).or_else(section)
    };
    let links = section.relocations();
    links.map(|(at, link)| (done.line_at(at as u32), name(link.target()).unwrap_or_else(|| "?".into()))).collect()
}

fn apply_hints(
    toolchain: &Toolchain,
    target: &Target,
    hints: &HashMap<u32, &str>,
    section: &mut Section,
) -> Result<()> {
    let mut bits = Bits::new(toolchain, target);
    for at in 0..section.lines.len() {
        let LineCode { offset, line } = section.lines[at];
        let Some(hint) = hints.get(&line) else { continue };
        let end = section.lines.get(at + 1).map_or(section.bytes.len(), |next| next.offset as usize);
        let place = offset as usize..end;
        let changed = bits.apply(line, &section.bytes[place.clone()], hint)?.to_vec();
        section.bytes[place].copy_from_slice(&changed);
    }
    Ok(())
}
