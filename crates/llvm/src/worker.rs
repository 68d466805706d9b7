//! LLVM in processes of its own: the same program, re-executed with a hidden first argument. Code goes in, text comes
//! out, in length-prefixed frames over a socket pair (`protocol`).
//!
//! A worker that dies or hangs is replaced (`pool`). It ends when its parent does, even in the middle of a hang,
//! because a thread of its own waits for the end of the socket (`serve`). Its standard output goes nowhere, its
//! standard error into a temporary file that is quoted when it dies, and it leaves no core file.

mod link;
mod pool;
mod process;
mod protocol;
mod serve;

pub(crate) use link::Linker;
pub(crate) use pool::Pool;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, ErrorKind};

/// The first argument that makes this program a worker; the second is the library's path.
const ARGUMENT: &str = "__llvm-worker";

/// Whether `main` can become a worker.
static OFFERED: AtomicBool = AtomicBool::new(false);

/// Becomes a worker and never returns when this process was started as one. Call it first in `main`, before threads,
/// argument parsing and output: [`crate::Isolation::Worker`] works only in a program that does.
///
/// Leave `SIGPIPE` ignored, as Rust's runtime sets it.
pub fn main_if_requested() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().is_some_and(|first| first == ARGUMENT) {
        serve::main(&PathBuf::from(arguments.next().unwrap_or_default()));
    }
    OFFERED.store(true, Ordering::Relaxed);
}

/// # Errors
/// [`ErrorKind::WorkerFailed`] when this program is not prepared to be a worker.
fn check_offered() -> Result<(), Error> {
    if OFFERED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let message = "this program does not call llvm::worker::main_if_requested at the start of main";
    Err(Error::new(ErrorKind::WorkerFailed, message))
}
