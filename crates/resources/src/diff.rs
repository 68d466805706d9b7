//! Compares two snapshots: a row per kernel, and the verdict.

use serde_json::{Map, Value, json};

use crate::cell::Cell;
use crate::metric::Metric;
use crate::pairing::{self, Pair, Rewrite};
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
pub struct Row {
    /// The key it goes by: that of before where there is one.
    pub key: String,
    /// The kernel before.
    pub before: Option<Record>,
    /// The kernel after.
    pub after: Option<Record>,
    /// The result.
    pub outcome: Outcome,
    /// Columns that are triggers and recorded on one side only.
    pub one_sided: Vec<Metric>,
}

impl Row {
    /// Whether the table shows the row: something moved, or something is wrong.
    pub fn is_shown(&self) -> bool {
        !matches!(&self.outcome, Outcome::Compared(deltas) if deltas.is_empty() && self.one_sided.is_empty())
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
pub struct Diff {
    /// By key.
    pub rows: Vec<Row>,
    /// What makes the comparison untrustworthy, each with its side and place.
    pub problems: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What is worth knowing about the inputs and changes no verdict.
    pub warnings: Vec<String>,
}

impl Diff {
    /// Compares; `rewrites` are those of `--match`.
    pub fn new(before: &Snapshot, after: &Snapshot, rewrites: &[Rewrite]) -> Diff {
        let (pairs, mut notes) = pairing::pair(before, after, rewrites);
        let rows: Vec<Row> = pairs.iter().map(|pair| compare(pair, before, after)).collect();
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
        match (self.problems.is_empty() && self.compared() > 0, self.worsened()) {
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

    /// How many trigger cells fell.
    pub fn improved(&self) -> usize {
        self.triggers().filter(|delta| *delta < 0).count()
    }

    fn triggers(&self) -> impl Iterator<Item = i128> {
        self.rows.iter().flat_map(Row::deltas).filter(|(metric, _)| metric.is_trigger()).map(|(_, delta)| *delta)
    }

    /// The JSON form; only rows that the table shows.
    pub fn to_json(&self) -> Value {
        let verdict = self.verdict();
        json!({
            "compared_kernels": self.compared(),
            "exit_code": verdict.exit_code(),
            "improved_metrics": self.improved(),
            "notes": self.notes,
            "problems": self.problems,
            "rows": self.rows.iter().filter(|row| row.is_shown()).map(row_to_json).collect::<Vec<_>>(),
            "schema": SCHEMA,
            "tool": TOOL,
            "total_kernels": self.rows.len(),
            "verdict": verdict.line(),
            "warnings": self.warnings,
            "worsened_metrics": self.worsened(),
        })
    }
}

fn compare(pair: &Pair, before: &Snapshot, after: &Snapshot) -> Row {
    let left = pair.before.as_ref().and_then(|key| before.kernels.get(key)).cloned();
    let right = pair.after.as_ref().and_then(|key| after.kernels.get(key)).cloned();
    let mut one_sided = Vec::new();
    let outcome = match (&left, &right) {
        (Some(a), Some(b)) => {
            let blockers = blockers(a, b);
            if blockers.is_empty() {
                one_sided =
                    Metric::all().filter(|&m| m.is_trigger() && is_one_sided(&a.cells[m], &b.cells[m])).collect();
                Outcome::Compared(deltas(a, b))
            } else {
                Outcome::Blocked(blockers)
            }
        }
        (Some(_), None) => Outcome::OnlyBefore,
        _ => Outcome::OnlyAfter,
    };
    Row { key: pair.key().to_owned(), before: left, after: right, outcome, one_sided }
}

/// Why two kernels cannot be compared.
fn blockers(a: &Record, b: &Record) -> Vec<String> {
    let mut reasons = Vec::new();
    let named = |record: &Record| record.isa_target().and(record.target.clone());
    match (named(a), named(b)) {
        (Some(before), Some(after)) if !before.same_as(&after) => reasons.push(format!(
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
    for (side, record) in [("before", a), ("after", b)] {
        for (metric, cell) in record.cells.iter() {
            if let Some(reason) = cell.unparsed() {
                reasons.push(format!("{side}: {} is not known: {reason}", metric.name()));
            }
        }
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

fn problems_of(row: &Row) -> Vec<String> {
    let key = &row.key;
    match &row.outcome {
        Outcome::Blocked(reasons) => reasons.iter().map(|reason| format!("{key}: {reason}")).collect(),
        Outcome::OnlyBefore => vec![format!("{key}: only in before; {ONE_SIDE_HINT}")],
        Outcome::OnlyAfter => vec![format!("{key}: only in after; {ONE_SIDE_HINT}")],
        Outcome::Compared(_) => row
            .one_sided
            .iter()
            .map(|metric| {
                format!("{key}: {} is recorded on one side only: whether it rose is not known", metric.name())
            })
            .collect(),
    }
}

/// What usually makes a kernel vanish from one side.
const ONE_SIDE_HINT: &str = "a cache hit writes no dump: rerun both sides with FLYDSL_RUNTIME_ENABLE_CACHE=0 \
                             into fresh directories, or pair renamed kernels with --match";

fn notes_of(row: &Row) -> Vec<String> {
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
    let numbered_is_known = [&row.before, &row.after]
        .iter()
        .all(|side| side.as_ref().is_some_and(|r| r.cells[Metric::NumberedSgpr].value().is_some()));
    if moved(Metric::Sgpr) == Some(2) && moved(Metric::NumberedSgpr).is_none() && numbered_is_known {
        notes.push(format!("{}: sgpr +2 with numbered_sgpr unchanged: VCC became live, rarely meaningful", row.key));
    }
    notes
}

/// Names the columns that no side of some kernel records.
fn not_recorded_note(rows: &[Row]) -> Option<String> {
    let lacks = |record: &Option<Record>, m: Metric| {
        record.as_ref().is_some_and(|r| matches!(r.cells[m], Cell::NotRecorded(_)))
    };
    let columns: Vec<&str> = Metric::all()
        .filter(|&m| rows.iter().any(|row| lacks(&row.before, m) || lacks(&row.after, m)))
        .map(Metric::name)
        .collect();
    (!columns.is_empty()).then(|| not_recorded_text(&columns))
}

/// The note on columns that an input does not record.
pub fn not_recorded_text(columns: &[&str]) -> String {
    format!("n/a (not recorded): {}; what the input does not record is not judged", columns.join(", "))
}

fn row_to_json(row: &Row) -> Value {
    let deltas: Map<String, Value> = row.deltas().iter().map(|(m, d)| (m.name().into(), json!(*d as i64))).collect();
    let (side, blocked) = match &row.outcome {
        Outcome::Compared(_) => (Value::Null, Vec::new()),
        Outcome::Blocked(reasons) => (Value::Null, reasons.clone()),
        Outcome::OnlyBefore => (json!("ONLY IN BEFORE"), Vec::new()),
        Outcome::OnlyAfter => (json!("ONLY IN AFTER"), Vec::new()),
    };
    let side_json = |record: &Option<Record>| record.as_ref().map_or(Value::Null, Record::to_json);
    json!({
        "after": side_json(&row.after),
        "before": side_json(&row.before),
        "blocked": blocked,
        "deltas": deltas,
        "kernel": row.key,
        "side": side,
    })
}
