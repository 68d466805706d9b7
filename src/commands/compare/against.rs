//! A speed-up held against one that somebody published, and against a run of the history.

use compare::report::Report;
use compare::timing::verdict::Ratio;
use compare::timing::{CacheMode, Speed};
use resources::printable;

use super::history::{Entry, utc};

/// What came of holding two speeds together: met, not met, or not known, and how it is said.
pub type Outcome = (Option<bool>, String);

/// Runs at other times differ by what clocks and temperature do; less than this is no difference.
const FLOOR: f64 = 0.001;
/// An interval wider than this says too little to hold anything against it.
const WIDEST: f64 = 0.05;

/// A published speed-up, with how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expectation {
    value: f64,
    tolerance: f64,
}

impl Expectation {
    /// Reads `1.024±0.003`, `1.024+-0.003` or `1.024+/-0.003`.
    pub fn parse(text: &str) -> Result<Expectation, String> {
        let wrong = || format!("`{text}`: expected a speed-up and how far it may be off, as 1.024±0.003");
        let split = ["±", "+/-", "+-"].iter().find_map(|sign| text.split_once(sign));
        let (value, tolerance) = split.ok_or_else(wrong)?;
        let number = |text: &str| text.trim().trim_end_matches('x').parse::<f64>().ok();
        let (Some(value), Some(tolerance)) = (number(value), number(tolerance)) else { return Err(wrong()) };
        // What anything fulfils is a mistake.
        match value > 0.0 && value.is_finite() && (0.0..value).contains(&tolerance) {
            true => Ok(Expectation { value, tolerance }),
            false => Err(format!("`{text}`: expected a speed-up above 0, and less than itself that it may be off")),
        }
    }

    /// Whether the measured interval and the expected one meet, and the value lies within the expected one.
    pub fn check(&self, speedup: &Ratio) -> Outcome {
        let (low, high) = (self.value - self.tolerance, self.value + self.tolerance);
        let said = format!("{}; expected {} ± {}", shown(speedup), self.value, self.tolerance);
        let is_met = speedup.low <= high && speedup.high >= low && (low..=high).contains(&speedup.value);
        if speedup.high / speedup.low - 1.0 > WIDEST {
            return (None, format!("speed-up {said}: the measured interval is too wide to say"));
        }
        (Some(is_met), format!("speed-up {said}"))
    }
}

fn shown(ratio: &Ratio) -> String {
    format!("{:.4} [{:.4}, {:.4}]", ratio.value, ratio.low, ratio.high)
}

/// The last good run that is comparable: same kernel, device, target, launch and caches.
fn last<'s>(stored: &'s [Entry], report: &Report, cache: CacheMode) -> Option<(&'s Entry, Speed)> {
    let is_comparable = |entry: &&Entry| {
        entry.is_good()
            && entry.kernel == report.kernel
            && entry.device == report.device.name
            && entry.target == report.device.target
            && entry.site_sha256.as_deref() == Some(report.site.sha256.as_str())
            && entry.cache == Some(cache)
            && entry.speed.is_some()
    };
    stored.iter().rev().find(is_comparable).and_then(|entry| Some((entry, entry.speed?)))
}

/// Holds a run against the last good one of the same kernel, device and launch: not met when the test is slower now, by more
/// than both intervals leave open.
pub fn check(stored: &[Entry], report: &Report) -> Outcome {
    let Some((now, cache)) = report.timing.as_ref().and_then(|timing| Some((timing.speed?, timing.cache))) else {
        return (None, "there is no statement about speed".into());
    };
    let Some((entry, then)) = last(stored, report, cache) else {
        let why = "the history has no timed run of this kernel, device, site and cache mode that ended with a yes";
        return (None, why.into());
    };
    let run = describe(entry);
    for (whose, speed) in [("stored", &then), ("measured", &now)] {
        if !(0.0..=WIDEST).contains(&(speed.speedup.high / speed.speedup.low - 1.0)) {
            let interval = shown(&speed.speedup);
            return (None, format!("the {whose} interval {interval} is too wide to compare; against {run}"));
        }
    }
    // With the same reference, what the clocks did cancels out; with another there are only times.
    let same_reference = entry.reference.sha256 == report.reference.sha256;
    let (change, what) = match same_reference {
        true => (over(&now.speedup, &then.speedup, now.speedup.value / then.speedup.value), "speed-up"),
        false => (over(&now.speedup, &then.speedup, then.test_ns / now.test_ns), "rate (the reference was another)"),
    };
    let word = match () {
        () if change.high < 1.0 - FLOOR => "SLOWER",
        () if change.low > 1.0 + FLOOR => "FASTER",
        () => "NO DIFFERENCE",
    };
    (Some(word != "SLOWER"), format!("{word}: {what} {} times that of {run}", shown(&change)))
}

/// A quotient with the interval that both intervals leave open.
fn over(now: &Ratio, then: &Ratio, value: f64) -> Ratio {
    let low = now.low / now.value * (then.value / then.high);
    let high = now.high / now.value * (then.value / then.low);
    Ratio { value, low: value * low, high: value * high }
}

/// Which run: when, of what, and what its author noted.
fn describe(entry: &Entry) -> String {
    let note = entry.note.as_deref().map(|note| format!(", \"{}\"", printable(note))).unwrap_or_default();
    let hash: String = entry.test.sha256.chars().take(12).collect();
    format!("the run of {} ({} {}{note})", utc(entry.time), printable(&hash), printable(&entry.test.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_read_in_three_spellings() {
        let expected = Ok(Expectation { value: 1.024, tolerance: 0.003 });
        for text in ["1.024±0.003", "1.024+-0.003", "1.024 +/- 0.003", "1.024x±0.003"] {
            assert_eq!(Expectation::parse(text), expected, "{text}");
        }
        for text in ["1.5", "1±1e300", "0±0", "1±1", "-1±0.1", "nan±0.1", "inf±1", "1±-0.1", "1±"] {
            assert!(Expectation::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quotient_has_both_intervals() {
        let ratio = |value, low, high| Ratio { value, low, high };
        let change = over(&ratio(1.1, 1.0, 1.2), &ratio(2.0, 1.9, 2.2), 1.1 / 2.0);
        assert!((change.low - 1.0 / 2.2).abs() < 1e-12 && (change.high - 1.2 / 1.9).abs() < 1e-12, "{change:?}");
    }
}
