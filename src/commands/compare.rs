//! `coax compare`: two kernels on the same inputs, judged by bits and by honest time.

mod against;
mod channel;
pub mod history;
mod images;
mod lds;
pub mod original;
pub mod owner;
mod process;
pub mod resolve;
mod running;
mod said;
mod tail;
pub mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use compare::report::{ImageSummary, Report, Verdict, text};
use compare::site::DeviceFacts;
use resources::printable;

use self::against::Expectation;
use self::history::Entry;
pub use self::images::{Images, read_image};
use self::owner::Ending;
pub use self::running::Running;
use self::running::above_zero;
use self::said::{End, ended};
use self::worker::{Failed, SiteSource};
use super::report::{Output, refuse_to_overwrite};

/// Compare two kernels on a GPU: the same inputs, the same bits, honest times
///
/// REF is right by definition, TEST is judged. Both are code objects (or paths into containers), cubins or PTX. The site says
/// how the kernel is launched: a file (`coax site new REF` writes a first one), or the name of a built-in site.
///
/// The kernels run in several rounds with other inputs, fresh buffers, guard zones and poison; then, with --benchmark, in
/// random order with a second copy of the reference, whose times against itself say what no difference looks like. The
/// device work happens in a child process; a launch that does not come back is HUNG.
///
/// The last line of stdout is the verdict: RESULT: BIT-IDENTICAL or PASS (exit 0); FAIL, NONDETERMINISTIC, HUNG, or, of a
/// kernel that is right, SPEED NOT AS REQUIRED (1); NOT ESTABLISHED (2); NOT AVAILABLE (3).
///
/// `coax site check SITE REF TEST` says without a GPU whether a launch can be made of them.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:
  $ coax compare ref.mock test.mock --site site.toml --device mock
  $ coax compare ref.mock wrong.mock --site site.toml --device mock           # exit 1
  $ coax compare ref.mock test.mock --site site.toml --device mock --benchmark --warmup 2 --iters 60 --require-speed --json report.json
  coax compare ref.co edit.co --site gate_up_fwd --benchmark
  coax compare ref.cubin test.cubin --site gemm.toml --device cuda:0 --require cos=0.999,norm=1e-3")]
pub struct Opts {
    /// The one that is right by definition
    #[arg(value_name = "REF")]
    reference: PathBuf,
    /// The one that is judged
    test: PathBuf,
    /// How it is launched: a site file, or a built-in site
    #[arg(long, value_name = "FILE|NAME")]
    site: PathBuf,
    /// What outputs must fulfil, beside what the site says: bits, or cos=, norm=, max_abs=, max_rel=, ulp= with commas [default:
    /// what the site says, else bits]
    #[arg(long, value_name = "REQUIREMENT")]
    require: Option<String>,
    /// Accept that the kernels declare different LDS, scratch, work-group sizes or arguments
    #[arg(long)]
    allow_metadata: bool,
    /// Fail unless the test is FASTER, and by this factor at least when one is given: --require-speed=1.02
    #[arg(
        long,
        value_name = "FACTOR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1.0",
        requires = "benchmark",
        value_parser = above_zero
    )]
    require_speed: Option<f64>,
    /// Hold the speed-up against a published one: 1.024±0.003 (or 1.024+-0.003, 1.024+/-0.003)
    #[arg(long, value_name = "X±Y", requires = "benchmark", value_parser = Expectation::parse)]
    expect: Option<Expectation>,
    /// Fail when the test is slower than in this history's last run of the same kernel, device and site content that ended
    /// with exit 0 and was timed with the same --cache
    #[arg(long, value_name = "HISTORY", requires = "benchmark")]
    against: Option<PathBuf>,
    /// Append the run to this history, whatever its verdict is
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// A note for the history
    #[arg(long, requires = "history")]
    note: Option<String>,
    #[command(flatten)]
    running: Running,
    /// Write the report with every sample here
    #[arg(long, value_name = "REPORT")]
    json: Option<PathBuf>,
    /// Only the verdict, what is wrong, and what weakens it
    #[arg(short, long)]
    quiet: bool,
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        // Nothing is written, not even the error, over a file that was not meant.
        if let Err(why) = self.refuse_outputs().and_then(|()| self.json.as_deref().map_or(Ok(()), said::begin)) {
            return End::bad_input(vec![why]).deliver(None, self.quiet);
        }
        let end = self.compare().unwrap_or_else(End::bad_input);
        end.deliver(self.json.as_deref(), self.quiet)
    }

    /// No output may be an input or the other output. A history may be held against and appended to.
    fn refuse_outputs(&self) -> Result<(), String> {
        let images = [file_of(&self.reference), file_of(&self.test)];
        let inputs = [&images[0], &images[1], &self.site];
        let json: Vec<Output<'_>> = self.json.iter().map(|path| Output::json(path)).collect();
        let histories = self.history.iter().chain(&self.against);
        refuse_to_overwrite(&json, &inputs.into_iter().chain(histories).collect::<Vec<_>>())?;
        let history: Vec<Output<'_>> =
            self.history.iter().map(|path| Output { flag: "--history", path, extensions: &[] }).collect();
        // A history is never replaced.
        refuse_to_overwrite(&history, &inputs).map_err(|why| why.replace("would replace it", "would append to it"))?;
        // Neither need be there yet.
        match (&self.json, &self.history) {
            (Some(json), Some(history)) if place(json) == place(history) => {
                Err(format!("{}: is named for --json and --history. Give each another file", json.display()))
            }
            _ => Ok(()),
        }
    }

    fn compare(&self) -> Result<End, Vec<String>> {
        let one = |why: String| vec![why];
        if let Some(path) = &self.history {
            history::prepare(path).map_err(one)?;
        }
        let stored = self.against.as_deref().map(history::read).transpose().map_err(one)?;
        if let Some(stored) = stored.as_ref().filter(|stored| !stored.damaged.is_empty()) {
            return Err(stored.damaged.clone());
        }
        let site = SiteSource::named(&self.site);
        let images = Images::read([&self.reference, &self.test]).map_err(one)?;
        let ending = self.running.run(&images, site.clone(), self.require.as_deref(), self.allow_metadata, &mut |_| ());
        let ending = ending.map_err(|error| one(format!("the device's process: {error}")))?;
        let has_run =
            !matches!(ending, Ending::Failed(Failed::BadInput(_) | Failed::NoKernel(_) | Failed::NotAvailable(_)));
        let (mut end, entry) = match ended(ending) {
            Ok(report) => {
                let mut end = End::of(&report, text::render(&report, printable));
                self.judge_speed(&report, stored.as_ref().map(|stored| &stored.entries[..]), &mut end);
                let entry = Entry::of(&report, end.exit, self.note.clone());
                end.report = Some(report);
                (end, Some(entry))
            }
            Err(end) => {
                let entry = has_run.then(|| self.entry_without_report(&end, &images, &site));
                (*end, entry)
            }
        };
        if let (Some(path), Some(entry)) = (&self.history, entry) {
            match history::append(path, &entry) {
                Ok(warning) => end.warnings.extend(warning),
                Err(why) => end.fail(why),
            }
        }
        Ok(end)
    }

    /// A run that hung or died belongs into the record; what only a report knows is as the user named it.
    fn entry_without_report(&self, end: &End, images: &Images, site: &SiteSource) -> Entry {
        let known = site.site(DeviceFacts { compute_units: 1, wave_size: 64 }).ok();
        let [reference, test] = images.0.each_ref().map(|image| ImageSummary::of(&image.name, &image.bytes));
        Entry {
            time: history::now(),
            kernel: known.as_ref().and_then(|site| site.kernels.first().cloned()).unwrap_or_default(),
            site: known.map(|site| site.name).unwrap_or_default(),
            site_sha256: None,
            device: self.running.device.clone().unwrap_or_default(),
            target: String::new(),
            reference,
            test,
            verdict: if end.exit == 1 { Verdict::Hung } else { Verdict::NotEstablished },
            exit_code: Some(end.exit),
            error: end.errors.first().cloned(),
            speed: None,
            cache: None,
            note: self.note.clone(),
        }
    }

    /// Speed decides only when the user says so, and never over a verdict that is not a yes.
    fn judge_speed(&self, report: &Report, stored: Option<&[Entry]>, end: &mut End) {
        let speed = report.timing.as_ref().and_then(|timing| timing.speed);
        if let Some(factor) = self.require_speed {
            end.require(
                "--require-speed",
                speed.map(|speed| {
                    let is_faster = speed.verdict == compare::timing::SpeedVerdict::Faster;
                    let said = format!(
                        "speed-up {:.4} [{:.4}, {:.4}] is {}; required: FASTER, {factor} at least",
                        speed.speedup.value,
                        speed.speedup.low,
                        speed.speedup.high,
                        speed.verdict.name()
                    );
                    (Some(is_faster && speed.speedup.low >= factor), said)
                }),
            );
        }
        if let Some(expected) = &self.expect {
            end.require("--expect", speed.map(|speed| expected.check(&speed.speedup)));
        }
        if let Some(stored) = stored {
            end.require("--against", Some(against::check(stored, report)));
        }
    }
}

/// The file that a path into a container leads into.
fn file_of(path: &Path) -> PathBuf {
    match path.exists() {
        true => path.to_owned(),
        false => codeobj::container::split_path(&path.display().to_string()).0.into(),
    }
}

/// Where a file is or would be, without links.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let there = path.canonicalize().or_else(|_| Ok(folder.canonicalize()?.join(path.file_name().unwrap_or_default())));
    there.unwrap_or_else(|_: std::io::Error| path.to_owned())
}
