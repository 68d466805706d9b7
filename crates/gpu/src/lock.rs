//! One run at a time on a device: two that share it would disturb each other's times.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::{FlockOperation, flock};

/// Held while a device is in use; given back when it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// Who holds a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// As the holder wrote it: its process ID.
    pub holder: String,
    /// The lock's file.
    pub path: PathBuf,
}

impl Lock {
    /// Takes the device with this bus ID, or says who holds it.
    ///
    /// The file lies in the machine's temporary directory, so that it is one for all users; it is never removed, since
    /// removing it while another waits would give two holders.
    ///
    /// # Errors
    /// The file can be neither opened nor made.
    pub fn try_take(bus_id: &str) -> std::io::Result<Result<Lock, Held>> {
        let name: String = bus_id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let path = std::env::temp_dir().join(format!("coax-device-{name}.lock"));
        // Neither a link that another user planted is followed, nor anything truncated.
        let open = |create: bool| {
            OpenOptions::new().read(true).write(true).create(create).mode(0o666).custom_flags(NO_FOLLOW).open(&path)
        };
        let mut file = open(true).or_else(|_| open(false))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {
                file.set_len(0)?;
                file.rewind()?;
                write!(file, "process {}", std::process::id())?;
                Ok(Ok(Lock { file }))
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // What stands there is only shown.
                let _ = (&mut file).take(100).read_to_string(&mut holder);
                Ok(Err(Held { holder, path }))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// `O_NOFOLLOW`.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

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
        drop(lock);
        assert!(Lock::try_take(&bus_id).expect("a file").is_ok());
        std::fs::remove_file(held.path).expect("our own");
    }
}
