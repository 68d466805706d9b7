//! The Mersenne Twister MT19937 as C++ defines it (`std::mt19937`, [rand.predef]): the seed's inputs are its draws.
//!
//! Source: M. Matsumoto and T. Nishimura, *Mersenne Twister*, ACM TOMACS 8 (1998) 3–30, with the initialisation of 2002.
//! The generator is sequential; a state of 624 words is made and tempered in loops that vectorise.

const WORDS: usize = 624;
const MIDDLE: usize = 397;

/// The generator.
#[derive(Clone, Debug)]
pub struct Mt19937 {
    state: [u32; WORDS],
    next: usize,
}

impl Mt19937 {
    /// `std::mt19937 generator(seed)`.
    pub fn new(seed: u32) -> Mt19937 {
        let mut state = [seed; WORDS];
        for index in 1..WORDS {
            let last = state[index - 1];
            state[index] = 1_812_433_253_u32.wrapping_mul(last ^ last >> 30).wrapping_add(index as u32);
        }
        Mt19937 { state, next: WORDS }
    }

    /// The next 32 bits.
    pub fn draw(&mut self) -> u32 {
        if self.next == WORDS {
            self.turn();
        }
        self.next += 1;
        temper(self.state[self.next - 1])
    }

    /// One draw for each byte, masked.
    pub fn fill(&mut self, mask: u8, into: &mut [u8]) {
        let mut rest = into;
        while !rest.is_empty() {
            if self.next == WORDS {
                self.turn();
            }
            let count = rest.len().min(WORDS - self.next);
            let (now, later) = rest.split_at_mut(count);
            for (byte, &word) in now.iter_mut().zip(&self.state[self.next..]) {
                *byte = temper(word) as u8 & mask;
            }
            self.next += count;
            rest = later;
        }
    }

    /// Makes the next 624 words.
    fn turn(&mut self) {
        // Each loop reads only words that it does not write, or wrote long ago.
        let state = &mut self.state;
        for index in 0..WORDS - MIDDLE {
            state[index] = twist(state[index], state[index + 1], state[index + MIDDLE]);
        }
        for index in WORDS - MIDDLE..WORDS - 1 {
            state[index] = twist(state[index], state[index + 1], state[index + MIDDLE - WORDS]);
        }
        state[WORDS - 1] = twist(state[WORDS - 1], state[0], state[MIDDLE - 1]);
        self.next = 0;
    }
}

fn twist(high: u32, low: u32, far: u32) -> u32 {
    let joined = high & 0x8000_0000 | low & 0x7fff_ffff;
    far ^ joined >> 1 ^ (low & 1).wrapping_neg() & 0x9908_b0df
}

fn temper(word: u32) -> u32 {
    let word = word ^ word >> 11;
    let word = word ^ word << 7 & 0x9d2c_5680;
    let word = word ^ word << 15 & 0xefc6_0000;
    word ^ word >> 18
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C++ [rand.predef]: the 10000th invocation of a default-constructed (seed 5489) engine gives 4123659995.
    #[test]
    fn the_10000th_draw_is_the_standards() {
        let mut generator = Mt19937::new(5489);
        assert_eq!((0..10_000).map(|_| generator.draw()).last(), Some(4_123_659_995));
    }

    #[test]
    fn bytes_are_the_low_bits_of_single_draws_and_go_on_across_buffers() {
        let (mut bytes, mut draws) = (Mt19937::new(42), Mt19937::new(42));
        for length in [0, 1, 700, 623, 5000] {
            let mut buffer = vec![0; length];
            bytes.fill(0x3f, &mut buffer);
            assert!(buffer.iter().all(|&byte| u32::from(byte) == draws.draw() & 0x3f), "{length}");
        }
    }
}
