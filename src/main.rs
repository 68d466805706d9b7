//! `coax`: the command line. Each command is a file in [`commands`]; formats and ISA are the libraries'.

mod commands;
mod config;
mod counter;
mod interrupt;
mod output;
mod progress;
mod toolchain;

use std::process::ExitCode;

fn main() -> ExitCode {
    llvm::worker::main_if_requested();
    commands::run()
}
