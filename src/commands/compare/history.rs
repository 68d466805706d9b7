//! Runs kept as JSON Lines in a file of the project: only ever appended to, so that several people and agents can write it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compare::report::{ImageSummary, Report, Verdict};
use compare::timing::Speed;
use compare::timing::verdict::Ratio;
use serde::{Deserialize, Serialize};

use crate::commands::edited;
use crate::output;

/// List the runs of a history
///
/// `coax compare --history FILE` appends to it; `coax compare --against FILE` holds a run against the last one of the same test,
/// site and device.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  coax history runs.jsonl
  coax history runs.jsonl --kernel gemm")]
pub struct Opts {
    /// The history
    history: PathBuf,
    /// Only runs of kernels whose name holds this
    #[arg(long, value_name = "TEXT")]
    kernel: Option<String>,
}

/// One run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// When, seconds since 1970.
    pub time: u64,
    /// The kernel's name.
    pub kernel: String,
    /// The site's name.
    pub site: String,
    /// The device's name.
    pub device: String,
    /// The device's target.
    pub target: String,
    /// The one that is right by definition.
    pub reference: ImageSummary,
    /// The one that was judged.
    pub test: ImageSummary,
    /// The conclusion.
    pub verdict: Verdict,
    /// Speed, when it was timed.
    pub speed: Option<Speed>,
    /// What the user wants to remember.
    pub note: Option<String>,
}

impl Entry {
    /// Of a report.
    pub fn of(report: &Report, note: Option<String>) -> Entry {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Entry {
            time: now.map_or(0, |now| now.as_secs()),
            kernel: report.kernel.clone(),
            site: report.site.name.clone(),
            device: report.device.name.clone(),
            target: report.device.target.clone(),
            reference: report.reference.clone(),
            test: report.test.clone(),
            verdict: report.verdict,
            speed: report.timing.as_ref().and_then(|timing| timing.speed),
            note,
        }
    }
}

/// Appends a line, in one write, so that two runs that end at once do not mix.
pub fn append(path: &Path, entry: &Entry) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: the run cannot be kept: {error}", path.display());
    let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).create(true).open(path).map_err(failed)?;
    file.write_all(&line).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads a history; a line that is none is an error with its number.
pub fn read(path: &Path) -> Result<Vec<Entry>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let entry = serde_json::from_str(line);
            entry.map_err(|error| format!("{}:{}: this is no run: {error}", path.display(), number + 1))
        })
        .collect()
}

/// A published speed-up, with how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    value: f64,
    tolerance: f64,
}

impl Expectation {
    /// Reads `1.024±0.003`.
    pub fn parse(text: &str) -> Result<Expectation, String> {
        let wrong = || format!("`{text}`: expected a speed-up and how far it may be off, as 1.024±0.003");
        let (value, tolerance) = text.split_once('±').or_else(|| text.split_once("+-")).ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
        match (number(value), number(tolerance)) {
            (Some(value), Some(tolerance)) => Ok(Expectation { value, tolerance }),
            _ => Err(wrong()),
        }
    }

    /// Whether a measured speed-up is compatible with it.
    pub fn check(&self, speedup: &Ratio) -> (bool, String) {
        let (low, high) = (self.value - self.tolerance, self.value + self.tolerance);
        let said = format!(
            "speed-up {:.4} [{:.4}, {:.4}]; expected {} ± {}",
            speedup.value, speedup.low, speedup.high, self.value, self.tolerance
        );
        (speedup.low <= high && speedup.high >= low && (low..=high).contains(&speedup.value), said)
    }
}

/// Holds a time against the last run of the same test, site and device.
pub fn check(stored: &[Entry], report: &Report, test_ns: f64) -> (bool, String) {
    let same = |entry: &&Entry| {
        entry.kernel == report.kernel
            && entry.site == report.site.name
            && entry.device == report.device.name
            && entry.target == report.device.target
            && entry.speed.is_some()
    };
    let Some((entry, speed)) = stored.iter().rev().find(same).and_then(|entry| Some((entry, entry.speed?))) else {
        return (false, "the history has no timed run of this kernel, site and device".into());
    };
    // Runs at other times differ by what the clocks do; what the reference shows then and now says how much.
    let reference = report.timing.as_ref().and_then(|timing| timing.speed).map_or(test_ns, |speed| speed.reference_ns);
    let same_reference = entry.reference.sha256 == report.reference.sha256;
    let (now, then, what) = match same_reference {
        true => (reference / test_ns, speed.reference_ns / speed.test_ns, "speed-up"),
        false => (1.0 / test_ns, 1.0 / speed.test_ns, "rate (another reference)"),
    };
    let spread = (speed.speedup.high / speed.speedup.low - 1.0).max(0.001);
    let said = format!("{what} against the stored run: {:.4} (within {:.4} is no difference)", now / then, spread);
    (now / then >= 1.0 - spread, said)
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let entries = match read(&self.history) {
            Ok(entries) => entries,
            Err(why) => {
                output::list("error", &[why]);
                return ExitCode::from(2);
            }
        };
        let wanted = |entry: &&Entry| self.kernel.as_ref().is_none_or(|text| entry.kernel.contains(text.as_str()));
        let mut page = String::new();
        for entry in entries.iter().filter(wanted) {
            let speed = entry.speed.map_or_else(
                || "not timed".to_owned(),
                |speed| {
                    let Ratio { value, low, high } = speed.speedup;
                    format!("{value:.4}x [{low:.4}, {high:.4}] {}", speed.verdict.name())
                },
            );
            let note = entry.note.as_deref().map(|note| format!("  {note}")).unwrap_or_default();
            page.push_str(&format!(
                "{}  {}  {}  {} -> {}  {}  {speed}{note}\n",
                entry.time,
                entry.device,
                entry.site,
                short(&entry.reference),
                short(&entry.test),
                entry.verdict.name()
            ));
        }
        edited::finish(&page, 0).unwrap_or(ExitCode::from(2))
    }
}

fn short(image: &ImageSummary) -> String {
    image.sha256.chars().take(12).collect()
}
