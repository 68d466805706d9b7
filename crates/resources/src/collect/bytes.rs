//! The bytes of a file: read when small, mapped when large, so that a library of a gigabyte costs no memory.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::Path;

/// Files of this size and more are mapped.
const MAP_FROM: u64 = 32 << 20;
/// What is read of a file whose size the system does not tell (a pipe).
const LARGEST_STREAM: u64 = 256 << 20;

/// A file's bytes.
pub enum FileBytes {
    /// In memory.
    Read(Vec<u8>),
    /// In the page cache.
    Mapped(memmap2::Mmap),
}

impl FileBytes {
    /// Opens the whole file.
    pub fn read(path: &Path) -> io::Result<FileBytes> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() >= MAP_FROM {
            #[allow(unsafe_code)]
            // SAFETY: the mapping is private and read-only. Another process that shortens the file meanwhile can end
            // this one by a signal (never corrupt its answer); the alternative is to hold gigabytes in memory.
            let map = unsafe { memmap2::Mmap::map(&file)? };
            return Ok(FileBytes::Mapped(map));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0).min(MAP_FROM as usize));
        file.by_ref().take(LARGEST_STREAM + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LARGEST_STREAM {
            return Err(io::Error::other("larger than 256 MiB and no regular file"));
        }
        Ok(FileBytes::Read(bytes))
    }
}

impl Deref for FileBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            FileBytes::Read(bytes) => bytes,
            FileBytes::Mapped(map) => map,
        }
    }
}

/// Reads a file into `buffer`, which keeps its memory from file to file, and gives the file's bytes. No size is asked
/// for: of thousands of small files, the questions would cost as much as the reading.
pub fn read_into<'b>(path: &Path, buffer: &'b mut Vec<u8>) -> io::Result<&'b [u8]> {
    const STEP: usize = 256 << 10;
    let mut file = File::open(path)?;
    let mut length = 0;
    loop {
        if buffer.len() < length + STEP {
            buffer.resize((length + STEP).max(buffer.len() * 2), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => return Ok(&buffer[..length]),
            Ok(read) => length += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
