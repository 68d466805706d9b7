//! Compares two snapshots: a row per kernel, and the verdict.

use std::collections::BTreeMap;

use codeobj::TargetId;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::cell::Cell;
use crate::metric::Metric;
use crate::pairing::{self, Pair, Rewrite};
use crate::policy::{Judgement, Policy};
use crate::record::Record;
use crate::snapshot::{SCHEMA, Snapshot, TOOL};
use crate::verdict::Verdict;

/// What became of one kernel.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Both sides are known; what moved, as (metric, after − before).
    Compared(Vec<(Metric, i128)>),
    /// Both sides are there and cannot be compared; all reasons.
    Blocked(Vec<String>),
    /// Only before.
    OnlyBefore,
    /// Only after.
    OnlyAfter,
}

/// One kernel of the comparison.
#[derive(Clone, Debug)]
pub struct Row<'s> {
    /// The key it goes by: that of before where there is one.
    pub key: String,
    /// The kernel before.
    pub before: Option<&'s Record>,
    /// The kernel after.
    pub after: Option<&'s Record>,
    /// The result.
    pub outcome: Outcome,
    /// Columns that are triggers and recorded on one side only.
    pub one_sided: Vec<Metric>,
    /// What each figure that moved means under the policy.
    judgements: Vec<(Metric, Judgement)>,
}

impl Row<'_> {
    /// Whether the table shows the row: something moved, or something is wrong.
    pub fn is_shown(&self) -> bool {
        !matches!(&self.outcome, Outcome::Compared(deltas) if deltas.is_empty() && self.one_sided.is_empty())
    }

    /// What the change of a figure means.
    pub fn judgement(&self, metric: Metric) -> Judgement {
        let moved = self.judgements.iter().find(|(m, _)| *m == metric);
        moved.map_or(Judgement::Same, |(_, judgement)| judgement.clone())
    }

    fn deltas(&self) -> &[(Metric, i128)] {
        match &self.outcome {
            Outcome::Compared(deltas) => deltas,
            _ => &[],
        }
    }
}

/// The comparison of two snapshots.
#[derive(Clone, Debug)]
pub struct Diff<'s> {
    /// By key.
    pub rows: Vec<Row<'s>>,
    /// What makes the comparison untrustworthy, each with its side and place.
    pub problems: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What is worth knowing about the inputs and changes no verdict.
    pub warnings: Vec<String>,
}

impl<'s> Diff<'s> {
    /// Compares under `policy`; `rewrites` are those of `--match`.
    pub fn new(before: &'s Snapshot, after: &'s Snapshot, rewrites: &[Rewrite], policy: &Policy) -> Diff<'s> {
        let (pairs, mut notes) = pairing::pair(before, after, rewrites);
        let rows: Vec<Row<'s>> = pairs.iter().map(|pair| compare(pair, before, after, policy)).collect();
        notes.extend(rows.iter().flat_map(notes_of));
        notes.extend(not_recorded_note(&rows));
        let mut problems = Vec::new();
        for (side, snapshot) in [("before", before), ("after", after)] {
            problems.extend(snapshot.all_problems().iter().map(|p| format!("{side}: {p}")));
        }
        problems.extend(rows.iter().flat_map(problems_of));
        let sides = [("before", before), ("after", after)];
        let mut warnings = Vec::new();
        for (side, snapshot) in sides {
            for warning in &snapshot.warnings {
                let shared = before.warnings.contains(warning) && after.warnings.contains(warning);
                let shown = if shared { warning.clone() } else { format!("{side}: {warning}") };
                if !warnings.contains(&shown) {
                    warnings.push(shown);
                }
            }
        }
        Diff { rows, problems, notes, warnings }
    }

    /// OK, REGRESSION or NOT TRUSTWORTHY; the last one wins.
    pub fn verdict(&self) -> Verdict {
        match (self.problems.is_empty() && self.compared() > 0, self.failing()) {
            (false, _) => Verdict::NotTrustworthy,
            (true, 0) => Verdict::Ok,
            (true, _) => Verdict::Regression,
        }
    }

    /// How many kernels were compared.
    pub fn compared(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row.outcome, Outcome::Compared(_))).count()
    }

    /// How many compared kernels have a figure that moved.
    pub fn changed(&self) -> usize {
        self.rows.iter().filter(|row| !row.deltas().is_empty()).count()
    }

    /// How many trigger cells rose.
    pub fn worsened(&self) -> usize {
        self.triggers().filter(|delta| *delta > 0).count()
    }

    /// How many figures rose that the policy does not accept: without one, as many as trigger cells rose.
    pub fn failing(&self) -> usize {
        let judgements = self.rows.iter().flat_map(|row| &row.judgements);
        judgements.filter(|(_, judgement)| *judgement == Judgement::Worse).count()
    }

    /// How many trigger cells fell.
    pub fn improved(&self) -> usize {
        self.triggers().filter(|delta| *delta < 0).count()
    }

    fn triggers(&self) -> impl Iterator<Item = i128> {
        self.rows.iter().flat_map(Row::deltas).filter(|(metric, _)| metric.is_trigger()).map(|(_, delta)| *delta)
    }
}

/// Only rows that the table shows; keys sorted.
impl Serialize for Diff<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let verdict = self.verdict();
        let rows: Vec<&Row<'_>> = self.rows.iter().filter(|row| row.is_shown()).collect();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("compared_kernels", &self.compared())?;
        map.serialize_entry("exit_code", &verdict.exit_code())?;
        map.serialize_entry("improved_metrics", &self.improved())?;
        map.serialize_entry("notes", &self.notes)?;
        map.serialize_entry("problems", &self.problems)?;
        map.serialize_entry("rows", &rows)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("tool", TOOL)?;
        map.serialize_entry("total_kernels", &self.rows.len())?;
        map.serialize_entry("verdict", verdict.line())?;
        map.serialize_entry("warnings", &self.warnings)?;
        map.serialize_entry("worsened_metrics", &self.worsened())?;
        map.end()
    }
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let deltas: BTreeMap<&str, i128> =
            self.deltas().iter().map(|(metric, delta)| (metric.name(), *delta)).collect();
        let (side, blocked) = match &self.outcome {
            Outcome::Compared(_) => (None, &[][..]),
            Outcome::Blocked(reasons) => (None, reasons.as_slice()),
            Outcome::OnlyBefore => (Some(ONLY_IN_BEFORE), &[][..]),
            Outcome::OnlyAfter => (Some(ONLY_IN_AFTER), &[][..]),
        };
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("after", &self.after)?;
        map.serialize_entry("before", &self.before)?;
        map.serialize_entry("blocked", blocked)?;
        map.serialize_entry("deltas", &deltas)?;
        map.serialize_entry("kernel", &self.key)?;
        map.serialize_entry("side", &side)?;
        map.end()
    }
}

/// How a row of one side is shown.
pub const ONLY_IN_BEFORE: &str = "ONLY IN BEFORE";
/// How a row of one side is shown.
pub const ONLY_IN_AFTER: &str = "ONLY IN AFTER";

fn compare<'s>(pair: &Pair, before: &'s Snapshot, after: &'s Snapshot, policy: &Policy) -> Row<'s> {
    let left = pair.before.as_ref().and_then(|key| before.kernels.get(key));
    let right = pair.after.as_ref().and_then(|key| after.kernels.get(key));
    let (mut one_sided, mut judgements) = (Vec::new(), Vec::new());
    let outcome = match (left, right) {
        (Some(a), Some(b)) => {
            let blockers = blockers(a, b);
            if blockers.is_empty() {
                one_sided =
                    Metric::all().filter(|&m| m.is_trigger() && is_one_sided(&a.cells[m], &b.cells[m])).collect();
                judgements = judge(pair.key(), a, b, policy);
                Outcome::Compared(deltas(a, b))
            } else {
                Outcome::Blocked(blockers)
            }
        }
        (Some(_), None) => Outcome::OnlyBefore,
        _ => Outcome::OnlyAfter,
    };
    Row { key: pair.key().to_owned(), before: left, after: right, outcome, one_sided, judgements }
}

/// What the policy makes of the figures that moved.
fn judge(key: &str, a: &Record, b: &Record, policy: &Policy) -> Vec<(Metric, Judgement)> {
    let judge = |m: Metric| Some(policy.judge(key, m, a.cells[m].value()?, b.cells[m].value()?));
    Metric::all().filter_map(|m| Some((m, judge(m).filter(|judgement| *judgement != Judgement::Same)?))).collect()
}

/// Why two kernels cannot be compared.
fn blockers(a: &Record, b: &Record) -> Vec<String> {
    let mut reasons = Vec::new();
    fn named(record: &Record) -> Option<&TargetId> {
        record.isa_target().and(record.target.as_deref())
    }
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
    if !Metric::all().any(|m| m.is_trigger() && a.cells[m].value().is_some() && b.cells[m].value().is_some()) {
        reasons.push("no trigger has a figure on both sides: nothing can be judged".into());
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

pub(crate) fn problems_of(row: &Row<'_>) -> Vec<String> {
    let key = &row.key;
    match &row.outcome {
        Outcome::Blocked(reasons) => reasons.iter().map(|reason| format!("{key}: {reason}")).collect(),
        Outcome::OnlyBefore => vec![format!("{key}: only in before; {}", one_side_hint(row.before))],
        Outcome::OnlyAfter => vec![format!("{key}: only in after; {}", one_side_hint(row.after))],
        Outcome::Compared(_) => row
            .one_sided
            .iter()
            .map(|metric| {
                format!("{key}: {} is recorded on one side only: whether it rose is not known", metric.name())
            })
            .collect(),
    }
}

/// What usually makes a kernel vanish from one side: of a dump tree, a cache hit.
fn one_side_hint(record: Option<&Record>) -> &'static str {
    match record.is_some_and(|r| r.source.ends_with("final_isa.s")) {
        true => {
            "a cache hit writes no dump: rerun both sides with FLYDSL_RUNTIME_ENABLE_CACHE=0 into fresh directories, \
             or pair renamed kernels with --match"
        }
        false => "the other side has no such kernel; --match pairs renamed ones",
    }
}

fn notes_of(row: &Row<'_>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for record in row.before.iter().chain(&row.after) {
        for note in &record.notes {
            let note = format!("{}: {note}", row.key);
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    let moved = |metric| row.deltas().iter().find(|(m, _)| *m == metric).map(|(_, delta)| *delta);
    let numbered_is_known = [row.before, row.after]
        .iter()
        .all(|side| side.is_some_and(|r| r.cells[Metric::NumberedSgpr].value().is_some()));
    if moved(Metric::Sgpr) == Some(2) && moved(Metric::NumberedSgpr).is_none() && numbered_is_known {
        notes.push(format!("{}: sgpr +2 with numbered_sgpr unchanged: VCC became live, rarely meaningful", row.key));
    }
    notes
}

/// Names the columns that no side of some kernel records.
fn not_recorded_note(rows: &[Row<'_>]) -> Option<String> {
    let lacks = |record: Option<&Record>, m: Metric| record.is_some_and(|r| matches!(r.cells[m], Cell::NotRecorded(_)));
    let columns: Vec<&str> = Metric::all()
        .filter(|&m| rows.iter().any(|row| lacks(row.before, m) || lacks(row.after, m)))
        .map(Metric::name)
        .collect();
    (!columns.is_empty()).then(|| not_recorded_text(&columns))
}

/// The note on columns that an input does not record.
pub fn not_recorded_text(columns: &[&str]) -> String {
    format!("n/a (not recorded): {}; what the input does not record is not judged", columns.join(", "))
}
