//! Symbol names: bare (`dotted.name$0`) or quoted (`"k<float, 4>"`), as LLVM prints them.

use std::borrow::Cow;

/// Bytes that may stand in a bare symbol name.
const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = matches!(b as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'$' | b'@' | 0x80..);
        b += 1;
    }
    table
};

/// Whether `byte` may stand in a bare symbol name.
#[inline]
pub fn is_name_byte(byte: u8) -> bool {
    NAME[byte as usize]
}

/// Splits a leading symbol off `text`: its name, unquoted, and the rest. `None` when no symbol starts there.
pub fn split(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    if text.first() == Some(&b'"') {
        return split_quoted(text);
    }
    let end = text.iter().position(|&b| !is_name_byte(b)).unwrap_or(text.len());
    (end > 0).then(|| (Cow::Borrowed(&text[..end]), &text[end..]))
}

fn split_quoted(text: &[u8]) -> Option<(Cow<'_, [u8]>, &[u8])> {
    let body = &text[1..];
    let end = body.iter().position(|&b| matches!(b, b'"' | b'\\'))?;
    if body[end] == b'"' {
        return Some((Cow::Borrowed(&body[..end]), &body[end + 1..]));
    }
    let mut name = body[..end].to_vec();
    let mut bytes = body[end..].iter().enumerate();
    while let Some((at, &b)) = bytes.next() {
        match b {
            b'"' => return Some((Cow::Owned(name), &body[end + at + 1..])),
            // LLVM escapes `"`, `\` and the newline; anything else stands for itself.
            b'\\' => match bytes.next()?.1 {
                b'n' => name.push(b'\n'),
                &other => name.push(other),
            },
            _ => name.push(b),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_bare_names_split() {
        let split = |t: &str| {
            split(t.as_bytes())
                .map(|(n, r)| (String::from_utf8_lossy(&n).into_owned(), String::from_utf8_lossy(r).into_owned()))
        };
        assert_eq!(split("\"k<float, 4>.num_vgpr\", 2"), Some(("k<float, 4>.num_vgpr".into(), ", 2".into())));
        assert_eq!(split(r#""a\"b\\c": x"#), Some((r#"a"b\c"#.into(), ": x".into())));
        assert_eq!(split("dollar$name:"), Some(("dollar$name".into(), ":".into())));
        assert_eq!(split("\"open"), None);
        assert_eq!(split(", x"), None);
    }
}
