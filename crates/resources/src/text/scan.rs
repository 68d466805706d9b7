//! What the lines of an assembly text say; borrowed and unjudged.
//!
//! Dumps are megabytes of instructions that the table does not count, so lines are not read one by one. A line that
//! matters has a byte or a word in it that others mostly lack; those are found at memory speed (`directive_line` here, the words
//! in `sites`), and only the lines that they stand in are parsed, whole and by the one parser of statements. The tests
//! hold the result against a plain walk over all lines.

use std::borrow::Cow;

use asm::statement::{Statement, strip_comment, trim_start};
use asm::{Lines, symbol};
use memchr::{memchr, memchr2, memmem, memrchr};

/// The metadata block.
#[derive(Debug, PartialEq, Eq)]
pub struct MetadataBlock<'a> {
    /// Offset of `.amdgpu_metadata`.
    pub at: usize,
    /// What stands between the two directives.
    pub text: &'a [u8],
    /// Whether `.end_amdgpu_metadata` was seen.
    pub terminated: bool,
}

/// Where a `.size` line says that a body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Terminator<'a> {
    /// At this label.
    Label(Cow<'a, [u8]>),
    /// At the `.size` line itself (`.-name`), which is at this offset.
    Here(usize),
    /// The expression is of another form.
    Unknown,
}

/// A name, what it is given, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a, T> {
    /// The symbol, unquoted.
    pub name: Cow<'a, [u8]>,
    /// What it is given.
    pub value: T,
    /// Offset of the line.
    pub at: usize,
}

/// `.amdhsa_kernel` … `.end_amdhsa_kernel`.
#[derive(Debug, PartialEq, Eq)]
pub struct DescriptorBlock<'a> {
    /// The kernel's name.
    pub kernel: &'a [u8],
    /// Offset of `.amdhsa_kernel`.
    pub at: usize,
    /// Offset of the first line inside.
    pub inside: usize,
    text: &'a [u8],
}

impl<'a> DescriptorBlock<'a> {
    /// Directives with their arguments, comments still in them, and offsets.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8], usize)> + '_ {
        Lines::new(self.text).filter_map(|line| match Statement::parse(line.text) {
            Statement::Directive { name, arguments } => Some((name, arguments, self.inside + line.offset)),
            _ => None,
        })
    }
}

/// What the lines say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Scan<'a> {
    /// The text.
    pub text: &'a [u8],
    /// `.amdgcn_target`, unquoted, and its offset.
    pub target: Option<(&'a [u8], usize)>,
    /// Labels that begin with a dot, in order; others are looked for when they are asked for.
    pub local_labels: Vec<Entry<'a, ()>>,
    /// `.size` lines, in order.
    pub sizes: Vec<Entry<'a, Terminator<'a>>>,
    /// Symbol assignments, sorted by name; of one name in order.
    pub sets: Vec<Entry<'a, &'a [u8]>>,
    /// Descriptors, in order.
    pub descriptors: Vec<DescriptorBlock<'a>>,
    /// The first metadata block.
    pub metadata: Option<MetadataBlock<'a>>,
    /// Names of macros.
    pub macros: Vec<&'a [u8]>,
    /// Directives that only an assembler can follow, in order.
    pub opaque: Vec<Entry<'a, ()>>,
    /// What is wrong, and where.
    pub problems: Vec<(usize, String)>,
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
    b".endif",
];

impl<'a> Scan<'a> {
    /// Reads all that is no instruction.
    pub fn read(text: &'a [u8]) -> Scan<'a> {
        Scan::read_lines(text, directive_line)
    }

    /// As [`read`](Self::read), with `next` giving the first line at or behind an offset that is worth parsing.
    fn read_lines(text: &'a [u8], next: fn(&[u8], usize) -> Option<usize>) -> Scan<'a> {
        let mut scan = Scan { text, ..Scan::default() };
        let mut at = 0;
        while let Some(start) = next(text, at) {
            at = end_of_line(text, start);
            let mut rest = line_at(text, start);
            loop {
                match Statement::parse(rest) {
                    Statement::Directive { name, arguments } => {
                        at = scan.directive(name, arguments, start).unwrap_or(at);
                    }
                    Statement::Label { name, rest: after } => {
                        if name.first() == Some(&b'.') {
                            scan.local_labels.push(Entry { name, value: (), at: start });
                        }
                        rest = after;
                        continue;
                    }
                    Statement::Assignment { name, value } => scan.assign(name, value, start),
                    Statement::Instruction { .. } | Statement::Blank | Statement::Unknown => {}
                }
                break;
            }
        }
        scan.sets.sort_by(|a, b| a.name.cmp(&b.name)); // stable: of one name they stay in order
        scan
    }

    /// Adds what the lines alone show to be wrong.
    pub fn report_problems(&self, source: &str, problems: &mut Vec<String>) {
        let undecided = self.undecided();
        let all = self.problems.iter().chain(&undecided);
        problems.extend(all.map(|(at, problem)| format!("{source}:{}: {problem}", self.line_of(*at))));
    }

    /// What only an assembler can decide about the file as a whole: text from other files, and metadata or descriptors
    /// under a condition.
    pub fn undecided(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut open = 0usize;
        let mut places: Vec<usize> =
            self.descriptors.iter().map(|d| d.at).chain(self.metadata.as_ref().map(|m| m.at)).collect();
        places.sort_unstable();
        let mut places = places.into_iter().peekable();
        for directive in &self.opaque {
            while let Some(at) = places.next_if(|at| *at < directive.at) {
                if open > 0 {
                    found
                        .push((at, "stands under a condition (.if): only an assembler knows whether it counts".into()));
                }
            }
            match directive.name.as_ref() {
                b".include" => found.push((directive.at, "what .include brings in is not read".into())),
                b".endif" => open = open.saturating_sub(1),
                name if name.starts_with(b".if") => open += 1,
                _ => {}
            }
        }
        if open > 0 {
            found.extend(places.map(|at| (at, "stands behind an .if without .endif".into())));
        }
        found
    }

    /// 1-based line of a byte offset.
    pub fn line_of(&self, at: usize) -> usize {
        line_of(self.text, at)
    }

    /// All assignments to `name`.
    pub fn assignments(&self, name: &[u8]) -> &[Entry<'a, &'a [u8]>] {
        let start = self.sets.partition_point(|set| set.name.as_ref() < name);
        let length = self.sets[start..].partition_point(|set| set.name.as_ref() == name);
        &self.sets[start..start + length]
    }

    /// Takes one directive in; gives the offset to go on at when that is not the next line.
    fn directive(&mut self, name: &'a [u8], arguments: &'a [u8], at: usize) -> Option<usize> {
        match name {
            b".set" | b".equ" | b".equiv" => {
                let (symbol, rest) = symbol::split(trim_start(arguments))?;
                if let [b',', value @ ..] = trim_start(rest) {
                    self.assign(symbol, value, at);
                }
            }
            b".size" => {
                let (name, rest) = symbol::split(trim_start(arguments))?;
                let value = terminator(&name, strip_comment(rest), at).unwrap_or(Terminator::Unknown);
                self.sizes.push(Entry { name, value, at });
            }
            b".amdgcn_target" => self.target_directive(strip_comment(arguments), at),
            b".amdhsa_kernel" => return Some(self.descriptor(strip_comment(arguments), at)),
            b".amdgpu_metadata" => return Some(self.metadata_block(at)),
            b".macro" => {
                self.opaque.push(Entry { name: Cow::Borrowed(name), value: (), at });
                return Some(self.macro_definition(arguments, at));
            }
            _ if OPAQUE.contains(&name) => self.opaque.push(Entry { name: Cow::Borrowed(name), value: (), at }),
            _ => {}
        }
        None
    }

    fn assign(&mut self, name: Cow<'a, [u8]>, value: &'a [u8], at: usize) {
        self.sets.push(Entry { name, value: strip_comment(value), at });
    }

    fn target_directive(&mut self, target: &'a [u8], at: usize) {
        let target = target.strip_prefix(b"\"").and_then(|t| t.strip_suffix(b"\"")).unwrap_or(target);
        match self.target {
            Some((first, first_at)) if first != target => {
                let line = self.line_of(first_at);
                self.problems.push((at, format!("a second .amdgcn_target, other than that of line {line}")));
            }
            Some(_) => {}
            None => self.target = Some((target, at)),
        }
    }

    fn descriptor(&mut self, kernel: &'a [u8], at: usize) -> usize {
        // LLVM prints the name bare even where it is not a legal bare symbol; people quote it.
        let kernel = kernel.strip_prefix(b"\"").and_then(|k| k.strip_suffix(b"\"")).unwrap_or(kernel);
        let (inside, end, terminated) = self.block(at, b".end_amdhsa_kernel");
        if !terminated {
            self.problems.push((at, ".amdhsa_kernel has no .end_amdhsa_kernel: the file is cut".into()));
        }
        self.descriptors.push(DescriptorBlock { kernel, at, inside, text: &self.text[inside..end] });
        end_of_line(self.text, end)
    }

    fn metadata_block(&mut self, at: usize) -> usize {
        let (inside, end, terminated) = self.block(at, b".end_amdgpu_metadata");
        match &self.metadata {
            Some(first) => {
                let line = self.line_of(first.at);
                self.problems.push((at, format!("a second .amdgpu_metadata, behind that of line {line}")));
            }
            None => self.metadata = Some(MetadataBlock { at, text: &self.text[inside..end], terminated }),
        }
        end_of_line(self.text, end)
    }

    /// The block that the line at `at` opens: offsets of its first line and of the line that closes it (the end of
    /// the text when none does), and whether one does.
    fn block(&self, at: usize, closing: &[u8]) -> (usize, usize, bool) {
        let inside = end_of_line(self.text, at);
        for found in memmem::find_iter(&self.text[inside..], closing) {
            let start = start_of_line(self.text, inside + found);
            let is_closing = matches!(Statement::parse(line_at(self.text, start)), Statement::Directive { name, .. } if name == closing);
            if start >= inside && is_closing {
                return (inside, start, true);
            }
        }
        (inside, self.text.len(), false)
    }

    /// Remembers the name and passes over the body; a macro without end takes the rest of the file, as in LLVM.
    fn macro_definition(&mut self, arguments: &'a [u8], at: usize) -> usize {
        if let Some((Cow::Borrowed(name), _)) = symbol::split(trim_start(arguments)) {
            self.macros.push(name);
        }
        let inside = end_of_line(self.text, at);
        let mut depth = 1u32;
        for line in Lines::new(&self.text[inside..]) {
            match Statement::parse(line.text) {
                Statement::Directive { name: b".macro", .. } => depth += 1,
                Statement::Directive { name: b".endm" | b".endmacro", .. } => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return end_of_line(self.text, inside + line.offset);
            }
        }
        self.text.len()
    }
}

/// `, .Lfunc_end0-k` or `, .-k`.
fn terminator<'a>(name: &[u8], rest: &'a [u8], at: usize) -> Option<Terminator<'a>> {
    let expression = trim_start(trim_start(rest).strip_prefix(b",")?);
    let (end, minus) = symbol::split(expression)?;
    let (start, after) = symbol::split(trim_start(trim_start(minus).strip_prefix(b"-")?))?;
    if start != name || !after.is_empty() {
        return None;
    }
    Some(if end.as_ref() == b"." { Terminator::Here(at) } else { Terminator::Label(end) })
}

/// The first line at or behind `from` that may hold a directive, an assignment or a local label: one with a `.` as
/// its first byte or behind a blank or a colon, or with a `=`.
fn directive_line(text: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + memchr2(b'.', b'=', text.get(at..)?)?;
        let starts_something = text[found] == b'='
            || found == 0
            || matches!(text[found - 1], b'\n' | b'\t' | b' ' | b':' | b'\r' | 0x0b | 0x0c);
        // Behind the operands of a branch, `.LBB0_2` is no statement: what comes before it on the line tells.
        if starts_something && (text[found] == b'=' || is_statement_start(text, found)) {
            return Some(start_of_line(text, found).max(from));
        }
        at = found + 1;
    }
}

/// Whether only blanks and labels stand between the line's start and `at`.
fn is_statement_start(text: &[u8], at: usize) -> bool {
    let before = &text[start_of_line(text, at)..at];
    before.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)) || before.contains(&b':')
}

/// Offset of the first byte of the line that `at` is in.
pub fn start_of_line(text: &[u8], at: usize) -> usize {
    memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1)
}

/// Offset behind the line that `at` is in.
pub fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n + 1)
}

/// The line that starts at `at`, without its end.
pub fn line_at(text: &[u8], at: usize) -> &[u8] {
    let line = &text[at..memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n)];
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// 1-based line of a byte offset.
pub fn line_of(text: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', &text[..at.min(text.len())]).count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every line is worth parsing: the plain walk that the fast search must agree with.
    fn every_line(text: &[u8], from: usize) -> Option<usize> {
        (from < text.len()).then_some(from)
    }

    /// What a walk over all lines reads.
    fn plain(text: &[u8]) -> Scan<'_> {
        Scan::read_lines(text, every_line)
    }

    #[test]
    fn the_search_finds_what_a_plain_walk_finds() {
        let text = b"\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\nk: .set a, 1\nb=2\n  c = 3 ; d = 4\n\"q r\": .Lx:\n.Ly:v_add .Lz\n\
            \ts_branch .Ly ; .set no, 1\n.size k, .-k\n x: y: .rept 2\n\t.macro m\n.set inside, 1\n\t.endm\n.set after, 1\r\n";
        let scan = Scan::read(text);
        assert_eq!(scan, plain(text));
        let names: Vec<_> = scan.sets.iter().map(|s| String::from_utf8_lossy(&s.name).into_owned()).collect();
        assert_eq!(names, ["a", "after", "b", "c"]);
        assert_eq!(scan.local_labels.len(), 2);
        assert_eq!(scan.opaque.len(), 2);
    }
}
