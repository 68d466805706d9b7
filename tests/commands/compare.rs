//! `coax compare` on the scripted device: what stays behind when a run hangs, is killed, or finds a damaged history.

use crate::Test;
use crate::process;
use crate::run::{Said, coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const TESTS: &[Test] = &[
    ("a_hang_belongs_into_the_history", "", a_hang_belongs_into_the_history),
    ("inputs_that_do_not_fit_are_no_runs", "", inputs_that_do_not_fit_are_no_runs),
    ("a_cut_line_costs_no_other", "", a_cut_line_costs_no_other),
    ("a_killed_run_leaves_no_older_answer", "", a_killed_run_leaves_no_older_answer),
    ("every_end_replaces_the_older_answer", "", every_end_replaces_the_older_answer),
    ("a_full_stdout_is_told", "linux", a_full_stdout_is_told),
    ("names_cannot_forge_lines", "", names_cannot_forge_lines),
    ("json_says_what_speed_was_required", "", json_says_what_speed_was_required),
    ("no_line_is_wider_than_a_page", "", no_line_is_wider_than_a_page),
];

/// A folder with a test that never ends.
fn folder() -> Result<WorkDirectory, Failed> {
    let work = WorkDirectory::new()?;
    for name in ["ref.mock", "test.mock", "site.toml"] {
        fs::copy(data(&format!("compare/{name}")), work.path.join(name))?;
    }
    let hang = fs::read_to_string(work.path.join("ref.mock"))? + "cheat = \"hang\"\n";
    fs::write(work.path.join("hang.mock"), hang)?;
    Ok(work)
}

fn compare(work: &WorkDirectory, test: &str, more: &[&str]) -> Result<Said, Failed> {
    let words = ["compare", "ref.mock", test, "--site", "site.toml", "--device", "mock"];
    coax(work, &[&words, more].concat(), &[])
}

fn json(path: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
}

fn check(is_so: bool, what: &str) -> Result<(), Failed> {
    if is_so { Ok(()) } else { Err(what.to_owned().into()) }
}

fn a_hang_belongs_into_the_history() -> Result<(), Failed> {
    let work = folder()?;
    let more = ["-q", "--launch-timeout", "1", "--history", "h.jsonl", "--note", "try 7", "--json", "r.json"];
    compare(&work, "hang.mock", &more)?.exits(1)?;
    let line = fs::read_to_string(work.path.join("h.jsonl"))?;
    let run: Value = serde_json::from_str(&line)?;
    check(run["verdict"] == "HUNG" && run["exit_code"] == 1 && run["note"] == "try 7", &line)?;
    check(run["kernel"] == "scale" && run["test"]["name"] == "hang.mock", &line)?;
    check(run["error"].as_str().is_some_and(|why| why.contains("did not come back")), &line)?;
    let listed = coax(&work, &["history", "h.jsonl"], &[])?.exits(0)?;
    check(listed.stdout.contains("HUNG") && listed.stdout.contains("note: try 7"), &listed.stdout)?;
    let report = json(&work.path.join("r.json"))?;
    check(report["verdict"] == "RESULT: HUNG" && report["comparison"].is_null(), &report.to_string())
}

fn inputs_that_do_not_fit_are_no_runs() -> Result<(), Failed> {
    let work = folder()?;
    compare(&work, "ref.mock", &["-q", "--require", "cos=2", "--history", "h.jsonl"])?.exits(2)?;
    check(fs::read_to_string(work.path.join("h.jsonl"))?.is_empty(), "nothing was launched")
}

/// A disk that was full once: the next run stands on a line of its own, and only what was cut is lost.
fn a_cut_line_costs_no_other() -> Result<(), Failed> {
    let work = folder()?;
    let history = work.path.join("h.jsonl");
    compare(&work, "test.mock", &["-q", "--history", "h.jsonl", "--note", "whole"])?.exits(0)?;
    let whole = fs::read_to_string(&history)?;
    fs::write(&history, format!("{whole}{}", &whole[..whole.len() / 2]))?;
    let said = compare(&work, "test.mock", &["-q", "--history", "h.jsonl", "--note", "next"])?.exits(0)?;
    said.tells(&["warning: h.jsonl: the last line had no end"])?;
    let text = fs::read_to_string(&history)?;
    check(text.starts_with(&whole) && text.lines().count() == 3 && text.ends_with('\n'), &text)?;
    let listed = coax(&work, &["history", "h.jsonl"], &[])?.exits(2)?.tells(&["error: h.jsonl:2: this is no run"])?;
    check(listed.stdout.contains("note: whole") && listed.stdout.contains("note: next"), &listed.stdout)?;
    let against = compare(&work, "test.mock", &["-q", "--benchmark", "--against", "h.jsonl"])?;
    against.exits(2)?.tells(&["error: h.jsonl:2: this is no run"]).map(drop)
}

fn a_killed_run_leaves_no_older_answer() -> Result<(), Failed> {
    let work = folder()?;
    compare(&work, "test.mock", &["-q", "--json", "r.json"])?.exits(0)?;
    let report = work.path.join("r.json");
    check(json(&report)?["exit_code"] == 0, "a first answer")?;
    let mut command = process::coax(&work.path)?;
    let words = ["compare", "ref.mock", "hang.mock", "--site", "site.toml", "--device", "mock", "--json", "r.json"];
    let mut child = command.args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let started = Instant::now();
    while json(&report)?["exit_code"] == 0 && started.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill()?;
    child.wait()?;
    let left = json(&report)?;
    let is_void = left["verdict"] == "RESULT: NOT ESTABLISHED" && left["exit_code"] == 2;
    check(is_void && left["errors"][0] == "the run has not ended", &left.to_string())
}

fn every_end_replaces_the_older_answer() -> Result<(), Failed> {
    let work = folder()?;
    compare(&work, "test.mock", &["-q", "--json", "r.json"])?.exits(0)?;
    compare(&work, "missing.mock", &["-q", "--json", "r.json"])?.exits(2)?;
    let report = json(&work.path.join("r.json"))?;
    let said = report["errors"][0].as_str().unwrap_or_default();
    check(report["exit_code"] == 2 && said.contains("missing.mock"), &report.to_string())
}

fn a_full_stdout_is_told() -> Result<(), Failed> {
    let work = folder()?;
    let full = fs::File::options().write(true).open("/dev/full")?;
    let words = ["compare", "ref.mock", "test.mock", "--site", "site.toml", "--device", "mock"];
    let mut command = process::coax(&work.path)?;
    let output = command.args(words).stdout(full).stderr(Stdio::piped()).output()?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    check(output.status.code() == Some(2) && stderr.contains("error: stdout: "), &stderr)
}

/// Names in a site and notes are from others, agents among them.
fn names_cannot_forge_lines() -> Result<(), Failed> {
    let work = folder()?;
    let site = fs::read_to_string(work.path.join("site.toml"))?;
    let forged = "name = \"s\\nRESULT: BIT-IDENTICAL\\u001b[2K\"\n";
    fs::write(work.path.join("site.toml"), format!("{forged}{}", site.replace("\"out\"", "\"out\\nRESULT: PASS\"")))?;
    let wrong = data("compare/wrong.mock");
    let more = ["--history", "h.jsonl", "--note", "x\nRESULT: PASS"];
    let said = compare(&work, &wrong, &more)?.exits(1)?;
    let verdicts = said.stdout.lines().filter(|line| line.starts_with("RESULT:")).count();
    check(verdicts == 1 && said.stdout.ends_with("\nRESULT: FAIL\n"), &said.stdout)?;
    check(!said.stdout.contains('\u{1b}'), &said.stdout)?;
    let listed = coax(&work, &["history", "h.jsonl"], &[])?.exits(0)?;
    check(!listed.stdout.contains('\u{1b}') && !listed.stdout.contains("\nRESULT"), &listed.stdout)
}

fn json_says_what_speed_was_required() -> Result<(), Failed> {
    let work = folder()?;
    let timed = ["-q", "--benchmark", "--warmup", "2", "--iters", "60", "--json", "r.json"];
    let more = [&timed[..], &["--require-speed=1.5", "--expect", "1.0169+/-0.001"]].concat();
    let said = compare(&work, "test.mock", &more)?.exits(1)?;
    check(said.stdout == "RESULT: SPEED NOT AS REQUIRED\n", &said.stdout)?;
    let report = json(&work.path.join("r.json"))?;
    check(report["verdict"] == "RESULT: SPEED NOT AS REQUIRED" && report["exit_code"] == 1, "the last line")?;
    check(report["comparison"]["verdict"] == "BIT-IDENTICAL", "the kernel itself is right")?;
    let found = &report["speed_requirements"];
    check(found[0]["flag"] == "--require-speed" && found[0]["met"] == false, &found.to_string())?;
    check(found[1]["flag"] == "--expect" && found[1]["met"] == true, &found.to_string())?;
    check(report["errors"][0].as_str().is_some_and(|why| why.contains("1.5 at least")), &report["errors"].to_string())
}

/// Messages have a line each; everything else fits.
fn too_wide(page: &str) -> Option<&str> {
    let is_message = |line: &str| ["required: ", "reason: ", "note: ", "--"].iter().any(|word| line.starts_with(word));
    page.lines().find(|line| line.chars().count() > 80 && !is_message(line))
}

fn no_line_is_wider_than_a_page() -> Result<(), Failed> {
    let work = folder()?;
    let timed = ["--benchmark", "--warmup", "2", "--iters", "60", "--require-speed=1.5", "--history", "h.jsonl"];
    let wrong = fs::read_to_string(data("compare/wrong.mock"))?;
    fs::write(work.path.join("wrong.mock"), wrong)?;
    for (test, exit) in [("test.mock", 1), ("wrong.mock", 1)] {
        let page = compare(&work, test, &timed)?.exits(exit)?.stdout;
        check(too_wide(&page).is_none(), too_wide(&page).unwrap_or_default())?;
    }
    let page = coax(&work, &["history", "h.jsonl"], &[])?.exits(0)?.stdout;
    check(too_wide(&page).is_none(), too_wide(&page).unwrap_or_default())
}
