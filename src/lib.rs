//! The command line of `coax` and `co_compare`. Each command is a file in `commands`; formats, ISA and devices are the
//! libraries'.

mod commands;
mod config;
mod counter;
mod interrupt;
mod output;
mod progress;
mod toolchain;

use std::process::ExitCode;

/// The program `coax`.
pub fn coax() -> ExitCode {
    become_a_worker_if_asked();
    commands::run()
}

/// The program `co_compare`.
pub fn co_compare() -> ExitCode {
    become_a_worker_if_asked();
    commands::compare::original::run()
}

/// LLVM and devices live in processes of their own, which are this program again.
fn become_a_worker_if_asked() {
    llvm::worker::main_if_requested();
    commands::compare::worker::main_if_requested();
}
