//! Kernels of one assembly text. `scan` reads the lines once; `values` evaluates symbols; `kernel` makes the records.
//!
//! The rules are those of the resource table's contract: what a dump must say and does not is `?`, what is said twice
//! and disagrees is a problem.

mod checks;
mod kernel;
mod labels;
mod scan;
mod sites;
mod values;

use std::borrow::Cow;

use asm::Statement;
use asm::statement::strip_comment;
use codeobj::Detail;
use codeobj::metadata::{KernelMetadata, Metadata};

use crate::record::Record;
pub(crate) use kernel::count_cell;
use scan::{Scan, line_of};

/// What kind of producer is known to have written the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A final-ISA dump: LLVM's resource symbols (`.set NAME.num_vgpr`) must be there.
    Dump,
    /// Any assembly: older compilers and people write no resource symbols, which then are not recorded.
    Any,
}

/// What one file gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileKernels {
    /// Kernel name and record, in the file's order.
    pub kernels: Vec<(String, Record)>,
    /// What is wrong with the file and belongs to no kernel, each with file and line.
    pub problems: Vec<String>,
    /// What is odd and changes nothing.
    pub warnings: Vec<String>,
}

/// Whether `text` is AMDGPU assembly: a statement that only such text has.
pub fn is_assembly(text: &[u8]) -> bool {
    const DIRECTIVES: [&[u8]; 3] = [b".amdgcn_target", b".amdgpu_metadata", b".amdhsa_kernel"];
    DIRECTIVES.iter().any(|directive| {
        memchr::memmem::find_iter(text, directive).any(|at| {
            let line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |n| n + 1);
            matches!(Statement::parse(&text[line..]), Statement::Directive { name, .. } if name == *directive)
        })
    })
}

/// Reads the kernels of `text`. `source` is how the file is named in records and problems.
pub fn read(text: &[u8], source: &str, origin: Origin) -> FileKernels {
    let mut file = FileKernels::default();
    let (blanked, open_comment) = without_comments(text);
    if let Some(at) = open_comment {
        file.problems.push(format!("{source}:{}: block comment is never closed", line_of(text, at)));
    }
    if !text.is_ascii()
        && let Err(error) = std::str::from_utf8(text)
    {
        let line = line_of(text, error.valid_up_to());
        file.problems.push(format!("{source}:{line}: not valid UTF-8: the file is damaged"));
    }
    let scan = Scan::read(&blanked);
    scan.report_problems(source, &mut file.problems);
    let Some(metadata) = read_metadata(&scan, source, Detail::Counts, &mut file) else { return file };
    kernel::read_all(&scan, &metadata, source, origin, &mut file);
    file
}

/// The text without block comments. In the metadata LLVM knows none: `/*` is part of a name there.
fn without_comments(text: &[u8]) -> (Cow<'_, [u8]>, Option<usize>) {
    if !asm::comment::may_have_block_comments(text) {
        return (Cow::Borrowed(text), None);
    }
    let metadata = memchr::memmem::find(text, b".amdgpu_metadata").unwrap_or(text.len());
    let (code, metadata) = text.split_at(metadata);
    match asm::comment::blank_block_comments(code) {
        (Cow::Borrowed(_), open) => (Cow::Borrowed(text), open),
        (Cow::Owned(code), open) => (Cow::Owned([&code, metadata].concat()), open),
    }
}

/// The kernels of a text as they are written: for showing, not for judging.
#[derive(Clone, Debug, Default)]
pub struct Outline {
    /// `.amdgcn_target`.
    pub target: Option<String>,
    /// The metadata's entries.
    pub kernels: Vec<KernelMetadata>,
    /// Kernel, and its `.amdhsa_*` directives with their arguments.
    pub descriptors: Vec<(String, Vec<(String, String)>)>,
    /// What is wrong, each with file and line.
    pub problems: Vec<String>,
}

/// Reads what [`Outline`] has; `source` is how the file is named in problems.
pub fn outline(text: &[u8], source: &str, detail: Detail) -> Outline {
    let string = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut file = FileKernels::default();
    let (blanked, _) = without_comments(text);
    let scan = Scan::read(&blanked);
    scan.report_problems(source, &mut file.problems);
    let metadata = read_metadata(&scan, source, detail, &mut file);
    let fields = |block: &scan::DescriptorBlock<'_>| {
        block.fields().map(|(name, value, _)| (string(name), string(strip_comment(value)))).collect()
    };
    Outline {
        target: scan.target.map(|(target, _)| string(target)),
        kernels: metadata.map(|m| m.kernels).unwrap_or_default(),
        descriptors: scan.descriptors.iter().map(|block| (string(block.kernel), fields(block))).collect(),
        problems: file.problems,
    }
}

/// The metadata, or none when the file cannot have kernels; why is then among the problems.
fn read_metadata(scan: &Scan<'_>, source: &str, detail: Detail, file: &mut FileKernels) -> Option<Metadata> {
    let Some(block) = &scan.metadata else {
        file.problems
            .push(format!("{source}: no .amdgpu_metadata: the compiler stopped before its end, or the file is cut"));
        return None;
    };
    let first_line = || scan.line_of(block.at) + 1;
    if !block.terminated {
        file.problems.push(format!(
            "{source}:{}: .amdgpu_metadata has no .end_amdgpu_metadata: the file is cut",
            scan.line_of(block.at)
        ));
    }
    let text = match std::str::from_utf8(block.text) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(block.text), // the caller has said that the file is damaged
    };
    let metadata = match Metadata::from_yaml(&text, detail) {
        Ok(metadata) => metadata,
        Err(error) => {
            let line = match error.place {
                codeobj::Place::Text { line, .. } => first_line() + line - 1,
                _ => first_line(),
            };
            file.problems.push(format!("{source}:{line}: metadata does not parse: {}", error.message));
            return None;
        }
    };
    file.problems.extend(metadata.problems.iter().map(|p| format!("{source}:{}: metadata: {p}", first_line())));
    if metadata.kernels.is_empty() {
        file.problems.push(match metadata.kernels_listed {
            true => format!("{source}: the metadata lists no kernels"),
            false => format!("{source}: the metadata has no amdhsa.kernels"),
        });
    }
    Some(metadata)
}

/// The kernel that an entry is about: `.name`, or `.symbol` without its `.kd`. The error says what is wrong.
pub(crate) fn kernel_name(entry: &KernelMetadata) -> (Option<&str>, Option<String>) {
    let from_symbol = entry.symbol.as_deref().map(|s| s.strip_suffix(".kd").unwrap_or(s));
    match (entry.name.as_deref(), from_symbol) {
        (Some(name), Some(symbol)) if name != symbol => (
            Some(name),
            Some(format!(".name is `{name}` and .symbol is `{}`", entry.symbol.as_deref().unwrap_or_default())),
        ),
        (Some(name), _) => (Some(name), None),
        (None, symbol) => (symbol, None),
    }
}
