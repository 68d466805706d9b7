//! What is known of each encoding of one target: a list that only grows, read without a lock while other threads
//! append.
//!
//! Element `i` lives in chunk `log2(i + 1)`, and chunk `k` has `2^k` places, so that nothing ever moves.

use std::sync::OnceLock;

use crate::{EncodingId, RoundTrip};

/// 2^32 places: as many as [`EncodingId`] can name.
const CHUNKS: usize = 32;

/// Values by [`EncodingId`].
pub(crate) struct ById<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

/// As printed; number 0 has no text.
#[derive(Default)]
pub(crate) struct Texts {
    /// Of the numbers from 1 on, one behind the other: what was known from the start.
    stored: String,
    /// Where each of those ends.
    ends: Vec<u32>,
    new: ById<Box<str>>,
}

impl Texts {
    /// With the texts of the first numbers.
    pub fn stored(stored: String, ends: Vec<u32>) -> Self {
        Texts { stored, ends, new: ById::default() }
    }

    /// The text of `id`.
    #[inline]
    pub fn get(&self, id: EncodingId) -> Option<&str> {
        let at = (id.0 as usize).checked_sub(1)?;
        let Some(end) = self.ends.get(at) else { return self.new.get(id).map(|text| &**text) };
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        self.stored.get(start as usize..*end as usize)
    }

    /// Gives `id` its text.
    pub fn set(&self, id: EncodingId, text: &str) {
        self.new.set(id, text.into());
    }
}

/// What became of each encoding.
#[derive(Default)]
pub(crate) struct Trips {
    /// Of the numbers from 1 on: [`UNKNOWN`], [`SAME`], or two more than an index of `special`.
    stored: Vec<u32>,
    special: Vec<RoundTrip>,
    new: ById<RoundTrip>,
}

/// In [`Trips::stored`]: not tried.
pub(crate) const UNKNOWN: u32 = 0;
/// In [`Trips::stored`]: [`RoundTrip::Same`].
pub(crate) const SAME: u32 = 1;
/// In [`Trips::stored`]: the first of the others.
pub(crate) const FIRST_SPECIAL: u32 = 2;

impl Trips {
    /// With those of the first numbers.
    pub fn stored(stored: Vec<u32>, special: Vec<RoundTrip>) -> Self {
        Trips { stored, special, new: ById::default() }
    }

    /// What became of `id`.
    #[inline]
    pub fn get(&self, id: EncodingId) -> Option<&RoundTrip> {
        let stored = (id.0 as usize).checked_sub(1).and_then(|at| self.stored.get(at));
        match stored.copied().unwrap_or(UNKNOWN) {
            UNKNOWN => self.new.get(id),
            SAME => Some(&RoundTrip::Same),
            special => self.special.get((special - FIRST_SPECIAL) as usize),
        }
    }

    /// Says what became of `id`.
    pub fn set(&self, id: EncodingId, trip: RoundTrip) {
        self.new.set(id, trip);
    }
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        ById { chunks: [const { OnceLock::new() }; CHUNKS] }
    }
}

impl<T> ById<T> {
    /// The value of `id`.
    pub fn get(&self, id: EncodingId) -> Option<&T> {
        let (chunk, place) = position(id);
        self.chunks[chunk].get()?[place].get()
    }

    /// Fills the place of `id`, once.
    pub fn set(&self, id: EncodingId, value: T) {
        let (chunk, place) = position(id);
        let values = self.chunks[chunk].get_or_init(|| (0..1usize << chunk).map(|_| OnceLock::new()).collect());
        let _ = values[place].set(value);
    }
}

fn position(id: EncodingId) -> (usize, usize) {
    let ordinal = u64::from(id.0) + 1;
    let chunk = ordinal.ilog2() as usize;
    (chunk.min(CHUNKS - 1), (ordinal - (1 << chunk)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_where_it_was_put() {
        let values = ById::default();
        for i in 1..1000 {
            values.set(EncodingId(i), i);
        }
        values.set(EncodingId(7), 8);
        assert_eq!(values.get(EncodingId(0)), None);
        assert_eq!(values.get(EncodingId(999)), Some(&999));
        assert_eq!(values.get(EncodingId(1000)), None);
        assert!((1..1000).all(|i| values.get(EncodingId(i)) == Some(&i)));
    }
}
