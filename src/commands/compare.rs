//! `coax compare`: two kernels on the same inputs, judged by bits and by honest time.

mod channel;
pub mod history;
mod lds;
pub mod original;
pub mod owner;
mod process;
mod said;
mod tail;
pub mod worker;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use compare::report::{Report, text};
use compare::site::builtin::Builtin;
use compare::timing::CacheMode;

use self::history::{Entry, Expectation};
use self::owner::Ending;
use self::said::{End, ended};
use self::worker::{Comparison, Job, SiteSource, Task, TimingOptions};
use super::edited;
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
/// The last line of stdout is the verdict: RESULT: BIT-IDENTICAL or PASS (exit 0), FAIL, NONDETERMINISTIC, HUNG (1),
/// NOT ESTABLISHED (2), NOT AVAILABLE (3).
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
    /// Fail unless the test is FASTER, and by this factor at least when one is given
    #[arg(long, value_name = "FACTOR", num_args = 0..=1, default_missing_value = "1.0", requires = "benchmark")]
    require_speed: Option<f64>,
    /// Hold the speed-up against a published one: 1.024±0.003 (or 1.024+-0.003)
    #[arg(long, value_name = "X±Y", requires = "benchmark", value_parser = Expectation::parse)]
    expect: Option<Expectation>,
    /// Hold the time against the last run of the same test, site and device in this history
    #[arg(long, value_name = "HISTORY", requires = "benchmark")]
    against: Option<PathBuf>,
    /// Append the run to this history
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
    /// Only the verdict, and what is wrong
    #[arg(short, long)]
    quiet: bool,
}

/// How kernels are run; shared with `co_compare`.
#[derive(clap::Args)]
pub struct Running {
    /// Time both, too
    #[arg(long)]
    benchmark: bool,
    /// Launches before anything is timed, at least
    #[arg(long, default_value_t = 50, value_name = "N")]
    warmup: u32,
    /// How often reference, its copy and test are timed
    #[arg(long, default_value_t = 200, value_name = "N")]
    iters: u32,
    /// Blocks of samples, each with modules and buffers of its own
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    blocks: u32,
    /// Of the intervals
    #[arg(long, default_value_t = 0.99, value_name = "SHARE", value_parser = confidence)]
    confidence: f64,
    /// Whether the caches hold a kernel's data when it starts
    #[arg(long, default_value = "cold", value_parser = ["cold", "hot"])]
    cache: String,
    /// The longest that timing may take, seconds
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    budget: f64,
    /// The device's peak for this kernel's type, TFLOPS: a rate above it is an error or a cheat
    #[arg(long, value_name = "TFLOPS")]
    peak_tflops: Option<f64>,
    /// hip:N or cuda:N [default: the first that there is]
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Of the inputs
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// A launch that takes longer hangs, seconds
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = seconds)]
    launch_timeout: f64,
    /// How long to wait for a device that another run holds, seconds
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", value_parser = seconds)]
    wait: f64,
}

/// A number of seconds that a duration can hold.
fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1e6).contains(&value) { Ok(value) } else { Err(format!("{value} is not between 0 and 1000000")) }
}

fn confidence(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.5..1.0).contains(&value) { Ok(value) } else { Err(format!("{value} is not between 0.5 and 1")) }
}

impl Running {
    /// Runs both images on a site.
    fn run(
        &self,
        images: &Images,
        site: SiteSource,
        requirement: Option<&str>,
        allow_metadata: bool,
    ) -> std::io::Result<Ending> {
        let timing = self.benchmark.then_some(TimingOptions {
            warmup: self.warmup,
            iterations: self.iters,
            blocks: self.blocks,
            confidence: self.confidence,
            cache: if self.cache == "hot" { CacheMode::Hot } else { CacheMode::Cold },
            budget: Duration::from_secs_f64(self.budget),
        });
        let [reference, test] = &images.bytes;
        let (filler, no_lds_filler) = match lds::filler(self.device.as_deref(), reference) {
            Ok(image) => (image, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let job = Job {
            device: self.device.clone(),
            wait: Duration::from_secs_f64(self.wait),
            task: Task::Compare(Box::new(Comparison {
                reference: images.names[0].clone(),
                test: images.names[1].clone(),
                site,
                requirement: requirement.map(str::to_owned),
                seed: self.seed,
                allow_metadata,
                timing,
                peak_flops: self.peak_tflops.map(|tflops| tflops * 1e12),
                no_lds_filler,
            })),
        };
        owner::run(&job, &[reference, test, &filler], Duration::from_secs_f64(self.launch_timeout))
    }
}

/// Both images, read here so that paths into containers work.
pub struct Images {
    names: [String; 2],
    bytes: [Vec<u8>; 2],
}

impl Images {
    /// Reads them; what is no container is taken as it is, for a driver to judge.
    pub fn read(paths: [&Path; 2]) -> Result<Images, String> {
        let read = |path: &Path| -> Result<Vec<u8>, String> {
            match std::fs::read(path) {
                Ok(bytes) if codeobj::container::sniff(&bytes).is_none() || is_foreign_elf(&bytes) => Ok(bytes),
                _ => edited::Input::read(path).map(|input| input.bytes).map_err(|error| {
                    error.messages.iter().map(|message| message.text.clone()).collect::<Vec<_>>().join("; ")
                }),
            }
        };
        Ok(Images { names: paths.map(|path| path.display().to_string()), bytes: [read(paths[0])?, read(paths[1])?] })
    }
}

/// A cubin: an ELF file for EM_CUDA (190).
fn is_foreign_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(18..20) == Some(&190u16.to_le_bytes())
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        let end = self.compare().unwrap_or_else(End::bad_input);
        end.deliver(self.json.as_deref(), self.quiet)
    }

    fn compare(&self) -> Result<End, Vec<String>> {
        let one = |why: String| vec![why];
        let json: Vec<Output<'_>> = self.json.iter().map(|path| Output::json(path)).collect();
        refuse_to_overwrite(&json, &[&self.reference, &self.test, &self.site]).map_err(one)?;
        let site = match self.site.to_str().and_then(Builtin::find) {
            Some(builtin) if !self.site.exists() => SiteSource::Builtin(builtin.name.to_owned()),
            _ => SiteSource::File(self.site.clone()),
        };
        let images = Images::read([&self.reference, &self.test]).map_err(one)?;
        let stored = self.against.as_deref().map(history::read).transpose().map_err(one)?;
        let ending = self.running.run(&images, site, self.require.as_deref(), self.allow_metadata);
        let report = match ended(ending.map_err(|error| one(format!("the device's process: {error}")))?) {
            Ok(report) => report,
            Err(end) => return Ok(*end),
        };
        let mut end = End::of(&report, text::render(&report));
        self.judge_speed(&report, stored.as_deref(), &mut end);
        if let Some(path) = &self.history {
            let entry = Entry::of(&report, self.note.clone());
            history::append(path, &entry).map_err(one)?;
        }
        end.report = Some(report);
        Ok(end)
    }

    /// Speed decides only when the user says so, and never over a verdict that is not a yes.
    fn judge_speed(&self, report: &Report, stored: Option<&[Entry]>, end: &mut End) {
        let speed = report.timing.as_ref().and_then(|timing| timing.speed);
        if let Some(factor) = self.require_speed {
            end.require(speed.map(|speed| {
                let is_faster = speed.verdict == compare::timing::SpeedVerdict::Faster;
                let said = format!(
                    "speed-up {:.4} [{:.4}, {:.4}] is {}; required: FASTER, {factor} at least",
                    speed.speedup.value,
                    speed.speedup.low,
                    speed.speedup.high,
                    speed.verdict.name()
                );
                (is_faster && speed.speedup.low >= factor, said)
            }));
        }
        if let Some(expected) = &self.expect {
            end.require(speed.map(|speed| expected.check(&speed.speedup)));
        }
        if let Some(stored) = stored {
            end.require(speed.map(|speed| history::check(stored, report, speed.test_ns)));
        }
    }
}
