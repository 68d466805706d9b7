//! `coax site`: a first site file from a code object, and whether a site fits.

mod check;
mod triton;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use codeobj::code_object::Kernel;
use codeobj::{CodeObject, Detail};
use compare::site::builtin::Builtin;
use compare::site::scaffold;
use rewrite::{Error, Message};

use self::check::Check;
use super::edited::{Input, finish, guarded};
use crate::output;

/// Write a first site file for `coax compare`, or check one
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax site new kernel.co --kernel plain_add -o plain_add.toml
  $ coax site new gate_up_fwd
  $ coax site check site.toml ref.mock test.mock")]
pub struct Opts {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    New(New),
    Check(Check),
}

/// Write a first site file from a code object's metadata
///
/// Roles and types are those of the metadata where it has them; what is guessed says so, and what nobody wrote down is `"?"`,
/// which no run accepts. Triton's `.json` beside the code object says block, LDS and which pointers are its own.
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
    /// Replace the output when it is there already
    #[arg(long, requires = "output")]
    force: bool,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        guarded(|| match self.command {
            Command::New(new) => new.run(),
            Command::Check(check) => check.run(),
        })
    }
}

impl New {
    fn run(&self) -> Result<ExitCode, Error> {
        if let Some(path) = &self.output {
            self.refuse_overwriting(path)?;
        }
        let builtin = self.input.to_str().and_then(Builtin::find).filter(|_| !self.input.exists());
        let text = match (builtin, &self.kernel) {
            (Some(builtin), None) => builtin.text(),
            (Some(builtin), Some(_)) => {
                return Err(Error::input(format!("{}: a built-in site says itself what its kernel is", builtin.name)));
            }
            (None, _) => self.scaffold()?,
        };
        if builtin.is_none() && !scaffold::has_output(&text) {
            output::stderr("warning: no argument is written, by the metadata: without an output nothing is compared");
        }
        let Some(path) = &self.output else { return finish(&text, 0) };
        output::write_file(path, |out| out.write_all(text.as_bytes())).map_err(Error::input)?;
        let shown = path.display();
        let next = match builtin {
            Some(_) => format!("{shown}: coax compare REF TEST --site {shown}\n"),
            None => format!("{shown}: fill in what is \"?\", then: coax site check {shown} {}\n", self.input.display()),
        };
        finish(&next, 0)
    }

    /// A site is an hour of work, and `-o` is typed quickly.
    fn refuse_overwriting(&self, path: &Path) -> Result<(), Error> {
        let same = matches!((self.input.canonicalize(), path.canonicalize()), (Ok(a), Ok(b)) if a == b);
        match path.exists() {
            true if same => Err(Error::input(format!("{} is the input; name another output", path.display()))),
            true if !self.force && path.is_file() => {
                Err(Message::new(format!("{} is there already", path.display())).help("--force replaces it").into())
            }
            _ => Ok(()),
        }
    }

    fn scaffold(&self) -> Result<String, Error> {
        let name = self.input.display();
        let input = Input::read(&self.input)?;
        let object = CodeObject::parse_with(&input.bytes, Detail::Full)
            .map_err(|error| Error::input(format!("{name}: {error}")))?;
        let kernel = self.choose(&object)?;
        let beside = triton::beside(&self.input, &kernel.name).map_err(Error::input)?;
        scaffold::site_text(&kernel.name, &kernel.metadata, &beside).map_err(|problems| {
            check::as_error(compare::run::Failure::BadInput(
                problems.into_iter().map(|why| format!("{name}: {why}")).collect(),
            ))
        })
    }

    fn choose<'o>(&self, object: &'o CodeObject) -> Result<&'o Kernel, Error> {
        let name = self.input.display();
        let names: Vec<&str> = object.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        let wanted = |kernel: &&Kernel| self.kernel.as_deref().is_none_or(|name| name == kernel.name);
        let mut kernels = object.kernels.iter().filter(wanted);
        match (kernels.next(), kernels.next()) {
            (Some(kernel), None) => Ok(kernel),
            (None, _) => Err(Error::input(match &self.kernel {
                Some(wanted) => format!("{name}: no kernel `{wanted}`; there are {}", names.join(", ")),
                None => format!("{name}: no kernel in it"),
            })),
            (Some(_), Some(_)) => Err(Message::new(format!("{name}: {} kernels in it", names.len()))
                .help(format!("name one with --kernel: {}", names.join(", ")))
                .into()),
        }
    }
}
