//! The workers of one library: started as they are needed, lent to one thread each, replaced when they die; and the
//! search for the word that kills.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::process::{Failure, Process, check_room};
use super::protocol::{MAX_SOURCE_BYTES, Reply, Request, Stretch};
use crate::comgr::is_comgr;
use crate::encoder::DEADLY;
use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::source::{Learn, Source};
use crate::{Assembly, Diagnostic, Encoded, Error, ErrorKind, Options, Refusal, Target};

/// How much code a worker is given at once: some 9,000 instructions, 10 ms when all are new.
const BATCH_BYTES: usize = 64 << 10;
/// How many texts a worker is given at once: enough to make up for starting the assembler, and 12 ms at most.
const MIN_BATCH_TEXTS: usize = 250;
const MAX_BATCH_TEXTS: usize = 2000;
/// So many batches for each worker, so that none waits long for the last.
const BATCHES_PER_WORKER: usize = 4;
/// More than what COMGR writes for a batch of texts.
const COMGR_BYTES: usize = 1 << 20;
/// What loses its worker so often is to blame.
const TRIES: u32 = 2;
/// For so much of a source text the time of one batch is allowed.
const TIMED_SOURCE_BYTES: u32 = 1 << 20;
/// So many workers may be lost for no word's sake before a batch is given up; and so many while they start.
const TOLERATED_ACCIDENTS: u32 = 5;

/// See the module.
pub(crate) struct Pool {
    library: PathBuf,
    batch_timeout: Duration,
    limit: usize,
    /// What a worker said of its library.
    library_description: OnceLock<String>,
    workers: Mutex<Workers>,
    returned: Condvar,
    crashed: Mutex<HashMap<Target, Vec<Window>>>,
}

struct Workers {
    idle: Vec<Process>,
    lent: usize,
}

impl Pool {
    /// Starts the first worker, unless `is_known`: then the library is known to load, and workers start when there
    /// is something to ask.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when `library` does not load, [`ErrorKind::WorkerFailed`] when this program is not
    /// prepared to be a worker or cannot be started.
    pub fn start(library: &Path, options: &Options, is_known: bool) -> Result<Self, Error> {
        super::check_offered()?;
        let pool = Pool {
            library: library.to_owned(),
            batch_timeout: options.batch_timeout,
            limit: options.workers.max(1),
            library_description: OnceLock::new(),
            workers: Mutex::new(Workers { idle: Vec::new(), lent: 0 }),
            returned: Condvar::new(),
            crashed: Mutex::default(),
        };
        if !is_known {
            drop(pool.borrow()?);
        }
        Ok(pool)
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
        if self.library_description.get().is_none() {
            let _ = self.borrow(); // its worker says it
        }
        let path = || format!("LLVM ({})", self.library.display());
        let library = self.library_description.get().cloned().unwrap_or_else(path);
        format!("{library}, in up to {} worker processes", self.limit)
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        self.teach(target, &[], &mut |_, _| ())
    }

    /// A batch whose worker is lost is asked again carefully, of a new worker, which announces each word before LLVM
    /// sees it. When that one is lost as well, the batch goes on at the word that it had announced: what comes before
    /// is learnt. A careful worker that is lost at the very first word of its batch has lost its life to that word, for
    /// the one before it was lost there too; the word is learnt as crashed, and the batch goes on behind it. A worker
    /// lost to something else (a signal, no memory) so costs time and blames nobody.
    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        let batch = &code[..code.len().min(BATCH_BYTES + MAX_INSTRUCTION_BYTES)];
        let mut loan = self.borrow()?;
        let (mut start, mut careful, mut accidents) = (0, false, 0);
        loop {
            let (code, crashed) = (&batch[start..], self.crashed(target));
            let stretch = Stretch { target, careful, until: BATCH_BYTES - start, crashed: &crashed, code };
            let take = &mut |reply: Reply| {
                if let Reply::Learnt(offset, outcome) = reply {
                    learn(&Window::at(code, offset), &outcome);
                }
            };
            let (trying, why) = match loan.revive()?.ask(&Request::Decode(stretch), self.batch_timeout, take) {
                Ok(()) => return Ok(()),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Lost { trying, why }) => (trying, why),
            };
            loan.process = None;
            careful = true;
            match trying {
                Some(0) => {
                    let culprit = Window::at(code, 0);
                    self.remember_crashed(target, culprit);
                    learn(&culprit, &Outcome::Crashed);
                    start += 4;
                }
                Some(offset) => start += offset,
                None if accidents < TOLERATED_ACCIDENTS => accidents += 1,
                None => {
                    self.check_room(0)?;
                    let message = format!("LLVM workers keep dying before they decode anything: {why}");
                    return Err(Error::new(ErrorKind::WorkerFailed, message));
                }
            }
            if start >= BATCH_BYTES {
                return Ok(());
            }
        }
    }

    /// Shared out among as many workers as there may be.
    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        let share = texts.len().div_ceil(self.limit * BATCHES_PER_WORKER).clamp(MIN_BATCH_TEXTS, MAX_BATCH_TEXTS);
        let batches: Vec<&[&str]> = texts.chunks(share).collect();
        if let [batch] = batches[..] {
            return self.encode_batch(target, batch);
        }
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            while let Some((i, batch)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, batches.get(i)?)))
            {
                done.push((i, self.encode_batch(target, batch)));
            }
            done
        };
        let mut done: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..self.limit.min(batches.len())).map(|_| scope.spawn(work)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
        });
        done.sort_by_key(|(i, _)| *i);
        done.into_iter().map(|(_, encoded)| encoded).collect::<Result<Vec<_>, _>>().map(|batches| batches.concat())
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error> {
        if source.len() > MAX_SOURCE_BYTES {
            let message = format!("{} bytes of assembly, at most {MAX_SOURCE_BYTES} are assembled", source.len());
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        let request = Request::Assemble { target, source };
        let timeout = self.batch_timeout * (1 + source.len() as u32 / TIMED_SOURCE_BYTES);
        let mut lost = String::new();
        for _ in 0..TRIES {
            let mut assembly = Assembly::default();
            let mut loan = self.borrow()?;
            let answer = loan.revive()?.ask(&request, timeout, &mut |reply| match reply {
                Reply::Diagnosed(diagnostic) => assembly.diagnostics.push(diagnostic),
                Reply::Object(object) => assembly.object = Some(object.to_vec()),
                _ => {}
            });
            match answer {
                Ok(()) => return Ok(assembly),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Lost { why, .. }) => (loan.process, lost) = (None, why),
            }
        }
        self.check_room(source.len())?;
        Ok(Assembly { object: None, diagnostics: vec![Diagnostic::of_death(&lost)] })
    }
}

impl Pool {
    /// A batch whose worker is lost is halved, until one text is left that costs its worker's life every time.
    fn encode_batch(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        for _ in 0..TRIES {
            let mut encoded = Vec::with_capacity(texts.len());
            let mut loan = self.borrow()?;
            let request = Request::Encode { target, texts };
            let answer = loan.revive()?.ask(&request, self.batch_timeout, &mut |reply| {
                if let Reply::Encoded(text) = reply {
                    encoded.push(text);
                }
            });
            match answer {
                Ok(()) if encoded.len() == texts.len() => return Ok(encoded),
                Ok(()) => {
                    return Err(Error::new(ErrorKind::WorkerFailed, "an LLVM worker did not answer for all texts"));
                }
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Lost { .. }) => loan.process = None,
            }
            drop(loan);
            if texts.len() > 1 {
                let (left, right) = texts.split_at(texts.len() / 2);
                return Ok([self.encode_batch(target, left)?, self.encode_batch(target, right)?].concat());
            }
        }
        self.check_room(0)?;
        Ok(vec![Err(Refusal { column: 0, message: DEADLY.to_owned() })])
    }

    /// Before a text is blamed for a death: COMGR writes text and object to temporary files.
    fn check_room(&self, source_bytes: usize) -> Result<(), Error> {
        if is_comgr(&self.library) { check_room(2 * source_bytes + COMGR_BYTES) } else { Ok(()) }
    }

    fn crashed(&self, target: &Target) -> Vec<Window> {
        let crashed = self.crashed.lock().unwrap_or_else(PoisonError::into_inner);
        crashed.get(target).cloned().unwrap_or_default()
    }

    fn remember_crashed(&self, target: &Target, window: Window) {
        let mut crashed = self.crashed.lock().unwrap_or_else(PoisonError::into_inner);
        crashed.entry(target.clone()).or_default().push(window);
    }
}

/// A new worker, which may be lost to an accident while it starts.
pub(super) fn start(library: &Path, timeout: Duration) -> Result<Process, Error> {
    let mut accidents = 0;
    loop {
        match Process::start(library, timeout) {
            Err(error) if error.kind() == ErrorKind::WorkerFailed && accidents < TOLERATED_ACCIDENTS => accidents += 1,
            result => return result,
        }
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
            let process = start(&self.pool.library, self.pool.batch_timeout)?;
            self.pool.library_description.get_or_init(|| process.description.clone());
            self.process = Some(process);
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
