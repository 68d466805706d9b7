//! Two kernels on the same inputs, judged by bits and by honest time. Which device runs them is not known here.

pub mod dtype;
pub mod error;
pub mod fill;
pub mod mismatch;
pub mod pieces;
pub mod requirement;
pub mod stats;

pub use error::{Error, Result};
