//! Where two outputs differ: the first places, and how all of them lie in the tensor.
//!
//! The tensor is seen as rows and columns: the last dimension is the column, all others together are the row.

mod clusters;
mod map;

use crate::dtype::Dtype;
use crate::error::{Error, Result};
use crate::pieces::{Chunk, Cutter};
use clusters::Clusters;
use map::Map;
use rayon::prelude::*;
use std::fmt;

/// Elements compared at once; they fill whole bytes for every type.
const BLOCK: usize = 512;

/// An element that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Mismatch {
    /// Its indices in the tensor, one for each dimension.
    pub at: Vec<u64>,
    /// The reference's bits.
    pub reference_bits: u64,
    /// The test's bits.
    pub test_bits: u64,
    /// The reference's value.
    pub reference: f64,
    /// The test's value.
    pub test: f64,
    /// Their distance; none with NaN.
    pub ulp: Option<u64>,
    dtype: Dtype,
}

/// All that differs.
#[derive(Clone, Debug)]
pub struct Mismatches {
    /// How many elements differ.
    pub total: u64,
    /// The first of them.
    pub first: Vec<Mismatch>,
    shape: Vec<u64>,
    found: Option<Box<Found>>,
}

/// A search through outputs that come in pieces.
#[derive(Debug)]
pub struct Search {
    dtype: Dtype,
    shape: Vec<u64>,
    grid: Map,
    limit: usize,
    cutter: Cutter,
    found: Option<Box<Found>>,
}

/// What a part of the outputs had; exists where something differs.
#[derive(Clone, Debug)]
struct Found {
    total: u64,
    /// Index, reference's bits, test's bits.
    first: Vec<(u64, u64, u64)>,
    clusters: Clusters,
    map: Map,
}

impl Mismatches {
    /// Searches outputs that lie in memory; `limit` is how many of the first to keep.
    ///
    /// # Errors
    /// Sizes that are not the tensor's.
    pub fn of(dtype: Dtype, shape: &[u64], limit: usize, reference: &[u8], test: &[u8]) -> Result<Mismatches> {
        let mut search = Search::new(dtype, shape, limit)?;
        search.add(reference, test)?;
        search.finish()
    }

    /// Where they are, a line for each fact: ranges of indices, repetitions, boxes that differ as a whole.
    pub fn describe(&self) -> Vec<String> {
        let elements: u64 = self.shape.iter().product();
        let mut lines = vec![format!("{} of {elements} elements differ", self.total)];
        lines.extend(self.found.iter().flat_map(|found| found.clusters.describe(&self.shape, self.total)));
        lines
    }

    /// A drawing of the tensor, at most 64 wide and 16 high; empty when nothing differs.
    pub fn map(&self) -> Vec<String> {
        self.found.as_ref().map_or_else(Vec::new, |found| found.map.draw())
    }
}

impl Search {
    /// Begins.
    ///
    /// # Errors
    /// A shape larger than memory.
    pub fn new(dtype: Dtype, shape: &[u64], limit: usize) -> Result<Search> {
        let elements = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
        let elements = elements.ok_or_else(|| Error::new(format!("shape {shape:?} is larger than memory")))?;
        let cutter = Cutter::new(dtype, elements)?;
        Ok(Search { dtype, shape: shape.to_vec(), grid: Map::new(shape), limit, cutter, found: None })
    }

    /// Takes the next piece of both outputs, of any size.
    ///
    /// # Errors
    /// Pieces of different sizes, or more bytes than the tensor has.
    pub fn add(&mut self, reference: &[u8], test: &[u8]) -> Result<()> {
        let Search { dtype, ref shape, ref grid, limit, ref mut cutter, ref mut found } = *self;
        cutter.add(reference, test, |run| {
            let parts = run.chunks().fold(|| None, |found, chunk| search(dtype, shape, grid, limit, chunk, found));
            let part = parts.reduce(|| None, |one, other| join(one, other, limit));
            *found = join(found.take(), part, limit);
        })
    }

    /// Ends.
    ///
    /// # Errors
    /// Fewer bytes than the tensor has.
    pub fn finish(self) -> Result<Mismatches> {
        let Search { dtype, shape, cutter, found, .. } = self;
        cutter.finish()?;
        let total = found.as_ref().map_or(0, |found| found.total);
        let first = found.iter().flat_map(|found| &found.first);
        let first = first.map(|&(index, reference_bits, test_bits)| Mismatch {
            at: indices(&shape, index),
            reference_bits,
            test_bits,
            reference: dtype.decode(reference_bits),
            test: dtype.decode(test_bits),
            ulp: dtype.ulp_distance(reference_bits, test_bits),
            dtype,
        });
        Ok(Mismatches { total, first: first.collect(), shape, found })
    }
}

fn search(
    dtype: Dtype,
    shape: &[u64],
    grid: &Map,
    limit: usize,
    chunk: Chunk<'_>,
    mut found: Option<Box<Found>>,
) -> Option<Box<Found>> {
    let columns = shape.last().copied().unwrap_or(1);
    let block_bytes = BLOCK / 8 * dtype.bits() as usize;
    let blocks = chunk.reference.chunks(block_bytes).zip(chunk.test.chunks(block_bytes));
    let (mut marks, mut entered) = ([false; BLOCK], None);
    for ((reference, test), start) in blocks.zip((0..chunk.elements).step_by(BLOCK)) {
        if reference == test {
            continue;
        }
        mark(dtype, reference, test, &mut marks);
        let mut rest = &marks[..(chunk.elements - start).min(BLOCK as u64) as usize];
        let mut index = chunk.first + start;
        while !rest.is_empty() {
            let column = index % columns;
            let (marks, later) = rest.split_at((columns - column).min(rest.len() as u64) as usize);
            if marks.contains(&true) {
                let found = found.get_or_insert_with(|| Box::new(Found::new(shape.len(), grid)));
                let row_start = index - column;
                if entered.replace(row_start) != Some(row_start) {
                    found.clusters.enter_row(shape, row_start);
                    found.map.enter_row(row_start / columns);
                }
                found.clusters.add(column, marks);
                found.total += found.map.add(column, marks);
                let room = limit.saturating_sub(found.first.len());
                let differing = marks.iter().zip(index..).filter(|&(&differs, _)| differs).take(room);
                found.first.extend(differing.filter_map(|(_, index)| {
                    let offset = index - chunk.first;
                    Some((index, dtype.get(chunk.reference, offset)?, dtype.get(chunk.test, offset)?))
                }));
            }
            index += marks.len() as u64;
            rest = later;
        }
    }
    found
}

/// Marks the elements that differ.
fn mark(dtype: Dtype, reference: &[u8], test: &[u8], marks: &mut [bool; BLOCK]) {
    match dtype.bits() {
        4 => mark_packed::<4, 2, 1>(reference, test, marks),
        6 => mark_packed::<6, 4, 3>(reference, test, marks),
        8 => mark_whole::<1>(reference, test, marks),
        16 => mark_whole::<2>(reference, test, marks),
        32 => mark_whole::<4>(reference, test, marks),
        _ => mark_whole::<8>(reference, test, marks),
    }
}

fn mark_whole<const BYTES: usize>(reference: &[u8], test: &[u8], marks: &mut [bool; BLOCK]) {
    let pairs = reference.as_chunks::<BYTES>().0.iter().zip(test.as_chunks::<BYTES>().0);
    marks.iter_mut().zip(pairs).for_each(|(differs, (a, b))| *differs = a != b);
}

/// Groups of `GROUP` elements of `BITS` bits fill `BYTES` bytes.
fn mark_packed<const BITS: usize, const GROUP: usize, const BYTES: usize>(
    reference: &[u8],
    test: &[u8],
    marks: &mut [bool; BLOCK],
) {
    let pairs = reference.chunks(BYTES).zip(test.chunks(BYTES));
    for (marks, (a, b)) in marks.chunks_mut(GROUP).zip(pairs) {
        let different = a.iter().zip(b).rev().fold(0, |word, (a, b)| word << 8 | u32::from(a ^ b));
        marks
            .iter_mut()
            .zip(0..)
            .for_each(|(differs, at)| *differs = different >> (at * BITS) & ((1 << BITS) - 1) != 0);
    }
}

fn join(one: Option<Box<Found>>, other: Option<Box<Found>>, limit: usize) -> Option<Box<Found>> {
    match (one, other) {
        (Some(mut one), Some(other)) => {
            one.total += other.total;
            let room = limit.saturating_sub(one.first.len());
            one.first.extend(other.first.into_iter().take(room));
            one.clusters.join(&other.clusters);
            one.map.join(&other.map);
            Some(one)
        }
        (one, other) => one.or(other),
    }
}

impl Found {
    fn new(dimensions: usize, grid: &Map) -> Found {
        Found { total: 0, first: Vec::new(), clusters: Clusters::new(dimensions), map: grid.clone() }
    }
}

/// The indices of an element, one for each dimension.
fn indices(shape: &[u64], index: u64) -> Vec<u64> {
    let mut rest = index;
    let mut at: Vec<u64> = shape
        .iter()
        .rev()
        .map(|&extent| {
            let index = rest % extent.max(1);
            rest /= extent.max(1);
            index
        })
        .collect();
    at.reverse();
    at
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { at, reference, test, reference_bits, test_bits, .. } = self;
        let digits = self.dtype.bits().div_ceil(4) as usize;
        write!(
            f,
            "{at:?}: reference {reference:?} ({reference_bits:#0$x}), test {test:?} ({test_bits:#0$x})",
            digits + 2
        )?;
        match self.ulp {
            Some(ulp) => write!(f, ", {ulp} ULP"),
            None => Ok(()),
        }
    }
}
