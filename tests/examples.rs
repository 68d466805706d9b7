//! Runs the examples of README.md, of the agent skill and of every `coax COMMAND --help`, so that they stay true.
//!
//! In documents, a block marked `console` holds `$ coax …` lines and the output that they show. In help texts, the
//! section `Examples:` holds lines that begin with `  $ coax `; one that begins with `  coax ` is not run, because it needs
//! what a test has not. A comment may follow: `# exit 1` states the exit code
//! (without one: what a shown verdict says, else 0), `# needs FlyDSL` says why the line cannot run in a test. Shown
//! output must be the whole output, with `…` for lines left out; a help text shows none.
//!
//! They run in a folder that has everything of `tests/data` under its own name and as `tests/data/…`, and the names of
//! [`NAMES`], which read well in an example. For `patch`, what `coax disasm kernel.co -o edit.s` writes is there too.

#[path = "harness/data.rs"]
mod data;
#[path = "harness/examples.rs"]
mod examples;
#[path = "harness/process.rs"]
mod process;
#[path = "harness/words.rs"]
mod words;
#[path = "harness/workdir.rs"]
mod workdir;

use data::data_directory;
use examples::Example;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::Path;
use std::process::ExitCode;
use workdir::WorkDirectory;

/// Documents whose examples are run.
const PAGES: [&str; 2] = ["README.md", "skills/isa-resource-diff/SKILL.md"];

/// Short names for examples, and what of `tests/data` each stands for.
const NAMES: [(&str, &str); 10] = [
    ("before", "flydsl/mixed/before"),
    ("after", "flydsl/mixed/after"),
    ("kernel.co", "clang/gfx942/k.co"),
    ("kernel.s", "clang/gfx942/ind.s"),
    ("cache-before", "triton-cache/before"),
    ("cache-after", "triton-cache/after"),
    ("ref.mock", "compare/ref.mock"),
    ("test.mock", "compare/test.mock"),
    ("wrong.mock", "compare/wrong.mock"),
    ("site.toml", "compare/site.toml"),
];

/// The text that `patch` is shown with: that of `kernel.co`.
const EDIT: &str = "edit.s";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).unwrap_or_default();
        let found = examples::in_markdown(&text);
        if found.is_empty() {
            trials.push(Trial::test(page, move || Err(format!("no example in {page}").into())));
        }
        trials.extend(found.into_iter().map(|example| trial(page, example)));
    }
    match help(&[]) {
        Ok(text) => {
            for command in examples::commands_in_help(&text) {
                trials.extend(trials_of_command(&command));
            }
            trials.push(Trial::test("help_lists_commands", move || match examples::commands_in_help(&text).len() {
                0 => Err(format!("no command was found in:\n{text}").into()),
                _ => Ok(()),
            }));
        }
        Err(message) => trials.push(Trial::test("help", move || Err(message.into()))),
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trials_of_command(command: &str) -> Vec<Trial> {
    let place = format!("help {command}");
    match help(&[command.to_owned()]) {
        Ok(text) if examples::section_of_help(&text).next().is_some() => {
            examples::in_help(&text).into_iter().map(|example| trial(&place, example)).collect()
        }
        Ok(_) => {
            let message = format!("`coax {command} --help` has no section `Examples:` with a command line");
            vec![Trial::test(place, move || Err(message.into()))]
        }
        Err(message) => vec![Trial::test(place, move || Err(message.into()))],
    }
}

fn help(command: &[String]) -> Result<String, String> {
    let args = [command, &["--help".to_owned()]].concat();
    let outcome = process::run_coax(&args, Path::new("."), &[])?;
    if outcome.exit != 0 {
        return Err(format!("`coax {}` exits {}", args.join(" "), outcome.exit));
    }
    Ok(String::from_utf8_lossy(&outcome.stdout).into_owned())
}

fn trial(place: &str, example: Example) -> Trial {
    let name = format!("{place}: coax {}", example.command);
    let needs = example.needs.clone();
    Trial::test(name, move || run(&example)).with_ignored_flag(needs.is_some()).with_kind(needs.unwrap_or_default())
}

fn run(example: &Example) -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let data = data_directory();
    work.prepare(&["mkdir", "tests"].map(String::from))?;
    let mut links = vec![("tests/data".to_owned(), data.clone())];
    for entry in std::fs::read_dir(&data)?.flatten() {
        links.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    links.extend(NAMES.map(|(name, target)| (name.to_owned(), data.join(target))));
    for (name, target) in links {
        work.prepare(&["symlink".into(), target.to_string_lossy().into_owned(), name])?;
    }
    let command = words::split(&example.command)?;
    if command.first().is_some_and(|name| name == "patch") && command.iter().any(|word| word == EDIT) {
        let words = ["disasm", "kernel.co", "-o", EDIT].map(String::from);
        process::run_coax(&words, &work.path, &[])?;
    }
    let outcome = process::run_coax(&command, &work.path, &[])?;
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    if outcome.exit != example.exit {
        return Err(format!("exit {}, but the text says {}\n{stdout}{stderr}", outcome.exit, example.exit).into());
    }
    let actual: Vec<&str> = stdout.lines().map(str::trim_end).collect();
    if !example.output.is_empty() && !examples::shows(&example.output, &actual) {
        return Err(format!("the text shows\n{}\nbut the output is\n{stdout}", example.output.join("\n")).into());
    }
    Ok(())
}
