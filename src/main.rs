//! `coax`: see `lib.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coax_cli::coax()
}
