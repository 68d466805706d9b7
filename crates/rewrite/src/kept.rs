//! Which instructions of a section's code an edit kept, and where each has gone.
//!
//! Instructions are kept when they are the same but for the distance of a branch, in the same order.

use std::time::Duration;

use similar::{Algorithm, DiffOp, DiffTag};

use crate::code::Code;

/// Old to new offsets of the instructions that an edit kept, sorted by both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(Vec<(u32, u32)>);

/// After that long the search for the smallest difference settles for a larger one.
const SEARCH_TIME: Duration = Duration::from_secs(2);

impl Kept {
    /// Compares two codes instruction by instruction.
    pub fn between(old: &Code<'_>, new: &Code<'_>) -> Self {
        let (old, new) = (keys(old), keys(new));
        let ops = differences(&old, &new);
        let mut map = Vec::with_capacity(old.len());
        for op in ops {
            if let DiffOp::Equal { old_index, new_index, len } = op {
                let pairs = old[old_index..old_index + len].iter().zip(&new[new_index..new_index + len]);
                map.extend(pairs.map(|(old, new)| (old.offset, new.offset)));
            }
        }
        Kept(map)
    }

    /// All pairs.
    pub fn pairs(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Where the instruction at `old` has gone; none when it was taken out or changed.
    pub fn new_offset(&self, old: u32) -> Option<u32> {
        self.0.binary_search_by_key(&old, |pair| pair.0).ok().map(|at| self.0[at].1)
    }

    /// Where the instruction at `new` was; none when it was put in or changed.
    pub fn old_offset(&self, new: u32) -> Option<u32> {
        self.0.binary_search_by_key(&new, |pair| pair.1).ok().map(|at| self.0[at].0)
    }
}

/// An instruction as it is compared.
#[derive(Clone, Copy)]
pub(crate) struct Key {
    hash: u64,
    /// Where it is in the section.
    pub offset: u32,
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash
    }
}

impl Eq for Key {}

impl std::hash::Hash for Key {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.hash.cmp(&other.hash)
    }
}

/// All instructions of `code`.
pub(crate) fn keys(code: &Code<'_>) -> Vec<Key> {
    let key = |(offset, listing, instruction): (u32, &llvm::Listing, &llvm::Instruction)| {
        use std::hash::BuildHasher;
        let hasher = foldhash::fast::FixedState::default();
        let bytes = code.bytes_of(offset, instruction);
        let hash = match code.branch(offset, listing.text(instruction)) {
            // The distance is not part of what a branch is, and its label's number may have changed.
            Some((head, _)) => hasher.hash_one(head),
            None => hasher.hash_one(bytes),
        };
        Key { hash, offset }
    };
    code.instructions().map(key).collect()
}

/// The operations that turn `old` into `new`; what is equal at both ends is not searched.
pub(crate) fn differences(old: &[Key], new: &[Key]) -> Vec<DiffOp> {
    let front = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let back = old[front..].iter().rev().zip(new[front..].iter().rev()).take_while(|(old, new)| old == new).count();
    let (old_end, new_end) = (old.len() - back, new.len() - back);
    let mut ops = vec![DiffOp::Equal { old_index: 0, new_index: 0, len: front }];
    let deadline = std::time::Instant::now().checked_add(SEARCH_TIME);
    let middle =
        similar::capture_diff_slices_deadline(Algorithm::Myers, &old[front..old_end], &new[front..new_end], deadline);
    ops.extend(middle.into_iter().map(|op| moved(op, front)));
    ops.push(DiffOp::Equal { old_index: old_end, new_index: new_end, len: back });
    ops
}

/// An operation of two parts, in terms of the wholes that have `front` more before them.
fn moved(op: DiffOp, front: usize) -> DiffOp {
    let (tag, old, new) = op.as_tag_tuple();
    let (old_index, new_index) = (old.start + front, new.start + front);
    let (old_len, new_len) = (old.len(), new.len());
    match tag {
        DiffTag::Equal => DiffOp::Equal { old_index, new_index, len: old_len },
        DiffTag::Delete => DiffOp::Delete { old_index, old_len, new_index },
        DiffTag::Insert => DiffOp::Insert { old_index, new_index, new_len },
        DiffTag::Replace => DiffOp::Replace { old_index, old_len, new_index, new_len },
    }
}
