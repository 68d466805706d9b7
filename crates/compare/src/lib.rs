//! Two kernels on the same inputs, judged by bits and by honest time. Which device runs them is not known here.
//!
//! ```text
//! site file ── site ── pack ──┐
//!                             ├─ run ─ correctness ─ judge ─┬─ report
//! images ── metadata ─────────┘        timing ──────────────┘
//! ```
//!
//! [`run`] takes two images, a [`site`] and a [`gpu::Device`]; [`correctness`] runs both kernels on the same inputs, in rounds
//! that are hard to pass without doing the work; [`stats`], [`mismatch`] and [`requirement`] hold the outputs together;
//! [`timing`] says which one is faster and how far that can be trusted; [`judge`] makes the verdict of a [`report`].

pub mod buffers;
pub mod check;
pub mod correctness;
pub mod declared;
pub mod dtype;
pub mod error;
pub mod expected;
pub mod fill;
pub mod judge;
pub mod lds;
pub mod mismatch;
mod number;
pub mod pack;
pub mod pieces;
pub mod random;
pub mod report;
pub mod requirement;
pub mod rig;
pub mod run;
pub mod site;
pub mod stats;
pub mod timing;
pub mod watch;

pub use error::{Error, Result};
