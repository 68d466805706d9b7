//! `coax show`: what is in a file, down to descriptor bits and arguments.

mod assembly;
mod binary;

use std::path::PathBuf;
use std::process::ExitCode;

use codeobj::container;
use resources::collect::{self, FileBytes};
use resources::policy::Pattern;

use crate::output;

/// Show what is in a file: containers, kernels, descriptor fields, arguments, metadata
///
/// FILE is a code object, any container of code objects, assembly with its metadata, or a path inside a container, as
/// this command lists them (`lib.so!hip_fatbin[3]!gfx942:sramecc+`). Exit code: 0 shown, 2 when something in it could not
/// be read or contradicts itself.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax show fatbin/host_fatbin.so
  $ coax show 'fatbin/multi_plain.hipfb!gfx942'
  $ coax show fatbin/host_fatbin.so --list
  $ coax show clang/gfx942/ind.o --kernel direct_call")]
pub struct Opts {
    /// What to show; `-` for stdin
    #[arg(value_parser = super::edited::file())]
    file: PathBuf,
    /// Only the paths of the code objects inside, a line each, as every command takes them
    #[arg(long, conflicts_with_all = ["kernel", "all_fields"])]
    list: bool,
    /// Only these kernels: * is any text, ? any character
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    kernel: Option<Pattern>,
    /// Descriptor fields that are 0 too
    #[arg(long)]
    all_fields: bool,
}

/// What was shown, and what could not be.
#[derive(Default)]
struct Page {
    text: String,
    problems: Vec<String>,
    /// Kernels shown.
    shown: usize,
}

impl Page {
    fn line(&mut self, line: impl AsRef<str>) {
        for line in line.as_ref().split('\n') {
            self.text.push_str(resources::printable(line).trim_end());
            self.text.push('\n');
        }
    }

    /// `  label     value`, the label in a column of its own.
    fn field(&mut self, indent: usize, label: &str, value: impl std::fmt::Display) {
        let width = 42usize.saturating_sub(indent);
        self.line(format!("{:indent$}{label:<width$} {value}", ""));
    }

    fn wants(opts: &Opts, kernel: &str) -> bool {
        opts.kernel.as_ref().is_none_or(|pattern| pattern.fits(kernel))
    }
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let page = self.page();
        let shown = output::stdout(&page.text);
        output::list("error", &page.problems);
        match shown {
            Ok(()) if page.problems.is_empty() => ExitCode::SUCCESS,
            Ok(()) => ExitCode::from(2),
            Err(error) => {
                output::stderr(&format!("error: stdout: {error}"));
                ExitCode::from(2)
            }
        }
    }

    fn page(&self) -> Page {
        let mut page = Page::default();
        let name = self.file.display().to_string();
        let (file, member) = match self.file.exists() {
            true => (name.as_str(), ""),
            false => collect::inside_a_container(&name).unwrap_or((&name, "")),
        };
        if self.file.is_dir() {
            page.problems.push(format!("{name}: is a directory; show takes one file, summarize reads directories"));
            return page;
        }
        let bytes = match FileBytes::read(file.as_ref()) {
            Ok(bytes) => bytes,
            Err(error) => {
                page.problems.push(format!("{file}: {}", collect::io_reason(&error)));
                return page;
            }
        };
        if container::sniff(&bytes).is_none() && resources::text::is_assembly(&bytes) {
            match member {
                "" if self.list => page.line(&name),
                "" => assembly::show(&bytes, &name, self, &mut page),
                _ => page.problems.push(format!("{file}: there is no `{member}`: the file is no container")),
            }
        } else if self.list {
            binary::paths(&bytes, file, member, &mut page);
        } else {
            binary::show(&bytes, file, member, self, &mut page);
        }
        if let Some(pattern) = self.kernel.as_ref().filter(|_| page.shown == 0 && page.problems.is_empty()) {
            page.problems.push(format!("{name}: `{pattern}` fits no kernel; `*{pattern}*` fits a part of a name"));
        }
        page
    }
}
