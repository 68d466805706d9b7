//! The JSON form of a comparison. Its keys are part of the interface; new facts go into new keys.

use std::collections::BTreeMap;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{Diff, ONLY_IN_AFTER, ONLY_IN_BEFORE, Outcome, Row};
use crate::occupancy;
use crate::policy::{Judgement, Policy};
use crate::snapshot::{SCHEMA, TOOL};
use crate::verdict::Verdict;

/// The members in the order of their names. Only rows that the table shows.
#[derive(Serialize)]
pub struct Form<'d> {
    allowed_metrics: usize,
    /// What a comparison with a baseline adds.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline: Option<Value>,
    compared_kernels: usize,
    exit_code: u8,
    failing_metrics: usize,
    improved_metrics: usize,
    notes: &'d [String],
    policy: &'d Policy,
    problems: &'d [String],
    rows: Vec<&'d Row<'d>>,
    schema: u64,
    tool: &'static str,
    total_kernels: usize,
    verdict: &'static str,
    warnings: &'d [String],
    worsened_metrics: usize,
}

impl<'d> Form<'d> {
    /// That of a comparison.
    pub fn of_diff(diff: &'d Diff<'d>) -> Form<'d> {
        let verdict = diff.verdict();
        Form {
            allowed_metrics: diff.allowed(),
            baseline: None,
            compared_kernels: diff.compared(),
            exit_code: verdict.exit_code(),
            failing_metrics: diff.failing(),
            improved_metrics: diff.improved(),
            notes: &diff.notes,
            policy: &diff.policy,
            problems: &diff.problems,
            rows: diff.rows.iter().filter(|row| row.is_shown()).collect(),
            schema: SCHEMA,
            tool: TOOL,
            total_kernels: diff.rows.len(),
            verdict: verdict.line(),
            warnings: &diff.warnings,
            worsened_metrics: diff.worsened(),
        }
    }

    /// The same comparison, judged as one with a baseline.
    pub fn as_check(self, verdict: Verdict, problems: &'d [String], notes: &'d [String], baseline: Value) -> Form<'d> {
        let (exit_code, verdict) = (verdict.exit_code(), verdict.line());
        Form { exit_code, verdict, problems, notes, baseline: Some(baseline), ..self }
    }
}

impl Serialize for Diff<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form::of_diff(self).serialize(serializer)
    }
}

/// Keys sorted.
impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let deltas: BTreeMap<&str, i128> =
            self.deltas().iter().map(|(metric, delta)| (metric.name(), *delta)).collect();
        let rule = |(name, judgement): (&'static str, &Judgement)| match judgement {
            Judgement::Allowed(rule) => Some((name, rule.clone())),
            _ => None,
        };
        let allowed: BTreeMap<&str, String> = self.judgements().filter_map(rule).collect();
        let judgements: BTreeMap<&str, &str> =
            self.judgements().map(|(name, judgement)| (name, judgement.name())).collect();
        let (side, blocked) = match &self.outcome {
            Outcome::Compared(_) => (None, &[][..]),
            Outcome::Blocked(reasons) => (None, reasons.as_slice()),
            Outcome::OnlyBefore => (Some(ONLY_IN_BEFORE), &[][..]),
            Outcome::OnlyAfter => (Some(ONLY_IN_AFTER), &[][..]),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("after", &self.after)?;
        map.serialize_entry("allowed", &allowed)?;
        map.serialize_entry("before", &self.before)?;
        map.serialize_entry("blocked", blocked)?;
        map.serialize_entry("deltas", &deltas)?;
        map.serialize_entry("judgements", &judgements)?;
        map.serialize_entry("kernel", self.key)?;
        map.serialize_entry("kernel_after", &self.names.after)?;
        let [before, after] = self.occupancy();
        map.serialize_entry(occupancy::COLUMN, &BTreeMap::from([("after", after), ("before", before)]))?;
        map.serialize_entry("side", &side)?;
        map.end()
    }
}
