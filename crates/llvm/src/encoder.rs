//! Text to bytes, instruction by instruction, and what that says of a decoded piece of code: does its text give the
//! same bytes again?

use std::sync::Arc;

use crate::by_id::Trips;
use crate::{EncodingId, Error, Listing, Target};

/// Turns single instructions into machine code, thousands at a time. Shared by all threads; the answer does not depend
/// on how many there are.
pub trait Encoder: Send + Sync {
    /// Encodes each of `texts`, one instruction each, without labels: a branch has the number that is encoded
    /// (`s_branch 5`). The results are in the order of the texts, and a text that LLVM refuses costs only itself.
    /// Equal texts are encoded once.
    ///
    /// # Errors
    /// Never because of what `texts` contain: only an unknown target or a lost worker.
    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error>;

    /// Checks every decoded instruction of `pieces`, each a piece of code and the listing that
    /// [`crate::Decoder::decode`] of this same toolchain made of it for `target`: is the text encoded as the bytes that
    /// it came from? Each distinct encoding is checked once in the life of the toolchain. One call with many pieces is
    /// faster than many calls: LLVM takes 0.3 ms to start a batch and 6 µs for an encoding.
    ///
    /// # Errors
    /// As [`Encoder::encode`].
    ///
    /// # Panics
    /// When a listing is one of another target or toolchain.
    fn round_trips(&self, target: &Target, pieces: &[(&[u8], &Listing)]) -> Result<RoundTrips, Error>;
}

/// What the assembler makes of one instruction's text.
pub type Encoded = Result<Box<[u8]>, Refusal>;

/// Why a text has no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where in the text, in bytes and counted from 1; 0 when no place is known.
    pub column: u32,
    /// LLVM's message: `invalid operand for instruction`.
    pub message: String,
}

/// Says of a text that LLVM died of it, or hung; perhaps by accident.
pub(crate) const DEADLY: &str = "LLVM dies of it";

/// What became of one encoding that was printed and assembled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundTrip {
    /// The text gives the same bytes.
    Same,
    /// The text gives these instead.
    Differs(Box<[u8]>),
    /// The text does not assemble.
    Refused(Refusal),
}

/// The round trips of a target's encodings; those of the listing that it was made for are all known.
#[derive(Clone)]
pub struct RoundTrips {
    pub(crate) known: Arc<Trips>,
}

impl RoundTrips {
    /// What became of `encoding`; `None` for a number that was in no listing checked so far, 0 above all.
    pub fn get(&self, encoding: EncodingId) -> Option<&RoundTrip> {
        self.known.get(encoding)
    }
}

impl RoundTrip {
    /// Compares what an instruction was with what its text has become.
    pub(crate) fn compare(bytes: &[u8], encoded: Encoded) -> Self {
        match encoded {
            Ok(same) if *same == *bytes => RoundTrip::Same,
            Ok(other) => RoundTrip::Differs(other),
            Err(refusal) => RoundTrip::Refused(refusal),
        }
    }
}
