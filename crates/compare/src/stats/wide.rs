//! Types of 16 bits and more: loops over blocks that the compiler vectorises, for the vector width of this machine
//! (`pulp` chooses at run time; order and rounding of all operations are the same for each width). Bits are worked on
//! here, values by `lanes`.

use super::element::{Bf16, Element, F16, F32, F64, I16, I32, I64};
use super::lanes::{self, BLOCK, Values};
use super::partial::Partial;
use crate::dtype::Dtype;
use crate::pieces::Chunk;
use pulp::Simd;
use std::marker::PhantomData;

/// The facts of one chunk.
pub(super) fn chunk(dtype: Dtype, chunk: Chunk<'_>) -> Partial {
    match dtype {
        Dtype::F64 => Blocks::<F64>::compare(chunk),
        Dtype::F32 => Blocks::<F32>::compare(chunk),
        Dtype::F16 => Blocks::<F16>::compare(chunk),
        Dtype::Bf16 => Blocks::<Bf16>::compare(chunk),
        Dtype::I16 => Blocks::<I16>::compare(chunk),
        Dtype::I32 => Blocks::<I32>::compare(chunk),
        Dtype::I64 => Blocks::<I64>::compare(chunk),
        // Types of at most 8 bits are counted by `narrow`.
        _ => Partial::default(),
    }
}

/// The work of a chunk, for `pulp`. Not a closure: its call would not be inlined, and only what is inlined is compiled
/// for the vector width of the machine.
struct Blocks<'a, E> {
    chunk: Chunk<'a>,
    element: PhantomData<E>,
}

impl<'a, E: Element> Blocks<'a, E> {
    fn compare(chunk: Chunk<'a>) -> Partial {
        pulp::Arch::new().dispatch(Blocks { chunk, element: PhantomData::<E> })
    }
}

impl<E: Element> pulp::WithSimd for Blocks<'_, E> {
    type Output = Partial;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Partial {
        blocks::<E, S>(simd, self.chunk.reference, self.chunk.test)
    }
}

#[inline(always)]
fn blocks<E: Element, S: Simd>(simd: S, reference: &[u8], test: &[u8]) -> Partial {
    let mut partial = Partial { elements: (reference.len() / E::SIZE) as u64, ..Partial::default() };
    let firsts = [reference, test].map(|bytes| if bytes.is_empty() { E::Bits::default() } else { E::read(bytes) });
    let mut room = Room::<E> { finite: [[0; BLOCK * LARGEST]; 2], values: [[E::value(E::Bits::default()); BLOCK]; 2] };
    let mut ahead = 0;
    for (a, b) in reference.chunks(BLOCK * E::SIZE).zip(test.chunks(BLOCK * E::SIZE)) {
        ahead += a.len();
        for bytes in [reference, test] {
            prefetch(&bytes[ahead..bytes.len().min(ahead + BLOCK * E::SIZE)]);
        }
        let counts_a = count::<E>(a);
        partial.add_side::<E>(0, counts_a, a, firsts[0]);
        if a == b {
            partial.add_side::<E>(1, counts_a, a, firsts[1]);
            equal::<E, S>(simd, a, counts_a, &mut room, &mut partial);
        } else {
            let counts_b = count::<E>(b);
            partial.add_side::<E>(1, counts_b, b, firsts[1]);
            different::<E, S>(simd, [a, b], [counts_a, counts_b], &mut room, &mut partial);
        }
    }
    partial.sides[0].first = firsts[0].into();
    partial.sides[1].first = firsts[1].into();
    partial
}

/// Bytes of the largest element.
const LARGEST: usize = size_of::<u64>();

/// What blocks are worked on in, made once for all of a chunk.
struct Room<E: Element> {
    /// Blocks in which what is not finite, or has a partner that is not, became zero.
    finite: [[u8; BLOCK * LARGEST]; 2],
    values: [Values<E>; 2],
}

/// Has the caches fetch what is compared next: by itself the processor fetches only behind what is being read, and while
/// a block is worked on nothing is.
#[inline(always)]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse) = pulp::core_arch::x86::Sse::try_new() {
        let (lines, _) = bytes.as_chunks::<64>();
        lines.iter().for_each(|line| sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[inline(always)]
fn elements<E: Element>(block: &[u8]) -> impl Iterator<Item = E::Bits> {
    block.chunks_exact(E::SIZE).map(E::read)
}

/// What a block of one output has.
#[derive(Clone, Copy)]
struct Counts {
    nonzero: u64,
    nan: u64,
    infinite: u64,
}

impl Counts {
    fn specials(self) -> u64 {
        self.nan + self.infinite
    }
}

impl Partial {
    #[inline(always)]
    fn add_side<E: Element>(&mut self, side: usize, counts: Counts, block: &[u8], first: E::Bits) {
        let side = &mut self.sides[side];
        side.nonzero += counts.nonzero;
        side.nan += counts.nan;
        side.infinite += counts.infinite;
        // Almost always the first block says it.
        side.varies = side.varies || varies::<E>(block, first);
    }
}

#[inline(always)]
fn varies<E: Element>(block: &[u8], first: E::Bits) -> bool {
    elements::<E>(block).fold(E::Bits::default(), |varied, bits| varied | (bits ^ first)) != E::Bits::default()
}

#[inline(always)]
fn count<E: Element>(block: &[u8]) -> Counts {
    let none = E::Bits::default();
    let (mut nonzero, mut largest) = (none, none);
    for bits in elements::<E>(block) {
        let magnitude = E::magnitude(bits);
        nonzero = nonzero + (magnitude != none).into();
        largest = largest.max(magnitude);
    }
    let (mut nan, mut infinite) = (none, none);
    if let Some(infinity) = E::INFINITY.filter(|&infinity| largest >= infinity) {
        for bits in elements::<E>(block) {
            let magnitude = E::magnitude(bits);
            nan = nan + (magnitude > infinity).into();
            infinite = infinite + (magnitude == infinity).into();
        }
    }
    Counts { nonzero: nonzero.into(), nan: nan.into(), infinite: infinite.into() }
}

/// A block whose bits are the same in both outputs: only lengths are left to add.
#[inline(always)]
fn equal<E: Element, S: Simd>(simd: S, block: &[u8], counts: Counts, room: &mut Room<E>, partial: &mut Partial) {
    let [block, _] = only_finite::<E>([block; 2], [counts; 2], &mut room.finite, partial);
    let is_nonzero = counts.nonzero > counts.specials();
    partial.sides.iter_mut().for_each(|side| side.finite_nonzero |= is_nonzero);
    decode::<E>(block, &mut room.values[0]);
    let square = lanes::square::<E, S>(simd, &room.values[0]);
    partial.squares[..3].iter_mut().for_each(|sum| sum.add(square));
}

/// A block in which something differs.
#[inline(always)]
fn different<E: Element, S: Simd>(
    simd: S,
    blocks: [&[u8]; 2],
    counts: [Counts; 2],
    room: &mut Room<E>,
    partial: &mut Partial,
) {
    let blocks = only_finite::<E>(blocks, counts, &mut room.finite, partial);
    for ((side, counts), block) in partial.sides.iter_mut().zip(counts).zip(blocks) {
        let is_nonzero = match counts.specials() {
            0 => counts.nonzero > 0,
            _ => count::<E>(block).nonzero > 0,
        };
        side.finite_nonzero |= is_nonzero;
    }

    let (mut mismatches, mut ulp) = (E::Bits::default(), E::Bits::default());
    for (x, y) in elements::<E>(blocks[0]).zip(elements::<E>(blocks[1])) {
        mismatches = mismatches + (x != y).into();
        let (key_x, key_y) = (E::key(x), E::key(y));
        ulp = ulp.max(key_x.max(key_y) - key_x.min(key_y));
    }
    partial.mismatches += mismatches.into();
    partial.max_ulp = partial.max_ulp.max(ulp.into());

    let [reference, test] = &mut room.values;
    decode::<E>(blocks[0], reference);
    decode::<E>(blocks[1], test);
    // A quotient for each element is slow; a product tells whether one of the block is larger than all before.
    let sums = lanes::sums::<E, S>(simd, reference, test, partial.max_rel * (1.0 + 4.0 * f64::EPSILON));
    partial.squares.iter_mut().zip(sums.squares).for_each(|(sum, square)| sum.add(square));
    partial.max_abs = partial.max_abs.max(sums.largest);
    if sums.exceeds {
        partial.max_rel = partial.max_rel.max(lanes::max_rel::<E>(reference, test));
    }
}

/// Blocks of finite elements: pairs with NaN or infinity are counted and become pairs of zeros.
#[inline(always)]
fn only_finite<'a, E: Element>(
    blocks: [&'a [u8]; 2],
    counts: [Counts; 2],
    room: &'a mut [[u8; BLOCK * LARGEST]; 2],
    partial: &mut Partial,
) -> [&'a [u8]; 2] {
    let bytes = blocks[0].len();
    let Some(infinity) = E::INFINITY.filter(|_| counts[0].specials() + counts[1].specials() > 0) else {
        partial.finite += (bytes / E::SIZE) as u64;
        return blocks;
    };
    let none = E::Bits::default();
    let (mut apart, mut finite, mut mismatches) = (none, none, none);
    let [a, b] = room;
    let pairs = elements::<E>(blocks[0]).zip(elements::<E>(blocks[1]));
    for ((x, y), (a, b)) in pairs.zip(a.chunks_exact_mut(E::SIZE).zip(b.chunks_exact_mut(E::SIZE))) {
        let (m, n) = (E::magnitude(x), E::magnitude(y));
        let special = (m >= infinity) | (n >= infinity);
        let same = (x == y) | ((m > infinity) & (n > infinity));
        apart = apart + (special & !same).into();
        finite = finite + (!special).into();
        mismatches = mismatches + (special & (x != y)).into();
        E::write(if special { none } else { x }, a);
        E::write(if special { none } else { y }, b);
    }
    partial.special_mismatches += apart.into();
    partial.finite += finite.into();
    partial.mismatches += mismatches.into();
    [&a[..bytes], &b[..bytes]]
}

/// The values of a block; zeros where it is short.
#[inline(always)]
fn decode<E: Element>(block: &[u8], values: &mut Values<E>) {
    let (there, rest) = values.split_at_mut(block.len() / E::SIZE);
    there.iter_mut().zip(elements::<E>(block)).for_each(|(value, bits)| *value = E::value(bits));
    rest.fill(E::value(E::Bits::default()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill::{Fill, Source};

    fn check<E: Element>(dtype: Dtype) {
        let elements = 5 * BLOCK + 77;
        let tensor = |seed| {
            let mut bytes = vec![0; elements * E::SIZE];
            let fill = Fill::Special { fill: Box::new(Fill::Normal { mean: 1.0, deviation: 20.0 }), rate: 1e-3 };
            Source::new(seed).fill(&fill, dtype, &[elements as u64], &mut bytes).expect("it fits");
            bytes
        };
        let (reference, mut test) = (tensor(1), tensor(2));
        test[..2 * BLOCK * E::SIZE].copy_from_slice(&reference[..2 * BLOCK * E::SIZE]);
        let chunk = Chunk { first: 0, elements: elements as u64, reference: &reference, test: &test };
        let op = || Blocks { chunk, element: PhantomData::<E> };
        let mut found = vec![Blocks::<E>::compare(chunk), pulp::Scalar.vectorize(op())];
        #[cfg(target_arch = "x86_64")]
        found.extend(pulp::x86::V3::try_new().map(|simd| Simd::vectorize(simd, op())));
        found.windows(2).for_each(|pair| assert_eq!(format!("{:?}", pair[0]), format!("{:?}", pair[1]), "{dtype}"));
    }

    #[test]
    fn each_vector_width_finds_the_same_bits() {
        check::<F64>(Dtype::F64);
        check::<F32>(Dtype::F32);
        check::<F16>(Dtype::F16);
        check::<Bf16>(Dtype::Bf16);
        check::<I16>(Dtype::I16);
        check::<I32>(Dtype::I32);
        check::<I64>(Dtype::I64);
    }
}
