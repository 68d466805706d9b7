//! The way of events from the process that owns the device to the one that started it: lines of JSON on a pipe.
//!
//! A driver, and kernels with a `printf`, print what they like to stdout. So the worker moves the pipe away from stdout before it
//! loads a driver, and every event begins with a token that was made for this one process: what is printed is no event,
//! wherever it ends up. Code that looks through the process's memory for the token is not stopped by this.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, channel};

use serde::{Deserialize, Serialize};

use super::worker::Event;

/// A report with every sample of a long run has some hundred megabytes.
const MAX_EVENT_BYTES: usize = 1 << 30;

/// What each event begins with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token(String);

impl Token {
    /// One that cannot be guessed: the keys of [`RandomState`] come from the system.
    pub fn random() -> Token {
        let draw = || RandomState::new().hash_one(std::process::id());
        Token(format!("{:016x}{:016x}", draw(), draw()))
    }

    /// With which a line begins that is an event.
    fn prefix(&self) -> Vec<u8> {
        format!("{} ", self.0).into_bytes()
    }
}

/// The worker's end.
pub struct Sender {
    pipe: File,
    prefix: Vec<u8>,
}

/// What was this process's stdout; what is printed goes to stderr from now on.
///
/// # Errors
/// There is no descriptor left.
pub fn take_stdout() -> io::Result<File> {
    let pipe = io::stdout().as_fd().try_clone_to_owned()?; // closed in programs that a driver starts
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(pipe.into())
}

impl Sender {
    /// Sends on this pipe.
    pub fn new(pipe: File, token: &Token) -> Sender {
        Sender { pipe, prefix: token.prefix() }
    }

    /// Sends. Without a parent nobody listens; the end of stdin says so.
    pub fn say(&self, event: &Event) {
        // On a line of its own, whatever somebody else may have written.
        let mut line = [b"\n", &self.prefix[..]].concat();
        if serde_json::to_writer(&mut line, event).is_ok() {
            line.push(b'\n');
            let _ = (&self.pipe).write_all(&line);
        }
    }
}

/// Listens in a thread until the pipe is closed.
pub fn listen(pipe: impl Read + Send + 'static, token: &Token) -> Receiver<Event> {
    let mut lines = Lines { from: BufReader::new(pipe), prefix: token.prefix() };
    let (sender, events) = channel();
    std::thread::spawn(move || {
        while let Some(event) = lines.next_event() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    events
}

struct Lines<R> {
    from: R,
    prefix: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// The next event; whatever is none is passed over.
    fn next_event(&mut self) -> Option<Event> {
        loop {
            let line = self.next_line()?;
            let text = line.strip_prefix(&self.prefix[..]);
            if let Some(event) = text.and_then(|text| serde_json::from_slice(text).ok()) {
                return Some(event);
            }
        }
    }

    /// The next line, or the begin of one that is no event or larger than any: nothing grows without a bound.
    fn next_line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let piece = match self.from.fill_buf() {
                Ok([]) => return None,
                Ok(piece) => piece,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return None,
            };
            let end = piece.iter().position(|byte| *byte == b'\n');
            let part = &piece[..end.unwrap_or(piece.len())];
            let may_be_event = line.len() < self.prefix.len() || line.starts_with(&self.prefix);
            if may_be_event && line.len() + part.len() <= MAX_EVENT_BYTES {
                line.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(token: &Token, text: &[u8]) -> Vec<String> {
        let mut lines = Lines { from: BufReader::with_capacity(7, text), prefix: token.prefix() };
        std::iter::from_fn(|| lines.next_event()).map(|event| format!("{event:?}")).collect()
    }

    #[test]
    fn what_is_printed_is_no_event() {
        let token = Token::random();
        let Token(secret) = &token;
        let text = format!(
            "\"Returned\"\n{secret} \"Returned\"\nabc{secret} \"Probed\"\n\n{secret} \"Probed\"\n{secret} \"Ret"
        );
        assert_eq!(events(&token, text.as_bytes()), ["Returned", "Probed"]);
        let bytes = [b"\xff\xfe\n".as_slice(), text.as_bytes()].concat();
        assert_eq!(events(&token, &bytes), ["Returned", "Probed"]);
        assert!(events(&Token::random(), text.as_bytes()).is_empty(), "the token of another process");
    }

    #[test]
    fn a_line_without_an_end_takes_no_room() {
        let token = Token::random();
        let mut lines = Lines { from: BufReader::new(io::repeat(b'x').take(1 << 24)), prefix: token.prefix() };
        assert!(lines.next_line().is_none());
        let text = [vec![b'x'; 1 << 20], b"\n".to_vec()].concat();
        let mut lines = Lines { from: BufReader::new(&text[..]), prefix: token.prefix() };
        assert!(lines.next_line().is_some_and(|line| line.len() <= 8192), "no more than one piece");
    }
}
