//! The workers of one library: started as they are needed, lent to one thread each, replaced when they die; and the
//! search for the word that kills.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::process::{Failure, Process};
use super::protocol::Request;
use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::source::{Learn, Source};
use crate::{Error, ErrorKind, Options, Target};

/// How much code a worker is given at once: some 9,000 instructions, 10 ms when all are new.
const BATCH_BYTES: usize = 64 << 10;

/// See the module.
pub(crate) struct Pool {
    library: PathBuf,
    batch_timeout: Duration,
    limit: usize,
    description: String,
    workers: Mutex<Workers>,
    returned: Condvar,
    crashed: Mutex<HashMap<Target, Vec<Window>>>,
}

struct Workers {
    idle: Vec<Process>,
    lent: usize,
}

impl Pool {
    /// Starts the first worker.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when `library` does not load, [`ErrorKind::WorkerFailed`] when this program is not
    /// prepared to be a worker or cannot be started.
    pub fn start(library: &Path, options: &Options) -> Result<Self, Error> {
        if !super::is_offered() {
            let message = "this program does not call llvm::worker::main_if_requested at the start of main";
            return Err(Error::new(ErrorKind::WorkerFailed, message));
        }
        let first = Process::start(library)?;
        let limit = options.workers.max(1);
        Ok(Pool {
            library: library.to_owned(),
            batch_timeout: options.batch_timeout,
            limit,
            description: format!("{}, in up to {limit} worker processes", first.description),
            workers: Mutex::new(Workers { idle: vec![first], lent: 0 }),
            returned: Condvar::new(),
            crashed: Mutex::default(),
        })
    }

    fn workers(&self) -> MutexGuard<'_, Workers> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker for this thread alone; waits for one when all are lent.
    fn borrow(&self) -> Result<Loan<'_>, Error> {
        let mut workers = self.workers();
        while workers.lent >= self.limit {
            workers = self.returned.wait(workers).unwrap_or_else(PoisonError::into_inner);
        }
        workers.lent += 1;
        let idle = workers.idle.pop();
        drop(workers);
        let mut loan = Loan { pool: self, process: idle };
        loan.revive()?;
        Ok(loan)
    }
}

impl Source for Pool {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        self.teach(target, &[], &mut |_, _| ())
    }

    /// A batch whose worker is lost is asked again carefully, of a new worker, which announces each word before LLVM sees
    /// it. A word at which that one is lost too is the culprit: it is learnt as crashed, and the batch goes on behind it.
    /// When the second attempt goes well, the first worker was lost to something else (a signal, no memory).
    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        let batch = &code[..code.len().min(BATCH_BYTES + MAX_INSTRUCTION_BYTES)];
        let mut loan = self.borrow()?;
        let (mut start, mut careful) = (0, false);
        loop {
            let crashed = self.crashed(target);
            let until = BATCH_BYTES.saturating_sub(start);
            let request = Request { target, careful, until, crashed: &crashed, code: &batch[start..] };
            match loan.revive()?.ask(&request, self.batch_timeout, learn) {
                Ok(()) => return Ok(()),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Lost { trying, why }) => {
                    loan.process = None;
                    match trying {
                        Some(offset) => {
                            let window = Window::at(request.code, offset);
                            self.remember_crashed(target, window);
                            learn(&window, &Outcome::Crashed);
                            start += offset + 4;
                        }
                        None if !careful => careful = true,
                        None => {
                            let message = format!("an LLVM worker died twice before it decoded anything: {why}");
                            return Err(Error::new(ErrorKind::WorkerFailed, message));
                        }
                    }
                }
            }
            if start >= batch.len().min(BATCH_BYTES) && start > 0 {
                return Ok(());
            }
        }
    }
}

impl Pool {
    fn crashed(&self, target: &Target) -> Vec<Window> {
        let crashed = self.crashed.lock().unwrap_or_else(PoisonError::into_inner);
        crashed.get(target).cloned().unwrap_or_default()
    }

    fn remember_crashed(&self, target: &Target, window: Window) {
        let mut crashed = self.crashed.lock().unwrap_or_else(PoisonError::into_inner);
        crashed.entry(target.clone()).or_default().push(window);
    }
}

/// A worker on loan. Returned on drop, and what was learnt from it is in the cache by then: a worker tells each
/// encoding only once.
struct Loan<'a> {
    pool: &'a Pool,
    process: Option<Process>,
}

impl Loan<'_> {
    /// The worker; a new one if the last was lost.
    fn revive(&mut self) -> Result<&mut Process, Error> {
        if self.process.is_none() {
            self.process = Some(Process::start(&self.pool.library)?);
        }
        self.process.as_mut().ok_or_else(|| Error::new(ErrorKind::WorkerFailed, "no worker"))
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        let mut workers = self.pool.workers();
        workers.lent -= 1;
        workers.idle.extend(self.process.take());
        self.pool.returned.notify_one();
    }
}
