//! The counted instructions of a text, with their places; a body is a range of them.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, packed};
use asm::Statement;
use asm::statement::strip_comment;
use isa::Site;

use super::scan::{line_at, start_of_line};
use crate::sites::SiteCounts;

/// A word in every mnemonic (or modifier) that [`Site::of`] knows. `ds_` stands in `lds_` too.
const WORDS: [&str; 7] = ["ds_", "scratch_", "v_mfma", "v_wmma", "v_smfmac", "v_swmmac", "lds"];

/// Offsets and kinds, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sites(Vec<(usize, Site)>);

impl Sites {
    /// Finds all counted instructions.
    pub fn read(text: &[u8]) -> Sites {
        let mut sites = Vec::with_capacity(text.len() / BYTES_PER_SITE);
        let mut at = 0;
        let mut line_seen = None;
        while let Some(found) = find(text, at) {
            at = found + 1;
            let start = line_start(text, found);
            if line_seen == Some(start) {
                continue; // a second word of one line, as in `scratch_load_lds_dword`
            }
            line_seen = Some(start);
            sites.extend(site_of_line(&text[start..]).map(|site| (start, site)));
        }
        Sites(sites)
    }

    /// Counts those at `start` and behind it, before `end`.
    pub fn between(&self, start: usize, end: usize) -> SiteCounts {
        let index = |offset: usize| self.0.partition_point(|(at, _)| *at < offset);
        let mut counts = SiteCounts::default();
        self.0.get(index(start)..index(end)).unwrap_or_default().iter().for_each(|(_, site)| counts.add(*site));
        counts
    }
}

/// Real kernels have one counted instruction in 150 bytes of text or more; memory for as many is taken at first.
const BYTES_PER_SITE: usize = 150;

/// The start of the line of `found`: mostly there are only blanks in between.
fn line_start(text: &[u8], found: usize) -> usize {
    let mut at = found;
    while at > 0 && matches!(text[at - 1], b' ' | b'\t') {
        at -= 1;
    }
    if at == 0 || text[at - 1] == b'\n' { at } else { start_of_line(text, at) }
}

/// Where one of [`WORDS`] is found next.
fn find(text: &[u8], at: usize) -> Option<usize> {
    static VECTOR: OnceLock<Option<packed::Searcher>> = OnceLock::new();
    static PLAIN: OnceLock<Option<AhoCorasick>> = OnceLock::new();
    let rest = text.get(at..)?;
    let found = match VECTOR.get_or_init(|| packed::Searcher::new(WORDS)) {
        Some(searcher) => searcher.find(rest)?.start(),
        // A processor without the vector instructions that it needs.
        None => PLAIN.get_or_init(|| AhoCorasick::new(WORDS).ok()).as_ref()?.find(rest)?.start(),
    };
    Some(at + found)
}

/// The site of the instruction of the line that `text` starts with; it may stand behind labels.
fn site_of_line(text: &[u8]) -> Option<Site> {
    let mut rest = text;
    loop {
        match Statement::parse(rest) {
            Statement::Label { rest: after, .. } => rest = after,
            Statement::Instruction { mnemonic, operands } => {
                return Site::of(mnemonic, || strip_comment(line_at(operands, 0)));
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The plain walk that the search must agree with.
    fn plain(text: &[u8]) -> Sites {
        Sites(asm::Lines::new(text).filter_map(|l| Some((l.offset, site_of_line(l.text)?))).collect())
    }

    #[test]
    fn the_search_finds_what_a_plain_walk_finds() {
        let text = b"ds_read_b32 v0, v1\n\tlbl: v_wmma_f32 v0\n\t; ds_write_b32\n\tv_mul_f32 v0 ; ds_\n  buffer_load_dword v1, off lds ; x\n\
            \tbuffer_load_dword v1, off ; lds\n\tv_swmmac_x v0\n\"ds_\": scratch_load_dword v0\n\ttensor_load_to_lds s[0:3]";
        assert_eq!(Sites::read(text), plain(text));
        assert_eq!(Sites::read(text).0.len(), 6);
    }
}
