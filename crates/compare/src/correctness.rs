//! Whether the test computes what the reference computes: both run on the same inputs, in several rounds that are hard to
//! be right in without doing the work.
//!
//! In each round both kernels run twice, in random order, each time with other poison in the outputs, other patterns in the
//! guard zones, and other content of LDS. So an output that is left over, not written, or read from where nothing was
//! written shows. What each kind of round adds is said at [`RoundKind`].

use gpu::Device;
use serde::{Deserialize, Serialize};

use crate::buffers::{Trespass, poison_word, word_without_zero_bytes};
use crate::dtype::Dtype;
use crate::expected::{Expected, ExpectedOutput};
use crate::fill::{Fill, Source};
use crate::mismatch::Mismatches;
use crate::random::Random;
use crate::rig::{BufferSet, Loaded, Subject};
use crate::site::file::Role;
use crate::site::{Buffer, Site};
use crate::stats::Stats;
use crate::watch::Watch;

/// What is special about a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundKind {
    /// Modules loaded and buffers allocated anew.
    Fresh,
    /// Other inputs in the buffers of the round before: a result remembered by pointer is wrong.
    SameBuffers,
    /// The inputs of the round before but for a few elements far from their begin: a result remembered by a look at the
    /// input is wrong.
    Perturbed,
    /// Fresh, with inputs of both signs where the site has but one: errors that a sum of positive numbers hides.
    Signed,
}

impl RoundKind {
    /// In reports.
    pub fn name(self) -> &'static str {
        match self {
            RoundKind::Fresh => "the site's inputs",
            RoundKind::SameBuffers => "other inputs in the same buffers",
            RoundKind::Perturbed => "a few elements moved",
            RoundKind::Signed => "inputs of both signs",
        }
    }
}

/// The rounds of a run, in order: three kinds of inputs beside the site's own.
pub const ROUNDS: [RoundKind; 4] = [RoundKind::Fresh, RoundKind::Signed, RoundKind::SameBuffers, RoundKind::Perturbed];

/// Of the mismatches of an output, so many are shown one by one.
const SHOWN_MISMATCHES: usize = 8;

/// What one round saw.
#[derive(Clone, Debug)]
pub struct Round {
    /// What was special.
    pub kind: RoundKind,
    /// Its inputs' seed.
    pub seed: u64,
    /// Each compared buffer.
    pub outputs: Vec<RoundOutput>,
}

/// One output in one round.
#[derive(Clone, Debug)]
pub struct RoundOutput {
    /// The argument.
    pub name: String,
    /// Reference against test.
    pub stats: Stats,
    /// Where they differ.
    pub mismatches: Option<Mismatches>,
    /// Units (elements, or bytes where elements share bytes) that neither kernel wrote.
    pub untouched: u64,
    /// Units of the output.
    pub units: u64,
    /// Units that one wrote and the other did not.
    pub one_sided: u64,
}

/// What is wrong with one kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Conduct {
    /// Units that changed from launch to launch with the same inputs, over all rounds.
    pub unrepeatable: u64,
    /// Writes outside the buffers.
    pub trespasses: Vec<Trespass>,
    /// Inputs that were not the same after a launch.
    pub changed_inputs: Vec<String>,
}

impl Conduct {
    fn note(&mut self, trespasses: Vec<Trespass>, changed: Vec<String>) {
        for trespass in trespasses {
            if self.trespasses.len() < 10 && !self.trespasses.iter().any(|known| known.buffer == trespass.buffer) {
                self.trespasses.push(trespass);
            }
        }
        for name in changed {
            if !self.changed_inputs.contains(&name) {
                self.changed_inputs.push(name);
            }
        }
    }
}

/// Everything that the rounds saw.
#[derive(Debug, Default)]
pub struct Observed {
    /// The rounds.
    pub rounds: Vec<Round>,
    /// The reference.
    pub reference: Conduct,
    /// The test.
    pub test: Conduct,
    /// Content of the buffers of the last round, by number: what timing works on.
    pub inputs: Vec<Vec<u8>>,
    /// What the reference made of them.
    pub expected_reference: Expected,
    /// What the test made of them; the same as the reference's when all bits are.
    pub expected_test: Expected,
}

/// Runs all rounds. The site's own inputs come from `own_seed`, those of the other rounds from others.
///
/// # Errors
/// What the device reports; a fill that cannot be made, as a driver's error of kind `BadLaunch`.
pub fn observe(subject: &Subject<'_>, own_seed: u64, watch: &mut dyn Watch) -> gpu::Result<Observed> {
    let mut random = Random::new(own_seed ^ std::process::id() as u64 ^ time_seed());
    let mut observed = Observed::default();
    let mut rig: Option<Rig> = None;
    for (number, kind) in ROUNDS.into_iter().enumerate() {
        watch.progress("correctness", number as u64, ROUNDS.len() as u64);
        let last = number + 1 == ROUNDS.len();
        let seed = seed_of(own_seed, kind);
        if kind == RoundKind::Perturbed {
            perturb(subject.site, &mut observed.inputs, &mut random);
        } else {
            observed.inputs = Vec::new(); // before the next ones take memory
            observed.inputs = inputs(subject.site, seed, kind == RoundKind::Signed)?;
        }
        if matches!(kind, RoundKind::Fresh | RoundKind::Signed)
            && let Some(old) = rig.take()
        {
            old.tear_down(subject.device)?;
        }
        let rig = match &mut rig {
            Some(rig) => rig,
            None => rig.insert(Rig::set_up(subject, &mut random)?),
        };
        let mut results: [Option<Expected>; 2] = [None, None];
        let mut order = [0, 1];
        random.shuffle(&mut order);
        for side in order {
            let what = ["reference", "test"][side];
            let (expected, conduct) = rig.run(subject, side, what, &observed.inputs, &mut random, watch)?;
            let own = if side == 0 { &mut observed.reference } else { &mut observed.test };
            own.unrepeatable += conduct.unrepeatable;
            own.note(conduct.trespasses, conduct.changed_inputs);
            results[side] = Some(expected);
        }
        let [Some(reference), Some(test)] = results else { continue };
        observed.rounds.push(Round { kind, seed, outputs: compare(subject.site, &reference, &test)? });
        if last {
            (observed.expected_reference, observed.expected_test) = (reference, test);
        }
    }
    if let Some(rig) = rig {
        rig.tear_down(subject.device)?;
    }
    watch.progress("correctness", ROUNDS.len() as u64, ROUNDS.len() as u64);
    Ok(observed)
}

/// Patterns and orders differ from run to run, so that no kernel can be made for them; results do not depend on them.
fn time_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// The site's own inputs come with the seed itself, in [`RoundKind::Fresh`].
fn seed_of(seed: u64, kind: RoundKind) -> u64 {
    match kind {
        RoundKind::Fresh => seed,
        RoundKind::SameBuffers | RoundKind::Perturbed => seed.wrapping_add(1),
        RoundKind::Signed => seed.wrapping_add(2),
    }
}

/// The content of each buffer with a fill.
pub fn inputs(site: &Site, seed: u64, signed: bool) -> gpu::Result<Vec<Vec<u8>>> {
    let mut source = Source::new(seed);
    let content = site.buffers().map(|(name, buffer)| {
        let Some(fill) = &buffer.fill else { return Ok(Vec::new()) };
        let fill = if signed { with_both_signs(fill, buffer.dtype) } else { fill.clone() };
        let mut content = vec![0; buffer.bytes as usize];
        let filled = source.fill(&fill, buffer.dtype, &buffer.shape, &mut content);
        filled.map_err(|why| gpu::Error::new(gpu::ErrorKind::BadLaunch, format!("argument `{name}`: {why}")))?;
        Ok(content)
    });
    content.collect()
}

/// The same fill with values of both signs, where it has one sign only and its type has signs. Numbers that steer the
/// kernel (constants, ranges, files, integers) stay.
fn with_both_signs(fill: &Fill, dtype: Dtype) -> Fill {
    if !dtype.is_float() {
        return fill.clone();
    }
    match fill {
        Fill::Uniform { low, high } if *low >= 0.0 && *high > 0.0 => Fill::Uniform { low: -high, high: *high },
        Fill::MaskedBytes { mask } if dtype.bits() == 8 => Fill::MaskedBytes { mask: mask | 0x80 },
        Fill::Special { fill, rate } => Fill::Special { fill: Box::new(with_both_signs(fill, dtype)), rate: *rate },
        other => other.clone(),
    }
}

/// Swaps a few pairs of elements in each random input, none of them near its begin.
fn perturb(site: &Site, inputs: &mut [Vec<u8>], random: &mut Random) {
    for ((_, buffer), content) in site.buffers().zip(inputs) {
        let is_random = |fill: &Fill| !matches!(fill, Fill::Constant(_) | Fill::Range { .. } | Fill::File(_));
        if !buffer.fill.as_ref().is_some_and(is_random) || !buffer.dtype.is_float() {
            continue;
        }
        let unit = unit_of(buffer);
        let units = content.len() / unit;
        // The first half stays as it is; the swaps are such that something changes.
        for _ in 0..64 {
            let half = units / 2;
            if units - half < 2 {
                break;
            }
            let mut draw = || half + random.below((units - half) as u64) as usize;
            let (a, b) = (draw(), draw());
            for byte in 0..unit {
                content.swap(a * unit + byte, b * unit + byte);
            }
        }
    }
}

/// Bytes in which writing is told from not writing.
fn unit_of(buffer: &Buffer) -> usize {
    match buffer.dtype.bits() {
        bits if bits % 8 == 0 => bits as usize / 8,
        _ => 1,
    }
}

/// Both kernels loaded, and the buffers that they share.
struct Rig {
    kernels: [Loaded; 2],
    set: BufferSet,
}

impl Rig {
    fn set_up(subject: &Subject<'_>, random: &mut Random) -> gpu::Result<Rig> {
        let Subject { device, site, layout, kernel, .. } = *subject;
        let reference = Loaded::load(device, subject.reference, kernel)?;
        let test = Loaded::load(device, subject.test, kernel)?;
        Ok(Rig { kernels: [reference, test], set: BufferSet::allocate(device, site, layout, random, None)? })
    }

    fn tear_down(self, device: &dyn Device) -> gpu::Result<()> {
        self.set.free(device)?;
        self.kernels.into_iter().try_for_each(|kernel| kernel.unload(device))
    }

    /// Two launches of one kernel with the same inputs.
    fn run(
        &mut self,
        subject: &Subject<'_>,
        side: usize,
        what: &str,
        inputs: &[Vec<u8>],
        random: &mut Random,
        watch: &mut dyn Watch,
    ) -> gpu::Result<(Expected, Conduct)> {
        let Subject { device, site, .. } = *subject;
        let kernel = self.kernels[side].kernel;
        let mut conduct = Conduct::default();
        let mut outputs: Vec<ExpectedOutput> = Vec::new();
        let first_poison = poison_word(random, 0);
        let second_poison = poison_word(random, first_poison);
        for (launch, poison) in [first_poison, second_poison].into_iter().enumerate() {
            self.set.prepare(device, site, inputs, poison, random)?;
            if let Some(filler) = &subject.filler {
                filler.fill(device, word_without_zero_bytes(random))?;
            }
            device.synchronize()?;
            watch.queued(what, 1);
            let launched = device.launch(&self.set.launch(kernel, site)).and_then(|()| device.synchronize());
            launched.map_err(|error| error.of(what))?;
            watch.returned();
            conduct.note(self.set.trespasses(device, site)?, self.changed_inputs(device, site, inputs)?);
            if launch == 0 {
                outputs = self.read_outputs(device, site)?;
            } else {
                for output in &mut outputs {
                    let poison = (first_poison, second_poison);
                    conduct.unrepeatable += self.hold_against(device, output, poison)?;
                }
            }
        }
        Ok((Expected { outputs }, conduct))
    }

    fn read_outputs(&self, device: &dyn Device, site: &Site) -> gpu::Result<Vec<ExpectedOutput>> {
        let compared = self.set.each(site).filter(|(_, _, buffer, _)| buffer.is_compared());
        compared
            .map(|(number, name, buffer, _)| {
                Ok(ExpectedOutput {
                    number,
                    name: name.to_owned(),
                    unit: unit_of(buffer),
                    content: self.set.read_all(device, number)?,
                    untouched: Vec::new(),
                })
            })
            .collect()
    }

    /// The second launch's output against the first's: units that hold both poisons were not written, others must be the
    /// same. Returns how many are not.
    fn hold_against(
        &self,
        device: &dyn Device,
        output: &mut ExpectedOutput,
        (first, second): (u32, u32),
    ) -> gpu::Result<u64> {
        let (first, second) = (first.to_le_bytes(), second.to_le_bytes());
        let (unit, mut unrepeatable) = (output.unit, 0);
        let ExpectedOutput { content, untouched, number, .. } = output;
        self.set.read_in_chunks(device, *number, |offset, found| {
            let Some(expected) = content.get_mut(offset..offset + found.len()) else { return false };
            if expected == found {
                return true;
            }
            for (at, (was, is)) in expected.chunks_mut(unit).zip(found.chunks(unit)).enumerate() {
                if was == is {
                    continue;
                }
                let start = offset + at * unit;
                let holds = |bytes: &[u8], poison: [u8; 4]| {
                    bytes.iter().enumerate().all(|(byte, value)| *value == poison[(start + byte) % 4])
                };
                if holds(was, first) && holds(is, second) {
                    let number = start / unit;
                    if untouched.len() <= number / 64 {
                        untouched.resize(number / 64 + 1, 0);
                    }
                    untouched[number / 64] |= 1 << (number % 64);
                    was.fill(0);
                } else {
                    unrepeatable += 1;
                }
            }
            true
        })?;
        Ok(unrepeatable)
    }

    fn changed_inputs(&self, device: &dyn Device, site: &Site, inputs: &[Vec<u8>]) -> gpu::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (number, name, buffer, _) in self.set.each(site).filter(|(_, _, buffer, _)| buffer.role == Role::In) {
            let Some(input) = inputs.get(number) else { continue };
            debug_assert_eq!(input.len() as u64, buffer.bytes);
            let mut same = true;
            self.set.read_in_chunks(device, number, |offset, found| {
                same = input.get(offset..offset + found.len()) == Some(found);
                same
            })?;
            if !same {
                changed.push(name.to_owned());
            }
        }
        Ok(changed)
    }
}

fn compare(site: &Site, reference: &Expected, test: &Expected) -> gpu::Result<Vec<RoundOutput>> {
    let buffers: Vec<&Buffer> = site.buffers().map(|(_, buffer)| buffer).collect();
    let pairs = reference.outputs.iter().zip(&test.outputs);
    pairs
        .map(|(a, b)| {
            let buffer = buffers[a.number];
            let failed = |why: crate::Error| gpu::Error::new(gpu::ErrorKind::Driver, format!("`{}`: {why}", a.name));
            let stats = Stats::of(buffer.dtype, buffer.elements, &a.content, &b.content).map_err(failed)?;
            let mismatches = (stats.mismatches > 0)
                .then(|| {
                    Mismatches::of(buffer.dtype, &buffer.shape, SHOWN_MISMATCHES, &a.content, &b.content)
                        .map_err(failed)
                })
                .transpose()?;
            let words = a.untouched.len().max(b.untouched.len());
            let word = |bits: &[u64], at: usize| bits.get(at).copied().unwrap_or_default();
            let count = |figure: fn(u64, u64) -> u64| -> u64 {
                let each = (0..words).map(|at| figure(word(&a.untouched, at), word(&b.untouched, at)).count_ones());
                each.map(u64::from).sum()
            };
            Ok(RoundOutput {
                name: a.name.clone(),
                stats,
                mismatches,
                untouched: count(|a, b| a & b),
                units: (a.content.len() / a.unit.max(1)) as u64,
                one_sided: count(|a, b| a ^ b),
            })
        })
        .collect()
}
