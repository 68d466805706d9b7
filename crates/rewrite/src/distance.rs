//! The hint that says what a distance from the program counter leads to. The text keeps the number, which is what the
//! reference has; `coax asm` puts the name in its place, so that the linker computes it for the edited code.
//!
//! ```text
//! s_getpc_b64 s[4:5] ;@pc 0                                        the first one that has a name
//! s_add_u32 s4, s4, 0x1ff8 ;@pc 0 0x1ff8 table@rel32@lo            what the number stands for
//! s_addc_u32 s5, s5, lit(0x0) ;@pc 0 lit(0x0) table@rel32@hi
//! s_getpc_b64 s[6:7] ;@pc fixed 0x1a4                              one without a name: right only at this offset
//! ;@section 0x1600 0x800 .text                                     where the reference has its sections
//! ```
//!
//! To any other assembler all of it is comment.

use std::collections::HashMap;
use std::fmt::Write;

use codeobj::CodeObject;

use crate::assemble::Assembled;
use crate::error::{Error, ErrorKind, Message, Result};

/// What starts a hint; everything up to the next `;` belongs to it.
pub(crate) const MARK: &str = ";@pc ";
/// What starts the line of a section: address, size, name.
const SECTION: &str = ";@section ";
const FIXED: &str = "fixed";
/// Label behind what reads the program counter; the text that people see has none.
const LABEL: &str = ".Lcoax.pc.";
/// A literal stands behind the first word of its instruction.
const LITERAL_AT: u32 = 4;

pub(crate) fn base(number: usize) -> String {
    format!("{MARK}{number}")
}

pub(crate) fn add(number: usize, literal: &str, expression: &str) -> String {
    format!("{MARK}{number} {literal} {expression}")
}

pub(crate) fn fixed(offset: u32) -> String {
    format!("{MARK}{FIXED} {offset:#x}")
}

pub(crate) fn section(address: u64, size: u64, name: &str) -> String {
    format!("{SECTION}{address:#x} {size:#x} {name}\n")
}

/// How an instruction's text has a number as a literal; none when it does not, or more than once.
pub(crate) fn number_in(text: &str, value: u64) -> Option<String> {
    let forms = [format!("lit64({value:#x})"), format!("lit({value:#x})"), format!("{value:#x}")];
    forms.into_iter().find(|form| only_place(text, form).is_some())
}

/// Where `word` stands in `text`, as a word of its own and once.
fn only_place(text: &str, word: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '(';
    let is_word = |at: &usize| {
        !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(|c: char| is_part(c) || c == ')')
    };
    let mut places = text.match_indices(word).map(|(at, _)| at).filter(is_word);
    places.next().filter(|_| places.next().is_none())
}

/// A line with a hint: the instruction, and what the hint says.
fn hinted(line: &str) -> Option<(&str, &str)> {
    let at = line.find(MARK)?;
    let statement = &line[..line.find(';')?];
    let hint = line[at + MARK.len()..].split(';').next().unwrap_or_default();
    // A line that is commented out says nothing.
    (!statement.trim().is_empty()).then_some((statement, hint.trim()))
}

/// The text with names in the places of numbers; none where no hint says any.
///
/// # Errors
/// Lines whose number is not the one that the hint stands for, and hints without the line that they refer to.
pub(crate) fn with_names(text: &str) -> Result<Option<String>> {
    if !text.contains(MARK) {
        return Ok(None);
    }
    let mut named = String::with_capacity(text.len() + text.len() / 16);
    let mut latest: HashMap<&str, usize> = HashMap::new();
    let (mut count, mut label_is_due) = (0, false);
    let mut messages = Vec::new();
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if std::mem::take(&mut label_is_due) {
            let _ = write!(named, "{LABEL}{}: ", count - 1);
        }
        let Some((statement, hint)) = hinted(line) else {
            named.push_str(line);
            continue;
        };
        let mut words = hint.splitn(3, ' ');
        let (Some(which), literal, expression) = (words.next(), words.next(), words.next()) else { continue };
        let is_branch = statement.trim_start().starts_with("s_add_pc_i64");
        if which != FIXED && (literal.is_none() || is_branch) {
            latest.insert(which, count);
            (count, label_is_due) = (count + 1, true);
        }
        let (Some(literal), Some(expression), false) = (literal, expression, which == FIXED) else {
            named.push_str(line);
            continue;
        };
        let place = only_place(statement, literal);
        let (Some(base), Some(place)) = (latest.get(which), place) else {
            let (message, help) = match place {
                None => (
                    format!("the distance `{literal}`, which leads to {expression}, is not in this line"),
                    "take `;@pc …` out of the line if the new number is meant as it is",
                ),
                Some(_) => (
                    format!("the line with `{}` that this distance is counted from is not above it", base_of(which)),
                    "take the whole computation along, with its first line",
                ),
            };
            messages.push(Message::at(number, message).help(help));
            named.push_str(line);
            continue;
        };
        named.push_str(&line[..place]);
        let _ = match is_branch {
            true => write!(named, "{expression}-{LABEL}{base}"),
            false => write!(named, "{expression}+(.-{LABEL}{base})+{LITERAL_AT}"),
        };
        named.push_str(&line[place + literal.len()..]);
    }
    if !messages.is_empty() {
        return Err(Error { kind: ErrorKind::Input, messages });
    }
    if label_is_due {
        let _ = writeln!(named, "\n{LABEL}{}:", count - 1);
    }
    Ok(Some(named))
}

fn base_of(number: &str) -> String {
    format!("{MARK}{number}")
}

/// Whether the text has numbers that are right only where everything stays.
pub(crate) fn has_fixed(text: &str) -> bool {
    text.contains(&format!("{MARK}{FIXED} "))
}

/// Holds `linked`, made of `text` whose lines are in `assembled`, against where the text's numbers have everything.
/// Gives a note where sections moved and no code is known to mind.
///
/// # Errors
/// Lines with a number that leads elsewhere now.
pub(crate) fn check(text: &str, assembled: Option<&Assembled>, linked: &[u8]) -> Result<Vec<Message>> {
    let moved = moved_sections(text, linked, assembled.is_some())?;
    let mut messages = Vec::new();
    for section in assembled.into_iter().flat_map(|assembled| &assembled.sections) {
        let offsets: HashMap<u32, u32> = section.lines.iter().rev().map(|line| (line.line, line.offset)).collect();
        for (line, number) in text.lines().zip(1..) {
            let Some(offset) = offsets.get(&number) else { continue };
            let Some(was) = hinted(line).and_then(|(_, hint)| hint.strip_prefix(FIXED)) else { continue };
            let was = was.trim().strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let why = match (&moved, was) {
                (_, was) if was != Some(*offset) => format!("it is at {}+{offset:#x} now", section.name),
                (Some(moved), _) => moved.clone(),
                _ => continue,
            };
            let message =
                format!("what this reads the program counter for is not understood, and things have moved: {why}");
            let help = "`coax patch --grow` moves what can be moved; or keep the code at its size, with `s_nop 0` in the \
                        place of what you take out";
            messages.push(Message::at(number, message).help(help));
        }
    }
    if !messages.is_empty() {
        return Err(Error { kind: ErrorKind::Moved, messages });
    }
    if assembled.is_some() {
        let message =
            Message::new("what `;@pc fixed` lines read the program counter for is right only if it has not moved");
        return Ok(vec![message.help("`coax patch` holds the text against its reference")]);
    }
    let note = |moved| {
        let message = format!("sections are elsewhere than in the reference: {moved}");
        Message::new(message)
            .help("numbers of the text that are distances from data to other sections stay as they are")
    };
    Ok(moved.map(note).into_iter().collect())
}

/// The first section that is not where the text's lines have it, in words; with `sizes` also one of another size.
fn moved_sections(text: &str, linked: &[u8], sizes: bool) -> Result<Option<String>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(SECTION));
    let read = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let mut hexadecimal = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
        let (address, size) = (hexadecimal()?, hexadecimal()?);
        Some((address, size, words.next()?.to_owned()))
    };
    let recorded: Vec<(u64, u64, String)> = lines.filter_map(read).collect();
    if recorded.is_empty() {
        return Ok(None);
    }
    let object = CodeObject::parse(linked)?;
    let different =
        |(address, size, name): &(u64, u64, String)| match object.sections.iter().find(|section| section.name == *name)
        {
            None => Some(format!("there is no {name}")),
            Some(section) if section.address != *address => {
                Some(format!("{name} was at {address:#x} and is at {:#x}", section.address))
            }
            Some(section) if sizes && section.size != *size => {
                Some(format!("{name} had {size:#x} bytes and has {:#x}", section.size))
            }
            Some(_) => None,
        };
    Ok(recorded.iter().find_map(different))
}
