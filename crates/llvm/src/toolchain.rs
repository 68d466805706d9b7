//! What [`crate::open`] returns: the LLVMs that the search found, the one of them that serves each target, and what is
//! known of that target.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::cache::TargetCache;
use crate::engine::Engine;
use crate::search::Search;
use crate::source::{InProcess, Source};
use crate::spawned::{self, Spawned};
use crate::worker::Pool;
use crate::{
    Assembler, Assembly, Decoder, Encoded, Encoder, Error, ErrorKind, Isolation, Listing, Options, RoundTrips, Target,
};

/// A library or tool that the search found: opened when a target needs it.
struct Candidate {
    path: PathBuf,
    source: Option<Result<Arc<dyn Source>, Error>>,
}

/// LLVM, found and ready: a [`Decoder`], an [`Encoder`] and an [`Assembler`].
pub struct Toolchain {
    options: Options,
    candidates: Mutex<Vec<Candidate>>,
    /// Also the targets that nobody knows, so that a folder full of them is not probed file by file.
    targets: RwLock<HashMap<Target, Result<Arc<TargetCache>, Error>>>,
    description: String,
}

impl Toolchain {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        Self::open_among(options, &Search::from_environment(options.path.clone()))
    }

    /// [`open`](Self::open) with a search of one's own.
    fn open_among(options: &Options, search: &Search) -> Result<Self, Error> {
        let mut candidates: Vec<Candidate> =
            search.candidates().into_iter().map(|path| Candidate { path, source: None }).collect();
        let mut failures = Vec::new();
        for candidate in &mut candidates {
            match candidate.source(options) {
                Ok(source) => {
                    let description = source.describe();
                    let (candidates, targets) = (Mutex::new(candidates), RwLock::default());
                    return Ok(Toolchain { options: options.clone(), candidates, targets, description });
                }
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    failures.push(format!("{}: {error}", candidate.path.display()));
                }
                Err(error) => return Err(error),
            }
        }
        Err(search.not_found(&failures))
    }

    fn for_target(&self, target: &Target) -> Result<Arc<TargetCache>, Error> {
        if let Some(known) = self.targets.read().unwrap_or_else(PoisonError::into_inner).get(target) {
            return known.clone();
        }
        let cache = match self.newest_that_knows(target) {
            Ok(source) => Ok(Arc::new(TargetCache::new(target, source))),
            Err(error) if error.kind() == ErrorKind::UnknownTarget => Err(error),
            Err(error) => return Err(error),
        };
        let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
        targets.entry(target.clone()).or_insert(cache).clone()
    }

    fn newest_that_knows(&self, target: &Target) -> Result<Arc<dyn Source>, Error> {
        let mut refusals = Vec::new();
        for candidate in self.candidates.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            let Ok(source) = candidate.source(&self.options) else { continue };
            match source.check(target) {
                Ok(()) => return Ok(source),
                Err(error) if error.kind() == ErrorKind::UnknownTarget => refusals.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        let way_out = "check the spelling, install a newer LLVM (Debian, Ubuntu: apt install libllvm22), \
                       or name one with --llvm PATH or $COAX_LLVM";
        Err(Error::new(ErrorKind::UnknownTarget, format!("{}\n{way_out}", refusals.join("\n"))))
    }
}

impl Candidate {
    fn source(&mut self, options: &Options) -> Result<Arc<dyn Source>, Error> {
        let open = || -> Result<Arc<dyn Source>, Error> {
            if spawned::is_tool(&self.path) {
                return Ok(Arc::new(Spawned::start(&self.path, options.batch_timeout)?));
            }
            Ok(match options.isolation {
                Isolation::Worker => Arc::new(Pool::start(&self.path, options)?),
                Isolation::InProcess => Arc::new(InProcess::new(Engine::load(&self.path)?)),
            })
        };
        self.source.get_or_insert_with(open).clone()
    }
}

impl Decoder for Toolchain {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn describe_for(&self, target: &Target) -> Result<String, Error> {
        Ok(self.for_target(target)?.source.describe())
    }

    fn name_for(&self, target: &Target) -> Result<String, Error> {
        let description = self.describe_for(target)?;
        Ok(description.split(" (").next().unwrap_or_default().to_owned())
    }

    fn decode(&self, target: &Target, code: &[u8]) -> Result<Listing, Error> {
        if u32::try_from(code.len()).is_err() {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} bytes of code, at most 4 GiB − 1 decode", code.len()),
            ));
        }
        self.for_target(target)?.decode(code)
    }
}

impl Encoder for Toolchain {
    fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        self.for_target(target)?.encode(texts)
    }

    fn round_trips(&self, target: &Target, pieces: &[(&[u8], &Listing)]) -> Result<RoundTrips, Error> {
        self.for_target(target)?.round_trips(pieces)
    }
}

impl Assembler for Toolchain {
    fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error> {
        self.for_target(target)?.source.assemble(target, source)
    }
}
