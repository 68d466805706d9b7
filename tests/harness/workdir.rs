//! A fresh working directory for each case, and the `setup` lines that prepare it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An empty directory that is deleted when dropped, with the path under which programs see it.
pub struct WorkDirectory {
    _owner: tempfile::TempDir,
    /// Free of symbolic links, so that it can be found in output.
    pub path: PathBuf,
}

impl WorkDirectory {
    /// Creates the directory.
    pub fn new() -> Result<Self, String> {
        let owner = tempfile::Builder::new().prefix("coax-test-").tempdir().map_err(|error| error.to_string())?;
        let path = owner.path().canonicalize().map_err(|error| error.to_string())?;
        Ok(Self { _owner: owner, path })
    }

    /// Carries out one line of a `setup` section, already split into words.
    pub fn prepare(&self, words: &[String]) -> Result<(), String> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["mkdir", path] => {
                let path = self.path.join(path);
                fs::create_dir_all(&path).map_err(|error| at(&path, &error))
            }
            ["cp", from, to] => copy(&self.path.join(from), &self.path.join(to)),
            ["mtime", path, seconds] => {
                let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number(seconds)?);
                self.open(path)?.set_modified(time).map_err(|error| at(&self.path.join(path), &error))
            }
            ["truncate", path, bytes] => {
                self.open(path)?.set_len(number(bytes)?).map_err(|error| at(&self.path.join(path), &error))
            }
            ["symlink", target, path] => {
                let path = self.path.join(path);
                std::os::unix::fs::symlink(target, &path).map_err(|error| at(&path, &error))
            }
            ["chmod", mode, path] => {
                use std::os::unix::fs::PermissionsExt;
                let mode = u32::from_str_radix(mode, 8).map_err(|_| format!("`{mode}` is not an octal mode"))?;
                let path = self.path.join(path);
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).map_err(|error| at(&path, &error))
            }
            _ => Err(format!(
                "unknown setup line `{}`; known: mkdir PATH, cp FROM TO, mtime PATH SECONDS, truncate PATH BYTES, \
                 symlink TARGET PATH, chmod MODE PATH",
                words.join(" ")
            )),
        }
    }

    fn open(&self, path: &str) -> Result<fs::File, String> {
        let path = self.path.join(path);
        fs::File::options().write(true).open(&path).map_err(|error| at(&path, &error))
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        unlock(&self.path);
    }
}

/// A folder that a case has closed could not be deleted.
fn unlock(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(folder, fs::Permissions::from_mode(0o700));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

/// Copies a file or a whole tree; `to` may lie in directories that do not exist yet.
pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if from.is_dir() {
        fs::create_dir_all(to).map_err(|error| at(to, &error))?;
        for entry in fs::read_dir(from).map_err(|error| at(from, &error))? {
            let entry = entry.map_err(|error| at(from, &error))?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let parent = to.parent().expect("a file has a parent");
    fs::create_dir_all(parent).map_err(|error| at(parent, &error))?;
    fs::copy(from, to).map(drop).map_err(|error| at(from, &error))
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

fn at(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
