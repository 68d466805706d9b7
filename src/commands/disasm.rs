//! `coax disasm`: a code object as a `.s` that assembles again.

use std::path::PathBuf;
use std::process::ExitCode;

use rewrite::disasm::{self, Counts, Disassembly};
use rewrite::{Error, Message, Object, reference};

use super::edited::{self, Input};
use crate::output;
use crate::toolchain::Llvm;

/// Write a code object as assembly that assembles to the same bytes
///
/// The text has every instruction of every section of code, labels at the targets of branches, descriptors and metadata.
/// It is then assembled again and compared: the last line of stdout is BYTE-IDENTICAL or DIFFER. Exit code: 0 identical,
/// 1 not, 2 when the input cannot be taken apart, 3 without LLVM.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax disasm clang/gfx942/k.co -o k.s
  $ coax disasm 'fatbin/multi_plain.hipfb!gfx942' -o k.s --no-comments")]
pub struct Opts {
    /// A code object, or a path to one inside a container (lib.so!gfx942); `-` for stdin
    #[arg(value_parser = edited::file())]
    reference: PathBuf,
    /// Where the text goes
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// No offsets and words behind the instructions
    #[arg(long)]
    no_comments: bool,
    /// Overwrite a text that was edited
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    llvm: Llvm,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        edited::guarded(|| {
            let input = Input::read(&self.reference)?;
            edited::refuse_overwriting(&self.output, &[&self.reference], false)?;
            let toolchain = self.llvm.open()?;
            let object = Object::parse(&input.bytes)?;
            let options = disasm::Options { comments: !self.no_comments };
            let written = disasm::disassemble(&toolchain, &object, options)?;
            if !self.force {
                self.refuse_losing_edits(&written.text)?;
            }
            let differs = disasm::check(&toolchain, &object, &written)?;
            let Disassembly { text, counts, omitted } = written;
            output::write_file(&self.output, |out| out.write_all(text.as_bytes())).map_err(Error::input)?;
            let notes: Vec<String> =
                omitted.iter().map(|what| format!("{} does not have: {what}", self.output.display())).collect();
            output::list("note", &notes);
            let mut page = format!("{}: {}\n", self.output.display(), summary(&counts));
            for (reason, count) in &counts.words {
                page += &format!("  {count} as .long: {}\n", reason.describe());
            }
            page += &match &differs {
                None => "BYTE-IDENTICAL\n".to_owned(),
                Some(place) => format!("DIFFER: what the text assembles to differs at {place}\n"),
            };
            edited::finish(&page, u8::from(differs.is_some()))
        })
    }
}

impl Opts {
    /// A text of this command that is not what it would write may have been edited.
    fn refuse_losing_edits(&self, text: &str) -> Result<(), Error> {
        // A pipe or terminal would be waited for.
        if !self.output.is_file() {
            return Ok(());
        }
        let Ok(there) = std::fs::read(&self.output) else { return Ok(()) };
        let is_ours = there.split(|byte| *byte == b'\n').next().and_then(|line| std::str::from_utf8(line).ok());
        if is_ours.and_then(reference::read).is_none() || there == text.as_bytes() {
            return Ok(());
        }
        let message = format!("{} is a text of disasm, and not what would be written now", self.output.display());
        Err(Message::new(message).help("it may have been edited: name another output, or say --force").into())
    }
}

/// How the instructions were written, in a line.
pub fn summary(counts: &Counts) -> String {
    let mut text = format!("{} instructions", counts.instructions);
    for (count, what) in
        [(counts.hints, "with a hint"), (counts.all_words(), "as .long"), (counts.untrusted, "untrusted")]
    {
        if count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text
}
