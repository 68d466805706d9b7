//! What is known of each encoding of one target: a list that only grows, read without a lock while other threads
//! append.
//!
//! Element `i` lives in chunk `log2(i + 1)`, and chunk `k` has `2^k` places, so that nothing ever moves.

use std::sync::OnceLock;

use crate::EncodingId;

/// 2^32 places: as many as [`EncodingId`] can name.
const CHUNKS: usize = 32;

/// Values by [`EncodingId`].
pub(crate) struct ById<T> {
    chunks: [OnceLock<Box<[OnceLock<T>]>>; CHUNKS],
}

/// As printed; number 0 has no text.
pub(crate) type Texts = ById<Box<str>>;

impl<T> ById<T> {
    pub fn new() -> Self {
        ById { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

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
        let values = ById::new();
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
