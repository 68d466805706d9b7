//! Instructions to text and text to instructions, by the LLVM that is installed, found and loaded at run time: no LLVM
//! headers, no link dependency, and nothing else of this program knows that LLVM exists.
//!
//! [`open`] finds the library and returns a [`Toolchain`], which is a [`Decoder`], an [`Encoder`] and an [`Assembler`];
//! [`link`] makes a code object of what the assembler made. Four ideas carry the crate:
//!
//! - LLVM crashes on some words and texts, so it runs in worker processes ([`worker`]) unless asked otherwise. What
//!   kills it is refused alone.
//! - Code repeats: 14.2 million instructions of real kernels have 292,381 distinct encodings. Each is decoded once
//!   ([`Decoder::decode`] walks a cache and LLVM sees only what is new), and once it is checked whether its text gives
//!   its bytes again ([`Encoder::round_trips`]).
//! - A processor that LLVM does not know is "only a warning" there, and wrong text or a dead process follows. Here it
//!   is [`ErrorKind::UnknownTarget`], found out before the first instruction.
//! - LLVM's C interface assembles only as part of compiling a module. What that adds to an object is avoided or taken
//!   off, so that the object is that of the assembler alone (`extras`).

#![allow(unsafe_code)] // this crate alone talks to a C library; every block says why it is sound

mod assembler;
mod by_id;
mod by_text;
mod c_api;
mod cache;
mod comgr;
mod directives;
mod disassembler;
mod edges;
mod emitter;
mod encoder;
mod encodings;
mod engine;
mod error;
mod extras;
mod instructions;
mod library;
mod linker;
mod listing;
mod probe;
mod search;
mod source;
mod spawned;
mod store;
mod string_table;
mod target;
mod toolchain;
pub mod worker;

use std::path::PathBuf;
use std::time::Duration;

pub use assembler::{Assembler, Assembly, Diagnostic, Severity};
pub use encoder::{Encoded, Encoder, Refusal, RoundTrip, RoundTrips};
pub use error::{Error, ErrorKind};
pub use linker::{Linker, comgr, link, linker};
pub use listing::{EncodingId, Instruction, Listing, State};
pub use store::{cache_folder, cache_size};
pub use target::Target;
pub use toolchain::Toolchain;

/// Turns machine code into text. Shared by all threads; the answer does not depend on how many there are.
pub trait Decoder: Send + Sync {
    /// Which LLVM is used, its version, path and isolation; for `doctor` and for error messages.
    fn describe(&self) -> String;

    /// Which LLVM decodes `target`: the newest of those found that knows it.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] when none does, [`ErrorKind::WorkerFailed`] when no worker could be asked.
    fn describe_for(&self, target: &Target) -> Result<String, Error>;

    /// Its name alone, `LLVM 22.1.8`, for messages about what it found.
    ///
    /// # Errors
    /// As [`Decoder::describe_for`].
    fn name_for(&self, target: &Target) -> Result<String, Error>;

    /// Decodes `code` from its first byte to its last. A word that LLVM does not know takes 4 bytes
    /// ([`State::Undecodable`], or [`State::Crashed`] when LLVM died of it) and decoding goes on behind it.
    ///
    /// # Errors
    /// Never because of what `code` contains: only an unknown target, a lost worker, or code of 4 GiB and more.
    fn decode(&self, target: &Target, code: &[u8]) -> Result<Listing, Error>;

    /// The first instruction of `code`, which has at least a word. What follows in `code` may be decoded with it, so
    /// that asking for that next costs nothing: give a few hundred bytes.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    fn first(&self, target: &Target, code: &[u8]) -> Result<Option<Instruction>, Error>;
}

/// Where LLVM runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Isolation {
    /// In child processes that may die without harm: for files from outside. Needs
    /// [`worker::main_if_requested`] at the start of `main`.
    #[default]
    Worker,
    /// In this process: a word that crashes LLVM ends the program. For tests, benches and code that we made ourselves.
    InProcess,
}

/// How [`open`] finds and runs LLVM.
#[derive(Clone, Debug)]
pub struct Options {
    /// The library, the program `llvm-objdump`, or a folder that has one of them (`--llvm`, `$COAX_LLVM`). When given,
    /// nothing else is tried.
    pub path: Option<PathBuf>,
    /// Where LLVM runs.
    pub isolation: Isolation,
    /// At most this many worker processes at a time; started as they are needed.
    pub workers: usize,
    /// A worker that needs longer for 64 KiB of code, 4,000 instructions' texts or 1 MiB of a source text is taken for
    /// hung (it needs some 20 ms for the first two, 150 ms for the last).
    pub batch_timeout: Duration,
    /// Where what is learnt of a library is kept for the next run, [`cache_folder`] above all; `None`: nowhere.
    pub cache: Option<PathBuf>,
}

impl Default for Options {
    /// `$COAX_LLVM` or a search; one worker per core; 10 s per batch; nothing is kept.
    fn default() -> Self {
        Options {
            path: std::env::var_os("COAX_LLVM").filter(|path| !path.is_empty()).map(PathBuf::from),
            isolation: Isolation::default(),
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            batch_timeout: Duration::from_secs(10),
            cache: None,
        }
    }
}

/// Finds LLVM and makes it ready.
///
/// # Errors
/// [`ErrorKind::NotFound`] when no LLVM loads: the message lists where it looked and what to install.
/// [`ErrorKind::WorkerFailed`] when this program cannot be started as a worker.
pub fn open(options: &Options) -> Result<Toolchain, Error> {
    Toolchain::open(options)
}
