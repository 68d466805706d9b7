//! One pass over the lines of an assembly text. Collects what the table needs and nothing else; borrowed, unjudged.

use std::borrow::Cow;
use std::collections::HashMap;

use asm::statement::{Statement, strip_comment, trim_start};
use asm::{Lines, symbol};
use isa::Site;

use crate::sites::SiteCounts;

/// The metadata block.
pub struct MetadataBlock<'a> {
    /// Line of `.amdgpu_metadata`.
    pub line: u32,
    /// What stands between the two directives.
    pub text: &'a [u8],
    /// Whether `.end_amdgpu_metadata` was seen.
    pub terminated: bool,
}

/// A label and what was counted before it.
pub struct Label<'a> {
    pub name: Cow<'a, [u8]>,
    pub line: u32,
    pub position: Position,
}

/// A place in the code: sums of everything above it.
#[derive(Clone, Copy, Default)]
pub struct Position {
    pub sites: SiteCounts,
    /// Lines whose expansion only an assembler knows (`.rept`, macro calls, conditionals).
    pub opaque: u32,
}

/// Where a `.size` line says that a body ends.
#[derive(Clone, Copy)]
pub enum Terminator<'a> {
    /// At this label.
    Label(&'a [u8]),
    /// At the `.size` line itself (`.-name`).
    Here(Position),
}

/// One `.set`.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    pub value: &'a [u8],
    pub line: u32,
}

/// `.amdhsa_kernel` … `.end_amdhsa_kernel`.
pub struct DescriptorBlock<'a> {
    pub kernel: &'a [u8],
    pub line: u32,
    pub fields: Vec<(&'a [u8], &'a [u8], u32)>,
    pub terminated: bool,
}

/// What the lines say.
#[derive(Default)]
pub struct Scan<'a> {
    /// `.amdgcn_target`, unquoted, and its line.
    pub target: Option<(&'a [u8], u32)>,
    pub labels: Vec<Label<'a>>,
    /// Symbol of a `.size` line to its terminator; none when the expression is of another form.
    pub sizes: HashMap<Cow<'a, [u8]>, Option<Terminator<'a>>>,
    /// Symbol to its assignments, in order.
    pub sets: HashMap<Cow<'a, [u8]>, Vec<Assignment<'a>>>,
    pub descriptors: Vec<DescriptorBlock<'a>>,
    pub metadata: Option<MetadataBlock<'a>>,
    /// The first line of the kind that `Position::opaque` counts, for the message.
    pub first_opaque: Option<(u32, &'a [u8])>,
    problems: Vec<(u32, String)>,
    macros: Vec<&'a [u8]>,
    here: Position,
}

/// Directives whose effect on the code only an assembler knows.
const OPAQUE: &[&[u8]] = &[
    b".rept",
    b".rep",
    b".irp",
    b".irpc",
    b".if",
    b".ifdef",
    b".ifndef",
    b".ifnotdef",
    b".ifeq",
    b".ifne",
    b".ifge",
    b".ifgt",
    b".ifle",
    b".iflt",
    b".ifb",
    b".ifnb",
    b".ifc",
    b".ifnc",
    b".ifeqs",
    b".ifnes",
    b".include",
    b".incbin",
];

impl<'a> Scan<'a> {
    /// Reads all lines of `text`.
    pub fn read(text: &'a [u8]) -> Scan<'a> {
        let mut scan = Scan::default();
        let mut lines = Lines::new(text);
        while let Some(line) = lines.next() {
            let mut rest = line.text;
            loop {
                match Statement::parse(rest) {
                    Statement::Instruction { mnemonic, operands } => {
                        if let Some(site) = Site::of(mnemonic, operands_for(mnemonic, operands)) {
                            scan.here.sites.add(site);
                        } else if !scan.macros.is_empty() && scan.macros.contains(&mnemonic) {
                            scan.opaque(line.number, mnemonic);
                        }
                    }
                    Statement::Directive { name, arguments } => {
                        scan.directive(name, arguments, line.number, text, &mut lines);
                    }
                    Statement::Label { name, rest: after } => {
                        scan.labels.push(Label { name, line: line.number, position: scan.here });
                        rest = after;
                        continue;
                    }
                    Statement::Assignment { name, value } => scan.assign(name, value, line.number),
                    Statement::Blank | Statement::Unknown => {}
                }
                break;
            }
        }
        scan
    }

    /// Adds what the lines alone show to be wrong.
    pub fn report_problems(&self, source: &str, problems: &mut Vec<String>) {
        problems.extend(self.problems.iter().map(|(line, problem)| format!("{source}:{line}: {problem}")));
    }

    fn opaque(&mut self, line: u32, what: &'a [u8]) {
        self.here.opaque += 1;
        self.first_opaque.get_or_insert((line, what));
    }

    fn directive(&mut self, name: &'a [u8], arguments: &'a [u8], line: u32, text: &'a [u8], lines: &mut Lines<'a>) {
        match name {
            b".set" | b".equ" | b".equiv" => {
                let arguments = trim_start(arguments);
                if let Some((symbol, rest)) = symbol::split(arguments)
                    && let [b',', value @ ..] = trim_start(rest)
                {
                    self.assign(symbol, value, line);
                }
            }
            b".size" => self.size(strip_comment(arguments)),
            b".amdgcn_target" => {
                let target = strip_comment(arguments);
                let target = target.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(target);
                match self.target {
                    Some((first, at)) if first != target => {
                        self.problems.push((line, format!("a second .amdgcn_target, other than that of line {at}")));
                    }
                    Some(_) => {}
                    None => self.target = Some((target, line)),
                }
            }
            b".amdhsa_kernel" => self.descriptor(strip_comment(arguments), line, lines),
            b".amdgpu_metadata" => self.metadata_block(line, text, lines),
            b".macro" => self.macro_definition(arguments, lines),
            _ if OPAQUE.contains(&name) => self.opaque(line, name),
            _ => {}
        }
    }

    fn assign(&mut self, name: Cow<'a, [u8]>, value: &'a [u8], line: u32) {
        self.sets.entry(name).or_default().push(Assignment { value: strip_comment(value), line });
    }

    /// `.size k, .Lfunc_end0-k` or `.size k, .-k`.
    fn size(&mut self, arguments: &'a [u8]) {
        let Some((name, rest)) = symbol::split(arguments) else { return };
        let terminator = || {
            let expression = trim_start(trim_start(rest).strip_prefix(b",")?);
            let (end, minus) = symbol::split(expression)?;
            let (start, after) = symbol::split(trim_start(trim_start(minus).strip_prefix(b"-")?))?;
            (start == name && after.trim_ascii().is_empty()).then_some(())?;
            match end {
                Cow::Borrowed(b".") => Some(Terminator::Here(self.here)),
                Cow::Borrowed(end) => Some(Terminator::Label(end)),
                Cow::Owned(_) => None, // an escaped name never is a terminator that a compiler prints
            }
        };
        let terminator = terminator();
        self.sizes.insert(name, terminator); // the last one is in force, as in LLVM
    }

    fn descriptor(&mut self, kernel: &'a [u8], line: u32, lines: &mut Lines<'a>) {
        // LLVM prints the name bare even where it is not a legal bare symbol; people quote it.
        let kernel = kernel.strip_prefix(b"\"").and_then(|k| k.strip_suffix(b"\"")).unwrap_or(kernel);
        let mut block = DescriptorBlock { kernel, line, fields: Vec::with_capacity(40), terminated: false };
        for line in lines.by_ref() {
            if let Statement::Directive { name, arguments } = Statement::parse(line.text) {
                if name == b".end_amdhsa_kernel" {
                    block.terminated = true;
                    break;
                }
                block.fields.push((name, arguments, line.number));
            }
        }
        if !block.terminated {
            self.problems.push((line, ".amdhsa_kernel has no .end_amdhsa_kernel: the file is cut".into()));
        }
        self.descriptors.push(block);
    }

    fn metadata_block(&mut self, line: u32, text: &'a [u8], lines: &mut Lines<'a>) {
        let start = lines.offset();
        let mut block = MetadataBlock { line, text: &text[start..], terminated: false };
        for inner in lines.by_ref() {
            // Of the YAML lines only this one can begin so; parsing each would read `.name: x` as a label.
            if trim_start(inner.text).starts_with(b".end_amdgpu_metadata") {
                block.terminated = true;
                block.text = &text[start..inner.offset];
                break;
            }
        }
        match &self.metadata {
            Some(first) => {
                self.problems.push((line, format!("a second .amdgpu_metadata, behind that of line {}", first.line)))
            }
            None => self.metadata = Some(block),
        }
    }

    /// Remembers the name and passes over the body; a macro without end takes the rest of the file, as in LLVM.
    fn macro_definition(&mut self, arguments: &'a [u8], lines: &mut Lines<'a>) {
        if let Some((Cow::Borrowed(name), _)) = symbol::split(trim_start(arguments)) {
            self.macros.push(name);
        }
        let mut depth = 1u32;
        for line in lines.by_ref() {
            match Statement::parse(line.text) {
                Statement::Directive { name: b".macro", .. } => depth += 1,
                Statement::Directive { name: b".endm" | b".endmacro", .. } => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }
}

/// The operands without a comment, for the few mnemonics whose class depends on them.
#[inline]
fn operands_for<'a>(mnemonic: &[u8], operands: &'a [u8]) -> &'a [u8] {
    if matches!(mnemonic.first(), Some(b'b' | b's'))
        && mnemonic.len() > 8
        && (mnemonic.starts_with(b"buffer_l") || mnemonic.starts_with(b"scratch_l"))
    {
        strip_comment(operands)
    } else {
        b""
    }
}
