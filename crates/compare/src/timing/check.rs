//! Holds what a timed launch of the test wrote against what the reference makes of the same inputs afterwards. Nothing is
//! kept from before, so nothing can be prepared for it.

use gpu::{Device, Kernel};

use crate::judge::required;
use crate::requirement::{Outcome, Requirement};
use crate::rig::{BufferSet, Subject};
use crate::site::Buffer;
use crate::stats::{Comparison, Stats};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The same bits.
    Same,
    /// Other bits, within what is required.
    OtherBits,
    /// What is wrong, and with whom.
    Wrong(String),
}

/// How a check launches a kernel: on the buffers as they were given to the test, with this poison in the outputs.
pub type Launch<'l> = dyn FnMut(Kernel, u32) -> gpu::Result<()> + 'l;

/// The kernels that a check launches.
#[derive(Clone, Copy)]
pub struct References {
    /// The reference.
    pub reference: Kernel,
    /// Its own copy, which says whether the reference can be believed.
    pub control: Kernel,
}

/// Checks the outputs in `set`, which held `poison` before the launch; `fresh` is other poison.
pub fn check(
    subject: &Subject<'_>,
    requirement: Option<&Requirement>,
    set: &BufferSet,
    References { reference, control }: References,
    [poison, fresh]: [u32; 2],
    launch: &mut Launch<'_>,
) -> gpu::Result<Found> {
    let Subject { device, site, .. } = *subject;
    let compared: Vec<(usize, &str, &Buffer)> = set
        .each(site)
        .filter(|(_, _, buffer, _)| buffer.is_compared())
        .map(|(number, name, buffer, _)| (number, name, buffer))
        .collect();
    let mut outputs =
        compared.iter().map(|(number, ..)| set.read_all(device, *number)).collect::<gpu::Result<Vec<_>>>()?;
    launch(reference, fresh)?;
    let (mut found, mut wrong) = (Found::Same, None);
    for ((number, name, buffer), output) in compared.iter().zip(&mut outputs) {
        let stats = compare(device, set, *number, buffer, output, [poison, fresh])?;
        if stats.mismatches > 0 {
            found = Found::OtherBits;
        }
        let is_met = |required: &&Requirement| required.check(&stats).outcome == Outcome::Met;
        if !required(buffer, requirement).iter().all(is_met) {
            let (differ, elements) = (stats.mismatches, stats.elements);
            wrong = Some(format!(
                "test: output `{name}` of a timed launch is wrong: {differ} of {elements} elements differ"
            ));
            break;
        }
    }
    let Some(wrong) = wrong else { return Ok(found) };
    // The reference could be the one that changed its mind.
    for ((number, ..), output) in compared.iter().zip(&mut outputs) {
        *output = set.read_all(device, *number)?;
    }
    launch(control, fresh)?;
    for ((number, name, _), output) in compared.iter().zip(&outputs) {
        let mut same = true;
        set.read_in_chunks(device, *number, |start, found| {
            same = output.get(start..start + found.len()) == Some(found);
            same
        })?;
        if !same {
            return Ok(Found::Wrong(format!("reference: output `{name}` of two launches on the same inputs differs")));
        }
    }
    Ok(Found::Wrong(wrong))
}

/// The reference's output on the device against the test's, `output`.
fn compare(
    device: &dyn Device,
    set: &BufferSet,
    number: usize,
    buffer: &Buffer,
    output: &mut [u8],
    poisons: [u32; 2],
) -> gpu::Result<Stats> {
    let failed = |why: crate::Error| gpu::Error::new(gpu::ErrorKind::Driver, why.to_string());
    let mut comparison = Comparison::new(buffer.dtype, buffer.elements).map_err(failed)?;
    let mut outcome = Ok(());
    set.read_in_chunks(device, number, |start, reference| {
        let Some(test) = output.get_mut(start..start + reference.len()) else { return false };
        if reference != test {
            equate_unwritten(reference, test, start, buffer.dtype.unit_bytes(), poisons.map(u32::to_le_bytes));
        }
        outcome = comparison.add(reference, test);
        outcome.is_ok()
    })?;
    outcome.and_then(|()| comparison.finish()).map_err(failed)
}

/// What neither kernel wrote holds each one's poison, and is no difference.
fn equate_unwritten(reference: &[u8], test: &mut [u8], start: usize, unit: usize, [poison, fresh]: [[u8; 4]; 2]) {
    let holds = |bytes: &[u8], at: usize, poison: [u8; 4]| {
        bytes.iter().enumerate().all(|(byte, value)| *value == poison[(at + byte) % 4])
    };
    for (index, (a, b)) in reference.chunks(unit).zip(test.chunks_mut(unit)).enumerate() {
        let at = start + index * unit;
        if holds(b, at, poison) && holds(a, at, fresh) {
            b.copy_from_slice(a);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_left_alone_is_equated() {
        let (poison, fresh) = ([1, 2, 3, 4], [5, 6, 7, 8]);
        // Written by both, by the reference alone, by the test alone, by neither; the last one where the poison begins with
        // its third byte.
        let reference = [9, 9, 9, 9, 5, 6, 7, 8];
        let mut test = [9, 8, 3, 4, 0, 6, 3, 4];
        equate_unwritten(&reference, &mut test, 4, 2, [poison, fresh]);
        assert_eq!(test, [9, 8, 3, 4, 0, 6, 7, 8]);
    }
}
