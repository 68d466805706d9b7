//! Registers, spills, scratch and LDS per kernel: read from every form a kernel comes in, compared, judged.
//!
//! `metric` and `cell` say what is measured; `text` and `binary` read one file each; `collect` finds the files below a
//! path and makes a [`Snapshot`]; `pairing` and `diff` compare two of them; `table` prints them in the frozen form that
//! scripts rely on. How a program is decoded is not known here: see [`binary::InstructionCounter`].

pub mod binary;
pub mod cell;
pub mod collect;
pub mod diff;
pub mod metric;
pub mod pairing;
pub mod record;
pub mod sites;
pub mod snapshot;
pub mod table;
pub mod text;
pub mod triton;
pub mod verdict;

pub use cell::Cell;
pub use diff::Diff;
pub use metric::Metric;
pub use record::Record;
pub use snapshot::Snapshot;
pub use verdict::Verdict;
