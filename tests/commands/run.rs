//! Runs coax and states what it must say.

use crate::data::data_directory;
use crate::process::{self, Outcome};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::process::{Command, Stdio};

/// What a run of coax left behind, as text.
pub struct Said {
    pub exit: i32,
    pub stdout: String,
    pub stderr: String,
}

/// The path of something in `tests/data`.
pub fn data(path: &str) -> String {
    data_directory().join(path).display().to_string()
}

/// Runs `coax` in `work`.
pub fn coax(work: &WorkDirectory, args: &[&str], env: &[(&str, &str)]) -> Result<Said, Failed> {
    let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
    let env: Vec<_> = env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(Said::from(process::run_coax(&args, &work.path, &env)?))
}

impl From<Outcome> for Said {
    fn from(outcome: Outcome) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { exit: outcome.exit, stdout: text(outcome.stdout), stderr: text(outcome.stderr) }
    }
}

impl Said {
    /// The exit code, with nothing that looks like a crash.
    pub fn exits(self, code: i32) -> Result<Said, Failed> {
        let crashed = ["panicked", "Broken pipe", "internal error"].iter().any(|sign| self.stderr.contains(sign));
        if self.exit != code || crashed {
            return Err(self.unlike(&format!("exit {code}")));
        }
        Ok(self)
    }

    /// The verdict is the last line of stdout and agrees with the exit code.
    pub fn verdict(self, verdict: &str) -> Result<Said, Failed> {
        let code = match verdict {
            "OK" => 0,
            "REGRESSION" => 1,
            _ => 2,
        };
        let said = self.exits(code)?;
        match said.stdout.lines().last() == Some(format!("RESULT: {verdict}").as_str()) {
            true => Ok(said),
            false => Err(said.unlike(&format!("RESULT: {verdict}"))),
        }
    }

    /// Stderr has these words.
    pub fn tells(self, words: &[&str]) -> Result<Said, Failed> {
        match words.iter().find(|word| !self.stderr.contains(**word)) {
            None => Ok(self),
            Some(word) => Err(self.unlike(&format!("`{word}` on stderr"))),
        }
    }

    fn unlike(&self, expected: &str) -> Failed {
        format!("expected {expected}; exit {}\nstdout:\n{}\nstderr:\n{}", self.exit, self.stdout, self.stderr).into()
    }
}

/// Why Python scripts cannot be run here.
pub fn no_python() -> Option<String> {
    let started = Command::new("python3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!started.is_ok_and(|status| status.success())).then(|| "no python3".to_owned())
}
