//! Where an LLVM may lie on this machine, in the order in which it is tried: the one named by the user alone; else
//! ROCm's, then the system's from the newest to the oldest, then whatever the loader knows by name.
//!
//! Seam: `libamd_comgr.so`, which carries an LLVM behind an interface of its own, would come next, as one more
//! [`crate::source::Source`].

use std::cmp::Reverse;
use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::slice;

use crate::spawned::is_tool;
use crate::{Error, ErrorKind};

/// LLVM's major versions that the loader is asked for by name, newest first. LLVM 17 is the first with gfx942.
const NAMED_MAJORS: std::ops::RangeInclusive<u32> = 17..=30;

/// The folders in which distributions keep libLLVM; `*` stands for any one name. Debian's are the first two, Fedora's
/// and openSUSE's the next two.
const SYSTEM_FOLDERS: [&str; 7] = [
    "usr/lib/llvm-*/lib",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib64/llvm*/lib",
    "usr/lib64",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib",
    "usr/local/lib",
];

/// The folders in which distributions keep LLVM's tools.
const TOOL_FOLDERS: [&str; 3] = ["usr/lib/llvm-*/bin", "usr/bin", "usr/local/bin"];

/// The places to look in.
pub(crate) struct Search {
    /// The user's choice, a library, a tool or a folder: then nothing else counts.
    pub explicit: Option<PathBuf>,
    /// Folders with an LLVM of ROCm's.
    pub rocm: Vec<PathBuf>,
    /// The root of the file system.
    pub root: PathBuf,
    /// Whether the loader is asked for a library by name alone when no folder has one.
    pub by_name: bool,
}

impl Search {
    /// `explicit`, else `$ROCM_PATH/llvm`, `/opt/rocm/llvm` and the system.
    pub fn from_environment(explicit: Option<PathBuf>) -> Self {
        let rocm_path = env::var_os("ROCM_PATH").filter(|path| !path.is_empty());
        let rocm = rocm_path.into_iter().map(|path| Path::new(&path).join("llvm")).chain(["/opt/rocm/llvm".into()]);
        Search { explicit, rocm: rocm.collect(), root: "/".into(), by_name: true }
    }

    /// Candidates, best first; the same file only once. Tools come after all libraries.
    pub fn candidates(&self) -> Vec<PathBuf> {
        let folders = match &self.explicit {
            Some(path) if path.is_dir() => slice::from_ref(path),
            Some(path) => return vec![path.clone()],
            None => &self.rocm,
        };
        let system = |patterns: &[&str]| -> Vec<PathBuf> {
            let patterns = if self.explicit.is_none() { patterns } else { &[] };
            patterns.iter().flat_map(|pattern| expand(&self.root, pattern)).collect()
        };
        let mut found: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| newest_first(&[folder.join("lib"), folder.join("llvm/lib"), folder.clone()], is_library))
            .collect();
        found.extend(newest_first(&system(&SYSTEM_FOLDERS), is_library));
        if self.by_name && self.explicit.is_none() && found.is_empty() {
            let names = |major| [format!("libLLVM.so.{major}.1"), format!("libLLVM-{major}.so")];
            found.extend(NAMED_MAJORS.rev().flat_map(names).map(PathBuf::from));
        }
        found.extend(
            folders.iter().flat_map(|folder| newest_first(&[folder.join("bin"), folder.join("llvm/bin")], is_tool)),
        );
        found.extend(newest_first(&system(&TOOL_FOLDERS), is_tool));
        let mut seen = HashSet::new();
        found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        found
    }

    /// The program `ld.lld`: beside the user's choice, ROCm's, the system's newest, or the one in `$PATH`.
    pub fn linker(&self) -> Option<PathBuf> {
        // The choice may be `/opt/rocm/llvm`, its `bin`, or `/opt/rocm/llvm/lib/libLLVM.so`.
        let explicit = self.explicit.iter().flat_map(|path| path.ancestors().take(3));
        let own = explicit.chain(self.rocm.iter().map(PathBuf::as_path));
        let own = own.flat_map(|folder| [folder.join("bin"), folder.to_owned()]);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
        let system = TOOL_FOLDERS.iter().flat_map(|pattern| expand(&self.root, pattern)).collect();
        let groups = own.map(|folder| vec![folder]).chain([system, path]);
        groups.flat_map(|folders| newest_first(&folders, is_linker)).next()
    }

    /// The error for when none of the candidates loads; `failures` say why each did not.
    pub fn not_found(&self, failures: &[String]) -> Error {
        let mut message = match &self.explicit {
            Some(path) => format!("no LLVM at {}", path.display()),
            None => {
                let rocm = self.rocm.iter().map(|folder| folder.display().to_string());
                let system = SYSTEM_FOLDERS.iter().map(|folder| self.root.join(folder).display().to_string());
                format!("no LLVM found in {}, nor by name", rocm.chain(system).collect::<Vec<_>>().join(", "))
            }
        };
        // The loader says "no such file" of every name that was only a guess.
        for failure in failures.iter().filter(|failure| self.explicit.is_some() || failure.starts_with('/')) {
            message.push_str("\n  ");
            message.push_str(failure);
        }
        message.push_str(
            "\ninstall it (Debian, Ubuntu: apt install libllvm22), or name it with --llvm PATH or $COAX_LLVM",
        );
        Error::new(ErrorKind::NotFound, message)
    }
}

/// The folders below `root` that match `pattern`, whose one `*` stands within one name.
fn expand(root: &Path, pattern: &str) -> Vec<PathBuf> {
    let Some((before, after)) = pattern.split_once('*') else { return vec![root.join(pattern)] };
    let (parent, prefix) = before.rsplit_once('/').unwrap_or(("", before));
    let entries = root.join(parent).read_dir().into_iter().flatten().flatten();
    let matching = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    matching.map(|entry| entry.path().join(after.trim_start_matches('/'))).collect()
}

/// The files in `folders` with such a name, the highest version first.
fn newest_first(folders: &[PathBuf], wanted: fn(&Path) -> bool) -> Vec<PathBuf> {
    let entries = folders.iter().flat_map(|folder| folder.read_dir().into_iter().flatten().flatten());
    let paths = entries.map(|entry| entry.path()).filter(|path| wanted(path));
    // `ld.lld` is a link to a program that goes by the name it is called by.
    let real = |path: PathBuf| if is_linker(&path) { path.exists().then_some(path) } else { path.canonicalize().ok() };
    let mut files: Vec<PathBuf> = paths.filter_map(real).collect();
    files.sort_by_cached_key(|path| Reverse((version(path), path.clone())));
    files.dedup();
    files
}

/// `libLLVM.so`, `libLLVM.so.22.1`, `libLLVM-14.so.1`; not `libLLVMSupport.so`.
fn is_library(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("libLLVM").is_some_and(|rest| rest.starts_with(['.', '-']) && rest.contains(".so"))
}

/// `ld.lld`, `ld.lld-22`.
fn is_linker(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.strip_prefix("ld.lld").is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// The numbers in the path, the file name's first: 22, 1 of `/usr/lib/libLLVM.so.22.1`, 22 of
/// `/usr/lib/llvm-22/bin/llvm-objdump`.
fn version(path: &Path) -> Vec<u32> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = if is_library(path) { name } else { path.to_string_lossy() };
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn search(root: &Path) -> Search {
        Search { explicit: None, rocm: vec![root.join("opt/rocm/llvm")], root: root.to_owned(), by_name: false }
    }

    #[test]
    fn rocm_comes_before_the_system_and_the_newest_first() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path().canonicalize()?;
        let files = [
            "opt/rocm/llvm/lib/libLLVM.so.20.0git",
            "usr/lib/x86_64-linux-gnu/libLLVM.so.22.1",
            "usr/lib/llvm-9/lib/libLLVM-9.so.1",
            "usr/lib/llvm-14/lib/libLLVM-14.so.1",
            "usr/lib/llvm-14/lib/libLLVMSupport.so",
        ];
        for file in files {
            fs::create_dir_all(root.join(file).parent().unwrap_or(&root))?;
            fs::write(root.join(file), "")?;
        }
        std::os::unix::fs::symlink(root.join(files[1]), root.join("usr/lib/llvm-14/lib/libLLVM-22.so"))?;
        assert_eq!(search(&root).candidates(), [files[0], files[1], files[3], files[2]].map(|file| root.join(file)));
        Ok(())
    }

    #[test]
    fn a_linker_beside_the_users_llvm_comes_first_and_the_newest_of_the_systems_last() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path().canonicalize()?;
        let files = ["mine/bin/ld.lld", "opt/rocm/llvm/bin/ld.lld", "usr/lib/llvm-22/bin/ld.lld", "usr/bin/ld.lld-9"];
        for file in files.iter().chain(&["mine/lib/libLLVM.so", "mine/bin/ld.lld.bak"]) {
            fs::create_dir_all(root.join(file).parent().unwrap_or(&root))?;
            fs::write(root.join(file), "")?;
        }
        let choosing = |path: &str| Search { explicit: Some(root.join(path)), ..search(&root) };
        for choice in ["mine", "mine/bin", "mine/lib/libLLVM.so"] {
            assert_eq!(choosing(choice).linker(), Some(root.join(files[0])), "{choice}");
        }
        for file in files {
            assert_eq!(choosing("mine").linker(), Some(root.join(file)));
            fs::remove_file(root.join(file))?;
        }
        Ok(())
    }

    #[test]
    fn a_machine_without_llvm_is_told_where_we_looked_and_what_to_install() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let search = search(root.path());
        assert_eq!(search.candidates(), Vec::<PathBuf>::new());
        let error = search.not_found(&[]);
        assert_eq!(error.kind(), ErrorKind::NotFound);
        for part in ["opt/rocm/llvm", "usr/lib/llvm-*/lib", "apt install libllvm22", "--llvm"] {
            assert!(error.to_string().contains(part), "{part} is missing in: {error}");
        }
        Ok(())
    }

    #[test]
    fn what_the_user_names_is_the_only_candidate() {
        let explicit = Some(PathBuf::from("/nowhere/libLLVM.so"));
        let search = Search { explicit: explicit.clone(), ..search(Path::new("/")) };
        assert_eq!(search.candidates(), explicit.into_iter().collect::<Vec<_>>());
        assert!(search.not_found(&["/nowhere/libLLVM.so: no such file".into()]).to_string().contains("no such file"));
    }
}
