//! `coax capture`: runs a command so that the compilers under it leave their final ISA behind.

mod sides;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use resources::binary::Instructions;
use resources::collect::{self, io_reason};

use crate::interrupt::Interrupt;
use crate::output;
pub use sides::both_sides;

/// Run a command and keep the final ISA of every kernel that it compiles
///
/// Sets the dump variables of FlyDSL (FLYDSL_DUMP_IR, FLYDSL_DUMP_DIR, FLYDSL_RUNTIME_ENABLE_CACHE=0) and Triton
/// (TRITON_CACHE_DIR, TRITON_ALWAYS_COMPILE). The command's own exit code is told and not trusted: a test that fails or
/// skips after compiling has left its dumps all the same. Exit code: 0 when kernels came out, 2 when none did.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax capture /tmp/isa-before --arch gfx950 -- python3 -m pytest tests/kernels/test_softmax.py -q
  coax diff /tmp/isa-before /tmp/isa-after")]
pub struct Opts {
    /// Where the dumps go; must be empty or not there yet
    out: PathBuf,
    /// Compile for this target only; needs no GPU
    #[arg(long)]
    arch: Option<String>,
    /// What to run
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let environment = Environment { arch: self.arch };
        let captured = Interrupt::watch()
            .and_then(|interrupt| capture(&interrupt, &self.out, None, &environment, &self.command, Stdio::inherit()));
        match captured {
            Ok(summary) => match output::stdout(&format!("{summary}\n")) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&format!("stdout: {error}")),
            },
            Err(why) => failed(&why),
        }
    }
}

fn failed(why: &str) -> ExitCode {
    output::stderr(&format!("error: {why}"));
    ExitCode::from(2)
}

/// What both sides of a comparison must share.
pub struct Environment {
    /// The target of a compile-only run.
    pub arch: Option<String>,
}

impl Environment {
    fn apply(&self, command: &mut Command, out: &Path) {
        command.env("FLYDSL_DUMP_IR", "1").env("FLYDSL_DUMP_DIR", out).env("FLYDSL_RUNTIME_ENABLE_CACHE", "0");
        command.env("TRITON_CACHE_DIR", out.join("triton")).env("TRITON_ALWAYS_COMPILE", "1");
        if let Some(arch) = &self.arch {
            command.env("ARCH", arch).env("FLYDSL_GPU_ARCH", arch).env("COMPILE_ONLY", "1");
        }
    }
}

/// Runs `command` (in `directory`) with its dumps going to `out`; says what came out.
fn capture(
    interrupt: &Interrupt,
    out: &Path,
    directory: Option<&Path>,
    environment: &Environment,
    command: &[OsString],
    stdout: Stdio,
) -> Result<String, String> {
    let out = empty_directory(out)?;
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut child = Command::new(program);
    child.args(arguments).stdout(stdout);
    environment.apply(&mut child, &out);
    if let Some(directory) = directory {
        child.current_dir(directory);
    }
    let mut child = child.spawn().map_err(|error| {
        let _ = fs::remove_dir(&out); // made above, and still empty
        let program = program.to_string_lossy();
        match error.kind() {
            std::io::ErrorKind::NotFound => format!("{program}: no such program (in $PATH, or at this path)"),
            _ => format!("{program}: cannot be started: {}", io_reason(&error)),
        }
    })?;
    let status = interrupt.wait(&mut child)?;
    let options = collect::Options { instructions: Instructions::NotWanted, progress: &|_, _| {} };
    let ended = describe(status);
    match collect::snapshot(&out, options) {
        Ok(snapshot) => {
            let damaged = snapshot.all_problems();
            output::list("warning", &damaged);
            let count = snapshot.kernels.len();
            let kernels = if count == 1 { "kernel" } else { "kernels" };
            Ok(format!("captured {count} {kernels} in {}; the command {ended}", out.display()))
        }
        Err(error) => Err(format!(
            "no kernel came out in {}; the command {ended}\n{}",
            out.display(),
            what_to_look_at(&error.messages)
        )),
    }
}

fn what_to_look_at(found: &[String]) -> String {
    let mut text = String::from(
        "  look at: does the command compile a kernel at all (a skipped test does not)?\n  \
         does it keep these variables (sudo, tox and containers drop them)?\n  \
         without a GPU, was --arch given?",
    );
    for message in found.iter().skip(1) {
        text.push_str(&format!("\n  found: {message}"));
    }
    text
}

fn describe(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exited with {code}"),
        None => format!("was ended: {status}"),
    }
}

/// Makes the directory; one that has anything in it is refused, since old dumps would be taken for new ones.
fn empty_directory(path: &Path) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("{}: {}", path.display(), io_reason(&e));
    if path.exists() && !path.is_dir() {
        return Err(format!("{}: is a file; dumps need a directory", path.display()));
    }
    fs::create_dir_all(path).map_err(failed)?;
    if fs::read_dir(path).map_err(failed)?.next().is_some() {
        return Err(format!(
            "{}: is not empty; old dumps would be taken for new ones. Give a fresh directory",
            path.display()
        ));
    }
    fs::canonicalize(path).map_err(failed)
}
