//! The hint that keeps bits which text does not carry: `;@bits xor 0x6000@0` behind an instruction says that the word at
//! byte 0 of what the assembler makes of the text is to be changed by exclusive or. To any other assembler it is a
//! comment.

use std::fmt;

/// What starts a hint; everything up to the next `;` belongs to it.
pub const MARK: &str = ";@bits";

/// What stands behind [`MARK`] in a line or its comment.
pub fn within(line: &str) -> Option<&str> {
    line.find(MARK).map(|at| &line[at + MARK.len()..])
}

/// A change of single words, by byte offset in the instruction, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hint(Vec<(u8, u32)>);

impl Hint {
    /// What turns `text` bytes into `wanted` bytes of the same length.
    pub fn between(text: &[u8], wanted: &[u8]) -> Self {
        let words = text.chunks_exact(4).zip(wanted.chunks_exact(4)).enumerate();
        let differing = words.filter_map(|(i, (text, wanted))| {
            let xor = word(text) ^ word(wanted);
            (xor != 0).then_some((4 * i as u8, xor))
        });
        Hint(differing.collect())
    }

    /// Changes the bytes of an instruction; `false` when it is too short.
    pub fn apply(&self, bytes: &mut [u8]) -> bool {
        self.0.iter().all(|(at, xor)| {
            let at = usize::from(*at);
            let Some(place) = bytes.get_mut(at..at + 4) else { return false };
            let changed = word(place) ^ xor;
            place.copy_from_slice(&changed.to_le_bytes());
            true
        })
    }

    /// Reads what stands behind [`MARK`].
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.split(';').next().unwrap_or_default();
        let mut parts = text.split_ascii_whitespace();
        if parts.next() != Some("xor") {
            return Err(format!("`{MARK}{}` is no hint, expected `{MARK} xor 0xBITS@BYTE`", text.trim_end()));
        }
        let change = |part: &str| {
            let (bits, at) = part.strip_prefix("0x")?.split_once('@')?;
            let at = at.parse().ok().filter(|at: &u8| at.is_multiple_of(4))?;
            Some((at, u32::from_str_radix(bits, 16).ok()?))
        };
        let changes = parts.map(|part| {
            change(part).ok_or_else(|| format!("`{part}` in a hint is not 0xBITS@BYTE with a multiple of 4"))
        });
        changes.collect::<Result<_, _>>().map(Hint)
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK} xor")?;
        self.0.iter().try_for_each(|(at, xor)| write!(f, " {xor:#x}@{at}"))
    }
}

fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_reads_back_and_undoes_the_difference() {
        let (text, wanted) = ([1, 0, 0, 0, 0, 0, 0, 0], [1, 0x60, 0, 0, 0, 0, 0, 2]);
        let hint = Hint::between(&text, &wanted);
        assert_eq!(hint.to_string(), ";@bits xor 0x6000@0 0x2000000@4");
        let read = Hint::parse(" xor 0x6000@0 0x2000000@4 ; +0x10: 00").expect("a hint");
        let mut bytes = text;
        assert!(read.apply(&mut bytes));
        assert_eq!((bytes, read), (wanted, hint.clone()));
        assert!(!hint.apply(&mut [0; 4]));
    }

    #[test]
    fn what_is_no_hint_is_refused() {
        for text in [" or 0x1@0", " xor 1@0", " xor 0x1@3", " xor 0x1", ""] {
            assert!(Hint::parse(text).is_err(), "{text}");
        }
    }
}
