//! The GitHub Action: the scripts of action.yml, run as a runner does, with its files and variables made here.

use crate::Test;
use crate::process;
use crate::run::data;
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::path::Path;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("finds_the_coax_that_is_given", "", finds_the_coax_that_is_given),
    ("a_regression_fails_with_1_and_is_told", "", a_regression_fails_with_1_and_is_told),
    ("what_cannot_be_said_fails_with_2", "", what_cannot_be_said_fails_with_2),
    ("no_change_is_ok", "", no_change_is_ok),
    ("a_baseline_is_checked", "", a_baseline_is_checked),
    ("a_usage_error_is_not_trustworthy", "", a_usage_error_is_not_trustworthy),
    ("both_kinds_of_before_are_refused", "", both_kinds_of_before_are_refused),
];

/// The script below `- name: NAME`: the lines of its `run: |`, less their indentation.
fn script(name: &str) -> Result<String, Failed> {
    let action = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"))?;
    let lines = action.lines().skip_while(|line| line.trim() != format!("- name: {name}"));
    let run = lines.skip_while(|line| line.trim() != "run: |").skip(1);
    let body: Vec<&str> = run
        .take_while(|line| line.trim().is_empty() || line.starts_with("        "))
        .map(|line| line.get(8..).unwrap_or_default())
        .collect();
    if body.is_empty() { Err(format!("action.yml has no script `{name}`").into()) } else { Ok(body.join("\n")) }
}

/// What a step left behind.
struct Step {
    exit: i32,
    stdout: String,
    outputs: String,
    summary: String,
}

fn step(name: &str, inputs: &[(&str, &str)]) -> Result<Step, Failed> {
    let work = WorkDirectory::new()?;
    let file = |name: &str| work.path.join(name);
    let [outputs, summary, script_file] = ["outputs", "summary", "script"].map(file);
    fs::write(&script_file, script(name)?)?;
    let coax = process::coax(&work.path)?.get_program().to_owned();
    let mut command = Command::new("bash");
    // As `shell: bash` is run.
    command.args(["--noprofile", "--norc", "-eo", "pipefail"]).arg(&script_file).current_dir(&work.path);
    for variable in ["BEFORE", "AFTER", "BASELINE", "OPTIONS", "SARIF", "JUNIT"] {
        command.env(variable, "");
    }
    command.env("SUMMARY", "true").env("COAX", coax).env("RUNNER_TEMP", &work.path).env("SOURCE", "/nowhere");
    command.env("GITHUB_OUTPUT", &outputs).env("GITHUB_STEP_SUMMARY", &summary).envs(inputs.iter().copied());
    let output = command.output()?;
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    Ok(Step {
        exit: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        outputs: read(&outputs),
        summary: read(&summary),
    })
}

impl Step {
    fn is(&self, exit: i32, verdict: &str, told: &[&str]) -> Result<(), Failed> {
        let output = format!("verdict={verdict}\nexit-code={exit}\n");
        let all = format!("{}\n{}\n{}", self.stdout, self.outputs, self.summary);
        let missing: Vec<&&str> = told.iter().filter(|text| !all.contains(**text)).collect();
        match self.exit == exit && self.outputs.contains(&output) && missing.is_empty() {
            true => Ok(()),
            false => Err(format!("exit {}, missing {missing:?} in:\n{all}", self.exit).into()),
        }
    }
}

fn finds_the_coax_that_is_given() -> Result<(), Failed> {
    let found = step("Find or build coax", &[])?;
    let said = found.exit == 0 && found.stdout.starts_with("coax ") && found.outputs.starts_with("path=/");
    if said { Ok(()) } else { Err(format!("exit {}: {}", found.exit, found.stdout).into()) }
}

fn a_regression_fails_with_1_and_is_told() -> Result<(), Failed> {
    let (before, after) = (data("flydsl/spill/before"), data("flydsl/spill/after"));
    let judged = step("Judge", &[("BEFORE", &before), ("AFTER", &after), ("SARIF", "r.sarif"), ("JUNIT", "r.xml")])?;
    judged.is(1, "REGRESSION", &["::error file=kernel_gemm_0/", "RESULT: REGRESSION", "## ❌ coax diff", "comment=/"])
}

fn what_cannot_be_said_fails_with_2() -> Result<(), Failed> {
    let judged = step("Judge", &[("BEFORE", "missing"), ("AFTER", &data("flydsl/spill/after"))])?;
    judged.is(2, "NOT TRUSTWORTHY", &["::error title=", "## ⚠️ coax diff: RESULT: NOT TRUSTWORTHY"])
}

fn no_change_is_ok() -> Result<(), Failed> {
    let (before, after) = (data("flydsl/nochange/before"), data("flydsl/nochange/after"));
    let judged = step("Judge", &[("BEFORE", &before), ("AFTER", &after), ("OPTIONS", "--fail-on\nvgpr\n")])?;
    judged.is(0, "OK", &["RESULT: OK", "## ✅ coax diff"])
}

fn a_baseline_is_checked() -> Result<(), Failed> {
    let (baseline, after) = (data("baseline/mixed.json"), data("flydsl/mixed/before"));
    let judged = step("Judge", &[("BASELINE", &baseline), ("AFTER", &after)])?;
    judged.is(0, "OK", &["## ✅ coax baseline check"])
}

fn a_usage_error_is_not_trustworthy() -> Result<(), Failed> {
    let (before, after) = (data("flydsl/spill/before"), data("flydsl/spill/after"));
    let judged = step("Judge", &[("BEFORE", &before), ("AFTER", &after), ("OPTIONS", "--no-such-option")])?;
    judged.is(2, "NOT TRUSTWORTHY", &["coax gave no findings"])
}

fn both_kinds_of_before_are_refused() -> Result<(), Failed> {
    let judged = step("Judge", &[("BEFORE", "a"), ("BASELINE", "b"), ("AFTER", "c")])?;
    let said = judged.exit == 2 && judged.stdout.contains("::error title=coax::give either");
    if said { Ok(()) } else { Err(format!("exit {}: {}", judged.exit, judged.stdout).into()) }
}
