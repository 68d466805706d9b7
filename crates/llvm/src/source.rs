//! Where what the cache does not know is learnt from; and the simplest such place, LLVM in this process.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::encodings::{Outcome, Window};
use crate::engine::{Disassemble, Emit, Engine};
use crate::{Assembly, Encoded, Error, Target};

/// Takes in what one window decodes to.
pub(crate) type Learn<'a> = dyn FnMut(&Window, &Outcome) + 'a;

/// One LLVM behind the cache.
pub(crate) trait Source: Send + Sync {
    /// Version, path, and how it runs.
    fn describe(&self) -> String;

    /// # Errors
    /// [`crate::ErrorKind::UnknownTarget`] when this LLVM does not know `target`.
    fn check(&self, target: &Target) -> Result<(), Error>;

    /// Calls `learn` for the instruction at the start of `code`, which is not empty, and for as many behind it as
    /// suits; each is either new or was taught before.
    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error>;

    /// What each of `texts`, which are many and different, is as an instruction.
    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error>;

    /// As [`crate::Assembler::assemble`].
    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error>;
}

/// LLVM in this process: a disassembler and an emitter per target and thread.
pub(crate) struct InProcess {
    engine: Engine,
    disassemblers: Idle<Box<dyn Disassemble + Send>>,
    emitters: Idle<Box<dyn Emit>>,
}

impl InProcess {
    pub fn new(engine: Engine) -> Self {
        InProcess { engine, disassemblers: Idle::default(), emitters: Idle::default() }
    }

    fn with_disassembler<R>(&self, target: &Target, work: impl FnOnce(&mut dyn Disassemble) -> R) -> Result<R, Error> {
        self.disassemblers.lend(target, || self.engine.disassembler(target), |lent| work(lent.as_mut()))
    }

    fn with_emitter<R>(
        &self,
        target: &Target,
        work: impl FnOnce(&mut dyn Emit) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.emitters.lend(target, || self.engine.emitter(target), |lent| work(lent.as_mut()))?
    }
}

impl Source for InProcess {
    fn describe(&self) -> String {
        format!("{}, in this process", self.engine)
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        self.with_disassembler(target, |_| ())
    }

    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        let window = Window::at(code, 0);
        self.with_disassembler(target, |disassembler| learn(&window, &disassembler.decode(&window)))
    }

    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        self.with_emitter(target, |emitter| emitter.encode(texts))
    }

    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error> {
        self.with_emitter(target, |emitter| emitter.assemble(source))
    }
}

/// What threads have used for a target and the next may use.
struct Idle<T>(Mutex<HashMap<Target, Vec<T>>>);

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Idle(Mutex::default())
    }
}

impl<T> Idle<T> {
    fn lend<R>(
        &self,
        target: &Target,
        make: impl FnOnce() -> Result<T, Error>,
        work: impl FnOnce(&mut T) -> R,
    ) -> Result<R, Error> {
        let take = || self.0.lock().unwrap_or_else(PoisonError::into_inner).get_mut(target)?.pop();
        let mut lent = take().map_or_else(make, Ok)?;
        let result = work(&mut lent);
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.entry(target.clone()).or_default().push(lent);
        Ok(result)
    }
}
