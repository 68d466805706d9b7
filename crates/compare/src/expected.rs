//! What a kernel makes of given inputs.

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
}
