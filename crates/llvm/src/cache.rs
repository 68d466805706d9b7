//! The decoder that [`crate::open`] returns: per target, what is known of its encodings, and an LLVM to ask for the
//! rest.
//!
//! Caching by the instruction's bytes is right because the text depends on nothing else: no symbol lookup is installed,
//! so a branch prints its raw operand whatever its address (tested), and LLVM's C interface keeps no state between
//! instructions (`llvm-objdump` does on gfx1250: its `/*v414*/` comments follow `s_set_vgpr_msb`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::encodings::{Encodings, Leaf, Outcome, Window};
use crate::library::Library;
use crate::search::Search;
use crate::source::{InProcess, Source};
use crate::spawned::{self, Spawned};
use crate::texts::Texts;
use crate::worker::Pool;
use crate::{Decoder, Error, ErrorKind, Isolation, Listing, Options, Target};

/// What is known about one target.
struct TargetCache {
    source: Arc<dyn Source>,
    encodings: RwLock<Encodings>,
    texts: Arc<Texts>,
}

impl TargetCache {
    fn new(source: Arc<dyn Source>) -> Self {
        TargetCache { source, encodings: RwLock::new(Encodings::new()), texts: Arc::new(Texts::new()) }
    }

    fn learn(&self, window: &Window, outcome: &Outcome) {
        let mut encodings = self.encodings.write().unwrap_or_else(PoisonError::into_inner);
        let id = encodings.insert(window, outcome);
        if let (Some(id), Outcome::Decoded { text, .. }) = (id, outcome) {
            self.texts.set(id, text); // still under the lock: whoever finds the id finds the text
        }
    }
}

/// A library or tool that the search found: opened when a target needs it.
struct Candidate {
    path: PathBuf,
    source: Option<Result<Arc<dyn Source>, Error>>,
}

/// See the module.
pub(crate) struct CachedDecoder {
    options: Options,
    candidates: Mutex<Vec<Candidate>>,
    /// Also the targets that nobody knows, so that a folder full of them is not probed file by file.
    targets: RwLock<HashMap<Target, Result<Arc<TargetCache>, Error>>>,
    description: String,
}

impl CachedDecoder {
    pub fn open(options: &Options) -> Result<Self, Error> {
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
                    return Ok(CachedDecoder { options: options.clone(), candidates, targets, description });
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
            Ok(source) => Ok(Arc::new(TargetCache::new(source))),
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
                Isolation::InProcess => Arc::new(InProcess::new(Library::load(&self.path)?)),
            })
        };
        self.source.get_or_insert_with(open).clone()
    }
}

impl Decoder for CachedDecoder {
    fn describe(&self) -> String {
        self.description.clone()
    }

    fn describe_for(&self, target: &Target) -> Result<String, Error> {
        Ok(self.for_target(target)?.source.describe())
    }

    fn decode(&self, target: &Target, code: &[u8]) -> Result<Listing, Error> {
        if u32::try_from(code.len()).is_err() {
            return Err(Error::new(
                ErrorKind::TooLarge,
                format!("{} bytes of code, at most 4 GiB − 1 decode", code.len()),
            ));
        }
        let cache = self.for_target(target)?;
        let mut listing = Listing::new(Arc::clone(&cache.texts), code.len());
        let (mut start, mut asked) = (0, None);
        loop {
            let encodings = cache.encodings.read().unwrap_or_else(PoisonError::into_inner);
            let push = |offset: usize, leaf: Leaf| listing.push(offset, leaf.encoding, 4 * leaf.words, leaf.state);
            let Some(miss) = encodings.walk(code, start, code.len(), push) else { break };
            drop(encodings);
            if asked == Some(miss) {
                return Err(Error::new(ErrorKind::WorkerFailed, format!("no answer about the word at {miss:#x}")));
            }
            cache.source.teach(target, &code[miss..], &mut |window, outcome| cache.learn(window, outcome))?;
            (start, asked) = (miss, Some(miss));
        }
        let whole = code.len() / 4 * 4;
        if whole < code.len() {
            listing.push(whole, Leaf::NONE.encoding, (code.len() - whole) as u8, Leaf::NONE.state);
        }
        Ok(listing)
    }
}
