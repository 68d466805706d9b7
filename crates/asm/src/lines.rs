//! Splits text into lines. Only LF and CRLF end a line: form feeds and Unicode separators are ordinary bytes, as they
//! are to LLVM's lexer.

use memchr::memchr;

/// One line without its terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// 1-based.
    pub number: u32,
    /// Byte offset of the line's first byte.
    pub offset: usize,
    /// The line's bytes, without LF or CRLF.
    pub text: &'a [u8],
}

/// Iterator over the lines of a text.
#[derive(Clone, Debug)]
pub struct Lines<'a> {
    text: &'a [u8],
    offset: usize,
    number: u32,
}

impl<'a> Lines<'a> {
    /// Lines of `text` from its start.
    pub fn new(text: &'a [u8]) -> Lines<'a> {
        Lines { text, offset: 0, number: 0 }
    }

    /// Byte offset of the next line.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    #[inline]
    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.offset..).filter(|rest| !rest.is_empty())?;
        let (end, next) = match memchr(b'\n', rest) {
            Some(end) => (end, end + 1),
            None => (rest.len(), rest.len()),
        };
        let text = &rest[..end];
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let offset = self.offset;
        self.offset += next;
        self.number += 1;
        Some(Line { number: self.number, offset, text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lf_and_crlf_end_a_line() {
        let text = "a\r\nb\x0cc\u{2028}d\re\n\nf".as_bytes();
        let lines: Vec<_> = Lines::new(text).map(|l| (l.number, l.offset, String::from_utf8_lossy(l.text))).collect();
        let want = [(1, 0, "a"), (2, 3, "b\x0cc\u{2028}d\re"), (3, 13, ""), (4, 14, "f")];
        assert_eq!(lines, want.map(|(n, o, t)| (n, o, t.into())));
    }
}
