//! Words that no compiler wrote: nothing that LLVM does with them reaches the caller as more than a marked word.

use libtest_mimic::Trial;
use llvm::{Decoder, Encoder, RoundTrip, State, Target};

use crate::{Engine, Outcome};

/// Random 8-byte inputs per target; `COAX_NOISE` asks for another number (200,000 have been tried).
const INPUTS: usize = 5_000;

pub fn trials() -> Vec<Trial> {
    let inputs = std::env::var("COAX_NOISE").ok().and_then(|inputs| inputs.parse().ok()).unwrap_or(INPUTS);
    let trial = |processor| Trial::test(format!("noise_does_no_harm_{processor}"), move || noise(processor, inputs));
    ["gfx942", "gfx950", "gfx1100", "gfx1250"].map(trial).into()
}

fn noise(processor: &str, inputs: usize) -> Outcome {
    let mut random = SplitMix(inputs as u64);
    let code: Vec<u8> = (0..inputs).flat_map(|_| random.next().to_le_bytes()).collect();
    let decoder = Engine::Worker.open()?;
    let target = Target::new(processor);
    let listing = decoder.decode(&target, &code)?;
    let count = |state| listing.instructions().iter().filter(|instruction| instruction.state == state).count();
    let [decoded, undecodable, crashed] = [State::Decoded, State::Undecodable, State::Crashed].map(count);
    let trips = decoder.round_trips(&target, &[(&code, &listing)])?;
    let survived = listing.instructions().iter().filter(|i| trips.get(i.encoding) == Some(&RoundTrip::Same)).count();
    eprintln!(
        "{processor}: {inputs} inputs, {decoded} decoded, {undecodable} undecodable, {crashed} crashed; {survived} \
         assemble to the same bytes"
    );
    let mut end = 0;
    for instruction in listing.instructions() {
        if instruction.offset != end || instruction.len == 0 {
            return Err(format!("a gap before {instruction:?}").into());
        }
        end += u32::from(instruction.len);
    }
    if end as usize == code.len() { Ok(()) } else { Err(format!("ends at {end} of {}", code.len()).into()) }
}

/// Steele, Lea, Flood: "Fast splittable pseudorandom number generators", OOPSLA 2014.
pub struct SplitMix(pub u64);

impl SplitMix {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
