//! What fails when it gets worse: the list of `--fail-on`.

use std::fmt;

use crate::metric::{self, Metric};

/// The name of all six triggers in a list.
const TRIGGERS: &str = "triggers";
/// The name of the waves per SIMD, which is worse when it falls.
const OCCUPANCY: &str = "occupancy";

/// What fails when it gets worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailOn {
    metrics: [bool; metric::COUNT],
    occupancy: bool,
}

/// The six triggers.
impl Default for FailOn {
    fn default() -> FailOn {
        let mut metrics = [false; metric::COUNT];
        Metric::all().filter(|m| m.is_trigger()).for_each(|m| metrics[m as usize] = true);
        FailOn { metrics, occupancy: false }
    }
}

impl FailOn {
    /// Reads `triggers`, names of metrics and `occupancy`, between commas.
    ///
    /// # Errors
    /// A name that is none of these, or none at all.
    pub fn parse(list: &str) -> Result<FailOn, String> {
        FailOn::of(list.split(',').map(str::trim))
    }

    /// From single names.
    ///
    /// # Errors
    /// A name that is not known, or none at all.
    pub fn of<'n>(names: impl Iterator<Item = &'n str>) -> Result<FailOn, String> {
        let mut list = FailOn { metrics: [false; metric::COUNT], occupancy: false };
        for name in names {
            list.add(name)?;
        }
        if list.is_empty() {
            return Err(format!("nothing would fail; expected one of {}", known_names()));
        }
        Ok(list)
    }

    fn add(&mut self, name: &str) -> Result<(), String> {
        match name {
            TRIGGERS => FailOn::default().metrics().for_each(|m| self.metrics[m as usize] = true),
            OCCUPANCY => self.occupancy = true,
            name => match Metric::named(name) {
                Some(metric) => self.metrics[metric as usize] = true,
                None => return Err(format!("`{name}` is not known; known are {}", known_names())),
            },
        }
        Ok(())
    }

    /// Whether an increase of this metric fails.
    pub fn has(&self, metric: Metric) -> bool {
        self.metrics[metric as usize]
    }

    /// Whether a fall of the waves per SIMD fails.
    pub fn occupancy(&self) -> bool {
        self.occupancy
    }

    /// The metrics that fail, in table order.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> {
        Metric::all().filter(|&m| self.has(m))
    }

    /// The names, with `triggers` for the six where all are there.
    pub fn names(&self) -> Vec<&'static str> {
        let all_triggers = Metric::all().all(|m| !m.is_trigger() || self.has(m));
        let metrics = self.metrics().filter(|m| !(all_triggers && m.is_trigger())).map(Metric::name);
        let triggers = all_triggers.then_some(TRIGGERS);
        triggers.into_iter().chain(metrics).chain(self.occupancy.then_some(OCCUPANCY)).collect()
    }

    fn is_empty(&self) -> bool {
        !self.occupancy && self.metrics().next().is_none()
    }
}

impl fmt::Display for FailOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

/// What may stand in the list.
fn known_names() -> String {
    let names: Vec<&str> = [TRIGGERS, OCCUPANCY].into_iter().chain(Metric::all().map(Metric::name)).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_back() {
        for list in ["triggers", "triggers, occupancy", "vgpr, sgpr", "triggers, matrix_ops", "occupancy"] {
            assert_eq!(FailOn::parse(list).expect(list).to_string(), list);
        }
        assert_eq!(FailOn::default(), FailOn::parse("triggers").expect("triggers"));
        let error = FailOn::parse("vgprs").expect_err("no metric");
        assert!(error.contains("`vgprs`") && error.contains("scratch_bytes"), "{error}");
        assert!(FailOn::parse("").is_err());
        assert!(FailOn::of(std::iter::empty()).is_err());
    }
}
