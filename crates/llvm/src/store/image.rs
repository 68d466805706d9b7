//! A file of the store, as bytes and as what they say.
//!
//! ```text
//! 0    8  magic and version                      of each encoding, in the order of their numbers:
//! 8    4  CRC-32 of all behind it                n  bytes: words it is known by << 4 | words it has
//! 12  4×8 sizes: key, n encodings,               4n where its text ends
//!         words, bytes of text, windows,         4n round trip: 0 not tried, 1 same, 2 + i the i-th special
//!         specials, their bytes, trie entries    its words, the windows (5 words each) that are no instruction,
//! 44      the key                                specials (kind, column, length, bytes), and last all texts
//! ```
//!
//! Numbers are little-endian. A CRC-32 finds every change within 4 bytes, and all but one in 2^32 of the others.

use std::fs::File;
use std::io::Read;

use crate::by_id::{FIRST_SPECIAL, SAME, Texts, Trips, UNKNOWN};
use crate::encodings::{Encodings, MAX_WORDS, Outcome, Window};
use crate::{EncodingId, Refusal, RoundTrip};

/// To be changed whenever the layout, or what the cache makes of LLVM's answers, does.
const MAGIC: &[u8; 8] = b"coaxenc\x01";
/// Where the part begins that the checksum is of.
pub(super) const CHECKED_FROM: usize = 12;
const SIZES: usize = 8;
const HEADER_BYTES: usize = CHECKED_FROM + 4 * SIZES;

const DIFFERS: u8 = 2;
const REFUSED: u8 = 3;

/// What is known of a target.
pub(crate) struct Image {
    pub encodings: Encodings,
    pub texts: Texts,
    pub trips: Trips,
}

impl Default for Image {
    fn default() -> Self {
        Image { encodings: Encodings::new(), texts: Texts::default(), trips: Trips::default() }
    }
}

impl Image {
    /// What `file` says, and its checksum; `None` when it was not written for `key` or is damaged.
    pub fn read(mut file: File, key: &str) -> Option<(Self, u32)> {
        let size = file.metadata().ok()?.len();
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).ok()?;
        let sizes: [usize; SIZES] =
            std::array::from_fn(|i| word(&header[CHECKED_FROM + 4 * i..]).unwrap_or_default() as usize);
        let [key_len, count, words, text_len, windows, specials, special_len, edges] = sizes;
        // Below 2^32 each: no overflow in 64 bits.
        let columns = key_len + 9 * count + 4 * words + 4 * MAX_WORDS * windows + special_len;
        if header[..8] != *MAGIC || (HEADER_BYTES + columns + text_len) as u64 != size || edges > words {
            return None;
        }
        let (mut body, mut text) = (vec![0; columns], vec![0; text_len]);
        file.read_exact(&mut body).ok()?;
        file.read_exact(&mut text).ok()?;
        let mut crc = crc32fast::Hasher::new();
        [&header[CHECKED_FROM..], &body, &text].into_iter().for_each(|part| crc.update(part));
        let checksum = checksum_in(header.first_chunk()?);
        if crc.finalize() != checksum {
            return None;
        }
        let mut rest = &body[..];
        let mut take = |len| {
            let (field, behind) = rest.split_at_checked(len)?;
            rest = behind;
            Some(field)
        };
        if take(key_len)? != key.as_bytes() {
            return None;
        }
        let (shapes, ends, stored) = (take(count)?, numbers(take(4 * count)?), numbers(take(4 * count)?));
        let (words, windows) = (numbers(take(4 * words)?), numbers(take(4 * MAX_WORDS * windows)?));
        let encodings = encodings(shapes, &words, &windows, edges)?;
        let special = special(take(special_len)?, specials)?;
        let texts = Texts::stored(String::from_utf8(text).ok()?, ends);
        Some((Image { encodings, texts, trips: Trips::stored(stored, special) }, checksum))
    }
}

/// The checksum that the start of a file states.
pub(super) fn checksum_in(start: &[u8; CHECKED_FROM]) -> u32 {
    word(&start[8..]).unwrap_or_default()
}

/// `None` when the numbers that come out are not those that were stored.
fn encodings(shapes: &[u8], mut words: &[u32], windows: &[u32], edges: usize) -> Option<Encodings> {
    let mut encodings = Encodings::with_room(edges, shapes.len(), words.len());
    for (i, shape) in shapes.iter().enumerate() {
        let (kept, own) = (shape >> 4, shape & 15);
        let (its, behind) = words.split_at_checked(usize::from(kept))?;
        words = behind;
        let is_next = own > 0 && own <= kept && usize::from(kept) <= MAX_WORDS;
        let id = if is_next { encodings.insert_shaped(&Window::of(its), kept, own) } else { None };
        if id != Some(EncodingId(i as u32 + 1)) {
            return None;
        }
    }
    for window in windows.chunks_exact(MAX_WORDS) {
        encodings.insert(&Window::of(window), &Outcome::Undecodable);
    }
    Some(encodings)
}

fn special(mut bytes: &[u8], count: usize) -> Option<Vec<RoundTrip>> {
    let mut special = Vec::new();
    for _ in 0..count {
        let (fields, behind) = bytes.split_at_checked(9)?;
        let (column, len) = (word(&fields[1..])?, word(&fields[5..])? as usize);
        let (content, behind) = behind.split_at_checked(len)?;
        bytes = behind;
        special.push(match fields[0] {
            DIFFERS => RoundTrip::Differs(content.into()),
            REFUSED => RoundTrip::Refused(Refusal { column, message: String::from_utf8(content.to_vec()).ok()? }),
            _ => return None,
        });
    }
    Some(special)
}

/// A file's bytes; `None` when something has no place in it.
pub(super) fn bytes<'t>(
    key: &str,
    encodings: &Encodings,
    texts: &Texts,
    trip: &dyn Fn(EncodingId) -> Option<&'t RoundTrip>,
) -> Option<Vec<u8>> {
    let count = encodings.shapes().len();
    let (mut shapes, mut ends, mut trips) = (Vec::with_capacity(count), Vec::new(), Vec::new());
    let (mut words, mut text, mut special, mut specials) = (Vec::new(), String::new(), Vec::new(), 0);
    for (i, (shape, its)) in encodings.shapes().enumerate() {
        let id = EncodingId(i as u32 + 1);
        shapes.push(shape.kept << 4 | shape.words);
        put(&mut words, its);
        text.push_str(texts.get(id)?);
        put(&mut ends, &[u32::try_from(text.len()).ok()?]);
        let (kind, column, content) = match trip(id) {
            None | Some(RoundTrip::Same) => {
                put(&mut trips, &[if trip(id).is_some() { SAME } else { UNKNOWN }]);
                continue;
            }
            Some(RoundTrip::Differs(bytes)) => (DIFFERS, 0, &bytes[..]),
            Some(RoundTrip::Refused(refusal)) => (REFUSED, refusal.column, refusal.message.as_bytes()),
        };
        put(&mut trips, &[FIRST_SPECIAL + specials]);
        specials += 1;
        special.push(kind);
        put(&mut special, &[column, content.len() as u32]);
        special.extend_from_slice(content);
    }
    let (mut windows, mut window_count) = (Vec::new(), 0);
    for window in encodings.undecodable() {
        put(&mut windows, &window.0);
        window_count += 1;
    }
    let word_count = words.len() / 4;
    let sizes = [key.len(), count, word_count, text.len(), window_count, specials as usize, special.len()];
    let mut sizes: Vec<u32> = sizes.into_iter().map(u32::try_from).collect::<Result<_, _>>().ok()?;
    sizes.push(encodings.edges() as u32);
    let mut file = MAGIC.to_vec();
    file.extend_from_slice(&[0; 4]);
    put(&mut file, &sizes);
    for part in [key.as_bytes(), &shapes, &ends, &trips, &words, &windows, &special, text.as_bytes()] {
        file.extend_from_slice(part);
    }
    let checksum = crc32fast::hash(&file[CHECKED_FROM..]);
    file[8..CHECKED_FROM].copy_from_slice(&checksum.to_le_bytes());
    Some(file)
}

fn put(bytes: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}
