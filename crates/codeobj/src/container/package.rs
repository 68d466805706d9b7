//! Offload packages, as LLVM's offload packager writes them, back to back.
//!
//! `llvm/Object/OffloadBinary.h`; numbers are little-endian, offsets count from the magic:
//!
//! ```text
//! header  10 FF 10 AD  u32 version  u64 size  u64 entries offset  u64 entry size (v1) or number of entries (v2)
//! entry   u16 image kind  u16 offload kind  u32 flags  u64 strings offset  u64 strings  u64 image offset  u64 size
//! string  u64 key offset  u64 value offset  (v2: u64 value size)
//! ```

use super::field::Field;
use crate::error::{Error, Place, Result};
use crate::target::TargetId;
use std::ops::Range;

/// First bytes of an offload package.
pub(super) const MAGIC: &[u8] = b"\x10\xff\x10\xad";

const VERSION: Field = Field::new(4, 4);
const SIZE: Field = Field::new(8, 8);
const ENTRIES: Field = Field::new(16, 8);
/// From version 2 on; before, there is one.
const COUNT: Field = Field::new(24, 8);
const HEADER_SIZE: u64 = 32;

const ENTRY_SIZE: u64 = 40;
const IMAGE_KIND: Field = Field::new(0, 2);
const FLAGS: Field = Field::new(4, 4);
const STRINGS: Field = Field::new(8, 8);
const STRING_COUNT: Field = Field::new(16, 8);
const IMAGE: Field = Field::new(24, 8);
const IMAGE_SIZE: Field = Field::new(32, 8);
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
        let size = package.field(SIZE, 0, "its size")?;
        if size < HEADER_SIZE || size > rest.len() as u64 {
            let message =
                format!("an offload package claims {size:#x} bytes, the file has {:#x} from here on", rest.len());
            return Err(Error::malformed((at + SIZE.at) as u64, message));
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
        let version = self.field(VERSION, 0, "its version")?;
        let entries = self.field(ENTRIES, 0, "its header")?;
        let count = match version {
            1 => 1,
            2 => self.field(COUNT, 0, "its header")?,
            other => {
                let message = format!("offload package version {other} is not known here, expected 1 or 2");
                return Err(Error::unsupported(Place::File(self.start + VERSION.at as u64), message));
            }
        };
        for index in 0..count {
            let at = index.checked_mul(ENTRY_SIZE).and_then(|o| o.checked_add(entries)).unwrap_or(u64::MAX);
            let entry = |field: Field| self.field(field, at, "an entry");
            if entry(FLAGS)? & METADATA_ONLY != 0 {
                continue;
            }
            let (image_at, image_size) = (entry(IMAGE)?, entry(IMAGE_SIZE)?);
            let bytes = self.slice(image_at, image_size, "an image")?;
            let mut image = Image { kind: entry(IMAGE_KIND)?, triple: "", arch: "", bytes };
            for string in 0..entry(STRING_COUNT)? {
                let (key, value) = self.string(version, entry(STRINGS)?, string)?;
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

    fn field(&self, field: Field, row: u64, what: &str) -> Result<u64> {
        self.number(row.saturating_add(field.at as u64), field.size as u64, what)
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

/// LLVM aligns images and packages to 8 bytes.
const ALIGN: usize = 8;

/// Bytes of the package that `bytes` start with, as it says.
pub(super) fn size(bytes: &[u8]) -> Result<usize> {
    let package = Package { bytes, start: 0 };
    Ok(usize::try_from(package.field(SIZE, 0, "its size")?).unwrap_or(usize::MAX))
}

/// Where an entry is, and where its image.
type Placed = (u64, Range<u64>);

/// The package that `bytes` start with, and of each entry where it is and where its image is.
fn images(bytes: &[u8]) -> Result<(&[u8], Vec<Placed>)> {
    let cut = || Error::malformed(SIZE.at as u64, "an offload package is cut short");
    let package = Package { bytes: bytes.get(..size(bytes)?).ok_or_else(cut)?, start: 0 };
    let entries = package.field(ENTRIES, 0, "its header")?;
    let count =
        if package.field(VERSION, 0, "its version")? == 1 { 1 } else { package.field(COUNT, 0, "its header")? };
    let mut images = Vec::new();
    for index in 0..count {
        let at = index.checked_mul(ENTRY_SIZE).and_then(|offset| offset.checked_add(entries)).unwrap_or(u64::MAX);
        let start = package.field(IMAGE, at, "an entry")?;
        images.push((at, start..start.saturating_add(package.field(IMAGE_SIZE, at, "an entry")?)));
    }
    Ok((package.bytes, images))
}

/// Where the image around `range` is.
pub(super) fn image_around(bytes: &[u8], range: &Range<usize>) -> Result<Range<usize>> {
    let (package, images) = images(bytes)?;
    let is_around = |image: &&Range<u64>| image.start <= range.start as u64 && range.end as u64 <= image.end;
    let image = images.iter().map(|(_, image)| image).find(is_around);
    let image = image.map(|image| image.start as usize..image.end as usize);
    let missing = || Error::malformed(range.start as u64, "the member is in no image of its package");
    image.filter(|image| image.end <= package.len()).ok_or_else(missing)
}

/// The package with `content` in the place of the image at `image`.
pub(super) fn with_image(bytes: &[u8], image: &Range<usize>, content: &[u8]) -> Result<Vec<u8>> {
    let (package, images) = images(bytes)?;
    let unsupported = |what: &str| Error::unsupported(Place::Whole, what);
    let is_it = |other: &Range<u64>| other.start == image.start as u64 && other.end == image.end as u64;
    let entry = images.iter().find(|(_, other)| is_it(other)).map(|(at, _)| *at);
    let entry = entry.ok_or_else(|| Error::malformed(image.start as u64, "no entry of the package has this image"))?;
    let end = image.end as u64;
    let tables_behind = images
        .iter()
        .any(|(at, _)| *at >= end || STRINGS.get(package, *at as usize).is_some_and(|strings| strings >= end));
    if tables_behind {
        return Err(unsupported("the tables of the offload package are behind its images"));
    }
    let rest = image.end.next_multiple_of(ALIGN).min(package.len());
    let mut written = package[..image.start].to_vec();
    written.extend(content);
    written.resize(written.len().next_multiple_of(ALIGN), 0);
    let moved = written.len() as u64;
    written.extend(&package[rest..]);
    IMAGE_SIZE.set(&mut written, entry as usize, content.len() as u64)?;
    for (at, later) in images.iter().filter(|(_, later)| later.start >= end && !later.is_empty()) {
        let distance = later.start.checked_sub(rest as u64);
        let distance = distance.ok_or_else(|| unsupported("the images of the offload package are not aligned"))?;
        IMAGE.set(&mut written, *at as usize, distance + moved)?;
    }
    let size = written.len() as u64;
    SIZE.set(&mut written, 0, size)?;
    Ok(written)
}
