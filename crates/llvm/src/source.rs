//! Where what the cache does not know is learnt from; and the simplest such place, LLVM in this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::disassembler::Disassembler;
use crate::encodings::{Outcome, Window};
use crate::library::Library;
use crate::{Error, Target};

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
}

/// LLVM in this process: a disassembler per target and thread.
pub(crate) struct InProcess {
    library: Arc<Library>,
    idle: Mutex<HashMap<Target, Vec<Disassembler>>>,
}

impl InProcess {
    pub fn new(library: Arc<Library>) -> Self {
        InProcess { library, idle: Mutex::default() }
    }

    fn with_disassembler<R>(&self, target: &Target, work: impl FnOnce(&mut Disassembler) -> R) -> Result<R, Error> {
        let take = || self.idle.lock().unwrap_or_else(PoisonError::into_inner).get_mut(target)?.pop();
        let mut disassembler = match take() {
            Some(disassembler) => disassembler,
            None => Disassembler::new(&self.library, target)?,
        };
        let result = work(&mut disassembler);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.get_mut(target) {
            Some(disassemblers) => disassemblers.push(disassembler),
            None => drop(idle.insert(target.clone(), vec![disassembler])),
        }
        Ok(result)
    }
}

impl Source for InProcess {
    fn describe(&self) -> String {
        format!("{}, in this process", self.library)
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        self.with_disassembler(target, |_| ())
    }

    fn teach(&self, target: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        let window = Window::at(code, 0);
        self.with_disassembler(target, |disassembler| learn(&window, &disassembler.decode(&window)))
    }
}
