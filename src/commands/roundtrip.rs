//! `coax roundtrip`: proves that code objects survive being taken apart and put together.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};

use codeobj::container;
use llvm::Toolchain;
use rayon::prelude::*;
use resources::collect::FileBytes;
use rewrite::Object;
use rewrite::disasm::{Counts, Options};
use rewrite::roundtrip::{Checked, Decoded, RoundTrip};

use super::disasm;
use super::edited::{exit_of, say_error};
use crate::output;
use crate::progress::Progress;
use crate::toolchain::Llvm;

/// Disassemble, assemble, patch and compare every code object
///
/// Reads code objects, and containers of them, in the files and below the directories that are named. Each becomes a
/// .s, the .s becomes code again, and the code is patched into a copy of the file. Exit code: 0 when every copy is
/// byte-identical, 1 when one differs, 2 when one could not be tried.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax roundtrip clang/gfx942/k.co
  $ coax roundtrip clang triton-cache --quiet")]
pub struct Opts {
    /// Code objects, containers, directories, paths inside containers (lib.so!gfx942)
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Only what is not byte-identical, and the summary
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    llvm: Llvm,
}

/// So many bytes of files are held at once.
const BATCH_BYTES: u64 = 64 << 20;

/// What became of one code object, or of a file that has none.
struct Outcome {
    name: String,
    result: Result<RoundTrip, String>,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let toolchain = match self.llvm.open() {
            Ok(toolchain) => toolchain,
            Err(error) => {
                say_error(&error, None);
                return exit_of(&error);
            }
        };
        let (files, mut problems) = files_below(&self.inputs);
        let progress = Progress::new();
        let done = AtomicUsize::new(0);
        let mut summary = Summary::default();
        for batch in batches(&files) {
            let outcomes = round_trips(&toolchain, batch, &|| {
                progress.at(done.fetch_add(1, Ordering::Relaxed) + 1, files.len());
            });
            let text: String = outcomes.iter().filter_map(|outcome| summary.add(outcome, self.quiet)).collect();
            problems
                .extend(outcomes.into_iter().filter_map(|o| o.result.err().map(|why| format!("{}: {why}", o.name))));
            if let Err(error) = output::stdout(&text) {
                problems.push(format!("stdout: {error}"));
            }
        }
        drop(progress);
        if summary.identical + summary.differing == 0 && problems.is_empty() {
            problems.push("no code object in what was named".into());
        }
        output::list("error", &problems);
        summary.conclude(!problems.is_empty())
    }
}

#[derive(Default)]
struct Summary {
    identical: usize,
    differing: usize,
    counts: Counts,
    code_bytes: usize,
}

impl Summary {
    /// Counts an outcome; gives its line, if it has one.
    fn add(&mut self, outcome: &Outcome, quiet: bool) -> Option<String> {
        let trip = outcome.result.as_ref().ok()?;
        self.counts.add(&trip.counts);
        self.code_bytes += trip.code_bytes;
        match &trip.identical {
            Ok(()) => {
                self.identical += 1;
                (!quiet).then(|| format!("BYTE-IDENTICAL {}: {}\n", outcome.name, disasm::summary(&trip.counts)))
            }
            Err(place) => {
                self.differing += 1;
                Some(format!("DIFFER {}: first at {place}\n", outcome.name))
            }
        }
    }

    fn conclude(&self, problems: bool) -> ExitCode {
        let all = self.identical + self.differing;
        let mut text = format!("{} in {} bytes of code\n", disasm::summary(&self.counts), self.code_bytes);
        for (reason, count) in &self.counts.words {
            text += &format!("  {count} as .long: {}\n", reason.describe());
        }
        let (verdict, exit) = match (self.differing, problems || all == 0) {
            (0, false) => ("BYTE-IDENTICAL", 0),
            (0, true) => ("CANNOT SAY", 2),
            _ => ("DIFFER", 1),
        };
        text += &format!("{verdict}: {} of {all} code objects are byte-identical\n", self.identical);
        match output::stdout(&text) {
            Ok(()) => ExitCode::from(exit),
            Err(_) => ExitCode::from(2),
        }
    }
}

/// Every file of the inputs, sorted below each, and the inputs that are not there.
fn files_below(inputs: &[PathBuf]) -> (Vec<PathBuf>, Vec<String>) {
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    for input in inputs {
        walk(input, &mut files, &mut problems);
    }
    (files, problems)
}

fn walk(path: &Path, files: &mut Vec<PathBuf>, problems: &mut Vec<String>) {
    if !path.is_dir() {
        files.push(path.to_owned());
        return;
    }
    let mut inside: Vec<PathBuf> = Vec::new();
    match path.read_dir() {
        Ok(entries) => inside.extend(entries.flatten().map(|entry| entry.path())),
        Err(error) => problems.push(format!("{}: {error}", path.display())),
    }
    inside.sort();
    for entry in inside {
        // A link to a directory may lead back up.
        if !(entry.is_symlink() && entry.is_dir()) {
            walk(&entry, files, problems);
        }
    }
}

fn batches(files: &[PathBuf]) -> Vec<&[PathBuf]> {
    let (mut batches, mut start, mut bytes) = (Vec::new(), 0, 0);
    for (at, file) in files.iter().enumerate() {
        bytes += file.metadata().map_or(0, |metadata| metadata.len());
        if bytes >= BATCH_BYTES {
            batches.push(&files[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    batches.push(&files[start..]);
    batches
}

/// Opens, decodes, checks and finishes a batch of files.
fn round_trips(toolchain: &Toolchain, files: &[PathBuf], done: &(dyn Fn() + Sync)) -> Vec<Outcome> {
    let read: Vec<(String, String, Result<FileBytes, String>)> = files.par_iter().map(|file| read(file)).collect();
    let members: Vec<(String, Result<Vec<u8>, String>)> =
        read.par_iter().flat_map_iter(|(name, member, bytes)| members(name, member, bytes)).collect();
    let objects: Vec<(&str, Result<Object<'_>, String>)> = members
        .par_iter()
        .map(|(name, bytes)| {
            let bytes = bytes.as_ref().map_err(Clone::clone);
            (&**name, bytes.and_then(|bytes| Object::parse(bytes).map_err(|error| error.to_string())))
        })
        .collect();
    let decoded: Vec<(&str, Result<Decoded<'_>, String>)> = objects
        .par_iter()
        .map(|(name, object)| {
            let object = object.as_ref().map_err(Clone::clone);
            (*name, object.and_then(|object| Decoded::new(toolchain, object).map_err(|error| error.to_string())))
        })
        .collect();
    let checked = Checked::new(toolchain, decoded.iter().filter_map(|(_, decoded)| decoded.as_ref().ok()));
    let checked = checked.map_err(|error| error.to_string());
    decoded
        .par_iter()
        .map(|(name, decoded)| {
            let finish = |decoded: &Decoded<'_>| {
                let checked = checked.as_ref().map_err(Clone::clone)?;
                decoded.finish(checked, Options { comments: false }).map_err(|error| error.to_string())
            };
            let result = decoded.as_ref().map_err(Clone::clone).and_then(finish);
            done();
            Outcome { name: (*name).to_owned(), result }
        })
        .collect()
}

/// A file's name, the path inside it, and its bytes.
fn read(path: &Path) -> (String, String, Result<FileBytes, String>) {
    let name = path.display().to_string();
    let (file, member) = if path.exists() { (&*name, "") } else { container::split_path(&name) };
    let bytes = FileBytes::read(file.as_ref()).map_err(|error| error.to_string());
    (file.to_owned(), member.to_owned(), bytes)
}

/// The code objects of a file with their full paths. A file of another kind has none.
fn members(file: &str, member: &str, bytes: &Result<FileBytes, String>) -> Vec<(String, Result<Vec<u8>, String>)> {
    let bytes = match bytes {
        Ok(bytes) => bytes,
        Err(why) => return vec![(file.to_owned(), Err(why.clone()))],
    };
    if member.is_empty() && container::sniff(bytes).is_none() {
        return Vec::new();
    }
    let path = |member: &str| match member {
        "" => file.to_owned(),
        member => format!("{file}{}{member}", container::STEP),
    };
    match container::select(bytes, member) {
        Ok(found) => found.into_iter().map(|m| (path(&m.path), Ok(m.bytes.into_owned()))).collect(),
        Err(error) => vec![(path(member), Err(error.to_string()))],
    }
}
