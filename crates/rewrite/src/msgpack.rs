//! Where values are in MessagePack bytes, so that one can be changed and all others stay as they were written.
//!
//! `rmpv` reads values but not their places. This walks the format's heads ("Formats" of the MessagePack
//! specification) and nothing else.

use std::ops::Range;

/// What starts at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
    /// Nothing inside that is looked at: these many bytes with the head.
    Leaf(usize),
    Text {
        head: usize,
        len: usize,
    },
    List {
        head: usize,
        items: usize,
    },
    Map {
        head: usize,
        pairs: usize,
    },
}

/// Nesting beyond this is damage; metadata nests five deep.
const DEPTH_LIMIT: usize = 32;

fn head(bytes: &[u8]) -> Option<Head> {
    let number = |size: usize| {
        let digits = bytes.get(1..1 + size)?;
        Some(digits.iter().fold(0_usize, |number, byte| number << 8 | usize::from(*byte)))
    };
    Some(match *bytes.first()? {
        0x00..=0x7f | 0xc0..=0xc3 | 0xe0..=0xff => Head::Leaf(1),
        byte @ 0x80..=0x8f => Head::Map { head: 1, pairs: usize::from(byte & 0xf) },
        byte @ 0x90..=0x9f => Head::List { head: 1, items: usize::from(byte & 0xf) },
        byte @ 0xa0..=0xbf => Head::Text { head: 1, len: usize::from(byte & 0x1f) },
        0xc4 => Head::Leaf(number(1)?.checked_add(2)?),
        0xc5 => Head::Leaf(number(2)?.checked_add(3)?),
        0xc6 => Head::Leaf(number(4)?.checked_add(5)?),
        0xc7 => Head::Leaf(number(1)?.checked_add(3)?),
        0xc8 => Head::Leaf(number(2)?.checked_add(4)?),
        0xc9 => Head::Leaf(number(4)?.checked_add(6)?),
        0xcc | 0xd0 => Head::Leaf(2),
        0xcd | 0xd1 => Head::Leaf(3),
        0xca | 0xce | 0xd2 => Head::Leaf(5),
        0xcb | 0xcf | 0xd3 => Head::Leaf(9),
        byte @ 0xd4..=0xd8 => Head::Leaf(2 + (1 << (byte - 0xd4))),
        0xd9 => Head::Text { head: 2, len: number(1)? },
        0xda => Head::Text { head: 3, len: number(2)? },
        0xdb => Head::Text { head: 5, len: number(4)? },
        0xdc => Head::List { head: 3, items: number(2)? },
        0xdd => Head::List { head: 5, items: number(4)? },
        0xde => Head::Map { head: 3, pairs: number(2)? },
        0xdf => Head::Map { head: 5, pairs: number(4)? },
    })
}

/// End of the value at `at`.
fn end(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    let (mut at, items) = match head(bytes.get(at..)?)? {
        Head::Leaf(size) => return at.checked_add(size).filter(|end| *end <= bytes.len()),
        Head::Text { head, len } => return at.checked_add(head + len).filter(|end| *end <= bytes.len()),
        Head::List { head, items } => (at + head, items),
        Head::Map { head, pairs } => (at + head, pairs.checked_mul(2)?),
    };
    // An item has at least one byte, so a claimed number of items that are not there ends at the end of the bytes.
    for _ in 0..items {
        at = end(bytes, at, depth.checked_sub(1)?)?;
    }
    Some(at)
}

/// Ranges of the items of the list at `at`.
pub(crate) fn items(bytes: &[u8], at: usize) -> Option<Vec<Range<usize>>> {
    let Head::List { head, items } = head(bytes.get(at..)?)? else { return None };
    let mut next = at + head;
    let mut ranges = Vec::new();
    for _ in 0..items {
        let start = next;
        next = end(bytes, start, DEPTH_LIMIT)?;
        ranges.push(start..next);
    }
    Some(ranges)
}

/// Range of the value of `key` in the map at `at`; of a repeated key, the first.
pub(crate) fn value(bytes: &[u8], at: usize, key: &str) -> Option<Range<usize>> {
    let Head::Map { head, pairs } = head(bytes.get(at..)?)? else { return None };
    let mut next = at + head;
    for _ in 0..pairs {
        let start = end(bytes, next, DEPTH_LIMIT)?;
        let found = text(bytes, next) == Some(key);
        next = end(bytes, start, DEPTH_LIMIT)?;
        if found {
            return Some(start..next);
        }
    }
    None
}

/// The text at `at`.
pub(crate) fn text(bytes: &[u8], at: usize) -> Option<&str> {
    let Head::Text { head, len } = head(bytes.get(at..)?)? else { return None };
    let start = at.checked_add(head)?;
    std::str::from_utf8(bytes.get(start..start.checked_add(len)?)?).ok()
}

/// A number in the fewest bytes, as LLVM writes it.
pub(crate) fn unsigned(value: u64) -> Vec<u8> {
    let bytes = value.to_be_bytes();
    let (code, size) = match value {
        0..=0x7f => return vec![value as u8],
        0x80..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        _ => (0xcf, 8),
    };
    [&[code], &bytes[8 - size..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": [1, {"b": 300}], "c": 7}`
    const BYTES: &[u8] = b"\x82\xa1a\x92\x01\x81\xa1b\xcd\x01\x2c\xa1c\x07";

    #[test]
    fn values_are_found_where_they_are() {
        assert_eq!(value(BYTES, 0, "c"), Some(13..14));
        let list = value(BYTES, 0, "a").expect("there");
        let items = items(BYTES, list.start).expect("a list");
        assert_eq!(items, [4..5, 5..11]);
        assert_eq!(value(BYTES, items[1].start, "b"), Some(8..11));
        assert_eq!(BYTES[8..11], unsigned(300));
    }

    #[test]
    fn bytes_that_are_cut_short_have_no_values_behind_the_cut() {
        for len in 0..13 {
            assert_eq!(value(&BYTES[..len], 0, "c"), None);
        }
        assert_eq!(items(&[0xdd, 0xff, 0xff, 0xff, 0xff], 0), None);
        assert_eq!(end(&[0x91; 100], 0, DEPTH_LIMIT), None);
    }
}
