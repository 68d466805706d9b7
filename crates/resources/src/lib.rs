//! Registers, spills, scratch and LDS per kernel: read from every form a kernel comes in, compared, judged.
//!
//! `metric` and `cell` say what is measured; `text` and `binary` read one file each; `collect` finds the files below a
//! path and makes a [`Snapshot`]; `pairing` and `diff` compare two of them; `table` prints them in the frozen form that
//! scripts rely on. How a program is decoded is not known here: see [`binary::InstructionCounter`].

pub mod baseline;
pub mod binary;
pub mod cell;
pub mod collect;
pub mod diff;
pub mod launch;
pub mod metric;
pub mod occupancy;
pub mod pairing;
pub mod policy;
pub mod record;
pub mod report;
pub mod sites;
pub mod snapshot;
mod strict_json;
pub mod table;
pub mod text;
pub mod triton;
pub mod verdict;

use std::borrow::Cow;

pub use cell::Cell;
pub use diff::Diff;
pub use launch::Launch;
pub use metric::Metric;
pub use occupancy::Occupancy;
pub use policy::Policy;
pub use record::Record;
pub use report::Report;
pub use snapshot::Snapshot;
pub use verdict::Verdict;

/// A name from outside as it may be shown: control characters escaped, so that it can neither steer a terminal nor
/// begin a line of its own.
pub fn printable(name: &str) -> Cow<'_, str> {
    if !name.contains(char::is_control) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect())
}
