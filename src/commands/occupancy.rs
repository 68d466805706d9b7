//! `coax occupancy`: how many waves a kernel leaves room for, what limits them, and how far the next step is.

mod figures;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use resources::Record;
use resources::binary::Instructions;
use resources::collect::{self, Options};
use resources::occupancy::{self, Occupancy, Settings};
use resources::policy::Pattern;
use resources::record::DYNAMIC_LDS_NOTE;
use serde_json::{Value, json};

use super::report::{self, Output};
use crate::output;
use crate::progress::Progress;

/// Show how many waves fit, what limits them, and how far the next step is
///
/// Of the kernels in INPUT (anything that `summarize` reads), or of figures: --target and what the kernel takes. The
/// model is LLVM 22's; it is a bound by resources, no measurement. A kernel that may be launched with work-groups of
/// several sizes has LLVM's best case, and below it the figures for one wave and for the largest. Exit code: 0, or 2 when
/// something is not known.
#[derive(clap::Args)]
#[command(
    override_usage = "coax occupancy [OPTIONS] INPUT\n       coax occupancy [OPTIONS] --target TARGET --vgpr N ..."
)]
#[command(after_long_help = "Examples:
  $ coax occupancy --target gfx942 --vgpr 132 --agpr 128 --lds 65536 --workgroup 256
  $ coax occupancy --target gfx1100 --vgpr 97 --workgroup 128 --wave 64 --cu-mode
  $ coax occupancy kernel.co --kernel static_lds
  $ coax occupancy before --workgroup-size 256 --json occupancy.json")]
pub struct Opts {
    /// What to read
    #[arg(required_unless_present = "target", conflicts_with = "target")]
    input: Option<PathBuf>,
    /// Only these kernels: * is any text, ? any character; fits the whole key or the kernel name
    #[arg(long, value_name = "PATTERN", conflicts_with = "target", value_parser = Pattern::parse)]
    kernel: Option<Pattern>,
    #[command(flatten)]
    figures: figures::Figures,
    #[command(flatten)]
    launch: Launch,
    /// Write the figures here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What is known of the launch; shared by the commands that show occupancy.
#[derive(clap::Args)]
pub struct Launch {
    /// Work-items of a work-group, for kernels that require no size [default: what the kernel allows]
    #[arg(long, visible_alias = "workgroup", value_name = "N")]
    workgroup_size: Option<u32>,
    /// LDS that the launch asks for beyond the static part
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    dynamic_lds: u32,
}

impl Launch {
    /// As the library takes it.
    pub fn settings(&self) -> Settings {
        Settings { workgroup_size: self.workgroup_size, dynamic_lds_bytes: self.dynamic_lds }
    }

    /// The options as they have to be given again.
    pub fn arguments(&self) -> Vec<String> {
        let size = self.workgroup_size.map(|size| ["--workgroup-size".to_owned(), size.to_string()]);
        let lds = (self.dynamic_lds > 0).then(|| ["--dynamic-lds".to_owned(), self.dynamic_lds.to_string()]);
        size.into_iter().chain(lds).flatten().collect()
    }
}

/// The version of the JSON form.
const SCHEMA: u32 = 1;

/// What is to be said.
#[derive(Default)]
struct Findings {
    kernels: BTreeMap<String, Result<Occupancy, String>>,
    notes: Vec<String>,
    warnings: Vec<String>,
    errors: Vec<String>,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let inputs: Vec<&PathBuf> = self.input.iter().collect();
        let outputs: Vec<_> = self.json.as_deref().map(Output::json).into_iter().collect();
        let findings = report::refuse_to_overwrite(&outputs, &inputs).map_err(|why| vec![why]);
        match findings.and_then(|()| self.find()) {
            Ok(findings) => self.say(findings),
            Err(errors) => {
                output::list("error", &errors);
                ExitCode::from(2)
            }
        }
    }

    fn find(&self) -> Result<Findings, Vec<String>> {
        let settings = self.launch.settings();
        let Some(input) = &self.input else {
            let occupancy = self.figures.occupancy(settings).map_err(|why| vec![why])?;
            return Ok(Findings { kernels: BTreeMap::from([(String::new(), Ok(occupancy))]), ..Findings::default() });
        };
        let progress = Progress::new();
        // No instruction is looked at, so nothing is decoded.
        let options =
            Options { instructions: Instructions::NotWanted, progress: &|done, total| progress.at(done, total) };
        let snapshot = collect::snapshot(input, options).map_err(|error| error.messages)?;
        let wanted = |key: &str| self.kernel.as_ref().is_none_or(|pattern| pattern.fits(key));
        let kernels: BTreeMap<_, _> = snapshot
            .kernels
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(key, record)| (key.clone(), Occupancy::of(record, settings)))
            .collect();
        let asks_for_lds = |(key, record): (&String, &Record)| {
            let asks = kernels.contains_key(key) && record.notes.iter().any(|note| note == DYNAMIC_LDS_NOTE);
            asks.then(|| format!("{key}: dynamic LDS in use"))
        };
        let mut notes = Vec::new();
        if settings.dynamic_lds_bytes == 0 {
            notes.extend(snapshot.kernels.iter().filter_map(asks_for_lds));
            notes.push("LDS is the static part; --dynamic-lds adds what a launch asks for".into());
        }
        if let (true, Some(pattern)) = (kernels.is_empty(), &self.kernel) {
            let like =
                snapshot.kernels.keys().next().map(|key| format!("; keys look like `{key}`")).unwrap_or_default();
            return Err(vec![format!(
                "{}: `{pattern}` fits no kernel{like}; `*{pattern}*` fits a part of one",
                input.display()
            )]);
        }
        let unknown =
            kernels.iter().filter_map(|(key, occupancy)| Some(format!("{key}: {}", occupancy.as_ref().err()?)));
        let mut errors = snapshot.all_problems();
        errors.extend(unknown);
        Ok(Findings { errors, warnings: snapshot.warnings, kernels, notes })
    }

    fn say(&self, findings: Findings) -> ExitCode {
        let mut exit = if findings.errors.is_empty() { 0 } else { 2 };
        output::list("warning", &findings.warnings);
        output::list("error", &findings.errors);
        if let Some(path) = &self.json
            && let Err(why) = write_json(path, &findings)
        {
            output::stderr(&format!("error: {why}"));
            exit = 2;
        }
        if let Err(error) = output::stdout(&text(&findings)) {
            output::stderr(&format!("error: stdout: {error}"));
            exit = 2;
        }
        ExitCode::from(exit)
    }
}

fn text(findings: &Findings) -> String {
    let mut text = String::new();
    for (key, occupancy) in &findings.kernels {
        let lines = match occupancy {
            Ok(occupancy) => occupancy::describe(occupancy),
            Err(why) => vec![format!("? waves per SIMD: {why}")],
        };
        let indent = if key.is_empty() { "" } else { "  " };
        if !key.is_empty() {
            text += &format!("{}\n", resources::printable(key));
        }
        lines.iter().for_each(|line| text += &format!("{indent}{}\n", resources::printable(line)));
    }
    findings.notes.iter().for_each(|note| text += &format!("note: {}\n", resources::printable(note)));
    text + &totals(findings)
}

/// `12 kernels: 10 at 8 waves, 2 at 4`; nothing where no input was read.
fn totals(findings: &Findings) -> String {
    if findings.kernels.contains_key("") {
        return String::new();
    }
    let mut counts: BTreeMap<std::cmp::Reverse<u32>, usize> = BTreeMap::new();
    for occupancy in findings.kernels.values().flatten() {
        *counts.entry(std::cmp::Reverse(occupancy.waves())).or_default() += 1;
    }
    let mut parts: Vec<String> = counts
        .iter()
        .map(|(waves, count)| format!("{count} at {} wave{}", waves.0, if waves.0 == 1 { "" } else { "s" }))
        .collect();
    let unknown = findings.kernels.values().filter(|occupancy| occupancy.is_err()).count();
    if unknown > 0 {
        parts.push(format!("{unknown} not known"));
    }
    let all = findings.kernels.len();
    format!("{all} kernel{}: {}\n", if all == 1 { "" } else { "s" }, parts.join(", "))
}

fn write_json(path: &Path, findings: &Findings) -> Result<(), String> {
    let kernels: BTreeMap<&str, Value> =
        findings.kernels.iter().map(|(key, occupancy)| (key.as_str(), occupancy::json(occupancy))).collect();
    let page = json!({
        "errors": findings.errors,
        "kernels": kernels,
        "notes": findings.notes,
        "schema": SCHEMA,
        "tool": "coax occupancy",
        "warnings": findings.warnings,
    });
    output::write_file(path, report::json(&page))
}
