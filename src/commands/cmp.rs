//! `coax cmp`: whether two code objects are the same, and where they are not.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use codeobj::code_object::ObjectKind;
use codeobj::container;
use llvm::Toolchain;
use resources::collect::FileBytes;
use rewrite::compare::{self, Difference, Side};
use rewrite::{Error, Object, Source, reference};

use super::edited::{self, Input};
use crate::toolchain::Llvm;

/// Compare two code objects, or the code of assembly texts
///
/// Two code objects are compared byte for byte; where an assembly text is on either side, the instructions are, whatever
/// their labels and layout. The last line of stdout is BYTE-IDENTICAL or DIFFER. Exit code: 0 identical, 1 different, 2
/// when a side cannot be read, 3 when it takes LLVM to say where they differ and there is none.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax cmp clang/gfx942/k.co clang/gfx942/k.co
  coax cmp ref.co edit.s")]
pub struct Opts {
    /// A code object, a path to one inside a container, or assembly; `-` for stdin
    #[arg(value_parser = edited::file())]
    one: PathBuf,
    /// The other; `-` for stdin
    #[arg(value_parser = edited::file())]
    other: PathBuf,
    #[command(flatten)]
    llvm: Llvm,
}

/// How many differences are shown, and lines of each.
const SHOWN: usize = 20;
const SHOWN_LINES: usize = 8;

enum Content {
    Binary(Vec<u8>),
    Text(String),
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        edited::guarded(|| {
            let contents = [read(&self.one)?, read(&self.other)?];
            match &contents {
                [Content::Binary(one), Content::Binary(other)] => self.binaries([one, other]),
                _ => self.codes(&contents),
            }
        })
    }

    fn binaries(&self, bytes: [&[u8]; 2]) -> Result<ExitCode, Error> {
        let names = [&self.one, &self.other];
        let hash = |at: usize| format!("  sha256 {} {}\n", reference::sha256(bytes[at]), names[at].display());
        if bytes[0] == bytes[1] {
            return edited::finish(&format!("{}{}BYTE-IDENTICAL\n", hash(0), hash(1)), 0);
        }
        let objects = [Object::parse(bytes[0])?, Object::parse(bytes[1])?];
        let mut differences = compare::rest(&objects[0], &objects[1]);
        let sides = [Side::of_object(&objects[0]), Side::of_object(&objects[1])];
        if objects[0].sections.iter().zip(&objects[1].sections).any(|(a, b)| objects[0].code(a) != objects[1].code(b))
            || objects[0].sections.len() != objects[1].sections.len()
        {
            differences.retain(|difference| !difference.place.starts_with("file offset"));
            let toolchain = self.llvm.open()?;
            differences.extend(compare::code(&toolchain, [&sides[0], &sides[1]])?);
        }
        let page = format!("{}{}{}DIFFER\n", hash(0), hash(1), shown(&differences));
        edited::finish(&page, 1)
    }

    fn codes(&self, contents: &[Content; 2]) -> Result<ExitCode, Error> {
        let toolchain = self.llvm.open()?;
        let llvm = self.llvm.path();
        // A text that names no target is for that of the other side.
        let target = |content: &Content| match content {
            Content::Binary(bytes) => Ok(Some(Object::parse(bytes)?.target)),
            Content::Text(text) => rewrite::assemble::target_of(&Source::read(text)),
        };
        let default = target(&contents[0])?.map_or_else(|| target(&contents[1]), |known| Ok(Some(known)))?;
        // What is not linked is compared with what is not linked.
        let is_linked = |content: &Content| match content {
            Content::Binary(bytes) => Ok::<_, Error>(Object::parse(bytes)?.code_object.kind == ObjectKind::Dynamic),
            Content::Text(_) => Ok(true),
        };
        let link = is_linked(&contents[0])? && is_linked(&contents[1])?;
        let side = |at: usize, path| side(&toolchain, llvm.as_deref(), &contents[at], path, default.as_ref(), link);
        let (one, other) = (side(0, &self.one)?, side(1, &self.other)?);
        let differences = compare::code(&toolchain, [&one, &other])?;
        let verdict = if differences.is_empty() { "BYTE-IDENTICAL: the code of both\n" } else { "DIFFER\n" };
        edited::finish(&format!("{}{verdict}", shown(&differences)), u8::from(!differences.is_empty()))
    }
}

fn side(
    toolchain: &Toolchain,
    llvm: Option<&Path>,
    content: &Content,
    path: &Path,
    default: Option<&llvm::Target>,
    link: bool,
) -> Result<Side, Error> {
    match content {
        Content::Binary(bytes) => Ok(Side::of_object(&Object::parse(bytes)?)),
        Content::Text(text) => {
            let mut error = match Side::of_source(toolchain, llvm, &Source::read(text), default, link) {
                Ok(side) => return Ok(side),
                Err(error) => error,
            };
            for message in &mut error.messages {
                message.text = edited::shown(message, Some((path, text)));
                (message.line, message.help) = (0, None);
            }
            Err(error)
        }
    }
}

fn read(path: &Path) -> Result<Content, Error> {
    let is_text = path.is_file()
        && FileBytes::read(path).is_ok_and(|bytes| container::sniff(&bytes).is_none() && !bytes.contains(&0));
    match is_text {
        true => Ok(Content::Text(edited::read_text(path)?)),
        false => Ok(Content::Binary(Input::read(path)?.bytes)),
    }
}

fn shown(differences: &[Difference]) -> String {
    let mut text = String::new();
    for difference in differences.iter().take(SHOWN) {
        text += &format!("{}\n", difference.place);
        for (sign, lines) in ["-", "+"].iter().zip(&difference.sides) {
            lines.iter().take(SHOWN_LINES).for_each(|line| text += &format!("  {sign} {line}\n"));
            if lines.len() > SHOWN_LINES {
                text += &format!("  {sign} ... and {} more\n", lines.len() - SHOWN_LINES);
            }
        }
    }
    if differences.len() > SHOWN {
        text += &format!("... and {} more places\n", differences.len() - SHOWN);
    }
    text
}
