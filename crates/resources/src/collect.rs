//! Makes the snapshot of a path: a snapshot file, a file with kernels, a place inside a container, or a directory.
//!
//! `walk` decides which files below a directory are read and under which place; `read` reads one. Files are read on
//! all cores and merged in the order of their paths, so the result does not depend on the number of threads.

mod bytes;
mod read;
mod walk;

pub use bytes::FileBytes;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::binary::Instructions;
use crate::snapshot::Snapshot;

/// Why a path gave no snapshot at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The path and what is wrong; more lines say what was found in its files.
    pub messages: Vec<String>,
}

impl InputError {
    fn new(message: impl Into<String>) -> InputError {
        InputError { messages: vec![message.into()] }
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}

impl std::error::Error for InputError {}

/// How inputs are read.
#[derive(Clone, Copy)]
pub struct Options<'o> {
    /// How the instruction cells of binaries are filled.
    pub instructions: Instructions<'o>,
    /// Called with (files done, files in all) as work goes on, from any thread.
    pub progress: &'o (dyn Fn(usize, usize) + Sync),
}

/// The kernels of `path`.
///
/// # Errors
/// The path cannot be read, is of no known kind, or holds no kernel at all. What is wrong with single files or kernels
/// goes to the snapshot's problems instead.
pub fn snapshot(path: &Path, options: Options<'_>) -> Result<Snapshot, InputError> {
    let name = path.display().to_string();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => match inside_a_container(&name) {
            Some((file, _)) => return one_file(Path::new(file), &name, options),
            None => return Err(InputError::new(format!("{name}: {}", io_reason(&error)))),
        },
    };
    if metadata.is_dir() { directory(path, &name, options) } else { one_file(path, &name, options) }
}

/// Splits `lib.so!hip_fatbin[3]` at the `!` behind the part that is a file.
pub fn inside_a_container(name: &str) -> Option<(&str, &str)> {
    name.match_indices('!').map(|(at, _)| (&name[..at], &name[at + 1..])).find(|(file, _)| Path::new(file).is_file())
}

fn one_file(path: &Path, name: &str, options: Options<'_>) -> Result<Snapshot, InputError> {
    let bytes = FileBytes::read(path).map_err(|e| InputError::new(format!("{}: {}", path.display(), io_reason(&e))))?;
    let looks_like_json = bytes.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
    let is_json = path.extension().is_some_and(|e| e == "json");
    if is_json || looks_like_json {
        return Snapshot::from_json(&bytes).map_err(|why| InputError::new(json_message(name, &why)));
    }
    let member = inside_a_container(name).filter(|(file, _)| path == Path::new(file)).map(|(_, member)| member);
    let work = walk::Work::single(path, member);
    let snapshot = merge(vec![read::file(&work, &bytes, options)], Snapshot::default());
    ensure_kernels(snapshot, name, true)
}

/// `name:12:3: …` where the reason starts with a place, `name: …` else.
fn json_message(name: &str, why: &str) -> String {
    let has_place = why.starts_with(|c: char| c.is_ascii_digit());
    format!("{name}:{}{why}", if has_place { "" } else { " " })
}

fn directory(path: &Path, name: &str, options: Options<'_>) -> Result<Snapshot, InputError> {
    let tree = walk::walk(path).map_err(InputError::new)?;
    let done = AtomicUsize::new(0);
    let total = tree.work.len();
    let files: Vec<_> = tree
        .work
        .par_iter()
        .map(|work| {
            let file = read::from_disk(work, options);
            (options.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            file
        })
        .collect();
    let mut snapshot = Snapshot { warnings: tree.warnings, problems: tree.problems, ..Snapshot::default() };
    if tree.work.iter().any(|work| matches!(work.form, walk::Form::Dump)) {
        snapshot.warnings.insert(0, STANDING_WARNING.into());
    }
    if total == 0 && snapshot.problems.is_empty() {
        return Err(InputError::new(format!(
            "{name}: no kernels below this directory: no *final_isa.s, no code object, no assembly; \
             did the compiler run with its dump variables set? (`coax capture` sets them)"
        )));
    }
    ensure_kernels(merge(files, snapshot), name, false)
}

/// What a dump tree can never show.
const STANDING_WARNING: &str = "a dump tree has one directory per kernel *name*: specialisations of one name overwrite \
    each other, and a cache hit writes no dump. Compare only trees of single runs with \
    FLYDSL_RUNTIME_ENABLE_CACHE=0 into fresh directories.";

fn merge(files: Vec<read::FileResult>, mut snapshot: Snapshot) -> Snapshot {
    for file in files {
        for (key, record) in file.kernels {
            snapshot.insert(key, record);
        }
        snapshot.problems.extend(file.problems);
        snapshot.warnings.extend(file.warnings);
    }
    snapshot
}

/// A path without any kernel is an error that says what its files were.
fn ensure_kernels(snapshot: Snapshot, name: &str, only_one: bool) -> Result<Snapshot, InputError> {
    if !snapshot.kernels.is_empty() {
        return Ok(snapshot);
    }
    let mut messages = snapshot.problems;
    if messages.is_empty() || !only_one {
        messages.insert(0, format!("{name}: no kernels found"));
    }
    Err(InputError { messages })
}

/// What an I/O error means to a user, without the operating system's number.
pub fn io_reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => "no such file or directory".into(),
        Kind::PermissionDenied => "permission denied".into(),
        _ => error.to_string(),
    }
}
