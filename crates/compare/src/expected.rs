//! What a kernel makes of given inputs, kept to hold later launches against.

use gpu::Device;

use crate::rig::BufferSet;

/// The outputs of one kernel.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// One for each compared buffer.
    pub outputs: Vec<ExpectedOutput>,
}

/// One output.
#[derive(Clone, Debug)]
pub struct ExpectedOutput {
    /// Number of the buffer in the site.
    pub number: usize,
    /// The argument's name.
    pub name: String,
    /// Bytes of a unit in which writing is told from not writing: an element, or a byte where elements share bytes.
    pub unit: usize,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Units that the kernel did not write, a bit each; empty when it wrote all.
    pub untouched: Vec<u64>,
}

impl ExpectedOutput {
    /// Whether the kernel left that unit alone.
    pub fn is_untouched(&self, unit: usize) -> bool {
        self.untouched.get(unit / 64).is_some_and(|bits| bits >> (unit % 64) & 1 == 1)
    }

    /// How many units it left alone.
    pub fn untouched_units(&self) -> u64 {
        self.untouched.iter().map(|bits| u64::from(bits.count_ones())).sum()
    }

    /// The first unit in which `found`, at byte `offset`, is something else; a unit that was not written holds the poison.
    fn first_difference(&self, offset: usize, found: &[u8], poison: [u8; 4]) -> Option<usize> {
        let expected = self.content.get(offset..offset + found.len())?;
        if self.untouched.is_empty() && expected == found {
            return None;
        }
        let units = expected.chunks(self.unit).zip(found.chunks(self.unit)).enumerate();
        let differs = |(at, (expected, found)): &(usize, (&[u8], &[u8]))| {
            let unit = offset / self.unit + at;
            match self.is_untouched(unit) {
                true => found.iter().enumerate().any(|(byte, value)| *value != poison[(unit * self.unit + byte) % 4]),
                false => expected != found,
            }
        };
        units.into_iter().find(differs).map(|(at, _)| offset / self.unit + at)
    }
}

impl Expected {
    /// What is wrong with the outputs in `set`, which were filled with `poison` before the launch.
    pub fn differs_from(&self, device: &dyn Device, set: &BufferSet, poison: u32) -> gpu::Result<Option<String>> {
        for output in &self.outputs {
            let mut difference = None;
            set.read_in_chunks(device, output.number, |offset, found| {
                difference = output.first_difference(offset, found, poison.to_le_bytes());
                difference.is_none()
            })?;
            if let Some(unit) = difference {
                return Ok(Some(format!("output `{}` of a timed launch is another at element {unit}", output.name)));
            }
        }
        Ok(None)
    }
}
