//! `coax summarize`: registers, spills, scratch and LDS of every kernel in one input.

use std::path::PathBuf;
use std::process::ExitCode;

use resources::occupancy::Settings;
use resources::snapshot::WithOccupancy;
use resources::{Snapshot, table};

use super::formats::Formats;
use super::inputs::Reading;
use super::occupancy::Launch;
use super::report::{self, Fill, Output, Report};
use super::view::View;

/// Show registers, spills, scratch and LDS of every kernel
///
/// INPUT is a dump tree, a code object (.co, .hsaco, .o), final assembly (.s, .amdgcn), an offload bundle, a fat binary,
/// an archive, a Triton cache, a directory of any of these, a path inside a container (`lib.so!hip_fatbin[0]!gfx942`), or
/// a JSON snapshot. The last line of stdout is the verdict and agrees with the exit code: 0 RESULT: OK,
/// 2 RESULT: NOT TRUSTWORTHY.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax summarize before
  $ coax summarize before --json baseline.json -q
  $ coax summarize before --format csv -o kernels.csv
  $ coax summarize before --sort vgpr --top 3
  $ coax summarize kernel.co                                # needs llvm
  $ coax summarize before --wide --workgroup-size 256
  $ coax summarize fatbin/multi_plain.hipfb --metadata-only")]
pub struct Opts {
    /// What to read; `-` for stdin
    #[arg(value_parser = super::edited::file())]
    input: PathBuf,
    /// Write the snapshot here; `diff` takes it for an input
    #[arg(long, value_name = "SNAPSHOT")]
    json: Option<PathBuf>,
    /// No table: only the verdict
    #[arg(short, long)]
    quiet: bool,
    /// One more column: waves per SIMD (see `coax occupancy`)
    #[arg(long)]
    wide: bool,
    #[command(flatten)]
    launch: Launch,
    #[command(flatten)]
    formats: Formats,
    #[command(flatten)]
    view: View,
    #[command(flatten)]
    reading: Reading,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let outputs: Vec<_> =
            self.json.as_deref().map(Output::json).into_iter().chain(self.formats.outputs()).collect();
        if let Err(why) = report::refuse_to_overwrite(&outputs, &[&self.input]) {
            return report::guarded(|| Report::error(vec![why]).deliver());
        }
        report::guarded(|| match self.reading.snapshot(&self.input) {
            Ok(snapshot) => {
                let findings = resources::Report::of_snapshot(&snapshot, self.launch.settings());
                self.report(&snapshot, &findings).deliver()
            }
            Err(error) => self.formats.failure("summarize", error.messages),
        })
    }

    fn report<'r>(&'r self, snapshot: &'r Snapshot, findings: &'r resources::Report) -> Report<'r> {
        let unknown = snapshot
            .kernels
            .iter()
            .flat_map(|(key, record)| record.unknowns().into_iter().map(move |unknown| format!("{key}: {unknown}")));
        let problems = snapshot.all_problems();
        let wide = self.wide.then(|| self.launch.settings());
        let shown = if self.quiet { String::new() } else { self.view.snapshot(snapshot, findings, wide) };
        let json = |settings: Option<Settings>| -> Fill<'r> {
            match settings {
                Some(settings) => Box::new(move |out| report::json(&WithOccupancy { snapshot, settings })(out)),
                None => report::json(snapshot),
            }
        };
        let mut files: Vec<_> = self.json.iter().map(|path| (path.clone(), json(wide))).collect();
        files.extend(self.formats.files(findings));
        let mut warnings = snapshot.warnings.clone();
        warnings.extend(snapshot.kernels.iter().filter(|(_, r)| r.isa_target().is_none()).map(|(key, _)| {
            format!("{key}: the target is not identified; a comparison with this kernel will be refused")
        }));
        Report {
            body: shown + &self.formats.on_stdout(findings) + &table::untrustworthy(problems.len()),
            notes: Vec::new(),
            errors: problems.into_iter().chain(unknown).collect(),
            warnings,
            files,
            quiet: self.quiet,
            verdict: snapshot.verdict(),
        }
    }
}
