//! What is known about one target: its encodings, their texts, what those assemble to; and the LLVM to ask for the
//! rest.
//!
//! Caching by the instruction's bytes is right because the text depends on nothing else: no symbol lookup is installed,
//! so a branch prints its raw operand whatever its address (tested), and LLVM's C interface keeps no state between
//! instructions (`llvm-objdump` does on gfx1250: its `/*v414*/` comments follow `s_set_vgpr_msb`). Bytes are a function
//! of the text for the same reasons. What one run learnt is there for the next when there is a [`Store`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use crate::by_id::{Texts, Trips};
use crate::by_text::ByText;
use crate::encoder::{DEADLY, Encoded, RoundTrip, RoundTrips};
use crate::encodings::{Encodings, Leaf, Outcome, Window};
use crate::source::Source;
use crate::store::{Image, Store};
use crate::{EncodingId, Error, ErrorKind, Listing, State, Target};

/// See the module.
pub(crate) struct TargetCache {
    target: Target,
    pub source: Arc<dyn Source>,
    encodings: RwLock<Encodings>,
    texts: Arc<Texts>,
    /// Encodings whose round trip is known.
    by_text: OnceLock<RwLock<ByText>>,
    /// Texts that no encoding was found to have.
    encoded: RwLock<HashMap<Box<str>, Encoded, foldhash::fast::RandomState>>,
    round_trips: Arc<Trips>,
    store: Option<Store>,
    /// Whether more is known than is stored.
    learnt: AtomicBool,
}

impl TargetCache {
    /// Starts with what `store` has.
    pub fn new(target: &Target, source: Arc<dyn Source>, store: Option<Store>, image: Option<Image>) -> Self {
        let Image { encodings, texts, trips } = image.unwrap_or_default();
        TargetCache {
            target: target.clone(),
            source,
            encodings: RwLock::new(encodings),
            texts: Arc::new(texts),
            by_text: OnceLock::new(),
            encoded: RwLock::default(),
            round_trips: Arc::new(trips),
            store,
            learnt: AtomicBool::new(false),
        }
    }

    pub fn decode(&self, code: &[u8]) -> Result<Listing, Error> {
        let mut listing = self.decode_until(code, code.len())?;
        let whole = code.len() / 4 * 4;
        if whole < code.len() {
            listing.push(whole, Leaf::NONE.encoding, (code.len() - whole) as u8, Leaf::NONE.state);
        }
        Ok(listing)
    }

    /// The instructions that start before `until`.
    pub fn decode_until(&self, code: &[u8], until: usize) -> Result<Listing, Error> {
        let mut listing = Listing::new(Arc::clone(&self.texts), until);
        let (mut start, mut asked) = (0, None);
        loop {
            let encodings = self.encodings.read().unwrap_or_else(PoisonError::into_inner);
            let push = |offset: usize, leaf: Leaf| listing.push(offset, leaf.encoding, 4 * leaf.words, leaf.state);
            let Some(miss) = encodings.walk(code, start, until, push) else { break };
            drop(encodings);
            if asked == Some(miss) {
                return Err(Error::new(ErrorKind::WorkerFailed, format!("no answer about the word at {miss:#x}")));
            }
            self.source.teach(&self.target, &code[miss..], &mut |window, outcome| self.learn(window, outcome))?;
            (start, asked) = (miss, Some(miss));
        }
        Ok(listing)
    }

    fn learn(&self, window: &Window, outcome: &Outcome) {
        let mut encodings = self.encodings.write().unwrap_or_else(PoisonError::into_inner);
        let id = encodings.insert(window, outcome);
        if let (Some(id), Outcome::Decoded { text, .. }) = (id, outcome) {
            self.texts.set(id, text); // still under the lock: whoever finds the id finds the text
        }
        self.learnt.store(true, Ordering::Relaxed);
    }

    pub fn encode(&self, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        let known = self.known(texts);
        let mut new: Vec<&str> =
            texts.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(text, _)| *text).collect();
        new.sort_unstable(); // in an order that does not depend on the caller
        new.dedup();
        if new.is_empty() {
            return Ok(known.into_iter().flatten().collect());
        }
        let encoded = self.source.encode(&self.target, &new)?;
        let mut others = self.encoded.write().unwrap_or_else(PoisonError::into_inner);
        others.extend(new.iter().map(|text| Box::from(*text)).zip(encoded));
        let missing = || Error::new(ErrorKind::WorkerFailed, "an instruction was not answered for");
        let of =
            |(text, known): (&&str, Option<Encoded>)| known.or_else(|| others.get(*text).cloned()).ok_or_else(missing);
        texts.iter().zip(known).map(of).collect()
    }

    /// What is known of each of `texts`.
    fn known(&self, texts: &[&str]) -> Vec<Option<Encoded>> {
        let by_text = self.by_text().read().unwrap_or_else(PoisonError::into_inner);
        let encodings = self.encodings.read().unwrap_or_else(PoisonError::into_inner);
        let others = self.encoded.read().unwrap_or_else(PoisonError::into_inner);
        let by_encoding = |text: &str| {
            let id = by_text.get(text, &self.texts)?;
            match self.round_trips.get(id)? {
                RoundTrip::Same => encodings.bytes(id).map(Ok),
                RoundTrip::Differs(bytes) => Some(Ok(bytes.clone())),
                RoundTrip::Refused(refusal) => Some(Err(refusal.clone())),
            }
        };
        texts.iter().map(|text| by_encoding(text).or_else(|| others.get(*text).cloned())).collect()
    }

    fn by_text(&self) -> &RwLock<ByText> {
        self.by_text.get_or_init(|| {
            let encodings = self.encodings.read().unwrap_or_else(PoisonError::into_inner);
            let count = encodings.shapes().len();
            let mut by_text = ByText::with_room(count);
            for id in (1..=count as u32).map(EncodingId).filter(|id| self.round_trips.get(*id).is_some()) {
                by_text.insert(id, &self.texts);
            }
            RwLock::new(by_text)
        })
    }

    pub fn round_trips(&self, pieces: &[(&[u8], &Listing)]) -> Result<RoundTrips, Error> {
        let mut new: HashMap<EncodingId, (&[u8], &str), foldhash::fast::RandomState> = HashMap::default();
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
        if !new.is_empty() {
            let texts: Vec<&str> = new.values().map(|(_, text)| *text).collect();
            let encoded = self.encode(&texts)?;
            let mut by_text = self.by_text().write().unwrap_or_else(PoisonError::into_inner);
            for ((id, (bytes, _)), encoded) in new.iter().zip(encoded) {
                self.round_trips.set(*id, RoundTrip::compare(bytes, encoded));
                by_text.insert(*id, &self.texts);
            }
            self.learnt.store(true, Ordering::Relaxed);
        }
        Ok(RoundTrips { known: Arc::clone(&self.round_trips) })
    }

    /// Stores all that is known, with what another process has stored since. Silent: a cache that cannot be written is
    /// none.
    fn save(&self, store: &Store) {
        if let Some(other) = store.changed() {
            self.take_over(&other);
        }
        let encodings = self.encodings.read().unwrap_or_else(PoisonError::into_inner);
        // That LLVM died may have been an accident.
        let trip =
            |id| self.round_trips.get(id).filter(|trip| !matches!(trip, RoundTrip::Refused(r) if r.message == DEADLY));
        store.write(&encodings, &self.texts, &trip);
    }

    fn take_over(&self, other: &Image) {
        let mut encodings = self.encodings.write().unwrap_or_else(PoisonError::into_inner);
        for (i, (shape, words)) in other.encodings.shapes().enumerate() {
            let theirs = EncodingId(i as u32 + 1);
            let Some(ours) = encodings.insert_shaped(&Window::of(words), shape.kept, shape.words) else { continue };
            self.texts.set(ours, other.texts.get(theirs).unwrap_or_default());
            if let Some(trip) = other.trips.get(theirs) {
                self.round_trips.set(ours, trip.clone());
            }
        }
        for window in other.encodings.undecodable() {
            encodings.insert(window, &Outcome::Undecodable);
        }
    }
}

impl Drop for TargetCache {
    fn drop(&mut self) {
        if let Some(store) = self.store.as_ref().filter(|_| !std::thread::panicking() && *self.learnt.get_mut()) {
            self.save(store);
        }
    }
}
