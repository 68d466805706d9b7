//! Where output goes: pipes that close early, full disks, folders that are not there.

use crate::Test;
use crate::process;
use crate::run::{Said, coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::io::Read;
use std::process::Stdio;

pub const TESTS: &[Test] = &[
    ("a_closed_stdout_is_no_error", "", a_closed_stdout_is_no_error),
    ("a_reader_of_one_line_gets_it", "", a_reader_of_one_line_gets_it),
    ("a_full_stdout_is_not_a_success", "linux", a_full_stdout_is_not_a_success),
    ("json_on_a_full_disk_is_not_a_success", "linux", json_on_a_full_disk_is_not_a_success),
    ("json_into_a_missing_folder_names_it", "", json_into_a_missing_folder_names_it),
    ("json_onto_a_folder_is_refused", "", json_onto_a_folder_is_refused),
    ("json_into_a_read_only_folder_is_refused", "not-root", json_into_a_read_only_folder_is_refused),
    ("json_of_a_failed_run_leaves_the_old_file", "", json_of_a_failed_run_leaves_the_old_file),
    ("json_through_a_link_keeps_the_link", "", json_through_a_link_keeps_the_link),
];

/// Commands that print, with their exit codes.
fn printing() -> Vec<(Vec<String>, i32)> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (before, after) = (data("flydsl/mixed/before"), data("flydsl/mixed/after"));
    vec![
        (owned(&["summarize", &before]), 0),
        (owned(&["diff", &before, &after]), 2),
        (owned(&["diff", &data("flydsl/lds/before"), &data("flydsl/lds/after")]), 1),
        (owned(&["show", &data("clang/gfx942/k.co")]), 0),
        (owned(&["--help"]), 0),
        (owned(&["--version"]), 0),
    ]
}

/// As `coax … | true`: the verdict's exit code stays.
fn a_closed_stdout_is_no_error() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for (args, exit) in printing() {
        let mut command = process::coax(&work.path)?;
        let mut child = command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        drop(child.stdout.take());
        said(child)?.exits(exit)?;
    }
    Ok(())
}

/// As `coax … | head -1`.
fn a_reader_of_one_line_gets_it() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for (args, exit) in printing() {
        let mut command = process::coax(&work.path)?;
        let mut child = command.args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let mut byte = [0];
        child.stdout.take().expect("stdout is piped").read_exact(&mut byte)?;
        said(child)?.exits(exit)?;
    }
    Ok(())
}

fn said(child: std::process::Child) -> Result<Said, Failed> {
    let output = child.wait_with_output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    // A signal has no code and is never right.
    Ok(Said { exit: output.status.code().unwrap_or(-1), stdout: String::new(), stderr })
}

fn a_full_stdout_is_not_a_success() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for (args, _) in printing().into_iter().filter(|(args, _)| !args[0].starts_with('-')) {
        let full = fs::File::options().write(true).open("/dev/full")?;
        let mut command = process::coax(&work.path)?;
        let child = command.args(&args).stdout(full).stderr(Stdio::piped()).spawn()?;
        said(child)?.exits(2)?.tells(&["error: stdout: No space left"])?;
    }
    Ok(())
}

fn summarize_into(json: &str) -> Result<Said, Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["summarize", &data("flydsl/lds/before"), "-q", "--json", json], &[])
}

fn json_on_a_full_disk_is_not_a_success() -> Result<(), Failed> {
    summarize_into("/dev/full")?.verdict("NOT TRUSTWORTHY")?.tells(&["error: /dev/full:", "No space left"])?;
    Ok(())
}

fn json_into_a_missing_folder_names_it() -> Result<(), Failed> {
    summarize_into("missing/report.json")?.verdict("NOT TRUSTWORTHY")?.tells(&["error: missing/report.json:"])?;
    Ok(())
}

fn json_onto_a_folder_is_refused() -> Result<(), Failed> {
    let onto = summarize_into("/")?.verdict("NOT TRUSTWORTHY")?;
    onto.tells(&["error: /:", "directory"])?;
    Ok(())
}

fn json_into_a_read_only_folder_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    work.prepare(&["mkdir", "closed"].map(str::to_owned))?;
    work.prepare(&["chmod", "555", "closed"].map(str::to_owned))?;
    coax(&work, &["summarize", &data("flydsl/lds/before"), "-q", "--json", "closed/report.json"], &[])?
        .verdict("NOT TRUSTWORTHY")?
        .tells(&["error: closed/report.json:", "ermission denied"])?;
    Ok(())
}

fn json_of_a_failed_run_leaves_the_old_file() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("report.json"), "old")?;
    coax(&work, &["summarize", "missing", "--json", "report.json"], &[])?.verdict("NOT TRUSTWORTHY")?;
    let names: Vec<_> = fs::read_dir(&work.path)?.flatten().map(|entry| entry.file_name()).collect();
    if fs::read_to_string(work.path.join("report.json"))? != "old" || names != ["report.json"] {
        return Err(format!("the folder holds {names:?}").into());
    }
    Ok(())
}

fn json_through_a_link_keeps_the_link() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("real.json"), "old")?;
    work.prepare(&["symlink", "real.json", "link.json"].map(str::to_owned))?;
    coax(&work, &["summarize", &data("flydsl/lds/before"), "-q", "--json", "link.json"], &[])?.verdict("OK")?;
    let is_link = fs::symlink_metadata(work.path.join("link.json"))?.is_symlink();
    let is_new = fs::read_to_string(work.path.join("real.json"))?.contains("\"schema\"");
    if is_link && is_new { Ok(()) } else { Err(format!("link {is_link}, new content {is_new}").into()) }
}
