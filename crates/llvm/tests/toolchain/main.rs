//! The crate as its users see it: real code objects against `llvm-objdump`, real texts against `llvm-mc`, unknown
//! targets, workers that die, and words that are noise. A program of its own (`harness = false`), because its `main` must be able to become a worker.
//!
//! `COAX_CORPUS=DIR` adds every code object below DIR.

mod assembling;
mod comgr;
mod encoding;
mod linking;
mod noise;
mod objdump;
mod targets;
mod workers;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed};
use llvm::{Isolation, Options, Toolchain};

/// What a test returns.
type Outcome = Result<(), Failed>;

fn main() -> ExitCode {
    llvm::worker::main_if_requested();
    if let Some(library) = std::env::var_os(workers::VICTIM) {
        return if workers::be_a_victim(library.into()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if let Some(library) = std::env::var_os(comgr::NO_ROOM) {
        return if comgr::work_without_room(library.into()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let engines = Engine::all();
    let trials = [
        objdump::trials(&engines),
        targets::trials(&engines),
        encoding::trials(&engines),
        assembling::trials(&engines),
        workers::trials(&engines),
        linking::trials(),
        noise::trials(),
        comgr::trials(),
    ];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Debian's names of the references, and of the last resort.
const OBJDUMP: &str = "llvm-objdump-22";
const MC: &str = "llvm-mc-22";

/// A kernel of gfx942.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/topksoftmax_4x128x4.co")
}

/// The files with one of these extensions, in order.
fn files_below(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let wanted = |path: &Path| path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted));
    let files = paths.into_iter().flat_map(|path| match path.is_dir() {
        true => files_below(&path, extensions),
        false if wanted(&path) => vec![path],
        false => Vec::new(),
    });
    files.collect()
}

/// The ways to run LLVM.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Engine {
    InProcess,
    Worker,
    Spawned,
}

impl Engine {
    /// Those that this machine has.
    fn all() -> Vec<Engine> {
        let mut engines = vec![Engine::InProcess, Engine::Worker];
        match [OBJDUMP, MC].map(|tool| Command::new(tool).arg("--version").output()) {
            [Ok(_), Ok(_)] => engines.push(Engine::Spawned),
            errors => eprintln!("skipped: everything with {OBJDUMP} and {MC}: {errors:?}"),
        }
        engines
    }

    /// Part of what its toolchain says of itself.
    fn description(self) -> &'static str {
        match self {
            Engine::InProcess => "in this process",
            Engine::Worker => "worker processes",
            Engine::Spawned => "started for every batch",
        }
    }

    /// The newest LLVM that is installed.
    fn open(self) -> Result<Toolchain, Failed> {
        self.open_at(None)
    }

    fn open_at(self, path: Option<&str>) -> Result<Toolchain, Failed> {
        let isolation = if self == Engine::InProcess { Isolation::InProcess } else { Isolation::Worker };
        let tool = (self == Engine::Spawned).then_some(OBJDUMP);
        Ok(llvm::open(&Options { path: path.or(tool).map(Into::into), isolation, ..Options::default() })?)
    }
}
