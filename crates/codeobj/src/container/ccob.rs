//! Compressed clang offload bundles (`CCOB`).
//!
//! "Compressed offload bundle" in clang's ClangOffloadBundler document; numbers are little-endian:
//!
//! | version | after magic, u16 version, u16 method | header bytes |
//! |---|---|---|
//! | 1 | u32 uncompressed size, u64 hash | 20 |
//! | 2 | u32 total size, u32 uncompressed size, u64 hash | 24 |
//! | 3 | u64 total size, u64 uncompressed size, u64 hash | 32 |
//!
//! Method 0 is zlib, 1 is zstd. The hash is the first 8 bytes of the content's MD5 (`CompressedOffloadBundle::compress`
//! of LLVM's `Object/OffloadBundle.cpp`; measured on versions 2 and 3). zlib checks its content, zstd as clang calls it
//! does not.

use super::field::Field;
use crate::error::{Error, Place, Result};
use md5::{Digest, Md5};
use std::io::{Read, Write};

/// First bytes of a compressed bundle.
pub(super) const MAGIC: &[u8] = b"CCOB";

/// Content that is refused, however well it compresses.
const SIZE_LIMIT: u64 = 8 << 30;
/// Content per stored byte that is refused. Padding of many small code objects reaches a few hundred.
const RATIO_LIMIT: u64 = 4096;
/// Bytes of the content's MD5 that the header states, as its last field.
const HASH_SIZE: usize = 8;

/// Where a version keeps its numbers. The hash follows the content's size and ends the header.
struct Layout {
    /// Version 1 has none.
    total_size: Option<Field>,
    content_size: Field,
}

const VERSION: Field = Field::new(4, 2);
const METHOD: Field = Field::new(6, 2);
const ZLIB: u64 = 0;
const ZSTD: u64 = 1;

impl Layout {
    fn of(version: u64) -> Result<Layout> {
        Ok(match version {
            1 => Layout { total_size: None, content_size: Field::new(8, 4) },
            2 => Layout { total_size: Some(Field::new(8, 4)), content_size: Field::new(12, 4) },
            3 => Layout { total_size: Some(Field::new(8, 8)), content_size: Field::new(16, 8) },
            other => {
                let message = format!("compressed bundle version {other} is not known here, expected 1 to 3");
                return Err(Error::unsupported(Place::File(VERSION.at as u64), message));
            }
        })
    }

    fn hash(&self) -> std::ops::Range<usize> {
        let start = self.content_size.at + self.content_size.size;
        start..start + HASH_SIZE
    }

    /// Bytes of the header.
    fn size(&self) -> usize {
        self.hash().end
    }
}

struct Header {
    layout: Layout,
    method: u64,
    size: usize,
    total_size: Option<u64>,
    content_size: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header> {
        let number = |field: Field| {
            let cut = || Error::malformed(field.at as u64, "a compressed bundle ends inside its header");
            field.get(bytes, 0).ok_or_else(cut)
        };
        let (method, layout) = (number(METHOD)?, Layout::of(number(VERSION)?)?);
        let total_size = layout.total_size.map(number).transpose()?;
        let content_size = number(layout.content_size)?;
        number(Field::new(layout.hash().start, HASH_SIZE))?;
        Ok(Header { method, size: layout.size(), total_size, content_size, layout })
    }
}

fn unknown_method(method: u64) -> Error {
    let message = format!("compression method {method} is not known here, expected 0 (zlib) or 1 (zstd)");
    Error::unsupported(Place::File(METHOD.at as u64), message)
}

/// Bytes from the magic to the end of the bundle; none for version 1, which does not say.
pub(super) fn stored_size(bytes: &[u8]) -> Result<Option<usize>> {
    let header = Header::read(bytes)?;
    let Some(total) = header.total_size else { return Ok(None) };
    if total < header.size as u64 || total > bytes.len() as u64 {
        let message =
            format!("a compressed bundle claims {total:#x} bytes, the file has {:#x} from here on", bytes.len());
        return Err(Error::malformed(8, message));
    }
    Ok(Some(total as usize))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bundle inside. Memory grows with what comes out, not with what the header claims.
pub(super) fn decompress(bytes: &[u8]) -> Result<Vec<u8>> {
    let header = Header::read(bytes)?;
    let stored = &bytes[header.size..];
    let limit = SIZE_LIMIT.min(RATIO_LIMIT.saturating_mul(stored.len() as u64));
    if header.content_size > limit {
        let message =
            format!("a compressed bundle claims {:#x} bytes of content, more than {limit:#x}", header.content_size);
        return Err(Error::limit(Place::File(8), message));
    }
    let damaged = |error: std::io::Error| {
        Error::malformed(header.size as u64, format!("damaged compressed bundle, or one cut short ({error})"))
    };
    let reader: Box<dyn Read + '_> = match header.method {
        ZLIB => Box::new(flate2::read::ZlibDecoder::new(stored)),
        ZSTD => Box::new(zstd::stream::read::Decoder::with_buffer(stored).map_err(damaged)?.single_frame()),
        other => return Err(unknown_method(other)),
    };
    let mut content = Vec::new();
    reader.take(header.content_size + 1).read_to_end(&mut content).map_err(damaged)?;
    if content.len() as u64 != header.content_size {
        let more = if content.len() as u64 > header.content_size { "more" } else { "fewer" };
        let message =
            format!("a compressed bundle holds {more} bytes than the {:#x} that it states", header.content_size);
        return Err(Error::malformed(8, message));
    }
    let hash_at = header.layout.hash().start;
    let (stated, digest) = (&bytes[header.layout.hash()], Md5::digest(&content));
    if stated != &digest[..HASH_SIZE] {
        let message = format!(
            "a compressed bundle states that the MD5 of its content begins with {}, but it begins with {}",
            hex(stated),
            hex(&digest[..HASH_SIZE])
        );
        return Err(Error::malformed(hash_at as u64, message));
    }
    Ok(content)
}

/// A compressed bundle of the same version and method as `bundle`, with other content.
pub(super) fn compress(bundle: &[u8], content: &[u8]) -> Result<Vec<u8>> {
    let header = Header::read(bundle)?;
    let failed =
        |error: std::io::Error| Error::limit(Place::Whole, format!("the bundle cannot be compressed: {error}"));
    let compressed = match header.method {
        ZLIB => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).and_then(|()| encoder.finish()).map_err(failed)?
        }
        ZSTD => zstd::bulk::compress(content, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?,
        other => return Err(unknown_method(other)),
    };
    let mut new = bundle[..header.size].to_vec();
    new.extend(compressed);
    let size = new.len() as u64;
    header.layout.total_size.map_or(Ok(()), |field| field.set(&mut new, 0, size))?;
    header.layout.content_size.set(&mut new, 0, content.len() as u64)?;
    new[header.layout.hash()].copy_from_slice(&Md5::digest(content)[..HASH_SIZE]);
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_compressed_reads_back_under_the_hash_that_clang_writes() {
        for name in ["single_ccob_v2", "single_ccob_v3", "multi_ccob"] {
            let path = format!("{}/../../tests/data/fatbin/{name}.hipfb", env!("CARGO_MANIFEST_DIR"));
            let bundle = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let old = decompress(&bundle).expect("content whose hash is clang's");
            let more = [&old[..], b"more"].concat();
            let new = compress(&bundle, &more).expect("compressed");
            assert_eq!(decompress(&new).expect("content"), more, "{name}");
            assert_eq!(stored_size(&new).expect("a header"), Some(new.len()), "{name}");
        }
    }
}
