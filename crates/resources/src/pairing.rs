//! Which kernel of one snapshot is which of the other. In this order: equal keys; names that `--match` makes equal;
//! equal identity (a specialisation's signature and options); a bare kernel name that is left over once on each side.

use std::collections::BTreeMap;
use std::fmt;

use regex::Regex;

use crate::policy::Names;
use crate::snapshot::Snapshot;
use crate::triton::Identity;

/// `REGEX=REPLACEMENT`: rewrites keys of both sides before they are compared.
#[derive(Clone, Debug)]
pub struct Rewrite {
    regex: Regex,
    replacement: String,
}

impl Rewrite {
    /// Reads `REGEX=REPLACEMENT`; the last `=` separates, and the replacement may use `$1`.
    pub fn parse(text: &str) -> Result<Rewrite, String> {
        let (regex, replacement) =
            text.rsplit_once('=').ok_or_else(|| format!("`{text}` has no `=`; expected REGEX=REPLACEMENT"))?;
        let regex = Regex::new(regex).map_err(|e| format!("`{regex}` is not a regular expression: {e}"))?;
        Ok(Rewrite { regex, replacement: replacement.into() })
    }
}

/// As the user wrote it.
impl fmt::Display for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.regex, self.replacement)
    }
}

impl Rewrite {
    /// Whether the pattern occurs in any key of either side.
    fn fits(&self, before: &Snapshot, after: &Snapshot) -> bool {
        before.kernels.keys().chain(after.kernels.keys()).any(|key| self.regex.is_match(key))
    }
}

/// One row to be: a kernel of each side, or of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'s> {
    /// Key before; none when the kernel is new.
    pub before: Option<&'s str>,
    /// Key after; none when the kernel is gone.
    pub after: Option<&'s str>,
}

impl<'s> Pair<'s> {
    /// The key that the row goes by.
    pub fn key(&self) -> &'s str {
        self.before.or(self.after).unwrap_or_default()
    }

    /// Its keys on both sides.
    pub fn names(&self) -> Names<'s> {
        Names { before: self.before, after: self.after }
    }
}

/// What a reader should know of the pairing.
#[derive(Clone, Debug)]
pub struct Note<'s> {
    keys: Vec<&'s str>,
    /// The sentence.
    pub text: String,
}

impl Note<'_> {
    /// Whether it is about one of these keys; one that is about no kernel is for everybody.
    pub fn is_about(&self, is_wanted: impl Fn(&str) -> bool) -> bool {
        self.keys.is_empty() || self.keys.iter().any(|key| is_wanted(key))
    }
}

/// The kernel's name in a key.
pub fn bare_name(key: &str) -> &str {
    // Names may hold `::` themselves (`ns::gemm`), the place in front of them ends at the first one.
    key.split_once("::").map_or(key, |(_, name)| name)
}

/// Pairs all kernels. The notes tell of every pair whose keys differ, and of names that stay ambiguous.
pub fn pair<'s>(before: &'s Snapshot, after: &'s Snapshot, rewrites: &[Rewrite]) -> (Vec<Pair<'s>>, Vec<Note<'s>>) {
    let mut state = Pairing { before, after, pairs: Vec::new(), notes: Vec::new() };
    for rewrite in rewrites.iter().filter(|r| !r.fits(before, after)) {
        let like = before.kernels.keys().next().map(|key| format!("; keys look like `{key}`")).unwrap_or_default();
        state.note(vec![], format!("--match `{}` fits no key{like}", rewrite.regex));
    }
    let mut left: Vec<&str> = before.kernels.keys().map(String::as_str).collect();
    let mut right: Vec<&str> = after.kernels.keys().map(String::as_str).collect();
    state.round(&mut left, &mut right, |_, key| Some(key.to_owned()), None);
    if !rewrites.is_empty() {
        let rewrite = |_: &Snapshot, key: &str| Some(rewritten(key, rewrites));
        state.round(&mut left, &mut right, rewrite, Some("--match makes them equal"));
        let rewrite = |_: &Snapshot, key: &str| Some(rewritten(bare_name(key), rewrites));
        state.round(&mut left, &mut right, rewrite, Some("--match makes the kernel names equal"));
    }
    for (round, why) in Identity::default().rounds().map(|(_, why)| why).into_iter().enumerate() {
        let identity = |snapshot: &Snapshot, key: &str| {
            let (identity, _) = snapshot.kernels[key].identity.as_ref()?.rounds().into_iter().nth(round)?;
            Some(format!("{} {identity}", bare_name(key)))
        };
        state.round(&mut left, &mut right, identity, Some(why));
    }
    let name = |_: &Snapshot, key: &str| Some(bare_name(key).to_owned());
    state.round(&mut left, &mut right, name, Some("the kernel name is unique on both sides"));
    state.report_ambiguous(&left, &right, rewrites);
    state.pairs.extend(left.iter().map(|key| Pair { before: Some(*key), after: None }));
    state.pairs.extend(right.iter().map(|key| Pair { before: None, after: Some(*key) }));
    state.pairs.sort_by_key(Pair::key);
    (state.pairs, state.notes)
}

fn rewritten(key: &str, rewrites: &[Rewrite]) -> String {
    rewrites.iter().fold(key.to_owned(), |key, r| r.regex.replace_all(&key, r.replacement.as_str()).into_owned())
}

struct Pairing<'s> {
    before: &'s Snapshot,
    after: &'s Snapshot,
    pairs: Vec<Pair<'s>>,
    notes: Vec<Note<'s>>,
}

impl<'s> Pairing<'s> {
    fn note(&mut self, keys: Vec<&'s str>, text: String) {
        self.notes.push(Note { keys, text });
    }

    /// Pairs what `identify` names once on each side; `why` is the note's reason, none for equal keys.
    fn round(
        &mut self,
        left: &mut Vec<&'s str>,
        right: &mut Vec<&'s str>,
        identify: impl Fn(&Snapshot, &str) -> Option<String>,
        why: Option<&str>,
    ) {
        let index = |snapshot: &Snapshot, keys: &[&'s str]| {
            let mut index: BTreeMap<String, Vec<&'s str>> = BTreeMap::new();
            for key in keys {
                if let Some(identity) = identify(snapshot, key) {
                    index.entry(identity).or_default().push(key);
                }
            }
            index
        };
        if left.is_empty() || right.is_empty() {
            return;
        }
        let others = index(self.after, right);
        let mut paired = std::collections::HashSet::new();
        for (identity, mine) in index(self.before, left) {
            let (&[a], Some(&[b])) = (mine.as_slice(), others.get(&identity).map(Vec::as_slice)) else { continue };
            if let Some(why) = why {
                self.note(vec![a, b], format!("paired `{a}` with `{b}`: {why}"));
            }
            self.pairs.push(Pair { before: Some(a), after: Some(b) });
            paired.insert((true, a));
            paired.insert((false, b));
        }
        left.retain(|key| !paired.contains(&(true, *key)));
        right.retain(|key| !paired.contains(&(false, *key)));
    }

    /// A name that is left on both sides, and more than once on one, cannot be paired: say so.
    fn report_ambiguous(&mut self, left: &[&'s str], right: &[&'s str], rewrites: &[Rewrite]) {
        let count = |keys: &[&'s str]| {
            let mut names: BTreeMap<String, Vec<&'s str>> = BTreeMap::new();
            for key in keys {
                names.entry(rewritten(bare_name(key), rewrites)).or_default().push(key);
            }
            names
        };
        let mut after = count(right);
        for (name, before) in count(left) {
            let Some(after) = after.remove(&name) else { continue };
            let way_out = match rewrites {
                [] => "--match can tell them apart",
                _ => "patterns of --match that keep them apart would help",
            };
            let quoted = |keys: &[&str]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let text =
                format!("could not pair `{name}`: before {}; after {}; {way_out}", quoted(&before), quoted(&after));
            self.note(before.into_iter().chain(after).collect(), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Cell, Cells};
    use crate::record::Record;

    fn snapshot(keys: &[(&str, Option<&str>)]) -> Snapshot {
        let record = |identity: Option<&str>| Record {
            target: None,
            cells: Cells::from_fn(|_| Cell::Value(0)),
            notes: vec![],
            problems: vec![],
            source: "".into(),
            identity: identity.map(|stores| Identity { stores: stores.into(), ..Identity::default() }),
            launch: None,
        };
        Snapshot { kernels: keys.iter().map(|(k, i)| ((*k).to_owned(), record(*i))).collect(), ..Snapshot::default() }
    }

    fn shown(before: &[(&str, Option<&str>)], after: &[(&str, Option<&str>)], rewrites: &[&str]) -> Vec<String> {
        let rewrites: Vec<_> = rewrites.iter().map(|r| Rewrite::parse(r).expect(r)).collect();
        let (before, after) = (snapshot(before), snapshot(after));
        let (pairs, _) = pair(&before, &after, &rewrites);
        pairs.iter().map(|p| format!("{} {}", p.before.unwrap_or("-"), p.after.unwrap_or("-"))).collect()
    }

    #[test]
    fn specialisations_are_told_apart_by_identity_before_name() {
        let before = [("h1/m::m", Some("64")), ("h2/m::m", Some("128"))];
        let after = [("h3/m::m", Some("128")), ("h4/m::m", Some("64"))];
        assert_eq!(shown(&before, &after, &[]), ["h1/m::m h4/m::m", "h2/m::m h3/m::m"]);
        // One more on one side: its identity is new, so it stays alone.
        let after = [("h3/m::m", Some("128")), ("h4/m::m", Some("64")), ("h5/m::m", Some("256"))];
        assert_eq!(shown(&before, &after, &[]), ["h1/m::m h4/m::m", "h2/m::m h3/m::m", "- h5/m::m"]);
    }

    #[test]
    fn ambiguous_names_are_not_guessed() {
        let before = [("a::k", None), ("b::k", None)];
        let after = [("c::k", None), ("d::k", None)];
        assert_eq!(shown(&before, &after, &[]), ["a::k -", "b::k -", "- c::k", "- d::k"]);
        let (before, after) = (snapshot(&before), snapshot(&after));
        let (_, notes) = pair(&before, &after, &[]);
        assert!(notes[0].text.contains("could not pair `k`"), "{notes:?}");
    }

    #[test]
    fn match_rewrites_names_of_both_sides() {
        let before = [("g::gemm_64x128", None)];
        let after = [("g::gemm_128x256", None)];
        assert_eq!(shown(&before, &after, &[r"_\d+x\d+="]), ["g::gemm_64x128 g::gemm_128x256"]);
    }
}
