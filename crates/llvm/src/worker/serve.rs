//! The worker's side: requests in on file descriptor 0, a socket, and replies out on the same.

use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;

use super::protocol::{OwnedRequest, Reply};
use crate::disassembler::Disassembler;
use crate::encodings::{Encodings, Outcome, Window};
use crate::library::Library;
use crate::{Error, Target};

/// Serves until the parent closes the socket.
pub(super) fn main(library: &Path) -> ! {
    leave_no_core_file();
    // An error means that the parent is gone; there is nobody to tell.
    let _ = serve(library);
    end()
}

fn serve(path: &Path) -> io::Result<()> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut out = BufWriter::new(socket.try_clone()?);
    let library = match Library::load(path) {
        Ok(library) => library,
        Err(error) => {
            refuse(&error, &mut out)?;
            return out.flush();
        }
    };
    Reply::Ready(&library.to_string()).write(&mut out)?;
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
    let mut learners = HashMap::new();
    for request in requests {
        answer(&request, &library, &mut learners, &mut out)?;
        out.flush()?;
    }
    Ok(())
}

/// A target's context, and what this worker has told of it: each encoding is decoded and sent once.
struct Learner {
    disassembler: Disassembler,
    told: Encodings,
}

fn answer(
    request: &OwnedRequest,
    library: &Arc<Library>,
    learners: &mut HashMap<Target, Learner>,
    out: &mut impl Write,
) -> io::Result<()> {
    if !learners.contains_key(&request.target) {
        match Disassembler::new(library, &request.target) {
            Ok(disassembler) => {
                learners.insert(request.target.clone(), Learner { disassembler, told: Encodings::new() });
            }
            Err(error) => return refuse(&error, out),
        }
    }
    let Some(Learner { disassembler, told }) = learners.get_mut(&request.target) else { return Ok(()) };
    for window in &request.crashed {
        told.insert(window, &Outcome::Crashed);
    }
    let mut offset = 0;
    while let Some(miss) = told.walk(&request.code, offset, request.until, |_, _| ()) {
        if request.careful {
            Reply::Trying(miss).write(out)?;
            out.flush()?;
        }
        let window = Window::at(&request.code, miss);
        let outcome = disassembler.decode(&window);
        Reply::Learnt(miss, outcome).write(out)?;
        told.insert(&window, &outcome);
        offset = miss;
    }
    Reply::Done.write(out)
}

fn refuse(error: &Error, out: &mut impl Write) -> io::Result<()> {
    Reply::Refused(error.kind(), &error.to_string()).write(out)
}

/// Ends at once: LLVM's static destructors must not run while another thread is inside LLVM.
fn end() -> ! {
    // SAFETY: ends the process; nothing is buffered that anybody waits for.
    unsafe { libc::_exit(0) }
}

/// A crash here is expected and dealt with: no 200 MB file about it.
fn leave_no_core_file() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live struct of the type that the call reads.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}
