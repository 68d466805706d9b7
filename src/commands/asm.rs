//! `coax asm`: a whole code object out of a complete assembly text.

use std::path::PathBuf;
use std::process::ExitCode;

use rewrite::{Error, Source, build};

use super::edited;
use crate::interrupt::Interrupt;
use crate::output;
use crate::toolchain::Llvm;

/// Assemble and link a complete assembly text
///
/// The text says for which target it is, and has descriptors and metadata, as `coax disasm` and compilers write them. The
/// hints of `coax disasm` are honoured. Exit code: 0 written, 2 the text does not assemble, 3 without LLVM or ld.lld.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax asm clang/extra/small.gfx90a_xnack+.s -o new.co
  coax asm ref.s -o new.co")]
pub struct Opts {
    /// What is assembled; `-` for stdin
    #[arg(value_parser = edited::file())]
    text: PathBuf,
    /// Where the code object goes
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    llvm: Llvm,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let mut text = String::new();
        self.assemble(&mut text).unwrap_or_else(|error| {
            edited::say_error(&error, Some((&self.text, &text)));
            edited::exit_of(&error)
        })
    }

    fn assemble(&self, text: &mut String) -> Result<ExitCode, Error> {
        edited::refuse_overwriting(&self.output, &[&self.text], false)?;
        *text = edited::read_text(&self.text)?;
        let toolchain = self.llvm.open()?;
        let source = Source::read(text);
        // The linker works in a temporary folder.
        let interrupt = Interrupt::watch().map_err(Error::input)?;
        let linked = build::code_object(&toolchain, self.llvm.path().as_deref(), &source);
        interrupt.end();
        let bytes = linked?;
        let notes = build::check(&toolchain, &bytes, &source)?;
        let notes: Vec<String> = notes.iter().map(|note| edited::shown(note, Some((&self.text, text)))).collect();
        output::list("note", &notes);
        output::write_file(&self.output, |out| out.write_all(&bytes)).map_err(Error::input)?;
        edited::finish(&format!("{}: written, {} bytes\n", self.output.display(), bytes.len()), 0)
    }
}
