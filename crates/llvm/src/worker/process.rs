//! One worker process, seen from the parent: started, asked, and certainly ended.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::ARGUMENT;
use super::protocol::{Reply, Request, read_frame_into};
use crate::comgr::{MEDDLING_VARIABLES, is_comgr};
use crate::{Error, ErrorKind};

/// This program. On Linux that name holds even after the file was replaced, as an update does.
const THIS_PROGRAM: &str = "/proc/self/exe";
/// So much of an answer is received at once.
const RECEIVED_BYTES: usize = 64 << 10;
/// How much of a dead worker's standard error is quoted.
const QUOTED_BYTES: usize = 1000;

/// A worker that is ready for a request. Dropped, it is killed and waited for.
pub(super) struct Process {
    child: Child,
    socket: BufReader<Deadline>,
    stderr: File,
    /// Where COMGR has its temporary files, which it leaves behind when it dies.
    _folder: Option<TempDir>,
    /// What it said of its library.
    pub description: String,
}

/// Takes in one part of an answer.
pub(super) type Take<'a> = dyn FnMut(Reply) + 'a;

/// Why a request was not answered.
pub(super) enum Failure {
    /// The worker says no, and lives.
    Refused(Error),
    /// It died or hung, after having announced the word at that offset if the request was careful.
    Lost { trying: Option<usize>, why: String },
}

impl Process {
    /// Starts a worker and waits at most `timeout` until it has loaded `library` (12 ms; 130 ms from a cold disk).
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when the library does not load, [`ErrorKind::WorkerFailed`] otherwise.
    pub fn start(library: &Path, timeout: Duration) -> Result<Self, Error> {
        let failed = |why: &str| Error::new(ErrorKind::WorkerFailed, format!("cannot start an LLVM worker: {why}"));
        let mut process = Process::spawn(library).map_err(|error| failed(&error.to_string()))?;
        let mut frame = Vec::new();
        if let Err(error) = process.reply(Instant::now() + timeout, &mut frame) {
            return Err(failed(&process.obituary(&error)));
        }
        process.description = match Reply::parse(&frame) {
            Ok(Reply::Ready(description)) => description.to_owned(),
            Ok(Reply::Refused(kind, message)) => return Err(Error::new(kind, message)),
            _ => return Err(failed("it does not speak the protocol")),
        };
        Ok(process)
    }

    fn spawn(library: &Path) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let stderr = tempfile::tempfile().map_err(no_room)?;
        let program = if Path::new(THIS_PROGRAM).exists() { THIS_PROGRAM.into() } else { std::env::current_exe()? };
        let folder = is_comgr(library).then(|| tempfile::Builder::new().prefix("coax-").tempdir()).transpose();
        let folder = folder.map_err(no_room)?;
        let mut command = Command::new(program);
        if let Some(folder) = &folder {
            command.env("TMPDIR", folder.path());
            for variable in MEDDLING_VARIABLES {
                command.env_remove(variable);
            }
        }
        let child = command
            .arg(ARGUMENT)
            .arg(library)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(stderr.try_clone()?)
            .spawn()?;
        let socket = BufReader::with_capacity(RECEIVED_BYTES, Deadline { socket: ours, at: Instant::now() });
        Ok(Process { child, socket, stderr, _folder: folder, description: String::new() })
    }

    /// Sends `request` and hands what comes back to `take`. `timeout` is for the whole answer, or in a careful request
    /// for each word.
    pub fn ask(&mut self, request: &Request, timeout: Duration, take: &mut Take) -> Result<(), Failure> {
        let mut trying = None;
        self.exchange(request, timeout, take, &mut trying).map_err(|error| match error.downcast::<Error>() {
            Ok(refusal) => Failure::Refused(refusal),
            Err(error) => Failure::Lost { trying, why: self.obituary(&error) },
        })
    }

    /// A refusal is an `io::Error` that wraps an [`Error`].
    fn exchange(
        &mut self,
        request: &Request,
        timeout: Duration,
        take: &mut Take,
        trying: &mut Option<usize>,
    ) -> io::Result<()> {
        let socket = &mut self.socket.get_mut().socket;
        socket.set_write_timeout(Some(timeout))?;
        request.write(socket)?;
        let mut deadline = Instant::now() + timeout;
        let mut frame = Vec::new();
        loop {
            self.reply(deadline, &mut frame)?;
            match Reply::parse(&frame)? {
                Reply::Done => return Ok(()),
                Reply::Refused(kind, message) => return Err(io::Error::other(Error::new(kind, message))),
                Reply::Trying(offset) => (*trying, deadline) = (Some(offset), Instant::now() + timeout),
                Reply::Ready(_) => return Err(io::ErrorKind::InvalidData.into()),
                part => take(part),
            }
        }
    }

    fn reply(&mut self, deadline: Instant, frame: &mut Vec<u8>) -> io::Result<()> {
        self.socket.get_mut().at = deadline;
        read_frame_into(&mut self.socket, frame)
    }

    /// Ends the worker and says how it had ended, with the last that it wrote to standard error.
    fn obituary(&mut self, error: &io::Error) -> String {
        if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let mut said = vec![0; QUOTED_BYTES];
        let end = self.stderr.metadata().map_or(0, |metadata| metadata.len());
        let len = self.stderr.read_at(&mut said, end.saturating_sub(QUOTED_BYTES as u64)).unwrap_or(0);
        format!("{error}; {status}; {}", String::from_utf8_lossy(&said[..len]).trim())
    }
}

/// Whether so much can be written to temporary files: COMGR exits without a word where it cannot.
///
/// # Errors
/// [`ErrorKind::WorkerFailed`] with the folder and the reason.
pub(super) fn check_room(bytes: usize) -> Result<(), Error> {
    let write = || tempfile::tempfile()?.write_all(&vec![0; bytes]);
    write().map_err(|error| Error::new(ErrorKind::WorkerFailed, no_room(error).to_string()))
}

/// A temporary file could not be made.
fn no_room(error: io::Error) -> io::Error {
    let folder = std::env::temp_dir();
    let message =
        format!("no room for temporary files in {}: {error}; set $TMPDIR to a folder with room", folder.display());
    io::Error::new(error.kind(), message)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both do nothing when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A socket whose reads end at a point in time.
struct Deadline {
    socket: UnixStream,
    at: Instant,
}

impl Read for Deadline {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.read(buffer)
    }
}
