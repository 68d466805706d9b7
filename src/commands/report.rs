//! What `summarize` and `diff` say and in which order; the verdict is always the last line of stdout and agrees with
//! the exit code, whatever happens before.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use resources::Verdict;
use resources::collect::InputError;
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
    /// File and writer of `--json`.
    pub json: Option<(&'r Path, Fill<'r>)>,
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

/// Refuses a `--json` that would replace an input, which a mistyped argument does easily.
pub fn refuse_to_overwrite(json: Option<&Path>, inputs: &[&PathBuf]) -> Result<(), String> {
    let Some(json) = json else { return Ok(()) };
    if json.as_os_str() == "-" {
        return Err("--json needs a file: stdout ends with the verdict".into());
    }
    let Ok(target) = json.canonicalize() else { return Ok(()) }; // not there yet: nothing to lose
    for input in inputs {
        let Ok(input) = input.canonicalize() else { continue };
        let is_read = target == input || (target.starts_with(&input) && json.extension().is_none_or(|e| e != "json"));
        if is_read {
            return Err(format!("{}: is an input; --json would replace it. Give another file", json.display()));
        }
    }
    Ok(())
}

impl Report<'_> {
    /// An input that gave nothing to report on.
    pub fn failed(error: &InputError) -> Self {
        Report::error(error.messages.clone())
    }

    /// Only errors, and NOT TRUSTWORTHY.
    pub fn error(errors: Vec<String>) -> Self {
        Report {
            body: String::new(),
            notes: Vec::new(),
            errors,
            warnings: Vec::new(),
            json: None,
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
        if let Some((path, fill)) = self.json
            && let Err(why) = output::write_file(path, fill)
        {
            output::stderr(&format!("error: {why}"));
            verdict = Verdict::NotTrustworthy;
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
