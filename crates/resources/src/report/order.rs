//! In which order kernels are shown, and which of them when not all fit.

use std::cmp::{Ordering, Reverse};
use std::str::FromStr;

use super::{Column, Kernel, Report, Status};
use crate::cell::Cell;
use crate::metric::Metric;

/// What comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// What is not known, then what got worse, by the largest relative growth; what fell comes last. Of one snapshot:
    /// spills, scratch, then VGPRs.
    Worst,
    /// By key.
    Name,
    /// By how much this metric rose; of one snapshot, by its value.
    By(Metric),
}

impl FromStr for Sort {
    type Err = String;

    fn from_str(word: &str) -> Result<Sort, String> {
        match word {
            "worst" => Ok(Sort::Worst),
            "name" => Ok(Sort::Name),
            _ => Metric::all().find(|metric| metric.name() == word).map(Sort::By).ok_or_else(|| {
                let metrics: Vec<&str> = Metric::all().map(Metric::name).collect();
                format!("expected worst, name or a metric: {}", metrics.join(", "))
            }),
        }
    }
}

impl Report {
    /// All kernels in that order.
    pub fn sorted(&self, sort: Sort) -> Vec<&Kernel> {
        self.order(sort).into_iter().map(|at| &self.kernels[at]).collect()
    }

    /// The places of all kernels in that order. Kernels that are alike under it stay in the order of their keys.
    pub fn order(&self, sort: Sort) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.kernels.len()).collect();
        match sort {
            Sort::Name => {}
            Sort::Worst => order.sort_by(|a, b| worst_first(&self.kernels[*a], &self.kernels[*b])),
            // None is smaller than any figure, so kernels without one stand last.
            Sort::By(metric) => order.sort_by_key(|at| {
                let figure = self.kernels[*at].figures.get(metric as usize);
                let value = figure.and_then(|f| f.after.as_ref().and_then(Cell::value));
                Reverse((figure.and_then(|f| f.delta()), value))
            }),
        }
        order
    }
}

fn worst_first(a: &Kernel, b: &Kernel) -> Ordering {
    rank(a.status)
        .cmp(&rank(b.status))
        .then_with(|| growth(b).total_cmp(&growth(a)))
        .then_with(|| needs(b).cmp(&needs(a)))
}

fn rank(status: Status) -> u8 {
    match status {
        Status::NotTrustworthy => 0,
        Status::Gone | Status::New => 1,
        Status::Worse => 2,
        Status::Changed => 3,
        Status::Improved => 4,
        Status::Unchanged | Status::Listed => 5,
    }
}

/// The largest growth of a figure that can fail, relative to what it was: from 0, to 1. So first spills come first.
fn growth(kernel: &Kernel) -> f64 {
    let relative = |figure: &super::Figure| {
        let before = figure.before.as_ref().and_then(Cell::value)?;
        Some(figure.delta()? as f64 / before.max(1) as f64)
    };
    let figures = kernel.figures.iter().filter(|figure| matches!(figure.column, Column::Metric(m) if m.is_trigger()));
    figures.filter_map(relative).fold(f64::NEG_INFINITY, f64::max)
}

/// What a kernel of one snapshot needs: spills cost most, then scratch, then registers.
fn needs(kernel: &Kernel) -> [u64; 4] {
    let value = |metric: Metric| kernel.figures.get(metric as usize).and_then(|f| f.after.as_ref()?.value());
    [Metric::VgprSpill, Metric::SgprSpill, Metric::ScratchBytes, Metric::Vgpr].map(|m| value(m).unwrap_or(0))
}
