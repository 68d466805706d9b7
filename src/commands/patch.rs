//! `coax patch`: new code in the place of the old, every other byte kept.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rewrite::patch::Plan;
use rewrite::{Error, Message, Object, Source};

use super::edited::{self, Input};
use crate::output;
use crate::toolchain::Llvm;

/// Replace the code of a code object by that of an assembly text
///
/// Everything but the code stays as it is. The text is one that `coax disasm` wrote, edited; or instructions and labels
/// alone. Where a kernel's code became shorter, `s_nop 0` fills it up behind its end. Exit code: 0 written, 1 the new
/// code is larger, 2 bad input, 3 without LLVM; nothing is written but with 0.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax disasm ref.co -o edit.s
  coax patch ref.co edit.s -o new.co
  coax patch ref.co edit.s new.co")]
pub struct Opts {
    /// The code object whose code is replaced; nothing is written to it
    reference: PathBuf,
    /// The new code
    text: PathBuf,
    /// Where the patched code object goes
    #[arg(value_name = "OUT", required_unless_present = "output", conflicts_with = "output")]
    out: Option<PathBuf>,
    /// The same, as an option
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// OUT may be the reference
    #[arg(long)]
    in_place: bool,
    #[command(flatten)]
    llvm: Llvm,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let mut text = String::new();
        let result = self.patch(&mut text);
        result.unwrap_or_else(|error| {
            edited::say_error(&error, Some((&self.text, &text)));
            edited::exit_of(&error)
        })
    }

    /// `text` is filled when it has been read, for the messages about it.
    fn patch(&self, text: &mut String) -> Result<ExitCode, Error> {
        let out: &Path = self.output.as_deref().or(self.out.as_deref()).unwrap_or(Path::new(""));
        edited::refuse_overwriting(out, &[&self.reference, &self.text], self.in_place)?;
        let reference = Input::read(&self.reference)?;
        *text = edited::read_text(&self.text)?;
        let toolchain = self.llvm.open()?;
        let object = Object::parse(&reference.bytes)?;
        let source = Source::read(text);
        let plan = Plan::new(&toolchain, &object, &source)?;
        let mut page = String::new();
        for section in &plan.sections {
            let (name, place) = (&section.section.name, &section.section.file_range);
            page += &format!("Original {name}: offset={:#x}, size={} bytes\n", place.start, place.len());
            page += &format!("New code: {} bytes\n", section.new_size);
        }
        if !plan.same_size() {
            page += "WARNING: size mismatch!\n";
        }
        let said = |page: &str| output::stdout(page).map_err(|error| Error::input(format!("stdout: {error}")));
        let all = |messages: &[Message]| -> Vec<String> {
            messages.iter().map(|message| edited::shown(message, Some((&self.text, text)))).collect()
        };
        output::list("warning", &all(&plan.warnings));
        let patched = match plan.in_place() {
            Ok(patched) => patched,
            Err(error) if error.kind == rewrite::ErrorKind::Larger => {
                said(&page)?;
                // The wording that tools around hand-written kernels know.
                output::list("ERROR", &all(&error.messages));
                return Ok(edited::exit_of(&error));
            }
            Err(error) => {
                said(&page)?;
                return Err(error);
            }
        };
        output::list("note", &all(&patched.notes));
        for padding in &patched.padding {
            page += &format!("Padded {} with {} bytes of s_nop 0\n", padding.span, padding.bytes);
        }
        output::write_file(out, |file| file.write_all(&patched.bytes)).map_err(Error::input)?;
        page += &match patched.bytes == reference.bytes {
            true => format!("{}: BYTE-IDENTICAL to the reference\n", out.display()),
            false => format!("{}: written, {} bytes\n", out.display(), patched.bytes.len()),
        };
        edited::finish(&page, 0)
    }
}
