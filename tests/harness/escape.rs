//! Byte escapes of `(escaped)` sections: line endings, bad UTF-8 and a missing last newline in a text file.
//!
//! | written | means |
//! |---|---|
//! | `\\` | a backslash |
//! | `\r` `\t` `\0` | carriage return, tab, NUL |
//! | `\xHH` | the byte HH |
//! | `\` at the end of a line | no newline here |

/// Whether plain lines would hide or change this character.
pub fn is_invisible(character: char) -> bool {
    character != '\n' && character != '\t' && character.is_control()
}

/// The bytes that escaped lines stand for.
pub fn decode(lines: &[String]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for line in lines {
        let wrong = |what: &str| format!("{what} in the escaped line `{line}`");
        let mut rest = line.as_bytes().iter();
        let mut ends = true;
        while let Some(&byte) = rest.next() {
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            match rest.next() {
                Some(b'\\') => bytes.push(b'\\'),
                Some(b'r') => bytes.push(b'\r'),
                Some(b't') => bytes.push(b'\t'),
                Some(b'0') => bytes.push(0),
                Some(b'x') => {
                    let digits = rest.as_slice().get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
                    let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                    bytes.push(value.ok_or_else(|| wrong("`\\x` without two hexadecimal digits"))?);
                    rest.nth(1);
                }
                Some(_) => return Err(wrong("unknown escape")),
                None => ends = false,
            }
        }
        if ends {
            bytes.push(b'\n');
        }
    }
    Ok(bytes)
}

/// Escaped lines for some bytes; [`decode`] gives the bytes back.
pub fn encode(bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\n' => lines.push(std::mem::take(&mut line)),
                '\\' => line.push_str("\\\\"),
                '\r' => line.push_str("\\r"),
                '\0' => line.push_str("\\0"),
                _ if is_invisible(character) => {
                    let mut buffer = [0; 4];
                    for byte in character.encode_utf8(&mut buffer).bytes() {
                        line.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                _ => line.push(character),
            }
        }
        for byte in chunk.invalid() {
            line.push_str(&format!("\\x{byte:02x}"));
        }
    }
    if !line.is_empty() {
        line.push('\\');
        lines.push(line);
    }
    lines
}
