//! Buffers of the device that show what a kernel should not have done: a guard zone on each side, whose pattern differs from
//! launch to launch, and outputs filled with poison, so that what was not written can be told.
//!
//! ```text
//! | guard, 64 KiB | data | guard, 64 KiB |
//! ```
//!
//! A kernel that reads its guard zones computes another result in each launch, and is found by that.

use std::fmt;

use gpu::{Address, Device, Result};

use crate::random::Random;

/// Bytes of a guard zone; a multiple of every alignment that kernels rely on.
pub const GUARD_BYTES: u64 = 64 << 10;

/// One buffer with its guards.
#[derive(Debug)]
pub struct Guarded {
    base: Address,
    /// Bytes of the data.
    pub bytes: u64,
    pattern: u32,
}

/// A write outside a buffer.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Trespass {
    /// The argument.
    pub buffer: String,
    /// Byte offset of the first one from the start of the data: negative in front of it.
    pub offset: i64,
    /// What was written there, up to 8 bytes of those that follow each other.
    pub value: Vec<u8>,
    /// Bytes that changed.
    pub bytes: u64,
}

/// `wrote outside `out`: 4 bytes from byte 4084, beginning with 0000803f`
impl fmt::Display for Trespass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value: String = self.value.iter().map(|byte| format!("{byte:02x}")).collect();
        let Trespass { buffer, offset, bytes, .. } = self;
        write!(f, "wrote outside `{buffer}`: {bytes} bytes from byte {offset}, beginning with {value}")
    }
}

impl Guarded {
    /// Takes memory; nothing is written yet.
    pub fn allocate(device: &dyn Device, bytes: u64) -> Result<Guarded> {
        let base = device.allocate(bytes + 2 * GUARD_BYTES)?;
        Ok(Guarded { base, bytes, pattern: 0 })
    }

    /// Gives it back.
    pub fn free(self, device: &dyn Device) -> Result<()> {
        device.free(self.base)
    }

    /// Where the data is.
    pub fn data(&self) -> Address {
        Address(self.base.0 + GUARD_BYTES)
    }

    /// Writes new patterns into the guard zones.
    pub fn arm(&mut self, device: &dyn Device, random: &mut Random) -> Result<()> {
        self.pattern = word_without_zero_bytes(random);
        let zone = self.pattern.to_le_bytes().repeat(GUARD_BYTES as usize / 4);
        device.write(self.base, &zone)?;
        device.write(Address(self.data().0 + self.bytes), &zone)
    }

    /// Fills the data with a pattern.
    pub fn poison(&self, device: &dyn Device, word: u32) -> Result<()> {
        device.fill(self.data(), word, self.bytes / 4)?;
        let rest = (self.bytes % 4) as usize;
        if rest == 0 {
            return Ok(());
        }
        device.write(Address(self.data().0 + self.bytes - rest as u64), &word.to_le_bytes()[..rest])
    }

    /// What changed in the guard zones since they were armed.
    pub fn trespasses(&self, device: &dyn Device, name: &str) -> Result<Vec<Trespass>> {
        let expected = self.pattern.to_le_bytes();
        let mut found = Vec::new();
        let zones = [(self.base, -(GUARD_BYTES as i64)), (Address(self.data().0 + self.bytes), self.bytes as i64)];
        for (address, offset) in zones {
            let mut zone = vec![0; GUARD_BYTES as usize];
            device.read(address, &mut zone)?;
            if zone == expected.repeat(GUARD_BYTES as usize / 4) {
                continue;
            }
            let changed = |(at, byte): &(usize, &u8)| **byte != expected[at % 4];
            let Some((first, _)) = zone.iter().enumerate().find(changed) else { continue };
            let end = (first..zone.len()).find(|at| !changed(&(*at, &zone[*at]))).unwrap_or(zone.len());
            let written = &zone[first..end];
            found.push(Trespass {
                buffer: name.to_owned(),
                offset: offset + first as i64,
                value: written.iter().copied().take(8).collect(),
                bytes: zone.iter().enumerate().filter(changed).count() as u64,
            });
        }
        Ok(found)
    }
}

/// Poison for one run: no byte of it is 0, and none is that of `other` at its place, so that no result is equal to both.
pub fn poison_word(random: &mut Random, other: u32) -> u32 {
    loop {
        let word = word_without_zero_bytes(random);
        if word.to_le_bytes().iter().zip(other.to_le_bytes()).all(|(a, b)| *a != b) {
            return word;
        }
    }
}

/// Whether bytes, which begin at offset `at` of a buffer, are its poison.
pub fn is_poison(bytes: &[u8], at: usize, poison: u32) -> bool {
    let poison = poison.to_le_bytes();
    bytes.iter().enumerate().all(|(byte, value)| *value == poison[(at + byte) % 4])
}

/// A pattern that memory which was cleared does not have.
pub fn word_without_zero_bytes(random: &mut Random) -> u32 {
    loop {
        let word = random.draw() as u32;
        if word.to_le_bytes().iter().all(|byte| *byte != 0) {
            return word;
        }
    }
}

#[cfg(test)]
mod tests {
    use gpu::mock::Mock;

    use super::*;

    #[test]
    fn writes_outside_are_told_with_place_and_value() -> Result<()> {
        let device = Mock::new();
        let mut random = Random::new(1);
        for bytes in [1, 4, 13, 4096] {
            let mut buffer = Guarded::allocate(&device, bytes)?;
            buffer.arm(&device, &mut random)?;
            buffer.poison(&device, 0x1234_5678)?;
            assert_eq!(buffer.trespasses(&device, "out")?, []);
            // Zeros differ from every pattern.
            device.write(Address(buffer.data().0 + bytes + 8), &[0; 3])?;
            device.write(Address(buffer.data().0 - 2), &[0; 2])?;
            let found = buffer.trespasses(&device, "out")?;
            let places: Vec<(i64, u64)> = found.iter().map(|trespass| (trespass.offset, trespass.bytes)).collect();
            assert_eq!(places, [(-2, 2), (bytes as i64 + 8, 3)]);
            assert_eq!(found[1].value[..3], [0, 0, 0]);
            buffer.free(&device)?;
        }
        Ok(())
    }

    #[test]
    fn poison_reaches_the_last_byte() -> Result<()> {
        let device = Mock::new();
        let buffer = Guarded::allocate(&device, 7)?;
        buffer.poison(&device, 0x0403_0201)?;
        let mut content = [0; 7];
        device.read(buffer.data(), &mut content)?;
        assert_eq!(content, [1, 2, 3, 4, 1, 2, 3]);
        Ok(())
    }

    #[test]
    fn two_poisons_share_no_byte() {
        let mut random = Random::new(3);
        for _ in 0..100 {
            let first = poison_word(&mut random, 0);
            let second = poison_word(&mut random, first);
            assert!((0..4).all(|at| first.to_le_bytes()[at] != second.to_le_bytes()[at]));
        }
    }
}
