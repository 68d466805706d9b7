//! Rewriting containers: the writer of each format stands beside its reader and uses the same table of its header. What
//! is here takes one part of a container and gives it back with other content; which part that is, its caller decides.

use std::ops::Range;

use super::{Kind, bundle, ccob, package, sniff};
use crate::error::{Error, Place, Result};

/// Bytes of the bundle or package that `bytes` start with; none when its header does not say.
///
/// # Errors
/// A header that is cut.
pub fn size(bytes: &[u8]) -> Result<Option<usize>> {
    match sniff(bytes) {
        Some(Kind::Bundle) => bundle::size(bytes).map(Some),
        Some(Kind::CompressedBundle) => ccob::stored_size(bytes),
        Some(Kind::OffloadPackage) => package::size(bytes).map(Some),
        _ => Err(unknown()),
    }
}

/// Where the content of the entry of a plain bundle, or the image of a package, is that has `range` inside.
///
/// # Errors
/// `Malformed` when there is none, `Unsupported` when several share it.
pub fn entry_around(bytes: &[u8], range: &Range<usize>) -> Result<Range<usize>> {
    match sniff(bytes) {
        Some(Kind::Bundle) => bundle::entry_around(bytes, range),
        Some(Kind::OffloadPackage) => package::image_around(bytes, range),
        _ => Err(unknown()),
    }
}

/// The bundle or package with `content` in the place of its entry at `entry`, as [`entry_around`] gives it.
///
/// # Errors
/// As [`entry_around`]; `Limit` for a size that the header cannot say.
pub fn with_entry(bytes: &[u8], entry: &Range<usize>, content: &[u8]) -> Result<Vec<u8>> {
    match sniff(bytes) {
        Some(Kind::Bundle) => bundle::with_entry(bytes, entry, content),
        Some(Kind::OffloadPackage) => package::with_image(bytes, entry, content),
        _ => Err(unknown()),
    }
}

/// What a compressed bundle holds.
///
/// # Errors
/// As [`super::Entry::load`].
pub fn decompress(bundle: &[u8]) -> Result<Vec<u8>> {
    ccob::decompress(bundle)
}

/// A compressed bundle of the version and method of `bundle` with other content.
///
/// # Errors
/// `Unsupported` for another version or method, `Limit` for a size that the header cannot say.
pub fn compress(bundle: &[u8], content: &[u8]) -> Result<Vec<u8>> {
    ccob::compress(bundle, content)
}

fn unknown() -> Error {
    Error::unsupported(Place::Whole, "this is neither a bundle nor an offload package")
}
