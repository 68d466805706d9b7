//! Progress of long work: on a terminal, after a second, and never into a pipe.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Work that ends sooner shows nothing.
const QUIET_FOR: Duration = Duration::from_secs(1);

/// A bar on stderr that appears when the work turns out to be long.
pub struct Progress {
    started: Instant,
    /// What is counted.
    unit: &'static str,
    bar: Option<Mutex<Option<ProgressBar>>>,
}

impl Progress {
    /// Nothing is shown unless stderr is a terminal.
    pub fn new() -> Progress {
        Progress::of("files")
    }

    /// As [`Progress::new`], of other things than files.
    pub fn of(unit: &'static str) -> Progress {
        Progress { started: Instant::now(), unit, bar: std::io::stderr().is_terminal().then(Mutex::default) }
    }

    /// Says how far a phase of the work is.
    pub fn phase(&self, phase: &str, done: usize, total: usize) {
        self.at(done, total);
        if let Some(Ok(Some(bar))) = self.bar.as_ref().map(|bar| bar.lock().map(|bar| bar.clone())) {
            bar.set_message(phase.to_owned());
        }
    }

    /// Says how far the work is.
    pub fn at(&self, done: usize, total: usize) {
        let Some(bar) = &self.bar else { return };
        if self.started.elapsed() < QUIET_FOR {
            return;
        }
        let Ok(mut bar) = bar.lock() else { return };
        let bar = bar.get_or_insert_with(|| {
            let bar = ProgressBar::new(0);
            if let Ok(style) =
                ProgressStyle::with_template(&format!("{{bar:30}} {{msg}} {{pos}}/{{len}} {}, {{eta}} left", self.unit))
            {
                bar.set_style(style);
            }
            bar
        });
        bar.set_length(total as u64);
        bar.set_position(done as u64);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(Ok(Some(bar))) = self.bar.as_ref().map(|bar| bar.lock().map(|mut b| b.take())) {
            bar.finish_and_clear();
        }
    }
}
