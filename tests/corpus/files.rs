//! Finds code objects and assembly texts below a folder, by the bytes of the files.

use codeobj::container;
use std::fs;
use std::path::{Path, PathBuf};

/// One AMD GPU ELF file.
pub struct Object {
    /// The file that it is or lies in.
    pub file: PathBuf,
    /// The path inside the file; empty when it is the file.
    pub member: String,
    /// The ELF file.
    pub bytes: Vec<u8>,
}

const ELF: &[u8] = b"\x7fELF";
const AMDGPU: [u8; 2] = 224u16.to_le_bytes();
const CONTAINERS: [&[u8]; 4] = [b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB", b"!<arch>\n", b"\x10\xff\x10\xad"];

/// Every code object below `root`, those in containers too.
pub fn objects(root: &Path) -> Result<Vec<Object>, String> {
    let mut objects = Vec::new();
    for file in all(root)? {
        let bytes = fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let is_elf = bytes.starts_with(ELF);
        if is_elf && bytes.get(18..20) == Some(&AMDGPU) {
            objects.push(Object { file, member: String::new(), bytes });
        } else if is_elf || CONTAINERS.iter().any(|magic| bytes.starts_with(magic)) {
            let failed = |error| format!("{}: {error}", file.display());
            for entry in container::open(&bytes).map_err(failed)?.entries {
                for member in entry.load().map_err(failed)?.entries {
                    let bytes = member.bytes.into_owned();
                    objects.push(Object { file: file.clone(), member: member.path, bytes });
                }
            }
        }
    }
    Ok(objects)
}

/// The files of `objects`, each once.
pub fn files_of(objects: &[Object]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = objects.iter().map(|object| object.file.clone()).collect();
    files.dedup();
    files
}

/// Every assembly text with metadata below `root`.
pub fn texts(root: &Path) -> Result<Vec<PathBuf>, String> {
    let is_text = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "s" || extension == "amdgcn")
            && fs::read_to_string(path).is_ok_and(|text| text.contains(".amdgpu_metadata"))
    };
    Ok(all(root)?.into_iter().filter(is_text).collect())
}

/// `"shared"` of the metadata file that Triton writes beside its outputs.
pub fn triton_shared(file: &Path) -> Option<u64> {
    let text = fs::read(file.with_extension("json")).ok()?;
    serde_json::from_slice::<serde_json::Value>(&text).ok()?["shared"].as_u64()
}

fn all(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            files.extend(all(&path)?);
        } else {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
