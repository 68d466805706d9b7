//! Elements in memory: little-endian, packed without gaps.
//!
//! Element i is bits `i * bits ..` of the buffer read as one little-endian number. So of two fp4 elements in a byte the
//! first is the low nibble, and four fp6 elements fill three bytes:
//!
//! ```text
//! byte      2        1        0
//!       33333322 22221111 11000000
//! ```

use super::Dtype;

impl Dtype {
    /// Bytes that hold `elements` elements; none when no buffer could be so large.
    pub fn bytes_for(self, elements: u64) -> Option<u64> {
        u64::try_from((u128::from(elements) * u128::from(self.bits())).div_ceil(8)).ok()
    }

    /// The smallest number of elements that fills whole bytes: 2 for fp4, 4 for fp6, 1 else.
    pub const fn group(self) -> u64 {
        match self.bits() {
            4 => 2,
            6 => 4,
            _ => 1,
        }
    }

    /// Bytes in which writing is told from not writing: an element, or a byte where elements share bytes.
    pub const fn unit_bytes(self) -> usize {
        match self.bits() {
            bits if bits % 8 == 0 => bits as usize / 8,
            _ => 1,
        }
    }

    /// The bits of an element; none behind the end of the buffer.
    pub fn get(self, bytes: &[u8], index: u64) -> Option<u64> {
        let (first, shift, width) = self.span(index)?;
        let bytes = bytes.get(first..first.checked_add(width)?)?;
        let mut word = [0; 8];
        word[..width].copy_from_slice(bytes);
        Some(u64::from_le_bytes(word) >> shift & self.mask())
    }

    /// Sets the bits of an element; false behind the end of the buffer.
    pub fn set(self, bytes: &mut [u8], index: u64, bits: u64) -> bool {
        let span = self.span(index).and_then(|(first, shift, width)| Some((first, first.checked_add(width)?, shift)));
        let Some((bytes, shift)) = span.and_then(|(first, end, shift)| Some((bytes.get_mut(first..end)?, shift)))
        else {
            return false;
        };
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let word = u64::from_le_bytes(word) & !(self.mask() << shift) | (bits & self.mask()) << shift;
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
        true
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits())
    }

    /// Where an element lies: its first byte, the shift in it, and how many bytes it touches.
    fn span(self, index: u64) -> Option<(usize, u32, usize)> {
        let bit = u128::from(index) * u128::from(self.bits());
        let shift = (bit % 8) as u32;
        Some((usize::try_from(bit / 8).ok()?, shift, (shift + self.bits()).div_ceil(8) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fp4_element_is_the_low_nibble() {
        assert_eq!((0..3).map(|i| Dtype::Fp4E2m1.get(&[0x21], i)).collect::<Vec<_>>(), [Some(1), Some(2), None]);
    }

    #[test]
    fn four_fp6_elements_fill_three_bytes() {
        // 0b000100_000011_000010_000001, from the high end.
        let bytes = [0b1000_0001, 0b0011_0000, 0b0001_0000];
        assert_eq!(
            (0..5).map(|i| Dtype::Fp6E2m3.get(&bytes, i)).collect::<Vec<_>>(),
            [Some(1), Some(2), Some(3), Some(4), None]
        );
    }

    #[test]
    fn what_is_set_is_got_and_neighbours_stay() {
        for facts in &super::super::TABLE {
            let dtype = facts.dtype;
            let mut bytes = vec![0xaa; dtype.bytes_for(9).unwrap_or_default() as usize];
            let before: Vec<_> = (0..9).map(|i| dtype.get(&bytes, i)).collect();
            let value = 0x0123_4567_89ab_cdef & dtype.mask();
            assert!(dtype.set(&mut bytes, 5, value), "{dtype}");
            for (index, old) in before.iter().enumerate() {
                let expected = if index == 5 { Some(value) } else { *old };
                assert_eq!(dtype.get(&bytes, index as u64), expected, "{dtype} {index}");
            }
            assert!(!dtype.set(&mut bytes, 1 << 40, value));
            assert_eq!(dtype.get(&bytes, u64::MAX), None);
        }
    }
}
