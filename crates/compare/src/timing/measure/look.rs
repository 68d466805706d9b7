//! Looks at what timed launches left behind: guard zones, inputs, outputs. Whose it is, is found out by looking after each
//! sample once anything was wrong.

use std::time::Instant;

use gpu::Kernel;

use super::super::block::Block;
use super::super::check::{self, Found};
use super::super::fresh::Patch;
use super::super::samples::{Sample, Which};
use super::{MOST_TOLD, Run};
use crate::buffers::poison_word;
use crate::rig::{BufferSet, Subject};
use crate::watch::Watch;

/// Samples of a kernel that is loaded alone.
const ALONE_SAMPLES: u32 = 3;
/// One in so many blocks is looked at again with the reference alone, where that takes long.
const ALONE_LOOKS: u64 = 3;
/// Outputs are looked at beyond what is due as long as that takes less than this share of the time.
const CHECKING_SHARE: u32 = 3;

/// What the test wrote in a timed launch.
pub(super) struct Kept {
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

impl Run<'_, '_> {
    /// Test and reference, each loaded without the other. A kernel that slows its neighbours down, or changes what they
    /// compute, has none here: what the test wrote beside the reference and what it wrote alone is held against the reference
    /// alone.
    pub(super) fn alone(
        &mut self,
        block: &mut Block,
        number: u32,
        kept: Option<Kept>,
        watch: &mut dyn Watch,
    ) -> gpu::Result<()> {
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

    /// Looks at what a sample left behind: at the guard zones of one of its sets always, at outputs and inputs when that is
    /// due or cheap.
    /// Returns what the test wrote, where that was looked at.
    pub(super) fn look(
        &mut self,
        block: &mut Block,
        which: Which,
        due: bool,
        watch: &mut dyn Watch,
    ) -> gpu::Result<Option<Kept>> {
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
    pub(super) fn look_at_all(&mut self, block: &mut Block) -> gpu::Result<()> {
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
