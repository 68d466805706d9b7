//! Sums and maxima over the values of a block, in f64. Eight running sums stand side by side, in as many vectors as the
//! machine needs for them, and are joined in a fixed tree: order and rounding are the same for each vector width.
//!
//! Written in `pulp`'s vectors: left to itself, the compiler pairs the products of one element instead of lanes.

use super::element::Element;
use pulp::{Simd, bytemuck};

/// Elements worked on at once: all values of a block stay in the first-level cache, and counts fit 16 bits.
pub(super) const BLOCK: usize = 512;

/// Running sums side by side.
const LANES: usize = 8;

/// The values of a block, all finite; zeros where it is short.
pub(super) type Values<E> = [<E as Element>::Value; BLOCK];

/// What follows from the values of a block.
pub(super) struct Sums {
    /// Of reference², test², reference * test, (reference - test)².
    pub squares: [f64; 4],
    /// The largest distance.
    pub largest: f64,
    /// Whether a distance is above `bound` * |reference|.
    pub exceeds: bool,
}

/// Sums and maxima of the values of both outputs.
#[inline(always)]
pub(super) fn sums<E: Element, S: Simd>(simd: S, reference: &Values<E>, test: &Values<E>, bound: f64) -> Sums {
    let bound = simd.splat_f64s(bound);
    let mut squares = [Lanes::<S>::new(simd); 4];
    let (mut largest, mut exceeds) = (Lanes::<S>::new(simd), simd.greater_than_f64s(bound, bound));
    for (x, y) in groups::<E>(reference).zip(groups::<E>(test)) {
        let distances = std::array::from_fn(|lane| E::distance(x[lane], y[lane]));
        let [x, y, d] = [wide::<E>(x), wide::<E>(y), distances].map(|lanes| Lanes::<S>::of(simd, lanes));
        for at in 0..Lanes::<S>::VECTORS {
            let (x, y, d) = (x.0[at], y.0[at], d.0[at]);
            squares[0].add_product::<E>(simd, at, x, x);
            squares[1].add_product::<E>(simd, at, y, y);
            squares[2].add_product::<E>(simd, at, x, y);
            squares[3].0[at] = simd.add_f64s(squares[3].0[at], simd.mul_f64s(d, d));
            largest.0[at] = simd.max_f64s(largest.0[at], d);
            let product = simd.mul_f64s(bound, simd.abs_f64s(x));
            exceeds = simd.or_m64s(exceeds, simd.greater_than_f64s(d, product));
        }
    }
    let exceeds = simd.select_f64s(exceeds, simd.splat_f64s(1.0), simd.splat_f64s(0.0));
    Sums {
        squares: squares.map(Lanes::join),
        largest: largest.values().iter().fold(0.0, |most, &lane| most.max(lane)),
        exceeds: scalars::<S>(&[exceeds]).iter().any(|&lane| lane != 0.0),
    }
}

/// The largest |reference - test| / |reference|.
#[inline(always)]
pub(super) fn max_rel<E: Element>(reference: &Values<E>, test: &Values<E>) -> f64 {
    let mut largest = [0.0_f64; LANES];
    for (x, y) in groups::<E>(reference).zip(groups::<E>(test)) {
        for lane in 0..LANES {
            // 0 / 0 is NaN, which is not greater.
            let quotient = E::distance(x[lane], y[lane]) / E::wide(x[lane]).abs();
            largest[lane] = if quotient > largest[lane] { quotient } else { largest[lane] };
        }
    }
    largest.iter().fold(0.0, |most, &lane| most.max(lane))
}

/// The sum of the squares of a block's values.
#[inline(always)]
pub(super) fn square<E: Element, S: Simd>(simd: S, values: &Values<E>) -> f64 {
    let mut sum = Lanes::<S>::new(simd);
    for values in groups::<E>(values) {
        let x = Lanes::<S>::of(simd, wide::<E>(values));
        for at in 0..Lanes::<S>::VECTORS {
            sum.add_product::<E>(simd, at, x.0[at], x.0[at]);
        }
    }
    sum.join()
}

#[inline(always)]
fn groups<E: Element>(values: &Values<E>) -> impl Iterator<Item = &[E::Value; LANES]> {
    values.as_chunks().0.iter()
}

#[inline(always)]
fn wide<E: Element>(values: &[E::Value; LANES]) -> [f64; LANES] {
    values.map(E::wide)
}

/// A number for each lane, in the first [`Lanes::VECTORS`] of the vectors.
#[derive(Clone, Copy)]
struct Lanes<S: Simd>([S::f64s; LANES]);

impl<S: Simd> Lanes<S> {
    /// How many vectors have all lanes.
    const VECTORS: usize = LANES / S::F64_LANES;

    #[inline(always)]
    fn new(simd: S) -> Lanes<S> {
        Lanes([simd.splat_f64s(0.0); LANES])
    }

    #[inline(always)]
    fn of(simd: S, values: [f64; LANES]) -> Lanes<S> {
        let mut lanes = Lanes::new(simd);
        lanes.0[..Self::VECTORS].copy_from_slice(S::as_simd_f64s(&values).0);
        lanes
    }

    #[inline(always)]
    fn add_product<E: Element>(&mut self, simd: S, at: usize, x: S::f64s, y: S::f64s) {
        self.0[at] = match E::EXACT_PRODUCTS {
            // With nothing to round there, one rounding or two are the same.
            true => simd.mul_add_e_f64s(x, y, self.0[at]),
            false => simd.add_f64s(self.0[at], simd.mul_f64s(x, y)),
        };
    }

    #[inline(always)]
    fn values(&self) -> &[f64] {
        scalars::<S>(&self.0[..Self::VECTORS])
    }

    #[inline(always)]
    fn join(self) -> f64 {
        let &[a, b, c, d, e, f, g, h] = self.values() else { return f64::NAN };
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }
}

#[inline(always)]
fn scalars<S: Simd>(vectors: &[S::f64s]) -> &[f64] {
    bytemuck::cast_slice(vectors)
}
