//! Damaged input of every format: refused, or the same figures; never a panic, a hang or a false OK.
//!
//! Damage that coax cannot see is named here exactly, with why. Files are read through the library, as `summarize
//! --metadata-only` does; decoding of damaged code is tried through the program.

#[path = "damage/flips.rs"]
mod flips;
#[path = "harness/process.rs"]
mod process;
#[path = "damage/samples.rs"]
mod samples;

use samples::{Answer, Sample};

/// Cuts at every length; `harmless` are the lengths at which no fact is lost.
fn cut_everywhere(sample: &Sample, harmless: impl Fn(usize) -> bool) {
    let whole = sample.answer();
    for (length, answer) in sample.lengths_that_are_ok() {
        let size = sample.bytes.len();
        assert!(harmless(length), "{}: OK when cut to {length} of {size} bytes", sample.name);
        assert_eq!(answer, whole, "{}: other figures when cut to {length} of {size} bytes", sample.name);
    }
}

fn end_of(bytes: &[u8], text: &str) -> usize {
    let at = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    at.unwrap_or_else(|| panic!("no `{text}`")) + text.len()
}

#[test]
fn undamaged_samples_are_ok() {
    for sample in samples::texts().iter().chain(&samples::binaries()).chain(&samples::json()) {
        assert_eq!(sample.answer() == Answer::Refused, sample.name == "report", "{}", sample.name);
    }
}

#[test]
fn a_cut_text_is_refused() {
    for sample in samples::texts() {
        // Behind the metadata come debug lines, which say nothing about resources.
        let end = end_of(&sample.bytes, ".end_amdgpu_metadata");
        cut_everywhere(&sample, |length| length >= end);
    }
}

#[test]
fn a_cut_binary_is_refused() {
    for sample in samples::binaries() {
        let whole_first_part = match sample.name {
            // Two packages behind each other: the first one is a file of its own. Nothing says how many follow.
            "offload package" => Some(0x1e70),
            // So it is with an archive that has no symbol table.
            "archive" => Some(8 + 60 + 7648),
            _ => None,
        };
        let whole = sample.answer();
        for (length, answer) in sample.lengths_that_are_ok() {
            assert_eq!(Some(length), whole_first_part, "{}: OK when cut to {length} bytes", sample.name);
            let (Answer::Ok(part), Answer::Ok(whole)) = (answer, &whole) else { panic!("{}: refused", sample.name) };
            assert!(part.iter().all(|(key, cells)| whole.get(key) == Some(cells)), "{}: other figures", sample.name);
        }
    }
}

#[test]
fn a_cut_json_is_refused() {
    for sample in samples::json() {
        // Behind the closing brace comes a newline.
        let end = sample.bytes.trim_ascii_end().len();
        cut_everywhere(&sample, |length| length >= end);
    }
}

/// Damages a text in one way per line. OK is right only when every figure that judges a kernel is as before.
fn damage_lines(how: &str, damage: impl Fn(&[&[u8]], usize) -> Vec<u8>) {
    for sample in samples::texts() {
        let whole = sample.answer();
        let lines: Vec<&[u8]> = sample.bytes.split_inclusive(|&byte| byte == b'\n').collect();
        let (mut refused, mut same) = (0, 0);
        let mut other_counts = Vec::new();
        for at in 0..lines.len() {
            let answer = sample.answer_to(&damage(&lines, at));
            let line = String::from_utf8_lossy(lines[at]);
            match answer.triggers() {
                None => refused += 1,
                Some(triggers) => {
                    assert_eq!(Some(triggers), whole.triggers(), "{}: line {} {how}: {line}", sample.name, at + 1);
                    if answer == whole { same += 1 } else { other_counts.push(format!("{}: {}", at + 1, line.trim())) }
                }
            }
        }
        println!(
            "{}, a line {how}: {refused} refused, {same} the same, {} other informational figures",
            sample.name,
            other_counts.len()
        );
        other_counts.iter().for_each(|line| println!("    {line}"));
    }
}

#[test]
fn a_deleted_line_gives_no_false_figure() {
    damage_lines("deleted", |lines, at| [&lines[..at], &lines[at + 1..]].concat().concat());
}

#[test]
fn a_repeated_line_gives_no_false_figure() {
    damage_lines("repeated", |lines, at| [&lines[..=at], &lines[at..]].concat().concat());
}

#[test]
fn a_line_cut_in_half_gives_no_false_figure() {
    damage_lines("cut in half", |lines, at| {
        let half = &lines[at][..lines[at].len() / 2];
        [&lines[..at], &[half, b"\n"], &lines[at + 1..]].concat().concat()
    });
}

/// What a disk or a copy loses: a block of zeros, or no block at all.
#[test]
fn a_lost_block_gives_no_false_figure() {
    const BLOCK: usize = 512;
    let mut wrong = Vec::new();
    for sample in samples::texts().iter().chain(&samples::binaries()).chain(&samples::json()) {
        let whole = sample.answer();
        for at in (0..sample.bytes.len()).step_by(BLOCK) {
            let end = sample.bytes.len().min(at + BLOCK);
            let missing = [&sample.bytes[..at], &sample.bytes[end..]].concat();
            let mut zeroed = sample.bytes.clone();
            zeroed[at..end].fill(0);
            for (how, damaged) in [("missing", missing), ("zeroed", zeroed)] {
                let answer = sample.answer_to(&damaged);
                if answer != Answer::Refused && answer.triggers() != whole.triggers() {
                    wrong.push(format!("{}: block at {at:#x} {how}: {}", sample.name, whole.difference(&answer)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Triggers that a text records once: nothing can contradict them. (Registers, scratch and LDS are in the descriptor
/// and in `.set` lines too.)
const RECORDED_ONCE: [&str; 3] = [".sgpr_count:", ".sgpr_spill_count:", ".vgpr_spill_count:"];

#[test]
fn a_changed_digit_contradicts_what_is_recorded_elsewhere() {
    for sample in samples::texts() {
        let whole = sample.answer();
        let digits = sample.bytes.iter().enumerate().filter(|(_, byte)| byte.is_ascii_digit());
        for (at, &digit) in digits {
            let answer = sample.answer_with_byte(at, b'0' + (digit - b'0' + 1) % 10);
            if answer == Answer::Refused || answer.triggers() == whole.triggers() {
                continue;
            }
            let start = sample.bytes[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
            let line = String::from_utf8_lossy(&sample.bytes[start..at]).into_owned();
            let is_single = RECORDED_ONCE.iter().any(|key| line.trim_start().starts_with(key));
            assert!(is_single, "{}: {}: in `{line}…`", sample.name, whole.difference(&answer));
        }
    }
}
