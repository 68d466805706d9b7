//! Types of 16 bits and more: loops over blocks that the compiler vectorises, for the vector width of this machine
//! (`pulp` chooses at run time; order and rounding of all operations are the same for each width).

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
    let (mut a, mut b) = ([E::Bits::default(); BLOCK], [E::Bits::default(); BLOCK]);
    let mut ahead = 0;
    for (bytes_a, bytes_b) in reference.chunks(BLOCK * E::SIZE).zip(test.chunks(BLOCK * E::SIZE)) {
        ahead += bytes_a.len();
        for bytes in [reference, test] {
            prefetch(&bytes[ahead..bytes.len().min(ahead + BLOCK * E::SIZE)]);
        }
        let length = bytes_a.len() / E::SIZE;
        let (a, b) = (&mut a[..length], &mut b[..length]);
        load::<E>(bytes_a, a);
        let counts_a = count::<E>(a);
        partial.add_side::<E>(0, counts_a, a, firsts[0]);
        if bytes_a == bytes_b {
            partial.add_side::<E>(1, counts_a, a, firsts[1]);
            equal::<E, S>(simd, a, counts_a, &mut partial);
        } else {
            load::<E>(bytes_b, b);
            let counts_b = count::<E>(b);
            partial.add_side::<E>(1, counts_b, b, firsts[1]);
            different::<E, S>(simd, [a, b], [counts_a, counts_b], &mut partial);
        }
    }
    partial.sides[0].first = firsts[0].into();
    partial.sides[1].first = firsts[1].into();
    partial
}

/// Has the caches fetch what is compared next: by itself the processor fetches only behind what is being read, and while
/// a block is worked on nothing is.
#[inline(always)]
fn prefetch(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(sse) = pulp::core_arch::x86::Sse::try_new() {
        let lines = bytes.chunks(64);
        lines.for_each(|line| sse._mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(line.as_ptr().cast()));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = bytes;
}

#[inline(always)]
fn load<E: Element>(bytes: &[u8], into: &mut [E::Bits]) {
    for (bits, bytes) in into.iter_mut().zip(bytes.chunks_exact(E::SIZE)) {
        *bits = E::read(bytes);
    }
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
    fn add_side<E: Element>(&mut self, side: usize, counts: Counts, block: &[E::Bits], first: E::Bits) {
        let side = &mut self.sides[side];
        side.nonzero += counts.nonzero;
        side.nan += counts.nan;
        side.infinite += counts.infinite;
        // Almost always the first block says it.
        side.varies = side.varies || varies::<E>(block, first);
    }
}

#[inline(always)]
fn varies<E: Element>(block: &[E::Bits], first: E::Bits) -> bool {
    block.iter().fold(E::Bits::default(), |varied, &bits| varied | (bits ^ first)) != E::Bits::default()
}

#[inline(always)]
fn count<E: Element>(block: &[E::Bits]) -> Counts {
    let none = E::Bits::default();
    let (mut nonzero, mut largest) = (none, none);
    for &bits in block {
        let magnitude = E::magnitude(bits);
        nonzero = nonzero + (magnitude != none).into();
        largest = largest.max(magnitude);
    }
    let (mut nan, mut infinite) = (none, none);
    if let Some(infinity) = E::INFINITY.filter(|&infinity| largest >= infinity) {
        for &bits in block {
            let magnitude = E::magnitude(bits);
            nan = nan + (magnitude > infinity).into();
            infinite = infinite + (magnitude == infinity).into();
        }
    }
    Counts { nonzero: nonzero.into(), nan: nan.into(), infinite: infinite.into() }
}

/// A block whose bits are the same in both outputs: only lengths are left to add.
#[inline(always)]
fn equal<E: Element, S: Simd>(simd: S, block: &mut [E::Bits], counts: Counts, partial: &mut Partial) {
    let none = E::Bits::default();
    if let (Some(infinity), 1..) = (E::INFINITY, counts.specials()) {
        for bits in block.iter_mut() {
            *bits = if E::magnitude(*bits) >= infinity { none } else { *bits };
        }
    }
    partial.finite += block.len() as u64 - counts.specials();
    let is_nonzero = counts.nonzero > counts.specials();
    partial.sides.iter_mut().for_each(|side| side.finite_nonzero |= is_nonzero);
    let square = lanes::square::<E, S>(simd, &values::<E>(block));
    partial.squares[..3].iter_mut().for_each(|sum| sum.add(square));
}

/// The values of a block; zeros where it is short.
#[inline(always)]
fn values<E: Element>(block: &[E::Bits]) -> Values<E> {
    let mut values = [E::value(E::Bits::default()); BLOCK];
    for (value, &bits) in values.iter_mut().zip(block) {
        *value = E::value(bits);
    }
    values
}

/// Counts the pairs with NaN or infinity, and makes them pairs of zeros.
#[inline(always)]
fn set_specials_aside<E: Element>(a: &mut [E::Bits], b: &mut [E::Bits], partial: &mut Partial) {
    let (Some(infinity), none) = (E::INFINITY, E::Bits::default()) else { return };
    let (mut apart, mut finite, mut mismatches) = (none, none, none);
    for (x, y) in a.iter_mut().zip(b) {
        let (m, n) = (E::magnitude(*x), E::magnitude(*y));
        let special = (m >= infinity) | (n >= infinity);
        let same = (*x == *y) | ((m > infinity) & (n > infinity));
        apart = apart + (special & !same).into();
        finite = finite + (!special).into();
        mismatches = mismatches + (special & (*x != *y)).into();
        *x = if special { none } else { *x };
        *y = if special { none } else { *y };
    }
    partial.special_mismatches += apart.into();
    partial.finite += finite.into();
    partial.mismatches += mismatches.into();
}

/// A block in which something differs.
#[inline(always)]
fn different<E: Element, S: Simd>(
    simd: S,
    [a, b]: [&mut [E::Bits]; 2],
    mut counts: [Counts; 2],
    partial: &mut Partial,
) {
    if counts[0].specials() + counts[1].specials() > 0 {
        set_specials_aside::<E>(a, b, partial);
        counts = [count::<E>(a), count::<E>(b)];
    } else {
        partial.finite += a.len() as u64;
    }
    partial.sides.iter_mut().zip(counts).for_each(|(side, counts)| side.finite_nonzero |= counts.nonzero > 0);

    let none = E::Bits::default();
    let (mut mismatches, mut ulp) = (none, none);
    for (&x, &y) in a.iter().zip(&*b) {
        mismatches = mismatches + (x != y).into();
        let (key_x, key_y) = (E::key(x), E::key(y));
        ulp = ulp.max(key_x.max(key_y) - key_x.min(key_y));
    }
    partial.mismatches += mismatches.into();
    partial.max_ulp = partial.max_ulp.max(ulp.into());

    let (reference, test) = (values::<E>(a), values::<E>(b));
    // A quotient for each element is slow; a product tells whether one of the block is larger than all before.
    let sums = lanes::sums::<E, S>(simd, &reference, &test, partial.max_rel * (1.0 + 4.0 * f64::EPSILON));
    partial.squares.iter_mut().zip(sums.squares).for_each(|(sum, square)| sum.add(square));
    partial.max_abs = partial.max_abs.max(sums.largest);
    if sums.exceeds {
        partial.max_rel = partial.max_rel.max(lanes::max_rel::<E>(&reference, &test));
    }
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
