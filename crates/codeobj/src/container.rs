//! Finding code objects in files of any kind, and naming each by a path.
//!
//! A path is the file, then one step per container, joined by `!`:
//!
//! ```text
//! lib.so!hip_fatbin[3]!gfx942:sramecc+     fourth bundle in the section .hip_fatbin, entry for this target
//! lib.so!offloading[0]!gfx942              first image in the section .llvm.offloading
//! x.hipfb!gfx90a:xnack+                    entry of the file's only bundle
//! x.hipfb!bundle[1]!gfx942                 second of several bundles in one file
//! x.bin!image[0]!gfx942                    first image of an offload package
//! lib.a!member.o                           archive member; further steps follow when it is a container itself
//! x.hipfb!gfx942#2                         second entry of the same name
//! ```
//!
//! [`open`] lists what is there and decompresses nothing, so a mapped library of a gigabyte costs only its headers.
//! [`Entry::load`] does the work of one entry, for a caller to run in parallel. One file per format is below.

mod archive;
mod bundle;
mod ccob;
mod field;
mod foreign;
mod host;
mod package;
mod walk;
pub mod write;

use crate::elf;
use crate::error::{Error, ErrorKind, Place, Result};
use crate::target::TargetId;
use std::borrow::Cow;
use std::fmt;

/// Containers inside containers that are followed. A library in an archive with compressed bundles is four.
pub const DEPTH_LIMIT: usize = 8;

/// Joins the steps of a container path.
pub const STEP: char = '!';

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An ELF file for `EM_AMDGPU`.
    CodeObject,
    /// A clang offload bundle.
    Bundle,
    /// A compressed clang offload bundle (`CCOB`).
    CompressedBundle,
    /// An ELF file for another machine, which may hold bundles.
    HostElf,
    /// An archive of the `ar` family.
    Archive,
    /// An offload package of LLVM's offload packager.
    OffloadPackage,
}

impl Kind {
    /// Name for messages, without an article.
    pub fn name(self) -> &'static str {
        match self {
            Kind::CodeObject => "code object",
            Kind::Bundle => "offload bundle",
            Kind::CompressedBundle => "compressed offload bundle",
            Kind::HostElf => "host ELF file",
            Kind::Archive => "archive",
            Kind::OffloadPackage => "offload package",
        }
    }
}

/// The kind of container or code object that `bytes` start like.
pub fn sniff(bytes: &[u8]) -> Option<Kind> {
    let magics: [(&[u8], Kind); 6] = [
        (bundle::MAGIC, Kind::Bundle),
        (ccob::MAGIC, Kind::CompressedBundle),
        (package::MAGIC, Kind::OffloadPackage),
        (archive::MAGIC, Kind::Archive),
        (archive::THIN_MAGIC, Kind::Archive),
        (elf::MAGIC, Kind::HostElf),
    ];
    if crate::code_object::is_code_object(bytes) {
        return Some(Kind::CodeObject);
    }
    magics.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, kind)| kind)
}

/// Whether `bytes` are LLVM bitcode: code for a later link, not for a loader.
pub(crate) fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde")
}

/// What `bytes` look like, with an article, for messages.
pub(crate) fn describe(bytes: &[u8]) -> &'static str {
    let start = &bytes[..bytes.len().min(512)];
    match sniff(bytes) {
        Some(Kind::CodeObject) => "a code object",
        Some(Kind::Bundle) => "an offload bundle",
        Some(Kind::CompressedBundle) => "a compressed offload bundle",
        Some(Kind::HostElf) => "an ELF file for another machine",
        Some(Kind::Archive) => "an archive",
        Some(Kind::OffloadPackage) => "an offload package",
        None if bytes.is_empty() => "empty",
        None if is_bitcode(bytes) => "LLVM bitcode",
        None if start.iter().all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..)) => "a text",
        None => "data of no known format",
    }
}

/// What a container holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents<T> {
    /// Code objects, or bundles that may hold some, in file order.
    pub entries: Vec<T>,
    /// What is there and is no AMD GPU code object.
    pub skipped: Vec<Skipped>,
    /// What contradicts the format, damaged parts included; the entries are what is there all the same.
    pub problems: Vec<Problem>,
}

impl<T> Default for Contents<T> {
    fn default() -> Contents<T> {
        Contents { entries: Vec::new(), skipped: Vec::new(), problems: Vec::new() }
    }
}

/// A part of a container that was passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the part, without the file.
    pub path: String,
    /// Why: `host code`, `LLVM bitcode`, …
    pub reason: String,
}

/// What is wrong with a part of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Path of the part, without the file; empty for the file itself.
    pub path: String,
    /// What was found there.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// A range of the opened bytes: one code object, or one compressed bundle that was not looked into yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'a> {
    /// Path without the file; empty when the file is the code object itself.
    pub path: String,
    /// [`Kind::CodeObject`] or [`Kind::CompressedBundle`].
    pub kind: Kind,
    /// The bytes as stored.
    pub bytes: &'a [u8],
    /// Target that the container states.
    pub declared_target: Option<TargetId>,
    depth: usize,
}

/// One code object.
#[derive(Clone, Debug, PartialEq)]
pub struct Member<'a> {
    /// Path without the file.
    pub path: String,
    /// The ELF file: borrowed when stored plainly, owned when it was compressed.
    pub bytes: Cow<'a, [u8]>,
    /// Target that the container states.
    pub declared_target: Option<TargetId>,
    /// A stated target that is not the code object's own. Of the first one that [`select`] gives, also the problems of
    /// the parts beside it in the selection.
    pub problems: Vec<String>,
}

/// Lists the code objects in `bytes`, a file of any [`Kind`]; nothing is decompressed.
///
/// # Errors
/// `WrongFormat` when there cannot be one inside (a text, a host ELF file without device code); `Malformed` with the
/// offset for damage, truncation included: never silently fewer entries; `Unsupported` for thin archives and newer
/// versions. All these speak of the file itself: a *part* of another format is skipped, a damaged or unsupported one is
/// a problem, and the parts beside it are listed. `Limit` beyond [`DEPTH_LIMIT`], wherever.
pub fn open(bytes: &[u8]) -> Result<Contents<Entry<'_>>> {
    if sniff(bytes).is_none() {
        let message = format!("this is {}, expected a code object or a container of them", describe(bytes));
        return Err(Error::wrong_format(message));
    }
    walk::walk(bytes)
}

impl<'a> Entry<'a> {
    /// The code objects of this entry: itself, or what a compressed bundle holds.
    ///
    /// # Errors
    /// As [`open`], prefixed with the entry's path; also a compressed bundle whose content has not the stated size.
    pub fn load(&self) -> Result<Contents<Member<'a>>> {
        let mut contents = Contents::default();
        if self.kind == Kind::CodeObject {
            contents.entries.push(Member::new(self, Cow::Borrowed(self.bytes)));
            return Ok(contents);
        }
        let inner = ccob::decompress(self.bytes).map_err(|error| error.within(&self.path))?;
        let listed = walk::walk_inside(&inner, self)?;
        contents.skipped = listed.skipped;
        contents.problems = listed.problems;
        for entry in listed.entries {
            let loaded = entry.load()?;
            contents.skipped.extend(loaded.skipped);
            contents.problems.extend(loaded.problems);
            let owned = loaded.entries.into_iter().map(|m| Member { bytes: Cow::Owned(m.bytes.into_owned()), ..m });
            contents.entries.extend(owned);
        }
        Ok(contents)
    }
}

impl<'a> Member<'a> {
    fn new(entry: &Entry<'_>, bytes: Cow<'a, [u8]>) -> Member<'a> {
        let own = own_target(&bytes);
        let differs = entry.declared_target.as_ref().zip(own).filter(|(stated, own)| !stated.same_as(own));
        let problem = differs.map(|(stated, own)| {
            format!("the container says {}, the code object is for {}", stated.short(), own.short())
        });
        Member {
            path: entry.path.clone(),
            bytes,
            declared_target: entry.declared_target.clone(),
            problems: problem.into_iter().collect(),
        }
    }
}

/// Target in the header of a code object; none when the header is cut short or the processor unknown.
fn own_target(code_object: &[u8]) -> Option<TargetId> {
    const ABI_VERSION_AT: usize = 8;
    const FLAGS_AT: usize = 48;
    let flags = code_object.get(FLAGS_AT..FLAGS_AT + 4)?.try_into().ok()?;
    TargetId::from_elf(u32::from_le_bytes(flags), *code_object.get(ABI_VERSION_AT)?)
}

/// Splits `lib.so!hip_fatbin[3]!gfx942` into the file and the path inside it; the latter is empty without a `!`.
///
/// A caller that is given a file whose own name has a `!` looks for the whole text as a file first.
pub fn split_path(path: &str) -> (&str, &str) {
    path.split_once(STEP).unwrap_or((path, ""))
}

/// Loads what `member_path` names: one code object, or all below a group such as `hip_fatbin[3]`; the empty path
/// names all.
///
/// # Errors
/// `NotFound`, listing what there is; `Malformed` when the selection holds nothing but problems; else as [`open`] and
/// [`Entry::load`].
pub fn select<'a>(bytes: &'a [u8], member_path: &str) -> Result<Vec<Member<'a>>> {
    let contents = open(bytes)?;
    let mut selected = Vec::new();
    let mut paths = Vec::new();
    let mut problems = contents.problems;
    for entry in contents.entries {
        if is_below(&entry.path, member_path) || is_below(member_path, &entry.path) {
            let loaded = entry.load()?;
            problems.extend(loaded.problems);
            paths.extend(loaded.entries.iter().map(|member| member.path.clone()));
            selected.extend(loaded.entries.into_iter().filter(|member| is_below(&member.path, member_path)));
        } else {
            paths.push(entry.path);
        }
    }
    let concerning = problems.iter().filter(|problem| is_below(&problem.path, member_path));
    let concerning: Vec<String> = concerning.map(Problem::to_string).collect();
    match selected.first_mut() {
        Some(first) => first.problems.extend(concerning),
        None if concerning.is_empty() => {
            return Err(Error::new(ErrorKind::NotFound, Place::Whole, not_found(member_path, &paths)));
        }
        None => return Err(Error::new(ErrorKind::Malformed, Place::Whole, concerning.join("; "))),
    }
    Ok(selected)
}

/// Whether `path` is `group` or inside it.
fn is_below(path: &str, group: &str) -> bool {
    group.is_empty() || path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with(STEP))
}

fn not_found(wanted: &str, paths: &[String]) -> String {
    const SHOWN: usize = 20;
    let mut listed = paths.iter().take(SHOWN).map(|p| format!("`{p}`")).collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        listed.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    match paths {
        [] => format!("there is no `{wanted}`: no code object at all"),
        [only] if only.is_empty() => format!("there is no `{wanted}`: the file is one code object, not a container"),
        _ => format!("there is no `{wanted}`; there are {listed}"),
    }
}
