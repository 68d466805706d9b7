//! FASTER, SLOWER or NO DIFFERENCE.
//!
//! The test is held against the mean of both copies of the reference, and the copies against each other. An interval by
//! itself lies: order effects and the timestamp grid move a kernel against itself by more than its interval says. So a
//! difference counts only when its whole interval lies outside everything that the control shows.

use serde::{Deserialize, Serialize};

use super::Which;
use super::estimate::estimate;
use super::samples::{Samples, median};

/// The statement; written as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpeedVerdict {
    /// The test takes less time.
    #[serde(rename = "FASTER")]
    Faster,
    /// The test takes more time.
    #[serde(rename = "SLOWER")]
    Slower,
    /// Nothing beyond what the reference shows against itself.
    #[serde(rename = "NO DIFFERENCE")]
    NoDifference,
}

impl SpeedVerdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            SpeedVerdict::Faster => "FASTER",
            SpeedVerdict::Slower => "SLOWER",
            SpeedVerdict::NoDifference => "NO DIFFERENCE",
        }
    }
}

/// A ratio with its interval; above 1 the reference takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the paired ratios.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// What a run says about speed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The statement.
    pub verdict: SpeedVerdict,
    /// The confidence of the intervals.
    pub confidence: f64,
    /// Reference to test: the speed-up.
    pub speedup: Ratio,
    /// Reference to its own copy: what no difference looks like here.
    pub control: Ratio,
    /// Median time of the reference, nanoseconds per launch.
    pub reference_ns: f64,
    /// Median time of the test.
    pub test_ns: f64,
}

impl Speed {
    /// The statement of a run; none when it has too few blocks.
    pub fn of(samples: &Samples, confidence: f64) -> Option<Speed> {
        // Logarithms: of a ratio and its inverse, neither is favoured.
        let difference = estimate(&samples.per_block(|a, c, t| 0.5 * (a.ln() + c.ln()) - t.ln()), confidence)?;
        let control = estimate(&samples.per_block(|a, c, _| a.ln() - c.ln()), confidence)?;
        let spread = control.low.abs().max(control.high.abs());
        let verdict = match () {
            () if difference.low > spread => SpeedVerdict::Faster,
            () if difference.high < -spread => SpeedVerdict::Slower,
            () => SpeedVerdict::NoDifference,
        };
        let ratio = |e: super::estimate::Estimate| Ratio { value: e.value.exp(), low: e.low.exp(), high: e.high.exp() };
        Some(Speed {
            verdict,
            confidence,
            speedup: ratio(difference),
            control: ratio(control),
            reference_ns: median(&samples.times_of(Which::Reference)),
            test_ns: median(&samples.times_of(Which::Test)),
        })
    }
}
