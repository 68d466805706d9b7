//! The crate as its users see it: real code objects against `llvm-objdump`, unknown targets, workers that die, and
//! words that are noise. A program of its own (`harness = false`), because its `main` must be able to become a worker.
//!
//! `COAX_CORPUS=DIR` adds every code object below DIR.

mod noise;
mod objdump;
mod targets;
mod workers;

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
    let engines = Engine::all();
    let trials = [objdump::trials(&engines), targets::trials(&engines), workers::trials(&engines), noise::trials()];
    let trials = trials.into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Debian's name of the reference, and of the last resort.
const OBJDUMP: &str = "llvm-objdump-22";

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
        match Command::new(OBJDUMP).arg("--version").output() {
            Ok(_) => engines.push(Engine::Spawned),
            Err(error) => eprintln!("skipped: everything with {OBJDUMP}: {error}"),
        }
        engines
    }

    /// Part of what its decoder says of itself.
    fn description(self) -> &'static str {
        match self {
            Engine::InProcess => "in this process",
            Engine::Worker => "worker processes",
            Engine::Spawned => "started for every batch",
        }
    }

    /// A decoder of the newest LLVM that is installed.
    fn open(self) -> Result<Toolchain, Failed> {
        self.open_at(None)
    }

    fn open_at(self, path: Option<&str>) -> Result<Toolchain, Failed> {
        let isolation = if self == Engine::InProcess { Isolation::InProcess } else { Isolation::Worker };
        let tool = (self == Engine::Spawned).then_some(OBJDUMP);
        Ok(llvm::open(&Options { path: path.or(tool).map(Into::into), isolation, ..Options::default() })?)
    }
}
