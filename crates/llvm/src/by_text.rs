//! Encodings by their text: an open-addressed table of numbers, whose texts are elsewhere.

use std::hash::BuildHasher;

use crate::EncodingId;
use crate::by_id::Texts;

/// See the module. Of encodings with the same text it holds one.
pub(crate) struct ByText {
    /// A power of two of places, at most half of them taken; 0 is free.
    places: Vec<u32>,
    taken: usize,
    hasher: foldhash::fast::RandomState,
}

const FIRST_PLACES: usize = 1 << 8;

impl ByText {
    /// A table that does not grow before it has `entries`.
    pub fn with_room(entries: usize) -> Self {
        let places = (2 * entries).next_power_of_two().max(FIRST_PLACES);
        ByText { places: vec![0; places], taken: 0, hasher: foldhash::fast::RandomState::default() }
    }

    /// The encoding with that text.
    pub fn get(&self, text: &str, texts: &Texts) -> Option<EncodingId> {
        let id = self.places[self.find(text, texts)];
        (id != 0).then_some(EncodingId(id))
    }

    /// Adds `id`, which has a text, unless another has the same.
    pub fn insert(&mut self, id: EncodingId, texts: &Texts) {
        let Some(text) = texts.get(id) else { return };
        if 2 * (self.taken + 1) > self.places.len() {
            let larger = vec![0; 2 * self.places.len()];
            for id in std::mem::replace(&mut self.places, larger).into_iter().filter(|id| *id != 0) {
                let place = self.find(texts.get(EncodingId(id)).unwrap_or_default(), texts);
                self.places[place] = id;
            }
        }
        let place = self.find(text, texts);
        if self.places[place] == 0 {
            self.places[place] = id.0;
            self.taken += 1;
        }
    }

    /// Where the text is, or the free place where it belongs.
    fn find(&self, text: &str, texts: &Texts) -> usize {
        let mask = self.places.len() - 1;
        let mut place = self.hasher.hash_one(text) as usize & mask;
        // Ends: at least half of the places are free.
        while self.places[place] != 0 && texts.get(EncodingId(self.places[place])) != Some(text) {
            place = (place + 1) & mask;
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_again_and_the_first_of_two_with_the_same_stays() {
        let (texts, mut by_text) = (Texts::default(), ByText::with_room(0));
        for i in 1..=1000_u32 {
            texts.set(EncodingId(i), &format!("s_nop {}", i / 2));
            by_text.insert(EncodingId(i), &texts);
        }
        assert_eq!(by_text.get("s_nop 0", &texts), Some(EncodingId(1)));
        assert!((1..500).all(|i| by_text.get(&format!("s_nop {i}"), &texts) == Some(EncodingId(2 * i))));
        assert_eq!(by_text.get("s_nop 501", &texts), None);
    }
}
