//! What becomes of the code of one section: the new bytes, and where each old place went.
//!
//! A *place* is a label: a branch target, a symbol, an entry. It need not go where the instruction behind it goes:
//!
//! ```text
//!          .L0:                    .L0:               ◀ the label stays before what was inserted,
//!   0x40     v_add_f32 …   ──▶       s_nop 0
//!                                    v_add_f32 …      ◀ the instruction moves behind it
//! ```

use crate::error::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;

/// New code for one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeEdit {
    /// ELF index of the section.
    pub section: usize,
    /// All its bytes.
    pub new_code: Vec<u8>,
    /// Where its old places went.
    pub map: OffsetMap,
}

/// One change of a section's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Old bytes that go, by their offset in the section; empty for an insertion.
    pub old: Range<u64>,
    /// What comes instead.
    pub new: Vec<u8>,
    /// Where labels at an insertion stay; without meaning when old bytes go.
    pub labels: Labels,
}

/// Which side of an insertion a label at its place is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Before: who branches there executes the new instructions.
    Before,
    /// Behind: only who comes from above executes them.
    Behind,
}

/// Where old section offsets went. Never decreases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetMap {
    old_len: u64,
    new_len: u64,
    /// Kept bytes, in order.
    runs: Vec<Run>,
    /// Places that do not go where the code behind them goes.
    labels: BTreeMap<u64, u64>,
    /// Ends of functions that are not behind their last byte.
    ends: BTreeMap<u64, u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    old: u64,
    new: u64,
    len: u64,
}

impl Run {
    fn old_end(&self) -> u64 {
        self.old + self.len
    }

    fn new_end(&self) -> u64 {
        self.new + self.len
    }
}

impl OffsetMap {
    /// Everything stays.
    pub fn identity(len: u64) -> OffsetMap {
        let runs = if len == 0 { Vec::new() } else { vec![Run { old: 0, new: 0, len }] };
        OffsetMap { old_len: len, new_len: len, runs, labels: BTreeMap::new(), ends: BTreeMap::new() }
    }

    /// From the kept instructions, each `(old offset, new offset, bytes)`, in order.
    ///
    /// # Errors
    /// `BadInput` when they are not in order, overlap, or lie outside the code.
    pub fn new(old_len: u64, new_len: u64, kept: impl IntoIterator<Item = (u64, u64, u64)>) -> Result<OffsetMap> {
        let mut runs: Vec<Run> = Vec::new();
        for (old, new, len) in kept {
            let (old_at, new_at) = runs.last().map_or((0, 0), |run| (run.old_end(), run.new_end()));
            let ends = old.checked_add(len).zip(new.checked_add(len));
            if old < old_at || new < new_at || !ends.is_some_and(|(o, n)| o <= old_len && n <= new_len) {
                let message =
                    format!("kept code {old:#x} → {new:#x} ({len} bytes) is out of order or outside the section");
                return Err(Error::input(message));
            }
            match runs.last_mut() {
                Some(run) if run.old_end() == old && run.new_end() == new => run.len += len,
                _ => runs.push(Run { old, new, len }),
            }
        }
        Ok(OffsetMap { old_len, new_len, runs, labels: BTreeMap::new(), ends: BTreeMap::new() })
    }

    /// The same, with the labels at `old` going to `new`.
    ///
    /// # Errors
    /// `BadInput` when that is not between what was kept before and behind it.
    pub fn with_label(mut self, old: u64, new: u64) -> Result<OffsetMap> {
        self.check_between(old, new)?;
        self.labels.insert(old, new);
        Ok(self)
    }

    /// The same, with the function that ended at `old` ending at `new`: code was added behind its last instruction.
    ///
    /// # Errors
    /// As [`with_label`](Self::with_label).
    pub fn with_end(mut self, old: u64, new: u64) -> Result<OffsetMap> {
        self.check_between(old, new)?;
        self.ends.insert(old, new);
        Ok(self)
    }

    /// This map and then `next`, which starts at this one's new code.
    ///
    /// # Errors
    /// `Input` when it does not.
    pub(crate) fn then(&self, next: &OffsetMap) -> Result<OffsetMap> {
        if next.old_len != self.new_len {
            return Err(Error::input("the second edit is not one of the first one's code"));
        }
        let mut kept = Vec::new();
        for run in &self.runs {
            for other in next.runs.iter().filter(|other| other.old < run.new_end() && run.new < other.old_end()) {
                let (start, end) = (run.new.max(other.old), run.new_end().min(other.old_end()));
                kept.push((run.old + (start - run.new), other.new + (start - other.old), end - start));
            }
        }
        let mut map = OffsetMap::new(self.old_len, next.new_len, kept)?;
        let edges = self.runs.iter().map(Run::old_end).chain([0]);
        let moved = self.runs.iter().flat_map(|run| {
            // Labels of the second edit at places that the first one moved there.
            let inside = next.labels.keys().filter(|at| (run.new..run.new_end()).contains(at));
            inside.map(|at| run.old + (at - run.new))
        });
        let mut places: Vec<u64> = self.labels.keys().copied().chain(edges).chain(moved).collect();
        places.retain(|old| *old < self.old_len);
        for old in places {
            let place = next.place(self.place(old));
            if map.place(old) != place {
                map = map.with_label(old, place)?;
            }
        }
        Ok(map)
    }

    /// What went and what came instead, as edits; `new_code` is the code that this map leads to.
    pub(crate) fn edits(&self, new_code: &[u8]) -> Vec<Edit> {
        let mut edits = Vec::new();
        let (mut old_at, mut new_at) = (0, 0);
        let end = Run { old: self.old_len, new: self.new_len, len: 0 };
        for run in self.runs.iter().chain([&end]) {
            if old_at < run.old || new_at < run.new {
                let labels = if self.place(old_at) == new_at { Labels::Before } else { Labels::Behind };
                let new = new_code.get(new_at as usize..run.new as usize).unwrap_or_default().to_vec();
                edits.push(Edit { old: old_at..run.old, new, labels });
            }
            (old_at, new_at) = (run.old_end(), run.new_end());
        }
        edits
    }

    fn check_between(&self, old: u64, new: u64) -> Result<()> {
        let before = self
            .runs
            .iter()
            .take_while(|run| run.old < old)
            .last()
            .map_or(0, |run| if old < run.old_end() { run.new + (old - run.old) } else { run.new_end() });
        let behind = self.run_of(old).map_or(self.new_len, |run| run.new + old.saturating_sub(run.old));
        if (before..=behind).contains(&new) {
            return Ok(());
        }
        Err(Error::input(format!("label {old:#x} → {new:#x} passes kept code at {before:#x} or {behind:#x}")))
    }

    /// Bytes of the old code.
    pub fn old_len(&self) -> u64 {
        self.old_len
    }

    /// Bytes of the new code.
    pub fn new_len(&self) -> u64 {
        self.new_len
    }

    /// Where the old byte at `old` is; none when it was replaced.
    pub fn kept(&self, old: u64) -> Option<u64> {
        self.run_of(old).filter(|run| run.old <= old).map(|run| run.new + (old - run.old))
    }

    /// Where the label at `old` is. What was replaced leads to the start of its replacement, the middle of it to what
    /// follows.
    pub fn place(&self, old: u64) -> u64 {
        if let Some(new) = self.labels.get(&old) {
            return *new;
        }
        let next = self.runs.partition_point(|run| run.old_end() <= old);
        let before = next.checked_sub(1).map_or((0, 0), |run| (self.runs[run].old_end(), self.runs[run].new_end()));
        match self.runs.get(next) {
            Some(run) if run.old <= old => run.new + (old - run.old),
            // The first byte of something that was replaced.
            _ if before.0 == old && old < self.old_len => before.1,
            Some(run) => run.new,
            None => self.new_len,
        }
    }

    /// Where a function that ended at `old` ends: behind its last byte, when that was kept and nothing else was said.
    pub fn end(&self, old: u64) -> u64 {
        let said = self.ends.get(&old).copied();
        said.or_else(|| Some(self.kept(old.checked_sub(1)?)? + 1)).unwrap_or_else(|| self.place(old))
    }

    /// The run that holds `old`, or the next.
    fn run_of(&self, old: u64) -> Option<&Run> {
        self.runs.get(self.runs.partition_point(|run| run.old_end() <= old))
    }
}

/// Applies `edits` to `code`, bytes only: no branch is re-resolved.
///
/// # Errors
/// `BadInput` when edits overlap, are out of order, or lie outside the code.
pub(crate) fn splice(section: usize, code: &[u8], edits: &[Edit]) -> Result<CodeEdit> {
    let mut new_code = Vec::with_capacity(code.len() + edits.iter().map(|edit| edit.new.len()).sum::<usize>());
    let (mut kept, mut labels) = (Vec::new(), Vec::new());
    let mut at = 0;
    for edit in edits {
        let range = edit.old.start as usize..edit.old.end as usize;
        let between = code.get(at..range.start).filter(|_| range.start <= range.end && range.end <= code.len());
        let between = between.ok_or_else(|| {
            Error::input(format!(
                "the edit of {:#x}..{:#x} overlaps another or is outside the code",
                range.start, range.end
            ))
        })?;
        kept.push((at as u64, new_code.len() as u64, between.len() as u64));
        new_code.extend_from_slice(between);
        if range.is_empty() && edit.labels == Labels::Before {
            // Of several insertions at one place, the first decides.
            if labels.last().is_none_or(|(old, _)| *old != edit.old.start) {
                labels.push((edit.old.start, new_code.len() as u64));
            }
        }
        new_code.extend_from_slice(&edit.new);
        at = range.end;
    }
    kept.push((at as u64, new_code.len() as u64, (code.len() - at) as u64));
    new_code.extend_from_slice(&code[at..]);
    let kept = kept.into_iter().filter(|(_, _, len)| *len != 0);
    let mut map = OffsetMap::new(code.len() as u64, new_code.len() as u64, kept)?;
    for (old, new) in labels {
        map = map.with_label(old, new)?;
    }
    Ok(CodeEdit { section, new_code, map })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(old: Range<u64>, new: usize, labels: Labels) -> Edit {
        Edit { old, new: vec![0xee; new], labels }
    }

    fn map(edits: &[Edit]) -> OffsetMap {
        splice(1, &[0; 16], edits).expect("valid edits").map
    }

    #[test]
    fn a_label_stays_before_or_moves_behind_an_insertion() {
        let before = map(&[edit(4..4, 8, Labels::Before)]);
        assert_eq!((before.place(4), before.kept(4)), (4, Some(12)));
        let behind = map(&[edit(4..4, 8, Labels::Behind)]);
        assert_eq!((behind.place(4), behind.kept(4)), (12, Some(12)));
        assert_eq!((behind.place(0), behind.place(8), behind.place(16)), (0, 16, 24));
    }

    #[test]
    fn what_was_replaced_leads_to_its_replacement_or_to_what_follows() {
        let map = map(&[edit(4..12, 4, Labels::Before)]);
        assert_eq!((map.kept(4), map.kept(8), map.kept(12)), (None, None, Some(8)));
        assert_eq!((map.place(4), map.place(8), map.place(12)), (4, 8, 8));
    }

    #[test]
    fn a_function_ends_behind_its_last_byte_whatever_is_inserted_there() {
        for labels in [Labels::Before, Labels::Behind] {
            assert_eq!(map(&[edit(4..4, 8, labels)]).end(4), 4);
        }
        let appended = map(&[edit(4..4, 8, Labels::Behind)]).with_end(4, 12).expect("between");
        assert_eq!((appended.end(4), appended.end(8)), (12, 16));
        assert_eq!(map(&[edit(4..8, 12, Labels::Before)]).end(8), 16, "the last instruction was replaced");
    }

    #[test]
    fn an_insertion_behind_a_replacement_keeps_labels_between_the_two() {
        let map = map(&[edit(4..8, 12, Labels::Before), edit(8..8, 4, Labels::Before)]);
        assert_eq!((map.place(4), map.place(8), map.kept(8)), (4, 16, Some(20)));
    }

    #[test]
    fn a_map_says_which_edits_made_it_and_two_can_follow_each_other() {
        for labels in [Labels::Before, Labels::Behind] {
            let edits = [edit(0..0, 4, labels), edit(4..8, 12, Labels::Before), edit(12..12, 4, labels)];
            let first = splice(1, &[0; 16], &edits).expect("valid edits");
            assert_eq!(first.map.edits(&first.new_code), edits);
            let second = splice(1, &first.new_code, &[edit(8..8, 4, Labels::Behind)]).expect("a valid edit").map;
            let both = first.map.then(&second).expect("they fit");
            assert_eq!((both.old_len(), both.new_len()), (16, 36));
            for old in [0, 4, 8, 12, 16] {
                assert_eq!(both.place(old), second.place(first.map.place(old)), "{old}");
            }
        }
    }

    #[test]
    fn edits_that_overlap_or_leave_the_code_are_refused() {
        let overlap = [edit(4..12, 0, Labels::Before), edit(8..8, 4, Labels::Before)];
        assert!(splice(1, &[0; 16], &overlap).is_err());
        assert!(splice(1, &[0; 16], &[edit(16..20, 0, Labels::Before)]).is_err());
        assert!(OffsetMap::new(8, 8, [(4, 4, 4), (0, 0, 4)]).is_err());
        assert!(OffsetMap::identity(8).with_label(4, 8).is_err());
    }
}
