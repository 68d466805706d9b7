//! What a process printed last. It may print without an end: what came earlier is forgotten.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// So much is kept.
const KEPT_BYTES: usize = 64 << 10;
/// Of that, so many lines are shown…
const SHOWN_LINES: usize = 3;
/// …none longer than this.
const SHOWN_CHARACTERS: usize = 300;
/// How long a reader may be behind a process that has ended. One of its children may hold the pipe for ever.
const PATIENCE: Duration = Duration::from_millis(500);

/// The end of what comes through a pipe, read in a thread.
pub struct Tail {
    kept: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    /// Reads until the pipe is closed.
    pub fn of(mut pipe: impl Read + Send + 'static) -> Tail {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let own = kept.clone();
        let reader = std::thread::spawn(move || {
            let mut piece = vec![0; KEPT_BYTES];
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                keep(&mut own.lock().unwrap_or_else(PoisonError::into_inner), &piece[..length]);
            }
        });
        Tail { kept, reader }
    }

    /// The last lines, of a process that has ended: `a / b / c`; empty when there are none.
    pub fn last_lines(&self) -> String {
        let until = Instant::now() + PATIENCE;
        while !self.reader.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        last_lines(&self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn keep(kept: &mut Vec<u8>, piece: &[u8]) {
    kept.extend_from_slice(piece);
    let surplus = kept.len().saturating_sub(KEPT_BYTES);
    kept.drain(..surplus);
}

fn last_lines(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let filled = text.lines().rev().filter(|line| !line.trim().is_empty());
    let mut last: Vec<String> = filled.take(SHOWN_LINES).map(shorten).collect();
    last.reverse();
    last.join(" / ")
}

fn shorten(line: &str) -> String {
    let mut characters = line.chars();
    let short: String = characters.by_ref().take(SHOWN_CHARACTERS).collect();
    let rest = if characters.next().is_some() { "…" } else { "" };
    format!("{}{rest}", resources::printable(&short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_and_no_more() {
        let text: String = (0..100_000).map(|number| format!("line {number}\n\n")).collect();
        let tail = Tail::of(std::io::Cursor::new(text));
        assert_eq!(tail.last_lines(), "line 99997 / line 99998 / line 99999");
        assert_eq!(tail.kept.lock().expect("not poisoned").len(), KEPT_BYTES);
        let endless = Tail::of(std::io::repeat(b'x').take(1 << 20));
        assert_eq!(endless.last_lines(), format!("{}…", "x".repeat(SHOWN_CHARACTERS)));
        assert_eq!(Tail::of(&b"a\n\x1b[1m\xff"[..]).last_lines().lines().count(), 1);
        assert_eq!(Tail::of(std::io::empty()).last_lines(), "");
    }
}
