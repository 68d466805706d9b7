//! Which increases a team accepts. The default is the contract's: any trigger that rises is a regression, and nothing
//! else is.
//!
//! A policy judges figures that are known. It never makes an unknown figure fine: that stays NOT TRUSTWORTHY.

use crate::metric::Metric;

/// What a change of one figure means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It did not move, or is not known on both sides.
    Same,
    /// It moved, and fails nothing either way.
    Informational,
    /// A figure that can fail fell.
    Better,
    /// A figure that can fail rose: a regression.
    Worse,
    /// It rose, and the policy accepts that; which rule, as the user wrote it.
    Allowed(String),
}

/// The rules in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {}

impl Policy {
    /// What it means that `metric` of the kernel with this key went from `before` to `after`.
    pub fn judge(&self, _key: &str, metric: Metric, before: u64, after: u64) -> Judgement {
        match (after.cmp(&before), metric.is_trigger()) {
            (std::cmp::Ordering::Equal, _) => Judgement::Same,
            (_, false) => Judgement::Informational,
            (std::cmp::Ordering::Less, true) => Judgement::Better,
            (std::cmp::Ordering::Greater, true) => Judgement::Worse,
        }
    }
}
