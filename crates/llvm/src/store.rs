//! What was learnt of LLVM, kept on disk: one file for each LLVM and target, read whole and checked whole.
//!
//! A file is named after what its content depends on, and holds that in full: the library's path, size and time of
//! change, how it runs, the target, and the version of this crate. What is damaged, foreign, or was written for
//! something else is not used, and replaced by the next run that learns something. Files are written beside and renamed.
//! Of two processes that write at the same time, the second keeps what the first had stored before it looked; what falls
//! between is learnt again some day.

mod image;

use std::fs::{self, DirBuilder, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::by_id::Texts;
use crate::encodings::Encodings;
use crate::{EncodingId, RoundTrip, Target};

pub(crate) use image::Image;

/// No file is larger: room for about a million encodings. What does not fit is not stored.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Together they are not larger: those written longest ago go first.
const MAX_FOLDER_BYTES: u64 = 256 << 20;
/// What the files' names end in.
const EXTENSION: &str = "encodings";
/// Permission to write for others than the owner: then the content is not the user's own.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The folder for what is learnt: `$COAX_CACHE`, none when that is `off`, else `coax` in `$XDG_CACHE_HOME` or
/// `~/.cache`.
pub fn cache_folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    match variable("COAX_CACHE") {
        Some(off) if off == Path::new("off") => None,
        Some(folder) => Some(folder),
        None => {
            // The XDG base directory specification: "relative paths are invalid".
            let caches = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
            Some(caches.or_else(|| Some(variable("HOME")?.join(".cache")))?.join("coax"))
        }
    }
}

/// How many files are in such a folder, and how large they are together.
pub fn cache_size(folder: &Path) -> (usize, u64) {
    let files = files(folder);
    (files.len(), files.iter().map(|(_, metadata)| metadata.len()).sum())
}

/// The files of one LLVM.
#[derive(Clone)]
pub(crate) struct Library {
    folder: PathBuf,
    /// What the files' content depends on.
    identity: String,
}

impl Library {
    /// `None` for what is not a file: a name that only the loader resolves.
    pub fn new(folder: &Path, library: &Path, kind: &str) -> Option<Self> {
        let library = library.canonicalize().ok()?;
        let metadata = library.metadata().ok().filter(fs::Metadata::is_file)?;
        let (size, seconds, nanoseconds) = (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
        let identity = format!(
            "coax {}\n{}\n{size} bytes, changed {seconds}.{nanoseconds:09}\n{kind}\n",
            env!("CARGO_PKG_VERSION"),
            library.to_str()?,
        );
        Some(Library { folder: folder.to_owned(), identity })
    }

    /// Whether this LLVM was used before: then it need not be tried whether it loads.
    pub fn is_known(&self) -> bool {
        let prefix = self.prefix();
        files(&self.folder)
            .iter()
            .any(|(path, _)| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix)))
    }

    /// The file for `target`.
    pub fn store(&self, target: &Target) -> Store {
        let wave = if target.wave64() { "-wave64" } else { "" };
        // A target ID has colons, which some file systems do not take.
        let name = format!("{}{target}{wave}.{EXTENSION}", self.prefix()).replace([':', '/'], "_");
        let key = format!("{}{target}{wave}\n", self.identity);
        Store { path: self.folder.join(name), key, seen: Mutex::default() }
    }

    fn prefix(&self) -> String {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.identity.as_bytes());
        format!("{:016x}-", hasher.finish())
    }
}

/// The file of one LLVM and target.
pub(crate) struct Store {
    path: PathBuf,
    key: String,
    /// The file's checksum when it was read last.
    seen: Mutex<Option<u32>>,
}

impl Store {
    /// What is stored, if it can be trusted.
    pub fn read(&self) -> Option<Image> {
        let file = open_own(&self.path)?;
        let (image, checksum) = Image::read(file, &self.key)?;
        *self.seen.lock().ok()? = Some(checksum);
        Some(image)
    }

    /// What is stored, if that is not what was read last.
    pub fn changed(&self) -> Option<Image> {
        let mut start = [0; image::CHECKED_FROM];
        open_own(&self.path)?.read_exact(&mut start).ok()?;
        let checksum = image::checksum_in(&start);
        if *self.seen.lock().ok()? == Some(checksum) { None } else { self.read() }
    }

    /// Replaces what is stored, if the place can be written and there is room.
    pub fn write<'t>(
        &self,
        encodings: &Encodings,
        texts: &Texts,
        trip: &dyn Fn(EncodingId) -> Option<&'t RoundTrip>,
    ) -> Option<()> {
        let bytes = image::bytes(&self.key, encodings, texts, trip)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return None;
        }
        let folder = self.path.parent()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        // Temporary files are the owner's alone.
        let mut file = tempfile::Builder::new().prefix(".").tempfile_in(folder).ok()?;
        file.write_all(&bytes).ok()?;
        file.persist(&self.path).ok()?;
        self.make_room(folder);
        Some(())
    }

    /// Removes the oldest files of the folder until the rest fits.
    fn make_room(&self, folder: &Path) {
        let mut files = files(folder);
        files.sort_by_key(|(_, metadata)| metadata.modified().ok());
        let mut bytes: u64 = files.iter().map(|(_, metadata)| metadata.len()).sum();
        for (path, metadata) in files.iter().filter(|(path, _)| *path != self.path) {
            if bytes <= MAX_FOLDER_BYTES {
                break;
            }
            let _ = fs::remove_file(path);
            bytes -= metadata.len();
        }
    }
}

/// Opens a file that only its owner could have written, and that owner is the user; `None` for what is too large.
fn open_own(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    let metadata = file.metadata().ok()?;
    // SAFETY: takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let is_own = metadata.uid() == user && metadata.mode() & WRITABLE_BY_OTHERS == 0;
    (is_own && metadata.is_file() && metadata.len() <= MAX_FILE_BYTES).then_some(file)
}

/// The files of ours in a folder.
fn files(folder: &Path) -> Vec<(PathBuf, fs::Metadata)> {
    let entries = folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let ours = entries.filter(|path| path.extension().is_some_and(|extension| extension == EXTENSION));
    ours.filter_map(|path| Some((path.clone(), path.metadata().ok().filter(fs::Metadata::is_file)?))).collect()
}

#[cfg(test)]
mod tests;
