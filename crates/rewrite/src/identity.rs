//! How each instruction is written so that its bytes come back: as its text, as its text and a hint, or as words.
//!
//! Decided once for each distinct encoding, from what LLVM assembles its text to.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use llvm::{Decoder, Encoder, EncodingId, Instruction, Listing, RoundTrip, RoundTrips, State, Target, Toolchain};

use crate::code::Code;
use crate::error::Result;
use crate::hint::Hint;

/// How an instruction is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Its text gives its bytes.
    Text,
    /// Its text gives other bytes that decode to the same text; the hint makes the difference good.
    Hint(Hint),
    /// `.long`, and why.
    Words(Reason),
}

/// Why an instruction is written as words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// LLVM does not know the word.
    Undecodable,
    /// LLVM died of the word.
    Crashed,
    /// LLVM's assembler does not take what its disassembler printed.
    Refused,
    /// The text assembles to another instruction.
    Other,
    /// Less than a word, behind the last whole one.
    Fragment,
}

impl Reason {
    /// In words, for comments and counts.
    pub fn describe(self) -> &'static str {
        match self {
            Reason::Undecodable => "unknown to LLVM",
            Reason::Crashed => "LLVM crashed on it",
            Reason::Refused => "its text does not assemble",
            Reason::Other => "its text assembles to another instruction",
            Reason::Fragment => "less than a word",
        }
    }
}

/// The identities of one target's instructions.
pub struct Identities<'t> {
    toolchain: &'t Toolchain,
    target: Target,
    round_trips: RoundTrips,
    special: Mutex<HashMap<EncodingId, Identity>>,
}

impl<'t> Identities<'t> {
    /// Checks all instructions of `codes`, which were decoded for `target`.
    ///
    /// # Errors
    /// As [`Encoder::round_trips`].
    pub fn check<'c, 'b: 'c>(
        toolchain: &'t Toolchain,
        target: &Target,
        codes: impl IntoIterator<Item = &'c Code<'b>>,
    ) -> Result<Self> {
        let mut pieces: Vec<(&[u8], &Listing)> = Vec::new();
        for code in codes {
            let slices = code.pieces.iter().map(|piece| (&code.bytes[piece.start as usize..], &piece.listing));
            pieces.extend(slices);
        }
        let round_trips = toolchain.round_trips(target, &pieces)?;
        Ok(Identities { toolchain, target: target.clone(), round_trips, special: Mutex::default() })
    }

    /// What they were checked with.
    pub fn toolchain(&self) -> &'t Toolchain {
        self.toolchain
    }

    /// How an instruction with these bytes is written.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn of(&self, bytes: &[u8], listing: &Listing, instruction: &Instruction) -> Result<Identity> {
        match instruction.state {
            _ if !bytes.len().is_multiple_of(4) => return Ok(Identity::Words(Reason::Fragment)),
            State::Undecodable => return Ok(Identity::Words(Reason::Undecodable)),
            State::Crashed => return Ok(Identity::Words(Reason::Crashed)),
            State::Decoded => {}
        }
        let assembled = match self.round_trips.get(instruction.encoding) {
            Some(RoundTrip::Same) => return Ok(Identity::Text),
            Some(RoundTrip::Differs(assembled)) => assembled,
            Some(RoundTrip::Refused(_)) | None => return Ok(Identity::Words(Reason::Refused)),
        };
        if let Some(known) = self.special().get(&instruction.encoding) {
            return Ok(known.clone());
        }
        let same_text = assembled.len() == bytes.len() && {
            let again = self.toolchain.decode(&self.target, assembled)?;
            matches!(again.instructions(), [only] if again.text(only) == listing.text(instruction))
        };
        let identity = match same_text {
            true => Identity::Hint(Hint::between(assembled, bytes)),
            false => Identity::Words(Reason::Other),
        };
        self.special().insert(instruction.encoding, identity.clone());
        Ok(identity)
    }

    fn special(&self) -> std::sync::MutexGuard<'_, HashMap<EncodingId, Identity>> {
        self.special.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
