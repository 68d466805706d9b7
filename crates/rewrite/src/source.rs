//! A `.s` read line by line into what its sections hold, as far as that takes no assembler: labels, instructions, words,
//! filling, alignment. That is all of what [`crate::disasm`] writes and of what people edit in it. A text with more
//! (macros, symbols, conditions) says so, and [`crate::assemble`] gives it to LLVM as a whole.

use std::borrow::Cow;

use asm::lines::Lines;
use asm::statement::{self, Statement};

use crate::branch;
use crate::hint;
use crate::reference;
use crate::registers::File;

/// A text, read.
#[derive(Debug, Default)]
pub struct Source<'a> {
    /// All of it.
    pub text: &'a str,
    /// What `.amdgcn_target` names, with its line.
    pub target: Option<(u32, &'a str)>,
    /// The hash of the code object that it was made of.
    pub reference: Option<&'a str>,
    /// Registers beyond the allocation that a kernel of it named: the highest and one, of a file.
    pub known_registers: Vec<(&'a str, File, u32)>,
    /// Sections with code, in the order of their first line.
    pub sections: Vec<SourceSection<'a>>,
    /// Where descriptors and metadata stand, from the line that opens such a block to the one that ends it.
    pub blocks: Vec<Block<'a>>,
    /// The line of such a block that does not end.
    pub open_block: Option<u32>,
    /// The first `;@word` behind code that means nothing here, with its line.
    pub unknown_hint: Option<(u32, &'a str)>,
    /// The first line that only LLVM can read.
    pub beyond: Option<u32>,
}

/// A section's lines.
#[derive(Debug)]
pub struct SourceSection<'a> {
    /// `.text`
    pub name: Cow<'a, str>,
    /// What it holds, with the lines.
    pub items: Vec<(u32, Item<'a>)>,
}

/// Something that has a place in a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// A label.
    Label(Cow<'a, str>),
    /// An instruction, without comment; `hint` is what stands behind [`hint::MARK`].
    #[allow(missing_docs)]
    Instruction { text: &'a str, hint: Option<&'a str> },
    /// A direct branch to a label: the text up to it, and the label.
    #[allow(missing_docs)]
    Branch { head: &'a str, label: Cow<'a, str>, hint: Option<&'a str> },
    /// `.long`, `.byte`, `.fill`
    Bytes(Vec<u8>),
    /// `.p2align`, as bytes.
    Align(u32),
}

/// `.amdhsa_kernel` … `.end_amdhsa_kernel`, or `.amdgpu_metadata` … `.end_amdgpu_metadata`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block<'a> {
    /// The kernel's name; none for metadata.
    pub kernel: Option<&'a str>,
    /// The line that opens it.
    pub line: u32,
    /// The whole lines between the first and the last.
    pub body: &'a str,
}

/// The longest `.fill` and `.p2align` that are read here.
const MAX_FILL: u64 = 1 << 24;

impl<'a> Source<'a> {
    /// Reads `text`. Never fails: what it does not understand is [`beyond`](Self::beyond).
    pub fn read(text: &'a str) -> Self {
        let mut reader = Reader { source: Source { text, ..Source::default() }, current: None, block: None };
        for line in Lines::new(text.as_bytes()) {
            reader.line(line.number, line.offset, &text[line.offset..line.offset + line.text.len()]);
        }
        reader.source.open_block = reader.block.map(|(_, line, _)| line);
        reader.source
    }

    /// The lines of a section with a direct branch whose distance is a number.
    pub fn branches_by_number(&self, section: &str) -> Vec<u32> {
        let items = self.sections.iter().filter(|own| own.name == section).flat_map(|section| &section.items);
        let by_number =
            items.filter(|(_, item)| matches!(item, Item::Instruction { text, .. } if branch::split(text).is_some()));
        by_number.map(|(line, _)| *line).collect()
    }
}

struct Reader<'a> {
    source: Source<'a>,
    /// Index of the section that lines go to; none in a section without code.
    current: Option<usize>,
    /// A block that was opened: its kernel, line and the offset of its body.
    block: Option<(Option<&'a str>, u32, usize)>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: u32, offset: usize, line: &'a str) {
        if let Some((kernel, first, start)) = self.block {
            if matches!(line.trim(), ".end_amdhsa_kernel" | ".end_amdgpu_metadata") {
                self.source.blocks.push(Block { kernel, line: first, body: &self.source.text[start..offset] });
                self.block = None;
            }
            return;
        }
        if let Some(at) = memchr::memmem::find(line.as_bytes(), b";@") {
            let behind = &line[at + 2..];
            let word = &behind[..behind.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(behind.len())];
            if !matches!(word, "bits" | "reference" | "beyond" | "pc" | "section") {
                self.source.unknown_hint.get_or_insert((number, word));
            }
        }
        let mut rest = line;
        loop {
            match Statement::parse(rest.as_bytes()) {
                Statement::Blank => {
                    self.comment(number, line);
                    return;
                }
                Statement::Label { name, rest: behind } => {
                    if name.iter().all(u8::is_ascii_digit) {
                        self.beyond(number); // `1:`, which `1b` and `1f` refer to
                    }
                    let name = match name {
                        Cow::Borrowed(name) => Cow::Borrowed(as_str(name)),
                        Cow::Owned(name) => Cow::Owned(String::from_utf8_lossy(&name).into_owned()),
                    };
                    self.push(number, Item::Label(name));
                    rest = as_str(behind);
                }
                Statement::Instruction { .. } => {
                    self.instruction(number, rest);
                    return;
                }
                Statement::Directive { name, arguments } => {
                    let arguments = as_str(statement::strip_comment(arguments));
                    self.directive(number, as_str(name), arguments, offset + line.len() + 1);
                    return;
                }
                Statement::Assignment { .. } | Statement::Unknown => {
                    self.beyond(number);
                    return;
                }
            }
        }
    }

    fn comment(&mut self, number: u32, line: &'a str) {
        let line = line.trim();
        if self.source.reference.is_none() {
            self.source.reference = reference::read(line);
        }
        self.source.known_registers.extend(reference::read_beyond(line));
        if line.starts_with('#') || line.contains("/*") {
            self.beyond(number);
        }
    }

    fn instruction(&mut self, number: u32, text: &'a str) {
        let (text, comment) = match memchr::memchr2(b';', b'/', text.as_bytes()) {
            Some(at) if text[at..].starts_with([';']) || text[at..].starts_with("//") => text.split_at(at),
            Some(_) => text.split_at(text.find(';').or_else(|| text.find("//")).unwrap_or(text.len())),
            None => (text, ""),
        };
        let text = text.trim_ascii();
        let hint = if comment.is_empty() { None } else { hint::within(comment) };
        let item = match branch::split(text) {
            Some((head, operand)) if !operand.starts_with(|first: char| first.is_ascii_digit() || first == '-') => {
                match asm::symbol::split(operand.as_bytes()) {
                    Some((Cow::Borrowed(label), b"")) => {
                        Item::Branch { head, label: Cow::Borrowed(as_str(label)), hint }
                    }
                    Some((Cow::Owned(label), b"")) => {
                        Item::Branch { head, label: Cow::Owned(String::from_utf8_lossy(&label).into_owned()), hint }
                    }
                    _ => return self.beyond(number),
                }
            }
            _ => Item::Instruction { text, hint },
        };
        self.push(number, item);
    }

    fn directive(&mut self, number: u32, name: &'a str, arguments: &'a str, behind: usize) {
        let is_code = self.current.is_none_or(|at| at < self.source.sections.len());
        match name {
            ".text" if arguments.is_empty() => self.section(".text".into()),
            ".section" => self.section_of(number, arguments),
            ".amdgcn_target" => {
                let named = arguments.trim_matches('"');
                self.source.target.get_or_insert((number, named));
            }
            ".amdhsa_kernel" => self.block = Some((Some(arguments), number, behind)),
            ".amdgpu_metadata" => self.block = Some((None, number, behind)),
            ".long" | ".byte" | ".fill" | ".p2align" if !is_code => {}
            ".long" | ".4byte" | ".int" => self.data(number, arguments, 4),
            ".byte" => self.data(number, arguments, 1),
            ".fill" => self.fill(number, arguments),
            ".p2align" => match arguments.parse() {
                Ok(power @ 0..=12) => self.push(number, Item::Align(1u32 << power)),
                _ => self.beyond(number),
            },
            ".globl"
            | ".global"
            | ".weak"
            | ".hidden"
            | ".protected"
            | ".local"
            | ".type"
            | ".size"
            | ".ident"
            | ".addrsig"
            | ".addrsig_sym"
            | ".amdhsa_code_object_version"
            | ".file" => {}
            _ if !is_code => {}
            _ => self.beyond(number),
        }
    }

    fn section_of(&mut self, number: u32, arguments: &'a str) {
        let mut parts = arguments.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default().trim_matches('"');
        match parts.next() {
            Some(flags) if flags.contains('x') => self.section(name.into()),
            None if name == ".text" => self.section(name.into()),
            _ if name.contains('\\') => self.beyond(number),
            _ => self.current = Some(usize::MAX),
        }
    }

    fn section(&mut self, name: Cow<'a, str>) {
        let sections = &mut self.source.sections;
        let found = sections.iter().position(|section| section.name == name);
        self.current = Some(found.unwrap_or_else(|| {
            sections.push(SourceSection { name, items: Vec::new() });
            sections.len() - 1
        }));
    }

    fn data(&mut self, number: u32, arguments: &'a str, size: usize) {
        let mut bytes = Vec::new();
        for argument in arguments.split(',') {
            match integer(argument.trim()) {
                Some(value) if value >> (8 * size) == 0 => bytes.extend_from_slice(&value.to_le_bytes()[..size]),
                _ => return self.beyond(number),
            }
        }
        self.push(number, Item::Bytes(bytes));
    }

    fn fill(&mut self, number: u32, arguments: &'a str) {
        let values: Option<Vec<u64>> = arguments.split(',').map(|argument| integer(argument.trim())).collect();
        match values.as_deref() {
            Some([count, size @ (1 | 2 | 4 | 8), value]) if *count <= MAX_FILL => {
                // GNU and LLVM take the low 4 bytes of the value, whatever the size.
                let unit = (value & 0xffff_ffff).to_le_bytes();
                let unit = &unit[..*size as usize];
                self.push(number, Item::Bytes(unit.repeat(*count as usize)));
            }
            _ => self.beyond(number),
        }
    }

    fn push(&mut self, number: u32, item: Item<'a>) {
        if self.current.is_none() {
            self.section(".text".into());
        }
        let Some(section) = self.current.and_then(|at| self.source.sections.get_mut(at)) else { return };
        section.items.push((number, item));
    }

    fn beyond(&mut self, number: u32) {
        self.source.beyond.get_or_insert(number);
    }
}

/// `0x1f`, `31`; what has an operator or a sign is left to LLVM.
fn integer(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if text.len() > 1 && text.starts_with('0') => None,
        None => text.parse().ok(),
    }
}

/// A part of a `&str` that was cut at ASCII bytes.
fn as_str(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_coax_writes_is_read_without_llvm() {
        let text = ";@reference sha256 ab size 4\n\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n\t.text\n\t.globl k\n\
                    k:\n\ts_nop 0      ; +0x0: BF800000\n\ts_cbranch_scc0 .L0\n.L0: v_x v0 ;@bits xor 0x1@0 ; +0x8\n\
                    \t.long 0x1, 2 ; text\n\t.section .rodata,\"a\"\n\t.amdhsa_kernel k\n\t\t.amdhsa_next_free_vgpr 8\n\
                    \t.end_amdhsa_kernel\n";
        let source = Source::read(text);
        assert_eq!(source.beyond, None);
        assert_eq!(source.reference, Some("ab"));
        assert_eq!(source.target, Some((2, "amdgcn-amd-amdhsa--gfx942")));
        let items: Vec<_> = source.sections[0].items.iter().map(|(_, item)| item.clone()).collect();
        assert_eq!(
            items,
            [
                Item::Label("k".into()),
                Item::Instruction { text: "s_nop 0", hint: None },
                Item::Branch { head: "s_cbranch_scc0 ", label: ".L0".into(), hint: None },
                Item::Label(".L0".into()),
                Item::Instruction { text: "v_x v0", hint: Some(" xor 0x1@0 ; +0x8") },
                Item::Bytes(vec![1, 0, 0, 0, 2, 0, 0, 0]),
            ]
        );
        let body = "\t\t.amdhsa_next_free_vgpr 8\n";
        assert_eq!(source.blocks, [Block { kernel: Some("k"), line: 11, body }]);
    }

    #[test]
    fn what_takes_an_assembler_is_told() {
        for line in [".macro m", "x = 4", "1: s_nop 0", "\ts_branch .L0+4", "\t.long x", ".set a, 1", "\t.if 1"] {
            assert_eq!(Source::read(line).beyond, Some(1), "{line}");
        }
    }
}
