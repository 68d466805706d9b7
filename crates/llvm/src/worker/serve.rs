//! The worker's side: requests in on file descriptor 0, a socket, and replies out on the same.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc;

use super::protocol::{OwnedRequest, OwnedStretch, Reply};
use crate::encodings::{Encodings, Outcome, Window};
use crate::engine::{Disassemble, Emit, Engine};
use crate::{Assembly, Error, Target};

/// What a worker may map; LLVM itself and the longest source text take 1 GiB.
const MEMORY_BYTES: u64 = 8 << 30;
/// Answers are sent in such pieces: with 8 KiB, half of the time went into changing processes.
const SENT_BYTES: usize = 64 << 10;

/// Serves until the parent closes the socket.
pub(super) fn main(library: &Path) -> ! {
    limit_resources();
    // An error means that the parent is gone; there is nobody to tell.
    let _ = serve(library);
    end()
}

fn serve(path: &Path) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut out = BufWriter::with_capacity(SENT_BYTES, socket.try_clone()?);
    let engine = match Engine::load(path) {
        Ok(engine) => engine,
        Err(error) => {
            refuse(&error, &mut out)?;
            return out.flush();
        }
    };
    Reply::Ready(&engine.to_string()).write(&mut out)?;
    out.flush()?;

    // Requests are read on a thread of their own, so that the parent's end is seen even while LLVM hangs.
    let (sender, requests) = mpsc::channel();
    std::thread::spawn(move || {
        let mut input = BufReader::new(socket);
        while let Ok(request) = OwnedRequest::read(&mut input) {
            let _ = sender.send(request);
        }
        end()
    });
    let mut server = Server { engine, learners: HashMap::new(), emitters: HashMap::new() };
    for request in requests {
        match server.answer(&request, &mut out).map_err(io::Error::downcast::<Error>) {
            Ok(()) => Reply::Done.write(&mut out)?,
            Err(Ok(error)) => refuse(&error, &mut out)?,
            Err(Err(parent_is_gone)) => return Err(parent_is_gone),
        }
        out.flush()?;
    }
    Ok(())
}

/// What this worker has made for each target.
struct Server {
    engine: Engine,
    learners: HashMap<Target, Learner>,
    emitters: HashMap<Target, Box<dyn Emit>>,
}

/// A target's context, and what this worker has told of it: each encoding is decoded and sent once.
struct Learner {
    disassembler: Box<dyn Disassemble + Send>,
    told: Encodings,
}

impl Server {
    /// A refusal is an `io::Error` that wraps an [`Error`].
    fn answer(&mut self, request: &OwnedRequest, out: &mut impl Write) -> io::Result<()> {
        match request {
            OwnedRequest::Decode(stretch) => self.learner(&stretch.target)?.decode(stretch, out),
            OwnedRequest::Encode { target, texts } => {
                let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
                let encoded = self.emitter(target)?.encode(&texts).map_err(io::Error::other)?;
                encoded.into_iter().try_for_each(|encoded| Reply::Encoded(encoded).write(out))
            }
            OwnedRequest::Assemble { target, source } => {
                let assembly = self.emitter(target)?.assemble(source).map_err(io::Error::other)?;
                let Assembly { object, diagnostics } = assembly;
                diagnostics.into_iter().try_for_each(|diagnostic| Reply::Diagnosed(diagnostic).write(out))?;
                object.map_or(Ok(()), |object| Reply::Object(&object).write(out))
            }
            OwnedRequest::Link { object } => {
                Reply::Object(&self.engine.link(object).map_err(io::Error::other)?).write(out)
            }
        }
    }

    fn learner(&mut self, target: &Target) -> io::Result<&mut Learner> {
        Ok(match self.learners.entry(target.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let disassembler = self.engine.disassembler(target).map_err(io::Error::other)?;
                new.insert(Learner { disassembler, told: Encodings::new() })
            }
        })
    }

    fn emitter(&mut self, target: &Target) -> io::Result<&mut Box<dyn Emit>> {
        Ok(match self.emitters.entry(target.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.engine.emitter(target).map_err(io::Error::other)?),
        })
    }
}

impl Learner {
    fn decode(&mut self, stretch: &OwnedStretch, out: &mut impl Write) -> io::Result<()> {
        for window in &stretch.crashed {
            self.told.insert(window, &Outcome::Crashed);
        }
        let mut offset = 0;
        while let Some(miss) = self.told.walk(&stretch.code, offset, stretch.until, |_, _| ()) {
            if stretch.careful {
                Reply::Trying(miss).write(out)?;
                out.flush()?;
            }
            let window = Window::at(&stretch.code, miss);
            let outcome = self.disassembler.decode(&window);
            Reply::Learnt(miss, outcome).write(out)?;
            self.told.insert(&window, &outcome);
            offset = miss;
        }
        Ok(())
    }
}

fn refuse(error: &Error, out: &mut impl Write) -> io::Result<()> {
    Reply::Refused(error.kind(), &error.to_string()).write(out)
}

/// Ends at once: LLVM's static destructors must not run while another thread is inside LLVM.
fn end() -> ! {
    // SAFETY: ends the process; nothing is buffered that anybody waits for.
    unsafe { libc::_exit(0) }
}

/// A crash here is expected and dealt with: no 200 MB file about it. And a text that asks for terabytes
/// (`.zero 1 << 40`) gets none.
fn limit_resources() {
    let limits = [(libc::RLIMIT_CORE, 0), (libc::RLIMIT_AS, MEMORY_BYTES)];
    for (resource, most) in limits {
        let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
        // SAFETY: a live struct of the type that the call reads.
        unsafe { libc::setrlimit(resource, &limit) };
    }
}
