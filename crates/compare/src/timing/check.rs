//! Holds what a timed launch of the test wrote against what the reference makes of the same inputs afterwards: beside the
//! test, and alone, where the test cannot reach it. Nothing is kept from before, so nothing can be prepared for it.

use gpu::Device;

use crate::buffers::is_poison;
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

/// Outputs that are compared, with their numbers and names.
fn compared<'s>(subject: &Subject<'s>, set: &'s BufferSet) -> impl Iterator<Item = (usize, &'s str, &'s Buffer)> {
    let each = set.each(subject.site).filter(|(_, _, buffer, _)| buffer.is_compared());
    each.map(|(number, name, buffer, _)| (number, name, buffer))
}

/// The outputs in `set`, in the order of the site.
pub fn outputs(subject: &Subject<'_>, set: &BufferSet) -> gpu::Result<Vec<Vec<u8>>> {
    compared(subject, set).map(|(number, ..)| set.read_all(subject.device, number)).collect()
}

/// Holds `outputs` of the test, which held the first poison before, against those of the reference in `set`, which held the
/// second.
pub fn hold(
    subject: &Subject<'_>,
    requirement: Option<&Requirement>,
    set: &BufferSet,
    outputs: &[Vec<u8>],
    poisons: [u32; 2],
) -> gpu::Result<Found> {
    let mut found = Found::Same;
    for ((number, name, buffer), output) in compared(subject, set).zip(outputs) {
        let stats = compare(subject.device, set, number, buffer, output, poisons)?;
        if stats.mismatches > 0 {
            found = Found::OtherBits;
        }
        let is_met = |required: &&Requirement| required.check(&stats).outcome == Outcome::Met;
        if !required(buffer, requirement).iter().all(is_met) {
            let (differ, elements) = (stats.mismatches, stats.elements);
            let what = format!("output `{name}` of a timed launch is wrong: {differ} of {elements} elements differ");
            return Ok(Found::Wrong(what));
        }
    }
    Ok(found)
}

/// The first output in `set` that is not what `outputs` were.
pub fn changed<'s>(subject: &Subject<'s>, set: &'s BufferSet, outputs: &[Vec<u8>]) -> gpu::Result<Option<&'s str>> {
    for ((number, name, _), output) in compared(subject, set).zip(outputs) {
        if !set.holds(subject.device, number, output)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// The reference's output on the device against the test's, `output`.
fn compare(
    device: &dyn Device,
    set: &BufferSet,
    number: usize,
    buffer: &Buffer,
    output: &[u8],
    poisons: [u32; 2],
) -> gpu::Result<Stats> {
    let failed = |why: crate::Error| gpu::Error::new(gpu::ErrorKind::Driver, why.to_string());
    let mut comparison = Comparison::new(buffer.dtype, buffer.elements).map_err(failed)?;
    let mut outcome = Ok(());
    set.read_in_chunks(device, number, |start, reference| {
        let Some(test) = output.get(start..start + reference.len()) else { return false };
        outcome = if reference == test {
            comparison.add(reference, test)
        } else {
            let (mut reference, mut test) = (reference.to_vec(), test.to_vec());
            let unit = buffer.dtype.unit_bytes();
            leave_out_unwritten(&mut reference, &mut test, start, unit, poisons);
            comparison.add(&reference, &test)
        };
        outcome.is_ok()
    })?;
    outcome.and_then(|()| comparison.finish()).map_err(failed)
}

/// What neither kernel wrote holds each one's poison: it becomes zero, which no sum sees.
fn leave_out_unwritten(reference: &mut [u8], test: &mut [u8], start: usize, unit: usize, [poison, fresh]: [u32; 2]) {
    for (index, (a, b)) in reference.chunks_mut(unit).zip(test.chunks_mut(unit)).enumerate() {
        let at = start + index * unit;
        if is_poison(b, at, poison) && is_poison(a, at, fresh) {
            a.fill(0);
            b.fill(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_both_left_alone_is_left_out() {
        let [poison, fresh] = [[1, 2, 3, 4], [5, 6, 7, 8]].map(u32::from_le_bytes);
        // Written by both, by the reference alone, by the test alone, by neither.
        let mut reference = [9, 9, 9, 9, 5, 6, 7, 8];
        let mut test = [9, 8, 3, 4, 0, 6, 3, 4];
        leave_out_unwritten(&mut reference, &mut test, 4, 2, [poison, fresh]);
        assert_eq!((reference, test), ([9, 9, 9, 9, 5, 6, 0, 0], [9, 8, 3, 4, 0, 6, 0, 0]));
    }
}
