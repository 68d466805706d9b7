//! A number in a header: where it is and how wide. Readers and writers of a format share these.

use crate::error::{Error, Place, Result};

/// A little-endian number, counted from the start of its header or row.
#[derive(Clone, Copy)]
pub(super) struct Field {
    /// Its first byte.
    pub at: usize,
    /// Bytes.
    pub size: usize,
}

impl Field {
    pub const fn new(at: usize, size: usize) -> Field {
        Field { at, size }
    }

    /// The number, in the row that starts at `row`; none where the bytes end before.
    pub fn get(self, bytes: &[u8], row: usize) -> Option<u64> {
        let start = row.checked_add(self.at)?;
        let field = bytes.get(start..start.checked_add(self.size)?)?;
        Some(field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Writes the number.
    ///
    /// # Errors
    /// `Limit` for one that is too large for the field.
    pub fn set(self, bytes: &mut [u8], row: usize, value: u64) -> Result<()> {
        let digits = value.to_le_bytes();
        let start = row.saturating_add(self.at);
        if digits[self.size..].iter().any(|digit| *digit != 0) {
            let message = format!("{value} bytes are more than the container's header can say");
            return Err(Error::limit(Place::File(start as u64), message));
        }
        let field = bytes.get_mut(start..start.saturating_add(self.size));
        let field = field.ok_or_else(|| Error::malformed(start as u64, "the container ends inside a header"))?;
        field.copy_from_slice(&digits[..self.size]);
        Ok(())
    }
}
