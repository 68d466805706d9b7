//! How a comparison ends on stdout: the page, and the verdict that agrees with the exit code.

use std::path::Path;
use std::process::ExitCode;

use compare::report::{Report, Verdict};

use super::owner::Ending;
use super::worker::Failed;
use crate::commands::report;
use crate::output;

/// The end of a run.
pub struct End {
    /// Stdout above the verdict.
    pub page: String,
    /// On stderr.
    pub errors: Vec<String>,
    /// Behind `RESULT: `.
    pub verdict: String,
    /// 0 to 3.
    pub exit: u8,
    /// For `--json`; none when nothing was compared.
    pub report: Option<Box<Report>>,
}

impl End {
    /// Of a report.
    pub fn of(report: &Report, page: String) -> End {
        let verdict = report.verdict;
        End { page, errors: Vec::new(), verdict: verdict.name().into(), exit: verdict.exit_code(), report: None }
    }

    /// Without a report.
    pub fn without(verdict: &str, exit: u8, errors: Vec<String>) -> End {
        End { page: String::new(), errors, verdict: verdict.into(), exit, report: None }
    }

    /// Inputs that give nothing to compare.
    pub fn bad_input(errors: Vec<String>) -> End {
        End::without(Verdict::NotEstablished.name(), 2, errors)
    }

    /// One more thing that must hold for exit 0: whether it does and how it is said; none when it is not known.
    pub fn require(&mut self, outcome: Option<(bool, String)>) {
        let (exit, verdict, said) = match outcome {
            Some((true, said)) => (0, "", said),
            Some((false, said)) => (1, "SPEED NOT AS REQUIRED", said),
            None => (2, "NOT ESTABLISHED", "there is no statement about speed".to_owned()),
        };
        match exit {
            0 => self.page.push_str(&format!("required speed: {said}\n")),
            _ => self.errors.push(said),
        }
        if self.exit == 0 && exit > 0 {
            (self.exit, self.verdict) = (exit, verdict.to_owned());
        }
    }

    /// Says it all.
    pub fn deliver(mut self, json: Option<&Path>, quiet: bool) -> ExitCode {
        if let Some(path) = json {
            let document = Document {
                schema: SCHEMA,
                tool: "coax compare",
                verdict: format!("RESULT: {}", self.verdict),
                exit_code: self.exit,
                errors: &self.errors,
                comparison: self.report.as_deref(),
            };
            if let Err(why) = output::write_file(path, report::json(&document)) {
                self.errors.push(why);
                (self.exit, self.verdict) = (2, Verdict::NotEstablished.name().into());
            }
        }
        output::list("error", &self.errors);
        let page = if quiet { String::new() } else { self.page };
        if quiet && let Some(compared) = &self.report {
            output::list("reason", &compared.reasons);
        }
        match output::stdout(&format!("{page}RESULT: {}\n", self.verdict)) {
            Ok(()) => ExitCode::from(self.exit),
            Err(_) => ExitCode::from(2),
        }
    }
}

/// The version of the JSON form.
const SCHEMA: u32 = 1;

/// The JSON form: how it ended, and what was compared, if anything was.
#[derive(serde::Serialize)]
struct Document<'e> {
    schema: u32,
    tool: &'e str,
    /// The last line, as in the other JSON forms. Speed may have decided it; `comparison` has the verdict about correctness.
    verdict: String,
    exit_code: u8,
    errors: &'e [String],
    comparison: Option<&'e Report>,
}

/// The report of a run, or the end that it came to without one.
pub fn ended(ending: Ending) -> Result<Box<Report>, Box<End>> {
    Err(Box::new(match ending {
        Ending::Report(report) => return Ok(report),
        Ending::Failed(Failed::BadInput(why)) => End::bad_input(why),
        Ending::Failed(Failed::NoKernel(why)) => End::bad_input(vec![why]),
        Ending::Failed(Failed::NotAvailable(why)) => End::without("NOT AVAILABLE", 3, vec![why]),
        Ending::Failed(Failed::NotEstablished(why)) => End::without(Verdict::NotEstablished.name(), 2, vec![why]),
        Ending::Hung(hang) => {
            let said = vec![hang.to_string()];
            // A reference that hangs says nothing about the test.
            match hang.is_the_test_s() {
                true => End::without(Verdict::Hung.name(), Verdict::Hung.exit_code(), said),
                false => End::without(Verdict::NotEstablished.name(), 2, said),
            }
        }
        Ending::Died { place, how } => {
            let said = format!("the process that runs the kernels died{place}: {how}");
            End::without(Verdict::NotEstablished.name(), 2, vec![said])
        }
    }))
}
