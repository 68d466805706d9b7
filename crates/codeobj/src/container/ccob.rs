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

use crate::error::{Error, Place, Result};
use md5::{Digest, Md5};
use std::io::Read;

/// First bytes of a compressed bundle.
pub(super) const MAGIC: &[u8] = b"CCOB";

/// Content that is refused, however well it compresses.
const SIZE_LIMIT: u64 = 8 << 30;
/// Content per stored byte that is refused. Padding of many small code objects reaches a few hundred.
const RATIO_LIMIT: u64 = 4096;
/// Bytes of the content's MD5 that the header states, as its last field.
const HASH_SIZE: usize = 8;

struct Header {
    method: u16,
    size: usize,
    total_size: Option<u64>,
    content_size: u64,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header> {
        let number = |at: usize, size: usize| {
            let field = bytes.get(at..at + size);
            let field = field.ok_or_else(|| Error::malformed(at as u64, "a compressed bundle ends inside its header"));
            field.map(|field| field.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        };
        let method = number(6, 2)? as u16;
        let header = match number(4, 2)? {
            1 => Header { method, size: 20, total_size: None, content_size: number(8, 4)? },
            2 => Header { method, size: 24, total_size: Some(number(8, 4)?), content_size: number(12, 4)? },
            3 => Header { method, size: 32, total_size: Some(number(8, 8)?), content_size: number(16, 8)? },
            other => {
                let message = format!("compressed bundle version {other} is not known here, expected 1 to 3");
                return Err(Error::unsupported(Place::File(4), message));
            }
        };
        number(header.size - HASH_SIZE, HASH_SIZE)?;
        Ok(header)
    }
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
        0 => Box::new(flate2::read::ZlibDecoder::new(stored)),
        1 => Box::new(zstd::stream::read::Decoder::with_buffer(stored).map_err(damaged)?.single_frame()),
        other => {
            let message = format!("compression method {other} is not known here, expected 0 (zlib) or 1 (zstd)");
            return Err(Error::unsupported(Place::File(6), message));
        }
    };
    let mut content = Vec::new();
    reader.take(header.content_size + 1).read_to_end(&mut content).map_err(damaged)?;
    if content.len() as u64 != header.content_size {
        let more = if content.len() as u64 > header.content_size { "more" } else { "fewer" };
        let message =
            format!("a compressed bundle holds {more} bytes than the {:#x} that it states", header.content_size);
        return Err(Error::malformed(8, message));
    }
    let hash_at = header.size - HASH_SIZE;
    let (stated, digest) = (&bytes[hash_at..header.size], Md5::digest(&content));
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
