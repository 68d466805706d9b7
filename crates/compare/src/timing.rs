//! Which of two kernels is faster, with a control that says how far the answer can be trusted.
//!
//! Three loaded kernels are timed in random order, again and again: the reference, a second copy of the reference (the
//! A/A control), and the test. Samples come in blocks; each block has its modules loaded and its buffers allocated anew,
//! since addresses and load order shift times by themselves, and neighbours in time are alike. [`measure`] drives the
//! device, [`samples`] holds what it saw, [`estimate`] makes an interval of blocks, [`verdict`] the statement.

mod block;
mod check;
pub mod estimate;
mod fresh;
pub mod measure;
pub mod roofline;
pub mod samples;
pub mod verdict;

pub use measure::{CacheMode, Settings};
pub use samples::{Sample, Samples, Which};
pub use verdict::{Speed, SpeedVerdict};
