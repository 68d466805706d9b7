//! `coax man`: the manual pages, made of the same description as `--help`.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap_mangen::Man;

use crate::output;

/// Print a manual page, or write all of them into a folder
///
/// Without --into, the page of one command goes to stdout: `coax man diff | man -l -`.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax man
  $ coax man baseline check
  $ coax man --into man1
  coax man diff | man -l -")]
pub struct Opts {
    /// The command; none is coax itself
    #[arg(value_name = "COMMAND", conflicts_with = "into")]
    command: Vec<String>,
    /// Write a page for each command into this folder, which is made if it is not there
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

impl Opts {
    /// Runs the command; `root` describes all of them.
    pub fn run(self, mut root: clap::Command) -> ExitCode {
        // Names become `coax-diff`, and the pages of `--help` are left to `--help`.
        root = root.disable_help_subcommand(true);
        root.build();
        let done = match &self.into {
            Some(folder) => std::fs::create_dir_all(folder)
                .map_err(|error| format!("{}: {error}", folder.display()))
                .and_then(|()| write_all(&root, folder)),
            None => find(&root, &self.command).and_then(|command| {
                let page = page(command).map_err(|error| error.to_string())?;
                output::stdout(&String::from_utf8_lossy(&page)).map_err(|error| format!("stdout: {error}"))
            }),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                output::stderr(&format!("error: {why}"));
                ExitCode::from(2)
            }
        }
    }
}

fn find<'c>(root: &'c clap::Command, names: &[String]) -> Result<&'c clap::Command, String> {
    names.iter().try_fold(root, |command, name| {
        command.find_subcommand(name).ok_or_else(|| {
            let known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
            format!("`{name}` is no command of {}; known are {}", command.get_name(), known.join(", "))
        })
    })
}

fn write_all(command: &clap::Command, folder: &std::path::Path) -> Result<(), String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let page = page(command).map_err(|error| error.to_string())?;
    output::write_file(&folder.join(format!("{name}.1")), |out| out.write_all(&page))?;
    command.get_subcommands().try_for_each(|below| write_all(below, folder))
}

fn page(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}
