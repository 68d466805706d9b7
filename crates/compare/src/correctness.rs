//! Whether the test computes what the reference computes: both run on the same inputs, in several rounds that are hard to
//! be right in without doing the work.
//!
//! In each round both kernels run twice, in random order, each time with other poison in the outputs, other patterns in the
//! guard zones, and other content of LDS. So an output that is left over, not written, or read from where nothing was
//! written shows. What each kind of round adds is said at [`RoundKind`].

mod inputs;
mod outputs;

use gpu::{Device, ErrorKind, Kernel};
use serde::{Deserialize, Serialize};

use crate::buffers::{Trespass, is_poison, poison_word, word_without_zero_bytes};
use crate::expected::{Expected, ExpectedOutput};
use crate::mismatch::Mismatches;
use crate::random::Random;
use crate::rig::{BufferSet, Loaded, Subject};
use crate::site::Site;
use crate::site::file::Role;
use crate::stats::Stats;
use crate::watch::Watch;
use inputs::{Inputs, seed_of};

/// What is special about a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundKind {
    /// Modules loaded and buffers allocated anew. The reference runs before the test is loaded, and once more after it has
    /// run: both share a process, and a test could change what the reference computes.
    Fresh,
    /// Other inputs in the buffers of the round before: a result remembered by pointer is wrong.
    SameBuffers,
    /// The inputs of the round before but for a few elements far from their begin: a result remembered by a look at the
    /// input is wrong.
    Perturbed,
    /// As fresh, with inputs of both signs where the site has but one: errors that a sum of positive numbers hides.
    Signed,
}

impl RoundKind {
    /// In reports. `has_other_inputs`: whether its inputs were those of no round before.
    pub fn name(self, has_other_inputs: bool) -> &'static str {
        match self {
            RoundKind::Fresh => "the site's inputs",
            _ if !has_other_inputs => "the same inputs again",
            RoundKind::SameBuffers => "other inputs in the same buffers",
            RoundKind::Perturbed => "a few elements replaced",
            RoundKind::Signed => "inputs of both signs",
        }
    }

    /// Whether modules are loaded and buffers allocated for it.
    fn begins_anew(self) -> bool {
        matches!(self, RoundKind::Fresh | RoundKind::Signed)
    }
}

/// The rounds of a run, in order: three kinds of inputs beside the site's own.
pub const ROUNDS: [RoundKind; 4] = [RoundKind::Fresh, RoundKind::Signed, RoundKind::SameBuffers, RoundKind::Perturbed];

/// What one round saw.
#[derive(Clone, Debug)]
pub struct Round {
    /// What was special.
    pub kind: RoundKind,
    /// Its inputs' seed.
    pub seed: u64,
    /// Whether its inputs were those of no round before; of the first round they are.
    pub has_other_inputs: bool,
    /// Each compared buffer.
    pub outputs: Vec<RoundOutput>,
}

impl Round {
    /// In reports.
    pub fn name(&self) -> &'static str {
        self.kind.name(self.has_other_inputs)
    }
}

/// One output in one round.
#[derive(Clone, Debug)]
pub struct RoundOutput {
    /// The argument.
    pub name: String,
    /// Reference against test, without the elements that neither wrote.
    pub stats: Stats,
    /// Where they differ.
    pub mismatches: Option<Mismatches>,
    /// Elements that neither kernel wrote.
    pub untouched: u64,
    /// Elements of the output.
    pub elements: u64,
    /// Units (elements, or bytes where elements share bytes) that the reference wrote and the test did not.
    pub only_by_reference: u64,
    /// Units that the test wrote and the reference did not.
    pub only_by_test: u64,
}

impl RoundOutput {
    /// Units that one wrote and the other did not.
    pub fn one_sided(&self) -> u64 {
        self.only_by_reference + self.only_by_test
    }
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
    /// Of the test: whether the reference computed something else after it had run.
    #[serde(default)]
    pub disturbs_reference: bool,
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
    /// Buffers that the reference reads and writes, and left as they were in all rounds.
    pub unchanged: Vec<String>,
    /// Content of the buffers of the last round, by number: what timing works on.
    pub inputs: Vec<Vec<u8>>,
}

/// Runs all rounds. The site's own inputs come from `own_seed`, those of the other rounds from others.
///
/// # Errors
/// What the device reports; a fill that cannot be made, as a driver's error of kind `BadLaunch`.
pub fn observe(subject: &Subject<'_>, own_seed: u64, watch: &mut dyn Watch) -> gpu::Result<Observed> {
    let mut random = Random::new(own_seed ^ std::process::id() as u64 ^ time_seed());
    let (mut observed, mut inputs) = (Observed::default(), Inputs::default());
    let mut changes = Changes::of(subject.site);
    let mut rig: Option<Rig> = None;
    for (number, kind) in ROUNDS.into_iter().enumerate() {
        watch.progress("correctness", number as u64, ROUNDS.len() as u64);
        let has_other_inputs = inputs.next(subject.site, own_seed, kind)?;
        if kind.begins_anew()
            && let Some(old) = rig.take()
        {
            old.tear_down(subject.device)?;
        }
        let rig = match &mut rig {
            Some(rig) => rig,
            None => rig.insert(Rig::set_up(subject, &mut random)?),
        };
        let [reference, test] = rig.round(subject, kind, inputs.content(), &mut observed, &mut random, watch)?;
        changes.note(&reference, inputs.content());
        let outputs = outputs::compare(subject.site, &reference, &test)?;
        observed.rounds.push(Round { kind, seed: seed_of(own_seed, kind), has_other_inputs, outputs });
    }
    if let Some(rig) = rig {
        rig.tear_down(subject.device)?;
    }
    observed.inputs = inputs.into_content();
    observed.unchanged = changes.unchanged;
    watch.progress("correctness", ROUNDS.len() as u64, ROUNDS.len() as u64);
    Ok(observed)
}

/// Which buffers that are read and written were never changed. There is no poison in them: two kernels that do nothing leave
/// the same behind.
struct Changes {
    unchanged: Vec<String>,
}

impl Changes {
    fn of(site: &Site) -> Changes {
        let both = site.buffers().filter(|(_, buffer)| buffer.role == Role::InOut);
        Changes { unchanged: both.map(|(name, _)| name.to_owned()).collect() }
    }

    fn note(&mut self, reference: &Expected, inputs: &[Vec<u8>]) {
        let is_changed =
            |output: &ExpectedOutput| inputs.get(output.number).is_none_or(|input| *input != output.content);
        self.unchanged
            .retain(|name| !reference.outputs.iter().any(|output| output.name == *name && is_changed(output)));
    }
}

/// Patterns and orders differ from run to run, so that no kernel can be made for them; results do not depend on them.
fn time_seed() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| now.as_nanos() as u64)
}

/// Both kernels, and the buffers that they share.
struct Rig {
    /// Each is loaded when it runs first.
    kernels: [Option<Loaded>; 2],
    set: BufferSet,
}

/// The reference's place in a pair.
const REFERENCE: usize = 0;
/// The test's.
const TEST: usize = 1;
/// What is launched, for those who watch.
const NAMES: [&str; 2] = ["reference", "test"];

impl Rig {
    fn set_up(subject: &Subject<'_>, random: &mut Random) -> gpu::Result<Rig> {
        let set = BufferSet::allocate(subject.device, subject.site, subject.layout, random)?;
        Ok(Rig { kernels: [None, None], set })
    }

    fn tear_down(self, device: &dyn Device) -> gpu::Result<()> {
        self.set.free(device)?;
        self.kernels.into_iter().flatten().try_for_each(|kernel| kernel.unload(device))
    }

    fn kernel(&mut self, subject: &Subject<'_>, side: usize) -> gpu::Result<Kernel> {
        if let Some(loaded) = &self.kernels[side] {
            return Ok(loaded.kernel);
        }
        let image = [subject.reference, subject.test][side];
        let loaded = Loaded::load(subject.device, image, subject.kernel)?;
        Ok(self.kernels[side].insert(loaded).kernel)
    }

    /// Runs both kernels: what the reference made of the inputs, and what the test did.
    fn round(
        &mut self,
        subject: &Subject<'_>,
        kind: RoundKind,
        inputs: &[Vec<u8>],
        observed: &mut Observed,
        random: &mut Random,
        watch: &mut dyn Watch,
    ) -> gpu::Result<[Expected; 2]> {
        let mut results = [Expected::default(), Expected::default()];
        let mut order = [REFERENCE, TEST];
        if !kind.begins_anew() {
            random.shuffle(&mut order);
        }
        let mut repeats = true;
        for side in order {
            let (expected, conduct) = self.run(subject, side, inputs, random, watch)?;
            let own = if side == REFERENCE { &mut observed.reference } else { &mut observed.test };
            own.unrepeatable += conduct.unrepeatable;
            own.note(conduct.trespasses, conduct.changed_inputs);
            repeats &= side == TEST || conduct.unrepeatable == 0;
            results[side] = expected;
        }
        if kind.begins_anew() && repeats && !self.repeats(subject, &results[REFERENCE], inputs, random, watch)? {
            // A reference that comes back to what it said changes its mind by itself.
            match self.repeats(subject, &results[REFERENCE], inputs, random, watch)? {
                true => observed.reference.unrepeatable += 1,
                false => observed.test.disturbs_reference = true,
            }
        }
        Ok(results)
    }

    /// Whether one more launch of the reference gives the same.
    fn repeats(
        &mut self,
        subject: &Subject<'_>,
        expected: &Expected,
        inputs: &[Vec<u8>],
        random: &mut Random,
        watch: &mut dyn Watch,
    ) -> gpu::Result<bool> {
        let poison = poison_word(random, 0);
        self.launch(subject, REFERENCE, inputs, poison, random, watch)?;
        self.holds(subject.device, expected, poison)
    }

    /// One launch with fresh inputs, guards, poison and LDS.
    fn launch(
        &mut self,
        subject: &Subject<'_>,
        side: usize,
        inputs: &[Vec<u8>],
        poison: u32,
        random: &mut Random,
        watch: &mut dyn Watch,
    ) -> gpu::Result<()> {
        let Subject { device, site, .. } = *subject;
        let kernel = self.kernel(subject, side)?;
        self.set.prepare(device, site, inputs, poison, random)?;
        if let Some(filler) = &subject.filler {
            filler.fill(device, word_without_zero_bytes(random))?;
        }
        device.synchronize()?;
        watch.queued(NAMES[side], 1);
        let launched = device.launch(&self.set.launch(kernel, site)).and_then(|()| device.synchronize());
        launched.map_err(|error| explain(error, side, site).of(NAMES[side]))?;
        watch.returned();
        Ok(())
    }

    /// Two launches of one kernel with the same inputs.
    fn run(
        &mut self,
        subject: &Subject<'_>,
        side: usize,
        inputs: &[Vec<u8>],
        random: &mut Random,
        watch: &mut dyn Watch,
    ) -> gpu::Result<(Expected, Conduct)> {
        let Subject { device, site, .. } = *subject;
        let mut conduct = Conduct::default();
        let mut outputs: Vec<ExpectedOutput> = Vec::new();
        let first_poison = poison_word(random, 0);
        let second_poison = poison_word(random, first_poison);
        for (launch, poison) in [first_poison, second_poison].into_iter().enumerate() {
            self.launch(subject, side, inputs, poison, random, watch)?;
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
                    unit: buffer.dtype.unit_bytes(),
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
                if is_poison(was, start, first) && is_poison(is, start, second) {
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

    /// Whether the outputs are those; `poison` was in them before the launch.
    fn holds(&self, device: &dyn Device, expected: &Expected, poison: u32) -> gpu::Result<bool> {
        for output in &expected.outputs {
            let unit = output.unit;
            let is_same = |at: usize, expected: &[u8], found: &[u8]| match output.is_untouched(at / unit) {
                true => is_poison(found, at, poison),
                false => expected == found,
            };
            let same = self.set.every_chunk(device, output.number, |start, found| {
                let Some(expected) = output.content.get(start..start + found.len()) else { return false };
                let mut units = expected.chunks(unit).zip(found.chunks(unit)).enumerate();
                match output.untouched.is_empty() {
                    true => expected == found,
                    false => units.all(|(index, (a, b))| is_same(start + index * unit, a, b)),
                }
            })?;
            if !same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn changed_inputs(&self, device: &dyn Device, site: &Site, inputs: &[Vec<u8>]) -> gpu::Result<Vec<String>> {
        let mut changed = Vec::new();
        for (number, name, buffer, _) in self.set.each(site).filter(|(_, _, buffer, _)| buffer.role == Role::In) {
            let Some(input) = inputs.get(number) else { continue };
            debug_assert_eq!(input.len() as u64, buffer.bytes);
            if !self.set.holds(device, number, input)? {
                changed.push(name.to_owned());
            }
        }
        Ok(changed)
    }
}

/// A launch of the reference that is refused is no fault of the edit.
fn explain(error: gpu::Error, side: usize, site: &Site) -> gpu::Error {
    match error.kind() {
        ErrorKind::BadLaunch if side == REFERENCE => gpu::Error::new(
            ErrorKind::BadLaunch,
            format!("{error}; {} may not fit the kernel or the device", site.origin),
        ),
        _ => error,
    }
}
