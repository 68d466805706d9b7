//! The process that owns the device. The same program, re-executed with a hidden first argument: what to do comes in on its
//! stdin, what happens goes out on what was its stdout ([`super::channel`]). It ends when its parent does.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use compare::report::Report;
use compare::requirement::Requirement;
use compare::run::{self, Failure, Image, Request};
use compare::timing::{CacheMode, Settings};
use compare::watch::Watch;
use gpu::watched::{Observer, Watched};
use gpu::{Device, DeviceName};
use serde::{Deserialize, Serialize};

use super::channel::{self, Sender, Token};

/// The first argument that makes this program the device's owner.
pub const ARGUMENT: &str = "__device-worker";

/// A job is a few thousand bytes, and three images follow it.
const MAX_PART_BYTES: u64 = 4 << 30;

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Job {
    /// `hip:0`; the first that there is when none is named.
    pub device: Option<String>,
    /// How long to wait for a device that another run holds.
    pub wait: Duration,
    /// What to do on it.
    pub task: Task,
}

/// What to do on a device.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Task {
    /// Compare two images.
    Compare(Box<Comparison>),
    /// See whether the device answers.
    Probe,
    /// Say which devices the driver has: `hip` or `cuda`.
    List(String),
}

/// A comparison as it is handed over; the reference's image, the test's, and the one that fills LDS follow it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// As the user named it.
    pub reference: String,
    /// As the user named it.
    pub test: String,
    /// A site file, or the name of a built-in site.
    pub site: SiteSource,
    /// `--require`.
    pub requirement: Option<String>,
    /// `--seed`.
    pub seed: u64,
    /// `--allow-metadata`.
    pub allow_metadata: bool,
    /// How to time.
    pub timing: Option<TimingOptions>,
    /// `--peak-tflops`, in operations per second.
    pub peak_flops: Option<f64>,
    /// Why there is no image that fills LDS.
    pub no_lds_filler: Option<String>,
}

/// Where the site is from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum SiteSource {
    /// A file.
    File(PathBuf),
    /// Built in.
    Builtin(String),
}

/// [`Settings`], as they are handed over.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct TimingOptions {
    /// See [`Settings`].
    pub warmup: u32,
    /// See [`Settings`].
    pub iterations: u32,
    /// See [`Settings`].
    pub blocks: u32,
    /// See [`Settings`].
    pub confidence: f64,
    /// See [`Settings`].
    pub cache: CacheMode,
    /// See [`Settings`].
    pub budget: Duration,
}

/// What happens.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    /// Another run holds the device.
    Waiting(String),
    /// Both images are loadable.
    Begun(Begun),
    /// Something is queued that a broken kernel could hang in.
    Queued(String, u32),
    /// The driver is asked for something else that may hang, and has to move so many bytes.
    Asked(String, u64),
    /// What was queued or asked for came back.
    Returned,
    /// How far it is.
    Progress(String, u64, u64),
    /// The end.
    Compared(Box<Report>),
    /// The device answers.
    Probed,
    /// The driver's devices.
    Listed(Vec<Found>),
    /// The end, without a report.
    Failed(Failed),
}

/// What is compared where.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Begun {
    /// The device's name.
    pub device: String,
    /// Its compute units.
    pub compute_units: u32,
    /// The kernel's name.
    pub kernel: String,
}

/// A device that a driver has.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    /// `hip:0`
    pub id: String,
    /// Which driver library.
    pub driver: String,
    /// Its name and what it is.
    pub description: String,
}

/// [`Failure`], as it is handed over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Failed {
    /// Exit 2.
    BadInput(Vec<String>),
    /// Exit 2.
    NoKernel(String),
    /// Exit 3.
    NotAvailable(String),
    /// Exit 2.
    NotEstablished(String),
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Failed {
        match failure {
            Failure::BadInput(why) => Failed::BadInput(why),
            Failure::NoKernel(why) => Failed::NoKernel(why),
            Failure::NotAvailable(why) => Failed::NotAvailable(why),
            Failure::NotEstablished(why) => Failed::NotEstablished(why),
        }
    }
}

/// Becomes the owner of a device and never returns when this process was started as one. Call it first in `main`.
pub fn main_if_requested() {
    if std::env::args_os().nth(1).is_none_or(|first| first != ARGUMENT) {
        return;
    }
    let (job, images, sender) = match begin() {
        Ok(begun) => begun,
        Err(error) => {
            // There is nothing yet that an event could be sent with.
            eprintln!("the job did not arrive: {error}");
            std::process::exit(1);
        }
    };
    let teller = Teller { sender: &sender, is_queued: Cell::new(false) };
    let outcome = work(job, images, &teller).unwrap_or_else(Event::Failed);
    sender.say(&outcome);
    // Drivers' destructors may hang after a fault; nothing of ours is left to do.
    std::process::exit(0);
}

/// Writes token, job and images to the worker's stdin; the worker lives as long as it stays open.
pub fn hand_over(mut to: impl Write, token: &Token, job: &Job, images: &[&[u8]]) -> io::Result<()> {
    let texts = [serde_json::to_vec(token)?, serde_json::to_vec(job)?];
    for part in texts.iter().map(|text| &text[..]).chain(images.iter().copied()) {
        to.write_all(&(part.len() as u64).to_le_bytes())?;
        to.write_all(part)?;
    }
    to.flush()
}

fn read_part(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_PART_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a part of the job is too large"));
    }
    let mut part = Vec::new();
    from.take(length).read_to_end(&mut part)?;
    if (part.len() as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(part) }
}

/// Takes stdout away from whatever is loaded later, and the job in.
fn begin() -> io::Result<(Job, Vec<Vec<u8>>, Sender)> {
    let pipe = channel::take_stdout()?;
    let mut stdin = io::stdin().lock();
    let token: Token = serde_json::from_slice(&read_part(&mut stdin)?)?;
    let job: Job = serde_json::from_slice(&read_part(&mut stdin)?)?;
    let mut images = Vec::new();
    if let Task::Compare(_) = job.task {
        for _ in 0..3 {
            images.push(read_part(&mut stdin)?);
        }
    }
    Ok((job, images, Sender::new(pipe, &token)))
}

fn work(job: Job, images: Vec<Vec<u8>>, teller: &Teller<'_>) -> Result<Event, Failed> {
    end_with_parent();
    if let Task::List(kind) = &job.task {
        return list(kind);
    }
    let device = open(&job, teller)?;
    let Task::Compare(comparison) = job.task else { return probe(&*device) };
    let _lock = lock(&*device, job.wait, teller)?;
    let report = compare(&*device, *comparison, images, teller)?;
    // Whatever a driver does while it is taken down comes after the report.
    teller.sender.say(&Event::Compared(Box::new(report)));
    std::process::exit(0);
}

fn open(job: &Job, teller: &Teller<'_>) -> Result<Box<dyn Device>, Failed> {
    let named = job.device.as_deref().map(str::parse).transpose().map_err(|why| Failed::BadInput(vec![why]))?;
    teller.asked("starting the driver", 0);
    let name = match named {
        Some(name) => name,
        None => gpu::first().map_err(|error| Failed::NotAvailable(error.to_string()))?,
    };
    let device = gpu::open(name).map_err(|error| Failed::from(Failure::from(error)))?;
    teller.answered();
    Ok(device)
}

fn compare(
    device: &dyn Device,
    comparison: Comparison,
    images: Vec<Vec<u8>>,
    teller: &Teller<'_>,
) -> Result<Report, Failed> {
    let facts = run::facts(device);
    let site = comparison.site.site(facts).map_err(|why| Failed::BadInput(vec![why]))?;
    let requirement = comparison.requirement.as_deref().map(str::parse::<Requirement>).transpose();
    let requirement = requirement.map_err(|why| Failed::BadInput(vec![why.to_string()]))?;
    let mut images = images.into_iter();
    let mut image = |name: &str| Image { name: name.to_owned(), bytes: images.next().unwrap_or_default() };
    let request = Request {
        reference: image(&comparison.reference),
        test: image(&comparison.test),
        requirement,
        seed: comparison.seed,
        allow_metadata: comparison.allow_metadata,
        timing: comparison.timing.map(settings),
        peak_flops: comparison.peak_flops,
        lds_filler: comparison.no_lds_filler.map_or_else(|| Ok(images.next().unwrap_or_default()), Err),
    };
    let names = [("the reference", &request.reference.bytes[..]), ("the test", &request.test.bytes[..])];
    let watched = Watched::new(device, teller, &names);
    run::run(&watched, &site, &request, &mut Told(teller)).map_err(Failed::from)
}

fn settings(options: TimingOptions) -> Settings {
    let TimingOptions { warmup, iterations, blocks, confidence, cache, budget } = options;
    Settings {
        warmup,
        iterations,
        blocks,
        confidence,
        cache,
        budget,
        seed: u64::from(std::process::id()),
        ..Settings::default()
    }
}

fn list(kind: &str) -> Result<Event, Failed> {
    let found = gpu::list(if kind == "hip" { DeviceName::Hip } else { DeviceName::Cuda });
    let found = found.map_err(|error| Failed::NotAvailable(error.to_string()))?;
    let describe = |info: gpu::DeviceInfo| {
        let target = if info.target.is_empty() { "of unknown target" } else { &info.target };
        let description = format!("{}, {target}, {} CUs", info.name, info.compute_units);
        Found { id: info.id, driver: info.driver, description }
    };
    Ok(Event::Listed(found.into_iter().map(describe).collect()))
}

fn probe(device: &dyn Device) -> Result<Event, Failed> {
    let answers = || -> gpu::Result<bool> {
        let at = device.allocate(4096)?;
        device.fill(at, 0x0bad_cafe, 1024)?;
        let mut content = [0; 4096];
        device.read(at, &mut content)?;
        device.free(at)?;
        Ok(content.chunks(4).all(|word| word == 0x0bad_cafe_u32.to_le_bytes()))
    };
    match answers() {
        Ok(true) => Ok(Event::Probed),
        Ok(false) => Err(Failed::NotEstablished("memory of the device does not keep what is written".into())),
        Err(error) => Err(Failed::NotEstablished(error.to_string())),
    }
}

/// The device for this run alone; none for one that nobody else can have.
fn lock(device: &dyn Device, wait: Duration, teller: &Teller<'_>) -> Result<Option<gpu::Lock>, Failed> {
    if device.info().bus_id.is_empty() {
        return Ok(None);
    }
    let started = Instant::now();
    let mut told = false;
    loop {
        match gpu::Lock::try_take(&device.info().bus_id) {
            Err(error) => return Err(Failed::NotEstablished(format!("the device's lock: {error}"))),
            Ok(Ok(lock)) => return Ok(Some(lock)),
            Ok(Err(held)) if started.elapsed() >= wait => {
                return Err(Failed::NotAvailable(format!(
                    "{} is in use by {} ({}); --wait SECONDS waits for it",
                    device.info().id,
                    if held.holder.is_empty() { "another run" } else { &held.holder },
                    held.path.display()
                )));
            }
            Ok(Err(held)) => {
                if !told {
                    let holder = if held.holder.is_empty() { "another run".into() } else { held.holder };
                    teller.sender.say(&Event::Waiting(holder));
                    told = true;
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
}

/// Ends this process when the parent's end of stdin is closed, even while a launch hangs.
fn end_with_parent() {
    std::thread::spawn(|| {
        let mut rest = [0; 64];
        while matches!(io::stdin().read(&mut rest), Ok(1..)) {}
        std::process::exit(1);
    });
}

/// Tells the parent.
struct Teller<'s> {
    sender: &'s Sender,
    /// Whether something is queued: what is asked for meanwhile is part of it, and takes no time for telling.
    is_queued: Cell<bool>,
}

impl Observer for Teller<'_> {
    fn asked(&self, what: &str, bytes: u64) {
        if !self.is_queued.get() {
            self.sender.say(&Event::Asked(what.to_owned(), bytes));
        }
    }

    fn answered(&self) {
        if !self.is_queued.get() {
            self.sender.say(&Event::Returned);
        }
    }
}

/// The same for a run.
struct Told<'t, 's>(&'t Teller<'s>);

impl Watch for Told<'_, '_> {
    fn begun(&mut self, device: &gpu::DeviceInfo, kernel: &str) {
        let gpu::DeviceInfo { name, compute_units, .. } = device;
        let (device, kernel) = (name.clone(), kernel.to_owned());
        self.0.sender.say(&Event::Begun(Begun { device, compute_units: *compute_units, kernel }));
    }

    fn queued(&mut self, what: &str, launches: u32) {
        self.0.is_queued.set(true);
        self.0.sender.say(&Event::Queued(what.to_owned(), launches));
    }

    fn returned(&mut self) {
        self.0.is_queued.set(false);
        self.0.sender.say(&Event::Returned);
    }

    fn progress(&mut self, phase: &str, done: u64, total: u64) {
        self.0.sender.say(&Event::Progress(phase.to_owned(), done, total));
    }
}
