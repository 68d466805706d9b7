//! `coax diff --before REV -- COMMAND` in a git repository of its own, with a fake compiler.

use crate::Test;
use crate::capture::{COMPILER, isa};
use crate::run::{Said, coax};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("a_revision_is_compared_with_the_working_tree", "git", a_revision_is_compared),
    ("an_unchanged_tree_is_ok", "git", an_unchanged_tree_is_ok),
    ("a_folder_of_the_repository_works_too", "git", a_folder_of_the_repository_works_too),
    ("an_unknown_revision_is_named", "git", an_unknown_revision_is_named),
    ("outside_of_a_repository_git_is_named", "git", outside_of_a_repository_git_is_named),
    ("a_side_without_kernels_is_named", "git", a_side_without_kernels_is_named),
    ("the_output_of_the_command_is_not_on_stdout", "git", the_output_of_the_command_is_not_on_stdout),
    ("the_report_lands_in_the_own_folder", "git", the_report_lands_in_the_own_folder),
    ("before_without_a_command_is_a_usage_error", "", before_without_a_command_is_a_usage_error),
];

/// A repository whose commit holds the ISA of before and whose working tree that of `after`.
struct Repository {
    work: WorkDirectory,
}

impl Repository {
    fn new(after: &str) -> Result<Repository, Failed> {
        let repository = Repository { work: WorkDirectory::new()? };
        let path = &repository.work.path;
        fs::create_dir_all(path.join("tree/kernels"))?;
        fs::create_dir(path.join("tmp"))?;
        fs::write(path.join("tree/compile.sh"), COMPILER)?;
        fs::write(path.join("tree/kernels/compile.sh"), COMPILER)?;
        fs::copy(isa("before"), path.join("tree/isa.s"))?;
        fs::copy(isa("before"), path.join("tree/kernels/isa.s"))?;
        repository.git(&["init", "--quiet"])?;
        repository.git(&["add", "."])?;
        repository.git(&[
            "-c",
            "user.name=Tester",
            "-c",
            "user.email=t@example.org",
            "commit",
            "--quiet",
            "-m",
            "before",
        ])?;
        fs::copy(isa(after), path.join("tree/isa.s"))?;
        fs::copy(isa(after), path.join("tree/kernels/isa.s"))?;
        Ok(repository)
    }

    fn git(&self, args: &[&str]) -> Result<String, Failed> {
        let output = Command::new("git").args(args).current_dir(self.work.path.join("tree")).output()?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned().into()),
        }
    }

    /// Runs coax in `folder`; afterwards neither a worktree nor a temporary file may be left, and the working tree is
    /// as it was.
    fn diff(&self, folder: &str, args: &[&str]) -> Result<Said, Failed> {
        let before = self.git(&["status", "--porcelain"])?;
        let temporary = self.work.path.join("tmp");
        let folder = self.work.path.join(folder);
        let mut command = crate::process::coax(&folder)?;
        command.arg("diff").args(args).env("TMPDIR", &temporary);
        let said = Said::from(crate::process::run(command)?);
        let worktrees = self.git(&["worktree", "list"])?;
        let left: Vec<_> = fs::read_dir(&temporary)?.flatten().map(|entry| entry.path()).collect();
        if worktrees.lines().count() != 1 || !left.is_empty() {
            return Err(format!("left behind: {left:?}\nworktrees:\n{worktrees}").into());
        }
        if self.git(&["status", "--porcelain"])?.replace("?? report.json\n", "") != before {
            return Err("the working tree has changed".into());
        }
        Ok(said)
    }
}

fn a_revision_is_compared() -> Result<(), Failed> {
    let said = Repository::new("after")?.diff("tree", &["--before", "HEAD", "--", "sh", "compile.sh", "isa.s"])?;
    let said = said.verdict("REGRESSION")?;
    match said.stdout.contains("8192->16384") {
        true => Ok(()),
        false => Err(said.stdout.into()),
    }
}

fn an_unchanged_tree_is_ok() -> Result<(), Failed> {
    let repository = Repository::new("before")?;
    repository
        .diff("tree", &["--before", "HEAD", "--arch", "gfx950", "--", "sh", "compile.sh", "isa.s"])?
        .verdict("OK")?;
    Ok(())
}

fn a_folder_of_the_repository_works_too() -> Result<(), Failed> {
    let repository = Repository::new("after")?;
    let args = ["--before", "HEAD", "--", "sh", "compile.sh", "isa.s"];
    repository.diff("tree/kernels", &args)?.verdict("REGRESSION")?;
    Ok(())
}

fn an_unknown_revision_is_named() -> Result<(), Failed> {
    let repository = Repository::new("after")?;
    for revision in ["no-such-branch", "--help", "HEAD~5"] {
        let before = format!("--before={revision}");
        let said = repository.diff("tree", &[&before, "--", "touch", "started"])?;
        said.verdict("NOT TRUSTWORTHY")?.tells(&[revision, "revision"])?;
        if repository.work.path.join("tree/started").exists() {
            return Err("the command was started all the same".into());
        }
    }
    Ok(())
}

fn outside_of_a_repository_git_is_named() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let ceiling = work.path.display().to_string();
    let env = [("GIT_CEILING_DIRECTORIES", ceiling.as_str())];
    coax(&work, &["diff", "--before", "HEAD", "--", "true"], &env)?
        .verdict("NOT TRUSTWORTHY")?
        .tells(&["not a git repository"])?;
    Ok(())
}

fn a_side_without_kernels_is_named() -> Result<(), Failed> {
    let repository = Repository::new("after")?;
    fs::write(repository.work.path.join("tree/compile.sh"), "exit 3\n")?;
    let args = ["--before", "HEAD", "--", "sh", "compile.sh", "isa.s"];
    repository.diff("tree", &args)?.verdict("NOT TRUSTWORTHY")?.tells(&["error: after: no kernel", "exited with 3"])?;
    let args = ["--before", "HEAD", "--", "true"];
    repository.diff("tree", &args)?.verdict("NOT TRUSTWORTHY")?.tells(&["error: before: no kernel"])?;
    Ok(())
}

fn the_output_of_the_command_is_not_on_stdout() -> Result<(), Failed> {
    let repository = Repository::new("before")?;
    let script = "echo from the compiler; sh compile.sh isa.s";
    let said = repository.diff("tree", &["--before", "HEAD", "--", "sh", "-c", script])?.verdict("OK")?;
    match said.stdout.contains("from the compiler") {
        false => said.tells(&["from the compiler"]).map(drop),
        true => Err(said.stdout.into()),
    }
}

fn the_report_lands_in_the_own_folder() -> Result<(), Failed> {
    let repository = Repository::new("after")?;
    let args = ["--before", "HEAD", "-q", "--json", "report.json", "--", "sh", "compile.sh", "isa.s"];
    repository.diff("tree", &args)?.verdict("REGRESSION")?;
    let report = fs::read_to_string(repository.work.path.join("tree/report.json"))?;
    if report.contains("\"RESULT: REGRESSION\"") { Ok(()) } else { Err(report.into()) }
}

fn before_without_a_command_is_a_usage_error() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let said = coax(&work, &["diff", "--before", "HEAD"], &[])?.exits(2)?;
    if said.stdout.is_empty() { Ok(()) } else { Err(said.stdout.into()) }
}
