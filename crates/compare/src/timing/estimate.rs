//! From blocks of figures to an estimate with an interval.
//!
//! Figures within a block are autocorrelated (clocks drift) and share what the block was given (addresses, load order), so
//! the blocks, not the figures, are the independent observations. Each gives its median; the interval is a bootstrap over
//! blocks of the median of those (Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993, section 13.3). A block in
//! which something else happened moves one end of it at most, and never beyond what blocks showed.

use super::samples::median;
use crate::random::Random;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 4000;

/// An estimate and where it lies with the confidence that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The median of all figures.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The fewest blocks of which an interval is made.
pub const MIN_BLOCKS: usize = 6;

/// The estimate from figures by block; none from fewer than [`MIN_BLOCKS`]. The same figures give the same interval.
pub fn estimate(blocks: &[Vec<f64>], confidence: f64) -> Option<Estimate> {
    if blocks.len() < MIN_BLOCKS {
        return None;
    }
    let medians: Vec<f64> = blocks.iter().map(|block| median(block)).collect();
    let all: Vec<f64> = blocks.iter().flatten().copied().collect();
    let value = median(&all);
    let mut random = Random::new(0x5eed);
    let mut resample = vec![0.0; medians.len()];
    let draw = |_| {
        resample.iter_mut().for_each(|place| *place = medians[random.below(medians.len() as u64) as usize]);
        median(&resample)
    };
    let mut resampled: Vec<f64> = (0..RESAMPLES).map(draw).collect();
    resampled.sort_by(f64::total_cmp);
    // The median of few blocks takes few values; the ends are taken outwards.
    let tail = ((1.0 - confidence) / 2.0 * RESAMPLES as f64) as usize;
    let (low, high) = (resampled.get(tail)?, resampled.get(RESAMPLES - 1 - tail)?);
    Some(Estimate { value, low: low.min(value), high: high.max(value) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Twelve uniform numbers' sum: normal enough.
    fn normal(random: &mut Random) -> f64 {
        (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut random = Random::new(7);
        let mut missed = 0;
        for _ in 0..2000 {
            let blocks: Vec<Vec<f64>> = (0..10)
                .map(|_| {
                    let shift = normal(&mut random); // what the block was given
                    (0..5).map(|_| 3.0 + shift + 0.5 * normal(&mut random)).collect()
                })
                .collect();
            let estimate = estimate(&blocks, 0.95).expect("ten blocks");
            missed += i32::from(!(estimate.low..=estimate.high).contains(&3.0));
        }
        // 5 % of 2,000 is 100, with a standard deviation of 10.
        assert!((50..=140).contains(&missed), "{missed} of 2000 intervals missed");
    }

    #[test]
    fn blocks_without_spread_give_a_point_and_too_few_give_nothing() {
        let same = vec![vec![1.5; 3]; 8];
        assert_eq!(estimate(&same, 0.99), Some(Estimate { value: 1.5, low: 1.5, high: 1.5 }));
        assert_eq!(estimate(&same[..MIN_BLOCKS - 1], 0.99), None);
    }
}
