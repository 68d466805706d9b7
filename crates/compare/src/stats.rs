//! What two outputs have in common, in one pass over their bytes at memory speed on all cores.
//!
//! Every element is looked at. Sums and maxima are over the pairs of which both are finite; the others are counted, and
//! pairs of which one is NaN or infinite and the other is not the same are counted apart, so that NaN is never skipped
//! into a pass. Sums are of f64: 64 terms in each of eight lanes, those joined in a fixed tree, and all above that
//! compensated (Knuth's two-sum), chunk by chunk in order: the result does not depend on the number of threads, on the
//! pieces in which the outputs come, nor on the machine's vector width.

mod element;
mod lanes;
mod narrow;
mod partial;
mod sum;
mod wide;

use crate::dtype::Dtype;
use crate::error::Result;
use crate::pieces::{Cutter, Run};
use narrow::Histogram;
use partial::Partial;
use rayon::prelude::*;

/// Facts of one output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Elements that are not 0 (NaN is not 0).
    pub nonzero: u64,
    /// Elements that are NaN.
    pub nan: u64,
    /// Elements that are infinite.
    pub infinite: u64,
    /// The bits that all elements have, if there are elements and all have the same.
    pub constant: Option<u64>,
}

/// Facts of two outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Their type.
    pub dtype: Dtype,
    /// Pairs compared: all of them.
    pub elements: u64,
    /// Pairs of which both are finite.
    pub finite: u64,
    /// Pairs whose bits differ.
    pub mismatches: u64,
    /// Pairs of which one is NaN or infinite and the other is not the same (all NaN are the same).
    pub special_mismatches: u64,
    /// The largest |reference - test|.
    pub max_abs: f64,
    /// The largest |reference - test| / |reference|; infinite where only the reference is 0.
    pub max_rel: f64,
    /// The largest distance in units in the last place.
    pub max_ulp: u64,
    /// The cosine of the angle between the outputs; none when one has no length, or a length that f64 cannot hold.
    pub cos: Option<f64>,
    /// The length of the difference relative to the reference's; infinite for a reference that is 0; none when f64
    /// cannot hold it or nothing is finite.
    pub relative_norm: Option<f64>,
    /// The reference.
    pub reference: Side,
    /// The test.
    pub test: Side,
}

impl Stats {
    /// Compares two outputs that lie in memory.
    ///
    /// # Errors
    /// Sizes that are not those of `elements` elements.
    pub fn of(dtype: Dtype, elements: u64, reference: &[u8], test: &[u8]) -> Result<Stats> {
        let mut comparison = Comparison::new(dtype, elements)?;
        comparison.add(reference, test)?;
        comparison.finish()
    }

    /// Whether there are elements, and all bits are the same.
    pub fn is_identical(&self) -> bool {
        self.elements > 0 && self.mismatches == 0
    }
}

/// A comparison of outputs that come in pieces.
#[derive(Debug)]
pub struct Comparison {
    dtype: Dtype,
    elements: u64,
    cutter: Cutter,
    total: Total,
}

/// What was found so far.
#[derive(Debug)]
enum Total {
    /// Of types of at most 8 bits, how often each pair of codes occurs: all else follows.
    Narrow(Histogram),
    /// Of wider types.
    Wide(Partial),
}

impl Comparison {
    /// Begins; `elements` is how many each output has.
    ///
    /// # Errors
    /// More elements than memory can hold.
    pub fn new(dtype: Dtype, elements: u64) -> Result<Comparison> {
        let total =
            if dtype.bits() > 8 { Total::Wide(Partial::default()) } else { Total::Narrow(Histogram::new(dtype)) };
        Ok(Comparison { dtype, elements, cutter: Cutter::new(dtype, elements)?, total })
    }

    /// Takes the next piece of both outputs, of any size.
    ///
    /// # Errors
    /// Pieces of different sizes, or more bytes than the outputs have.
    pub fn add(&mut self, reference: &[u8], test: &[u8]) -> Result<()> {
        let (dtype, total) = (self.dtype, &mut self.total);
        self.cutter.add(reference, test, |run| total.add(dtype, run))
    }

    /// Ends.
    ///
    /// # Errors
    /// Fewer bytes than the outputs have.
    pub fn finish(self) -> Result<Stats> {
        self.cutter.finish()?;
        let partial = match self.total {
            Total::Narrow(histogram) => histogram.partial(),
            Total::Wide(partial) => partial,
        };
        Ok(partial.stats(self.dtype, self.elements))
    }
}

impl Total {
    fn add(&mut self, dtype: Dtype, run: Run<'_>) {
        match self {
            Total::Narrow(total) => total.join(&narrow::count(dtype, run)),
            Total::Wide(total) => {
                let partials: Vec<Partial> = run.chunks().map(|chunk| wide::chunk(dtype, chunk)).collect();
                partials.iter().for_each(|partial| total.join(partial));
            }
        }
    }
}
