//! Offload packages, as LLVM's offload packager writes them, back to back.
//!
//! `llvm/Object/OffloadBinary.h`; numbers are little-endian, offsets count from the magic:
//!
//! ```text
//! header  10 FF 10 AD  u32 version  u64 size  u64 entries offset  u64 entry size (v1) or number of entries (v2)
//! entry   u16 image kind  u16 offload kind  u32 flags  u64 strings offset  u64 strings  u64 image offset  u64 size
//! string  u64 key offset  u64 value offset  (v2: u64 value size)
//! ```

use crate::error::{Error, Place, Result};
use crate::target::TargetId;

/// First bytes of an offload package.
pub(super) const MAGIC: &[u8] = b"\x10\xff\x10\xad";

const ENTRY_SIZE: u64 = 40;
/// `OIF_Metadata`: the entry has strings and no image.
const METADATA_ONLY: u64 = 1;

/// One image of a package.
pub(super) struct Image<'a> {
    kind: u64,
    pub triple: &'a str,
    arch: &'a str,
    pub bytes: &'a [u8],
}

impl Image<'_> {
    /// Whether it may be a code object. The packager derives the kind from the file's extension and leaves it 0 for
    /// `.co`.
    pub fn may_be_object(&self) -> bool {
        self.kind <= 1
    }

    /// `ImageKind` of the header file.
    pub fn kind_name(&self) -> &'static str {
        match self.kind {
            0 => "no image",
            1 => "object",
            2 => "LLVM bitcode",
            3 => "CUDA cubin",
            4 => "CUDA fatbinary",
            5 => "PTX",
            6 => "SPIR-V",
            _ => "image of an unknown kind",
        }
    }

    /// Target of triple and arch; none when it is not for an AMD GPU.
    pub fn target(&self) -> Result<Option<TargetId>> {
        let is_amdgpu = self.triple.starts_with("amdgcn") || self.triple.starts_with("amdgpu");
        if is_amdgpu { TargetId::parse(&format!("{}-{}", self.triple, self.arch)).map(Some) } else { Ok(None) }
    }
}

/// Splits a region into the images of its packages; the strings tell of bytes that are neither package nor padding.
pub(super) fn split(region: &[u8]) -> Result<(Vec<Image<'_>>, Vec<String>)> {
    let mut images = Vec::new();
    let mut problems = Vec::new();
    let mut at = 0;
    while let Some(padding) = region[at..].iter().position(|b| *b != 0) {
        at += padding;
        let rest = &region[at..];
        if !rest.starts_with(MAGIC) {
            problems.push(format!(
                "{} bytes at offset {at:#x} are neither an offload package nor zero padding",
                rest.len()
            ));
            break;
        }
        let package = Package { bytes: rest, start: at as u64 };
        let size = package.number(8, 8, "its size")?;
        if size < 32 || size > rest.len() as u64 {
            let message =
                format!("an offload package claims {size:#x} bytes, the file has {:#x} from here on", rest.len());
            return Err(Error::malformed(at as u64 + 8, message));
        }
        let package = Package { bytes: &rest[..size as usize], ..package };
        package.read(&mut images)?;
        at += size as usize;
    }
    Ok((images, problems))
}

struct Package<'a> {
    bytes: &'a [u8],
    start: u64,
}

impl<'a> Package<'a> {
    fn read(&self, images: &mut Vec<Image<'a>>) -> Result<()> {
        let version = self.number(4, 4, "its version")?;
        let entries = self.number(16, 8, "its header")?;
        let count = match version {
            1 => 1,
            2 => self.number(24, 8, "its header")?,
            other => {
                let message = format!("offload package version {other} is not known here, expected 1 or 2");
                return Err(Error::unsupported(Place::File(self.start + 4), message));
            }
        };
        for index in 0..count {
            let at = index.checked_mul(ENTRY_SIZE).and_then(|o| o.checked_add(entries)).unwrap_or(u64::MAX);
            let entry = |offset: u64, size| self.number(at.saturating_add(offset), size, "an entry");
            if entry(4, 4)? & METADATA_ONLY != 0 {
                continue;
            }
            let (image_at, image_size) = (entry(24, 8)?, entry(32, 8)?);
            let bytes = self.slice(image_at, image_size, "an image")?;
            let mut image = Image { kind: entry(0, 2)?, triple: "", arch: "", bytes };
            for string in 0..entry(16, 8)? {
                let (key, value) = self.string(version, entry(8, 8)?, string)?;
                match key {
                    "triple" => image.triple = value,
                    "arch" => image.arch = value,
                    _ => {}
                }
            }
            images.push(image);
        }
        Ok(())
    }

    fn string(&self, version: u64, table: u64, index: u64) -> Result<(&'a str, &'a str)> {
        let row_size = if version == 1 { 16 } else { 24 };
        let row = index.checked_mul(row_size).and_then(|o| o.checked_add(table)).unwrap_or(u64::MAX);
        let key = self.text(self.number(row, 8, "its strings")?, None)?;
        let value_at = self.number(row.saturating_add(8), 8, "its strings")?;
        let size = if version == 1 { None } else { Some(self.number(row.saturating_add(16), 8, "its strings")?) };
        Ok((key, self.text(value_at, size)?))
    }

    /// A text of `size` bytes, or up to its NUL.
    fn text(&self, at: u64, size: Option<u64>) -> Result<&'a str> {
        let bytes = match size {
            Some(size) => self.slice(at, size, "its strings")?,
            None => {
                let rest = self.slice(at, (self.bytes.len() as u64).saturating_sub(at), "its strings")?;
                let end = memchr::memchr(0, rest);
                &rest[..end.ok_or_else(|| Error::malformed(self.start.saturating_add(at), "a text has no end"))?]
            }
        };
        let not_utf8 = |_| Error::malformed(self.start.saturating_add(at), "a text of an offload package is not UTF-8");
        std::str::from_utf8(bytes).map_err(not_utf8)
    }

    fn number(&self, at: u64, size: u64, what: &str) -> Result<u64> {
        let bytes = self.slice(at, size, what)?;
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn slice(&self, at: u64, size: u64, what: &str) -> Result<&'a [u8]> {
        let end = at.checked_add(size).filter(|end| *end <= self.bytes.len() as u64);
        let end = end.ok_or_else(|| {
            let message = format!("an offload package ends inside {what}, {size:#x} bytes at {at:#x}");
            Error::malformed(self.start.saturating_add(at), message)
        })?;
        Ok(&self.bytes[at as usize..end as usize])
    }
}
