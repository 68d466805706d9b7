//! Finds labels by name. Code is full of labels that nobody asks for, so they are looked for one at a time; in a file
//! of many kernels all are collected at once.

use std::borrow::Cow;
use std::collections::HashMap;

use asm::{Lines, Statement};
use memchr::memmem;

use super::scan::{Scan, line_at, start_of_line};

/// With more kernels than this, one walk over all lines is cheaper than a search for each.
const SEARCH_UP_TO: usize = 4;

/// Labels of one text.
pub struct Labels<'s, 'a> {
    scan: &'s Scan<'a>,
    all: Option<HashMap<Cow<'a, [u8]>, usize>>,
}

impl<'s, 'a> Labels<'s, 'a> {
    /// Prepares for `kernels` look-ups.
    pub fn new(scan: &'s Scan<'a>, kernels: usize) -> Self {
        Labels { scan, all: (kernels > SEARCH_UP_TO).then(|| collect(scan.text)) }
    }

    /// Offset of the line of the first label `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        if let Some(all) = &self.all {
            return all.get(name).copied();
        }
        if name.first() == Some(&b'.') {
            return self.scan.local_labels.iter().find(|label| label.name.as_ref() == name).map(|label| label.at);
        }
        let text = self.scan.text;
        if name.is_empty() || name.iter().any(|b| matches!(b, b'"' | b'\\' | b'\n')) {
            return collect(text).get(name).copied(); // spelled with escapes, so not to be searched for as it is
        }
        memmem::find_iter(text, name)
            .filter(|at| matches!(text.get(at + name.len()..), Some([b':', ..] | [b'"', b':', ..])))
            .map(|at| start_of_line(text, at))
            .find(|&start| labels_of(line_at(text, start)).any(|label| label.as_ref() == name))
    }
}

fn collect(text: &[u8]) -> HashMap<Cow<'_, [u8]>, usize> {
    let mut all = HashMap::new();
    for line in Lines::new(text) {
        for label in labels_of(line.text) {
            all.entry(label).or_insert(line.offset);
        }
    }
    all
}

/// The labels that a line begins with.
fn labels_of(line: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = line;
    std::iter::from_fn(move || match Statement::parse(rest) {
        Statement::Label { name, rest: after } => {
            rest = after;
            Some(name)
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_by_one_and_all_at_once_find_the_same() {
        let text = b"\t.globl k\n; k:\nkk: k: \"a<b>\": s_nop 0\n \"e\\\"f\":\n.Lend: ; \nk:\n";
        let scan = Scan::read(text);
        let (one, all) = (Labels::new(&scan, 1), Labels::new(&scan, 100));
        for (name, want) in [
            ("k", Some(15)),
            ("kk", Some(15)),
            ("a<b>", Some(15)),
            ("e\"f", Some(38)),
            (".Lend", Some(47)),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(one.find(name.as_bytes()), want, "{name}");
            assert_eq!(all.find(name.as_bytes()), want, "{name}");
        }
    }
}
