//! `.npy` files: NumPy's format of one array, versions 1 to 3 (NEP 1 and `numpy.lib.format`).
//!
//! ```text
//! 0  "\x93NUMPY"   6  major, minor   8  length of the header: u16 (version 1) or u32 (2, 3)   then header, data
//! {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//! ```
//!
//! NumPy has no bf16, fp8, fp6, fp4 or e8m0: a file for them holds their bits, as `V` or unsigned integers of the same
//! width (of packed types: as bytes), or numbers of another type, which are rounded.

use crate::dtype::{Dtype, Kind};
use crate::error::{Error, Result};

/// What a file begins with.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// A parsed file.
#[derive(Clone, Debug, PartialEq)]
pub struct Npy<'a> {
    /// `f`, `i`, `u`, `b` or `V`.
    kind: u8,
    /// Bytes of an element.
    width: usize,
    shape: Vec<u64>,
    data: &'a [u8],
}

/// Reads the header of a file, and finds its data. Nothing is allocated on its word.
pub fn parse(bytes: &[u8]) -> Result<Npy<'_>> {
    let no_header = || Error::new(format!("the .npy header ends early: the file has {} bytes", bytes.len()));
    let rest =
        bytes.strip_prefix(MAGIC).ok_or_else(|| Error::new("not a .npy file: it does not start with \\x93NUMPY"))?;
    let (&[major, _], rest) = rest.split_first_chunk().ok_or_else(no_header)?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk().map(|(length, rest)| (u16::from_le_bytes(*length).into(), rest)),
        2 | 3 => rest.split_first_chunk().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        _ => return Err(Error::new(format!(".npy version {major}: expected 1, 2 or 3"))),
    }
    .ok_or_else(no_header)?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(no_header)?;
    let header = Header::parse(header)?;
    let (kind, width) = element(header.descr)?;
    if header.fortran && header.shape.iter().filter(|&&extent| extent != 1).count() > 1 {
        return Err(Error::new("the array is in Fortran order; save numpy.ascontiguousarray(ARRAY)"));
    }
    let expected = header.shape.iter().try_fold(width as u64, |bytes, &extent| bytes.checked_mul(extent));
    if expected != Some(data.len() as u64) {
        let shape = header.shape;
        return Err(Error::new(format!(
            "{} bytes of data: shape {shape:?} and '{}' need {}",
            data.len(),
            header.descr,
            { expected.map_or("more than there can be".to_owned(), |bytes| bytes.to_string()) }
        )));
    }
    Ok(Npy { kind, width, shape: header.shape, data })
}

impl Npy<'_> {
    /// Fills a tensor with the array: same shape, or flat with as many elements.
    pub(super) fn fill(&self, dtype: Dtype, shape: &[u64], into: &mut [u8]) -> Result<()> {
        let bits = self.kind == b'V' || self.kind == b'u' && matches!(dtype.facts().kind, Kind::Float(_) | Kind::Scale);
        if bits && dtype.bits() < 8 && self.width == 1 {
            // Packed bytes: their shape is not the tensor's.
            if self.data.len() != into.len() {
                let (found, expected) = (self.data.len(), into.len());
                return Err(Error::new(format!("{found} packed bytes: shape {shape:?} of {dtype} takes {expected}")));
            }
            into.copy_from_slice(self.data);
            return Ok(());
        }
        let flat = [shape.iter().product::<u64>()];
        if self.shape != shape && self.shape != flat {
            return Err(Error::new(format!("the array has shape {:?}, the argument {shape:?}", self.shape)));
        }
        let numpy_has_it = matches!(dtype, Dtype::F64 | Dtype::F32 | Dtype::F16);
        if bits && (self.kind == b'V' || !numpy_has_it) && self.width * 8 == dtype.bits() as usize {
            into.copy_from_slice(self.data);
            return Ok(());
        }
        if self.kind == b'V' {
            return Err(Error::new(format!("raw elements of {} bytes: {dtype} has {} bits", self.width, dtype.bits())));
        }
        into.fill(0);
        for (element, index) in self.data.chunks_exact(self.width).zip(0..) {
            let bits = self.convert(element, dtype).map_err(|error| error.at(format_args!("element {index}")))?;
            dtype.set(into, index, bits);
        }
        Ok(())
    }

    fn convert(&self, element: &[u8], dtype: Dtype) -> Result<u64> {
        let mut word = [0; 8];
        word[..element.len()].copy_from_slice(element);
        let word = u64::from_le_bytes(word);
        let unused = 64 - 8 * self.width as u32;
        let signed = (word << unused) as i64 >> unused;
        let (integer, value): (Option<i128>, f64) = match (self.kind, self.width) {
            (b'f', 2) => (None, Dtype::F16.decode(word)),
            (b'f', 4) => (None, Dtype::F32.decode(word)),
            (b'f', _) => (None, f64::from_bits(word)),
            (b'i', _) => (Some(signed.into()), signed as f64),
            _ => (Some(word.into()), word as f64),
        };
        let misfit = || Error::new(format!("{value} is no value of {dtype}"));
        match dtype.facts().kind {
            Kind::Float(_) | Kind::Scale => dtype.encode(value).ok_or_else(misfit),
            Kind::Signed | Kind::Unsigned => {
                // A whole number is taken as it is or not at all.
                let whole = (value.trunc() == value && value.abs() < 1e38).then_some(value as i128);
                let number = integer.or(whole).ok_or_else(misfit)?;
                let bits = dtype.bits();
                let range = match dtype.facts().kind {
                    Kind::Signed => -(1_i128 << (bits - 1))..1 << (bits - 1),
                    _ => 0..1 << bits,
                };
                if range.contains(&number) { Ok(number as u64 & u64::MAX >> (64 - bits)) } else { Err(misfit()) }
            }
        }
    }
}

/// `<f4` as kind and width.
fn element(descr: &str) -> Result<(u8, usize)> {
    let refused =
        || Error::new(format!("elements of type '{descr}': expected floats, integers or raw bytes (V), little-endian"));
    let (&[order, kind], width) = descr.as_bytes().split_first_chunk().ok_or_else(refused)?;
    let width: usize = str::from_utf8(width).ok().and_then(|width| width.parse().ok()).ok_or_else(refused)?;
    let known = match kind {
        b'f' => matches!(width, 2 | 4 | 8),
        b'i' | b'u' => matches!(width, 1 | 2 | 4 | 8),
        b'b' => width == 1,
        b'V' => (1..=8).contains(&width),
        _ => false,
    };
    let ordered = matches!(order, b'<' | b'|') || width == 1;
    if known && ordered { Ok((kind, width)) } else { Err(refused()) }
}

/// The dictionary of the header, a Python literal.
struct Header<'a> {
    descr: &'a str,
    fortran: bool,
    shape: Vec<u64>,
}

impl<'a> Header<'a> {
    fn parse(header: &'a [u8]) -> Result<Header<'a>> {
        let text = str::from_utf8(header).map_err(|_| Error::new("the .npy header is no text"))?.trim();
        let malformed =
            || Error::new(format!("the .npy header is not understood: {}", text.chars().take(80).collect::<String>()));
        let mut rest = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).ok_or_else(malformed)?.trim();
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        while !rest.is_empty() {
            let (key, value) = quoted(rest).ok_or_else(malformed)?;
            let value = value.trim_start().strip_prefix(':').ok_or_else(malformed)?.trim_start();
            let after = match key {
                "descr" => quoted(value).map(|(text, after)| (descr = Some(text), after).1),
                "fortran_order" => match value.strip_prefix("True") {
                    Some(after) => Some((fortran = Some(true), after).1),
                    None => value.strip_prefix("False").map(|after| (fortran = Some(false), after).1),
                },
                "shape" => tuple(value).map(|(extents, after)| (shape = Some(extents), after).1),
                _ => None,
            };
            let after = after.ok_or_else(malformed)?.trim_start();
            rest = match after.strip_prefix(',') {
                Some(next) => next.trim_start(),
                None if after.is_empty() => after,
                None => return Err(malformed()),
            };
        }
        let (Some(descr), Some(fortran), Some(shape)) = (descr, fortran, shape) else { return Err(malformed()) };
        Ok(Header { descr, fortran, shape })
    }
}

/// `'text'` or `"text"` at the start, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|&first| first == '\'' || first == '"')?;
    text[1..].split_once(quote)
}

/// `(3, 4)` at the start, and what follows.
fn tuple(text: &str) -> Option<(Vec<u64>, &str)> {
    let (inside, after) = text.strip_prefix('(')?.split_once(')')?;
    let inside = inside.trim();
    let inside = inside.strip_suffix(',').unwrap_or(inside);
    if inside.is_empty() {
        return Some((Vec::new(), after));
    }
    // Python 2 wrote long integers as `3L`.
    let extents = inside.split(',').map(|extent| extent.trim().trim_end_matches('L').parse().ok());
    Some((extents.collect::<Option<_>>()?, after))
}
