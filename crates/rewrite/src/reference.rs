//! Which code object a `.s` was made of: its SHA-256, as `sha256sum` prints it, in a comment that [`crate::disasm`]
//! writes and [`crate::patch`] looks for. Another comment names registers that it used beyond its allocation, as some
//! hand-written kernels do: what an edit did not bring, [`crate::build`] does not hold against it.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::registers::{Counts, File};

/// What starts the comment.
const MARK: &str = ";@reference sha256 ";

/// What starts the comment about a register: ``;@beyond v255 KERNEL``.
const BEYOND: &str = ";@beyond ";

/// A file's SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The line that names the reference.
pub fn line(bytes: &[u8]) -> String {
    format!("{MARK}{} size {}\n", sha256(bytes), bytes.len())
}

/// The hash that a line names.
pub fn read(line: &str) -> Option<&str> {
    line.strip_prefix(MARK)?.split(' ').next()
}

/// The line that names the highest register of a kernel that is beyond its allocation; `count` is its number and one.
pub(crate) fn beyond_line(kernel: &str, file: File, count: u32, allocated: u32) -> String {
    let (letter, register) = (file.letter(), count.saturating_sub(1));
    format!("{BEYOND}{letter}{register} {kernel}\n; its descriptor allocates {allocated} {}\n", file.name())
}

/// The kernel, file and count that such a line names.
pub(crate) fn read_beyond(line: &str) -> Option<(&str, File, u32)> {
    let (register, kernel) = line.strip_prefix(BEYOND)?.split_once(' ')?;
    let counts = Counts::of(register);
    let file = File::ALL.into_iter().find(|file| counts.get(*file) > 0)?;
    Some((kernel, file, counts.get(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_sha256sum() {
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(sha256(b"abc"), abc);
        assert_eq!(read(line(b"abc").trim_end()), Some(abc));
        assert_eq!(read("; reference"), None);
    }
}
