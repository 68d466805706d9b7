//! Drives the device: blocks, warm-up, batches, and what is looked at in between.
//!
//! A kernel that does less than its work when it can must not know when it can. So every launch of a sample has a set of
//! buffers of its own, with fresh poison in the outputs and an input that no launch has seen (`fresh`); which
//! outputs are looked at (`check`) is decided afterwards. All of that is outside of what is timed.

mod look;

use std::time::{Duration, Instant};

use gpu::Event;
use serde::{Deserialize, Serialize};

use super::block::{Block, Sizes};
use super::estimate::MIN_BLOCKS;
use super::fresh::Inputs;
use super::samples::{Sample, Samples, Which, median};
use crate::buffers::poison_word;
use crate::random::Random;
use crate::requirement::Requirement;
use crate::rig::Subject;
use crate::watch::Watch;

/// Whether the caches hold a kernel's data when it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Each launch takes the next of several sets of buffers, together larger than the last cache.
    #[default]
    Cold,
    /// Every launch takes the same buffers.
    Hot,
}

/// How to time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Launches of each kernel before anything is timed, at least.
    pub warmup: u32,
    /// Triples (reference, control, test) over all blocks.
    pub iterations: u32,
    /// Blocks, each with modules and buffers of its own.
    pub blocks: u32,
    /// Of the intervals.
    pub confidence: f64,
    /// Caches.
    pub cache: CacheMode,
    /// A sample shorter than this is made longer by launching several times: the timestamps lie on a grid.
    pub min_sample: Duration,
    /// Fewer triples and blocks are taken when this would be exceeded.
    pub budget: Duration,
    /// Orders and checks.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            warmup: 50,
            iterations: 200,
            blocks: 10,
            confidence: 0.99,
            cache: CacheMode::Cold,
            min_sample: Duration::from_micros(500),
            budget: Duration::from_secs(20),
            seed: 1,
        }
    }
}

/// The fewest triples of a block.
const MIN_TRIPLES: u32 = 5;
/// So often LDS is filled in front of a sample: some 20 us. A queue that is empty when a sample is queued would add what the
/// host needs for it, which depends on what the host did before.
const LEAD_FILLS: u32 = 3;
/// Triples may take this share of the budget; loading, filling and checking takes about as long.
const TRIPLES_SHARE: u32 = 2;
/// Of what was wrong, so much is told.
const MOST_TOLD: usize = 3;
/// Later blocks, and kernels alone, are launched so many times less than at first before they are timed.
const LATER_WARMUP: u32 = 3;
/// Warm-up may take this share of the budget.
const WARMUP_SHARE: u32 = 4;
/// Warm-up ends when the median of the last times differs from that of those before by less than this share…
const STEADY: f64 = 0.005;
/// …over this many launches each, and never takes longer than this.
const WARMUP_WINDOW: usize = 16;
const WARMUP_LIMIT: Duration = Duration::from_secs(3);

/// What timing saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// All samples.
    pub samples: Samples,
    /// Samples of reference and test, each loaded without the other.
    pub alone: Samples,
    /// Launches of one sample.
    pub launches_per_sample: u32,
    /// Sets of buffers that were rotated.
    pub buffer_sets: u32,
    /// Bytes of all sets together.
    pub rotated_bytes: u64,
    /// Launches before the first sample, of all kernels.
    pub warmup_launches: u32,
    /// Whether the times were steady at the end of the warm-up.
    pub warmup_is_steady: bool,
    /// Host time of queueing one launch, nanoseconds: beside, never subtracted.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub launch_overhead_ns: f64,
    /// Timed launches of the test whose outputs were held against the reference's.
    pub checked_launches: u32,
    /// Those whose bits differed, within what is required.
    pub other_bits: u32,
    /// What was wrong with timed launches, each with whose they were.
    pub wrong: Vec<String>,
    /// Something wrong that could be either's: it was seen once, between launches of both.
    pub unattributed: Option<String>,
    /// Why fewer samples were taken than asked for.
    pub shortened: Option<String>,
}

impl Measured {
    fn tell(&mut self, wrong: String) {
        if self.wrong.len() < MOST_TOLD && !self.wrong.contains(&wrong) {
            self.wrong.push(wrong);
        }
    }
}

/// What is timed.
pub struct Timed<'s> {
    /// The kernels.
    pub subject: Subject<'s>,
    /// Content of the buffers with a fill, by number; empty for the others.
    pub inputs: &'s [Vec<u8>],
    /// What outputs have to fulfil, beside what the site says of each.
    pub requirement: Option<&'s Requirement>,
}

/// Times reference, control and test.
///
/// # Errors
/// What the device reports, with whose launch it was.
pub fn measure(timed: &Timed<'_>, settings: &Settings, watch: &mut dyn Watch) -> gpu::Result<Measured> {
    let Subject { device, site, .. } = timed.subject;
    let mut run = Run {
        timed,
        settings,
        inputs: Inputs::of(site, timed.inputs),
        sizes: Sizes::of(&timed.subject, settings.cache)?,
        random: Random::new(settings.seed),
        measured: Measured { launches_per_sample: 1, ..Measured::default() },
        host_ns: Vec::new(),
        poison: 0,
        events: (device.event()?, device.event()?),
        begun: Instant::now(),
        checking: Duration::ZERO,
        is_suspicious: false,
        typical_ns: 0.0,
    };
    let blocks = settings.blocks.max(1);
    let mut triples = (settings.iterations.div_ceil(blocks)).max(MIN_TRIPLES);
    for block in 0..blocks {
        watch.progress("timing", block.into(), blocks.into());
        run.block(block, &mut triples, watch)?;
        // Fewer blocks than a statement needs are taken only when they would take twice the time.
        let limit = if block + 1 < MIN_BLOCKS as u32 { 2 * settings.budget } else { settings.budget };
        if run.begun.elapsed() > limit && block + 1 < blocks {
            let (taken, seconds) = (block + 1, settings.budget.as_secs_f64());
            run.measured.shortened =
                Some(format!("{taken} blocks in place of {blocks}: the time for them is {seconds} s"));
            break;
        }
    }
    watch.progress("timing", blocks.into(), blocks.into());
    run.measured.launch_overhead_ns = median(&run.host_ns);
    run.measured.buffer_sets = run.sizes.sets;
    run.measured.rotated_bytes = run.sizes.rotated_bytes();
    Ok(run.measured)
}

struct Run<'r, 's> {
    timed: &'r Timed<'s>,
    settings: &'r Settings,
    inputs: Inputs<'r>,
    sizes: Sizes,
    random: Random,
    measured: Measured,
    host_ns: Vec<f64>,
    poison: u32,
    events: (Event, Event),
    begun: Instant,
    /// Time spent on looking at outputs.
    checking: Duration,
    /// Something was wrong and it is not known whose it is: everything is looked at after each sample.
    is_suspicious: bool,
    /// Median time of the reference at the end of the last warm-up.
    typical_ns: f64,
}

impl Run<'_, '_> {
    fn block(&mut self, number: u32, triples: &mut u32, watch: &mut dyn Watch) -> gpu::Result<()> {
        let device = self.timed.subject.device;
        let mut block = Block::set_up(&self.timed.subject, &self.inputs, self.sizes, &mut self.random)?;
        let mut order = Which::ALL;
        self.random.shuffle(&mut order);
        for which in order {
            block.load(&self.timed.subject, which)?;
        }
        self.warm_up(&mut block, number == 0, watch)?;
        if number == 0 {
            self.measured.launches_per_sample = self.sizes.launches(self.typical_ns, self.settings.min_sample);
            block.grow(&self.timed.subject, &self.inputs, self.sizes, &mut self.random)?;
        }
        // One triple at random, and the last: a kernel cannot know which of its launches is looked at.
        let chosen = self.random.below((*triples).into()) as u32;
        let (begun, mut triple) = (Instant::now(), 0);
        let mut kept = None;
        while triple < *triples {
            let mut order = Which::ALL;
            self.random.shuffle(&mut order);
            for which in order {
                let launches = self.measured.launches_per_sample;
                let time_ns = self.sample(&mut block, which, launches, watch)?;
                self.measured.samples.0.push(Sample { which, block: number, triple, launches, time_ns });
                let due = triple == chosen || triple + 1 == *triples;
                if let Some(looked_at) = self.look(&mut block, which, due, watch)? {
                    kept = Some(looked_at);
                }
            }
            triple += 1;
            // The budget is for all blocks alike: each has as many triples as the first.
            let share = self.settings.budget / self.settings.blocks.max(1) / TRIPLES_SHARE;
            if number == 0 && triple >= MIN_TRIPLES && begun.elapsed() > share && triple < *triples {
                let (asked, taken) = (self.settings.iterations, triple * self.settings.blocks);
                let seconds = self.settings.budget.as_secs_f64();
                self.measured.shortened =
                    Some(format!("{taken} triples in place of {asked}: the time for them is {seconds} s"));
                *triples = triple;
            }
        }
        self.look_at_all(&mut block)?;
        Which::ALL.into_iter().try_for_each(|which| block.unload(device, which))?;
        self.alone(&mut block, number, kept, watch)?;
        block.free(device)
    }

    /// Launches all three in turn until the times are steady, at least as often as asked for.
    fn warm_up(&mut self, block: &mut Block, first: bool, watch: &mut dyn Watch) -> gpu::Result<()> {
        // Later blocks find the device warm; they need only their own first launches.
        let (floor, share) = match first {
            true => (self.settings.warmup as usize, self.settings.budget / WARMUP_SHARE),
            false => self.later_warm_up(),
        };
        let (started, mut times) = (Instant::now(), Vec::new());
        loop {
            for which in Which::ALL {
                let time_ns = self.sample(block, which, self.measured.launches_per_sample, watch)?;
                self.measured.warmup_launches += self.measured.launches_per_sample;
                if which == Which::Reference {
                    times.push(time_ns);
                }
            }
            let steady = is_steady(&times);
            if first {
                self.measured.warmup_is_steady = steady;
            }
            let is_enough = times.len() >= floor && (!first || steady || started.elapsed() > WARMUP_LIMIT);
            if is_enough || started.elapsed() > share {
                self.typical_ns = median(&times);
                return Ok(());
            }
        }
    }

    /// How often later blocks launch each kernel before they are timed, and how long that may take.
    fn later_warm_up(&self) -> (usize, Duration) {
        let share = self.settings.budget / WARMUP_SHARE / self.settings.blocks.max(1);
        ((self.settings.warmup / LATER_WARMUP).max(2) as usize, share)
    }

    /// Times one stretch; nanoseconds per launch.
    fn sample(&mut self, block: &mut Block, which: Which, launches: u32, watch: &mut dyn Watch) -> gpu::Result<f64> {
        let Subject { device, site, .. } = self.timed.subject;
        let (start, stop) = self.events;
        let kernel = block.kernel(which)?;
        self.poison = poison_word(&mut self.random, self.poison);
        block.take(launches);
        block.refresh(&self.timed.subject, &self.inputs, self.poison, &mut self.random)?;
        device.synchronize()?;
        let what = format!("timing of the {}", which.owner());
        if let Some(filler) = &self.timed.subject.filler {
            (0..LEAD_FILLS).try_for_each(|_| filler.fill(device, self.poison))?;
        }
        watch.queued(&what, launches);
        let host = Instant::now();
        let queue = || -> gpu::Result<()> {
            let mut sets = block.used().map(|set| set.launch(kernel, site));
            if let (1, Some(only)) = (launches, sets.next()) {
                return device.launch_between(&only, start, stop);
            }
            device.record(start)?;
            block.used().try_for_each(|set| device.launch(&set.launch(kernel, site)))?;
            device.record(stop)
        };
        queue().map_err(|error| error.of(&what))?;
        self.host_ns.push(host.elapsed().as_nanos() as f64 / f64::from(launches));
        device.synchronize().map_err(|error| error.of(&what))?;
        let time_ns = device.elapsed_ns(start, stop).map_err(|error| error.of(&what))? / f64::from(launches);
        watch.returned();
        if time_ns.is_finite() && time_ns > 0.0 {
            return Ok(time_ns);
        }
        let why = format!("{what}: the driver says that a launch took {time_ns} ns");
        Err(gpu::Error::new(gpu::ErrorKind::Driver, why))
    }
}

fn is_steady(times: &[f64]) -> bool {
    let Some(start) = times.len().checked_sub(2 * WARMUP_WINDOW) else { return false };
    let (before, last) = times[start..].split_at(WARMUP_WINDOW);
    (median(last) / median(before) - 1.0).abs() < STEADY
}
