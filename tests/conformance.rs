//! The contract of `summarize` and `diff` for dump trees and snapshots: one test for each folder of
//! `tests/conformance/`, whose README says what a folder holds and what is compared.
//!
//! COAX=path/to/coax tests another build.

#[path = "conformance/compare_json.rs"]
mod compare_json;
#[path = "conformance/compare_text.rs"]
mod compare_text;
#[path = "harness/process.rs"]
mod process;
#[path = "harness/words.rs"]
mod words;
#[path = "harness/workdir.rs"]
mod workdir;

use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use workdir::WorkDirectory;

/// Files of a case that are about it; every other entry is an input.
const ABOUT: [&str; 8] = ["cmd", "about", "setup", "exit", "expect.txt", "expect.json", "has", "want"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance");
    let mut cases: Vec<_> = fs::read_dir(&root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    cases.sort();
    let mut trials = vec![Trial::test("cases_are_there", {
        let count = cases.len();
        move || if count > 0 { Ok(()) } else { Err("no case was found".into()) }
    })];
    for case in cases {
        let name = case.file_name().unwrap_or_default().to_string_lossy().into_owned();
        trials.push(Trial::test(name, move || check(&case)));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check(case: &Path) -> Result<(), Failed> {
    let read = |name: &str| fs::read_to_string(case.join(name)).ok();
    let work = prepare(case)?;
    let command = read("cmd").ok_or("the case has no `cmd`")?;
    let outcome = process::run_coax(&words::split(command.trim_end())?, &work.path, &[])?;
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let report = fs::read_to_string(work.path.join("report.json")).ok();

    let mut wrong = Vec::new();
    let expected_exit = read("exit").ok_or("the case has no `exit`")?;
    if outcome.exit.to_string() != expected_exit.trim() {
        wrong.push(format!("exit code: expected {}, got {}", expected_exit.trim(), outcome.exit));
    }
    wrong.extend(compare_text::verdict(&stdout, outcome.exit));
    if stderr.contains("panicked at") {
        wrong.push("it panicked".into());
    }
    if let Some(expected) = read("expect.txt") {
        wrong.extend(compare_text::table(&expected, &stdout));
    }
    for claim in read("has").iter().flat_map(|claims| claims.lines()).filter(|claim| !claim.is_empty()) {
        if !compare_text::holds(claim, &stdout, &stderr, report.as_deref().unwrap_or(""))? {
            wrong.push(format!("does not hold: {claim}"));
        }
    }
    if let Some(expected) = read("expect.json") {
        match (serde_json::from_str(&expected), serde_json::from_str(report.as_deref().unwrap_or("null"))) {
            (Ok(expected), Ok(actual)) => wrong.extend(compare_json::differences(&expected, &actual)),
            (Err(error), _) => wrong.push(format!("expect.json: {error}")),
            (_, Err(error)) => wrong.push(format!("report.json: {error}")),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let about = read("want").or_else(|| read("about")).unwrap_or_default();
    Err(format!("{}\n  {}\nstdout:\n{stdout}\nstderr:\n{stderr}", about.trim(), wrong.join("\n  ")).into())
}

/// A working directory with the inputs of the case.
fn prepare(case: &Path) -> Result<WorkDirectory, String> {
    let work = WorkDirectory::new()?;
    for entry in fs::read_dir(case).map_err(|error| error.to_string())? {
        let entry = entry.map_err(|error| error.to_string())?;
        if !ABOUT.iter().any(|name| entry.file_name() == *name) {
            workdir::copy(&entry.path(), &work.path.join(entry.file_name()))?;
        }
    }
    for line in fs::read_to_string(case.join("setup")).unwrap_or_default().lines() {
        work.prepare(&words::split(line)?)?;
    }
    Ok(work)
}
