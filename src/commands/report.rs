//! What `summarize` and `diff` say and in which order; the verdict is always the last line of stdout and agrees with
//! the exit code, whatever happens before.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use resources::Verdict;
use serde::Serialize;

use crate::output;

/// Everything that one run says.
pub struct Report<'r> {
    /// Stdout above the verdict.
    pub body: String,
    /// Notes of the table; under `-q` they go to stderr.
    pub notes: Vec<String>,
    /// What makes the answer untrustworthy.
    pub errors: Vec<String>,
    /// What changes no verdict.
    pub warnings: Vec<String>,
    /// Files to write and what fills them: of `--json` and `--format`.
    pub files: Vec<(PathBuf, Fill<'r>)>,
    /// `-q`.
    pub quiet: bool,
    /// The conclusion.
    pub verdict: Verdict,
}

/// Writes a file's content.
pub type Fill<'r> = Box<dyn FnOnce(&mut dyn Write) -> io::Result<()> + 'r>;

/// A [`Fill`] that writes `value` as JSON.
pub fn json<'r>(value: &'r impl Serialize) -> Fill<'r> {
    Box::new(move |out| {
        serde_json::to_writer_pretty(&mut *out, value)?;
        out.write_all(b"\n")
    })
}

/// A file that an argument names for writing.
#[derive(Clone, Copy)]
pub struct Output<'r> {
    /// The argument, as messages name it.
    pub flag: &'static str,
    /// The file.
    pub path: &'r Path,
    /// How names of such files end. An older one may lie in an input directory and be replaced.
    pub extensions: &'static [&'static str],
}

impl<'r> Output<'r> {
    /// That of `--json`.
    pub fn json(path: &'r Path) -> Output<'r> {
        Output { flag: "--json", path, extensions: &["json"] }
    }
}

/// Refuses outputs that would replace an input, which a mistyped argument does easily, or each other.
pub fn refuse_to_overwrite(outputs: &[Output<'_>], inputs: &[&PathBuf]) -> Result<(), String> {
    for (at, Output { flag, path, extensions }) in outputs.iter().enumerate() {
        if path.as_os_str() == "-" {
            return Err(format!("{flag} needs a file: stdout ends with the verdict"));
        }
        if outputs[..at].iter().any(|other| other.path == *path) {
            return Err(format!("{}: is named for two outputs. Give each another file", path.display()));
        }
        let Ok(target) = path.canonicalize() else { continue }; // not there yet: nothing to lose
        let is_report = path.extension().is_some_and(|e| extensions.iter().any(|known| e == *known));
        for input in inputs {
            let Ok(input) = input.canonicalize() else { continue };
            if target == input || (target.starts_with(&input) && !is_report) {
                return Err(format!("{}: is an input; {flag} would replace it. Give another file", path.display()));
            }
        }
    }
    Ok(())
}

impl Report<'_> {
    /// Only errors, and NOT TRUSTWORTHY.
    pub fn error(errors: Vec<String>) -> Self {
        Report {
            body: String::new(),
            notes: Vec::new(),
            errors,
            warnings: Vec::new(),
            files: Vec::new(),
            quiet: true,
            verdict: Verdict::NotTrustworthy,
        }
    }

    /// Says it all. The verdict turns to NOT TRUSTWORTHY when the answer cannot be delivered.
    pub fn deliver(self) -> Verdict {
        let mut verdict = self.verdict;
        output::list("warning", &self.warnings);
        if self.quiet {
            self.notes.iter().for_each(|note| output::stderr(&format!("note: {note}")));
        }
        output::list("error", &self.errors);
        for (path, fill) in self.files {
            if let Err(why) = output::write_file(&path, fill) {
                output::stderr(&format!("error: {why}"));
                verdict = Verdict::NotTrustworthy;
            }
        }
        if let Err(error) = output::stdout(&self.body) {
            output::stderr(&format!("error: stdout: {error}"));
            verdict = Verdict::NotTrustworthy;
        }
        verdict
    }
}

/// Runs the command and ends with its verdict. A panic is told as what it is and ends with 2 as well.
pub fn guarded(run: impl FnOnce() -> Verdict) -> ExitCode {
    let verdict = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        output::stderr("error: internal error (above); please report it with the input that caused it");
        Verdict::NotTrustworthy
    });
    if output::stdout(&format!("{}\n", verdict.line())).is_err() {
        return ExitCode::from(Verdict::NotTrustworthy.exit_code());
    }
    ExitCode::from(verdict.exit_code())
}
