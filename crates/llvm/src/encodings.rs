//! The distinct encodings of one target that are known so far, as a trie over 32-bit words.
//!
//! An instruction has 1 to 5 words, and how many is not a function of the first (a VOP3 literal shows only in the
//! second). But encodings are prefix-free: no instruction's words begin another's. So a walk goes down the trie word by
//! word and stops at a leaf, which says the length. All nodes share one hash table, `(node, word) → node or leaf`: an
//! entry is 16 bytes, a step is one probe.
//!
//! Two kinds of window are known only by all their words, in a second table, because other words behind the first might
//! make an instruction: those that LLVM cannot decode, and the one exception to prefix-freedom, [`LD_SCALE`]. (Measured
//! with LLVM 22.1.8: 75,000 encodings of real gfx942, gfx950 and gfx1250 kernels, and 300,000 random windows on each of
//! these, gfx1100 and gfx1200, every one decoded again with three or four other continuations.)

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::edges::Edges;
use crate::{EncodingId, State};

/// The longest instruction of any AMD GPU (gfx1250: 16 bytes and a literal). Words behind the end of the code count as
/// zero, and an instruction that would reach there is none.
pub(crate) const MAX_INSTRUCTION_BYTES: usize = 20;
pub(crate) const MAX_WORDS: usize = MAX_INSTRUCTION_BYTES / 4;

/// In the mnemonics of the 8-byte instructions that turn the matrix instruction behind them into a scaled one. LLVM
/// decodes such a pair as one instruction of 16 bytes, and the first half alone when something else follows.
const LD_SCALE: &str = "_ld_scale";

/// The words at an offset that LLVM may look at for one instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Window(pub [u32; MAX_WORDS]);

impl Window {
    /// The window of `code` at `offset`.
    pub fn at(code: &[u8], offset: usize) -> Self {
        Window(std::array::from_fn(|i| word_at(code, offset + 4 * i)))
    }

    /// That begins with `words`; zeros are behind them.
    pub fn of(words: &[u32]) -> Self {
        Window(std::array::from_fn(|i| words.get(i).copied().unwrap_or_default()))
    }

    /// As LLVM reads it.
    pub fn bytes(&self) -> [u8; MAX_INSTRUCTION_BYTES] {
        let mut bytes = [0; MAX_INSTRUCTION_BYTES];
        for (chunk, word) in bytes.chunks_exact_mut(4).zip(self.0) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

/// What LLVM made of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// An instruction of that many words.
    Decoded { words: u8, text: &'a str },
    /// None starts here.
    Undecodable,
    /// LLVM died or hung.
    Crashed,
}

/// Where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leaf {
    pub encoding: EncodingId,
    pub words: u8,
    pub state: State,
}

impl Leaf {
    /// No instruction starts here.
    pub const NONE: Leaf = Leaf { encoding: EncodingId(0), words: 1, state: State::Undecodable };
}

#[derive(Clone, Copy)]
enum Edge {
    Node(u32),
    Leaf(Leaf),
}

/// What a free place of the table holds.
impl Default for Edge {
    fn default() -> Self {
        Edge::Node(ROOT)
    }
}

/// What is known; see the module.
pub(crate) struct Encodings {
    edges: Edges<Edge>,
    windows: HashMap<Window, Leaf>,
    nodes: u32,
    /// Of each encoding that has a text, by number less one.
    shapes: Vec<Shape>,
    words: Vec<u32>,
}

/// Which words an encoding was met with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Where they start among all words.
    start: u32,
    /// How many are kept: its own, or a whole window where it is known only by that.
    pub kept: u8,
    /// How many are its own.
    pub words: u8,
}

const ROOT: u32 = 0;

impl Encodings {
    pub fn new() -> Self {
        Self::with_room(0, 0, 0)
    }

    /// For so many entries of the trie, encodings, and words of them.
    pub fn with_room(edges: usize, encodings: usize, words: usize) -> Self {
        Encodings {
            edges: Edges::with_room(edges),
            windows: HashMap::default(),
            nodes: ROOT,
            shapes: Vec::with_capacity(encodings),
            words: Vec::with_capacity(words),
        }
    }

    /// Of each encoding that has a text, in the order of their numbers, the words that [`Encodings::insert_shaped`]
    /// takes.
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = (Shape, &[u32])> {
        self.shapes.iter().map(|shape| (*shape, self.kept(*shape)))
    }

    /// The windows in which no instruction starts; not those that LLVM died of, which may have been an accident.
    pub fn undecodable(&self) -> impl Iterator<Item = &Window> {
        self.windows.iter().filter(|(_, leaf)| leaf.state == State::Undecodable).map(|(window, _)| window)
    }

    /// How many entries the trie has.
    pub fn edges(&self) -> usize {
        self.edges.len()
    }

    /// The bytes of an encoding that has a text.
    pub fn bytes(&self, id: EncodingId) -> Option<Box<[u8]>> {
        let shape = *self.shapes.get((id.0 as usize).checked_sub(1)?)?;
        let words = self.kept(shape).get(..usize::from(shape.words))?;
        Some(words.iter().flat_map(|word| word.to_le_bytes()).collect())
    }

    fn kept(&self, shape: Shape) -> &[u32] {
        self.words.get(shape.start as usize..).and_then(|rest| rest.get(..usize::from(shape.kept))).unwrap_or_default()
    }

    /// Walks `code` from `offset`, gives `visit` every known instruction that starts before `until`, and returns the
    /// offset of the first that is not known; `None` when there is none.
    pub fn walk(
        &self,
        code: &[u8],
        mut offset: usize,
        until: usize,
        mut visit: impl FnMut(usize, Leaf),
    ) -> Option<usize> {
        while offset < until && offset + 4 <= code.len() {
            let Some(mut leaf) = self.find(code, offset) else { return Some(offset) };
            if offset + 4 * usize::from(leaf.words) > code.len() {
                leaf = Leaf::NONE;
            }
            visit(offset, leaf);
            offset += 4 * usize::from(leaf.words);
        }
        None
    }

    #[inline]
    fn find(&self, code: &[u8], offset: usize) -> Option<Leaf> {
        let mut node = ROOT;
        for i in 0..MAX_WORDS {
            match self.edges.get(key(node, word_at(code, offset + 4 * i))) {
                Some(Edge::Node(next)) => node = next,
                Some(Edge::Leaf(leaf)) => return Some(leaf),
                None => break,
            }
        }
        self.windows.get(&Window::at(code, offset)).copied()
    }

    /// Learns what `window` is. Returns the new encoding's number when it has a text that is not yet known.
    pub fn insert(&mut self, window: &Window, outcome: &Outcome) -> Option<EncodingId> {
        match *outcome {
            Outcome::Decoded { words, text } => {
                let kept = if text.contains(LD_SCALE) { MAX_WORDS as u8 } else { words };
                return self.insert_shaped(window, kept, words);
            }
            Outcome::Undecodable => self.insert_window(window, Leaf::NONE),
            Outcome::Crashed => self.insert_window(window, Leaf { state: State::Crashed, ..Leaf::NONE }),
        };
        None
    }

    /// Learns an instruction of `words` words by the first `kept` of `window`: its own, or all. Returns its number when
    /// it is new.
    pub fn insert_shaped(&mut self, window: &Window, kept: u8, words: u8) -> Option<EncodingId> {
        let leaf = Leaf { encoding: EncodingId(self.shapes.len() as u32 + 1), words, state: State::Decoded };
        let kept = if kept == words { self.insert_path(window, leaf)? } else { self.insert_window(window, leaf)? };
        self.shapes.push(Shape { start: self.words.len() as u32, kept, words });
        self.words.extend_from_slice(&window.0[..usize::from(kept)]);
        Some(leaf.encoding)
    }

    /// How many words it is known by; `None`: known already.
    fn insert_window(&mut self, window: &Window, leaf: Leaf) -> Option<u8> {
        let entry = self.windows.entry(*window);
        let new = matches!(entry, Entry::Vacant(_));
        entry.or_insert(leaf);
        new.then_some(MAX_WORDS as u8)
    }

    /// How many words it is known by; `None`: known already.
    fn insert_path(&mut self, window: &Window, leaf: Leaf) -> Option<u8> {
        let mut node = ROOT;
        let (last, before) = window.0.get(..usize::from(leaf.words))?.split_last()?;
        for word in before {
            match self.edges.get_or_insert(key(node, *word), Edge::Node(self.nodes + 1)) {
                Edge::Node(next) => node = next,
                Edge::Leaf(shorter) => {
                    debug_assert!(false, "{window:x?} is {leaf:?} and {shorter:?}: encodings are not prefix-free");
                    return None;
                }
            }
            self.nodes = self.nodes.max(node);
        }
        match self.edges.get_or_insert(key(node, *last), Edge::Leaf(leaf)) {
            Edge::Leaf(found) => (found == leaf).then_some(leaf.words),
            // A longer instruction begins with it: an LLVM to come has more of the kind of `LD_SCALE`.
            Edge::Node(_) => self.insert_window(window, leaf),
        }
    }
}

fn key(node: u32, word: u32) -> u64 {
    u64::from(node) << 32 | u64::from(word)
}

/// The little-endian word at `offset`, with zeros behind the end.
#[inline]
fn word_at(code: &[u8], offset: usize) -> u32 {
    match code.get(offset..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u32::from_le_bytes(*bytes),
        None => {
            let mut bytes = [0; 4];
            let rest = code.get(offset..).unwrap_or_default();
            bytes[..rest.len()].copy_from_slice(rest);
            u32::from_le_bytes(bytes)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn walk(encodings: &Encodings, words: &[u32]) -> (Vec<(usize, u8, State)>, Option<usize>) {
        let (code, mut seen) = (code(words), Vec::new());
        let miss = encodings.walk(&code, 0, code.len(), |offset, leaf| seen.push((offset, leaf.words, leaf.state)));
        (seen, miss)
    }

    #[test]
    fn the_words_themselves_tell_the_length() {
        let mut encodings = Encodings::new();
        let one = Window([7, 9, 0, 0, 0]);
        let two = Window([8, 7, 0, 0, 0]);
        assert_eq!(encodings.insert(&one, &Outcome::Decoded { words: 1, text: "" }), Some(EncodingId(1)));
        assert_eq!(encodings.insert(&two, &Outcome::Decoded { words: 2, text: "" }), Some(EncodingId(2)));
        assert_eq!(encodings.insert(&one, &Outcome::Decoded { words: 1, text: "" }), None);
        let (seen, miss) = walk(&encodings, &[7, 8, 7, 7, 8, 9]);
        assert_eq!(seen, [(0, 1, State::Decoded), (4, 2, State::Decoded), (12, 1, State::Decoded)]);
        assert_eq!(miss, Some(16), "8 followed by 9 has not been met");
    }

    #[test]
    fn an_undecodable_window_says_nothing_about_its_first_word() {
        let mut encodings = Encodings::new();
        encodings.insert(&Window([1, 2, 3, 4, 5]), &Outcome::Undecodable);
        encodings.insert(&Window([1, 3, 0, 0, 0]), &Outcome::Decoded { words: 2, text: "" });
        let (seen, miss) = walk(&encodings, &[1, 3, 1, 2, 3, 4, 5]);
        assert_eq!(seen, [(0, 2, State::Decoded), (8, 1, State::Undecodable)]);
        assert_eq!(miss, Some(12));
    }

    #[test]
    fn a_scale_load_is_known_only_with_what_follows() {
        let mut encodings = Encodings::new();
        let alone = Outcome::Decoded { words: 2, text: "v_mfma_ld_scale_b32 v0, v1" };
        let pair = Outcome::Decoded { words: 4, text: "v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3]" };
        encodings.insert(&Window([1, 2, 7, 7, 7]), &alone);
        encodings.insert(&Window([1, 2, 3, 4, 7]), &pair);
        let (seen, miss) = walk(&encodings, &[1, 2, 3, 4, 1, 2, 7, 7, 7]);
        assert_eq!((seen, miss), (vec![(0, 4, State::Decoded), (16, 2, State::Decoded)], Some(24)));
    }

    #[test]
    fn an_instruction_that_would_leave_the_code_is_none() {
        let mut encodings = Encodings::new();
        encodings.insert(&Window([1, 0, 0, 0, 0]), &Outcome::Decoded { words: 2, text: "" });
        assert_eq!(walk(&encodings, &[1]).0, [(0, 1, State::Undecodable)]);
    }
}
