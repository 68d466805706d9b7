//! `coax history`: the runs that `coax compare --history` kept.

use std::path::PathBuf;
use std::process::ExitCode;

use compare::report::ImageSummary;
use compare::report::page::wrapped;
use compare::timing::verdict::Ratio;
use resources::printable;
use serde::Serialize;

use super::compare::history::{self, Entry, Stored, utc};
use super::report::{self, Output};
use crate::output;

/// List the runs of a history
///
/// `coax compare --history FILE` appends to it; `coax compare --against FILE` holds a run against the last one of the same
/// kernel, device and launch that ended with a yes. Times are UTC. Lines that are no run are named on stderr, and the exit
/// code is 2.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax history runs.jsonl
  coax history runs.jsonl --kernel gemm --json gemm.json")]
pub struct Opts {
    /// The history
    history: PathBuf,
    /// Only runs of kernels whose name holds this
    #[arg(long, value_name = "TEXT")]
    kernel: Option<String>,
    /// Write the runs here, as one JSON document
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// The version of the JSON form.
const SCHEMA: u32 = 1;

/// The JSON form.
#[derive(Serialize)]
struct Document<'s> {
    schema: u32,
    tool: &'static str,
    runs: &'s [&'s Entry],
    damaged: &'s [String],
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let errors = match self.list() {
            Ok(stored) => stored.damaged,
            Err(why) => vec![why],
        };
        output::list("error", &errors);
        ExitCode::from(if errors.is_empty() { 0 } else { 2 })
    }

    fn list(&self) -> Result<Stored, String> {
        let json: Vec<Output<'_>> = self.json.iter().map(|path| Output::json(path)).collect();
        report::refuse_to_overwrite(&json, &[&self.history])?;
        let stored = history::read(&self.history)?;
        let wanted = |entry: &&Entry| self.kernel.as_ref().is_none_or(|text| entry.kernel.contains(text.as_str()));
        let entries: Vec<&Entry> = stored.entries.iter().filter(wanted).collect();
        if let Some(path) = &self.json {
            let (runs, damaged) = (&entries[..], &stored.damaged[..]);
            let document = Document { schema: SCHEMA, tool: "coax history", runs, damaged };
            output::write_file(path, report::json(&document))?;
        }
        output::stdout(&page(&entries)).map_err(|error| format!("stdout: {error}"))?;
        Ok(stored)
    }
}

/// Two lines for a run, or more where there is an error or a note.
fn page(entries: &[&Entry]) -> String {
    if entries.is_empty() {
        return "no runs\n".into();
    }
    let mut page = format!("{:<20} {:<16} {:<16} {:<16} speed-up\n", "when", "kernel", "test", "verdict");
    for entry in entries {
        page.push_str(&lines(entry));
    }
    page
}

fn lines(entry: &Entry) -> String {
    let speed = entry.speed.map_or_else(|| "not timed".to_owned(), |speed| format!("{:.4}", speed.speedup.value));
    let file = entry.test.name.rsplit('/').next().unwrap_or_default();
    let (kernel, test) = (cut(&printable(&entry.kernel)), cut(&printable(file)));
    let mut text = format!("{:<20} {kernel:<16} {test:<16} {:<16} {speed}\n", utc(entry.time), entry.verdict.name());
    let (reference, test) = (short(&entry.reference), short(&entry.test));
    let timed = entry.speed.map_or_else(String::new, |speed| {
        let Ratio { low, high, .. } = speed.speedup;
        format!(", [{low:.4}, {high:.4}] {}", speed.verdict.name())
    });
    let (device, site) = (printable(&entry.device), printable(&entry.site));
    text.push_str(&wrapped(&format!("  {device}, {site}, {reference} -> {test}{timed}")));
    // Only where it says more than the verdict.
    if let Some(exit) = entry.exit_code.filter(|exit| *exit != entry.verdict.exit_code()) {
        text.push_str(&format!("  the run ended with exit {exit}\n"));
    }
    for (what, said) in [("error", &entry.error), ("note", &entry.note)] {
        if let Some(said) = said {
            text.push_str(&wrapped(&format!("  {what}: {}", printable(said))));
        }
    }
    text
}

/// What fits a column.
fn cut(text: &str) -> String {
    const COLUMNS: usize = 16;
    match text.chars().count() > COLUMNS {
        true => text.chars().take(COLUMNS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn short(image: &ImageSummary) -> String {
    printable(&image.sha256.chars().take(12).collect::<String>()).into_owned()
}
