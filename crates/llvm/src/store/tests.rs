//! A cache that is stored and read again, over a source that is no LLVM and counts what it is asked.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Library, Store};
use crate::cache::TargetCache;
use crate::encodings::{self, Window};
use crate::source::{Learn, Source};
use crate::{Assembly, Encoded, Error, Refusal, RoundTrip, State, Target};

/// Words below 8 are instructions of one word, those below 16 of two; of others it knows none, and it dies of 99. Text
/// 3 is not taken, text 5 gives other bytes.
#[derive(Default)]
struct Toy {
    asked: AtomicUsize,
}

impl Source for Toy {
    fn describe(&self) -> String {
        "a toy".into()
    }

    fn check(&self, _: &Target) -> Result<(), Error> {
        Ok(())
    }

    fn teach(&self, _: &Target, code: &[u8], learn: &mut Learn) -> Result<(), Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let window = Window::at(code, 0);
        let text = match window.0[..2] {
            [word @ ..8, _] => format!("one {word}"),
            [word @ ..16, next] => format!("two {word}, {next}"),
            _ => String::new(),
        };
        learn(
            &window,
            &match window.0[0] {
                99 => encodings::Outcome::Crashed,
                16.. => encodings::Outcome::Undecodable,
                word => encodings::Outcome::Decoded { words: if word < 8 { 1 } else { 2 }, text: &text },
            },
        );
        Ok(())
    }

    fn encode(&self, _: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let encode = |text: &&str| {
            let (mnemonic, operands) = text.split_once(' ').unwrap_or_default();
            match (mnemonic, operands) {
                ("one", "3") => Err(Refusal { column: 5, message: "no three".into() }),
                ("one", "5") => Ok([6, 0, 0, 0].into()),
                _ => Ok(operands.split(", ").flat_map(|n| n.parse::<u32>().unwrap_or(0).to_le_bytes()).collect()),
            }
        };
        Ok(texts.iter().map(encode).collect())
    }

    fn assemble(&self, _: &Target, _: &str) -> Result<Assembly, Error> {
        Ok(Assembly::default())
    }
}

const CODE: [u32; 11] = [1, 2, 3, 5, 8, 1, 8, 2, 77, 1, 9];

/// Everything that a caller sees of [`CODE`], and how often the source was asked for it.
fn answers(store: Option<Store>, code: &[u32]) -> Result<(Vec<String>, usize), Error> {
    let source = Arc::new(Toy::default());
    let image = store.as_ref().and_then(Store::read);
    let cache = TargetCache::new(&Target::new("gfx942"), Arc::clone(&source) as Arc<dyn Source>, store, image);
    let code: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    let listing = cache.decode(&code)?;
    let trips = cache.round_trips(&[(&code, &listing)])?;
    let of = |i: &crate::Instruction| {
        let trip: Option<&RoundTrip> = trips.get(i.encoding);
        let encoded = (i.state == State::Decoded).then(|| cache.encode(&[listing.text(i)]));
        format!("{} {} {:?} {} {trip:?} {encoded:?}", i.offset, i.len, i.state, listing.text(i))
    };
    let said = listing.instructions().iter().map(of).collect();
    drop(cache);
    Ok((said, source.asked.load(Ordering::Relaxed)))
}

fn store(folder: &Path, library: &Path) -> io::Result<Store> {
    let library = Library::new(&folder.join("cache"), library, "toy").ok_or(io::ErrorKind::NotFound)?;
    Ok(library.store(&Target::new("gfx942")))
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn what_one_run_learnt_the_next_need_not_ask() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    let (cold, asked) = answers(Some(store(folder.path(), &library)?), &CODE)?;
    assert!(asked > CODE.len() / 2);
    assert_eq!(cold, answers(None, &CODE)?.0);
    assert_eq!(answers(Some(store(folder.path(), &library)?), &CODE)?, (cold.clone(), 0));
    // What comes later is added, and what is not wanted for a while stays.
    let (_, asked) = answers(Some(store(folder.path(), &library)?), &[7, 1, 8, 3])?;
    assert_eq!(asked, 3, "two encodings, and both assembled at once");
    assert_eq!(answers(Some(store(folder.path(), &library)?), &CODE)?, (cold.clone(), 0));
    assert_eq!(answers(Some(store(folder.path(), &library)?), &[8, 3, 7])?.1, 0);
    // Another library is another matter.
    fs::write(&library, "22")?;
    assert!(answers(Some(store(folder.path(), &library)?), &CODE)?.1 > 0);
    Ok(())
}

#[test]
fn a_death_is_not_stored() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    let (cold, _) = answers(Some(store(folder.path(), &library)?), &[1, 99, 2])?;
    assert_eq!(answers(Some(store(folder.path(), &library)?), &[1, 99, 2])?, (cold, 1));
    Ok(())
}

#[test]
fn what_another_process_stored_meanwhile_is_kept() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    let (ours, toy) = (store(folder.path(), &library)?, Arc::new(Toy::default()));
    let cache = TargetCache::new(&Target::new("gfx942"), toy, Some(ours), None);
    cache.decode(&[4, 0, 0, 0])?;
    answers(Some(store(folder.path(), &library)?), &CODE)?;
    drop(cache);
    assert_eq!(answers(Some(store(folder.path(), &library)?), &CODE)?.1, 0);
    let image = store(folder.path(), &library)?.read().ok_or("nothing is stored")?;
    assert!(image.encodings.shapes().any(|(_, words)| words == [4]));
    Ok(())
}

#[test]
fn a_file_that_was_changed_in_any_place_is_not_used() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    let stored = store(folder.path(), &library)?;
    let (path, cold) = (stored.path.clone(), answers(Some(stored), &CODE)?.0);
    let whole = fs::read(&path)?;
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        fs::write(&path, &changed)?;
        assert!(store(folder.path(), &library)?.read().is_none(), "byte {at}");
    }
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len])?;
        assert!(store(folder.path(), &library)?.read().is_none(), "cut at {len}");
    }
    fs::write(&path, [&whole[..], b"\0"].concat())?;
    assert_eq!(answers(Some(store(folder.path(), &library)?), &CODE)?.0, cold);
    assert_eq!(answers(Some(store(folder.path(), &library)?), &CODE)?, (cold, 0), "it was replaced");
    Ok(())
}

/// Whoever can write such a file decides what instructions mean.
#[test]
fn a_file_that_others_can_write_is_not_used_and_ours_is_the_users_alone() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    let stored = store(folder.path(), &library)?;
    let path = stored.path.clone();
    answers(Some(stored), &CODE)?;
    assert_eq!(path.metadata()?.permissions().mode() & 0o777, 0o600);
    assert_eq!(folder.path().join("cache").metadata()?.permissions().mode() & 0o777, 0o700);
    assert!(store(folder.path(), &library)?.read().is_some());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o660))?;
    assert!(store(folder.path(), &library)?.read().is_none());
    Ok(())
}

#[test]
fn a_place_that_cannot_be_written_changes_nothing() -> Outcome {
    let folder = tempfile::tempdir()?;
    let library = folder.path().join("libLLVM.so");
    fs::write(&library, "1")?;
    fs::write(folder.path().join("cache"), "a file where the folder should be")?;
    let (said, _) = answers(Some(store(folder.path(), &library)?), &CODE)?;
    assert_eq!(said, answers(None, &CODE)?.0);
    Ok(())
}
