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
    if !name.contains(deceives) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.chars().flat_map(|c| if deceives(c) { c.escape_default().collect() } else { vec![c] }).collect())
}

/// Controls, and what Unicode has for the direction and the lines of text (UAX 9, "Directional Formatting Characters"): with
/// these, a name can look like another.
fn deceives(c: char) -> bool {
    let directs =
        |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || directs(c) || matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn names_cannot_look_like_others() {
        assert_eq!(printable("gemm<\u{202e}>\n\u{2028}é"), "gemm<\\u{202e}>\\n\\u{2028}é");
    }
}
