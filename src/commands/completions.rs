//! `coax completions`: what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::output;

/// Print the completions of a shell
///
/// The script is made of the same description as --help.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax completions bash
  coax completions bash > ~/.local/share/bash-completion/completions/coax
  coax completions zsh > ~/.zfunc/_coax
  coax completions fish > ~/.config/fish/completions/coax.fish")]
pub struct Opts {
    /// The shell
    shell: Shell,
}

impl Opts {
    /// Runs the command; `command` describes all of them.
    pub fn run(self, mut command: clap::Command) -> ExitCode {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "coax", &mut script);
        match output::stdout(&String::from_utf8_lossy(&script)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                output::stderr(&format!("error: stdout: {error}"));
                ExitCode::from(2)
            }
        }
    }
}
