//! `coax baseline check`: whether any kernel is worse than its baseline, and whether the baseline is still that of the
//! kernels.

use std::path::PathBuf;
use std::process::ExitCode;

use resources::baseline::{self, Accept, Check};
use resources::pairing::Rewrite;
use resources::{Diff, Verdict, table};

use super::{read, write_command};
use crate::commands::formats::Formats;
use crate::commands::gate::Gate;
use crate::commands::inputs::Reading;
use crate::commands::occupancy::Launch;
use crate::commands::report::{self, Output, Report};

/// Compare an input with its baseline
///
/// Each kernel is NEW (not in the baseline), WORSE (a figure that can fail rose), IMPROVED (one fell: pin it again), GONE
/// (only in the baseline), CHANGED (moved and fails nothing), BLOCKED (cannot be compared) or as it was. WORSE gives exit
/// code 1. NEW, GONE and IMPROVED give 2, unless they are accepted; IMPROVED beside WORSE gives 1. In messages, before is
/// the baseline and after is the input.
#[derive(clap::Args)]
pub struct Opts {
    /// The baseline
    file: PathBuf,
    /// What to read; anything that `summarize` reads
    input: PathBuf,
    /// Tolerate these kinds of difference: new, improved, gone; takes the place of [baseline] accept in coax.toml
    #[arg(long, value_name = "KINDS", value_parser = Accept::parse)]
    accept: Option<Accept>,
    /// Pair kernels whose names differ by rewriting the keys of both sides; may be given several times
    #[arg(long = "match", value_name = "REGEX=REPLACEMENT", value_parser = Rewrite::parse)]
    rewrites: Vec<Rewrite>,
    /// Write the comparison here
    #[arg(long, value_name = "REPORT")]
    json: Option<PathBuf>,
    /// No list of kernels: only the verdict, and what is wrong
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    launch: Launch,
    #[command(flatten)]
    formats: Formats,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    gate: Gate,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let outputs: Vec<_> =
            self.json.as_deref().map(Output::json).into_iter().chain(self.formats.outputs()).collect();
        report::guarded(|| match report::refuse_to_overwrite(&outputs, &[&self.file, &self.input]) {
            Ok(()) => self.check().unwrap_or_else(|errors| self.formats.failure("baseline check", errors)),
            Err(why) => Report::error(vec![why]).deliver(),
        })
    }

    fn check(&self) -> Result<Verdict, Vec<String>> {
        let one = |why: String| vec![why];
        let config = self.gate.config().map_err(one)?;
        let policy = self.gate.policy(&config);
        let options = [self.reading.arguments(), self.gate.arguments(), self.launch.arguments()].concat();
        let repin = write_command(&self.file, &self.input, &self.rewrites, &options);
        let way_out = match self.file.exists() {
            true => format!("restore the file from version control, or remove it and pin anew: `{repin}`"),
            false => format!("pin what is there now: `{repin}`"),
        };
        let (before, after) = rayon::join(|| read(&self.file, &way_out), || self.reading.snapshot(&self.input));
        let (before, after) = match (before, after) {
            (Ok(before), Ok(after)) => (before, after),
            (before, after) => {
                let input = after.err().map(|error| error.messages).unwrap_or_default();
                return Err(before.err().into_iter().chain(input).collect());
            }
        };
        let diff = Diff::new(&before, &after, &self.rewrites, &policy, self.launch.settings());
        let accept = self.accept.or(config.accept).unwrap_or_default();
        let check = Check::new(diff, accept, &repin);
        let verdict = check.verdict();
        let findings = resources::Report::of_check(&check);
        let mut files: Vec<_> = self.json.iter().map(|path| (path.clone(), report::json(&check))).collect();
        files.extend(self.formats.files(&findings));
        let mut warnings = check.diff.warnings.clone();
        let mut errors = check.problems.clone();
        // Beside a regression, that the baseline is stale as well decides nothing.
        let stale = if verdict == Verdict::Regression { &mut warnings } else { &mut errors };
        stale.extend_from_slice(&check.stale);
        let body = self.body(&check, &repin, &self.formats.on_stdout(&findings));
        let report = Report {
            body: body + &table::untrustworthy(errors.len()),
            notes: check.notes.clone(),
            errors,
            warnings,
            files,
            quiet: self.quiet,
            verdict,
        };
        Ok(report.deliver())
    }

    fn body(&self, check: &Check<'_>, repin: &str, annotations: &str) -> String {
        let mut body = String::new();
        if !self.quiet {
            body.push_str(&baseline::listing(&check.diff, check.accept));
            check.notes.iter().for_each(|note| body.push_str(&format!("note: {note}\n")));
            let (compared, all) = (check.diff.compared(), check.diff.rows.len());
            let counts = baseline::counts(&check.diff);
            body.push_str(&format!("checked {compared} of {all} kernels against {}: {counts}\n", self.file.display()));
            if check.count(baseline::Kind::Unchanged) < all {
                body.push_str(&format!("to pin what is there now: {repin}\n"));
            }
        }
        body + annotations
    }
}
