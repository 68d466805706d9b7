//! `coax capture`: runs a command so that the compilers under it leave their final ISA behind.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use resources::binary::Instructions;
use resources::collect;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::output;

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
    let mut child = child.spawn().map_err(|e| format!("{}: cannot be started: {e}", program.to_string_lossy()))?;
    let status = interrupt.wait(&mut child)?;
    let options = collect::Options { instructions: Instructions::NotWanted, progress: &|_, _| {} };
    let ended = describe(status);
    match collect::snapshot(&out, options) {
        Ok(snapshot) => {
            let damaged = snapshot.all_problems();
            output::list("warning", &damaged);
            Ok(format!("captured {} kernels in {}; the command {ended}", snapshot.kernels.len(), out.display()))
        }
        Err(error) => Err(format!(
            "no kernel came out in {}; the command {ended}\n{}",
            out.display(),
            what_to_look_at(&error.messages)
        )),
    }
}

/// While it lives, a signal that would end this process is only noted: what was made for a command (a worktree,
/// temporaries) is to go first.
struct Interrupt {
    seen: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Interrupt {
    fn watch() -> Result<Interrupt, String> {
        let interrupt = Interrupt { seen: Arc::default(), over: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_default(signal, interrupt.over.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupt.seen.clone()))
                .map_err(|e| format!("no signal handler: {e}"))?;
        }
        Ok(interrupt)
    }

    /// Waits for the command, and ends it when a signal comes.
    fn wait(&self, child: &mut Child) -> Result<ExitStatus, String> {
        const POLL: Duration = Duration::from_millis(20);
        const GRACE: u32 = 100; // polls
        let mut left = GRACE;
        loop {
            let interrupted = self.seen.load(Ordering::Relaxed);
            match child.try_wait().map_err(|e| format!("the command cannot be waited for: {e}"))? {
                Some(_) if interrupted => return Err("interrupted".into()),
                Some(status) => return Ok(status),
                // From a terminal the command has the signal too, and ends by itself.
                None if interrupted && left == 0 => drop(child.kill()),
                None if interrupted => left -= 1,
                None => {}
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
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
    let failed = |e: std::io::Error| format!("{}: {e}", path.display());
    fs::create_dir_all(path).map_err(failed)?;
    if fs::read_dir(path).map_err(failed)?.next().is_some() {
        return Err(format!(
            "{}: is not empty; old dumps would be taken for new ones. Give a fresh directory",
            path.display()
        ));
    }
    fs::canonicalize(path).map_err(failed)
}

/// Dumps of a revision and of the working tree; they and the worktree go when this does.
pub struct Sides {
    scratch: tempfile::TempDir,
    worktree: Option<Worktree>,
}

impl Sides {
    /// The dumps of the revision.
    pub fn before(&self) -> PathBuf {
        self.scratch.path().join("before")
    }

    /// The dumps of the working tree.
    pub fn after(&self) -> PathBuf {
        self.scratch.path().join("after")
    }
}

impl Drop for Sides {
    fn drop(&mut self) {
        drop(self.worktree.take()); // before the directory that it lies in
    }
}

/// Runs `command` in a worktree of `revision` and in the current directory, with the same environment.
///
/// # Errors
/// No git repository, no such revision, or one side without kernels; the message names the side.
pub fn both_sides(revision: &str, environment: &Environment, command: &[OsString]) -> Result<Sides, String> {
    let prefix = git(&["rev-parse", "--show-prefix"])?;
    let commit = git(&["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")])
        .map_err(|_| format!("`{revision}` is no revision of this git repository"))?;
    let scratch = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let interrupt = Interrupt::watch()?;
    let mut sides = Sides { scratch, worktree: None };
    let tree = sides.scratch.path().join("tree");
    sides.worktree = Some(Worktree::add(&tree, &commit)?);
    for (side, out, directory) in [("before", sides.before(), Some(tree.join(&prefix))), ("after", sides.after(), None)]
    {
        output::stderr(&format!("{side}: {}", directory.as_ref().map_or("the working tree", |_| revision)));
        let summary =
            capture(&interrupt, &out, directory.as_deref(), environment, command, Stdio::from(std::io::stderr()))
                .map_err(|why| format!("{side}: {why}"))?;
        output::stderr(&format!("{side}: {summary}"));
    }
    sides.worktree = None; // the dumps are all that is needed from here on
    Ok(sides)
}

/// A linked worktree, removed on drop.
struct Worktree(PathBuf);

impl Worktree {
    fn add(path: &Path, commit: &str) -> Result<Worktree, String> {
        git(&["worktree", "add", "--quiet", "--detach", &path.to_string_lossy(), commit])?;
        Ok(Worktree(path.to_owned()))
    }
}

impl Drop for Worktree {
    fn drop(&mut self) {
        if let Err(why) = git(&["worktree", "remove", "--force", &self.0.to_string_lossy()]) {
            output::stderr(&format!("warning: {}: the worktree could not be removed: {why}", self.0.display()));
        }
    }
}

fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(arguments).output().map_err(|e| format!("git cannot be started: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
}
