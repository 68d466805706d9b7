//! Sums over the kernels of a report: how many a change helped and hurt, and what each metric adds up to.

use super::{Column, Kernel, Report, Status};
use crate::metric::Metric;

/// Kernels by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub kernels: usize,
    /// A figure that can fail rose, and the policy does not accept it.
    pub hurt: usize,
    /// Figures that can fail fell, and none rose.
    pub helped: usize,
    /// Something else moved.
    pub changed: usize,
    /// Nothing moved.
    pub unchanged: usize,
    /// Only after, only before, not comparable or not known.
    pub unknown: usize,
}

/// One metric over all kernels that have a figure for it on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The column.
    pub metric: Metric,
    /// The sum before.
    pub before: u128,
    /// The sum after.
    pub after: u128,
    /// In how many kernels it rose.
    pub rose: usize,
    /// In how many kernels it fell.
    pub fell: usize,
}

impl Total {
    /// After − before.
    pub fn delta(&self) -> i128 {
        // At most 2^64 kernels of at most 2^64 each would be needed to lose a bit here.
        i128::try_from(self.after).unwrap_or(i128::MAX) - i128::try_from(self.before).unwrap_or(i128::MAX)
    }
}

impl Report {
    /// Kernels by what became of them.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { kernels: self.kernels.len(), ..Counts::default() };
        for kernel in &self.kernels {
            *match kernel.status {
                Status::Worse => &mut counts.hurt,
                Status::Improved => &mut counts.helped,
                Status::Changed => &mut counts.changed,
                Status::Unchanged | Status::Listed => &mut counts.unchanged,
                Status::New | Status::Gone | Status::NotTrustworthy => &mut counts.unknown,
            } += 1;
        }
        counts
    }

    /// Every metric that moved in some kernel.
    pub fn totals(&self) -> Vec<Total> {
        let mut totals: Vec<Total> =
            Metric::all().map(|metric| Total { metric, before: 0, after: 0, rose: 0, fell: 0 }).collect();
        for figure in self.kernels.iter().flat_map(Kernel::compared_figures) {
            let (before, after) = (figure.before.as_ref(), figure.after.as_ref());
            let (Some(before), Some(after)) = (before.and_then(|c| c.value()), after.and_then(|c| c.value())) else {
                continue;
            };
            let Column::Metric(metric) = figure.column else { continue };
            let total = &mut totals[metric as usize];
            total.before += u128::from(before);
            total.after += u128::from(after);
            total.rose += usize::from(after > before);
            total.fell += usize::from(after < before);
        }
        totals.retain(|total| total.rose + total.fell > 0);
        totals
    }
}
