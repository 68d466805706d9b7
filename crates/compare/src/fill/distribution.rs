//! Distributions, by their quantile functions, and their values as elements of a type. Elements of at most eight bits
//! take a quantile of 65,536 from a table, wider ones compute one of 2^53.

use super::block::{BLOCK, Block, Elements};
use super::random::{self, Stream};
use crate::dtype::{Dtype, Kind};

/// A distribution. Implementations are `#[inline(always)]`, as those of [`Elements`] are.
pub(super) trait Distribution: Sync {
    /// Puts in the place of each share the value below which this share lies.
    fn quantiles(&self, shares: &mut Block<f64>);
}

/// Uniform from `low` on.
pub(super) struct Uniform {
    pub low: f64,
    pub width: f64,
}

impl Distribution for Uniform {
    #[inline(always)]
    fn quantiles(&self, shares: &mut Block<f64>) {
        shares.iter_mut().for_each(|share| *share = self.low + self.width * *share);
    }
}

/// Normal.
pub(super) struct Normal {
    pub mean: f64,
    pub deviation: f64,
}

impl Distribution for Normal {
    #[inline(always)]
    fn quantiles(&self, shares: &mut Block<f64>) {
        random::normal_quantiles(shares);
        shares.iter_mut().for_each(|share| *share = self.mean + self.deviation * *share);
    }
}

/// Values of a distribution as elements of more than eight bits.
pub(super) struct Computed<D> {
    pub dtype: Dtype,
    pub stream: Stream,
    pub distribution: D,
}

impl<D: Distribution> Elements for Computed<D> {
    #[inline(always)]
    fn block(&self, first: u64, bits: &mut Block<u64>) {
        let mut values = [0.0; BLOCK];
        values.iter_mut().zip(first..).for_each(|(share, index)| *share = random::share(self.stream.at(index)));
        self.distribution.quantiles(&mut values);
        round(self.dtype, &values, bits);
    }
}

/// Values of a distribution as elements of at most eight bits.
pub(super) struct Tabulated {
    stream: Stream,
    table: Vec<u8>,
}

impl Tabulated {
    pub(super) fn new(dtype: Dtype, stream: Stream, distribution: &impl Distribution) -> Tabulated {
        let mut table = Vec::with_capacity(1 << 16);
        for first in (0..1 << 16).step_by(BLOCK) {
            let mut values = std::array::from_fn(|offset| ((first + offset) as f64 + 0.5) / 65_536.0);
            distribution.quantiles(&mut values);
            let mut bits = [0; BLOCK];
            round(dtype, &values, &mut bits);
            table.extend(bits.map(|bits| bits as u8));
        }
        Tabulated { stream, table }
    }
}

impl Elements for Tabulated {
    #[inline(always)]
    fn block(&self, first: u64, bits: &mut Block<u64>) {
        let Some(table) = self.table.first_chunk::<{ 1 << 16 }>() else { return };
        // A number has the steps of four elements, the first lowest.
        let mut draws = [0; BLOCK / 4];
        draws.iter_mut().zip(first / 4..).for_each(|(draw, index)| *draw = self.stream.at(index));
        for (four, draw) in bits.as_chunks_mut::<4>().0.iter_mut().zip(draws) {
            for (bits, shift) in four.iter_mut().zip([0, 16, 32, 48]) {
                *bits = table[usize::from((draw >> shift) as u16)].into();
            }
        }
    }
}

/// [`Dtype::encode`] of numbers that are not NaN.
#[inline(always)]
fn round(dtype: Dtype, values: &Block<f64>, bits: &mut Block<u64>) {
    let pairs = bits.iter_mut().zip(values);
    match dtype.facts().kind {
        _ if dtype == Dtype::F64 => pairs.for_each(|(bits, value)| *bits = value.to_bits()),
        // The hardware's conversion is the same.
        _ if dtype == Dtype::F32 => pairs.for_each(|(bits, value)| *bits = (*value as f32).to_bits().into()),
        Kind::Float(format) if dtype.overflows() => {
            pairs.for_each(|(bits, value)| *bits = format.encode_number(*value));
        }
        _ => pairs.for_each(|(bits, value)| *bits = dtype.encode(*value).unwrap_or_default()),
    }
}
