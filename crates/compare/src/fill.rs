//! What buffers are filled with before a launch: seeded, the same on every machine and with any number of threads.
//!
//! Each element of a seeded fill is computed from (seed, number of the buffer, index of the element), so chunks can be
//! written in any order. The exception is [`Fill::MaskedBytes`]: one sequential stream over all buffers, because it has
//! to be the stream that a C++ program would draw.

mod block;
mod distribution;
pub mod mt19937;
pub mod npy;
pub mod random;

use crate::dtype::{Class, Dtype, Kind};
use crate::error::{Error, Result};
use block::{CHUNK, Each, write};
use distribution::{Computed, Distribution, Normal, Tabulated, Uniform};
use mt19937::Mt19937;
use random::Stream;
use rayon::prelude::*;
use std::path::PathBuf;

/// What a buffer is filled with.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Random bits: every code of the type, NaN and Inf among them.
    Bits,
    /// Uniform in [low, high), then rounded to the type (which may give `high`).
    Uniform {
        /// The smallest value.
        low: f64,
        /// Above the largest value.
        high: f64,
    },
    /// Normal, then rounded to the type.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// For each byte one draw of `std::mt19937(seed)`, its low eight bits masked; the stream goes on from buffer to
    /// buffer.
    MaskedBytes {
        /// The bits that are kept.
        mask: u8,
    },
    /// `start + index * step`.
    Range {
        /// The first value.
        start: f64,
        /// What is added from element to element.
        step: f64,
    },
    /// One value everywhere.
    Constant(f64),
    /// One element has a value, all others are 0.
    OneHot {
        /// The element, counted through the whole tensor.
        index: u64,
        /// Its value.
        value: f64,
    },
    /// A `.npy` file: see [`npy`].
    File(PathBuf),
    /// Another fill, in which elements are replaced by special values of the type: see [`specials`].
    Special {
        /// The other fill.
        fill: Box<Fill>,
        /// The share of elements replaced, 0 to 1.
        rate: f64,
    },
}

impl Fill {
    /// Whether other values are as good for a kernel: those of random numbers, and of files and ranges as long as they are
    /// no integers, which could be indices.
    pub fn may_vary(&self, dtype: Dtype) -> bool {
        match self {
            Fill::Constant(_) => false,
            Fill::Uniform { low, high } => low < high,
            Fill::Normal { deviation, .. } => *deviation > 0.0,
            Fill::MaskedBytes { mask } => *mask != 0,
            Fill::Bits => true,
            Fill::Range { .. } | Fill::OneHot { .. } | Fill::File(_) => dtype.is_float(),
            Fill::Special { fill, .. } => fill.may_vary(dtype),
        }
    }
}

/// The random numbers of one run: all its buffers are filled from one, in a fixed order.
#[derive(Clone, Debug)]
pub struct Source {
    seed: u64,
    buffer: u64,
    bytes: Mt19937,
}

impl Source {
    /// The numbers that follow from a seed. `std::mt19937` takes its low 32 bits, as in C++.
    pub fn new(seed: u64) -> Source {
        Source { seed, buffer: 0, bytes: Mt19937::new(seed as u32) }
    }

    /// Fills the next buffer, a packed tensor of `shape`; bits behind its last element become 0.
    ///
    /// # Errors
    /// A buffer of another size than the tensor's, a value that the type cannot hold, a file that does not fit.
    pub fn fill(&mut self, fill: &Fill, dtype: Dtype, shape: &[u64], into: &mut [u8]) -> Result<()> {
        let elements = elements(dtype, shape, into.len())?;
        self.buffer += 1;
        let target = Target { dtype, shape, elements };
        self.write(fill, target, into)
    }

    fn write(&mut self, fill: &Fill, target: Target<'_>, into: &mut [u8]) -> Result<()> {
        let Target { dtype, elements, .. } = target;
        let stream = Stream::new(self.seed, self.buffer);
        match fill {
            Fill::Bits => write(&Each(|index| stream.at(index)), dtype, elements, into),
            Fill::Uniform { low, high } => {
                check(low.is_finite() && high.is_finite() && low <= high, || {
                    format!("uniform fill from {low} to {high}: expected two finite numbers in order")
                })?;
                let (low, width) = (*low, high - low);
                check(width.is_finite(), || format!("uniform fill from {low} to {high}: the range is too wide"))?;
                distribute(Uniform { low, width }, dtype, elements, stream, into);
            }
            Fill::Normal { mean, deviation } => {
                check(mean.is_finite() && deviation.is_finite() && *deviation >= 0.0, || {
                    format!("normal fill of mean {mean} and deviation {deviation}: expected finite numbers, 0 or above")
                })?;
                distribute(Normal { mean: *mean, deviation: *deviation }, dtype, elements, stream, into);
            }
            Fill::MaskedBytes { mask } => self.bytes.fill(*mask, into),
            Fill::Range { start, step } => {
                check(start.is_finite() && step.is_finite(), || {
                    format!("range fill from {start} by {step}: expected finite numbers")
                })?;
                let at = |index| dtype.encode(start + index as f64 * step).unwrap_or_default();
                write(&Each(at), dtype, elements, into);
            }
            Fill::Constant(value) => {
                let bits = encode(dtype, *value)?;
                write(&Each(|_| bits), dtype, elements, into);
            }
            Fill::OneHot { index, value } => {
                check(*index < elements, || format!("one-hot fill at {index}: the tensor has {elements} elements"))?;
                let (bits, zero) = (encode(dtype, *value)?, encode(dtype, 0.0)?);
                write(&Each(|at| if at == *index { bits } else { zero }), dtype, elements, into);
            }
            Fill::File(path) => {
                let read = std::fs::read(path).map_err(|error| Error::new(error.to_string()));
                let filled = read.and_then(|bytes| npy::parse(&bytes)?.fill(dtype, target.shape, into));
                filled.map_err(|error| error.at(path.display()))?;
            }
            Fill::Special { fill, rate } => {
                check((0.0..=1.0).contains(rate), || format!("special values at a rate of {rate}: expected 0 to 1"))?;
                self.write(fill, target, into)?;
                replace(dtype, into, elements, Stream::new(!self.seed, self.buffer), *rate);
                return Ok(());
            }
        }
        // A fill by bytes knows nothing of elements.
        let used = elements % dtype.group() * u64::from(dtype.bits()) % 8;
        if let (Some(last), 1..) = (into.last_mut(), used) {
            *last &= (1 << used) - 1;
        }
        Ok(())
    }
}

/// The tensor that is filled.
#[derive(Clone, Copy)]
struct Target<'a> {
    dtype: Dtype,
    shape: &'a [u64],
    elements: u64,
}

/// The special values of a type, as bits: zeros, smallest and largest denormal of both signs, infinities, NaN; of
/// an integer 0, the smallest, the largest.
pub fn specials(dtype: Dtype) -> Vec<u64> {
    match dtype.facts().kind {
        Kind::Float(format) => {
            let largest_denormal = (1 << format.mantissa_bits) - 1;
            let mut magnitudes = vec![0, 1, largest_denormal];
            magnitudes.dedup();
            magnitudes.extend(format.infinity());
            let signed = magnitudes.iter().flat_map(|bits| [*bits, bits | format.sign_bit()]);
            let mut all: Vec<u64> = signed.filter(|&bits| dtype.classify(bits) != Class::Nan).collect();
            all.extend(format.nan());
            all
        }
        Kind::Scale => vec![0, 0xfe, 0xff],
        Kind::Signed => vec![0, 1 << (dtype.bits() - 1), (1 << (dtype.bits() - 1)) - 1],
        Kind::Unsigned => vec![0, (1 << dtype.bits()) - 1],
    }
}

fn elements(dtype: Dtype, shape: &[u64], bytes: usize) -> Result<u64> {
    let elements = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    match elements.and_then(|elements| Some((elements, dtype.bytes_for(elements)?))) {
        Some((elements, expected)) if expected == bytes as u64 => Ok(elements),
        Some((_, expected)) => {
            Err(Error::new(format!("a buffer of {bytes} bytes: {dtype} elements of shape {shape:?} take {expected}")))
        }
        None => Err(Error::new(format!("shape {shape:?} has more elements than memory can hold"))),
    }
}

fn check(holds: bool, message: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::new(message())) }
}

fn encode(dtype: Dtype, value: f64) -> Result<u64> {
    dtype.encode(value).ok_or_else(|| Error::new(format!("{value} is no value of {dtype}")))
}

fn distribute(distribution: impl Distribution, dtype: Dtype, elements: u64, stream: Stream, into: &mut [u8]) {
    match dtype.bits() {
        ..=8 => write(&Tabulated::new(dtype, stream, &distribution), dtype, elements, into),
        _ => write(&Computed { dtype, stream, distribution }, dtype, elements, into),
    }
}

/// Replaces a share of the elements by special values.
fn replace(dtype: Dtype, into: &mut [u8], elements: u64, stream: Stream, rate: f64) {
    let specials = specials(dtype);
    let bytes = (CHUNK / 8) as usize * dtype.bits() as usize;
    into.par_chunks_mut(bytes).enumerate().for_each(|(number, chunk)| {
        let first = number as u64 * CHUNK;
        for index in first..elements.min(first + CHUNK) {
            let draw = stream.at(index);
            if random::share(draw) < rate {
                // The share is of the high 53 bits; the low 11 are free to choose.
                dtype.set(chunk, index - first, specials[(draw & 0x7ff) as usize % specials.len()]);
            }
        }
    });
}
