//! Drives the device: blocks, warm-up, batches, and what is looked at in between.
//!
//! A kernel that does less than its work when it can must not know when it can. So every launch of a sample has a set of
//! buffers of its own, with fresh poison in the outputs and an input that no launch has seen (`fresh`); which
//! outputs are looked at (`check`) is decided afterwards. All of that is outside of what is timed.

use std::time::{Duration, Instant};

use gpu::{Event, Kernel};
use serde::{Deserialize, Serialize};

use super::block::{Block, Sizes};
use super::check::{self, Found};
use super::estimate::MIN_BLOCKS;
use super::fresh::{Inputs, Patch};
use super::samples::{Sample, Samples, Which, median};
use crate::buffers::poison_word;
use crate::random::Random;
use crate::requirement::Requirement;
use crate::rig::{BufferSet, Subject};
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
/// Samples of a kernel that is loaded alone.
const ALONE_SAMPLES: u32 = 3;
/// One in so many blocks is looked at again with the reference alone, where that takes long.
const ALONE_LOOKS: u64 = 3;
/// So often LDS is filled in front of a sample: some 20 us. A queue that is empty when a sample is queued would add what the
/// host needs for it, which depends on what the host did before.
const LEAD_FILLS: u32 = 3;
/// Triples may take this share of the budget; loading, filling and checking takes about as long.
const TRIPLES_SHARE: u32 = 2;
/// Outputs are looked at beyond what is due as long as that takes less than this share of the time.
const CHECKING_SHARE: u32 = 3;
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

    /// Test and reference, each loaded without the other. A kernel that slows its neighbours down, or changes what they
    /// compute, has none here: what the test wrote beside the reference and what it wrote alone is held against the reference
    /// alone.
    fn alone(&mut self, block: &mut Block, number: u32, kept: Option<Kept>, watch: &mut dyn Watch) -> gpu::Result<()> {
        let looks = number == 0 || self.checking_is_cheap() || self.random.below(ALONE_LOOKS) == 0;
        let mut kept: Vec<Kept> = kept.into_iter().filter(|_| looks).collect();
        self.sample_alone(block, Which::Test, number, watch)?;
        if looks {
            kept.extend(self.keep(block, 0)?);
        }
        block.unload(self.timed.subject.device, Which::Test)?;
        self.sample_alone(block, Which::Reference, number, watch)?;
        let started = Instant::now();
        for kept in kept {
            self.look_alone(block, kept, watch)?;
        }
        self.checking += started.elapsed();
        block.unload(self.timed.subject.device, Which::Reference)
    }

    fn sample_alone(&mut self, block: &mut Block, which: Which, number: u32, watch: &mut dyn Watch) -> gpu::Result<()> {
        block.load(&self.timed.subject, which)?;
        let launches = self.measured.launches_per_sample;
        let (warmup, share) = self.later_warm_up();
        let started = Instant::now();
        for _ in 0..warmup {
            self.sample(block, which, launches, watch)?;
            if started.elapsed() > share {
                break;
            }
        }
        for triple in 0..ALONE_SAMPLES {
            let time_ns = self.sample(block, which, launches, watch)?;
            self.measured.alone.0.push(Sample { which, block: number, triple, launches, time_ns });
        }
        Ok(())
    }

    /// Holds what the test wrote against the reference that is loaded alone.
    fn look_alone(&mut self, block: &mut Block, kept: Kept, watch: &mut dyn Watch) -> gpu::Result<()> {
        let (subject, kernel) = (&self.timed.subject, block.kernel(Which::Reference)?);
        let fresh = poison_word(&mut self.random, kept.poison);
        let set = block.as_it_was(subject, &self.inputs, kept.place, fresh)?;
        ask_reference(subject, set, kernel, watch)?;
        let found = check::hold(subject, self.timed.requirement, set, &kept.outputs, [kept.poison, fresh])?;
        self.note(match found {
            Found::Wrong(what) => Found::Wrong(format!("test: {what}, says the reference alone")),
            found => found,
        });
        Ok(())
    }

    /// How often later blocks launch each kernel before they are timed, and how long that may take.
    fn later_warm_up(&self) -> (usize, Duration) {
        let share = self.settings.budget / WARMUP_SHARE / self.settings.blocks.max(1);
        ((self.settings.warmup / LATER_WARMUP).max(2) as usize, share)
    }

    fn checking_is_cheap(&self) -> bool {
        self.checking * CHECKING_SHARE < self.begun.elapsed()
    }

    /// What the last sample wrote in one of its sets.
    fn keep(&self, block: &Block, position: usize) -> gpu::Result<Option<Kept>> {
        let (Some(place), Some(set)) = (block.place(position), block.used().nth(position)) else { return Ok(None) };
        Ok(Some(Kept { place, poison: self.poison, outputs: check::outputs(&self.timed.subject, set)? }))
    }

    fn note(&mut self, found: Found) {
        match found {
            Found::Same => {}
            Found::OtherBits => self.measured.other_bits += 1,
            Found::Wrong(wrong) => self.measured.tell(wrong),
        }
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

    /// Looks at what a sample left behind: at the guard zones of one of its sets always, at outputs and inputs when that is
    /// due or cheap.
    /// Returns what the test wrote, where that was looked at.
    fn look(&mut self, block: &mut Block, which: Which, due: bool, watch: &mut dyn Watch) -> gpu::Result<Option<Kept>> {
        let Subject { device, site, .. } = self.timed.subject;
        let started = Instant::now();
        let checks = which == Which::Test && (due || self.checking_is_cheap());
        let one = self.random.below(block.used().count() as u64) as usize;
        let trespasses = if self.is_suspicious {
            block.offences(&self.timed.subject, &self.inputs)?
        } else {
            let Some(set) = block.used().nth(one) else { return Ok(None) };
            let mut found: Vec<String> = set.trespasses(device, site)?.iter().map(ToString::to_string).collect();
            if checks {
                found.extend(block.changed_inputs(&self.timed.subject, &self.inputs, one)?);
            }
            found
        };
        self.weigh(block, which, trespasses)?;
        let kept = if checks { self.check(block, one, watch)? } else { None };
        self.checking += started.elapsed();
        Ok(kept)
    }

    /// Takes note of what is wrong. The first time it may have been anybody since the last look: all is put right, and from
    /// then on each launch is looked at.
    fn weigh(&mut self, block: &mut Block, which: Which, offences: Vec<String>) -> gpu::Result<()> {
        if offences.is_empty() {
            return Ok(());
        }
        block.put_right(&self.timed.subject, &self.inputs, &mut self.random)?;
        if self.is_suspicious {
            self.measured.unattributed = None;
            offences
                .iter()
                .for_each(|offence| self.measured.tell(format!("{}: {offence}, in a timed launch", which.owner())));
            // It is known whose it is; from here on it only costs time.
            self.is_suspicious = self.measured.wrong.len() < MOST_TOLD && which.owner() != "test";
        } else if self.measured.wrong.is_empty() {
            self.is_suspicious = true;
            self.measured.unattributed = offences.into_iter().next();
        }
        Ok(())
    }

    /// Guard zones of all sets of a block, before they go.
    fn look_at_all(&mut self, block: &mut Block) -> gpu::Result<()> {
        let found = block.all_trespasses(&self.timed.subject)?;
        if self.measured.wrong.is_empty() && self.measured.unattributed.is_none() && !found.is_empty() {
            self.is_suspicious = true;
            self.measured.unattributed = found.into_iter().next();
        }
        Ok(())
    }

    /// Holds the outputs of the last sample, in one of its sets, against the reference, and returns them.
    fn check(&mut self, block: &mut Block, one: usize, watch: &mut dyn Watch) -> gpu::Result<Option<Kept>> {
        let Some(kept) = self.keep(block, one)? else { return Ok(None) };
        let subject = &self.timed.subject;
        let [reference, control] = [block.kernel(Which::Reference)?, block.kernel(Which::Control)?];
        let fresh = poison_word(&mut self.random, kept.poison);
        let set = block.as_it_was(subject, &self.inputs, kept.place.clone(), fresh)?;
        ask_reference(subject, set, reference, watch)?;
        let found = check::hold(subject, self.timed.requirement, set, &kept.outputs, [kept.poison, fresh])?;
        self.measured.checked_launches += 1;
        let Found::Wrong(what) = found else {
            self.note(found);
            return Ok(Some(kept));
        };
        // The reference could be the one that changed its mind.
        let first = check::outputs(subject, set)?;
        let set = block.as_it_was(subject, &self.inputs, kept.place.clone(), fresh)?;
        ask_reference(subject, set, control, watch)?;
        let wrong = match check::changed(subject, set, &first)? {
            Some(name) => format!("reference: output `{name}` of two launches on the same inputs differs"),
            None => format!("test: {what}"),
        };
        self.note(Found::Wrong(wrong));
        Ok(Some(kept))
    }
}

/// What the test wrote in a timed launch.
struct Kept {
    /// The set, and what its inputs were.
    place: (usize, Option<Patch>),
    /// What the outputs held before.
    poison: u32,
    outputs: Vec<Vec<u8>>,
}

/// Launches a copy of the reference on buffers that the test had.
fn ask_reference(subject: &Subject<'_>, set: &BufferSet, kernel: Kernel, watch: &mut dyn Watch) -> gpu::Result<()> {
    subject.device.synchronize()?;
    watch.queued("checking of the test by the reference", 1);
    let launched = subject.device.launch(&set.launch(kernel, subject.site));
    launched
        .and_then(|()| subject.device.synchronize())
        .map_err(|error| error.of("reference, after timed launches"))?;
    watch.returned();
    Ok(())
}

fn is_steady(times: &[f64]) -> bool {
    let Some(start) = times.len().checked_sub(2 * WARMUP_WINDOW) else { return false };
    let (before, last) = times[start..].split_at(WARMUP_WINDOW);
    (median(last) / median(before) - 1.0).abs() < STEADY
}
