//! Behaviour of the commands that a `.case` cannot say: closed and full outputs, other programs, git, threads, inputs
//! too odd to be written down.
//!
//! What needs something of the machine is ignored with the reason where that is missing; REQUIRE makes it a failure.

#[path = "commands/action.rs"]
mod action;
#[path = "commands/baseline.rs"]
mod baseline;
#[path = "commands/before.rs"]
mod before;
#[path = "commands/capture.rs"]
mod capture;
#[path = "commands/compare.rs"]
mod compare;
#[path = "harness/data.rs"]
mod data;
#[path = "commands/hip.rs"]
mod hip;
#[path = "commands/hostile.rs"]
mod hostile;
#[path = "commands/interrupted.rs"]
mod interrupted;
#[path = "commands/manual.rs"]
mod manual;
#[path = "commands/original.rs"]
mod original;
#[path = "commands/outputs.rs"]
mod outputs;
#[path = "harness/process.rs"]
mod process;
#[path = "harness/requirements.rs"]
mod requirements;
#[path = "commands/run.rs"]
mod run;
#[path = "commands/skill.rs"]
mod skill;
#[path = "commands/threads.rs"]
mod threads;
#[path = "harness/words.rs"]
mod words;
#[path = "harness/workdir.rs"]
mod workdir;

use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

/// Name, what it needs of the machine (or nothing), and the test.
type Test = (&'static str, &'static str, fn() -> Result<(), Failed>);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let files: [(&str, &[Test]); 13] = [
        ("action", action::TESTS),
        ("manual", manual::TESTS),
        ("original", original::TESTS),
        ("outputs", outputs::TESTS),
        ("capture", capture::TESTS),
        ("compare", compare::TESTS),
        ("baseline", baseline::TESTS),
        ("before", before::TESTS),
        ("hip", hip::TESTS),
        ("hostile", hostile::TESTS),
        ("interrupted", interrupted::TESTS),
        ("skill", skill::TESTS),
        ("threads", threads::TESTS),
    ];
    let trials = files.iter().flat_map(|(file, tests)| tests.iter().map(move |test| trial(file, test)));
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

fn trial(file: &str, &(name, need, check): &Test) -> Trial {
    let missing = match need {
        "" => None,
        "python3" => run::no_python(),
        need => requirements::missing(need).unwrap_or_else(Some),
    };
    let ignored = missing.is_some() && !requirements::is_required(need);
    let kind = missing.clone().unwrap_or_default();
    let run = move || missing.map_or_else(check, |reason| Err(reason.into()));
    Trial::test(format!("{file}::{name}"), run).with_kind(kind).with_ignored_flag(ignored)
}
