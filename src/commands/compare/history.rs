//! Runs kept as JSON Lines in a file of the project: only ever appended to, so that several people and agents can write it.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use compare::report::{ImageSummary, Report, Verdict};
use compare::timing::{CacheMode, Speed};
use serde::{Deserialize, Serialize};

/// One run. What came later than the first form is optional, so that older lines stay readable.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// When, seconds since 1970.
    pub time: u64,
    /// The kernel's name.
    pub kernel: String,
    /// The site's name.
    pub site: String,
    /// What the site resolved to (`compare::site::fingerprint`); none when nothing was launched to its end.
    #[serde(default)]
    pub site_sha256: Option<String>,
    /// The device's name; what the user asked for when the device did not come to say it.
    pub device: String,
    /// The device's target; empty when the device did not come to say it.
    pub target: String,
    /// The one that is right by definition.
    pub reference: ImageSummary,
    /// The one that was judged.
    pub test: ImageSummary,
    /// The conclusion about correctness.
    pub verdict: Verdict,
    /// Of the run, which speed may have decided; the verdict's when it is not there.
    #[serde(default)]
    pub exit_code: Option<u8>,
    /// Why there is no report.
    #[serde(default)]
    pub error: Option<String>,
    /// Speed, when it was timed.
    pub speed: Option<Speed>,
    /// Which caches it was timed with.
    #[serde(default)]
    pub cache: Option<CacheMode>,
    /// What the user wants to remember.
    pub note: Option<String>,
}

impl Entry {
    /// Of a report.
    pub fn of(report: &Report, exit: u8, note: Option<String>) -> Entry {
        Entry {
            time: now(),
            kernel: report.kernel.clone(),
            site: report.site.name.clone(),
            site_sha256: Some(report.site.sha256.clone()),
            device: report.device.name.clone(),
            target: report.device.target.clone(),
            reference: report.reference.clone(),
            test: report.test.clone(),
            verdict: report.verdict,
            exit_code: Some(exit),
            error: None,
            speed: report.timing.as_ref().and_then(|timing| timing.speed),
            cache: report.timing.as_ref().map(|timing| timing.cache),
            note,
        }
    }

    /// Whether the run ended with a yes.
    pub fn is_good(&self) -> bool {
        self.exit_code.unwrap_or_else(|| self.verdict.exit_code()) == 0 && self.verdict.exit_code() == 0
    }
}

/// Seconds since 1970.
pub fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |now| now.as_secs())
}

/// Sees to it, before any work is done, that runs can be appended to `path`: creates it, or looks whether it is a history.
pub fn prepare(path: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: the run could not be kept: {error}", path.display());
    let file = OpenOptions::new().append(true).read(true).create(true).open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(format!("{}: is no regular file, which a history is", path.display()));
    }
    let mut first = Vec::new();
    // A run is a few thousand bytes; a line without an end is none.
    BufReader::new(file.take(1 << 20)).read_until(b'\n', &mut first).map_err(failed)?;
    match first.trim_ascii().is_empty() {
        true => Ok(()),
        false => parse(&first)
            .map(drop)
            .map_err(|why| format!("{}:1: is no run, so the file is no history: {why}", path.display())),
    }
}

/// Appends a line, in one write, so that two runs that end at once do not mix. Behind a line that somebody did not end it
/// begins a new one, and says so.
pub fn append(path: &Path, entry: &Entry) -> Result<Option<String>, String> {
    let failed = |error: std::io::Error| format!("{}: the run cannot be kept: {error}", path.display());
    let mut line = serde_json::to_vec(entry).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    let mut file = OpenOptions::new().append(true).read(true).create(true).open(path).map_err(failed)?;
    let is_cut = !ends_with_newline(&mut file).map_err(failed)?;
    if is_cut {
        line.insert(0, b'\n');
    }
    file.write_all(&line).and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(is_cut.then(|| format!("{}: the last line had no end; this run stands on a line of its own", path.display())))
}

/// Whether the next line can begin: an empty file, or one whose last byte ends a line.
fn ends_with_newline(file: &mut File) -> std::io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// A history as it was read.
#[derive(Debug, Default)]
pub struct Stored {
    /// The runs, in the order in which they were written.
    pub entries: Vec<Entry>,
    /// Lines that are none, each as `FILE:LINE: why`.
    pub damaged: Vec<String>,
}

/// Reads a history. Damaged lines are named, and cost no other.
pub fn read(path: &Path) -> Result<Stored, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut stored = Stored::default();
    for (index, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match parse(line) {
            Ok(entry) => stored.entries.push(entry),
            Err(why) => stored.damaged.push(format!("{}:{}: this is no run: {why}", path.display(), index + 1)),
        }
    }
    Ok(stored)
}

/// A line; the error says what is wrong with it, and leaves its number to others.
fn parse(line: &[u8]) -> Result<Entry, String> {
    serde_json::from_slice(line).map_err(|error| error.to_string().replace(" at line 1 column ", " at column "))
}

/// Seconds since 1970 as UTC, `2026-11-30T20:36:31Z` (ISO 8601). Civil dates from days: Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms".
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468; // days since 0000-03-01
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @N +%FT%TZ` of GNU coreutils.
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_796_000_000, "2026-11-30T00:53:20Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(utc(seconds), date);
        }
    }
}
