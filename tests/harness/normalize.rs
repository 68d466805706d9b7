//! Makes output independent of the machine: the working directory, the data folder and the version, nothing else.

use std::path::Path;

/// Replaces the three things that differ between machines and releases by `%tmp`, `%data` and `%version`.
pub fn normalize(output: &[u8], work: &Path, data: &Path) -> Vec<u8> {
    let output = replace(output, work.as_os_str().as_encoded_bytes(), b"%tmp", |_| true);
    let output = replace(&output, data.as_os_str().as_encoded_bytes(), b"%data", |_| true);
    // `0.1.0` inside `10.1.0` or `0.1.0.2` is some other number.
    replace(&output, env!("CARGO_PKG_VERSION").as_bytes(), b"%version", |neighbour| {
        !(neighbour.is_ascii_alphanumeric() || neighbour == b'.')
    })
}

/// Replaces `from` where the bytes before and after it, if any, are `allowed`.
fn replace(text: &[u8], from: &[u8], to: &[u8], allowed: impl Fn(u8) -> bool) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let end = at + from.len();
        let alone = |text: &[u8]| {
            (at == 0 || allowed(text[at - 1]))
                && text.get(end).is_none_or(|&next| allowed(next) || at_sentence_end(text, end))
        };
        if text[at..].starts_with(from) && alone(text) {
            result.extend_from_slice(to);
            at = end;
        } else {
            result.push(text[at]);
            at += 1;
        }
    }
    result
}

/// Whether the byte at `index` is a full stop that ends a sentence.
fn at_sentence_end(text: &[u8], index: usize) -> bool {
    text[index] == b'.' && text.get(index + 1).is_none_or(u8::is_ascii_whitespace)
}
