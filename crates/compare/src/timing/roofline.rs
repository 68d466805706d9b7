//! Rates, and their share of what the device can do. A rate above the peak is an error in the site or a kernel that does
//! not do the work.

use serde::{Deserialize, Serialize};

use super::measure::CacheMode;

/// Rates of one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Floating-point operations per second.
    pub flops: Option<f64>,
    /// Bytes per second.
    pub bytes_per_second: Option<f64>,
    /// Share of the device's peak that `flops` is.
    pub flops_share: Option<f64>,
    /// Share of the device's peak that `bytes_per_second` is.
    pub bytes_share: Option<f64>,
}

/// What the device can do at most, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// Floating-point operations per second, as the user says: it depends on the type and no driver tells.
    pub flops: Option<f64>,
    /// Bytes per second, from the driver.
    pub bytes_per_second: Option<f64>,
}

impl Rates {
    /// Of a kernel that takes `time_ns`.
    pub fn of(time_ns: f64, flop: Option<f64>, bytes: Option<f64>, peaks: Peaks) -> Rates {
        let per_second = |amount: f64| amount / (time_ns * 1e-9);
        let (flops, bytes_per_second) = (flop.map(per_second), bytes.map(per_second));
        let share = |rate: Option<f64>, peak: Option<f64>| Some(rate? / peak.filter(|peak| *peak > 0.0)?);
        Rates {
            flops,
            bytes_per_second,
            flops_share: share(flops, peaks.flops),
            bytes_share: share(bytes_per_second, peaks.bytes_per_second),
        }
    }

    /// What is above the peak, and whether that cannot be: a cache that is hot moves more bytes than memory does.
    pub fn beyond(&self, whose: &str, cache: CacheMode) -> Option<(String, bool)> {
        let shares = [("floating-point operations", self.flops_share), ("bytes", self.bytes_share)];
        let (what, share) =
            shares.into_iter().find_map(|(what, share)| Some((what, share.filter(|share| *share > 1.0)?)))?;
        let percent = share * 100.0;
        let said = format!("{whose}: {percent:.0} % of the {what} per second that the device can");
        Some(match (what, cache) {
            ("bytes", CacheMode::Hot) => (format!("{said} move from memory: the cache is hot"), false),
            _ => (format!("{said} do: the site's numbers are wrong, or it does not do the work"), true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_peak_is_told() {
        let peaks = Peaks { flops: Some(2.3e15), bytes_per_second: Some(8e12) };
        // 2·M·N·K of gate_up_fwd in 2.272 ms.
        let rates = Rates::of(2.272e6, Some(4_348_654_387_200.0), None, peaks);
        assert_eq!((rates.flops.expect("known") / 1e12).round(), 1914.0);
        assert_eq!(rates.beyond("test", CacheMode::Hot), None);
        let rates = Rates::of(1e6, Some(4_348_654_387_200.0), None, peaks);
        let (said, is_impossible) = rates.beyond("test", CacheMode::Hot).expect("too fast");
        assert!(said.contains("189 %") && is_impossible, "{said}");
    }

    #[test]
    fn more_bytes_than_memory_moves_come_from_a_hot_cache_alone() {
        let peaks = Peaks { flops: None, bytes_per_second: Some(8e12) };
        let rates = Rates::of(1e6, None, Some(9e9), peaks);
        assert!(rates.beyond("test", CacheMode::Cold).expect("too fast").1);
        assert!(!rates.beyond("test", CacheMode::Hot).expect("told").1);
    }
}
