//! What the tests of this crate share: where files are, LLVM, and reproducible randomness.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod relink;

use codeobj::code_object::ObjectKind;
use codeobj::{CodeObject, container};
use llvm::{Isolation, Options, Toolchain};
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
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        for entry in entries.flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    found
}

/// Every linked code object in the files below a folder, containers included, once each.
pub fn linked_objects(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    for path in files_below(folder) {
        let file = std::fs::read(&path).expect("readable");
        if container::sniff(&file).is_none() {
            continue;
        }
        for member in container::select(&file, "").unwrap_or_default() {
            let is_linked = CodeObject::parse(&member.bytes).is_ok_and(|object| object.kind == ObjectKind::Dynamic);
            if is_linked && !found.iter().any(|(_, bytes)| *bytes == *member.bytes) {
                let name = path.strip_prefix(folder).unwrap_or(&path).display();
                found.push((format!("{name}!{}", member.path), member.bytes.into_owned()));
            }
        }
    }
    found
}

/// The folder of the larger corpus, or none, said on stderr.
pub fn corpus() -> Option<PathBuf> {
    let folder = std::env::var_os("COAX_CORPUS").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: set COAX_CORPUS to a folder with code-objects/ and compiler-outputs/");
    }
    folder
}

/// The committed code objects, and those of the corpus when there is one.
pub fn objects() -> Vec<(String, Vec<u8>)> {
    let mut objects = linked_objects(&data(""));
    if let Some(corpus) = corpus() {
        objects.extend(linked_objects(&corpus));
    }
    objects
}

/// LLVM in this process, or none, said on stderr. The code that it decodes here is real code.
pub fn llvm() -> Option<Toolchain> {
    match llvm::open(&Options { isolation: Isolation::InProcess, ..Options::default() }) {
        Ok(toolchain) => Some(toolchain),
        Err(error) if std::env::var("REQUIRE").is_ok_and(|needed| needed.contains("llvm")) => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// Words of `s_nop 0`.
pub fn nops(bytes: usize) -> Vec<u8> {
    0xbf80_0000_u32.to_le_bytes().into_iter().cycle().take(bytes).collect()
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
