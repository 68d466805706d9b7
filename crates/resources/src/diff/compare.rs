//! One row: whether a pair of kernels can be compared, what moved, and what the policy makes of that.

use codeobj::TargetId;

use super::{Outcome, Row};
use crate::cell::Cell;
use crate::metric::Metric;
use crate::occupancy::{self, Occupancy};
use crate::pairing::Pair;
use crate::policy::{Judgement, Names, Policy};
use crate::record::Record;
use crate::snapshot::Snapshot;

/// Compares a pair under `policy`.
pub fn compare<'s>(
    pair: &Pair<'s>,
    before: &'s Snapshot,
    after: &'s Snapshot,
    policy: &Policy,
    settings: occupancy::Settings,
) -> Row<'s> {
    let left = pair.before.and_then(|key| before.kernels.get(key));
    let right = pair.after.and_then(|key| after.kernels.get(key));
    let (mut one_sided, mut judgements, mut waves) = (Vec::new(), Vec::new(), None);
    let outcome = match (left, right) {
        (Some(a), Some(b)) => {
            let mut blockers = blockers(a, b, policy);
            if policy.fail_on.occupancy() && blockers.is_empty() {
                match judged_waves([a, b], settings) {
                    Ok([before, after]) => {
                        let judgement = policy.judge_occupancy(pair.names(), before, after);
                        waves = (judgement != Judgement::Same).then_some((before, after, judgement));
                    }
                    Err(unknown) => blockers = unknown,
                }
            }
            if blockers.is_empty() {
                let can_fail = |m: Metric| m.is_trigger() || policy.fail_on.has(m);
                one_sided = Metric::all().filter(|&m| can_fail(m) && is_one_sided(&a.cells[m], &b.cells[m])).collect();
                judgements = judge(pair.names(), a, b, policy);
                Outcome::Compared(deltas(a, b))
            } else {
                Outcome::Blocked(blockers)
            }
        }
        (Some(_), None) => Outcome::OnlyBefore,
        _ => Outcome::OnlyAfter,
    };
    Row {
        key: pair.key(),
        names: pair.names(),
        before: left,
        after: right,
        outcome,
        one_sided,
        judgements,
        waves,
        settings,
    }
}

/// What the policy makes of the figures that moved.
fn judge(kernel: Names<'_>, a: &Record, b: &Record, policy: &Policy) -> Vec<(Metric, Judgement)> {
    let judge = |m: Metric| Some(policy.judge(kernel, m, a.cells[m].value()?, b.cells[m].value()?));
    Metric::all().filter_map(|m| Some((m, judge(m).filter(|judgement| *judgement != Judgement::Same)?))).collect()
}

/// The waves of both sides, or why they are not known.
fn judged_waves(sides: [&Record; 2], settings: occupancy::Settings) -> Result<[u64; 2], Vec<String>> {
    let [before, after] = sides.map(|record| Occupancy::of(record, settings).map(|o| u64::from(o.waves())));
    match (before, after) {
        (Ok(before), Ok(after)) => Ok([before, after]),
        (before, after) => {
            let unknown = |side: &str, waves: Result<u64, String>| {
                Some(format!("{side}: occupancy is not known: {}", waves.err()?))
            };
            Err(unknown("before", before).into_iter().chain(unknown("after", after)).collect())
        }
    }
}

/// The target, if its processor is known.
pub fn named(record: &Record) -> Option<&TargetId> {
    record.isa_target().and(record.target.as_deref())
}

/// Why two kernels cannot be compared.
fn blockers(a: &Record, b: &Record, policy: &Policy) -> Vec<String> {
    let mut reasons = Vec::new();
    match (named(a), named(b)) {
        (Some(before), Some(after)) if !before.same_as(after) => reasons.push(format!(
            "targets differ: before {}, after {}; registers and LDS are not comparable",
            before.short(),
            after.short()
        )),
        (Some(_), Some(_)) => {}
        (before, after) => {
            let side = match (before, after) {
                (None, None) => "both sides",
                (None, _) => "before",
                _ => "after",
            };
            reasons.push(format!("target is not identified on {side}"));
        }
    }
    let is_known = |m: Metric| a.cells[m].value().is_some() && b.cells[m].value().is_some();
    if !Metric::all().any(|m| m.is_trigger() && is_known(m)) {
        reasons.push("no trigger has a figure on both sides: nothing can be judged".into());
    } else if !policy.fail_on.occupancy() && !policy.fail_on.metrics().any(is_known) {
        reasons
            .push(format!("nothing of fail-on ({}) has a figure on both sides: nothing can be judged", policy.fail_on));
    }
    for (side, record) in [("before", a), ("after", b)] {
        reasons.extend(record.unknowns().iter().map(|unknown| format!("{side}: {unknown}")));
    }
    reasons
}

fn is_one_sided(a: &Cell, b: &Cell) -> bool {
    a.value().is_some() != b.value().is_some()
}

fn deltas(a: &Record, b: &Record) -> Vec<(Metric, i128)> {
    let delta = |m: Metric| Some(i128::from(b.cells[m].value()?) - i128::from(a.cells[m].value()?));
    Metric::all().filter_map(|m| Some((m, delta(m).filter(|d| *d != 0)?))).collect()
}
