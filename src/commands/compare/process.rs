//! The process that owns the device, seen from the one that started it: its pipes, and its end.

use std::io;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use super::channel::{self, Token};
use super::tail::Tail;
use super::worker::{self, Event, Job};

/// How long the system may take to end a process; one that waits for a broken device in the kernel never ends.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The process, which ends when this goes.
pub struct Worker {
    child: Child,
    /// Closed, the worker ends.
    _stdin: Option<ChildStdin>,
    /// What it tells.
    pub events: Receiver<Event>,
    /// By drivers and kernels, to stdout and stderr.
    pub printed: Tail,
}

impl Worker {
    /// Starts it and gives it the job.
    pub fn start(job: &Job, images: &[&[u8]]) -> io::Result<Worker> {
        let mut child = Command::new(std::env::current_exe()?)
            .arg(worker::ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (stdin, Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let token = Token::random();
        let events = channel::listen(stdout, &token);
        let mut worker = Worker { child, _stdin: None, events, printed: Tail::of(stderr) };
        if let Some(mut to) = stdin {
            match worker::hand_over(&mut to, &token, job, images) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => worker._stdin = Some(to),
            }
        }
        Ok(worker)
    }

    /// Its process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends the process; none when that takes too long.
    pub fn end(&mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.wait()
    }

    /// How it ended; none when it does not in time.
    fn wait(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + END_TIMEOUT;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) | Err(_) => return None,
            }
        }
    }

    /// How a process that ended by itself ended.
    pub fn last_words(&mut self) -> String {
        let how = match self.wait() {
            Some(status) => status.to_string(),
            None => {
                self.end();
                "it closed its pipe and did not end".into()
            }
        };
        let last = self.printed.last_lines();
        if last.is_empty() { how } else { format!("{how}: {last}") }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}
