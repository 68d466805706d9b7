//! Cuts two outputs, which may come in pieces of any size, into chunks of a fixed number of elements. Whatever is
//! computed for each chunk and joined in order is the same for any pieces and any number of threads.

use crate::dtype::Dtype;
use crate::error::{Error, Result};
use rayon::prelude::*;

/// Elements of a chunk; they fill whole bytes for every type.
pub const CHUNK: u64 = 1 << 16;

/// Some whole chunks of both outputs, the last of which may be the short one at the end.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    first: u64,
    elements: u64,
    chunk_bytes: usize,
    reference: &'a [u8],
    test: &'a [u8],
}

/// One chunk of both outputs.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// Index of its first element.
    pub first: u64,
    /// How many elements it has.
    pub elements: u64,
    /// The reference's bytes.
    pub reference: &'a [u8],
    /// The test's bytes.
    pub test: &'a [u8],
}

impl<'a> Run<'a> {
    /// Its chunks, in order.
    pub fn chunks(self) -> impl IndexedParallelIterator<Item = Chunk<'a>> {
        let pairs = self.reference.par_chunks(self.chunk_bytes).zip(self.test.par_chunks(self.chunk_bytes));
        pairs.enumerate().map(move |(number, (reference, test))| {
            let first = self.first + number as u64 * CHUNK;
            Chunk { first, elements: CHUNK.min(self.elements - first), reference, test }
        })
    }
}

/// Takes pieces and gives runs.
#[derive(Debug)]
pub struct Cutter {
    elements: u64,
    bytes: u64,
    chunk_bytes: usize,
    received: u64,
    /// The begun chunk of each output.
    pending: [Vec<u8>; 2],
}

impl Cutter {
    /// For outputs of so many elements.
    ///
    /// # Errors
    /// More elements than memory can hold.
    pub fn new(dtype: Dtype, elements: u64) -> Result<Cutter> {
        let too_many = || Error::new(format!("{elements} elements of {dtype} are more than memory can hold"));
        let bytes = dtype.bytes_for(elements).ok_or_else(too_many)?;
        let chunk_bytes = (CHUNK / 8) as usize * dtype.bits() as usize;
        Ok(Cutter { elements, bytes, chunk_bytes, received: 0, pending: [Vec::new(), Vec::new()] })
    }

    /// Takes the next piece of both outputs and calls `work` with what is whole.
    ///
    /// # Errors
    /// Pieces of different sizes, or more bytes than the outputs have.
    pub fn add(&mut self, reference: &[u8], test: &[u8], mut work: impl FnMut(Run<'_>)) -> Result<()> {
        let (length, chunk) = (reference.len(), self.chunk_bytes);
        if length != test.len() {
            return Err(Error::new(format!("{length} bytes of the reference against {} of the test", test.len())));
        }
        if length as u64 > self.bytes - self.received {
            let received = u128::from(self.received) + length as u128;
            return Err(Error::new(format!(
                "{received} bytes of output: {} elements take {}",
                self.elements, self.bytes
            )));
        }
        let ends = self.received + length as u64 == self.bytes;
        let mut taken = 0;
        if !self.pending[0].is_empty() {
            taken = length.min(chunk - self.pending[0].len());
            self.pending[0].extend_from_slice(&reference[..taken]);
            self.pending[1].extend_from_slice(&test[..taken]);
            self.received += taken as u64;
            if self.pending[0].len() == chunk || ends && taken == length {
                let pending = std::mem::take(&mut self.pending);
                work(self.run(self.received - pending[0].len() as u64, &pending[0], &pending[1]));
            }
        }
        let whole = if ends { length } else { taken + (length - taken) / chunk * chunk };
        if whole > taken {
            work(self.run(self.received, &reference[taken..whole], &test[taken..whole]));
        }
        if taken < length {
            self.pending[0].extend_from_slice(&reference[whole..]);
            self.pending[1].extend_from_slice(&test[whole..]);
            self.received += (length - taken) as u64;
        }
        Ok(())
    }

    /// Ends the outputs.
    ///
    /// # Errors
    /// Fewer bytes than they have.
    pub fn finish(self) -> Result<()> {
        if self.received == self.bytes {
            return Ok(());
        }
        Err(Error::new(format!("{} bytes of output: {} elements take {}", self.received, self.elements, self.bytes)))
    }

    /// A run that starts at a byte of the outputs.
    fn run<'a>(&self, start: u64, reference: &'a [u8], test: &'a [u8]) -> Run<'a> {
        let first = start / self.chunk_bytes as u64 * CHUNK;
        Run { first, elements: self.elements, chunk_bytes: self.chunk_bytes, reference, test }
    }
}
