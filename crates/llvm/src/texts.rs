//! The printed texts of one target: a list that only grows, read without a lock while other threads append.
//!
//! Element `i` lives in chunk `log2(i + 1)`, and chunk `k` has `2^k` places, so that nothing ever moves.

use std::sync::OnceLock;

use crate::EncodingId;

/// 2^32 places: as many as [`EncodingId`] can name.
const CHUNKS: usize = 32;

/// Texts by [`EncodingId`]. Number 0 is always the empty text.
pub(crate) struct Texts {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

type Chunk = Box<[OnceLock<Box<str>>]>;

impl Texts {
    pub fn new() -> Self {
        Texts { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The text of `id`; empty for one that has none.
    pub fn get(&self, id: EncodingId) -> &str {
        let (chunk, place) = position(id);
        self.chunks[chunk].get().and_then(|texts| texts[place].get()).map_or("", |text| text)
    }

    /// Fills the place of `id`, once.
    pub fn set(&self, id: EncodingId, text: &str) {
        let (chunk, place) = position(id);
        let texts = self.chunks[chunk].get_or_init(|| (0..1usize << chunk).map(|_| OnceLock::new()).collect());
        texts[place].get_or_init(|| text.into());
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
    fn a_text_stays_where_it_was_put() {
        let texts = Texts::new();
        for i in 1..1000 {
            texts.set(EncodingId(i), &i.to_string());
        }
        assert_eq!(texts.get(EncodingId(0)), "");
        assert_eq!(texts.get(EncodingId(999)), "999");
        assert_eq!(texts.get(EncodingId(1000)), "");
        assert!((1..1000).all(|i| texts.get(EncodingId(i)) == i.to_string()));
    }
}
