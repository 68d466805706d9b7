//! Compares two snapshots: a row per kernel, and the verdict.

mod compare;
mod json;
mod notes;

use crate::cell::Cell;
use crate::metric::Metric;
use crate::occupancy::{self, Occupancy};
use crate::pairing::{self, Rewrite};
use crate::policy::{Judgement, Names, Policy};
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::verdict::Verdict;

pub use json::Form;
pub use notes::not_recorded_text;

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
    pub key: &'s str,
    /// The keys on both sides.
    pub names: Names<'s>,
    /// The kernel before.
    pub before: Option<&'s Record>,
    /// The kernel after.
    pub after: Option<&'s Record>,
    /// The result.
    pub outcome: Outcome,
    /// Columns that are triggers, or fail under the policy, and recorded on one side only.
    pub one_sided: Vec<Metric>,
    /// What each figure that moved means under the policy.
    judgements: Vec<(Metric, Judgement)>,
    /// The same of the waves, as (before, after, judgement); none where they are not judged or did not change.
    waves: Option<(u64, u64, Judgement)>,
    /// What is known of launches.
    settings: occupancy::Settings,
}

impl Row<'_> {
    /// Whether the table shows the row: something moved, or something is wrong.
    pub fn is_shown(&self) -> bool {
        !matches!(&self.outcome, Outcome::Compared(deltas)
            if deltas.is_empty() && self.one_sided.is_empty() && self.waves.is_none())
    }

    /// Whether both sides name their target, and not the same.
    pub fn has_other_target(&self) -> bool {
        let target = |record: Option<&'_ Record>| record.and_then(compare::named).cloned();
        target(self.before).zip(target(self.after)).is_some_and(|(before, after)| !before.same_as(&after))
    }

    /// What the change of a figure means.
    pub fn judgement(&self, metric: Metric) -> Judgement {
        let moved = self.judgements.iter().find(|(m, _)| *m == metric);
        moved.map_or(Judgement::Same, |(_, judgement)| judgement.clone())
    }

    /// The waves of each side that is there: a value, or `n/a` with the reason.
    pub fn occupancy(&self) -> [Option<Cell>; 2] {
        [self.before, self.after].map(|record| Some(occupancy::cell(record?, self.settings)))
    }

    /// How the waves changed, and why; none where they did not, or are not known on both sides.
    fn crossing(&self) -> Option<String> {
        let (Outcome::Compared(deltas), Some(before), Some(after)) = (&self.outcome, self.before, self.after) else {
            return None;
        };
        const BOUNDING: [Metric; 3] = [Metric::Vgpr, Metric::Sgpr, Metric::LdsStaticBytes];
        if before.launch == after.launch && !deltas.iter().any(|(metric, _)| BOUNDING.contains(metric)) {
            return None;
        }
        let [before, after] = [before, after].map(|record| Occupancy::of(record, self.settings).ok());
        occupancy::crossing(&before?, &after?)
    }

    /// The figures that moved and what each means, in table order; the waves are the last where they can fail.
    pub fn judgements(&self) -> impl Iterator<Item = (&'static str, &Judgement)> {
        let figures = self.judgements.iter().map(|(metric, judgement)| (metric.name(), judgement));
        figures.chain(self.waves.iter().map(|(_, _, judgement)| (occupancy::COLUMN, judgement)))
    }

    /// What the change of the waves means: where they are not judged, nothing.
    pub fn judgement_of_waves(&self) -> Judgement {
        self.waves.as_ref().map_or(Judgement::Informational, |(_, _, judgement)| judgement.clone())
    }

    /// Whether the waves fell, and nothing accepts that.
    fn has_fewer_waves(&self) -> bool {
        matches!(self.waves, Some((_, _, Judgement::Worse)))
    }

    /// The waves before and after where they changed and can fail.
    pub fn judged_waves(&self) -> Option<(u64, u64)> {
        self.waves.as_ref().map(|(before, after, _)| (*before, *after))
    }

    /// What moved, as (metric, after − before); nothing where the sides cannot be compared.
    pub fn deltas(&self) -> &[(Metric, i128)] {
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
    /// What the rows were judged by.
    pub policy: Policy,
    /// Those of `problems` that are not made of a row's outcome.
    pub(crate) input_problems: Vec<String>,
    /// Those of `problems` that belong to no kernel.
    pub(crate) of_no_kernel: Vec<String>,
}

impl<'s> Diff<'s> {
    /// Compares under `policy`; `rewrites` are those of `--match`, `settings` what is known of launches.
    pub fn new(
        before: &'s Snapshot,
        after: &'s Snapshot,
        rewrites: &[Rewrite],
        policy: &Policy,
        settings: occupancy::Settings,
    ) -> Diff<'s> {
        let (mut pairs, pairing_notes) = pairing::pair(before, after, rewrites);
        let all = pairs.len();
        // Behind the pairing, so that a kernel is paired the same way whether or not others are looked at.
        pairs.retain(|pair| policy.covers(pair.names()));
        let left_out = all - pairs.len();
        let rows: Vec<Row<'s>> =
            pairs.iter().map(|pair| compare::compare(pair, before, after, policy, settings)).collect();
        let is_about_a_row = |note: &pairing::Note<'_>| note.is_about(|key| policy.only.iter().any(|p| p.fits(key)));
        let told = pairing_notes.into_iter().filter(|note| left_out == 0 || is_about_a_row(note));
        let mut notes: Vec<String> = told.map(|note| note.text).collect();
        notes.extend(rows.iter().flat_map(notes::of_row));
        notes.extend(notes::not_recorded(&rows));
        let sides = [("before", before), ("after", after)];
        let mut input_problems = policy.unmatched_only([before, after]);
        let mut of_no_kernel = input_problems.clone();
        for (side, snapshot) in sides {
            input_problems.extend(snapshot.problems.iter().map(|p| format!("{side}: {p}")));
            of_no_kernel.extend(snapshot.problems.iter().map(|p| format!("{side}: {p}")));
            let record = |row: &Row<'s>| if side == "before" { row.before } else { row.after };
            let key = |row: &Row<'s>| if side == "before" { row.names.before } else { row.names.after };
            let records = rows.iter().filter_map(|row| Some((key(row)?, record(row)?)));
            let mut problems: Vec<(&str, &String)> =
                records.flat_map(|(key, record)| record.problems.iter().map(move |p| (key, p))).collect();
            problems.sort_by_key(|(key, _)| *key);
            input_problems.extend(problems.into_iter().map(|(key, problem)| format!("{side}: {key}: {problem}")));
        }
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
        let problems = input_problems.iter().cloned().chain(rows.iter().flat_map(problems_of)).collect();
        let mut diff = Diff { rows, problems, notes, warnings, policy: policy.clone(), input_problems, of_no_kernel };
        diff.notes.extend(notes::on_policy(&diff, left_out, [before, after]));
        diff
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
        let judgements = self.rows.iter().flat_map(Row::judgements);
        judgements.filter(|(_, judgement)| **judgement == Judgement::Worse).count()
    }

    /// How many figures rose that would fail if a rule did not accept them.
    pub fn allowed(&self) -> usize {
        let judgements = self.rows.iter().flat_map(Row::judgements);
        judgements.filter(|(_, judgement)| matches!(judgement, Judgement::Allowed(_))).count()
    }

    /// How many trigger cells fell.
    pub fn improved(&self) -> usize {
        self.triggers().filter(|delta| *delta < 0).count()
    }

    fn triggers(&self) -> impl Iterator<Item = i128> {
        self.rows.iter().flat_map(Row::deltas).filter(|(metric, _)| metric.is_trigger()).map(|(_, delta)| *delta)
    }
}

/// How a row of one side is shown.
pub const ONLY_IN_BEFORE: &str = "ONLY IN BEFORE";
/// How a row of one side is shown.
pub const ONLY_IN_AFTER: &str = "ONLY IN AFTER";

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
