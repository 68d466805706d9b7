//! What a command says of the kernels that it looked at, as one value. Every format is a rendering of it, so that no two
//! can disagree; the table that scripts rely on ([`crate::table`]) and the JSON forms are older and stay beside it.

pub mod counts;
mod csv;
pub mod format;
mod github;
mod junit;
pub mod list;
mod markdown;
pub mod order;
mod sarif;
mod words;

use crate::baseline::{Accept, Check, Kind};
use crate::cell::Cell;
use crate::diff::{self, Diff, Outcome};
use crate::metric::Metric;
use crate::occupancy::{self, Settings};
use crate::policy::Judgement;
use crate::record::Record;
use crate::snapshot::Snapshot;
use crate::table;
use crate::triton::Identity;
use crate::verdict::Verdict;

pub use counts::{Counts, Total};
pub use format::Format;
pub use github::annotations;
pub use order::Sort;

/// One run's findings.
#[derive(Clone, Debug)]
pub struct Report {
    /// `summarize`, `diff`, `baseline check`.
    pub command: &'static str,
    /// Each kernel, in the order of the keys.
    pub kernels: Vec<Kernel>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What makes the answer untrustworthy, each with its place; those of kernels included.
    pub problems: Vec<String>,
    /// Those of `problems` that belong to no kernel.
    pub input_problems: Vec<String>,
    /// What changes no verdict.
    pub warnings: Vec<String>,
    /// The conclusion.
    pub verdict: Verdict,
}

/// One kernel.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// `<place below the input>::<kernel name>`.
    pub key: String,
    /// The file that it was read from: of after where there is one.
    pub source: String,
    /// Its target ID, where the input names one.
    pub target: Option<String>,
    /// What tells it from others of its name, where its place does not last: of before where there is one, as that side
    /// is the one that stays.
    pub identity: Option<Identity>,
    /// What became of it.
    pub status: Status,
    /// A figure for each metric, in table order; none for a kernel that has no sides to show.
    pub figures: Vec<Figure>,
    /// Waves per execution unit; `n/a` with the reason where they are not known.
    pub occupancy: Figure,
    /// What is wrong with it.
    pub problems: Vec<String>,
}

/// What became of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Shown and compared with nothing.
    Listed,
    /// No figure moved.
    Unchanged,
    /// Figures moved, and none of those that can fail rose or fell, or the policy accepts it.
    Changed,
    /// Figures that can fail fell, none rose.
    Improved,
    /// A figure that can fail rose.
    Worse,
    /// Only after.
    New,
    /// Only before.
    Gone,
    /// The sides cannot be compared, or something is not known.
    NotTrustworthy,
}

/// One figure on both sides; `summarize` has only an `after`.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The column.
    pub column: Column,
    /// Before.
    pub before: Option<Cell>,
    /// After.
    pub after: Option<Cell>,
    /// What the change means.
    pub judgement: Judgement,
}

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A column of the table.
    Metric(Metric),
    /// Waves per execution unit: worse when they fall.
    Occupancy,
}

impl Column {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Column::Metric(metric) => metric.name(),
            Column::Occupancy => occupancy::COLUMN,
        }
    }
}

impl Figure {
    /// After − before, where both are known.
    pub fn delta(&self) -> Option<i128> {
        let known = |cell: &Option<Cell>| cell.as_ref().and_then(Cell::value).map(i128::from);
        Some(known(&self.after)? - known(&self.before)?)
    }
}

impl Report {
    /// Of one snapshot.
    pub fn of_snapshot(snapshot: &Snapshot, settings: Settings) -> Report {
        let kernels = snapshot.kernels.iter().map(|(key, record)| Kernel {
            problems: problems(record),
            status: if record.is_trustworthy() { Status::Listed } else { Status::NotTrustworthy },
            occupancy: waves([None, Some(occupancy::cell(record, settings))], Judgement::Same),
            ..kernel(key, None, Some(record), |_| Judgement::Same)
        });
        Report {
            command: "summarize",
            kernels: kernels.collect(),
            notes: table::notes(snapshot),
            problems: snapshot.all_problems(),
            input_problems: snapshot.problems.clone(),
            warnings: snapshot.warnings.clone(),
            verdict: snapshot.verdict(),
        }
    }

    /// Of a comparison.
    pub fn of_diff(diff: &Diff<'_>) -> Report {
        Report {
            command: "diff",
            kernels: diff.rows.iter().map(of_row).collect(),
            notes: diff.notes.clone(),
            problems: diff.problems.clone(),
            input_problems: diff.of_no_kernel.clone(),
            warnings: diff.warnings.clone(),
            verdict: diff.verdict(),
        }
    }

    /// Of a comparison with a baseline.
    pub fn of_check(check: &Check<'_>) -> Report {
        Report {
            command: "baseline check",
            kernels: check.diff.rows.iter().map(|row| of_checked(row, check.accept)).collect(),
            notes: check.notes.clone(),
            problems: check.messages(),
            input_problems: check.diff.of_no_kernel.clone(),
            warnings: check.diff.warnings.clone(),
            verdict: check.verdict(),
        }
    }

    /// Of a run whose inputs gave nothing to report on.
    pub fn of_failure(command: &'static str, problems: Vec<String>) -> Report {
        Report {
            command,
            kernels: Vec::new(),
            notes: Vec::new(),
            input_problems: problems.clone(),
            problems,
            warnings: Vec::new(),
            verdict: Verdict::NotTrustworthy,
        }
    }

    /// How many kernels have that status.
    pub fn count(&self, status: Status) -> usize {
        self.kernels.iter().filter(|kernel| kernel.status == status).count()
    }
}

/// As in a comparison, but that a baseline which is behind is what is wrong, unless that is accepted.
fn of_checked(row: &diff::Row<'_>, accept: Accept) -> Kernel {
    let kernel = of_row(row);
    let kind = Kind::of(row);
    let (status, why) = match kind {
        Kind::New => (Status::New, "NEW: the baseline does not have it".to_owned()),
        Kind::Gone => (Status::Gone, "GONE: only the baseline has it".to_owned()),
        Kind::Improved if kernel.status != Status::NotTrustworthy => {
            let figures = kernel.summary();
            (Status::Improved, format!("IMPROVED: {figures}: stale baseline: pin the better figures"))
        }
        _ => return kernel,
    };
    Kernel { status, problems: if accept.has(kind) { Vec::new() } else { vec![why] }, ..kernel }
}

fn of_row(row: &diff::Row<'_>) -> Kernel {
    let shown = kernel(row.key, row.before, row.after, |metric| row.judgement(metric));
    // A kernel says which side of it is wrong, and not its own name once more.
    let of_key = format!("{}: ", row.key);
    let own = |problem: String| problem.strip_prefix(&of_key).map(str::to_owned).unwrap_or(problem);
    let mut problems: Vec<String> = diff::problems_of(row).into_iter().map(own).collect();
    for (side, record) in [("before", row.before), ("after", row.after)] {
        let recorded = record.into_iter().flat_map(|record| &record.problems);
        problems.extend(recorded.map(|problem| format!("{side}: {problem}")));
    }
    let any = |wanted: fn(&Judgement) -> bool| row.judgements().any(|(_, judgement)| wanted(judgement));
    let status = match &row.outcome {
        Outcome::OnlyBefore => Status::Gone,
        Outcome::OnlyAfter => Status::New,
        Outcome::Blocked(_) => Status::NotTrustworthy,
        Outcome::Compared(_) if !problems.is_empty() => Status::NotTrustworthy,
        Outcome::Compared(_) if any(|j| *j == Judgement::Worse) => Status::Worse,
        Outcome::Compared(_) if any(|j| matches!(j, Judgement::Allowed(_))) => Status::Changed,
        Outcome::Compared(_) if any(|j| *j == Judgement::Better) => Status::Improved,
        Outcome::Compared(_) if !row.is_shown() => Status::Unchanged,
        Outcome::Compared(_) => Status::Changed,
    };
    Kernel { status, problems, occupancy: waves(row.occupancy(), row.judgement_of_waves()), ..shown }
}

fn waves([before, after]: [Option<Cell>; 2], judgement: Judgement) -> Figure {
    Figure { column: Column::Occupancy, before, after, judgement }
}

/// Problems and what is not known.
fn problems(record: &Record) -> Vec<String> {
    record.problems.iter().cloned().chain(record.unknowns()).collect()
}

fn kernel(
    key: &str,
    before: Option<&Record>,
    after: Option<&Record>,
    judgement: impl Fn(Metric) -> Judgement,
) -> Kernel {
    let shown = after.or(before);
    let cell = |record: Option<&Record>, metric: Metric| record.map(|record| record.cells[metric].clone());
    let figure = |metric| Figure {
        column: Column::Metric(metric),
        before: cell(before, metric),
        after: cell(after, metric),
        judgement: judgement(metric),
    };
    Kernel {
        key: key.to_owned(),
        source: shown.map(|record| record.source.to_string()).unwrap_or_default(),
        target: shown.and_then(|record| record.target.as_ref()).map(|target| target.text.clone()),
        identity: before.or(after).and_then(|record| record.identity.clone()),
        status: Status::Listed,
        figures: Metric::all().map(figure).collect(),
        occupancy: waves([None, None], Judgement::Same),
        problems: Vec::new(),
    }
}
