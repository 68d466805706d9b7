//! Types of 16 bits and more: loops over blocks that the compiler vectorises, for the vector width of this machine
//! (`pulp` chooses at run time; order and rounding of all operations are the same for each width).

use super::element::{Bf16, Element, F16, F32, F64, I16, I32, I64};
use super::partial::Partial;
use crate::dtype::Dtype;
use crate::pieces::Chunk;
use std::marker::PhantomData;

/// Elements worked on at once: all intermediate values stay in the first-level cache, and counts fit 16 bits.
const BLOCK: usize = 512;

/// Running sums side by side; joined in a fixed tree.
const LANES: usize = 8;

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
    fn with_simd<S: pulp::Simd>(self, _: S) -> Partial {
        blocks::<E>(self.chunk.reference, self.chunk.test)
    }
}

#[inline(always)]
fn blocks<E: Element>(reference: &[u8], test: &[u8]) -> Partial {
    let mut partial = Partial { elements: (reference.len() / E::SIZE) as u64, ..Partial::default() };
    let firsts = [reference, test].map(|bytes| if bytes.is_empty() { E::Bits::default() } else { E::read(bytes) });
    let (mut a, mut b) = ([E::Bits::default(); BLOCK], [E::Bits::default(); BLOCK]);
    for (bytes_a, bytes_b) in reference.chunks(BLOCK * E::SIZE).zip(test.chunks(BLOCK * E::SIZE)) {
        let length = bytes_a.len() / E::SIZE;
        let (a, b) = (&mut a[..length], &mut b[..length]);
        load::<E>(bytes_a, a);
        let counts_a = count::<E>(a, firsts[0]);
        partial.add_side(0, counts_a);
        if bytes_a == bytes_b {
            partial.add_side(1, if firsts[0] == firsts[1] { counts_a } else { count::<E>(a, firsts[1]) });
            equal::<E>(a, counts_a, &mut partial);
        } else {
            load::<E>(bytes_b, b);
            let counts_b = count::<E>(b, firsts[1]);
            partial.add_side(1, counts_b);
            if counts_a.specials() + counts_b.specials() > 0 {
                set_specials_aside::<E>(a, b, &mut partial);
            } else {
                partial.finite += length as u64;
            }
            different::<E>(a, b, &mut partial);
        }
    }
    partial.sides[0].first = firsts[0].into();
    partial.sides[1].first = firsts[1].into();
    partial
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
    varies: bool,
}

impl Counts {
    fn specials(self) -> u64 {
        self.nan + self.infinite
    }
}

impl Partial {
    #[inline(always)]
    fn add_side(&mut self, side: usize, counts: Counts) {
        let side = &mut self.sides[side];
        side.nonzero += counts.nonzero;
        side.nan += counts.nan;
        side.infinite += counts.infinite;
        side.varies |= counts.varies;
    }
}

#[inline(always)]
fn count<E: Element>(block: &[E::Bits], first: E::Bits) -> Counts {
    let none = E::Bits::default();
    let (mut nonzero, mut nan, mut infinite, mut varied) = (none, none, none, none);
    for &bits in block {
        let magnitude = E::magnitude(bits);
        nonzero = nonzero + (magnitude != none).into();
        varied = varied | (bits ^ first);
        if let Some(infinity) = E::INFINITY {
            nan = nan + (magnitude > infinity).into();
            infinite = infinite + (magnitude == infinity).into();
        }
    }
    Counts { nonzero: nonzero.into(), nan: nan.into(), infinite: infinite.into(), varies: varied != none }
}

/// A block whose bits are the same in both outputs: only lengths are left to add.
#[inline(always)]
fn equal<E: Element>(block: &mut [E::Bits], counts: Counts, partial: &mut Partial) {
    let none = E::Bits::default();
    if let (Some(infinity), 1..) = (E::INFINITY, counts.specials()) {
        for bits in block.iter_mut() {
            *bits = if E::magnitude(*bits) >= infinity { none } else { *bits };
        }
    }
    partial.finite += block.len() as u64 - counts.specials();
    let is_nonzero = counts.nonzero > counts.specials();
    partial.sides.iter_mut().for_each(|side| side.finite_nonzero |= is_nonzero);
    let mut lanes = [0.0; LANES];
    let (some, rest) = block.as_chunks::<LANES>();
    for some in some {
        for (lane, &bits) in lanes.iter_mut().zip(some) {
            let value = E::wide(E::value(bits));
            *lane += value * value;
        }
    }
    for (lane, &bits) in lanes.iter_mut().zip(rest) {
        let value = E::wide(E::value(bits));
        *lane += value * value;
    }
    let square = join(lanes);
    partial.squares[..3].iter_mut().for_each(|sum| sum.add(square));
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

/// A block in which something differs; all elements are finite.
#[inline(always)]
fn different<E: Element>(a: &[E::Bits], b: &[E::Bits], partial: &mut Partial) {
    let none = E::Bits::default();
    let length = a.len().min(b.len()).min(BLOCK);
    let (a, b) = (&a[..length], &b[..length]);
    // Zeros behind a short block add nothing.
    let (mut values_a, mut values_b) = ([E::ZERO; BLOCK], [E::ZERO; BLOCK]);
    let (mut mismatches, mut ulp, mut any_a, mut any_b) = (none, none, none, none);
    for index in 0..length {
        let (x, y) = (a[index], b[index]);
        mismatches = mismatches + (x != y).into();
        let (key_x, key_y) = (E::key(x), E::key(y));
        ulp = ulp.max(key_x.max(key_y) - key_x.min(key_y));
        any_a = any_a | E::magnitude(x);
        any_b = any_b | E::magnitude(y);
        values_a[index] = E::value(x);
        values_b[index] = E::value(y);
    }
    partial.mismatches += mismatches.into();
    partial.max_ulp = partial.max_ulp.max(ulp.into());
    partial.sides[0].finite_nonzero |= any_a != none;
    partial.sides[1].finite_nonzero |= any_b != none;

    // A quotient for each element is slow; a product tells whether one of the block is larger than all before.
    let bound = partial.max_rel * (1.0 + 4.0 * f64::EPSILON);
    let (mut dd, mut largest, mut excess) = ([0.0_f64; LANES], [0.0_f64; LANES], [0.0_f64; LANES]);
    let pairs = values_a.as_chunks::<LANES>().0.iter().zip(values_b.as_chunks::<LANES>().0);
    for (some_a, some_b) in pairs.clone() {
        for lane in 0..LANES {
            let distance = E::distance(some_a[lane], some_b[lane]);
            dd[lane] += distance * distance;
            largest[lane] = if distance > largest[lane] { distance } else { largest[lane] };
            let over = distance - bound * E::wide(some_a[lane]).abs();
            excess[lane] = if over > excess[lane] { over } else { excess[lane] };
        }
    }
    // In loops of their own: in one, the compiler pairs products of one element instead of lanes.
    let products =
        [product::<E>(&values_a, &values_a), product::<E>(&values_b, &values_b), product::<E>(&values_a, &values_b)];
    let squares = [products[0], products[1], products[2], join(dd)];
    partial.squares.iter_mut().zip(squares).for_each(|(sum, square)| sum.add(square));
    partial.max_abs = largest.iter().fold(partial.max_abs, |most, &lane| most.max(lane));
    if excess != [0.0; LANES] {
        let mut relative = [0.0_f64; LANES];
        for (some_a, some_b) in pairs {
            for lane in 0..LANES {
                // 0 / 0 is NaN, which is not greater.
                let quotient = E::distance(some_a[lane], some_b[lane]) / E::wide(some_a[lane]).abs();
                relative[lane] = if quotient > relative[lane] { quotient } else { relative[lane] };
            }
        }
        partial.max_rel = relative.iter().fold(partial.max_rel, |most, &lane| most.max(lane));
    }
}

#[inline(always)]
fn join(lanes: [f64; LANES]) -> f64 {
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (c + g)) + ((b + f) + (d + h))
}

/// The sum of the products of two blocks.
#[inline(always)]
fn product<E: Element>(a: &[E::Value; BLOCK], b: &[E::Value; BLOCK]) -> f64 {
    let mut lanes = [0.0; LANES];
    for (some_a, some_b) in a.as_chunks::<LANES>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            lanes[lane] += E::wide(some_a[lane]) * E::wide(some_b[lane]);
        }
    }
    join(lanes)
}
