//! How a comparison ends on stdout: the page, and the verdict that agrees with the exit code.

use std::path::Path;
use std::process::ExitCode;

use compare::report::page::collapsed;
use compare::report::{Report, Verdict};

use super::against::Outcome;
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
    /// On stderr, and of no weight.
    pub warnings: Vec<String>,
    /// Behind `RESULT: `.
    pub verdict: String,
    /// 0 to 3.
    pub exit: u8,
    /// What was required of speed, and what came of it.
    pub speed_requirements: Vec<SpeedRequirement>,
    /// For `--json`; none when nothing was compared.
    pub report: Option<Box<Report>>,
}

/// One thing that was required of speed.
#[derive(serde::Serialize)]
pub struct SpeedRequirement {
    /// The flag that asked for it.
    flag: &'static str,
    /// Whether it is fulfilled; null when that is not known.
    met: Option<bool>,
    /// In words.
    said: String,
}

impl End {
    /// Of a report.
    pub fn of(report: &Report, page: String) -> End {
        End { page, ..End::without(report.verdict.name(), report.verdict.exit_code(), Vec::new()) }
    }

    /// Without a report.
    pub fn without(verdict: &str, exit: u8, errors: Vec<String>) -> End {
        End {
            page: String::new(),
            errors,
            warnings: Vec::new(),
            verdict: verdict.into(),
            exit,
            speed_requirements: Vec::new(),
            report: None,
        }
    }

    /// Inputs that give nothing to compare.
    pub fn bad_input(errors: Vec<String>) -> End {
        End::without(Verdict::NotEstablished.name(), 2, errors)
    }

    /// One more thing that must hold for exit 0; none when there is no statement about speed.
    pub fn require(&mut self, flag: &'static str, outcome: Option<Outcome>) {
        let (met, said) = outcome.unwrap_or_else(|| (None, "there is no statement about speed".into()));
        let (exit, verdict, word) = match met {
            Some(true) => (0, "", "met"),
            Some(false) => (1, "SPEED NOT AS REQUIRED", "NOT met"),
            None => (2, Verdict::NotEstablished.name(), "not known"),
        };
        self.page.push_str(&format!("{flag}: {word}: {said}\n"));
        if exit > 0 {
            self.errors.push(format!("{flag}: {said}"));
        }
        if exit > 0 && self.exit == 0 {
            (self.exit, self.verdict) = (exit, verdict.to_owned());
        }
        self.speed_requirements.push(SpeedRequirement { flag, met, said });
    }

    /// The answer is there, and something that was asked for with it is not.
    pub fn fail(&mut self, error: String) {
        self.errors.push(error);
        (self.exit, self.verdict) = (2, Verdict::NotEstablished.name().into());
    }

    /// Says it all.
    pub fn deliver(mut self, json: Option<&Path>, quiet: bool) -> ExitCode {
        if let Some(path) = json
            && let Err(why) = output::write_file(path, report::json(&self.document()))
        {
            self.fail(why);
        }
        output::list("warning", &self.warnings);
        output::list("error", &self.errors);
        let page = if quiet { String::new() } else { self.page };
        if quiet && let Some(compared) = &self.report {
            output::list("reason", &collapsed(&compared.reasons));
            // What weakens a verdict is part of it.
            output::list("note", &compared.notes);
        }
        match output::stdout(&format!("{page}RESULT: {}\n", self.verdict)) {
            Ok(()) => ExitCode::from(self.exit),
            Err(error) => {
                output::stderr(&format!("error: stdout: {error}"));
                ExitCode::from(2)
            }
        }
    }

    fn document(&self) -> Document<'_> {
        Document {
            schema: SCHEMA,
            tool: TOOL,
            verdict: format!("RESULT: {}", self.verdict),
            exit_code: self.exit,
            errors: &self.errors,
            speed_requirements: &self.speed_requirements,
            comparison: self.report.as_deref(),
        }
    }
}

/// The version of the JSON form.
const SCHEMA: u32 = 1;
const TOOL: &str = "coax compare";

/// The JSON form: how it ended, and what was compared, if anything was.
#[derive(serde::Serialize)]
struct Document<'e> {
    schema: u32,
    tool: &'e str,
    /// The last line, as in the other JSON forms. Speed may have decided it; `comparison` has the verdict about correctness.
    verdict: String,
    exit_code: u8,
    errors: &'e [String],
    speed_requirements: &'e [SpeedRequirement],
    comparison: Option<&'e Report>,
}

/// Puts a document that says nothing into the place of an older one, so that what a run leaves when it is interrupted is not
/// the answer of another; and finds a place that cannot be written before the work is done. Devices and pipes take one
/// document.
pub fn begin(path: &Path) -> Result<(), String> {
    if std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
        return Ok(());
    }
    let end = End::bad_input(vec!["the run has not ended".into()]);
    output::write_file(path, report::json(&end.document()))
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
