//! Dumps of a revision and of the working tree, made by one command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Environment, Interrupt, capture};
use crate::output;

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
    refuse_absolute_paths(&git(&["rev-parse", "--show-toplevel"])?, command)?;
    let commit = git(&["rev-parse", "--verify", "--end-of-options", &format!("{revision}^{{commit}}")])
        .map_err(|_| format!("`{revision}` is no revision of this git repository"))?;
    let scratch = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    let interrupt = Interrupt::watch()?;
    let mut sides = Sides { scratch, worktree: None };
    let tree = sides.scratch.path().join("tree");
    sides.worktree = Some(Worktree::add(&tree, &commit)?);
    if !tree.join(&prefix).is_dir() {
        return Err(format!("before: `{revision}` has no directory {prefix}, where the command is to run"));
    }
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

/// A path into the working tree would make both sides the same files, and the comparison a false OK.
fn refuse_absolute_paths(top: &str, command: &[OsString]) -> Result<(), String> {
    let names_it = |text: &OsString| text.to_string_lossy().contains(top);
    if let Some(argument) = command.iter().find(|argument| names_it(argument)) {
        return Err(format!(
            "`{}` names the working tree by an absolute path: both sides would run the same files; use a relative path",
            argument.to_string_lossy()
        ));
    }
    for variable in ["PYTHONPATH", "PATH"] {
        if std::env::var_os(variable).is_some_and(|value| names_it(&value)) {
            output::stderr(&format!(
                "warning: ${variable} leads into the working tree ({top}): both sides may run the same files"
            ));
        }
    }
    Ok(())
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
