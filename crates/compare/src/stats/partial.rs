//! What was found in a part of two outputs, and how parts are joined.

use super::sum::Sum;
use super::{Side, Stats};
use crate::dtype::Dtype;

/// Facts of a part of one output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartSide {
    pub nonzero: u64,
    pub nan: u64,
    pub infinite: u64,
    /// The first element's bits.
    pub first: u64,
    /// Whether another has other bits.
    pub varies: bool,
    /// Of the elements whose partner is finite as well: is one not 0?
    pub finite_nonzero: bool,
}

/// Facts of a part of both outputs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partial {
    pub elements: u64,
    pub finite: u64,
    pub mismatches: u64,
    pub special_mismatches: u64,
    pub max_abs: f64,
    pub max_rel: f64,
    pub max_ulp: u64,
    /// Sums of reference², test², reference * test, (reference - test)².
    pub squares: [Sum; 4],
    pub sides: [PartSide; 2],
}

impl Partial {
    /// Joins what follows.
    pub(super) fn join(&mut self, next: &Partial) {
        for (side, next_side) in self.sides.iter_mut().zip(&next.sides) {
            side.nonzero += next_side.nonzero;
            side.nan += next_side.nan;
            side.infinite += next_side.infinite;
            side.finite_nonzero |= next_side.finite_nonzero;
            if self.elements == 0 {
                (side.first, side.varies) = (next_side.first, next_side.varies);
            } else if next.elements > 0 {
                side.varies |= next_side.varies || next_side.first != side.first;
            }
        }
        self.elements += next.elements;
        self.finite += next.finite;
        self.mismatches += next.mismatches;
        self.special_mismatches += next.special_mismatches;
        self.max_abs = self.max_abs.max(next.max_abs);
        self.max_rel = self.max_rel.max(next.max_rel);
        self.max_ulp = self.max_ulp.max(next.max_ulp);
        self.squares.iter_mut().zip(next.squares).for_each(|(sum, next)| sum.join(next));
    }

    /// The facts of outputs that this is all of.
    pub(super) fn stats(&self, dtype: Dtype, elements: u64) -> Stats {
        let [rr, tt, rt, dd] = self.squares.map(Sum::value);
        let [reference, test] = self.sides;
        // A square may be too small for f64 as well as too large; then nothing is said.
        let held = |square: f64, is_zero: bool| square.is_finite() && (square >= f64::MIN_POSITIVE || is_zero);
        let held_r = held(rr, !reference.finite_nonzero);
        let held_t = held(tt, !test.finite_nonzero);
        let held_d = held(dd, self.max_abs == 0.0);
        let cos = match rt / (rr.sqrt() * tt.sqrt()) {
            _ if !held_r || !held_t || rr == 0.0 || tt == 0.0 => None,
            _ if self.max_abs == 0.0 => Some(1.0),
            cos => Some(cos.clamp(-1.0, 1.0)),
        };
        let relative_norm = match dd.sqrt() / rr.sqrt() {
            _ if self.finite == 0 || !held_d || !held_r => None,
            _ if dd == 0.0 => Some(0.0),
            norm => Some(norm),
        };
        Stats {
            dtype,
            elements,
            finite: self.finite,
            mismatches: self.mismatches,
            special_mismatches: self.special_mismatches,
            max_abs: self.max_abs,
            max_rel: self.max_rel,
            max_ulp: self.max_ulp,
            cos,
            relative_norm,
            reference: reference.side(elements),
            test: test.side(elements),
        }
    }
}

impl PartSide {
    fn side(self, elements: u64) -> Side {
        let constant = (elements > 0 && !self.varies).then_some(self.first);
        Side { nonzero: self.nonzero, nan: self.nan, infinite: self.infinite, constant }
    }
}
