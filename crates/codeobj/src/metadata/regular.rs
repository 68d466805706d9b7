//! The one block form in which LLVM prints metadata, read line by line at memory speed.
//!
//! ```text
//! ---
//! amdhsa.kernels:
//!   - .args:
//!       - .offset:         0
//!     .name:           axpy
//!     .reqd_workgroup_size:
//!       - 64
//! amdhsa.target:   amdgcn-amd-amdhsa--gfx942
//! ...
//! ```
//!
//! Two spaces per level, keys of letters, dots and underscores, one scalar per line of characters that mean nothing
//! to YAML, or a single-quoted one. Anything else (comments, flow, tabs, other indentation, an unusual character) gives
//! `None`, and the YAML parser decides. Where this answers, it gives the very tree that the YAML parser gives.

use super::{Detail, Node};
use std::borrow::Cow;

/// Nesting of the form; deeper is for the YAML parser to judge.
const DEPTH_LIMIT: usize = 12;
/// YAML limits the length of a key.
const KEY_LIMIT: usize = 200;

/// The document, or nothing when it strays from the form in any way. Under [`Detail::Counts`] the lines below `.args`
/// are held to the form, and no node is made of them.
pub(super) fn parse(text: &str, detail: Detail) -> Option<Node<'_>> {
    let mut lines = Lines { text, at: 0, end: 0, indent: 0, is_last: false, detail };
    lines.end = text.strip_prefix("---\n").map_or(0, |_| 4);
    lines.next_line()?;
    if lines.indent != 0 {
        return None;
    }
    let root = lines.map(0, true, 0)?;
    lines.is_last.then_some(root)
}

/// A cursor on one line.
struct Lines<'a> {
    text: &'a str,
    /// First character of the line that was not read yet.
    at: usize,
    /// Start of the next line.
    end: usize,
    /// Column of `at`.
    indent: usize,
    /// There is no line.
    is_last: bool,
    detail: Detail,
}

impl<'a> Lines<'a> {
    /// Goes to the next line. `...` and empty lines may only end the text.
    fn next_line(&mut self) -> Option<()> {
        let rest = &self.text.as_bytes()[self.end..];
        let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        self.indent = rest[..length].iter().take_while(|b| **b == b' ').count();
        self.at = self.end + self.indent;
        self.end = self.text.len().min(self.end + length + 1);
        let line = &rest[self.indent..length];
        if line.is_empty() || (line == b"..." && self.indent == 0) {
            self.is_last = true;
            return (self.indent == 0 && self.text.as_bytes()[self.end..].iter().all(|b| *b == b'\n')).then_some(());
        }
        Some(())
    }

    /// What is left of the line.
    fn body(&self) -> &'a str {
        let line = &self.text[self.at..self.end];
        line.strip_suffix('\n').unwrap_or(line)
    }

    fn map(&mut self, indent: usize, keep: bool, depth: usize) -> Option<Node<'a>> {
        let mut pairs = Vec::new();
        loop {
            let (key, value) = split_key(self.body())?;
            let keep_value = keep && !(self.detail == Detail::Counts && key == ".args");
            let value = if value.is_empty() {
                self.next_line()?;
                self.block(indent + 2, keep_value, depth + 1)?
            } else {
                let value = scalar(value, keep_value)?;
                self.next_line()?;
                value
            };
            if keep {
                if pairs.is_empty() {
                    pairs.reserve(24);
                }
                pairs.push((Node::Str(Cow::Borrowed(key)), value));
            }
            if self.is_last || self.indent < indent {
                return Some(Node::Map(pairs));
            }
            if self.indent > indent {
                return None;
            }
        }
    }

    /// The list or map below a key.
    fn block(&mut self, indent: usize, keep: bool, depth: usize) -> Option<Node<'a>> {
        if self.is_last || self.indent != indent || depth > DEPTH_LIMIT {
            return None;
        }
        if self.body().starts_with("- ") { self.list(indent, keep, depth) } else { self.map(indent, keep, depth) }
    }

    fn list(&mut self, indent: usize, keep: bool, depth: usize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        loop {
            let item = self.body().strip_prefix("- ")?;
            self.at += 2;
            let item = if split_key(item).is_some() {
                self.map(indent + 2, keep, depth + 1)?
            } else {
                let item = scalar(item, keep)?;
                self.next_line()?;
                item
            };
            if keep {
                items.push(item);
            }
            if self.is_last || self.indent < indent {
                return Some(Node::List(items));
            }
            if self.indent > indent {
                return None;
            }
        }
    }
}

/// `.key:   value` or `.key:`; the value is empty in the latter.
fn split_key(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    let starts_like_a_key = bytes.starts_with(b"amdhsa.") || matches!(bytes, [b'.', b'a'..=b'z', ..]);
    let length = bytes.iter().take(KEY_LIMIT).take_while(|b| CLASS[**b as usize] & KEY != 0).count();
    if !starts_like_a_key || bytes.get(length) != Some(&b':') {
        return None;
    }
    let value = &line[length + 1..];
    let spaces = value.bytes().take_while(|b| *b == b' ').count();
    (value.is_empty() || (spaces > 0 && spaces < value.len())).then(|| (&line[..length], &value[spaces..]))
}

/// One scalar that ends the line. Checked always, made into a node only if it is kept.
fn scalar(text: &str, keep: bool) -> Option<Node<'_>> {
    let bytes = text.as_bytes();
    match bytes {
        b"[]" => return Some(Node::List(Vec::new())),
        b"{}" => return Some(Node::Map(Vec::new())),
        [b'\'', inner @ .., b'\''] => {
            let is_simple = inner.iter().all(|b| matches!(b, b' '..=b'~') && *b != b'\'');
            return is_simple.then(|| Node::Str(Cow::Borrowed(&text[1..text.len() - 1])));
        }
        [b'-', b'0'..=b'9', ..] => {}
        [first, ..] if CLASS[*first as usize] & FIRST != 0 => {}
        _ => return None,
    }
    let safe = |at: usize, b: u8| CLASS[b as usize] & INNER != 0 || (b == b' ' && is_between_words(bytes, at));
    let is_plain = bytes.iter().enumerate().all(|(at, b)| safe(at, *b)) && !text.ends_with(':');
    is_plain.then(|| if keep { Node::from_plain(Cow::Borrowed(text)) } else { Node::Nil })
}

/// `OpenCL C`, `unsigned int`: a single space with a letter or digit on both sides.
fn is_between_words(bytes: &[u8], at: usize) -> bool {
    let is_word = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    at > 0 && is_word(bytes.get(at - 1)) && is_word(bytes.get(at + 1))
}

/// A byte may be in a key.
const KEY: u8 = 1;
/// A byte may start an unquoted scalar.
const FIRST: u8 = 2;
/// A byte may be inside one. A colon may, since no space can follow it.
const INNER: u8 = 4;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        let b = byte as u8;
        if b.is_ascii_lowercase() || b == b'_' || b == b'.' {
            class[byte] |= KEY;
        }
        if b.is_ascii_alphanumeric() || b == b'_' || b == b'$' {
            class[byte] |= FIRST | INNER;
        }
        if matches!(b, b'.' | b'/' | b'+' | b'-' | b'@' | b'<' | b'>' | b'(' | b')' | b'*' | b'=' | b'~' | b':') {
            class[byte] |= INNER;
        }
        byte += 1;
    }
    class
};
