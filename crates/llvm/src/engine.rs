//! What a library may be, an LLVM or a COMGR, and the two things that are made of either for one target.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::comgr::{self, Comgr, is_comgr};
use crate::disassembler::Disassembler;
use crate::emitter::Emitter;
use crate::encodings::{Outcome, Window};
use crate::library::Library;
use crate::{Assembly, Encoded, Error, ErrorKind, Target};

/// Decodes one target's code; used by one thread at a time.
pub(crate) trait Disassemble {
    /// Decodes the instruction at the start of `window`.
    fn decode(&mut self, window: &Window) -> Outcome<'_>;
}

/// Assembles for one target; used by one thread at a time.
pub(crate) trait Emit: Send {
    /// As [`crate::Encoder::encode`].
    fn encode(&mut self, texts: &[&str]) -> Result<Vec<Encoded>, Error>;

    /// As [`crate::Assembler::assemble`].
    fn assemble(&mut self, source: &str) -> Result<Assembly, Error>;
}

/// A library in this process.
#[derive(Clone)]
pub(crate) enum Engine {
    Llvm(Arc<Library>),
    Comgr(Arc<Comgr>),
}

impl Engine {
    /// Loads the library at `path`. Its name says which it is.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with the loader's message.
    pub fn load(path: &Path) -> Result<Self, Error> {
        Ok(if is_comgr(path) {
            Engine::Comgr(Arc::new(Comgr::load(path)?))
        } else {
            Engine::Llvm(Library::load(path)?)
        })
    }

    /// # Errors
    /// [`ErrorKind::UnknownTarget`].
    pub fn disassembler(&self, target: &Target) -> Result<Box<dyn Disassemble + Send>, Error> {
        Ok(match self {
            Engine::Llvm(library) => Box::new(Disassembler::new(library, target)?),
            Engine::Comgr(comgr) => Box::new(comgr::Disassembler::new(comgr, target)?),
        })
    }

    /// # Errors
    /// [`ErrorKind::UnknownTarget`].
    pub fn emitter(&self, target: &Target) -> Result<Box<dyn Emit>, Error> {
        Ok(match self {
            Engine::Llvm(library) => Box::new(Emitter::new(library, target)?),
            Engine::Comgr(comgr) => Box::new(comgr::Emitter::new(comgr, target)?),
        })
    }

    /// As [`crate::link`].
    ///
    /// # Errors
    /// [`ErrorKind::LinkFailed`].
    pub fn link(&self, object: &[u8]) -> Result<Vec<u8>, Error> {
        match self {
            Engine::Llvm(library) => Err(Error::new(ErrorKind::LinkFailed, format!("{library} has no linker"))),
            Engine::Comgr(comgr) => comgr.link(object),
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Engine::Llvm(library) => library.fmt(f),
            Engine::Comgr(comgr) => comgr.fmt(f),
        }
    }
}

impl Disassemble for Disassembler {
    fn decode(&mut self, window: &Window) -> Outcome<'_> {
        Disassembler::decode(self, window)
    }
}

impl Emit for Emitter {
    fn encode(&mut self, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        Ok(Emitter::encode(self, texts))
    }

    fn assemble(&mut self, source: &str) -> Result<Assembly, Error> {
        Ok(Emitter::assemble(self, source))
    }
}
