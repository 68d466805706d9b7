//! What the tests of this crate share: where files are, and reproducible randomness.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::{Path, PathBuf};

/// `tests/data/…` of the repository.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(path)
}

/// The bytes of a file of `tests/data`.
pub fn bytes(path: &str) -> Vec<u8> {
    let path = data(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below a folder, sorted.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in
            std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
        {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    found
}

/// Names of the committed code objects.
pub fn code_objects() -> Vec<String> {
    let folder = data("code-objects");
    let is_object =
        |path: &PathBuf| path.extension().is_some_and(|e| ["co", "o", "hsaco"].contains(&&*e.to_string_lossy()));
    let names = files_below(&folder).into_iter().filter(is_object).filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(format!("code-objects/{name}"))
    });
    let names: Vec<String> = names.collect();
    assert!(names.len() >= 8, "code objects are missing from {}", folder.display());
    names
}

/// The folder of the larger corpus, or none, said on stderr.
pub fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("COAX_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: set COAX_CORPUS to a folder with code-objects/ and compiler-outputs/");
    }
    folder
}

/// A small reproducible generator (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}
