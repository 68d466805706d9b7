//! Which code object a `.s` was made of: its SHA-256, as `sha256sum` prints it, in a comment that [`crate::disasm`]
//! writes and [`crate::patch`] looks for.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// What starts the comment.
const MARK: &str = ";@reference sha256 ";

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
