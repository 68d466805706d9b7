//! The outputs of both kernels of one round, held against each other. What neither wrote is counted and not compared.

use crate::correctness::RoundOutput;
use crate::dtype::Class;
use crate::expected::{Expected, ExpectedOutput};
use crate::mismatch::Mismatches;
use crate::site::{Buffer, Site};
use crate::stats::Stats;

/// Of the mismatches of an output, so many are shown one by one.
const SHOWN_MISMATCHES: usize = 8;

/// Compares each output.
///
/// # Errors
/// Outputs of other sizes than the site's, as a driver's error.
pub fn compare(site: &Site, reference: &Expected, test: &Expected) -> gpu::Result<Vec<RoundOutput>> {
    let buffers: Vec<&Buffer> = site.buffers().map(|(_, buffer)| buffer).collect();
    let pairs = reference.outputs.iter().zip(&test.outputs);
    pairs.filter_map(|(a, b)| Some(compare_one(buffers.get(a.number)?, a, b))).collect()
}

fn compare_one(buffer: &Buffer, a: &ExpectedOutput, b: &ExpectedOutput) -> gpu::Result<RoundOutput> {
    let failed = |why: crate::Error| gpu::Error::new(gpu::ErrorKind::Driver, format!("`{}`: {why}", a.name));
    let mut stats = Stats::of(buffer.dtype, buffer.elements, &a.content, &b.content).map_err(failed)?;
    let mismatches = (stats.mismatches > 0)
        .then(|| Mismatches::of(buffer.dtype, &buffer.shape, SHOWN_MISMATCHES, &a.content, &b.content).map_err(failed));
    let words = a.untouched.len().max(b.untouched.len());
    let word = |output: &ExpectedOutput, at: usize| output.untouched.get(at).copied().unwrap_or_default();
    let count = |figure: fn(u64, u64) -> u64| -> u64 {
        (0..words).map(|at| u64::from(figure(word(a, at), word(b, at)).count_ones())).sum()
    };
    let untouched = match buffer.dtype.bits() % 8 {
        0 => count(|a, b| a & b),
        _ if words == 0 => 0,
        bits => untouched_elements(buffer.elements, bits.into(), |byte| a.is_untouched(byte) && b.is_untouched(byte)),
    };
    leave_out(&mut stats, untouched);
    Ok(RoundOutput {
        name: a.name.clone(),
        stats,
        mismatches: mismatches.transpose()?,
        untouched,
        elements: buffer.elements,
        only_by_reference: count(|a, b| !a & b),
        only_by_test: count(|a, b| a & !b),
    })
}

/// Elements of which no byte was written, where elements share bytes.
fn untouched_elements(elements: u64, bits: u64, is_untouched: impl Fn(usize) -> bool) -> u64 {
    let bytes = |element: u64| (element * bits / 8)..=((element + 1) * bits - 1) / 8;
    (0..elements).filter(|element| bytes(*element).all(|byte| is_untouched(byte as usize))).count() as u64
}

/// Elements that neither wrote stand as zeros on both sides; they are no evidence.
fn leave_out(stats: &mut Stats, untouched: u64) {
    stats.elements -= untouched.min(stats.elements);
    stats.finite -= untouched.min(stats.finite);
    if untouched == 0 || stats.dtype.classify(0) == Class::Zero {
        return;
    }
    for side in [&mut stats.reference, &mut stats.test] {
        side.nonzero -= untouched.min(side.nonzero); // a scale of all zero bits is no zero
    }
}
