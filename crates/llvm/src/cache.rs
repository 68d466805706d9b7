//! What is known about one target: its encodings, their texts, what those assemble to; and the LLVM to ask for the
//! rest.
//!
//! Caching by the instruction's bytes is right because the text depends on nothing else: no symbol lookup is installed,
//! so a branch prints its raw operand whatever its address (tested), and LLVM's C interface keeps no state between
//! instructions (`llvm-objdump` does on gfx1250: its `/*v414*/` comments follow `s_set_vgpr_msb`). Bytes are a function
//! of the text for the same reasons.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::by_id::{ById, Texts};
use crate::encoder::{Encoded, RoundTrip, RoundTrips};
use crate::encodings::{Encodings, Leaf, Outcome, Window};
use crate::source::Source;
use crate::{EncodingId, Error, ErrorKind, Listing, State, Target};

/// See the module.
pub(crate) struct TargetCache {
    target: Target,
    pub source: Arc<dyn Source>,
    encodings: RwLock<Encodings>,
    texts: Arc<Texts>,
    encoded: RwLock<HashMap<Box<str>, Encoded>>,
    round_trips: Arc<ById<RoundTrip>>,
}

impl TargetCache {
    pub fn new(target: &Target, source: Arc<dyn Source>) -> Self {
        TargetCache {
            target: target.clone(),
            source,
            encodings: RwLock::new(Encodings::new()),
            texts: Arc::new(Texts::new()),
            encoded: RwLock::default(),
            round_trips: Arc::new(ById::new()),
        }
    }

    pub fn decode(&self, code: &[u8]) -> Result<Listing, Error> {
        let mut listing = Listing::new(Arc::clone(&self.texts), code.len());
        let (mut start, mut asked) = (0, None);
        loop {
            let encodings = self.encodings.read().unwrap_or_else(PoisonError::into_inner);
            let push = |offset: usize, leaf: Leaf| listing.push(offset, leaf.encoding, 4 * leaf.words, leaf.state);
            let Some(miss) = encodings.walk(code, start, code.len(), push) else { break };
            drop(encodings);
            if asked == Some(miss) {
                return Err(Error::new(ErrorKind::WorkerFailed, format!("no answer about the word at {miss:#x}")));
            }
            self.source.teach(&self.target, &code[miss..], &mut |window, outcome| self.learn(window, outcome))?;
            (start, asked) = (miss, Some(miss));
        }
        let whole = code.len() / 4 * 4;
        if whole < code.len() {
            listing.push(whole, Leaf::NONE.encoding, (code.len() - whole) as u8, Leaf::NONE.state);
        }
        Ok(listing)
    }

    fn learn(&self, window: &Window, outcome: &Outcome) {
        let mut encodings = self.encodings.write().unwrap_or_else(PoisonError::into_inner);
        let id = encodings.insert(window, outcome);
        if let (Some(id), Outcome::Decoded { text, .. }) = (id, outcome) {
            self.texts.set(id, (*text).into()); // still under the lock: whoever finds the id finds the text
        }
    }

    pub fn encode(&self, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        let known = self.encoded.read().unwrap_or_else(PoisonError::into_inner);
        let mut new: Vec<&str> = texts.iter().copied().filter(|text| !known.contains_key(*text)).collect();
        drop(known);
        new.sort_unstable(); // in an order that does not depend on the caller
        new.dedup();
        if !new.is_empty() {
            let encoded = self.source.encode(&self.target, &new)?;
            let mut known = self.encoded.write().unwrap_or_else(PoisonError::into_inner);
            known.extend(new.iter().map(|text| Box::from(*text)).zip(encoded));
        }
        let known = self.encoded.read().unwrap_or_else(PoisonError::into_inner);
        let missing = || Error::new(ErrorKind::WorkerFailed, "an instruction was not answered for");
        texts.iter().map(|text| known.get(*text).cloned().ok_or_else(missing)).collect()
    }

    pub fn round_trips(&self, pieces: &[(&[u8], &Listing)]) -> Result<RoundTrips, Error> {
        let mut new: HashMap<EncodingId, (&[u8], &str)> = HashMap::new();
        for (code, listing) in pieces {
            assert!(Arc::ptr_eq(&listing.texts, &self.texts), "a listing of another target or toolchain");
            for instruction in listing.instructions().iter().filter(|instruction| instruction.state == State::Decoded) {
                if self.round_trips.get(instruction.encoding).is_none() {
                    let start = instruction.offset as usize;
                    let bytes = code.get(start..start + usize::from(instruction.len)).unwrap_or_default();
                    new.insert(instruction.encoding, (bytes, listing.text(instruction)));
                }
            }
        }
        let texts: Vec<&str> = new.values().map(|(_, text)| *text).collect();
        for ((id, (bytes, _)), encoded) in new.iter().zip(self.encode(&texts)?) {
            self.round_trips.set(*id, RoundTrip::compare(bytes, encoded));
        }
        Ok(RoundTrips { known: Arc::clone(&self.round_trips) })
    }
}
