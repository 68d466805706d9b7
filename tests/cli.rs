//! Golden cases: every `tests/cli/**/*.case` is one test, named after its path.
//!
//! `tests/cli/format.case` explains the format. `BLESS=1 cargo test --test cli -- NAME` rewrites the expectations of
//! the matching cases; `REQUIRE=llvm` makes a case fail, instead of being ignored, when LLVM is missing.

#[path = "harness/case.rs"]
mod case;
#[path = "harness/data.rs"]
mod data;
#[path = "harness/escape.rs"]
mod escape;
#[path = "harness/execute.rs"]
mod execute;
#[path = "harness/normalize.rs"]
mod normalize;
#[path = "harness/process.rs"]
mod process;
#[path = "harness/requirements.rs"]
mod requirements;
#[path = "harness/words.rs"]
mod words;
#[path = "harness/workdir.rs"]
mod workdir;

use case::{Body, Case, Section};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    if bless && std::env::var_os("CI").is_some() {
        eprintln!("error: BLESS=1 is refused in CI: expectations are accepted by a person who reads the difference");
        return ExitCode::from(2);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let mut files = Vec::new();
    collect_files(&root, &mut files);
    files.sort();
    let mut trials = vec![Trial::test("harness::escapes_read_back_as_the_same_bytes", escapes_read_back)];
    for path in files {
        let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("").to_string_lossy().into_owned();
        trials.extend(trials_of(path, name, bless));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            collect_files(&entry.path(), files);
        } else {
            files.push(entry.path());
        }
    }
}

/// One trial for the file's form, one for its behaviour.
fn trials_of(path: PathBuf, name: String, bless: bool) -> Vec<Trial> {
    let form = format!("form::{name}");
    if path.extension().is_none_or(|extension| extension != "case") {
        let message = format!("{} is not a .case file: no test reads it", path.display());
        return vec![Trial::test(form, move || Err(message.into()))];
    }
    let text = match fs::read_to_string(&path).map_err(|error| error.to_string()) {
        Ok(text) => text,
        Err(message) => return vec![Trial::test(form, move || Err(message.into()))],
    };
    let case = match Case::parse(&text) {
        Ok(case) => case,
        Err(message) => return vec![Trial::test(form, move || Err(message.into()))],
    };
    let printed = case.to_string();
    let prints_back = move || {
        if printed == text { Ok(()) } else { Err(Failed::from(format!("print(parse(case)) differs:\n{printed}"))) }
    };
    let (need, unmet) = match unmet_need(&case) {
        Ok(None) => (None, None),
        Ok(Some((need, reason))) => (Some(need), Some(reason)),
        Err(message) => (None, Some(message)),
    };
    let ignored = need.is_some_and(|need| !requirements::is_required(&need));
    // The kind is printed before the name: why a case is ignored.
    let kind = unmet.clone().unwrap_or_default();
    let behaves = move || match unmet {
        Some(reason) => Err(Failed::from(reason)),
        None if bless => accept(&path, &case).map_err(Failed::from),
        None => execute::check(&case).map_err(Failed::from),
    };
    vec![Trial::test(form, prints_back), Trial::test(name, behaves).with_kind(kind).with_ignored_flag(ignored)]
}

fn unmet_need(case: &Case) -> Result<Option<(String, String)>, String> {
    for need in &case.needs {
        if let Some(reason) = requirements::missing(need)? {
            return Ok(Some((need.clone(), reason)));
        }
    }
    Ok(None)
}

/// Rewrites the expectations of a case whose output differs from them.
fn accept(path: &Path, case: &Case) -> Result<(), String> {
    if execute::check(case).is_ok() {
        return Ok(());
    }
    let actual = execute::replay(case)?;
    // 101 is a panic, from 128 on it is a signal: nobody expects these.
    if actual.sections.iter().any(|section| matches!(section, Section::Exit(101 | 128..))) {
        return Err(format!("a crash is not accepted as an expectation:\n{actual}"));
    }
    fs::write(path, actual.to_string()).map_err(|error| format!("{}: {error}", path.display()))
}

fn escapes_read_back() -> Result<(), Failed> {
    let samples: [&[u8]; 6] =
        [b"", b"\n", b"plain\n", b"no newline", b"\r\n\0\\ \xff\xfe\n", "é\u{85}\u{1b}[0m".as_bytes()];
    for bytes in samples {
        let body = Body::from_bytes(bytes);
        if body.bytes()? != bytes {
            return Err(format!("{bytes:?} reads back from {body:?} as {:?}", body.bytes()).into());
        }
    }
    Ok(())
}
