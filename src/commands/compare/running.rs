//! How kernels are run: the options that `coax compare` and `co_compare` share.

use std::time::Duration;

use compare::requirement::Requirement;
use compare::timing::CacheMode;
use gpu::DeviceName;

use super::images::Images;
use super::owner::{self, Ending};
use super::worker::{Begun, Comparison, Failed, Job, SiteSource, Task, TimingOptions};
use super::{lds, resolve};

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
    #[arg(long, default_value_t = 200, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
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
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = some_seconds)]
    budget: f64,
    /// The device's peak for this kernel's type, TFLOPS: a rate above it is an error or a cheat
    #[arg(long, value_name = "TFLOPS", value_parser = above_zero)]
    peak_tflops: Option<f64>,
    /// hip:N or cuda:N [default: the first that there is]
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Of the inputs
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// A launch that takes longer hangs, seconds
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = some_seconds)]
    launch_timeout: f64,
    /// How long to wait for a device that another run holds, seconds
    #[arg(long, default_value_t = 0.0, value_name = "SECONDS", value_parser = seconds)]
    wait: f64,
}

/// A number of seconds that a duration can hold.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.0..=1e6).contains(&value) { Ok(value) } else { Err(format!("{value} is not between 0 and 1000000")) }
}

/// Seconds in which something can happen.
fn some_seconds(text: &str) -> Result<f64, String> {
    seconds(text).and_then(|value| if value > 0.0 { Ok(value) } else { Err("0 seconds are no time".into()) })
}

/// A number above 0 and below infinity.
pub fn above_zero(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(format!("{value} is not above 0")) }
}

fn confidence(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    if (0.5..1.0).contains(&value) { Ok(value) } else { Err(format!("{value} is not between 0.5 and 1")) }
}

impl Running {
    /// Runs both images on a site; `begun` is called before the first launch.
    pub fn run(
        &self,
        images: &Images,
        site: SiteSource,
        requirement: Option<&str>,
        allow_metadata: bool,
        begun: &mut dyn FnMut(&Begun),
    ) -> std::io::Result<Ending> {
        let timing = self.benchmark.then_some(TimingOptions {
            warmup: self.warmup,
            iterations: self.iters,
            blocks: self.blocks,
            confidence: self.confidence,
            cache: if self.cache == "hot" { CacheMode::Hot } else { CacheMode::Cold },
            budget: Duration::from_secs_f64(self.budget),
        });
        if let Err(failed) = self.before_device(images, &site, requirement) {
            return Ok(Ending::Failed(failed));
        }
        let [reference, test] = &images.0;
        let (filler, no_lds_filler) = match lds::filler(self.device.as_deref(), &reference.bytes) {
            Ok(image) => (image, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let job = Job {
            device: self.device.clone(),
            wait: Duration::from_secs_f64(self.wait),
            task: Task::Compare(Box::new(Comparison {
                reference: reference.name.clone(),
                test: test.name.clone(),
                site,
                requirement: requirement.map(str::to_owned),
                seed: self.seed,
                allow_metadata,
                timing,
                peak_flops: self.peak_tflops.map(|tflops| tflops * 1e12),
                no_lds_filler,
            })),
        };
        owner::run(&job, &[&reference.bytes, &test.bytes, &filler], Duration::from_secs_f64(self.launch_timeout), begun)
    }

    /// A mistake in what was typed is one on every machine: it is told before a device is looked for.
    fn before_device(&self, images: &Images, site: &SiteSource, requirement: Option<&str>) -> Result<(), Failed> {
        let bad = |why: String| Failed::BadInput(vec![why]);
        requirement.map(str::parse::<Requirement>).transpose().map_err(|why| bad(why.to_string()))?;
        if let Some(name) = &self.device {
            name.parse::<DeviceName>().map_err(bad)?;
        }
        let [reference, test] = &images.0;
        resolve::before_device(site, reference, test)
    }
}
