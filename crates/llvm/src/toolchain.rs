//! What [`crate::open`] returns: the LLVMs that the search found, the one of them that serves each target, and what is
//! known of that target.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use crate::cache::TargetCache;
use crate::comgr::is_comgr;
use crate::engine::Engine;
use crate::search::Search;
use crate::source::{InProcess, Source};
use crate::spawned::{self, Spawned};
use crate::store::{self, Store};
use crate::worker::Pool;
use crate::{
    Assembler, Assembly, Decoder, Encoded, Encoder, Error, ErrorKind, Instruction, Isolation, Listing, Options,
    RoundTrips, Target,
};

/// A library or tool that the search found: opened when a target needs it.
struct Candidate {
    path: PathBuf,
    /// What is stored about it; `None`: nothing ever is.
    stored: Option<store::Library>,
    source: OnceLock<Result<Arc<dyn Source>, Error>>,
}

/// What is known of a target, once somebody has asked.
#[derive(Default)]
struct Slot {
    /// Held by the thread that finds out.
    finding_out: Mutex<()>,
    cache: OnceLock<Result<Arc<TargetCache>, Error>>,
}

/// LLVM, found and ready: a [`Decoder`], an [`Encoder`] and an [`Assembler`].
pub struct Toolchain {
    options: Options,
    candidates: Vec<Candidate>,
    /// Also the targets that nobody knows, so that a folder full of them is not probed file by file.
    targets: RwLock<HashMap<Target, Arc<Slot>>>,
    /// The first that loads.
    first: Arc<dyn Source>,
}

impl Toolchain {
    pub(crate) fn open(options: &Options) -> Result<Self, Error> {
        Self::open_among(options, &Search::from_environment(options.path.clone()))
    }

    /// [`open`](Self::open) with a search of one's own.
    fn open_among(options: &Options, search: &Search) -> Result<Self, Error> {
        let candidates: Vec<Candidate> =
            search.candidates().into_iter().map(|path| Candidate::new(path, options)).collect();
        let mut failures = Vec::new();
        for candidate in &candidates {
            match candidate.source(options) {
                Ok(first) => {
                    let (options, targets) = (options.clone(), RwLock::default());
                    return Ok(Toolchain { options, candidates, targets, first });
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
        let known = self.targets.read().unwrap_or_else(PoisonError::into_inner).get(target).cloned();
        let slot = known.unwrap_or_else(|| {
            let mut targets = self.targets.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(targets.entry(target.clone()).or_default())
        });
        if let Some(known) = slot.cache.get() {
            return known.clone();
        }
        let _finding_out = slot.finding_out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = slot.cache.get() {
            return known.clone();
        }
        let cache = match self.newest_that_knows(target) {
            Ok(cache) => Ok(Arc::new(cache)),
            Err(error) if error.kind() == ErrorKind::UnknownTarget => Err(error),
            Err(error) => return Err(error),
        };
        slot.cache.get_or_init(|| cache).clone()
    }

    fn newest_that_knows(&self, target: &Target) -> Result<TargetCache, Error> {
        let mut refusals = Vec::new();
        for candidate in &self.candidates {
            let Ok(source) = candidate.source(&self.options) else { continue };
            let store = candidate.stored.as_ref().map(|library| library.store(target));
            let image = store.as_ref().and_then(Store::read);
            // What is stored says that the target is known.
            match image.is_some().then_some(()).map_or_else(|| source.check(target), Ok) {
                Ok(()) => return Ok(TargetCache::new(target, source, store, image)),
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
    fn new(path: PathBuf, options: &Options) -> Self {
        // A program, and COMGR, may load another library tomorrow, and stay the same file.
        let is_llvm_itself = !spawned::is_tool(&path) && !is_comgr(&path);
        let folder = options.cache.as_ref().filter(|_| is_llvm_itself);
        let kind = match options.isolation {
            Isolation::Worker => "in workers",
            Isolation::InProcess => "in process",
        };
        let stored = folder.and_then(|folder| store::Library::new(folder, &path, kind));
        Candidate { path, stored, source: OnceLock::new() }
    }

    fn source(&self, options: &Options) -> Result<Arc<dyn Source>, Error> {
        let open = || -> Result<Arc<dyn Source>, Error> {
            if spawned::is_tool(&self.path) {
                return Ok(Arc::new(Spawned::start(&self.path, options.batch_timeout)?));
            }
            let is_known = || self.stored.as_ref().is_some_and(store::Library::is_known);
            Ok(match options.isolation {
                Isolation::Worker => Arc::new(Pool::start(&self.path, options, is_known())?),
                Isolation::InProcess => Arc::new(InProcess::new(Engine::load(&self.path)?)),
            })
        };
        self.source.get_or_init(open).clone()
    }
}

impl Decoder for Toolchain {
    fn describe(&self) -> String {
        self.first.describe()
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

    fn first(&self, target: &Target, code: &[u8]) -> Result<Option<Instruction>, Error> {
        Ok(self.for_target(target)?.decode_until(code, 1)?.instructions().first().copied())
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
