//! Block comments. They may span lines, so they are blanked out before the text is read line by line; the result has
//! the same length and the same lines.

use std::borrow::Cow;

use memchr::{memchr_iter, memmem};

/// Whether `/*` stands anywhere, be it in a string; most texts have none, and this costs little to know.
pub fn may_have_block_comments(text: &[u8]) -> bool {
    memchr_iter(b'/', text).any(|at| text.get(at + 1) == Some(&b'*'))
}

/// Replaces `/* … */` by spaces, keeping line ends. A comment that never ends is left as it is and its offset is
/// returned, so that the caller can say where it starts.
pub fn blank_block_comments(text: &[u8]) -> (Cow<'_, [u8]>, Option<usize>) {
    if !may_have_block_comments(text) {
        return (Cow::Borrowed(text), None);
    }
    let mut out = text.to_vec();
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = end_of_string(text, at),
            b';' => at = end_of_line(text, at),
            b'#' if at == 0 || text[at - 1] == b'\n' => at = end_of_line(text, at),
            b'/' if text[at..].starts_with(b"//") => at = end_of_line(text, at),
            b'/' if text[at..].starts_with(b"/*") => {
                let Some(length) = memmem::find(&text[at + 2..], b"*/") else { return (Cow::Owned(out), Some(at)) };
                let end = at + 2 + length + 2;
                out[at..end].iter_mut().filter(|b| !matches!(b, b'\n' | b'\r')).for_each(|b| *b = b' ');
                at = end;
            }
            _ => at += 1,
        }
    }
    (Cow::Owned(out), None)
}

/// Offset behind the string that starts at `at`; strings do not span lines.
fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < text.len() {
        match text[end] {
            b'"' => return end + 1,
            b'\n' => return end,
            b'\\' if text.get(end + 1).is_some_and(|&b| b != b'\n') => end += 2,
            _ => end += 1,
        }
    }
    end
}

fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_comments_are_blanked_and_lines_kept() {
        let (text, open) = blank_block_comments(b"a /* x\n y */ b ; /* no\n\"/*\" // /*\nc");
        assert_eq!(text.as_ref(), b"a     \n      b ; /* no\n\"/*\" // /*\nc");
        assert_eq!(open, None);
        assert_eq!(blank_block_comments(b"a /* x").1, Some(2));
    }
}
