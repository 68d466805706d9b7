//! Signals while a command runs.

use std::process::{Child, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// While it lives, a signal that would end this process is only noted: what was made for a command (a worktree,
/// temporaries) is to go first.
pub struct Interrupt {
    seen: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
}

impl Interrupt {
    /// Begins to watch.
    pub fn watch() -> Result<Interrupt, String> {
        let interrupt = Interrupt { seen: Arc::default(), over: Arc::default() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register_conditional_default(signal, interrupt.over.clone())
                .and_then(|_| signal_hook::flag::register(signal, interrupt.seen.clone()))
                .map_err(|e| format!("no signal handler: {e}"))?;
        }
        Ok(interrupt)
    }

    /// Waits for the command, and ends it when a signal comes.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus, String> {
        const POLL: Duration = Duration::from_millis(20);
        const GRACE: u32 = 100; // polls
        let mut left = GRACE;
        loop {
            let interrupted = self.seen.load(Ordering::Relaxed);
            match child.try_wait().map_err(|e| format!("the command cannot be waited for: {e}"))? {
                Some(_) if interrupted => return Err("interrupted".into()),
                Some(status) => return Ok(status),
                // From a terminal the command has the signal too, and ends by itself.
                None if interrupted && left == 0 => drop(child.kill()),
                None if interrupted => left -= 1,
                None => {}
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
