//! Time, speed and peak memory of a command.
//!
//! Two figures of memory: the peak of the resident set (`ru_maxrss`), which counts mapped file pages, and the highest
//! anonymous part seen in `/proc/PID/status`, which is what the program itself asked for.

use crate::reading::collect;
use nix::sys::resource::{UsageWho, getrusage};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// Runs `command` once to warm the page cache and then `runs` times; prints one line with the median time.
pub fn report(label: &str, runs: usize, input: &[PathBuf], allow: i32, command: &[String]) -> io::Result<()> {
    let mut files = Vec::new();
    for path in input {
        collect(path, &mut files)?;
    }
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
    let mut times_s = Vec::new();
    let mut anonymous_kib = 0u64;
    let mut verdict = String::new();
    for run in 0..=runs {
        // The warming run is also the one that is sampled for memory, so that sampling does not disturb a timed one.
        let sampled = run == 0;
        let start = Instant::now();
        let mut command_line = Command::new(&command[0]);
        let child = command_line.args(&command[1..]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let pid = child.id();
        let sampler = sampled.then(|| thread::spawn(move || highest_anonymous(pid)));
        let output = child.wait_with_output()?;
        match sampler {
            Some(sampler) => anonymous_kib = sampler.join().map_err(|_| io::Error::other("the sampler failed"))?,
            None => times_s.push(start.elapsed().as_secs_f64()),
        }
        let code = output.status.code().unwrap_or(-1);
        let text = String::from_utf8_lossy(&output.stdout);
        verdict = format!("exit {code}, {}", text.lines().last().unwrap_or("no output"));
        if !(0..=allow).contains(&code) {
            return Err(io::Error::other(format!("{} gave {verdict}", command.join(" "))));
        }
    }
    times_s.sort_by(f64::total_cmp);
    let time_s = times_s[times_s.len() / 2];
    let peak_kib = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    println!(
        "{label:<44}{time_s:8.3} s {:9.1} MB/s {:8.0} files/s  peak {:.1} MB, anonymous {:.1} MB  ({verdict})",
        bytes as f64 / 1e6 / time_s,
        files.len() as f64 / time_s,
        peak_kib as f64 / 1e3 * 1.024,
        anonymous_kib as f64 / 1e3 * 1.024,
    );
    Ok(())
}

/// The highest value seen until the process ends. A short peak between two looks is missed.
fn highest_anonymous(pid: u32) -> u64 {
    let mut highest_kib = 0;
    while let Some(now_kib) = anonymous(pid) {
        highest_kib = highest_kib.max(now_kib);
        thread::sleep(Duration::from_millis(1));
    }
    highest_kib
}

/// Anonymous resident memory of a process in KiB; none once it has ended.
fn anonymous(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}
