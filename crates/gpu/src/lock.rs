//! One run at a time on a device: two that share it would disturb each other's times.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};

/// Held while a device is in use; given back when it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// As the holder wrote it: `process 1234`; empty when it could not write, or is no process of this machine's.
    pub holder: String,
    /// The lock's file.
    pub path: PathBuf,
}

/// Whoever may use a device may lock it.
const MODE: u32 = 0o666;

impl Lock {
    /// Takes the device with this bus ID, or says who holds it.
    ///
    /// The file is one for all users of the machine, whatever `$TMPDIR` says; it is never removed, since removing it while
    /// another waits would give two holders.
    ///
    /// # Errors
    /// The file can be neither opened nor made; the message has its path.
    pub fn try_take(bus_id: &str) -> io::Result<Result<Lock, Held>> {
        Lock::try_take_at(path(bus_id))
    }

    fn try_take_at(path: PathBuf) -> io::Result<Result<Lock, Held>> {
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let mut file = open(&path).map_err(named)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                // Another user's file may be one that can only be read: it locks as well, and says less.
                let _ = say_who(&mut file);
                Ok(Ok(Lock { file }))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(Err(Held { holder: holder(&mut file), path })),
            Err(error) => Err(named(error.into())),
        }
    }
}

fn say_who(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    write!(file, "process {}", std::process::id())
}

/// Who wrote there. A run that is over leaves its own words, and one that may only read cannot replace them.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(100).read_to_string(&mut text);
    let is_alive = |id: &str| id.parse::<u32>().is_ok_and(|id| Path::new(&format!("/proc/{id}")).exists());
    if text.strip_prefix("process ").is_some_and(is_alive) { text } else { String::new() }
}

/// Where everybody may write, so that it is one place for everybody: asked of the folder, not of this process's rights.
fn path(bus_id: &str) -> PathBuf {
    let name: String = bus_id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let folders = ["/run/lock", "/tmp"].map(Path::new);
    let is_everybody_s = |path: &&Path| path.metadata().is_ok_and(|found| found.is_dir() && found.mode() & 0o002 != 0);
    let folder = folders.into_iter().find(is_everybody_s).unwrap_or(folders[1]);
    folder.join(format!("coax-device-{name}.lock"))
}

/// Neither a link that another user planted is followed, nor is anything waited for, or truncated.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).mode(MODE).custom_flags(flags);
    match options.clone().write(true).create_new(true).open(path) {
        Ok(file) => {
            // The umask has taken away what the others need.
            file.set_permissions(Permissions::from_mode(MODE))?;
            Ok(file)
        }
        // Not with `create`: Linux refuses that for another user's file (fs.protected_regular).
        Err(_) => options.clone().write(true).open(path).or_else(|_| options.open(path)),
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = self.file.set_len(0); // closing gives it back; an error here changes nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_taken_once() {
        let bus_id = format!("test:{}", std::process::id());
        let lock = Lock::try_take(&bus_id).expect("a file").expect("free");
        let held = Lock::try_take(&bus_id).expect("a file").expect_err("held");
        assert_eq!(held.holder, format!("process {}", std::process::id()));
        let mode = held.path.metadata().expect("it is there").mode() & 0o777;
        assert_eq!(mode, 0o666, "whatever the umask is");
        drop(lock);
        assert!(Lock::try_take(&bus_id).expect("a file").is_ok());
        std::fs::remove_file(held.path).expect("our own");
    }

    #[test]
    fn a_file_that_can_only_be_read_locks_as_well() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("lock");
        std::fs::write(&path, "process 4294967295").expect("a file");
        std::fs::set_permissions(&path, Permissions::from_mode(0o444)).expect("our own");
        let lock = Lock::try_take_at(path.clone()).expect("a file").expect("free");
        let held = Lock::try_take_at(path.clone()).expect("a file").expect_err("held");
        assert_ne!(held.holder, "process 4294967295", "that one is no process");
        drop(lock);
        assert!(Lock::try_take_at(path).expect("a file").is_ok());
    }

    #[test]
    fn what_cannot_be_opened_is_named() {
        let error = Lock::try_take_at("/nowhere/lock".into()).expect_err("no such folder");
        assert!(error.to_string().starts_with("/nowhere/lock: "), "{error}");
    }
}
