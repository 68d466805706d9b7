//! `coax site new`: a first site file from a code object.

use std::path::PathBuf;
use std::process::ExitCode;

use codeobj::{CodeObject, Detail};
use compare::site::builtin::Builtin;
use compare::site::scaffold;
use rewrite::{Error, Message};

use super::edited::{self, Input, finish, guarded};
use crate::output;

/// Write a first site file for `coax compare`
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax site new kernel.co --kernel plain_add -o plain_add.toml
  $ coax site new gate_up_fwd")]
pub struct Opts {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(New),
}

/// From a code object's metadata: only shapes and values are left to fill in
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax site new kernel.co --kernel plain_add -o plain_add.toml
  $ coax site new gate_up_fwd")]
struct New {
    /// A code object, or the name of a built-in site
    input: PathBuf,
    /// Of which kernel, when there are several
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Where to write it [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let Command::New(new) = self.command;
        guarded(|| new.run())
    }
}

impl New {
    fn run(&self) -> Result<ExitCode, Error> {
        let builtin = self.input.to_str().and_then(Builtin::find).filter(|_| !self.input.exists());
        let text = match builtin {
            Some(builtin) => builtin.text(),
            None => self.scaffold()?,
        };
        let Some(path) = &self.output else { return finish(&text, 0) };
        edited::refuse_overwriting(path, &[&self.input], false)?;
        output::write_file(path, |out| out.write_all(text.as_bytes())).map_err(Error::input)?;
        finish(
            &format!("{}: fill in shapes, values and roles, then: coax compare REF TEST --site {0}\n", path.display()),
            0,
        )
    }

    fn scaffold(&self) -> Result<String, Error> {
        let name = self.input.display();
        let input = Input::read(&self.input)?;
        let object = CodeObject::parse_with(&input.bytes, Detail::Full)
            .map_err(|error| Error::input(format!("{name}: {error}")))?;
        let names: Vec<&str> = object.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let wanted =
            |kernel: &&codeobj::code_object::Kernel| self.kernel.as_deref().is_none_or(|name| name == kernel.name);
        let mut kernels = object.kernels.iter().filter(wanted);
        match (kernels.next(), kernels.next()) {
            (Some(kernel), None) => Ok(scaffold::site_text(&kernel.name, &kernel.metadata)),
            (None, _) => {
                let message = match &self.kernel {
                    Some(wanted) => format!("{name}: no kernel `{wanted}`; there are {}", names.join(", ")),
                    None => format!("{name}: no kernel in it"),
                };
                Err(Error::input(message))
            }
            (Some(_), Some(_)) => Err(Message::new(format!("{name}: {} kernels in it", names.len()))
                .help(format!("name one with --kernel: {}", names.join(", ")))
                .into()),
        }
    }
}
