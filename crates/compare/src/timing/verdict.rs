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
    /// The kernels disturb each other.
    #[serde(rename = "NOT ESTABLISHED")]
    NotEstablished,
}

impl SpeedVerdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            SpeedVerdict::Faster => "FASTER",
            SpeedVerdict::Slower => "SLOWER",
            SpeedVerdict::NoDifference => "NO DIFFERENCE",
            SpeedVerdict::NotEstablished => "NOT ESTABLISHED",
        }
    }
}

/// Blocks in which the test stood to the reference as in no other, one note each.
pub fn odd_blocks(samples: &Samples) -> Vec<String> {
    let blocks: Vec<f64> =
        samples.per_block(|a, c, t| 0.5 * (a.ln() + c.ln()) - t.ln()).iter().map(|block| median(block)).collect();
    let center = median(&blocks);
    let usual = median(&blocks.iter().map(|block| (block - center).abs()).collect::<Vec<_>>());
    let far = blocks.iter().enumerate().filter(|(_, block)| (*block - center).abs() > ODD.max(10.0 * usual));
    let tell = |(number, block): (usize, &f64)| {
        let percent = ((block - center).exp() - 1.0) * 100.0;
        format!(
            "block {} of {} is {percent:+.1} % off the others: something else happened then",
            number + 1,
            blocks.len()
        )
    };
    far.map(tell).collect()
}

/// A ratio with its interval; above 1 the reference takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// Median of the paired ratios.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub value: f64,
    /// Lower end of the interval.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub low: f64,
    /// Upper end of the interval.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub high: f64,
}

/// What a run says about speed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// The statement.
    pub verdict: SpeedVerdict,
    /// The confidence of the intervals.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub confidence: f64,
    /// Reference to test: the speed-up.
    pub speedup: Ratio,
    /// Reference to its own copy: what no difference looks like here.
    pub control: Ratio,
    /// Median time of the reference, nanoseconds per launch.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub reference_ns: f64,
    /// Median time of the test.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub test_ns: f64,
}

/// Less than this is never claimed, however still the device is: timestamps lie on a grid.
const LEAST_DIFFERENCE: f64 = 5e-4;

/// Intervals of the speed-up alone and beside each other may lie so far apart: code caches and clocks are others.
const COMPANY: f64 = 0.01;

/// A block whose figures lie so far from the others' that something else must have happened.
const ODD: f64 = 0.01;

impl Speed {
    /// Whether the kernels are as fast alone, in relation, as they are beside each other; what is said where they are not.
    pub fn disturbed(&self, alone: &Samples) -> Option<String> {
        let apart = estimate(&alone.per_block_of_two(|reference, test| reference.ln() - test.ln()), self.confidence)?;
        let (low, high) = (self.speedup.low.ln(), self.speedup.high.ln());
        (low > apart.high + COMPANY || high < apart.low - COMPANY).then(|| {
            format!(
                "the speed-up is {:.4} with each kernel alone, and {:.4} with both loaded: they disturb each other",
                apart.value.exp(),
                self.speedup.value
            )
        })
    }

    /// The statement of a run; none when it has too few blocks.
    pub fn of(samples: &Samples, confidence: f64) -> Option<Speed> {
        // Logarithms: of a ratio and its inverse, neither is favoured.
        let difference = estimate(&samples.per_block(|a, c, t| 0.5 * (a.ln() + c.ln()) - t.ln()), confidence)?;
        let control = estimate(&samples.per_block(|a, c, _| a.ln() - c.ln()), confidence)?;
        let spread = control.low.abs().max(control.high.abs()).max(LEAST_DIFFERENCE);
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
