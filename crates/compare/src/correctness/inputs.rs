//! What the buffers hold in each round: the site's own content first, then other content wherever other values are as good for
//! the kernel ([`Fill::may_vary`]). It follows from the seed, so that a run can be repeated.

use std::collections::BTreeSet;

use rayon::prelude::*;

use crate::correctness::RoundKind;
use crate::dtype::Dtype;
use crate::fill::random::mix;
use crate::fill::{Fill, Source};
use crate::random::Random;
use crate::site::{Buffer, Site};

/// So many elements of an input are replaced at most.
const REPLACED: u64 = 64;
/// So many numbers are drawn to replace them with.
const DRAWN: u64 = 4096;
/// The largest element is looked for among so many at most.
const SEARCHED: u64 = 1 << 24;
/// Bytes that one work item takes a fingerprint of.
const CHUNK: usize = 1 << 20;

/// The content of all buffers, round after round.
#[derive(Debug, Default)]
pub struct Inputs {
    content: Vec<Vec<u8>>,
    /// Fingerprints of the rounds before: the content itself may take gigabytes.
    seen: BTreeSet<u64>,
}

impl Inputs {
    /// Content of this round, by number of the buffer; empty where there is no fill.
    pub fn content(&self) -> &[Vec<u8>] {
        &self.content
    }

    /// The content of the last round.
    pub fn into_content(self) -> Vec<Vec<u8>> {
        self.content
    }

    /// Makes those of the next round. Returns whether any byte is another than in each round before.
    ///
    /// # Errors
    /// A fill that cannot be made, as a driver's error of kind `BadLaunch`.
    pub fn next(&mut self, site: &Site, own_seed: u64, kind: RoundKind) -> gpu::Result<bool> {
        let seed = seed_of(own_seed, kind);
        if kind == RoundKind::Perturbed && !self.content.is_empty() {
            perturb(site, &mut self.content, seed)?;
        } else {
            self.content = Vec::new(); // before the next ones take memory
            self.content = fill(site, seed, kind)?;
        }
        Ok(self.seen.insert(fingerprint(&self.content)))
    }
}

/// The site's own inputs come with the seed itself, in [`RoundKind::Fresh`].
pub fn seed_of(seed: u64, kind: RoundKind) -> u64 {
    match kind {
        RoundKind::Fresh => seed,
        RoundKind::SameBuffers | RoundKind::Perturbed => seed.wrapping_add(1),
        RoundKind::Signed => seed.wrapping_add(2),
    }
}

/// The content of each buffer with a fill.
fn fill(site: &Site, seed: u64, kind: RoundKind) -> gpu::Result<Vec<Vec<u8>>> {
    let (mut source, mut random) = (Source::new(seed), Random::new(seed));
    let content = site.buffers().map(|(name, buffer)| {
        let Some(fill) = &buffer.fill else { return Ok(Vec::new()) };
        let signed = (kind == RoundKind::Signed).then(|| with_both_signs(fill, buffer.dtype));
        let mut content = vec![0; buffer.bytes as usize];
        let filled = source.fill(signed.as_ref().unwrap_or(fill), buffer.dtype, &buffer.shape, &mut content);
        filled.map_err(|why| refused(site, name, &why))?;
        if kind != RoundKind::Fresh && fill.may_vary(buffer.dtype) && !is_drawn(fill) {
            shift(buffer, &mut content, kind, &mut random);
        }
        Ok(content)
    });
    content.collect()
}

fn refused(site: &Site, name: &str, why: &crate::Error) -> gpu::Error {
    gpu::Error::new(gpu::ErrorKind::BadLaunch, format!("{}: arg `{name}`: {why}", site.origin))
}

/// Whether another seed gives other values.
fn is_drawn(fill: &Fill) -> bool {
    match fill {
        Fill::Bits | Fill::Uniform { .. } | Fill::Normal { .. } | Fill::MaskedBytes { .. } => true,
        Fill::Special { fill, .. } => is_drawn(fill),
        Fill::Range { .. } | Fill::Constant(_) | Fill::OneHot { .. } | Fill::File(_) => false,
    }
}

/// The same fill with values of both signs, where it has one sign only and its type has signs. Numbers that steer the
/// kernel (constants, ranges, files, integers) stay.
fn with_both_signs(fill: &Fill, dtype: Dtype) -> Fill {
    if !dtype.is_float() {
        return fill.clone();
    }
    match fill {
        Fill::Uniform { low, high } if *low >= 0.0 && *high > 0.0 => Fill::Uniform { low: -high, high: *high },
        Fill::Uniform { low, high } if *low < 0.0 && *high <= 0.0 => Fill::Uniform { low: *low, high: -low },
        Fill::MaskedBytes { mask } if dtype.bits() == 8 => Fill::MaskedBytes { mask: mask | 0x80 },
        Fill::Special { fill, rate } => Fill::Special { fill: Box::new(with_both_signs(fill, dtype)), rate: *rate },
        other => other.clone(),
    }
}

/// Shifts the elements cyclically: by less than half in one kind of round, by more in the other, so that the two differ.
/// Elements that share bytes move together, and those behind the last whole group stay.
fn shift(buffer: &Buffer, content: &mut [u8], kind: RoundKind, random: &mut Random) {
    let group = buffer.dtype.group();
    let (groups, bytes) = (buffer.elements / group, (group * u64::from(buffer.dtype.bits()) / 8) as usize);
    if groups < 2 {
        return;
    }
    let less = (groups - 1).div_ceil(2);
    let by = match (kind, groups - 1 - less) {
        (RoundKind::Signed, _) => 1 + random.below(less),
        (_, 0) => 0, // two groups have but one other order; it was there in the round before
        (_, more) => 1 + less + random.below(more),
    };
    if let Some(whole) = content.get_mut(..groups as usize * bytes) {
        whole.rotate_left(by as usize * bytes);
    }
}

/// Replaces a few elements of each input that may vary, none of them in its first half: by other numbers of the same fill,
/// else by elements from other places. Elements that merely changed places would leave sums, maxima and histograms as
/// they were.
fn perturb(site: &Site, contents: &mut [Vec<u8>], seed: u64) -> gpu::Result<()> {
    let (mut source, mut random) = (Source::new(!seed), Random::new(seed));
    for ((name, buffer), content) in site.buffers().zip(contents) {
        let Some(fill) = buffer.fill.as_ref().filter(|fill| fill.may_vary(buffer.dtype)) else { continue };
        let dtype = buffer.dtype;
        let values = match is_drawn(fill) {
            true => {
                let mut drawn = vec![0; dtype.bytes_for(DRAWN).unwrap_or_default() as usize];
                source.fill(fill, dtype, &[DRAWN], &mut drawn).map_err(|why| refused(site, name, &why))?;
                Values::of(dtype, &drawn, DRAWN, |at| at)
            }
            false => Values::of(dtype, content, buffer.elements, |_| random.below(buffer.elements)),
        };
        replace(dtype, content, buffer.elements, &values, &mut random);
    }
    Ok(())
}

/// What elements are replaced with.
struct Values {
    /// The largest there is.
    largest: u64,
    others: Vec<u64>,
}

impl Values {
    /// Elements of a tensor, those at `place(0)`, `place(1)`, …
    fn of(dtype: Dtype, from: &[u8], elements: u64, mut place: impl FnMut(u64) -> u64) -> Values {
        let largest = largest(dtype, from, 0, elements).and_then(|at| dtype.get(from, at)).unwrap_or_default();
        Values { largest, others: (0..DRAWN).filter_map(|number| dtype.get(from, place(number))).collect() }
    }

    /// One that is another than `old`, if a few tries find one.
    fn other_than(&self, old: Option<u64>, random: &mut Random) -> Option<u64> {
        let mut draw = || self.others.get(random.below(self.others.len().max(1) as u64) as usize).copied();
        (0..16).filter_map(|_| draw()).find(|value| Some(*value) != old)
    }
}

/// The largest element of the second half goes, and a larger one may come: the maximum changes, too.
fn replace(dtype: Dtype, content: &mut [u8], elements: u64, values: &Values, random: &mut Random) {
    let half = elements / 2;
    let draw = |random: &mut Random| half + random.below(elements - half);
    let at = draw(random);
    dtype.set(content, at, values.largest);
    let mut places: Vec<u64> = (1..REPLACED.min(elements - half)).map(|_| draw(random)).collect();
    places.extend(largest(dtype, content, half, elements));
    for place in places.into_iter().filter(|place| *place != at || elements - half == 1) {
        if let Some(value) = values.other_than(dtype.get(content, place), random) {
            dtype.set(content, place, value);
        }
    }
}

/// Where the largest element is, of those from `first` to `end` that are searched; none among NaN alone.
fn largest(dtype: Dtype, content: &[u8], first: u64, end: u64) -> Option<u64> {
    let end = end.min(first.saturating_add(SEARCHED));
    let value = |at: u64| dtype.get(content, at).map(|bits| dtype.decode(bits)).filter(|value| !value.is_nan());
    let found = (first..end).into_par_iter().filter_map(|at| Some((value(at)?, at)));
    // Of several, the first: whatever the number of threads.
    found.max_by(|(a, at), (b, bt)| a.total_cmp(b).then(bt.cmp(at))).map(|(_, at)| at)
}

/// A number that follows from all bytes.
fn fingerprint(contents: &[Vec<u8>]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let of_chunk = |chunk: &[u8]| {
        let (words, rest) = chunk.as_chunks::<8>();
        let whole = words.iter().fold(1, |hash, word| step(hash, u64::from_le_bytes(*word)));
        rest.iter().fold(whole, |hash, byte| step(hash, u64::from(*byte)))
    };
    let of_buffer = |content: &Vec<u8>| {
        let chunks: Vec<u64> = content.par_chunks(CHUNK).map(of_chunk).collect();
        chunks.into_iter().fold(content.len() as u64, |hash, chunk| mix(hash ^ chunk))
    };
    contents.iter().map(of_buffer).fold(0, |hash, buffer| mix(hash ^ buffer))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::site::DeviceFacts;

    fn site(dtype: &str, elements: u64, fill: &str) -> Site {
        let text = format!(
            "kernel = \"k\"\ngrid = [1]\nblock = [1]\n[[arg]]\nname = \"in\"\ndtype = \"{dtype}\"\nshape = [{elements}]\n\
             fill = {{ {fill} }}\n"
        );
        Site::parse(&text, "site", Path::new(""), DeviceFacts { compute_units: 1, wave_size: 64 })
            .expect("a valid site")
    }

    /// The elements of each round.
    fn rounds(site: &Site) -> Vec<(bool, Vec<u64>)> {
        let (mut inputs, mut all) = (Inputs::default(), Vec::new());
        let (_, buffer) = site.buffers().next().expect("one buffer");
        for kind in crate::correctness::ROUNDS {
            let is_new = inputs.next(site, 42, kind).expect("a fill");
            let content = &inputs.content()[0];
            all.push((is_new, (0..buffer.elements).filter_map(|at| buffer.dtype.get(content, at)).collect()));
        }
        all
    }

    fn sorted(elements: &[u64]) -> Vec<u64> {
        let mut sorted = elements.to_vec();
        sorted.sort_unstable();
        sorted
    }

    #[test]
    fn what_no_generator_draws_is_shifted() {
        for (dtype, elements) in [("f32", 100), ("fp4_e2m1", 101), ("fp6_e2m3", 102), ("bf16", 3)] {
            let all = rounds(&site(dtype, elements, "kind = \"range\", start = 0, step = 0.5"));
            assert!(all[1].0 && all[2].0 && all[1].1 != all[2].1, "{dtype}");
            for (_, round) in &all[1..3] {
                assert_eq!(sorted(round), sorted(&all[0].1), "{dtype}");
            }
        }
    }

    #[test]
    fn replaced_elements_change_sums_and_histograms_and_leave_the_first_half() {
        for (dtype, elements, fill) in [
            ("f32", 1021, "kind = \"uniform\""),
            ("fp4_e2m1", 1021, "kind = \"normal\""),
            ("fp6_e3m2", 1022, "kind = \"bits\""),
            ("fp8_e4m3", 4096, "kind = \"bytes\", mask = 0x3f"),
            ("i32", 1000, "kind = \"uniform\", low = 0, high = 1000000"),
            ("f64", 50, "kind = \"range\""),
            ("f32", 1, "kind = \"uniform\""),
        ] {
            let all = rounds(&site(dtype, elements, fill));
            let ((_, before), (is_new, after)) = (&all[2], &all[3]);
            let half = elements as usize / 2;
            assert!(*is_new && before[..half] == after[..half], "{dtype}");
            assert_ne!(sorted(before), sorted(after), "{dtype}");
            assert!(before.iter().zip(after).filter(|(a, b)| a != b).count() <= 65, "{dtype}");
        }
        // Numbers between 0 and 1 have the order of their bits.
        let all = rounds(&site("f32", 1021, "kind = \"uniform\""));
        assert_ne!(all[2].1.iter().max(), all[3].1.iter().max());
    }

    #[test]
    fn integers_that_could_be_indices_and_constants_stay() {
        for (dtype, fill) in [
            ("i32", "kind = \"range\""),
            ("f32", "kind = \"constant\", value = 1"),
            ("i8", "kind = \"one-hot\", index = 3"),
        ] {
            let all = rounds(&site(dtype, 64, fill));
            assert!(all.iter().all(|round| round.1 == all[0].1), "{dtype} {fill}");
            assert_eq!(all.iter().map(|round| round.0).collect::<Vec<_>>(), [true, false, false, false]);
        }
    }

    #[test]
    fn numbers_below_zero_get_both_signs_too() {
        let all = rounds(&site("f32", 100, "kind = \"uniform\", low = -2.0, high = 0.0"));
        let negative = |round: &[u64]| round.iter().filter(|bits| **bits >> 31 == 1).count();
        assert_eq!(negative(&all[0].1), 100);
        assert!((20..80).contains(&negative(&all[1].1)));
    }
}
