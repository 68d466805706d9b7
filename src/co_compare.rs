//! `co_compare`: the program of the original work plan, see `commands/compare/original.rs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    coax_cli::co_compare()
}
