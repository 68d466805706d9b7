//! The elements of a fill, a block at a time: computed in loops that the compiler vectorises for this machine (`pulp`
//! chooses at run time), stored, chunk by chunk on all cores. Nothing depends on blocks, threads or the vector width.

use crate::dtype::Dtype;
use pulp::Simd;
use rayon::prelude::*;

/// Elements of a block; they fill whole bytes for every type, and all that is made of them stays in the first-level
/// cache.
pub(super) const BLOCK: usize = 256;

/// Elements that one work item writes.
pub(super) const CHUNK: u64 = 1 << 16;

/// Something for each element of a block.
pub(super) type Block<T> = [T; BLOCK];

/// The elements of a fill. Implementations are `#[inline(always)]`: only what is inlined is compiled for the vector width
/// of the machine.
pub(super) trait Elements: Sync {
    /// The bits of the elements from `first` on; of each, the lowest count. `first` is a multiple of [`BLOCK`].
    fn block(&self, first: u64, bits: &mut Block<u64>);
}

/// Elements given one by one, for fills that nobody waits for.
pub(super) struct Each<F>(pub F);

impl<F: Fn(u64) -> u64 + Sync> Elements for Each<F> {
    #[inline(always)]
    fn block(&self, first: u64, bits: &mut Block<u64>) {
        bits.iter_mut().zip(first..).for_each(|(bits, index)| *bits = (self.0)(index));
    }
}

/// Writes a tensor of `count` elements; bits behind the last one become 0.
pub(super) fn write(elements: &impl Elements, dtype: Dtype, count: u64, into: &mut [u8]) {
    let chunk_bytes = (CHUNK / 8) as usize * dtype.bits() as usize;
    into.par_chunks_mut(chunk_bytes).enumerate().for_each(|(number, bytes)| {
        let first = number as u64 * CHUNK;
        pulp::Arch::new().dispatch(Chunk { elements, dtype, first, count, bytes });
    });
}

struct Chunk<'a, E> {
    elements: &'a E,
    dtype: Dtype,
    first: u64,
    count: u64,
    bytes: &'a mut [u8],
}

impl<E: Elements> pulp::WithSimd for Chunk<'_, E> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let mut bits = [0; BLOCK];
        let blocks = self.bytes.chunks_mut(BLOCK / 8 * self.dtype.bits() as usize);
        for (bytes, first) in blocks.zip((self.first..).step_by(BLOCK)) {
            self.elements.block(first, &mut bits);
            let there = self.count.saturating_sub(first).min(BLOCK as u64) as usize;
            bits[there..].fill(0);
            match self.dtype.bits() {
                4 => pack::<4, 2, 1>(&bits, bytes),
                6 => pack::<6, 4, 3>(&bits, bytes),
                8 => store(&bits, bytes, |bits| [bits as u8]),
                16 => store(&bits, bytes, |bits| (bits as u16).to_le_bytes()),
                32 => store(&bits, bytes, |bits| (bits as u32).to_le_bytes()),
                _ => store(&bits, bytes, u64::to_le_bytes),
            }
        }
    }
}

#[inline(always)]
fn store<const BYTES: usize>(block: &Block<u64>, into: &mut [u8], bytes: impl Fn(u64) -> [u8; BYTES]) {
    let (elements, _) = into.as_chunks_mut::<BYTES>();
    elements.iter_mut().zip(block).for_each(|(element, &bits)| *element = bytes(bits));
}

/// Groups of `GROUP` elements of `BITS` bits fill `BYTES` bytes, the first element lowest.
#[inline(always)]
fn pack<const BITS: usize, const GROUP: usize, const BYTES: usize>(block: &Block<u64>, into: &mut [u8]) {
    for (group, bytes) in block.chunks(GROUP).zip(into.chunks_mut(BYTES)) {
        let word = group.iter().rev().fold(0, |word, &bits| word << BITS | bits & ((1 << BITS) - 1));
        bytes.copy_from_slice(&word.to_le_bytes()[..bytes.len()]);
    }
}
