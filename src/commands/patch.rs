//! `coax patch`: new code in the place of the old, every other byte kept.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rewrite::patch::{self, Fields, Patched, Plan};
use rewrite::{Error, ErrorKind, Message, Object, Source, splice};

use super::edited::{self, Input};
use crate::output;
use crate::toolchain::Llvm;

/// Replace the code of a code object by that of an assembly text
///
/// Everything but the code stays as it is. The text is one that `coax disasm` wrote, edited; or instructions and labels
/// alone. Where a kernel's code became shorter, `s_nop 0` fills it up behind its end; where it became larger, --grow
/// makes room. Of a code object in a bundle, library, archive or package, a copy of that is written. Exit code: 0
/// written, 1 the new code is larger, 2 bad input, 3 without LLVM; nothing is written but with 0.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax disasm kernel.co -o edit.s
  $ coax patch kernel.co edit.s -o new.co
  $ coax patch kernel.co edit.s new.co
  $ coax patch kernel.co edit.s -o new.co --grow
  $ coax patch kernel.co edit.s -o new.co --update-descriptor
  coax patch lib.so!hip_fatbin[0]!gfx942 edit.s -o new.so
  coax patch lib.so!hip_fatbin[0]!gfx942 edit.s -o new.co --bare")]
pub struct Opts {
    /// The code object whose code is replaced; nothing is written to it; `-` for stdin
    #[arg(value_parser = edited::file())]
    reference: PathBuf,
    /// The new code; `-` for stdin
    #[arg(value_parser = edited::file())]
    text: PathBuf,
    /// Where the patched code object goes
    #[arg(value_name = "OUT", required_unless_present = "output", conflicts_with = "output")]
    out: Option<PathBuf>,
    /// The same, as an option
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Make room for code that is larger, and adjust computed addresses: what follows it moves
    #[arg(long)]
    grow: bool,
    /// Change descriptor and metadata to what the text says of them, and give kernels the registers that they use
    #[arg(long)]
    update_descriptor: bool,
    /// Of a code object in a container, write only the code object
    #[arg(long)]
    bare: bool,
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
        let fields = if self.update_descriptor { Fields::Update } else { Fields::Keep };
        patch::check_whole(&object, &source)?;
        let plan = Plan::new(&toolchain, &object, &source, fields)?;
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
        let mut has_grown = false;
        let in_place = match plan.in_place() {
            Err(error)
                if self.grow && matches!(error.kind, ErrorKind::Larger | ErrorKind::NoRoom | ErrorKind::Moved) =>
            {
                has_grown = true;
                plan.grown()
            }
            other => other,
        };
        let patched = match in_place {
            Ok(patched) => patched,
            Err(error) if error.kind == ErrorKind::Larger => {
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
        if has_grown {
            page += &grown(&object, &patched, plan.same_size())?;
        }
        patched.changes.iter().for_each(|change| page += &format!("Changed {change}\n"));
        page += &self.write(out, &reference, patched)?;
        edited::finish(&page, 0)
    }

    /// Writes what was asked for, and says what that is.
    fn write(&self, out: &Path, reference: &Input, patched: Patched) -> Result<String, Error> {
        let is_same = patched.bytes == reference.bytes;
        let container = reference.container.as_ref().filter(|_| !self.bare);
        let spliced = match container {
            Some(container) if is_same => container.bytes.to_vec(),
            Some(container) => splice::replace(&container.bytes, &container.member, &patched.bytes)?,
            None => patched.bytes,
        };
        output::write_file(out, |file| file.write_all(&spliced)).map_err(Error::input)?;
        let mut stale = splice::stale_companions(out);
        stale.extend(splice::stale_companions(&self.reference));
        stale.sort();
        stale.dedup();
        if !stale.is_empty() && !is_same {
            let names: Vec<String> = stale.iter().map(|file| file.display().to_string()).collect();
            output::list("note", &[format!("{} describe the code object as it was", names.join(" and "))]);
        }
        Ok(match (is_same, container) {
            (true, None) => format!("{}: BYTE-IDENTICAL to the reference\n", out.display()),
            (true, Some(of)) => format!("{}: BYTE-IDENTICAL to {}\n", out.display(), of.file),
            (false, None) => format!("{}: written, {} bytes\n", out.display(), spliced.len()),
            (false, Some(of)) => format!(
                "{}: written, {} bytes: a copy of {} with {} replaced (--bare writes the code object alone)\n",
                out.display(),
                spliced.len(),
                of.file,
                of.member
            ),
        })
    }
}

/// By how much each section's code grew; filler in front of an entry may have made all the room.
fn grown(object: &Object<'_>, patched: &Patched, is_same_size: bool) -> Result<String, Error> {
    let new = Object::parse(&patched.bytes)?;
    let sections = object.sections.iter().zip(&new.sections);
    let sizes = sections.map(|(old, new)| (&old.name, old.file_range.len(), new.file_range.len()));
    Ok(sizes.fold(String::new(), |page, (name, old, new)| {
        page + &match new.cmp(&old) {
            Ordering::Equal if is_same_size => {
                format!("Adjusted within {name}: computed addresses follow what moved\n")
            }
            Ordering::Equal => format!("Grown within {name}: the padding in front of an entry made room\n"),
            Ordering::Less => format!("Shrunk {name} from {old} to {new} bytes; what follows it moved\n"),
            Ordering::Greater => format!("Grown {name} from {old} to {new} bytes; what follows it moved\n"),
        }
    }))
}
