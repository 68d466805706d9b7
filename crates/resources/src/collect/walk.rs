//! Which files below a directory hold kernels, and the place under which their kernels go.
//!
//! A place never depends on what else is in the tree: the directory for a dump, the file without extension for a
//! Triton entry, the file for everything else. Which other files are read is decided by their content.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rayon::prelude::*;

use super::io_reason;
use crate::printable;
use crate::triton;

/// How a file is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// `*final_isa.s` of a dump tree.
    Dump,
    /// What Triton compiled, with what it wrote beside it.
    Triton,
    /// Whatever the content says; a file that says nothing is passed over, or is a problem when `expected`.
    Content {
        /// The name says that kernels are in it, or the user named it.
        expected: bool,
    },
}

/// One file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Where it is.
    pub path: PathBuf,
    /// How it is named in records and problems: relative to the input.
    pub source: String,
    /// What stands before `::` in the keys of its kernels.
    pub place: String,
    /// How it is read.
    pub form: Form,
    /// The part of the container that is wanted.
    pub member: Option<String>,
}

impl Work {
    /// A file that the user named itself; its kernels are at no place.
    pub fn single(path: &Path, member: Option<&str>) -> Work {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let is_kernel = |e: &OsStr| triton::KERNEL_EXTENSIONS.iter().any(|k| *k == e);
        Work {
            path: path.to_owned(),
            source: printable(&path.display().to_string()).into_owned(),
            place: String::new(),
            form: match () {
                () if is_dump(&name.to_string_lossy()) => Form::Dump,
                () if path.extension().is_some_and(is_kernel) => Form::Triton,
                () => Form::Content { expected: true },
            },
            member: member.map(str::to_owned),
        }
    }
}

/// What a directory holds.
#[derive(Debug, Default)]
pub struct Tree {
    /// Files to read, by path.
    pub work: Vec<Work>,
    /// Directories and files that cannot be read.
    pub problems: Vec<String>,
    /// What was passed over.
    pub warnings: Vec<String>,
}

/// Nesting that is followed.
const MAX_DEPTH: usize = 100;

/// Lists what is below `root`. The error says why the root itself cannot be listed.
pub fn walk(root: &Path) -> Result<Tree, String> {
    let entries = fs::read_dir(root).map_err(|e| format!("{}: {}", root.display(), io_reason(&e)))?;
    let mut tree = list(entries, root, "", false, 0);
    tree.work.sort_by(|a, b| a.source.cmp(&b.source));
    tree.problems.sort();
    tree.warnings.sort();
    Ok(tree)
}

/// A directory that is still to be listed.
struct Directory {
    path: PathBuf,
    place: String,
    behind_link: bool,
}

/// Whether a link to a directory is followed: it may lead back up, and links behind links may do so together.
fn follow(link: &Path, from: &Path, behind_link: bool) -> Result<(), &'static str> {
    if behind_link {
        return Err("it lies behind another link");
    }
    match (fs::canonicalize(link), fs::canonicalize(from)) {
        (Ok(target), Ok(from)) if from.starts_with(&target) => Err("it leads back up"),
        (Ok(_), Ok(_)) => Ok(()),
        _ => Err("it cannot be resolved"),
    }
}

fn list(entries: fs::ReadDir, directory: &Path, place: &str, behind_link: bool, depth: usize) -> Tree {
    let mut tree = Tree::default();
    let mut files = BTreeSet::new();
    let mut directories = Vec::new();
    let below = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                tree.problems.push(format!("{}: {error}", directory.display()));
                continue;
            }
        };
        let name = printable(&entry.file_name().to_string_lossy()).into_owned();
        let kind = entry.file_type();
        if kind.as_ref().is_ok_and(fs::FileType::is_dir) {
            directories.push(Directory { path: entry.path(), place: below(&name), behind_link });
        } else if kind.as_ref().is_ok_and(|k| k.is_symlink()) && entry.path().is_dir() {
            match follow(&entry.path(), directory, behind_link) {
                Ok(()) => directories.push(Directory { path: entry.path(), place: below(&name), behind_link: true }),
                Err(why) => tree.warnings.push(format!("{}: a link that is not followed: {why}", below(&name))),
            }
        } else if kind.is_ok_and(|k| k.is_file() || k.is_symlink() && entry.path().is_file()) {
            files.insert((name, entry.path()));
        } else if looks_like_kernels(&name) {
            tree.problems.push(format!("{}: is no regular file, or leads to none", below(&name)));
        }
    }
    choose(&files, place, &below, &mut tree);
    if depth >= MAX_DEPTH {
        tree.problems.extend(directories.iter().map(|d| format!("{}: nested more than {MAX_DEPTH} deep", d.place)));
        return tree;
    }
    let subtrees: Vec<Tree> = directories
        .into_par_iter()
        .map(|Directory { path, place, behind_link }| match fs::read_dir(&path) {
            Ok(entries) => list(entries, &path, &place, behind_link, depth + 1),
            Err(error) => Tree { problems: vec![format!("{place}: {}", io_reason(&error))], ..Tree::default() },
        })
        .collect();
    for subtree in subtrees {
        tree.work.extend(subtree.work);
        tree.problems.extend(subtree.problems);
        tree.warnings.extend(subtree.warnings);
    }
    tree
}

/// Chooses the files of one directory.
fn choose(files: &BTreeSet<(String, PathBuf)>, place: &str, below: &dyn Fn(&str) -> String, tree: &mut Tree) {
    let before = tree.work.len();
    let mut dumps: Vec<&(String, PathBuf)> = files.iter().filter(|(name, _)| is_dump(name)).collect();
    let work = |name: &str, path: &Path, place: String, form| Work {
        path: path.to_owned(),
        source: below(name),
        place,
        form,
        member: None,
    };
    if dumps.len() > 1 {
        dumps.sort_by_cached_key(|(name, path)| {
            (stage(name).map(|(n, d)| (n, d.to_owned())), modified(path), name.clone())
        });
    }
    if let Some((name, path)) = dumps.pop() {
        tree.work.push(work(name, path, place.to_owned(), Form::Dump));
        if !dumps.is_empty() {
            let ignored: Vec<&str> = dumps.iter().map(|(name, _)| name.as_str()).collect();
            let shown = if place.is_empty() { "." } else { place };
            tree.warnings
                .push(format!("{shown}: several final ISA stages; {name} is read, ignored: {}", ignored.join(", ")));
        }
    }
    if dumps.is_empty()
        && tree.work.len() == before
        && let Some((last, _)) = files.iter().rfind(|(name, _)| is_compiler_stage(name))
    {
        let shown = if place.is_empty() { "." } else { place };
        tree.warnings.push(format!("{shown}: the compiler stopped at {last}: no final ISA"));
    }
    let is_dump_directory = files.iter().any(|(name, _)| is_dump(name));
    for (name, path) in files {
        if is_dump(name) || (is_dump_directory && is_stage_of_a_dump(name) && !looks_like_kernels(name)) {
            continue;
        }
        let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
        let has = |extension: &str| {
            files
                .range((format!("{stem}.{extension}"), PathBuf::new())..)
                .next()
                .is_some_and(|(n, _)| *n == format!("{stem}.{extension}"))
        };
        match triton::KERNEL_EXTENSIONS.iter().position(|e| *e == extension) {
            // The other extension is the same kernel again.
            Some(rank) if triton::KERNEL_EXTENSIONS[..rank].iter().any(|e| has(e)) => {}
            Some(_) => tree.work.push(work(name, path, below(stem), Form::Triton)),
            None => {
                let expected = looks_like_kernels(name);
                if expected || may_hold_kernels(name) {
                    tree.work.push(work(name, path, below(name), Form::Content { expected }));
                }
            }
        }
    }
}

fn is_dump(name: &str) -> bool {
    name.ends_with("final_isa.s")
}

/// `21_llvm_ir.ll`, `final_isa.s.bak`: beside a final ISA these are its earlier stages and leftovers.
fn is_stage_of_a_dump(name: &str) -> bool {
    let numbered = name.split_once('_').is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    numbered || name.contains("final_isa")
}

/// `19_reconcile_unrealized_casts.mlir`: what FlyDSL writes on the way.
fn is_compiler_stage(name: &str) -> bool {
    is_stage_of_a_dump(name) && (name.ends_with(".mlir") || name.ends_with(".ll"))
}

/// A name that only files with kernels have.
fn looks_like_kernels(name: &str) -> bool {
    [".co", ".hsaco", ".hipfb", ".amdgcn", "final_isa.s"].iter().any(|end| name.ends_with(end))
}

/// Text that no kernel is ever in; everything else is opened and looked at.
fn may_hold_kernels(name: &str) -> bool {
    const NEVER: [&str; 14] =
        ["json", "ll", "llir", "mlir", "ttir", "ttgir", "source", "py", "md", "txt", "log", "cpp", "h", "cl"];
    !name.starts_with('.') && !name.rsplit_once('.').is_some_and(|(_, e)| NEVER.contains(&e))
}

/// The number in front of `_final_isa.s`, in a form whose order is that of the numbers, however long; a file without
/// one comes before all others.
fn stage(name: &str) -> Option<(usize, &str)> {
    let number = name.strip_suffix("_final_isa.s")?;
    let digits = number.trim_start_matches('0');
    (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())).then_some((digits.len(), digits))
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|m| m.modified()).ok()
}
