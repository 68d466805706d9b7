//! Where an LLVM may lie on this machine, in the order in which it is tried: the one named by the user alone; else
//! ROCm's, then the system's from the newest to the oldest, then whatever the loader knows by name, then COMGR in the
//! same order, then LLVM's tools.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};
use std::slice;

use crate::comgr::is_comgr;
use crate::spawned::is_tool;
use crate::{Error, ErrorKind};

/// LLVM's major versions that the loader is asked for by name, newest first. LLVM 17 is the first with gfx942.
const NAMED_MAJORS: std::ops::RangeInclusive<u32> = 17..=30;

/// COMGR's major versions that the loader is asked for by name, newest first.
const NAMED_COMGRS: [u32; 2] = [3, 2];

/// The folders in which distributions keep libLLVM and COMGR; `*` stands for any one name. Debian's are the first two, Fedora's
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
    /// Whether the loader is asked for a library by name alone when no folder has one, and `$PATH` for a linker.
    pub by_name: bool,
}

impl Search {
    /// `explicit`, else `$ROCM_PATH/llvm`, `/opt/rocm/llvm` and the system.
    pub fn from_environment(explicit: Option<PathBuf>) -> Self {
        let rocm_path = env::var_os("ROCM_PATH").filter(|path| !path.is_empty());
        let rocm = rocm_path.into_iter().map(|path| Path::new(&path).join("llvm")).chain(["/opt/rocm/llvm".into()]);
        Search { explicit, rocm: rocm.collect(), root: "/".into(), by_name: true }
    }

    /// Candidates, best first; the same file only once. COMGR comes after all of LLVM's libraries, tools come last.
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
        found.extend(self.comgrs());
        found.extend(
            folders.iter().flat_map(|folder| newest_first(&[folder.join("bin"), folder.join("llvm/bin")], is_tool)),
        );
        found.extend(newest_first(&system(&TOOL_FOLDERS), is_tool));
        let mut seen = HashSet::new();
        found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
        found
    }

    /// Where a COMGR is, best first: the user's choice alone; else ROCm's, then the system's from the newest to the
    /// oldest, then whatever the loader knows by name.
    pub fn comgrs(&self) -> Vec<PathBuf> {
        match &self.explicit {
            Some(path) if path.is_dir() => return newest_first(&[path.join("lib"), path.clone()], is_comgr),
            Some(path) if is_comgr(path) => return vec![path.clone()],
            Some(_) => return Vec::new(),
            None => {}
        }
        // ROCm has it beside its `llvm`.
        let rocm = self.rocm.iter().filter_map(|llvm| Some(llvm.parent()?.join("lib")));
        let mut found: Vec<PathBuf> = rocm.flat_map(|folder| newest_first(&[folder], is_comgr)).collect();
        let system: Vec<PathBuf> = SYSTEM_FOLDERS.iter().flat_map(|pattern| expand(&self.root, pattern)).collect();
        found.extend(newest_first(&system, is_comgr));
        if self.by_name && found.is_empty() {
            found.extend(NAMED_COMGRS.map(|major| format!("libamd_comgr.so.{major}").into()));
        }
        found
    }

    /// What links, best first: the user's COMGR, an `ld.lld`, any COMGR.
    pub fn linkers(&self) -> Vec<FoundLinker> {
        let comgr = |path| FoundLinker::Comgr(path);
        let chosen = self.explicit.iter().filter(|path| is_comgr(path) && !path.is_dir()).cloned().map(comgr);
        let lld = self.linker().map(FoundLinker::Lld);
        let any = Search { explicit: None, rocm: self.rocm.clone(), root: self.root.clone(), ..*self };
        let comgrs = self.comgrs().into_iter().chain(any.comgrs()).map(comgr);
        let mut found: Vec<FoundLinker> = Vec::new();
        for linker in chosen.chain(lld).chain(comgrs) {
            if !found.contains(&linker) {
                found.push(linker);
            }
        }
        found
    }

    /// The program `ld.lld`: beside the user's choice, ROCm's, the system's newest, or the one in `$PATH`.
    fn linker(&self) -> Option<PathBuf> {
        // The choice may be `/opt/rocm/llvm`, its `bin`, or `/opt/rocm/llvm/lib/libLLVM.so`.
        let explicit = self.explicit.iter().flat_map(|path| path.ancestors().take(3));
        let own = explicit.chain(self.rocm.iter().map(PathBuf::as_path));
        let own = own.flat_map(|folder| [folder.join("bin"), folder.to_owned()]);
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::split_paths(&path).filter(|folder| self.by_name && folder.is_absolute()).collect();
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

/// Something that links.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoundLinker {
    /// The program `ld.lld`.
    Lld(PathBuf),
    /// A library, or the name of one that the loader may know.
    Comgr(PathBuf),
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
    let name = if is_library(path) || is_comgr(path) { name } else { path.to_string_lossy() };
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
            assert_eq!(choosing(choice).linkers(), [FoundLinker::Lld(root.join(files[0]))], "{choice}");
        }
        for file in files {
            assert_eq!(choosing("mine").linkers(), [FoundLinker::Lld(root.join(file))]);
            fs::remove_file(root.join(file))?;
        }
        Ok(())
    }

    #[test]
    fn comgr_comes_after_llvm_and_before_tools_and_links_where_no_linker_is() -> std::io::Result<()> {
        let root = tempfile::tempdir()?;
        let root = root.path().canonicalize()?;
        let files = [
            "usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
            "opt/rocm/lib/libamd_comgr.so.2.8",
            "usr/lib/x86_64-linux-gnu/libamd_comgr.so.3.0",
            "usr/lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0",
            "usr/lib/llvm-14/bin/llvm-objdump",
            "usr/lib/x86_64-linux-gnu/libamd_comgr_loader.so.3",
        ]
        .map(|file| root.join(file));
        for file in &files {
            fs::create_dir_all(file.parent().unwrap_or(&root))?;
            fs::write(file, "")?;
        }
        assert_eq!(search(&root).candidates(), files[..5]);
        let comgrs: Vec<FoundLinker> = files[1..4].iter().cloned().map(FoundLinker::Comgr).collect();
        assert_eq!(search(&root).linkers(), comgrs);

        let lld = root.join("usr/bin/ld.lld-9");
        fs::create_dir_all(root.join("usr/bin"))?;
        fs::write(&lld, "")?;
        assert_eq!(search(&root).linkers().first(), Some(&FoundLinker::Lld(lld)));
        let chosen = Search { explicit: Some(files[3].clone()), ..search(&root) };
        assert_eq!(chosen.candidates(), files[3..4]);
        assert_eq!(chosen.linkers().first(), Some(&FoundLinker::Comgr(files[3].clone())));
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
