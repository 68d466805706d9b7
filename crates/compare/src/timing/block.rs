//! What one block of samples works on: kernels loaded anew, and sets of buffers at new addresses.

use std::time::Duration;

use gpu::{Device, Kernel};

use super::fresh::{Inputs, Patch};
use super::measure::CacheMode;
use super::samples::Which;
use crate::buffers::{GUARD_BYTES, poison_word};
use crate::random::Random;
use crate::rig::{BufferSet, Loaded, Subject};
use crate::site::file::Role;

/// The most sets of buffers, and so the most launches of a sample.
const MAX_SETS: u32 = 256;
/// What a set costs beside its buffers and their guards, on average: see [`BufferSet::allocate`].
const SPACER_BYTES: u64 = 2 << 20;
/// A time below this is one of the timestamps' grid.
const SHORTEST_NS: f64 = 100.0;

/// How many sets of buffers there are, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Now.
    pub sets: u32,
    /// At most.
    most: u32,
    /// Bytes of a set without guards.
    set_bytes: u64,
    /// Reads what it writes: restored before each launch, which a batch could not be.
    restores: bool,
}

impl Sizes {
    /// For cold caches so many that they are twice the last cache and one is still free; for hot ones as few as the launches
    /// of a sample, and so many that half the cache holds them. At most half of the memory is taken.
    pub fn of(subject: &Subject<'_>, mode: CacheMode) -> gpu::Result<Sizes> {
        let buffers = || subject.site.buffers().map(|(_, buffer)| buffer);
        let restores = buffers().any(|buffer| buffer.fill.is_some() && is_restored(buffer.role));
        let (count, set_bytes) = buffers().fold((0, 0), |(count, bytes), buffer| (count + 1, bytes + buffer.bytes));
        let cache = subject.device.info().last_level_cache_bytes;
        let fits = subject.device.memory()?.free / 2 / (set_bytes + count * 2 * GUARD_BYTES + SPACER_BYTES);
        let (wanted, fits) = match mode {
            CacheMode::Cold => ((2 * cache).div_ceil(set_bytes.max(1)) + 1, fits),
            CacheMode::Hot => (1, fits.min(cache / 2 / set_bytes.max(1))),
        };
        let most = fits.clamp(1, MAX_SETS.into()) as u32;
        Ok(Sizes { sets: wanted.min(most.into()) as u32, most, set_bytes, restores })
    }

    /// Launches that make a sample of at least `min_sample` of launches of `time_ns`. Each has a set of its own; where there
    /// are too few, more are asked for.
    pub fn launches(&mut self, time_ns: f64, min_sample: Duration) -> u32 {
        if self.restores {
            return 1;
        }
        let wanted = (min_sample.as_nanos() as f64 / time_ns.max(SHORTEST_NS)).ceil() as u32;
        let launches = wanted.clamp(1, self.most);
        self.sets = self.sets.max(launches);
        launches
    }

    /// Bytes of all sets' buffers.
    pub fn rotated_bytes(&self) -> u64 {
        self.set_bytes * u64::from(self.sets)
    }
}

/// One block.
pub struct Block {
    kernels: [Option<Loaded>; 3],
    sets: Vec<BufferSet>,
    /// By set.
    patches: Vec<Option<Patch>>,
    /// The sets of the sample at hand.
    first: usize,
    launches: usize,
    /// Holds the inputs as they were, where launches change theirs.
    pristine: Option<BufferSet>,
}

/// What a kernel reads and changes is restored before each launch.
fn is_restored(role: Role) -> bool {
    matches!(role, Role::InOut | Role::Scratch)
}

impl Block {
    /// Allocates and fills; no kernel is loaded yet.
    pub fn set_up(subject: &Subject<'_>, inputs: &Inputs<'_>, sizes: Sizes, random: &mut Random) -> gpu::Result<Block> {
        let mut block =
            Block { kernels: [None; 3], sets: Vec::new(), patches: Vec::new(), first: 0, launches: 0, pristine: None };
        block.grow(subject, inputs, sizes, random)?;
        if sizes.restores {
            block.pristine = Some(block.another(subject, inputs, random)?);
        }
        subject.device.synchronize()?;
        Ok(block)
    }

    /// Makes the sets that are missing.
    pub fn grow(
        &mut self,
        subject: &Subject<'_>,
        inputs: &Inputs<'_>,
        sizes: Sizes,
        random: &mut Random,
    ) -> gpu::Result<()> {
        while self.sets.len() < sizes.sets as usize {
            let set = self.another(subject, inputs, random)?;
            self.sets.push(set);
            self.patches.push(None);
        }
        Ok(())
    }

    fn another(&self, subject: &Subject<'_>, inputs: &Inputs<'_>, random: &mut Random) -> gpu::Result<BufferSet> {
        let Subject { device, site, layout, .. } = *subject;
        let mut set = BufferSet::allocate(device, site, layout, random)?;
        let poison = poison_word(random, 0);
        // From the host once, then from set to set; an input that was changed since is put right.
        let Some(first) = self.sets.first() else {
            set.prepare(device, site, inputs.content(), poison, random)?;
            return Ok(set);
        };
        set.prepare(device, site, &[], poison, random)?;
        inputs.exchange(device, first, self.patches.first().and_then(Option::as_ref), None)?;
        set.copy_filled(device, site, first, |_| true)?;
        inputs.exchange(device, first, None, self.patches.first().and_then(Option::as_ref))?;
        Ok(set)
    }

    /// Loads a kernel.
    pub fn load(&mut self, subject: &Subject<'_>, which: Which) -> gpu::Result<()> {
        let image = if which == Which::Test { subject.test } else { subject.reference };
        let loaded = Loaded::load(subject.device, image, subject.kernel).map_err(|error| error.of(which.owner()))?;
        self.kernels[which as usize] = Some(loaded);
        Ok(())
    }

    /// Unloads it.
    pub fn unload(&mut self, device: &dyn Device, which: Which) -> gpu::Result<()> {
        self.kernels[which as usize].take().map_or(Ok(()), |kernel| kernel.unload(device))
    }

    /// A loaded kernel.
    pub fn kernel(&self, which: Which) -> gpu::Result<Kernel> {
        let missing = || gpu::Error::new(gpu::ErrorKind::Driver, format!("the {} is not loaded", which.owner()));
        self.kernels[which as usize].map(|loaded| loaded.kernel).ok_or_else(missing)
    }

    /// Gives all memory back.
    pub fn free(self, device: &dyn Device) -> gpu::Result<()> {
        self.sets.into_iter().chain(self.pristine).try_for_each(|set| set.free(device))
    }

    /// Takes the next sets, one for each launch of a sample.
    pub fn take(&mut self, launches: u32) {
        self.first = (self.first + self.launches) % self.sets.len().max(1);
        self.launches = launches as usize;
    }

    /// The numbers of the sample's sets.
    fn used_numbers(&self) -> impl Iterator<Item = usize> + use<> {
        let (first, count) = (self.first, self.sets.len().max(1));
        (0..self.launches.min(count)).map(move |launch| (first + launch) % count)
    }

    /// The sample's sets.
    pub fn used(&self) -> impl Iterator<Item = &BufferSet> {
        self.used_numbers().map(|number| &self.sets[number])
    }

    /// Poison in the outputs of the sample's sets, and one element of each input set that is new.
    pub fn refresh(
        &mut self,
        subject: &Subject<'_>,
        inputs: &Inputs<'_>,
        poison: u32,
        random: &mut Random,
    ) -> gpu::Result<()> {
        for number in self.used_numbers() {
            self.sets[number].poison_outputs(subject.device, subject.site, poison)?;
            self.restore(subject, &self.sets[number])?;
            let new = inputs.draw(random);
            inputs.exchange(subject.device, &self.sets[number], self.patches[number].as_ref(), new.as_ref())?;
            self.patches[number] = new;
        }
        Ok(())
    }

    /// A set of the sample, and what its inputs are.
    pub fn place(&self, position: usize) -> Option<(usize, Option<Patch>)> {
        let number = self.used_numbers().nth(position)?;
        Some((number, self.patches[number].clone()))
    }

    /// A set by number, with its inputs as they were then, and poison in its outputs.
    pub fn as_it_was(
        &mut self,
        subject: &Subject<'_>,
        inputs: &Inputs<'_>,
        (number, patch): (usize, Option<Patch>),
        poison: u32,
    ) -> gpu::Result<&BufferSet> {
        let set = &self.sets[number];
        set.poison_outputs(subject.device, subject.site, poison)?;
        self.restore(subject, set)?;
        inputs.exchange(subject.device, set, self.patches[number].as_ref(), patch.as_ref())?;
        self.patches[number] = patch;
        Ok(&self.sets[number])
    }

    /// What a kernel reads and writes, as it was before.
    pub fn restore(&self, subject: &Subject<'_>, set: &BufferSet) -> gpu::Result<()> {
        match &self.pristine {
            Some(pristine) => set.copy_filled(subject.device, subject.site, pristine, is_restored),
            None => Ok(()),
        }
    }

    /// Everything wrong in the sample's sets: writes outside, inputs that changed.
    pub fn offences(&self, subject: &Subject<'_>, inputs: &Inputs<'_>) -> gpu::Result<Vec<String>> {
        let mut found = Vec::new();
        for (position, set) in self.used().enumerate() {
            found.extend(set.trespasses(subject.device, subject.site)?.iter().map(ToString::to_string));
            found.extend(self.changed_inputs(subject, inputs, position)?);
        }
        Ok(found)
    }

    /// The inputs of one of the sample's sets that a kernel changed.
    pub fn changed_inputs(
        &self,
        subject: &Subject<'_>,
        inputs: &Inputs<'_>,
        position: usize,
    ) -> gpu::Result<Vec<String>> {
        let Some(number) = self.used_numbers().nth(position) else { return Ok(Vec::new()) };
        let patch = self.patches[number].as_ref();
        let changed = inputs.changed(subject.device, subject.site, &self.sets[number], patch)?;
        Ok(changed.into_iter().map(|name| format!("changed its input `{name}`")).collect())
    }

    /// Writes outside, of all sets.
    pub fn all_trespasses(&self, subject: &Subject<'_>) -> gpu::Result<Vec<String>> {
        let mut found = Vec::new();
        for set in &self.sets {
            found.extend(set.trespasses(subject.device, subject.site)?.iter().map(ToString::to_string));
        }
        Ok(found)
    }

    /// Guard zones and inputs of all sets as they should be.
    pub fn put_right(&mut self, subject: &Subject<'_>, inputs: &Inputs<'_>, random: &mut Random) -> gpu::Result<()> {
        let Subject { device, site, .. } = *subject;
        for (set, patch) in self.sets.iter_mut().zip(&self.patches) {
            set.arm(device, random)?;
            // Outputs stay: they are still to be looked at.
            set.write_inputs(device, site, inputs.content(), |role| role == Role::In)?;
            inputs.exchange(device, set, None, patch.as_ref())?;
        }
        device.synchronize()
    }
}
