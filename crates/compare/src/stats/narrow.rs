//! Types of at most eight bits: how often each pair of codes occurs says everything, exactly and in any order.

use super::partial::Partial;
use crate::dtype::{Class, Dtype};
use crate::pieces::{Chunk, Run};
use rayon::prelude::*;

/// Groups of four codes compared at once: equal ones are counted one by one instead of in pairs.
const BLOCK: usize = 64;

/// How often each pair of codes occurs. fp4 is counted by the byte, two elements at once.
#[derive(Clone, Debug)]
pub(super) struct Histogram {
    dtype: Dtype,
    /// Bits of a code: 6, or 8. Tables are no larger than they have to be: that of 6 fits the first-level cache.
    width: u32,
    /// By reference code << width | test code.
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
        let width = if dtype.bits() == 6 { 6 } else { 8 };
        Histogram {
            dtype,
            width,
            pairs: vec![0; 1 << (2 * width)],
            same: std::array::from_fn(|_| vec![0; 1 << width]),
            last: None,
        }
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
        match self.dtype.bits() {
            6 => self.add_groups::<3, 6, { 1 << 12 }>(chunk, chunk.elements, |[a, b, c]: [u8; 3]| {
                let word = u32::from_le_bytes([a, b, c, 0]);
                [0, 6, 12, 18].map(|shift| word >> shift & 63)
            }),
            bits => {
                let bytes = chunk.elements * u64::from(bits) / 8;
                self.add_groups::<4, 8, { 1 << 16 }>(chunk, bytes, |bytes: [u8; 4]| bytes.map(u32::from));
            }
        }
        if self.dtype.bits() == 4 && chunk.elements % 2 == 1 {
            self.last =
                chunk.reference.last().zip(chunk.test.last()).map(|(&a, &b)| (u64::from(a & 15), u64::from(b & 15)));
        }
    }

    /// Counts so many codes; `BYTES` bytes have four of them, of `WIDTH` bits, which make so many `PAIRS`. All is constant so that
    /// no index has to be checked.
    fn add_groups<const BYTES: usize, const WIDTH: u32, const PAIRS: usize>(
        &mut self,
        chunk: Chunk<'_>,
        count: u64,
        codes: impl Fn([u8; BYTES]) -> [u32; 4],
    ) {
        let Some(pairs) = self.pairs.first_chunk_mut::<PAIRS>() else { return };
        let mut same = self.same.each_mut().map(Vec::as_mut_slice);
        let mut add_pairs = |reference: [u32; 4], test: [u32; 4], count: usize| {
            let codes = reference.iter().zip(test).take(count);
            codes.for_each(|(&a, b)| pairs[(a << WIDTH | b) as usize % PAIRS] += 1);
        };
        let whole = (count / 4) as usize;
        let [(references, last_reference), (tests, last_test)] =
            [chunk.reference, chunk.test].map(|bytes| bytes.split_at(whole * BYTES));
        let (references, tests) = (references.as_chunks().0, tests.as_chunks().0);
        for (references, tests) in references.chunks(BLOCK).zip(tests.chunks(BLOCK)) {
            if references.as_flattened() == tests.as_flattened() {
                for &group in references {
                    codes(group).iter().zip(&mut same).for_each(|(&code, table)| table[code as usize] += 1);
                }
            } else {
                for (&reference, &test) in references.iter().zip(tests) {
                    add_pairs(codes(reference), codes(test), 4);
                }
            }
        }
        let [reference, test] = [last_reference, last_test].map(|bytes| {
            let mut group = [0; BYTES];
            group.iter_mut().zip(bytes).for_each(|(byte, &last)| *byte = last);
            codes(group)
        });
        add_pairs(reference, test, count as usize % 4);
    }

    /// Everything that follows.
    pub(super) fn partial(&self) -> Partial {
        let mut pairs = self.pairs.clone();
        for table in &self.same {
            table.iter().enumerate().for_each(|(code, count)| pairs[code << self.width | code] += count);
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
            let (a, b) = (pair >> self.width, pair & ((1 << self.width) - 1));
            total.join(&self.pair(a as u64, b as u64, count));
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
