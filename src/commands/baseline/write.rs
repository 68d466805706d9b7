//! `coax baseline write`: pins what is there now, and says what that changes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;

use resources::baseline::{self, Accept};
use resources::occupancy::Settings;
use resources::pairing::{self, Rewrite};
use resources::{Diff, Policy, Snapshot, Verdict};

use super::{read, write_command};
use crate::commands::gate::Gate;
use crate::commands::inputs::Reading;
use crate::commands::occupancy::Launch;
use crate::commands::report::{self, Report};
use crate::output;

/// Write the baseline of an input, and say what changed against the file that was there
///
/// Refused when the input is not trustworthy: then nothing is written. The file is JSON that `diff` takes for a snapshot;
/// the same input gives the same bytes on every machine, one line for each figure. With --only, the kernels of the file
/// that no pattern matches stay as they are in it.
#[derive(clap::Args)]
pub struct Opts {
    /// The baseline
    file: PathBuf,
    /// What to read; anything that `summarize` reads
    input: PathBuf,
    /// Pair kernels of the file whose names differ by rewriting the keys of both sides; may be given several times
    #[arg(long = "match", value_name = "REGEX=REPLACEMENT", value_parser = Rewrite::parse)]
    rewrites: Vec<Rewrite>,
    /// No list of changes: only the verdict, and what is wrong
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    reading: Reading,
    #[command(flatten)]
    gate: Gate,
    #[command(flatten)]
    launch: Launch,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        report::guarded(|| self.write().unwrap_or_else(Report::error).deliver())
    }

    fn write(&self) -> Result<Report<'_>, Vec<String>> {
        let name = self.file.display();
        self.refuse_to_replace_the_input().map_err(|why| vec![why])?;
        let config = self.gate.config().map_err(|why| vec![why])?;
        let policy = self.gate.policy(&config);
        let old = self.old().map_err(|why| vec![why])?;
        let mut errors = Vec::new();
        let snapshot = match self.reading.snapshot(&self.input) {
            Ok(snapshot) => snapshot,
            Err(error) => return Err(self.refusal(error.messages)),
        };
        errors.extend(policy.unmatched_only([&snapshot, old.as_ref().unwrap_or(&snapshot)]));
        let warnings = snapshot.warnings.clone();
        let mut snapshot = baseline::pinned(snapshot);
        let all = snapshot.kernels.len();
        let kept = self.keep_what_is_not_covered(&mut snapshot, old.as_ref(), &policy);
        let left_out = all + kept - snapshot.kernels.len();
        errors.extend(what_is_wrong(&snapshot, &policy, self.launch.settings()));
        if !errors.is_empty() {
            return Err(self.refusal(errors));
        }
        output::write_file(&self.file, |out| baseline::write(&snapshot, out))
            .map_err(|why| vec![format!("{why}; {}", self.way_out("once it can be, run"))])?;

        let mut body = String::new();
        let mut notes = Vec::new();
        let count = snapshot.kernels.len();
        if !policy.only.is_empty() {
            notes.extend(policy.describe());
            notes.push(format!(
                "{left_out} of {all} kernels of the input left out, {kept} of the file kept as they were"
            ));
        }
        match &old {
            None => body.push_str(&format!("{name}: new, {}\n", kernels(count))),
            Some(old) => {
                // A review wants to see every figure that moved, also those that a rule accepts.
                let policy = Policy { fail_on: policy.fail_on.clone(), ..Policy::default() };
                let diff = Diff::new(old, &snapshot, &self.rewrites, &policy, self.launch.settings());
                if !self.rewrites.is_empty() {
                    notes.extend(pairing::pair(old, &snapshot, &self.rewrites).1.into_iter().map(|note| note.text));
                }
                body.push_str(&baseline::listing(&diff, Accept::default()));
                let counts = baseline::counts(&diff);
                body.push_str(&format!("{name}: {}, was {}: {counts}\n", kernels(count), old.kernels.len()));
            }
        }
        notes.iter().for_each(|note| body.push_str(&format!("note: {note}\n")));
        if self.quiet {
            body.clear();
        }
        let errors = Vec::new();
        Ok(Report { body, notes, errors, warnings, files: Vec::new(), quiet: self.quiet, verdict: Verdict::Ok })
    }

    /// Kernels that `--only` does not name stay as they are in the file: takes them out of the snapshot, puts those of the
    /// file in, and says how many these are. A renamed kernel goes by both of its names, as in the check.
    fn keep_what_is_not_covered(&self, snapshot: &mut Snapshot, old: Option<&Snapshot>, policy: &Policy) -> usize {
        if policy.only.is_empty() {
            return 0;
        }
        let nothing = Snapshot::default();
        let old = old.unwrap_or(&nothing);
        let (pairs, _) = pairing::pair(old, snapshot, &self.rewrites);
        let (covered, others): (Vec<_>, Vec<_>) = pairs.into_iter().partition(|pair| policy.covers(pair.names()));
        let covered: BTreeSet<String> = covered.iter().filter_map(|pair| pair.after).map(str::to_owned).collect();
        let others = others.iter().filter_map(|pair| pair.before);
        let kept: Vec<_> = others.filter_map(|key| old.kernels.get_key_value(key)).collect();
        snapshot.kernels.retain(|key, _| covered.contains(key));
        let count = kept.len();
        snapshot.kernels.extend(kept.into_iter().map(|(key, record)| (key.clone(), record.clone())));
        count
    }

    /// The baseline that is replaced. Any other file is left alone: a mistyped name must not cost a kernel.
    fn old(&self) -> Result<Option<Snapshot>, String> {
        if !self.file.exists() {
            return Ok(None);
        }
        let name = self.file.display();
        let way_out = format!("only a baseline is replaced: remove {name} or give another file. Nothing was written");
        read(&self.file, &way_out).map(Some)
    }

    fn refuse_to_replace_the_input(&self) -> Result<(), String> {
        let is_input = match (self.file.canonicalize(), self.input.canonicalize()) {
            (Ok(file), Ok(input)) => file == input,
            _ => false,
        };
        match is_input {
            true => Err(format!("{}: is the input; give another file for the baseline", self.file.display())),
            false => Ok(()),
        }
    }

    fn refusal(&self, mut errors: Vec<String>) -> Vec<String> {
        let old = if self.file.exists() { "; the old one is as it was" } else { "" };
        errors.push(format!(
            "{}: not written{old}: {}",
            self.file.display(),
            self.way_out("repair the input, then run")
        ));
        errors
    }

    fn way_out(&self, then: &str) -> String {
        let options = [self.reading.arguments(), self.gate.arguments(), self.launch.arguments()].concat();
        format!("{then} `{}`", write_command(&self.file, &self.input, &self.rewrites, &options))
    }
}

/// Why this must not become a baseline: what cannot be compared with itself would never be green.
fn what_is_wrong(snapshot: &Snapshot, policy: &Policy, settings: Settings) -> Vec<String> {
    let mut wrong = snapshot.all_problems();
    for (key, record) in &snapshot.kernels {
        wrong.extend(record.unknowns().into_iter().map(|unknown| format!("{key}: {unknown}")));
    }
    if wrong.is_empty() {
        let policy = Policy { fail_on: policy.fail_on.clone(), ..Policy::default() };
        wrong.extend(Diff::new(snapshot, snapshot, &[], &policy, settings).problems);
    }
    wrong
}

fn kernels(count: usize) -> String {
    format!("{count} {}", if count == 1 { "kernel" } else { "kernels" })
}
