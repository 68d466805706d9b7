//! Starts the process that owns the device, listens to it, and ends it when a launch does not come back.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use compare::report::Report;

use super::worker::{self, Event, Failed, Found, Job, Task};
use crate::output;
use crate::progress::Progress;

/// How a run ended.
pub enum Ending {
    /// With a report.
    Report(Box<Report>),
    /// Without one.
    Failed(Failed),
    /// A launch did not come back in time.
    Hung {
        /// Which one: `test`, `reference`, `timing of the test`.
        what: String,
        /// How many of those there were.
        launch: u64,
        /// Whether the device answers afterwards, in words.
        afterwards: String,
    },
    /// The process died.
    Died {
        /// What was queued, if anything.
        what: Option<String>,
        /// How, and what it said last.
        how: String,
    },
}

/// How long a device may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// Nothing but a launch takes long; a driver that says nothing for this long is taken for hung.
const SILENCE: Duration = Duration::from_secs(600);

/// Does the job in a process of its own.
pub fn run(job: &Job, images: &[&[u8]], launch_timeout: Duration) -> std::io::Result<Ending> {
    let progress = Progress::of("rounds");
    let mut worker = Worker::start(job, images)?;
    let mut queued: Option<String> = None;
    // By whose they are: which of the two runs first is drawn.
    let mut launched: HashMap<String, u64> = HashMap::new();
    let mut deadline = Instant::now() + SILENCE.max(job.wait + launch_timeout);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match worker.events.recv_timeout(left) {
            Ok(Ok(event)) => match event {
                Event::Queued(what, launches) => {
                    *launched.entry(what.clone()).or_default() += u64::from(launches);
                    queued = Some(what);
                    // Several are queued at once only when one is short.
                    deadline = Instant::now() + launch_timeout;
                }
                Event::Returned => {
                    queued = None;
                    deadline = Instant::now() + SILENCE;
                }
                Event::Progress(phase, done, total) => progress.phase(&phase, done as usize, total as usize),
                Event::Waiting(holder) => output::stderr(&format!("note: waiting for the device: {holder} holds it")),
                Event::Compared(report) => return Ok(Ending::Report(report)),
                Event::Failed(failed) => return Ok(Ending::Failed(failed)),
                Event::Probed | Event::Listed(_) => {
                    return Ok(Ending::Failed(Failed::NotEstablished("an answer to another job".into())));
                }
            },
            // Drivers print what they like.
            Ok(Err(line)) => output::stderr(&resources::printable(&line)),
            Err(RecvTimeoutError::Timeout) => {
                worker.end();
                let what = queued.unwrap_or_else(|| "the driver".into());
                let launch = launched.get(&what).copied().unwrap_or_default();
                let afterwards = afterwards(job);
                return Ok(Ending::Hung { what, launch, afterwards });
            }
            Err(RecvTimeoutError::Disconnected) => {
                let how = worker.last_words();
                return Ok(Ending::Died { what: queued, how });
            }
        }
    }
}

/// The devices of a driver (`hip`, `cuda`), asked in a process of its own: a driver may crash or hang. The error says why there
/// are none.
pub fn devices(kind: &str) -> Result<Vec<Found>, String> {
    let job = Job { device: None, wait: Duration::ZERO, task: Task::List(kind.to_owned()) };
    let mut worker = Worker::start(&job, &[]).map_err(|error| error.to_string())?;
    let deadline = Instant::now() + PROBE_TIMEOUT;
    loop {
        match worker.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(Event::Listed(found))) => return Ok(found),
            Ok(Ok(Event::Failed(Failed::NotAvailable(why) | Failed::NotEstablished(why)))) => return Err(why),
            Ok(_) => {} // drivers print what they like
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("the driver does not answer within {} s", PROBE_TIMEOUT.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => return Err(format!("the driver crashed: {}", worker.last_words())),
        }
    }
}

/// Whether the device answers after a launch was killed.
fn afterwards(job: &Job) -> String {
    let probe = Job { task: Task::Probe, ..job.clone() };
    let answer = Worker::start(&probe, &[]).map(|worker| worker.events.recv_timeout(PROBE_TIMEOUT));
    match answer {
        Ok(Ok(Ok(Event::Probed))) => "the device answers again".into(),
        Ok(Ok(Ok(Event::Failed(Failed::NotAvailable(why) | Failed::NotEstablished(why))))) => {
            format!("the device does not answer properly afterwards: {why}")
        }
        _ => format!("the device does not answer within {} s afterwards: it may need a reset", PROBE_TIMEOUT.as_secs()),
    }
}

struct Worker {
    child: Child,
    /// Closed, the worker ends.
    _stdin: Option<ChildStdin>,
    events: Receiver<Result<Event, String>>,
    errors: tempfile::NamedTempFile,
}

impl Worker {
    fn start(job: &Job, images: &[&[u8]]) -> std::io::Result<Worker> {
        let errors = tempfile::NamedTempFile::new()?;
        let mut child = Command::new(std::env::current_exe()?)
            .arg(worker::ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.reopen()?)
            .spawn()?;
        let mut stdin = child.stdin.take();
        if let Some(to) = &mut stdin
            && let Err(error) = worker::hand_over(to, job, images)
            && error.kind() != std::io::ErrorKind::BrokenPipe
        {
            let _ = child.kill();
            return Err(error);
        }
        let (sender, events) = channel();
        if let Some(stdout) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(stdout).lines() {
                    let Ok(line) = line else { return };
                    let event = serde_json::from_str(&line).map_err(|_| line);
                    if sender.send(event).is_err() {
                        return;
                    }
                }
            });
        }
        Ok(Worker { child, _stdin: stdin, events, errors })
    }

    fn end(&mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// How a process that ended by itself ended.
    fn last_words(&mut self) -> String {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        let said = std::fs::read(self.errors.path()).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let last: Vec<&str> = said.lines().rev().filter(|line| !line.trim().is_empty()).take(3).collect();
        let last: Vec<String> = last.iter().rev().map(|line| resources::printable(line).into_owned()).collect();
        if last.is_empty() { status } else { format!("{status}: {}", last.join(" / ")) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}
