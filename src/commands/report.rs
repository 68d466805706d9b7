//! What `summarize` and `diff` say and in which order; the verdict is always the last line of stdout and agrees with
//! the exit code, whatever happens before.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;

use resources::Verdict;
use resources::collect::InputError;
use serde_json::Value;

use crate::output;

/// Everything that one run says.
pub struct Report {
    /// Stdout above the verdict.
    pub table: String,
    /// The same under `-q`.
    pub quiet_table: String,
    /// Notes of the table; under `-q` they go to stderr.
    pub notes: Vec<String>,
    /// What makes the answer untrustworthy.
    pub errors: Vec<String>,
    /// What changes no verdict.
    pub warnings: Vec<String>,
    /// File and content of `--json`.
    pub json: Option<(PathBuf, Value)>,
    /// `-q`.
    pub quiet: bool,
    /// The conclusion.
    pub verdict: Verdict,
}

impl Report {
    /// An input that gave nothing to report on.
    pub fn failed(error: &InputError) -> Report {
        Report::error(error.messages.clone())
    }

    /// Only errors, and NOT TRUSTWORTHY.
    pub fn error(errors: Vec<String>) -> Report {
        Report {
            table: String::new(),
            quiet_table: String::new(),
            notes: Vec::new(),
            errors,
            warnings: Vec::new(),
            json: None,
            quiet: true,
            verdict: Verdict::NotTrustworthy,
        }
    }

    /// Says it all. The verdict turns to NOT TRUSTWORTHY when the answer cannot be delivered.
    fn deliver(self) -> Verdict {
        let mut verdict = self.verdict;
        output::list("warning", &self.warnings);
        if self.quiet {
            self.notes.iter().for_each(|note| output::stderr(&format!("note: {note}")));
        }
        output::list("error", &self.errors);
        if let Some((path, value)) = &self.json
            && let Err(why) = output::write_file(path, format!("{value:#}\n").as_bytes())
        {
            output::stderr(&format!("error: {why}"));
            verdict = Verdict::NotTrustworthy;
        }
        let table = if self.quiet { &self.quiet_table } else { &self.table };
        if let Err(error) = output::stdout(table) {
            output::stderr(&format!("error: stdout: {error}"));
            verdict = Verdict::NotTrustworthy;
        }
        verdict
    }
}

/// Makes the report, delivers it and ends with the verdict. A panic is told as what it is and ends with 2 as well.
pub fn guarded(make: impl FnOnce() -> Report) -> ExitCode {
    let verdict = catch_unwind(AssertUnwindSafe(|| make().deliver())).unwrap_or_else(|_| {
        output::stderr("error: internal error (above); please report it with the input that caused it");
        Verdict::NotTrustworthy
    });
    if output::stdout(&format!("{}\n", verdict.line())).is_err() {
        return ExitCode::from(Verdict::NotTrustworthy.exit_code());
    }
    ExitCode::from(verdict.exit_code())
}
