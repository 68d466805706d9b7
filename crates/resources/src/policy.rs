//! Which increases a team accepts. The default is the contract's: any trigger that rises is a regression, and nothing
//! else is.
//!
//! A policy judges figures that are known. It never makes an unknown figure fine: that stays NOT TRUSTWORTHY.
//!
//! How rules combine, and why:
//! - What `fail-on` does not name is shown and fails nothing. What it names fails when it rises.
//! - A rule of a pattern takes the place of the general rules for the same metric, so that a kernel can be held tighter
//!   (`+0`) than the others, not only looser. Among rules of equal rank, one that accepts is enough.
//! - `allow-kernel` accepts any known change for the worse of its kernels, a fall of occupancy included.

mod describe;
mod fail_on;
mod pattern;
mod rule;

pub use fail_on::FailOn;
pub use pattern::{Names, Pattern};
pub use rule::{Accepts, Allowance, Rule, metric_named};

use std::cmp::Ordering;

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

impl Judgement {
    /// Its name in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Judgement::Same => "same",
            Judgement::Informational => "informational",
            Judgement::Better => "better",
            Judgement::Worse => "worse",
            Judgement::Allowed(_) => "allowed",
        }
    }
}

/// The rules in force.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What fails when it gets worse.
    pub fail_on: FailOn,
    /// What is accepted all the same.
    pub rules: Vec<Rule>,
    /// Kernels that are looked at; empty means all.
    pub only: Vec<Pattern>,
    /// Where it comes from, for a reader: the file, if there is one. One without a rule is told as well.
    pub file: Option<String>,
}

impl Policy {
    /// Whether nothing but the contract is in force.
    pub fn is_default(&self) -> bool {
        *self == Policy::default()
    }

    /// What it means that `metric` of this kernel went from `before` to `after`.
    pub fn judge(&self, kernel: Names<'_>, metric: Metric, before: u64, after: u64) -> Judgement {
        match after.cmp(&before) {
            Ordering::Equal => Judgement::Same,
            _ if !self.fail_on.has(metric) => Judgement::Informational,
            Ordering::Less => Judgement::Better,
            Ordering::Greater => self.judge_increase(kernel, metric, before, after),
        }
    }

    /// What it means that the waves per SIMD of this kernel went from `before` to `after`.
    pub fn judge_occupancy(&self, kernel: Names<'_>, before: u64, after: u64) -> Judgement {
        match after.cmp(&before) {
            Ordering::Equal => Judgement::Same,
            _ if !self.fail_on.occupancy() => Judgement::Informational,
            Ordering::Greater => Judgement::Better,
            Ordering::Less => {
                let rule = self.rules.iter().find(|rule| rule.accepts == Accepts::Everything && rule.is_for(kernel));
                rule.map_or(Judgement::Worse, |rule| Judgement::Allowed(rule.to_string()))
            }
        }
    }

    /// Whether the kernel is looked at.
    pub fn covers(&self, kernel: Names<'_>) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| pattern.fits_any(kernel))
    }

    fn judge_increase(&self, kernel: Names<'_>, metric: Metric, before: u64, after: u64) -> Judgement {
        let about = |rule: &&Rule| rule.accepts.is_about(metric);
        let mut own = self.rules.iter().filter(about).filter(|r| r.pattern.is_some() && r.is_for(kernel)).peekable();
        let accepts = |rule: &&Rule| rule.accepts.increase(metric, before, after);
        let rule = match own.peek() {
            Some(_) => own.find(accepts),
            None => self.rules.iter().filter(about).filter(|r| r.pattern.is_none()).find(accepts),
        };
        rule.map_or(Judgement::Worse, |rule| Judgement::Allowed(rule.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEMM: Names<'_> = Names { before: Some("a/b::gemm<1, [2]>"), after: None };
    const OTHER: Names<'_> = Names { before: None, after: Some("a::softmax") };

    fn policy(rules: &[&str], fail_on: &str) -> Policy {
        Policy {
            fail_on: FailOn::parse(fail_on).expect(fail_on),
            rules: rules.iter().map(|rule| Rule::parse_allow(rule).expect(rule)).collect(),
            ..Policy::default()
        }
    }

    fn judged(rules: &[&str], kernel: Names<'_>, before: u64, after: u64) -> &'static str {
        policy(rules, "triggers").judge(kernel, Metric::Vgpr, before, after).name()
    }

    #[test]
    fn an_allowance_holds_up_to_its_size_and_no_further() {
        assert_eq!(judged(&["vgpr=+4"], GEMM, 96, 100), "allowed");
        assert_eq!(judged(&["vgpr=+4"], GEMM, 96, 101), "worse");
        assert_eq!(judged(&["sgpr=+4"], GEMM, 96, 97), "worse");
        assert_eq!(judged(&["vgpr=+5%"], GEMM, 100, 105), "allowed");
        assert_eq!(judged(&["vgpr=+5%"], GEMM, 100, 106), "worse");
        assert_eq!(judged(&["vgpr=+5%"], GEMM, 99, 104), "worse"); // 5.05 %
        assert_eq!(judged(&["vgpr=+2.5%"], GEMM, 40, 41), "allowed");
        assert_eq!(judged(&["vgpr=+100%"], GEMM, 0, 1), "worse"); // nothing is a part of nothing
        assert_eq!(judged(&["vgpr=+100%"], GEMM, u64::MAX / 2, u64::MAX - 1), "allowed");
    }

    #[test]
    fn a_rule_of_a_pattern_takes_the_place_of_the_general_one() {
        let rules = ["vgpr=+8", "gemm<1, [2]>:vgpr=+0", "gemm<*:vgpr=+2"];
        assert_eq!(judged(&rules, OTHER, 1, 9), "allowed");
        assert_eq!(judged(&rules, GEMM, 1, 3), "allowed");
        assert_eq!(judged(&rules, GEMM, 1, 4), "worse");
        assert_eq!(judged(&["vgpr=+8", "gemm*:sgpr=+0"], GEMM, 1, 9), "allowed"); // another metric's rule
    }

    #[test]
    fn what_is_not_named_fails_nothing() {
        let only_sgpr = policy(&[], "sgpr,lds_read");
        assert_eq!(only_sgpr.judge(GEMM, Metric::Vgpr, 1, 2), Judgement::Informational);
        assert_eq!(only_sgpr.judge(GEMM, Metric::Vgpr, 2, 1), Judgement::Informational);
        assert_eq!(only_sgpr.judge(GEMM, Metric::Sgpr, 1, 2), Judgement::Worse);
        assert_eq!(only_sgpr.judge(GEMM, Metric::LdsRead, 1, 2), Judgement::Worse);
        assert_eq!(Policy::default().judge(GEMM, Metric::LdsRead, 1, 2), Judgement::Informational);
    }

    #[test]
    fn occupancy_is_worse_when_it_falls() {
        let mut policy = policy(&["vgpr=+8"], "occupancy");
        assert_eq!(policy.judge_occupancy(GEMM, 4, 3), Judgement::Worse);
        assert_eq!(policy.judge_occupancy(GEMM, 3, 4), Judgement::Better);
        assert_eq!(Policy::default().judge_occupancy(GEMM, 4, 3), Judgement::Informational);
        policy.rules.push(Rule::everything(Pattern::parse("gemm*").expect("a pattern"), "--allow-kernel gemm*"));
        assert_eq!(policy.judge_occupancy(GEMM, 4, 3), Judgement::Allowed("--allow-kernel gemm*".into()));
        assert_eq!(policy.judge_occupancy(OTHER, 4, 3), Judgement::Worse);
    }
}
