//! Does a job in a process that owns the device: listens to it, and ends it when a launch, or anything else that the driver is
//! asked for, does not come back.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use compare::report::Report;

use super::process::Worker;
use super::worker::{Begun, Event, Failed, Found, Job, Task};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;

/// How a run ended.
pub enum Ending {
    /// With a report.
    Report(Box<Report>),
    /// Without one.
    Failed(Failed),
    /// Something did not come back in time.
    Hung(Hang),
    /// The process died.
    Died {
        /// Where: ` during a launch (test)`, ` while loading the test`, or nothing.
        place: String,
        /// How, and what it said last.
        how: String,
    },
}

/// What did not come back.
pub struct Hang {
    doing: Doing,
    limit: Duration,
    /// Whether the device answers afterwards, and what the process said last, in words.
    afterwards: String,
}

/// What the process is at.
enum Doing {
    /// A launch: whose (`test`, `timing of the reference`), and how many of those there were.
    Launch(String, u64),
    /// Something that the driver is asked for: `loading the test`.
    Call(String),
    /// Work without the driver.
    Host,
}

impl Hang {
    /// Whether it says something of the test: a launch of it, or that it cannot be loaded. Not `checking the test by the
    /// reference`, which launches the reference.
    pub fn is_the_test_s(&self) -> bool {
        matches!(&self.doing, Doing::Launch(what, _) | Doing::Call(what) if what.ends_with("test"))
    }
}

impl fmt::Display for Hang {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the microseconds that some bytes add.
        let seconds = (self.limit.as_secs_f64() * 100.0).round() / 100.0;
        let afterwards = &self.afterwards;
        match &self.doing {
            Doing::Launch(whose, number) => write!(
                f,
                "launch {number} of the {whose} did not come back within {seconds} s (--launch-timeout): {afterwards}"
            ),
            Doing::Call(what) => {
                write!(f, "{what} did not come back within {seconds} s (${DRIVER_TIMEOUT_VARIABLE}): {afterwards}")
            }
            Doing::Host => {
                write!(f, "the process that runs the kernels said nothing for {seconds} s: {afterwards}")
            }
        }
    }
}

/// How long a device may take to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a driver may take for anything but a launch…
const DRIVER_TIMEOUT: Duration = Duration::from_secs(60);
/// …unless this says otherwise, in seconds…
const DRIVER_TIMEOUT_VARIABLE: &str = "COAX_DRIVER_TIMEOUT";
/// …and so much longer for what it has to move: a slow link's rate.
const BYTES_PER_SECOND: f64 = 100e6;
/// Making inputs and comparing outputs, gigabytes of them, needs no driver; a process that says nothing for this long is lost.
const SILENCE: Duration = Duration::from_secs(600);
/// How often signals are looked for.
const POLL: Duration = Duration::from_millis(100);

/// Does the job in a process of its own. `begun` is called before the first launch.
///
/// # Errors
/// The process cannot be started, or a signal came and something else has to go before this process ends.
pub fn run(job: &Job, images: &[&[u8]], launch_timeout: Duration, begun: &mut dyn FnMut(&Begun)) -> io::Result<Ending> {
    let limits = Limits { launch: launch_timeout, driver: driver_timeout()?, lock: job.wait };
    let interrupt = Interrupt::watch().map_err(io::Error::other)?;
    let worker = Worker::start(job, images)?;
    let ending = Run::new(worker, limits, &interrupt, begun).listen(job);
    if ending.is_none() {
        output::stderr("error: interrupted");
    }
    interrupt.end();
    ending.ok_or_else(|| io::ErrorKind::Interrupted.into())
}

fn driver_timeout() -> io::Result<Duration> {
    let Some(text) = std::env::var_os(DRIVER_TIMEOUT_VARIABLE) else { return Ok(DRIVER_TIMEOUT) };
    let seconds = text.to_str().and_then(|text| super::running::seconds(text).ok());
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        io::Error::other(format!("${DRIVER_TIMEOUT_VARIABLE}: `{}` is no number of seconds", text.to_string_lossy()))
    })
}

#[derive(Clone, Copy)]
struct Limits {
    launch: Duration,
    driver: Duration,
    /// For the device's lock.
    lock: Duration,
}

/// A process at work, as far as it told.
struct Run<'r> {
    begun: &'r mut dyn FnMut(&Begun),
    worker: Worker,
    limits: Limits,
    interrupt: &'r Interrupt,
    progress: Progress,
    doing: Doing,
    limit: Duration,
    deadline: Instant,
    /// By whose they are: which of the two runs first is drawn.
    launched: HashMap<String, u64>,
}

impl<'r> Run<'r> {
    fn new(worker: Worker, limits: Limits, interrupt: &'r Interrupt, begun: &'r mut dyn FnMut(&Begun)) -> Run<'r> {
        Run {
            begun,
            worker,
            limits,
            interrupt,
            progress: Progress::of("rounds"),
            doing: Doing::Host,
            limit: SILENCE,
            deadline: Instant::now() + SILENCE,
            launched: HashMap::new(),
        }
    }

    /// Until it ends; none when a signal came.
    fn listen(mut self, job: &Job) -> Option<Ending> {
        loop {
            if self.interrupt.seen() {
                return None;
            }
            // Before the next event is taken: there may always be one.
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(self.hung(job));
            }
            match self.worker.events.recv_timeout(left.min(POLL)) {
                Ok(event) => {
                    if let Some(ending) = self.hear(event) {
                        return Some(ending);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.died(),
            }
        }
    }

    fn hear(&mut self, event: Event) -> Option<Ending> {
        match event {
            Event::Queued(whose, launches) => {
                let number = self.launched.entry(whose.clone()).or_default();
                *number += u64::from(launches);
                // Several are queued at once only when one is short.
                let doing = Doing::Launch(whose, *number);
                self.begin(doing, self.limits.launch);
            }
            Event::Asked(what, bytes) => {
                let moving = Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND);
                self.begin(Doing::Call(what), self.limits.driver + moving);
            }
            Event::Returned => self.begin(Doing::Host, SILENCE),
            Event::Waiting(holder) => {
                self.begin(Doing::Host, SILENCE + self.limits.lock);
                output::stderr(&format!("note: waiting for the device: {} holds it", resources::printable(&holder)));
            }
            Event::Progress(phase, done, total) => self.progress.phase(&phase, done as usize, total as usize),
            Event::Begun(what) => (self.begun)(&what),
            Event::Compared(report) => return Some(Ending::Report(report)),
            Event::Failed(failed) => return Some(Ending::Failed(failed)),
            Event::Probed | Event::Listed(_) => {
                return Some(Ending::Failed(Failed::NotEstablished("an answer to another job".into())));
            }
        }
        None
    }

    fn begin(&mut self, doing: Doing, limit: Duration) {
        (self.doing, self.limit, self.deadline) = (doing, limit, Instant::now() + limit);
    }

    fn hung(mut self, job: &Job) -> Ending {
        let mut afterwards = match self.worker.end() {
            Some(_) => afterwards(job),
            None => {
                format!("process {} does not even end when killed: the device may need a reset", self.worker.id())
            }
        };
        let last = self.worker.printed.last_lines();
        if !last.is_empty() {
            afterwards.push_str(&format!("; it printed last: {last}"));
        }
        Ending::Hung(Hang { doing: self.doing, limit: self.limit, afterwards })
    }

    /// None when it was ended by the signal that came for this process too.
    fn died(mut self) -> Option<Ending> {
        let how = self.worker.last_words();
        if self.interrupt.seen() {
            return None;
        }
        let place = match self.doing {
            Doing::Launch(whose, _) => format!(" during a launch ({whose})"),
            Doing::Call(what) => format!(" while {what}"),
            Doing::Host => String::new(),
        };
        Some(Ending::Died { place, how })
    }
}

/// The devices of a driver (`hip`, `cuda`), asked in a process of its own: a driver may crash or hang. The error says why there
/// are none.
pub fn devices(kind: &str) -> Result<Vec<Found>, String> {
    let job = Job { device: None, wait: Duration::ZERO, task: Task::List(kind.to_owned()) };
    match answer(&job) {
        Answer::Event(Event::Listed(found)) => Ok(found),
        Answer::Event(Event::Failed(Failed::NotAvailable(why) | Failed::NotEstablished(why))) => Err(why),
        Answer::Event(_) => Err("an answer to another job".into()),
        Answer::Late => Err(format!("the driver does not answer within {} s", PROBE_TIMEOUT.as_secs())),
        Answer::Died(how) => Err(format!("the driver crashed: {how}")),
    }
}

/// Whether the device answers after a launch was killed.
fn afterwards(job: &Job) -> String {
    match answer(&Job { task: Task::Probe, ..job.clone() }) {
        Answer::Event(Event::Probed) => "the device answers again".into(),
        Answer::Event(Event::Failed(Failed::NotAvailable(why) | Failed::NotEstablished(why))) => {
            format!("the device does not answer properly afterwards: {why}")
        }
        Answer::Event(_) => "the device does not answer properly afterwards".into(),
        Answer::Died(how) => format!("the device does not answer afterwards, the driver crashed: {how}"),
        Answer::Late => {
            format!("the device does not answer within {} s afterwards: it may need a reset", PROBE_TIMEOUT.as_secs())
        }
    }
}

/// What came of a short job.
enum Answer {
    /// It ended with this event.
    Event(Event),
    /// It did not end in time.
    Late,
    /// It ended without an answer, this way.
    Died(String),
}

/// Does a short job that needs no images.
fn answer(job: &Job) -> Answer {
    let deadline = Instant::now() + PROBE_TIMEOUT;
    let mut worker = match Worker::start(job, &[]) {
        Ok(worker) => worker,
        Err(error) => return Answer::Died(error.to_string()),
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match worker.events.recv_timeout(left) {
            _ if left.is_zero() => return Answer::Late,
            Ok(Event::Asked(..) | Event::Returned) => {}
            Ok(event) => return Answer::Event(event),
            Err(RecvTimeoutError::Timeout) => return Answer::Late,
            Err(RecvTimeoutError::Disconnected) => return Answer::Died(worker.last_words()),
        }
    }
}
