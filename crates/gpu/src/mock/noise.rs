//! How the mock's times vary: what real devices show, from a seed. The clock drifts slowly, so that neighbours in time are
//! alike, each launch varies by itself, and stamps lie on a grid.

/// A source of variation.
#[derive(Clone, Debug)]
pub struct Noise {
    state: u64,
    drift: f64,
    /// Standard deviation of the drift, as a share of the time.
    drift_deviation: f64,
    /// How much of the drift is left at the next launch, 0 to 1.
    correlation: f64,
    /// Standard deviation of a launch by itself, as a share.
    launch_deviation: f64,
    /// Times are multiples of this, nanoseconds; 0 for none.
    grid_ns: f64,
}

impl Noise {
    /// No variation.
    pub fn none() -> Noise {
        Noise { state: 0, drift: 0.0, drift_deviation: 0.0, correlation: 0.0, launch_deviation: 0.0, grid_ns: 0.0 }
    }

    /// Drift that is an autoregressive process of first order, with independent noise on each launch.
    pub fn autocorrelated(
        seed: u64,
        drift_deviation: f64,
        correlation: f64,
        launch_deviation: f64,
        grid_ns: f64,
    ) -> Noise {
        Noise { state: seed, drift: 0.0, drift_deviation, correlation, launch_deviation, grid_ns }
    }

    /// The time that a launch takes now.
    pub fn apply(&mut self, time_ns: f64) -> f64 {
        if self.drift_deviation > 0.0 {
            let fresh = (1.0 - self.correlation * self.correlation).sqrt() * self.drift_deviation;
            self.drift = self.correlation * self.drift + fresh * self.normal();
        }
        let own = if self.launch_deviation > 0.0 { self.launch_deviation * self.normal() } else { 0.0 };
        let time = time_ns * (1.0 + self.drift + own).max(0.05);
        if self.grid_ns > 0.0 { (time / self.grid_ns).round() * self.grid_ns } else { time }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Box and Muller's transform.
    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform(), self.uniform());
        (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}
