//! Behind a word that LLVM does not know: where instructions certainly start again.
//!
//! The unknown instruction may be any length, so decoding is tried behind each length that there is. Streams of
//! instructions that start at different words soon meet; where all of them have met, an instruction starts, whatever the
//! length was.

use std::collections::BTreeSet;

use llvm::{Decoder, State, Target};

use crate::error::Result;

/// The longest instruction of any AMD GPU: gfx1250 has 16 bytes and a literal.
const MAX_INSTRUCTION_BYTES: u32 = 20;
/// What is decoded with an instruction: streams meet within a few.
const AHEAD_BYTES: u32 = 256;
/// Streams that have not met after so many instructions are given up.
const MAX_STEPS: usize = 4000;

/// Where instructions start again behind the unknown one at `at`; none when that is not certain.
///
/// # Errors
/// As [`Decoder::decode`].
pub fn behind(decoder: &dyn Decoder, target: &Target, code: &[u8], at: u32) -> Result<Option<u32>> {
    let end = code.len() as u32;
    let mut streams = BTreeSet::new();
    fork(&mut streams, at, end);
    for _ in 0..MAX_STEPS {
        let Some(first) = streams.pop_first().filter(|first| *first < end) else { return Ok(None) };
        if streams.is_empty() {
            return Ok(Some(first));
        }
        let ahead = &code[first as usize..end.min(first.saturating_add(AHEAD_BYTES)) as usize];
        match decoder.first(target, ahead)? {
            Some(instruction) if instruction.state == State::Decoded => {
                streams.insert(first + u32::from(instruction.len));
            }
            _ => fork(&mut streams, first, end),
        }
    }
    Ok(None)
}

/// Goes on behind every length that an instruction at `at` may have.
fn fork(streams: &mut BTreeSet<u32>, at: u32, end: u32) {
    streams.extend((at + 4..=at + MAX_INSTRUCTION_BYTES).step_by(4).map(|next| next.min(end)));
}
