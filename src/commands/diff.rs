//! `coax diff`: which kernels need more registers, spills, scratch or LDS than before.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use resources::pairing::Rewrite;
use resources::{Diff, Verdict, table};

use super::capture::{self, Environment};
use super::formats::Formats;
use super::gate::Gate;
use super::inputs::Reading;
use super::occupancy::Launch;
use super::report::{self, Output, Report};
use super::view::View;

/// Compare the resources of every kernel, before and after a change
///
/// Each side is anything that `summarize` reads, mixed freely. The last line of stdout is the verdict and agrees with
/// the exit code: 0 RESULT: OK (everything comparable, no trigger rose), 1 RESULT: REGRESSION (a trigger, marked *, rose),
/// 2 RESULT: NOT TRUSTWORTHY (something is not known: fix the inputs and rerun).
///
/// With --before REV and a command, both sides are made here: the command runs in a git worktree of REV and in the
/// working tree, with the compilers' dump variables set (see `coax capture`).
#[derive(clap::Args)]
#[command(
    override_usage = "coax diff [OPTIONS] BEFORE AFTER\n       coax diff [OPTIONS] --before REV [--arch ARCH] -- COMMAND..."
)]
#[command(after_long_help = "Examples:
  $ coax diff before after                                                    # exit 2
  $ coax diff before after --match 'rmsnorm_fwd_kernel=rmsnorm_kernel' -q     # exit 1
  $ coax diff kernel.s kernel.s --json report.json
  $ coax diff cache-before cache-after --wide                                 # exit 1
  $ coax diff cache-before cache-after                                        # exit 1
  $ coax diff cache-before cache-after --format markdown -o comment.md -q     # exit 1
  $ coax diff cache-before cache-after --format github --format sarif -o coax.sarif -q     # exit 1
  $ coax diff cache-before cache-after --view list --top 10 --sort vgpr       # exit 1
  $ coax diff before after --only 'softmax*' --allow 'softmax*:vgpr=+128' --fail-on vgpr,scratch_bytes
  coax diff --before HEAD~1 --arch gfx950 -- python3 -m pytest tests/kernels/test_softmax.py -q")]
pub struct Opts {
    /// The side before the change
    #[arg(
        value_name = "BEFORE",
        required_unless_present = "revision",
        conflicts_with = "revision",
        requires = "after"
    )]
    before: Option<PathBuf>,
    /// The side after the change
    #[arg(value_name = "AFTER")]
    after: Option<PathBuf>,
    /// Make both sides: BEFORE is this git revision, AFTER is the working tree
    #[arg(long = "before", value_name = "REV", requires = "command")]
    revision: Option<String>,
    /// Compile for this target only; needs no GPU (with --before)
    #[arg(long, requires = "revision")]
    arch: Option<String>,
    /// Pair kernels whose names differ by rewriting the keys of both sides; may be given several times
    #[arg(long = "match", value_name = "REGEX=REPLACEMENT", value_parser = Rewrite::parse)]
    rewrites: Vec<Rewrite>,
    /// Write the comparison here
    #[arg(long, value_name = "REPORT")]
    json: Option<PathBuf>,
    /// No table: only the verdict, and what is wrong
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
    #[command(flatten)]
    gate: Gate,
    /// What makes the dumps (with --before)
    #[arg(last = true, conflicts_with_all = ["before", "after"])]
    command: Vec<OsString>,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        report::guarded(|| match (&self.before, &self.after, &self.revision) {
            (Some(before), Some(after), _) => match report::refuse_to_overwrite(&self.outputs(), &[before, after]) {
                Ok(()) => self.compare(before, after),
                Err(why) => Report::error(vec![why]).deliver(),
            },
            (_, _, revision) => {
                let revision = revision.as_deref().unwrap_or("HEAD"); // clap has seen to it that there is one
                let environment = Environment { arch: self.arch.clone() };
                let sides = report::refuse_to_overwrite(&self.outputs(), &[])
                    .and_then(|()| capture::both_sides(revision, &environment, &self.command));
                match sides {
                    Ok(sides) => self.compare(&sides.before(), &sides.after()),
                    Err(why) => Report::error(vec![why]).deliver(),
                }
            }
        })
    }

    fn outputs(&self) -> Vec<Output<'_>> {
        self.json.as_deref().map(Output::json).into_iter().chain(self.formats.outputs()).collect()
    }

    fn compare(&self, before: &Path, after: &Path) -> Verdict {
        let policy = match self.gate.config() {
            Ok(config) => self.gate.policy(&config),
            Err(why) => return self.formats.failure("diff", vec![why]),
        };
        let mut errors = Vec::new();
        let [before, after] = self.reading.snapshots([before, after]);
        let sides = [("before", before), ("after", after)].map(|(side, result)| {
            result.map_err(|e| errors.extend(e.messages.iter().map(|message| format!("{side}: {message}"))))
        });
        let [Ok(before), Ok(after)] = sides else {
            return self.formats.failure("diff", errors);
        };
        let diff = Diff::new(&before, &after, &self.rewrites, &policy, self.launch.settings());
        let findings = resources::Report::of_diff(&diff);
        let shown = if self.quiet { String::new() } else { self.view.diff(&diff, &findings, self.wide) };
        let mut files: Vec<_> = self.json.iter().map(|path| (path.clone(), report::json(&diff))).collect();
        files.extend(self.formats.files(&findings));
        let report = Report {
            body: shown + &self.formats.on_stdout(&findings) + &table::untrustworthy(diff.problems.len()),
            notes: diff.notes.clone(),
            errors: diff.problems.clone(),
            warnings: diff.warnings.clone(),
            files,
            quiet: self.quiet,
            verdict: diff.verdict(),
        };
        report.deliver()
    }
}
