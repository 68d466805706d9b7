//! Single bytes changed at random places, with a fixed seed: no panic, no hang.

use crate::process;
use crate::samples::{self, Answer, Sample};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Changed bytes over all formats.
const FLIPS: usize = 10_000;
/// Far more than any sample takes, far less than a hang.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % limit as u64) as usize
    }

    /// A place in `bytes` and another value for it: one bit in half of the cases.
    fn change(&mut self, bytes: &[u8]) -> (usize, u8) {
        let at = self.below(bytes.len());
        let mask = if self.below(2) == 0 { 1 << self.below(8) } else { 1 + self.below(255) as u8 };
        (at, bytes[at] ^ mask)
    }
}

/// What became of the changed bytes of one format.
#[derive(Default)]
struct Tally {
    refused: usize,
    same: usize,
    other: usize,
    other_triggers: usize,
}

#[test]
fn a_flipped_byte_never_panics_or_hangs() {
    let (sender, receiver) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        let samples: Vec<Sample> =
            samples::texts().into_iter().chain(samples::binaries()).chain(samples::json()).collect();
        let mut random = Random(20_261_130);
        let mut tallies = Vec::new();
        for sample in &samples {
            let whole = sample.answer();
            let mut tally = Tally::default();
            for _ in 0..FLIPS.div_ceil(samples.len()) {
                let (at, value) = random.change(&sample.bytes);
                let _ = sender.send((sample.name, at, value));
                let answer = sample.answer_with_byte(at, value);
                match answer {
                    Answer::Refused => tally.refused += 1,
                    _ if answer == whole => tally.same += 1,
                    _ if answer.triggers() == whole.triggers() => tally.other += 1,
                    _ => tally.other_triggers += 1,
                }
            }
            tallies.push((sample.name, tally));
        }
        tallies
    });
    let mut last = ("nothing", 0, 0);
    loop {
        match receiver.recv_timeout(TIME_LIMIT) {
            Ok(change) => last = change,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                panic!("{}: no answer with byte {:#x} = {:#x}", last.0, last.1, last.2)
            }
        }
    }
    let tallies = worker.join().unwrap_or_else(|_| panic!("{}: panic with byte {:#x} = {:#x}", last.0, last.1, last.2));
    for (name, Tally { refused, same, other, other_triggers }) in tallies {
        println!("{name}: {refused} refused, {same} the same, {other} other columns, {other_triggers} other triggers");
    }
}

/// Decoding happens in the program. Its verdict agrees with its exit code whatever the code of the kernel has become.
#[test]
fn a_flipped_byte_of_code_is_answered_by_the_program() {
    let mut random = Random(1);
    for sample in samples::binaries().iter().filter(|sample| sample.name.ends_with("object")) {
        for _ in 0..40 {
            let (at, value) = random.change(&sample.bytes);
            let mut bytes = sample.bytes.clone();
            bytes[at] = value;
            std::fs::write(&sample.path, &bytes).expect("the sample is written");
            let arguments = ["summarize", &sample.path.display().to_string(), "-q"].map(str::to_owned);
            let outcome = process::run_coax(&arguments, Path::new("."), &[]).expect("coax runs");
            let stdout = String::from_utf8_lossy(&outcome.stdout);
            let stderr = String::from_utf8_lossy(&outcome.stderr);
            let expected = match outcome.exit {
                0 => "RESULT: OK",
                2 => "RESULT: NOT TRUSTWORTHY",
                other => panic!("{}: byte {at:#x} = {value:#x}: exit {other}\n{stderr}", sample.name),
            };
            assert_eq!(stdout.lines().last(), Some(expected), "{}: byte {at:#x} = {value:#x}", sample.name);
            assert!(!stderr.contains("panicked"), "{}: byte {at:#x} = {value:#x}:\n{stderr}", sample.name);
        }
    }
}
