//! Signals while something is there that has to go before this process ends: a temporary, a worktree.

use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// While one lives, a signal that would end this process is only noted. They may be nested: the handlers are the
/// process's, set up once.
pub struct Interrupt(());

struct Handlers {
    /// The signal that came; 0 for none.
    seen: Arc<AtomicUsize>,
    /// Whether signals do what they do by default.
    idle: Arc<AtomicBool>,
    watching: Mutex<usize>,
}

static HANDLERS: OnceLock<Result<Handlers, String>> = OnceLock::new();

impl Handlers {
    fn get() -> Result<&'static Handlers, String> {
        let set_up = || {
            let handlers = Handlers { seen: Arc::default(), idle: Arc::new(true.into()), watching: Mutex::default() };
            for signal in [SIGINT, SIGTERM, SIGHUP] {
                signal_hook::flag::register_conditional_default(signal, handlers.idle.clone())
                    .and_then(|_| signal_hook::flag::register_usize(signal, handlers.seen.clone(), signal as usize))
                    .map_err(|e| format!("no signal handler: {e}"))?;
            }
            Ok(handlers)
        };
        HANDLERS.get_or_init(set_up).as_ref().map_err(String::clone)
    }

    /// Counts those that watch; says how many there are then.
    fn count(&self, change: impl FnOnce(usize) -> usize) -> usize {
        let mut watching = self.watching.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *watching = change(*watching);
        self.idle.store(*watching == 0, Ordering::SeqCst);
        *watching
    }
}

impl Interrupt {
    /// Begins to watch.
    pub fn watch() -> Result<Interrupt, String> {
        Handlers::get()?.count(|watching| watching + 1);
        Ok(Interrupt(()))
    }

    /// Whether a signal has come.
    pub fn seen(&self) -> bool {
        Handlers::get().is_ok_and(|handlers| handlers.seen.load(Ordering::SeqCst) != 0)
    }

    /// Stops watching, everything being tidied up. A signal that came does now what it does by default, unless something
    /// else is still watching: that has to see to it.
    pub fn end(self) {
        std::mem::forget(self);
        if let Ok(handlers) = Handlers::get()
            && handlers.count(|watching| watching.saturating_sub(1)) == 0
        {
            let signal = handlers.seen.load(Ordering::SeqCst);
            if signal != 0 {
                let _ = signal_hook::low_level::emulate_default_handler(signal as i32);
            }
        }
    }

    /// Waits for the command, and ends it when a signal comes.
    pub fn wait(&self, child: &mut Child) -> Result<ExitStatus, String> {
        const POLL: Duration = Duration::from_millis(20);
        const GRACE: u32 = 100; // polls
        let mut left = GRACE;
        loop {
            let interrupted = self.seen();
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
        if let Ok(handlers) = Handlers::get() {
            handlers.count(|watching| watching.saturating_sub(1));
        }
    }
}
