//! What was timed.

use serde::{Deserialize, Serialize};

/// Which of the three loaded kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The reference.
    Reference,
    /// A second, separately loaded copy of the reference.
    Control,
    /// The test.
    Test,
}

impl Which {
    /// All of them.
    pub const ALL: [Which; 3] = [Which::Reference, Which::Control, Which::Test];

    /// Whose kernel it is, for reports.
    pub fn owner(self) -> &'static str {
        match self {
            Which::Reference | Which::Control => "reference",
            Which::Test => "test",
        }
    }
}

/// One timed stretch of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Which kernel.
    pub which: Which,
    /// Block, from 0.
    pub block: u32,
    /// Number of the triple within the block, from 0.
    pub triple: u32,
    /// Launches in the stretch.
    pub launches: u32,
    /// Device time per launch, nanoseconds.
    #[serde(deserialize_with = "crate::number::or_nan")]
    pub time_ns: f64,
}

/// All of a run, in the order in which they were taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples(pub Vec<Sample>);

impl Samples {
    /// Times of one kernel.
    pub fn times_of(&self, which: Which) -> Vec<f64> {
        self.0.iter().filter(|sample| sample.which == which).map(|sample| sample.time_ns).collect()
    }

    /// For each block, a figure of each complete triple: `figure(reference, control, test)`, in nanoseconds.
    pub fn per_block(&self, figure: impl Fn(f64, f64, f64) -> f64) -> Vec<Vec<f64>> {
        self.figures(|[a, c, t]| Some(figure(a?, c?, t?)))
    }

    /// The same where no control was taken: `figure(reference, test)`.
    pub fn per_block_of_two(&self, figure: impl Fn(f64, f64) -> f64) -> Vec<Vec<f64>> {
        self.figures(|[a, _, t]| Some(figure(a?, t?)))
    }

    fn figures(&self, figure: impl Fn([Option<f64>; 3]) -> Option<f64>) -> Vec<Vec<f64>> {
        let mut blocks: Vec<Vec<[Option<f64>; 3]>> = Vec::new();
        for sample in &self.0 {
            let (block, triple) = (sample.block as usize, sample.triple as usize);
            if blocks.len() <= block {
                blocks.resize(block + 1, Vec::new());
            }
            if blocks[block].len() <= triple {
                blocks[block].resize(triple + 1, [None; 3]);
            }
            blocks[block][triple][sample.which as usize] = Some(sample.time_ns);
        }
        let of_block = |block: Vec<[Option<f64>; 3]>| block.into_iter().filter_map(&figure).collect::<Vec<f64>>();
        blocks.into_iter().map(of_block).filter(|block| !block.is_empty()).collect()
    }
}

/// The middle value, or the mean of the two in the middle; NaN of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_are_put_together_whatever_their_order() {
        let sample = |which, block, triple, time_ns| Sample { which, block, triple, launches: 1, time_ns };
        let samples = Samples(vec![
            sample(Which::Test, 0, 0, 2.0),
            sample(Which::Reference, 0, 0, 4.0),
            sample(Which::Control, 0, 0, 5.0),
            sample(Which::Reference, 1, 0, 1.0), // incomplete: the run was stopped
            sample(Which::Control, 0, 1, 8.0),
            sample(Which::Test, 0, 1, 1.0),
            sample(Which::Reference, 0, 1, 6.0),
        ]);
        assert_eq!(samples.per_block(|a, c, t| a + 10.0 * c + 100.0 * t), [vec![254.0, 186.0]]);
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
