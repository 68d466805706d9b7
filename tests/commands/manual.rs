//! Completions and manual pages, read by the programs that use them.

use crate::Test;
use crate::process;
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("bash_reads_its_completions", "", bash_reads_its_completions),
    ("pages_name_every_option", "", pages_name_every_option),
    ("pages_have_no_errors", "", pages_have_no_errors),
];

fn coax(work: &WorkDirectory, words: &[&str]) -> Result<String, Failed> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let outcome = process::run_coax(&words, &work.path, &[])?;
    let said = String::from_utf8_lossy(&outcome.stdout).into_owned();
    if outcome.exit == 0 { Ok(said) } else { Err(format!("{words:?} exits {}", outcome.exit).into()) }
}

/// Bash defines the function and offers what begins as asked.
fn bash_reads_its_completions() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("coax.bash"), coax(&work, &["completions", "bash"])?)?;
    let ask = "source ./coax.bash; COMP_WORDS=(coax base) COMP_CWORD=1; _coax coax base coax; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["--norc", "-c", ask]).current_dir(&work.path).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match said.trim() == "baseline" {
        true => Ok(()),
        false => Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn pages_name_every_option() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["man", "--into", "man1"])?;
    let page = fs::read_to_string(work.path.join("man1/coax-diff.1"))?;
    for option in ["format", "json", "top", "match"] {
        if !page.contains(&format!("\\-\\-{option}")) {
            return Err(format!("coax-diff.1 has no --{option}:\n{page}").into());
        }
    }
    let check = work.path.join("man1/coax-baseline-check.1").is_file();
    if check { Ok(()) } else { Err("there is no page coax-baseline-check.1".into()) }
}

/// groff warns of what it does not understand; where it is not installed, nothing is said.
fn pages_have_no_errors() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["man", "--into", "man1"])?;
    for entry in fs::read_dir(work.path.join("man1"))?.flatten() {
        let mut groff = Command::new("groff");
        let Ok(output) = groff.args(["-man", "-Tutf8", "-wall"]).arg(entry.path()).output() else { return Ok(()) };
        let said = String::from_utf8_lossy(&output.stderr);
        if !said.trim().is_empty() || output.stdout.len() < 200 {
            return Err(format!("{}: {said}", entry.path().display()).into());
        }
    }
    Ok(())
}
