//! What decoding gives: instructions in address order, each with its place, its state and its text.

use std::fmt;
use std::sync::Arc;

use crate::by_id::Texts;

/// Names one distinct encoding of one target: equal ids have equal bytes and equal text, so whatever a caller derives
/// from the text (a parse, a mnemonic's class) it can keep per id. Numbers are dense and start at 1, in the order in
/// which encodings were first met; that order depends on the threads, so print nothing by it. 0 means "no text".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EncodingId(pub u32);

/// What became of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// LLVM printed it.
    Decoded,
    /// LLVM says that this is no instruction.
    Undecodable,
    /// LLVM died or hung of it.
    Crashed,
}

/// One instruction, or one word that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Bytes from the start of the decoded code.
    pub offset: u32,
    /// Which encoding; its text is [`Listing::text`].
    pub encoding: EncodingId,
    /// Bytes: 4 to 20; 4 when not decoded, fewer only for the rest behind the last whole word.
    pub len: u8,
    /// What became of it.
    pub state: State,
    /// An undecodable word lies before it, so that it may start inside an instruction that LLVM does not know: what
    /// LLVM printed may be a phantom. See [`Listing::resynchronise`].
    pub untrusted: bool,
}

/// The instructions of a piece of code.
#[derive(Clone)]
pub struct Listing {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) texts: Arc<Texts>,
}

impl Listing {
    pub(crate) fn new(texts: Arc<Texts>, code_bytes: usize) -> Self {
        // Real kernels have 7 bytes per instruction.
        Listing { instructions: Vec::with_capacity(code_bytes / 7), texts }
    }

    /// All of them, in address order, without gaps.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }

    /// As LLVM printed it, less leading and trailing blanks; empty when it was not decoded. Register comments inside
    /// operands (`v[1:2]/*Invalid register*/`) and trailing `; Warning:` text are LLVM's and stay.
    pub fn text(&self, instruction: &Instruction) -> &str {
        self.texts.get(instruction.encoding).unwrap_or_default()
    }

    /// The text up to the first blank: `v_mov_b32_e32`; empty when it was not decoded.
    pub fn mnemonic(&self, instruction: &Instruction) -> &str {
        let text = self.text(instruction);
        text.split_once([' ', '\t']).map_or(text, |(mnemonic, _)| mnemonic)
    }

    /// The caller knows that an instruction starts at `offset` (a branch target, an entry point): from there to the
    /// next undecodable word the listing is trusted again. `false`: no instruction of this listing starts there, so
    /// decode anew from `offset`.
    pub fn resynchronise(&mut self, offset: u32) -> bool {
        let Ok(start) = self.instructions.binary_search_by_key(&offset, |instruction| instruction.offset) else {
            return false;
        };
        for instruction in &mut self.instructions[start..] {
            instruction.untrusted = false;
            if instruction.state != State::Decoded {
                break;
            }
        }
        true
    }

    pub(crate) fn push(&mut self, offset: usize, encoding: EncodingId, len: u8, state: State) {
        let untrusted =
            self.instructions.last().is_some_and(|before| before.untrusted || before.state != State::Decoded);
        // `decode` refuses code whose offsets do not fit.
        self.instructions.push(Instruction { offset: offset as u32, encoding, len, state, untrusted });
    }
}

/// One line per instruction: offset, state unless decoded, text.
impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for instruction in &self.instructions {
            match instruction.state {
                State::Decoded => writeln!(f, "{:#x}: {}", instruction.offset, self.text(instruction))?,
                state => writeln!(f, "{:#x}: {state:?}", instruction.offset)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing() -> Listing {
        let texts = Arc::new(Texts::default());
        texts.set(EncodingId(1), "s_mov_b32 s0, s1");
        let mut listing = Listing::new(texts, 16);
        for (i, state) in [State::Decoded, State::Undecodable, State::Decoded, State::Decoded].into_iter().enumerate() {
            let encoding = EncodingId(u32::from(state == State::Decoded));
            listing.push(4 * i, encoding, 4, state);
        }
        listing
    }

    #[test]
    fn instructions_behind_an_undecodable_word_are_untrusted_until_resynchronised() {
        let mut listing = listing();
        let untrusted = |listing: &Listing| listing.instructions().iter().map(|i| i.untrusted).collect::<Vec<_>>();
        assert_eq!(untrusted(&listing), [false, false, true, true]);
        assert!(listing.resynchronise(12));
        assert_eq!(untrusted(&listing), [false, false, true, false]);
        assert!(!listing.resynchronise(13));
    }

    #[test]
    fn the_mnemonic_ends_at_the_first_blank() {
        let listing = listing();
        assert_eq!(listing.mnemonic(&listing.instructions()[0]), "s_mov_b32");
        assert_eq!(listing.mnemonic(&listing.instructions()[1]), "");
    }
}
