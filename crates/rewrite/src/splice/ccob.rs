//! Compressed clang offload bundles (`CCOB`); their header is described where they are read, in `codeobj`.

use super::{number, set_number};
use crate::error::{Error, Result};
use md5::{Digest, Md5};
use std::io::{Read, Write};

/// zlib and zstd, as the header numbers them.
const ZLIB: usize = 0;
const ZSTD: usize = 1;

/// Where a version keeps its numbers: total size (version 1 has none), content size, hash; bytes of the sizes.
struct Header {
    total_size: Option<usize>,
    content_size: usize,
    hash: usize,
    width: usize,
    method: usize,
}

impl Header {
    fn of(bundle: &[u8]) -> Result<Header> {
        let method = number(bundle, 6, 2)?;
        match number(bundle, 4, 2)? {
            1 => Ok(Header { total_size: None, content_size: 8, hash: 12, width: 4, method }),
            2 => Ok(Header { total_size: Some(8), content_size: 12, hash: 16, width: 4, method }),
            3 => Ok(Header { total_size: Some(8), content_size: 16, hash: 24, width: 8, method }),
            other => Err(Error::unsupported(format!("compressed bundle version {other} is not written here"))),
        }
    }

    fn end(&self) -> usize {
        self.hash + 8
    }
}

/// Bytes of a compressed bundle, when its version says.
pub(super) fn stored_size(bundle: &[u8]) -> Option<usize> {
    let header = Header::of(bundle).ok()?;
    number(bundle, header.total_size?, header.width).ok()
}

/// The bundle inside, which a reader has accepted before.
pub(super) fn content(bundle: &[u8]) -> Result<Vec<u8>> {
    let header = Header::of(bundle)?;
    let stored = bundle.get(header.end()..).unwrap_or_default();
    let size = number(bundle, header.content_size, header.width)? as u64;
    let damaged = |error: std::io::Error| Error::input(format!("damaged compressed bundle ({error})"));
    let mut content = Vec::new();
    let read = match header.method {
        ZLIB => flate2::read::ZlibDecoder::new(stored).take(size).read_to_end(&mut content),
        ZSTD => {
            let decoder = zstd::stream::read::Decoder::with_buffer(stored).map_err(damaged)?;
            decoder.single_frame().take(size).read_to_end(&mut content)
        }
        other => return Err(Error::unsupported(format!("compression method {other} is not written here"))),
    };
    read.map_err(damaged)?;
    Ok(content)
}

/// A compressed bundle of the same version and method with other content.
pub(super) fn with_content(bundle: &[u8], content: &[u8]) -> Result<Vec<u8>> {
    let header = Header::of(bundle)?;
    let failed = |error: std::io::Error| Error::input(format!("the bundle cannot be compressed: {error}"));
    let compressed = match header.method {
        ZLIB => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).and_then(|()| encoder.finish()).map_err(failed)?
        }
        ZSTD => zstd::bulk::compress(content, zstd::DEFAULT_COMPRESSION_LEVEL).map_err(failed)?,
        other => return Err(Error::unsupported(format!("compression method {other} is not written here"))),
    };
    let mut new = bundle[..header.end()].to_vec();
    new.extend(compressed);
    if let Some(at) = header.total_size {
        let size = new.len();
        set_number(&mut new, at, header.width, size)?;
    }
    set_number(&mut new, header.content_size, header.width, content.len())?;
    new[header.hash..header.end()].copy_from_slice(&hash(content));
    Ok(new)
}

/// The low half of the content's MD5, as `clang-offload-bundler` writes it.
fn hash(content: &[u8]) -> [u8; 8] {
    let digest = Md5::digest(content);
    std::array::from_fn(|index| digest[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_that_clang_writes() {
        for name in ["single_ccob_v2", "single_ccob_v3", "multi_ccob"] {
            let path = format!("{}/../../tests/data/fatbin/{name}.hipfb", env!("CARGO_MANIFEST_DIR"));
            let bundle = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
            let header = Header::of(&bundle).expect("a header");
            let old = content(&bundle).expect("content");
            assert_eq!(hash(&old), bundle[header.hash..header.end()], "{name}");
            let new = with_content(&bundle, &[&old[..], b"more"].concat()).expect("compressed");
            assert_eq!(content(&new).expect("content"), [&old[..], b"more"].concat(), "{name}");
            assert_eq!(hash(&content(&new).expect("content")), new[header.hash..header.end()], "{name}");
            assert_eq!(stored_size(&new), Some(new.len()), "{name}");
        }
    }
}
