//! Drives the device: blocks, warm-up, batches, rotation, and checks of outputs in between.

use std::time::{Duration, Instant};

use gpu::{Event, Kernel};
use serde::{Deserialize, Serialize};

use super::samples::{Sample, Samples, Which, median};
use crate::buffers::poison_word;
use crate::expected::Expected;
use crate::random::Random;
use crate::rig::{BufferSet, Loaded, Subject};
use crate::site::file::Role;
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
    /// Fewer triples are taken when this would be exceeded.
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
/// The most launches of one sample.
const MAX_LAUNCHES: u32 = 4096;
/// The most sets of buffers that are rotated.
const MAX_SETS: u64 = 64;
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
    /// Launches of one sample.
    pub launches_per_sample: u32,
    /// Sets of buffers that were rotated.
    pub buffer_sets: u32,
    /// Launches before the first sample, of all kernels.
    pub warmup_launches: u32,
    /// Whether the times were steady at the end of the warm-up.
    pub warmup_is_steady: bool,
    /// Host time of queueing one launch, nanoseconds: beside, never subtracted.
    pub launch_overhead_ns: f64,
    /// Timed launches whose outputs were checked.
    pub checked_launches: u32,
    /// What was wrong with an output of a timed launch.
    pub wrong_outputs: Vec<String>,
    /// Why fewer triples were taken than asked for.
    pub shortened: Option<String>,
}

/// What is timed.
pub struct Timed<'s> {
    /// The kernels.
    pub subject: Subject<'s>,
    /// Content of the buffers with a fill, by number; empty for the others.
    pub inputs: &'s [Vec<u8>],
    /// What the reference makes of them.
    pub expected_reference: &'s Expected,
    /// What the test makes of them.
    pub expected_test: &'s Expected,
}

impl<'s> Timed<'s> {
    fn image(&self, which: Which) -> &'s [u8] {
        if which == Which::Test { self.subject.test } else { self.subject.reference }
    }

    fn expected(&self, which: Which) -> &'s Expected {
        if which == Which::Test { self.expected_test } else { self.expected_reference }
    }

    /// A buffer that is read and written holds another value after each launch, so it is restored before each.
    fn restores(&self) -> bool {
        self.subject.site.buffers().any(|(_, buffer)| buffer.role == Role::InOut)
    }

    /// Sets of buffers, so that together they are twice the last cache and one is still free.
    fn sets(&self, mode: CacheMode) -> gpu::Result<u64> {
        if mode == CacheMode::Hot {
            return Ok(1);
        }
        let bytes: u64 = self.subject.site.buffers().map(|(_, buffer)| buffer.bytes).sum::<u64>().max(1);
        let cache = self.subject.device.info().last_level_cache_bytes;
        let wanted = (2 * cache).div_ceil(bytes) + 1;
        let guards = self.subject.site.buffers().count() as u64 * 2 * crate::buffers::GUARD_BYTES;
        let fits = self.subject.device.memory()?.free / 2 / (bytes + guards);
        Ok(wanted.min(fits).clamp(1, MAX_SETS))
    }
}

/// Times reference, control and test.
///
/// # Errors
/// What the device reports.
pub fn measure(timed: &Timed<'_>, settings: &Settings, watch: &mut dyn Watch) -> gpu::Result<Measured> {
    let mut run = Run {
        timed,
        settings,
        random: Random::new(settings.seed),
        measured: Measured { buffer_sets: timed.sets(settings.cache)? as u32, ..Measured::default() },
        host_ns: Vec::new(),
        poison: 0,
        events: (timed.subject.device.event()?, timed.subject.device.event()?),
    };
    let blocks = settings.blocks.max(1);
    let mut triples = (settings.iterations.div_ceil(blocks)).max(MIN_TRIPLES);
    for block in 0..blocks {
        watch.progress("timing", block.into(), blocks.into());
        run.block(block, &mut triples, watch)?;
    }
    watch.progress("timing", blocks.into(), blocks.into());
    run.measured.launch_overhead_ns = median(&run.host_ns);
    Ok(run.measured)
}

struct Run<'r, 's> {
    timed: &'r Timed<'s>,
    settings: &'r Settings,
    random: Random,
    measured: Measured,
    host_ns: Vec<f64>,
    poison: u32,
    events: (Event, Event),
}

/// What one block works on.
struct Block {
    kernels: [Loaded; 3],
    sets: Vec<BufferSet>,
    /// The set of the next launch.
    next: usize,
    /// Holds the inputs untouched, where launches change theirs.
    pristine: Option<BufferSet>,
}

impl Block {
    fn kernel(&self, which: Which) -> Kernel {
        self.kernels[which as usize].kernel
    }
}

impl Run<'_, '_> {
    fn block(&mut self, number: u32, triples: &mut u32, watch: &mut dyn Watch) -> gpu::Result<()> {
        let device = self.timed.subject.device;
        let mut block = self.set_up()?;
        self.warm_up(&mut block, number == 0, watch)?;
        if number == 0 {
            self.choose_launches(&mut block, watch)?;
        }
        // One triple at random, and the last: a kernel cannot know which of its launches is looked at.
        let checked = self.random.below((*triples).into()) as u32;
        let begun = Instant::now();
        let mut triple = 0;
        while triple < *triples {
            let mut order = Which::ALL;
            self.random.shuffle(&mut order);
            for which in order {
                let check = triple == checked || triple + 1 == *triples;
                let time_ns = self.sample(&mut block, which, self.measured.launches_per_sample, check, watch)?;
                let launches = self.measured.launches_per_sample;
                self.measured.samples.0.push(Sample { which, block: number, triple, launches, time_ns });
            }
            triple += 1;
            // The budget is for all blocks alike: each has as many triples as the first.
            let share = self.settings.budget / self.settings.blocks.max(1);
            if number == 0 && triple >= MIN_TRIPLES && begun.elapsed() > share && triple < *triples {
                let asked = self.settings.iterations;
                let taken = triple * self.settings.blocks;
                let seconds = self.settings.budget.as_secs_f64();
                self.measured.shortened =
                    Some(format!("{taken} triples in place of {asked}: the time for them is {seconds} s"));
                *triples = triple;
            }
        }
        for set in block.sets.drain(..).chain(block.pristine.take()) {
            set.free(device)?;
        }
        block.kernels.into_iter().try_for_each(|kernel| kernel.unload(device))
    }

    fn set_up(&mut self) -> gpu::Result<Block> {
        let Timed { subject: Subject { device, site, layout, kernel, .. }, inputs, .. } = *self.timed;
        let mut order = Which::ALL;
        self.random.shuffle(&mut order);
        let mut kernels: [Option<Loaded>; 3] = [None; 3];
        for which in order {
            kernels[which as usize] = Some(Loaded::load(device, self.timed.image(which), kernel)?);
        }
        let [Some(reference), Some(control), Some(test)] = kernels else {
            return Err(gpu::Error::new(gpu::ErrorKind::Driver, "a kernel was not loaded"));
        };
        let mut sets: Vec<BufferSet> = Vec::new();
        let pristine = self.timed.restores();
        for _ in 0..self.measured.buffer_sets + u32::from(pristine) {
            let mut set = BufferSet::allocate(device, site, layout, &mut self.random)?;
            self.poison = poison_word(&mut self.random, self.poison);
            match sets.first() {
                None => set.prepare(device, site, inputs, self.poison, &mut self.random)?,
                Some(first) => {
                    set.prepare(device, site, &[], self.poison, &mut self.random)?;
                    set.copy_inputs(device, site, first)?;
                }
            }
            sets.push(set);
        }
        device.synchronize()?;
        let pristine = if pristine { sets.pop() } else { None };
        Ok(Block { kernels: [reference, control, test], sets, next: 0, pristine })
    }

    /// Launches all three in turn until the times are steady, at least as often as asked for.
    fn warm_up(&mut self, block: &mut Block, first: bool, watch: &mut dyn Watch) -> gpu::Result<()> {
        // Later blocks find the device warm; they need only their own first launches.
        let floor = if first { self.settings.warmup as usize } else { (self.settings.warmup as usize / 10).max(2) };
        let started = Instant::now();
        let mut times = Vec::new();
        loop {
            for which in Which::ALL {
                let time_ns = self.sample(block, which, 1, false, watch)?;
                self.measured.warmup_launches += 1;
                if which == Which::Reference {
                    times.push(time_ns);
                }
            }
            let steady = is_steady(&times);
            if first {
                self.measured.warmup_is_steady = steady;
            }
            if times.len() >= floor && (!first || steady || started.elapsed() > WARMUP_LIMIT) {
                return Ok(());
            }
        }
    }

    /// So many launches that a sample is long enough for the timestamps.
    fn choose_launches(&mut self, block: &mut Block, watch: &mut dyn Watch) -> gpu::Result<()> {
        self.measured.launches_per_sample = 1;
        if self.timed.restores() {
            return Ok(());
        }
        let times =
            (0..5).map(|_| self.sample(block, Which::Reference, 1, false, watch)).collect::<gpu::Result<Vec<_>>>()?;
        let one = median(&times).max(100.0);
        let wanted = (self.settings.min_sample.as_nanos() as f64 / one).ceil();
        self.measured.launches_per_sample = (wanted as u32).clamp(1, MAX_LAUNCHES);
        Ok(())
    }

    /// Times one stretch; nanoseconds per launch.
    fn sample(
        &mut self,
        block: &mut Block,
        which: Which,
        launches: u32,
        check: bool,
        watch: &mut dyn Watch,
    ) -> gpu::Result<f64> {
        let Subject { device, site, .. } = self.timed.subject;
        let (start, stop) = self.events;
        let kernel = block.kernel(which);
        let used: Vec<usize> = (0..launches as usize).map(|n| (block.next + n) % block.sets.len()).collect();
        if check {
            self.poison = poison_word(&mut self.random, self.poison);
            for number in distinct(&used) {
                block.sets[number].poison_outputs(device, site, self.poison)?;
            }
        }
        if let (Some(pristine), Some(first)) = (&block.pristine, used.first()) {
            block.sets[*first].copy_inputs(device, site, pristine)?;
        }
        device.synchronize()?;
        let what = format!("timing of the {}", name_of(which));
        watch.queued(&what, launches);
        let host = Instant::now();
        let queue = || -> gpu::Result<()> {
            if let [only] = used[..] {
                return device.launch_between(&block.sets[only].launch(kernel, site), start, stop);
            }
            device.record(start)?;
            used.iter().try_for_each(|number| device.launch(&block.sets[*number].launch(kernel, site)))?;
            device.record(stop)
        };
        queue().map_err(|error| error.of(&what))?;
        self.host_ns.push(host.elapsed().as_nanos() as f64 / f64::from(launches));
        device.synchronize().map_err(|error| error.of(&what))?;
        watch.returned();
        let time_ns = device.elapsed_ns(start, stop)? / f64::from(launches);
        block.next = (block.next + launches as usize) % block.sets.len();
        if check {
            // Of a batch, the sets of its first and its last launch.
            let looked_at = distinct(&[used[0], used[used.len() - 1]]);
            for number in looked_at {
                self.measured.checked_launches += 1;
                let wrong = self.timed.expected(which).differs_from(device, &block.sets[number], self.poison)?;
                if let Some(wrong) = wrong.filter(|_| self.measured.wrong_outputs.len() < 10) {
                    self.measured.wrong_outputs.push(format!("{}: {wrong}", name_of(which)));
                }
            }
        }
        Ok(time_ns)
    }
}

fn name_of(which: Which) -> &'static str {
    match which {
        Which::Reference | Which::Control => "reference",
        Which::Test => "test",
    }
}

fn distinct(numbers: &[usize]) -> Vec<usize> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

fn is_steady(times: &[f64]) -> bool {
    let Some(start) = times.len().checked_sub(2 * WARMUP_WINDOW) else { return false };
    let (before, last) = times[start..].split_at(WARMUP_WINDOW);
    (median(last) / median(before) - 1.0).abs() < STEADY
}
