//! Reads one file, whatever it is.

use std::cell::RefCell;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use codeobj::container::{self, Member};
use rayon::prelude::*;

use super::bytes::{self, FileBytes};
use super::walk::{Form, Work};
use super::{Options, io_reason};
use crate::binary::{self, Instructions};
use crate::printable;
use crate::record::Record;
use crate::text::{self, FileKernels, Origin};
use crate::triton::{self, Sidecar};

/// What one file gave, with the keys that its kernels go by.
#[derive(Debug, Default)]
pub struct FileResult {
    /// Key and record.
    pub kernels: Vec<(String, Record)>,
    /// See [`crate::Snapshot::problems`].
    pub problems: Vec<String>,
    /// See [`crate::Snapshot::warnings`].
    pub warnings: Vec<String>,
}

impl FileResult {
    fn problem(problem: String) -> FileResult {
        FileResult { problems: vec![problem], ..FileResult::default() }
    }

    fn append(&mut self, other: FileResult) {
        self.kernels.extend(other.kernels);
        self.problems.extend(other.problems);
        self.warnings.extend(other.warnings);
    }

    /// Takes the kernels of a text or of a code object that lies at `place`.
    fn take(&mut self, file: FileKernels, place: &str) {
        self.kernels
            .extend(file.kernels.into_iter().map(|(name, record)| (format!("{place}::{}", printable(&name)), record)));
        self.problems.extend(file.problems);
        self.warnings.extend(file.warnings);
    }
}

thread_local! {
    /// Dumps are small and many: one buffer a thread spares an allocation and its page faults for each.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Opens and reads a file.
pub fn from_disk(work: &Work, options: Options<'_>) -> FileResult {
    let unreadable = |error| FileResult::problem(format!("{}: cannot be read: {}", work.source, io_reason(&error)));
    if work.form == Form::Dump {
        return BUFFER.with_borrow_mut(|buffer| match bytes::read_into(&work.path, buffer) {
            Ok(bytes) => file(work, bytes, options),
            Err(error) => unreadable(error),
        });
    }
    match FileBytes::read(&work.path) {
        Ok(bytes) => file(work, &bytes, options),
        Err(error) => unreadable(error),
    }
}

/// Reads a file whose bytes are at hand.
pub fn file(work: &Work, bytes: &[u8], options: Options<'_>) -> FileResult {
    let source = &work.source;
    let mut result = FileResult::default();
    let expected = match work.form {
        Form::Dump => {
            result.take(text::read(bytes, source, Origin::Dump), &work.place);
            warn_of_directory_name(&work.place, &mut result);
            return result;
        }
        Form::Triton => true,
        Form::Content { expected } => expected,
    };
    if container::sniff(bytes).is_some() {
        result = containers(work, bytes, expected, options);
    } else if let Some(member) = &work.member {
        return FileResult::problem(format!("{source}: there is no `{member}`: the file is no container"));
    } else if text::is_assembly(bytes) {
        result.take(text::read(bytes, source, Origin::Any), &work.place);
    } else if expected || (bytes.is_empty() && is_kernel_file_name(source)) {
        return FileResult::problem(format!("{source}: {}", what_is_it(bytes)));
    } else if is_kernel_file_name(source) {
        result.warnings.push(format!("{source}: not read: {}", what_is_it(bytes)));
    }
    if work.form == Form::Triton {
        compare_with_binary(work, &mut result);
        add_sidecar(&work.path, &mut result);
    }
    result
}

/// Reads all code objects that are in the file, on all cores.
fn containers(work: &Work, bytes: &[u8], expected: bool, options: Options<'_>) -> FileResult {
    let source = &work.source;
    let done = AtomicUsize::new(0);
    let failed = |error: codeobj::Error| FileResult::problem(format!("{source}: {error}"));
    let parts: Vec<FileResult> = match &work.member {
        Some(member) => match container::select(bytes, member) {
            Ok(members) => members.par_iter().map(|m| read_member(m, work, options)).collect(),
            Err(error) => vec![failed(error)],
        },
        None => match container::open(bytes) {
            Ok(contents) => {
                let problems = contents.problems.iter().map(|p| FileResult::problem(format!("{source}: {p}")));
                let total = contents.entries.len();
                let read = |entry: &container::Entry<'_>| {
                    let result = entry.load().map_or_else(failed, |c| read_contents(&c, work, options));
                    if work.place.is_empty() {
                        (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total); // else files are counted
                    }
                    result
                };
                problems.chain(contents.entries.par_iter().map(read).collect::<Vec<_>>()).collect()
            }
            // Beside kernels lie ordinary objects and libraries: no error unless the user named this one.
            Err(error) if error.kind == codeobj::ErrorKind::WrongFormat && !expected => return FileResult::default(),
            Err(error) => vec![failed(error)],
        },
    };
    let mut result = FileResult::default();
    parts.into_iter().for_each(|part| result.append(part));
    if expected && result.kernels.is_empty() && result.problems.is_empty() {
        result.problems.push(format!("{source}: no AMD GPU code object in it"));
    }
    result
}

fn read_contents(contents: &container::Contents<Member<'_>>, work: &Work, options: Options<'_>) -> FileResult {
    let mut result = FileResult::default();
    result.problems.extend(contents.problems.iter().map(|p| format!("{}: {p}", work.source)));
    contents.entries.iter().for_each(|member| result.append(read_member(member, work, options)));
    result
}

fn read_member(member: &Member<'_>, work: &Work, options: Options<'_>) -> FileResult {
    let file = if work.member.is_some() { container::split_path(&work.source).0 } else { &work.source };
    let join = |base: &str| match (base.is_empty(), member.path.is_empty()) {
        (_, true) => base.to_owned(),
        (true, _) => member.path.clone(),
        _ => format!("{base}{}{}", container::STEP, member.path),
    };
    let source = join(file);
    let mut result = FileResult::default();
    result.problems.extend(member.problems.iter().map(|p| format!("{source}: {p}")));
    result.take(binary::read(&member.bytes, &source, options.instructions), &join(&work.place));
    result
}

/// FlyDSL names a dump's directory after the launcher or the kernel; another name means that it was moved.
fn warn_of_directory_name(place: &str, result: &mut FileResult) {
    let directory = place.rsplit('/').next().unwrap_or(place);
    if let [(key, _)] = result.kernels.as_slice()
        && let Some((_, kernel)) = key.split_once("::")
        && !directory.is_empty()
        && directory != kernel
    {
        result.warnings.push(format!("{place}: the directory holds kernel `{kernel}`; keys follow the directory"));
    }
}

/// Beside `F.amdgcn` lies the `F.hsaco` that was made of it, and what is launched is the latter: they must agree.
fn compare_with_binary(work: &Work, result: &mut FileResult) {
    let [text, binary] = triton::KERNEL_EXTENSIONS;
    if work.path.extension().is_none_or(|e| e != text) {
        return;
    }
    let path = work.path.with_extension(binary);
    let bytes = match FileBytes::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => return result.problems.push(format!("{}: {}", path.display(), io_reason(&error))),
    };
    let source = work.source.replace(&format!(".{text}"), &format!(".{binary}"));
    let file = binary::read(&bytes, &source, Instructions::NotWanted);
    result.problems.extend(file.problems);
    for (name, launched) in file.kernels {
        let key = format!("{}::{}", work.place, printable(&name));
        let Some((_, record)) = result.kernels.iter_mut().find(|(k, _)| *k == key) else {
            result.problems.push(format!("{source}: kernel `{}` is not in {}", printable(&name), work.source));
            continue;
        };
        record.problems.extend(launched.problems);
        for (metric, cell) in launched.cells.iter() {
            if let (Some(a), Some(b)) = (record.cells[metric].value(), cell.value())
                && a != b
            {
                let name = metric.name();
                record.problems.push(format!("{source}: {name} is {b} here and {a} in {}", work.source));
            }
        }
    }
}

fn add_sidecar(path: &Path, result: &mut FileResult) {
    match Sidecar::beside(path) {
        Ok(Some(sidecar)) => result.kernels.iter_mut().for_each(|(_, record)| sidecar.apply(record)),
        Ok(None) => {}
        Err(why) => result.problems.push(why),
    }
}

/// Names that files with kernels often have, and others too.
fn is_kernel_file_name(name: &str) -> bool {
    [".s", ".S", ".asm", ".o", ".a"].iter().any(|end| name.ends_with(end))
}

/// Says what a file that is no input looks like.
fn what_is_it(bytes: &[u8]) -> String {
    const EXPECTED: &str =
        "expected a code object, a container of them, AMDGPU assembly with its metadata, or a snapshot";
    match bytes {
        [] => format!("the file is empty; {EXPECTED}"),
        [0x7f, b'E', b'L', b'F', ..] => format!("an ELF file that is cut or of an unknown kind; {EXPECTED}"),
        _ if bytes.iter().take(512).all(|b| !b.is_ascii_control() || b.is_ascii_whitespace()) => {
            format!("a text without .amdgcn_target, .amdhsa_kernel or .amdgpu_metadata; {EXPECTED}")
        }
        _ => {
            let magic: Vec<String> = bytes.iter().take(8).map(|b| format!("{b:02x}")).collect();
            format!("of no known kind, begins with {}; {EXPECTED}", magic.join(" "))
        }
    }
}
