//! The crate as its users see it: real code objects against `llvm-objdump`, unknown targets, workers that die, and words
//! that are noise. A program of its own (`harness = false`), because its `main` must be able to become a worker.
//!
//! `COAX_CORPUS=DIR` adds every code object below DIR.

mod noise;
mod objdump;
mod targets;
mod workers;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed};
use llvm::{Decoder, Isolation, Options};

/// What a test returns.
type Outcome = Result<(), Failed>;

fn main() -> ExitCode {
    llvm::worker::main_if_requested();
    let trials = [objdump::trials(), targets::trials(), workers::trials(), noise::trials()].into_iter().flatten().collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A decoder by the newest LLVM that is installed.
fn open(isolation: Isolation) -> Result<Box<dyn Decoder>, Failed> {
    Ok(llvm::open(&Options { isolation, ..Options::default() })?)
}

