//! Types of at most eight bits: how often each pair of codes occurs says everything, exactly and in any order.

use super::partial::Partial;
use crate::dtype::{Class, Dtype};
use crate::pieces::{Chunk, Run};
use rayon::prelude::*;

/// Bytes compared at once: equal ones are counted one by one instead of in pairs. A multiple of fp6's three bytes.
const BLOCK: usize = 3072;

/// How often each pair of codes occurs. fp4 is counted by the byte, two elements at once.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    dtype: Dtype,
    /// By reference code * 256 + test code.
    pairs: Vec<u64>,
    /// By the code that both have, in four tables, so that runs of one code do not wait for each other.
    same: [Vec<u64>; 4],
    /// Pairs at the end that fill no byte: fp4's odd one.
    last: Option<(u64, u64)>,
}

/// Counts the pairs of a run.
pub(super) fn count(dtype: Dtype, run: Run<'_>) -> Histogram {
    let empty = || Histogram::new(dtype);
    // A histogram is half a megabyte: work items have 64 chunks at least.
    let counted = run.chunks().with_min_len(64).fold(empty, |mut histogram, chunk| {
        histogram.add(chunk);
        histogram
    });
    counted
        .reduce_with(|mut one, other| {
            one.join(&other);
            one
        })
        .unwrap_or_else(empty)
}

impl Histogram {
    pub(super) fn new(dtype: Dtype) -> Histogram {
        Histogram { dtype, pairs: vec![0; 1 << 16], same: std::array::from_fn(|_| vec![0; 256]), last: None }
    }

    /// Joins another; only one of the two has the end of the outputs.
    pub(super) fn join(&mut self, other: &Histogram) {
        self.pairs.iter_mut().zip(&other.pairs).for_each(|(count, more)| *count += more);
        for (table, more) in self.same.iter_mut().zip(&other.same) {
            table.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
        self.last = self.last.or(other.last);
    }

    fn add(&mut self, chunk: Chunk<'_>) {
        if self.dtype.bits() == 6 {
            return self.add_sixes(chunk);
        }
        let whole = (chunk.elements * u64::from(self.dtype.bits()) / 8) as usize;
        for (reference, test) in chunk.reference[..whole].chunks(BLOCK).zip(chunk.test[..whole].chunks(BLOCK)) {
            if reference == test {
                let (fours, rest) = reference.as_chunks::<4>();
                for four in fours {
                    four.iter().zip(&mut self.same).for_each(|(&code, table)| table[usize::from(code)] += 1);
                }
                rest.iter().for_each(|&code| self.same[0][usize::from(code)] += 1);
            } else {
                for (&a, &b) in reference.iter().zip(test) {
                    self.pairs[usize::from(a) << 8 | usize::from(b)] += 1;
                }
            }
        }
        if self.dtype.bits() == 4 && chunk.elements % 2 == 1 {
            self.last =
                chunk.reference.last().zip(chunk.test.last()).map(|(&a, &b)| (u64::from(a & 15), u64::from(b & 15)));
        }
    }

    fn add_sixes(&mut self, chunk: Chunk<'_>) {
        let groups = chunk.reference.chunks(3).zip(chunk.test.chunks(3));
        for ((reference, test), first) in groups.zip((0_u64..).step_by(4)) {
            let word = |bytes: &[u8]| bytes.iter().rev().fold(0_usize, |word, &byte| word << 8 | usize::from(byte));
            let (mut a, mut b) = (word(reference), word(test));
            for _ in first..chunk.elements.min(first + 4) {
                self.pairs[(a & 63) << 8 | b & 63] += 1;
                (a, b) = (a >> 6, b >> 6);
            }
        }
    }

    /// Everything that follows.
    pub(super) fn partial(&self) -> Partial {
        let mut pairs = self.pairs.clone();
        for table in &self.same {
            table.iter().enumerate().for_each(|(code, count)| pairs[code << 8 | code] += count);
        }
        if self.dtype.bits() == 4 {
            // From pairs of bytes to pairs of their nibbles.
            let bytes = std::mem::replace(&mut pairs, vec![0; 1 << 16]);
            for (pair, count) in bytes.iter().enumerate() {
                let (a, b) = (pair >> 8, pair & 255);
                pairs[(a & 15) << 8 | b & 15] += count;
                pairs[(a >> 4) << 8 | b >> 4] += count;
            }
            if let Some((a, b)) = self.last {
                pairs[(a << 8 | b) as usize] += 1;
            }
        }
        let mut total = Partial::default();
        for (pair, &count) in pairs.iter().enumerate().filter(|&(_, &count)| count > 0) {
            total.join(&self.pair((pair >> 8) as u64, (pair & 255) as u64, count));
        }
        total
    }

    /// What `count` pairs of the same two codes contribute.
    fn pair(&self, a: u64, b: u64, count: u64) -> Partial {
        let dtype = self.dtype;
        let mut partial = Partial { elements: count, mismatches: if a == b { 0 } else { count }, ..Partial::default() };
        let classes = [dtype.classify(a), dtype.classify(b)];
        for ((side, bits), class) in partial.sides.iter_mut().zip([a, b]).zip(classes) {
            side.first = bits;
            side.nonzero = if class == Class::Zero { 0 } else { count };
            side.nan = if class == Class::Nan { count } else { 0 };
            side.infinite = if class == Class::Infinite { count } else { 0 };
        }
        if classes.iter().any(|class| matches!(class, Class::Nan | Class::Infinite)) {
            let same = a == b || classes == [Class::Nan; 2];
            partial.special_mismatches = if same { 0 } else { count };
            return partial;
        }
        partial.finite = count;
        let (x, y, weight) = (dtype.decode(a), dtype.decode(b), count as f64);
        let difference = (x - y).abs();
        partial.sides[0].finite_nonzero = x != 0.0;
        partial.sides[1].finite_nonzero = y != 0.0;
        partial.max_abs = difference;
        partial.max_rel = if difference == 0.0 { 0.0 } else { difference / x.abs() };
        partial.max_ulp = dtype.ulp_distance(a, b).unwrap_or_default();
        let squares = [x * x, y * y, x * y, difference * difference];
        partial.squares.iter_mut().zip(squares).for_each(|(sum, square)| sum.add(weight * square));
        partial
    }
}
