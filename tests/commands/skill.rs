//! The script that takes the place of the older one: same arguments, same output, same exit codes.

use crate::Test;
use crate::process;
use crate::run::{Said, coax, data};
use crate::words;
use crate::workdir::{self, WorkDirectory};
use libtest_mimic::Failed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("conformance_cases_pass_through_the_script", "python3", conformance_cases_pass),
    ("the_contract_holds_beside_a_coax_toml", "python3", beside_a_coax_toml),
    ("coax_is_found_in_the_search_path", "python3", coax_is_found_in_the_search_path),
    ("without_coax_the_verdict_is_not_trustworthy", "python3", without_coax),
    ("a_coax_that_cannot_run_is_not_trustworthy", "python3", a_coax_that_cannot_run),
];

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("skills/isa-resource-diff/scripts/isa_resource_table.py")
}

/// The program under test.
fn program(work: &WorkDirectory) -> Result<PathBuf, String> {
    Ok(process::coax(&work.path)?.get_program().into())
}

fn python(work: &WorkDirectory, script: &Path, args: &[String], env: &[(&str, &str)]) -> Result<Said, Failed> {
    let mut command = Command::new("python3");
    command.arg(script).args(args).current_dir(&work.path).env_remove("COAX").envs(env.iter().copied());
    Ok(Said::from(process::run(command)?))
}

/// Cases of each verdict, of both commands, with snapshots and `-q`.
const CASES: [&str; 9] = [
    "001-identical",
    "002-regress-vgpr",
    "008-improve-all",
    "015-multi-kernel-summary",
    "023-missing-dir-summarize",
    "060-features-differ",
    "071-only-before",
    "078-quiet-untrustworthy",
    "079-json-vs-dir",
];

fn conformance_cases_pass() -> Result<(), Failed> {
    for case in CASES {
        let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(case);
        let work = WorkDirectory::new()?;
        workdir::copy(&case, &work.path)?;
        for line in fs::read_to_string(case.join("setup")).unwrap_or_default().lines() {
            work.prepare(&words::split(line)?)?;
        }
        let args = words::split(fs::read_to_string(case.join("cmd"))?.trim_end())?;
        let program = program(&work)?.display().to_string();
        let through = python(&work, &script(), &args, &[("COAX", &program)])?;
        let expected: i32 = fs::read_to_string(case.join("exit"))?.trim().parse()?;
        let report = fs::read(work.path.join("report.json")).ok();
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let direct = coax(&work, &words, &[])?;
        let same = through.stdout == direct.stdout && through.stderr == direct.stderr;
        if through.exit != expected || !same || report != fs::read(work.path.join("report.json")).ok() {
            return Err(
                format!("{}: exit {}\n{}{}", case.display(), through.exit, through.stdout, through.stderr).into()
            );
        }
    }
    Ok(())
}

/// Callers of the script rely on the contract, whatever a repository accepts elsewhere.
fn beside_a_coax_toml() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("coax.toml"), "[gate]\nfail-on = [\"vgpr_spill\"]\n")?;
    let program = program(&work)?.display().to_string();
    let args = ["diff".into(), data("flydsl/lds/before"), data("flydsl/lds/after")];
    python(&work, &script(), &args, &[("COAX", &program)])?.verdict("REGRESSION")?;
    let args = ["summarize".into(), data("flydsl/lds/before"), "-q".into()];
    python(&work, &script(), &args, &[("COAX", &program)])?.verdict("OK")?;
    Ok(())
}

/// A copy of the script that lies in no repository.
fn installed(work: &WorkDirectory) -> Result<PathBuf, Failed> {
    let copy = work.path.join("skills/isa-resource-diff/scripts/isa_resource_table.py");
    workdir::copy(&script(), &copy)?;
    Ok(copy)
}

fn coax_is_found_in_the_search_path() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::create_dir(work.path.join("bin"))?;
    std::os::unix::fs::symlink(program(&work)?, work.path.join("bin/coax"))?;
    let path = format!("{}:{}", work.path.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let args = ["diff".into(), data("flydsl/lds/before"), data("flydsl/lds/after")];
    python(&work, &installed(&work)?, &args, &[("PATH", &path)])?.verdict("REGRESSION")?;
    Ok(())
}

fn without_coax() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    // Python stays reachable, in a folder that has nothing else.
    let python3 = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output()?;
    let python3 = String::from_utf8_lossy(&python3.stdout).trim().to_owned();
    let mut command = Command::new(python3);
    let args = ["summarize", &data("flydsl/lds/before")];
    command.arg(installed(&work)?).args(args).current_dir(&work.path).env_remove("COAX").env("PATH", "/nonexistent");
    let said = Said::from(process::run(command)?).verdict("NOT TRUSTWORTHY")?;
    said.tells(&["error: ", "coax", "cargo install"])?;
    Ok(())
}

fn a_coax_that_cannot_run() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("coax"), "not a program")?;
    let args = ["summarize".to_owned(), data("flydsl/lds/before")];
    let program = work.path.join("coax").display().to_string();
    python(&work, &script(), &args, &[("COAX", &program)])?.verdict("NOT TRUSTWORTHY")?.tells(&[&program])?;
    Ok(())
}
