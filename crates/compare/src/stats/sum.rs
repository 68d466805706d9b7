//! A sum that keeps what each addition rounds off.

/// The sum is `high + low`, `low` being all that was rounded off (Knuth, *The Art of Computer Programming* 2, 4.2.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    high: f64,
    low: f64,
}

impl Sum {
    /// Adds a term.
    #[inline(always)]
    pub(super) fn add(&mut self, term: f64) {
        let sum = self.high + term;
        let other = sum - self.high;
        self.low += (self.high - (sum - other)) + (term - other);
        self.high = sum;
    }

    /// Adds another sum.
    pub(super) fn join(&mut self, other: Sum) {
        self.add(other.high);
        self.low += other.low;
    }

    /// The sum; infinite when it was too large once.
    pub(super) fn value(self) -> f64 {
        if self.high.is_finite() { self.high + self.low } else { self.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rounded_off_is_kept() {
        let mut sum = Sum::default();
        for term in [1e100, 1.0, -1e100, 1e-20] {
            sum.add(term);
        }
        assert_eq!(sum.value(), 1.0 + 1e-20);
        sum.add(f64::MAX);
        sum.add(f64::MAX);
        assert_eq!(sum.value(), f64::INFINITY);
    }
}
