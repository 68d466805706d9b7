//! A baseline: a snapshot that is kept in a repository, as a ratchet. What gets worse fails; what gets better has to be
//! pinned again, or the kernel could get worse again unnoticed.
//!
//! The answer is that of [`Diff`] first, so that no two commands disagree on a kernel. Then:
//! - NEW and GONE are NOT TRUSTWORTHY as in a comparison, since nothing is known of them;
//! - IMPROVED is NOT TRUSTWORTHY as well: the baseline is stale. Beside a kernel that got worse it changes nothing, as
//!   that is the claim that somebody has to act on;
//! - each of the three can be tolerated by name, and is told all the same.

mod layout;

use std::fmt;

use serde::{Serialize, Serializer};

use crate::cell::Cell;
use crate::diff::{self, Diff, Form, Outcome, Row};
use crate::metric::Metric;
use crate::policy::Judgement;
use crate::snapshot::Snapshot;
use crate::verdict::Verdict;

pub use layout::write;

/// What became of a kernel since its baseline was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A figure that can fail rose.
    Worse,
    /// The sides cannot be compared, or something is not known.
    Blocked,
    /// Not in the baseline.
    New,
    /// Only in the baseline.
    Gone,
    /// A figure that can fail fell, and none rose that is not accepted.
    Improved,
    /// Figures moved that fail nothing, or the policy accepts it.
    Changed,
    /// Nothing moved.
    Unchanged,
}

impl Kind {
    /// All, the most urgent first: the order in which they are listed.
    pub const ALL: [Kind; 7] =
        [Kind::Worse, Kind::Blocked, Kind::New, Kind::Gone, Kind::Improved, Kind::Changed, Kind::Unchanged];

    /// What became of that row.
    pub fn of(row: &Row<'_>) -> Kind {
        let any = |wanted: fn(&Judgement) -> bool| row.judgements().any(|(_, judgement)| wanted(judgement));
        match &row.outcome {
            Outcome::OnlyBefore => Kind::Gone,
            Outcome::OnlyAfter => Kind::New,
            Outcome::Blocked(_) => Kind::Blocked,
            Outcome::Compared(_) if !row.one_sided.is_empty() => Kind::Blocked,
            Outcome::Compared(_) if any(|j| *j == Judgement::Worse) => Kind::Worse,
            Outcome::Compared(_) if any(|j| *j == Judgement::Better) => Kind::Improved,
            Outcome::Compared(_) if !row.is_shown() => Kind::Unchanged,
            Outcome::Compared(_) => Kind::Changed,
        }
    }

    /// In small letters, as counts and lists name it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Worse => "worse",
            Kind::Blocked => "not comparable",
            Kind::New => "new",
            Kind::Gone => "gone",
            Kind::Improved => "improved",
            Kind::Changed => "changed",
            Kind::Unchanged => "unchanged",
        }
    }
}

/// Kinds of difference that are tolerated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accept {
    new: bool,
    improved: bool,
    gone: bool,
}

impl Accept {
    /// Reads `new,improved,gone`.
    ///
    /// # Errors
    /// A word that is none of these.
    pub fn parse(list: &str) -> Result<Accept, String> {
        let mut accept = Accept::default();
        list.split(',').try_for_each(|kind| accept.add(kind.trim()))?;
        Ok(accept)
    }

    /// Tolerates one more kind.
    ///
    /// # Errors
    /// The word is none of the three.
    pub fn add(&mut self, kind: &str) -> Result<(), String> {
        match kind {
            "new" => self.new = true,
            "improved" => self.improved = true,
            "gone" => self.gone = true,
            "worse" => {
                return Err("`worse` cannot be accepted whole; --allow and --allow-kernel accept increases".into());
            }
            _ => return Err(format!("`{kind}` is not known; known are new, improved, gone")),
        }
        Ok(())
    }

    /// Whether this kind fails nothing.
    pub fn has(self, kind: Kind) -> bool {
        match kind {
            Kind::New => self.new,
            Kind::Gone => self.gone,
            Kind::Improved => self.improved,
            _ => false,
        }
    }

    /// The words.
    pub fn names(self) -> Vec<&'static str> {
        [Kind::New, Kind::Improved, Kind::Gone].into_iter().filter(|kind| self.has(*kind)).map(Kind::name).collect()
    }
}

impl fmt::Display for Accept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(", "))
    }
}

/// A comparison with a baseline.
#[derive(Clone, Debug)]
pub struct Check<'s> {
    /// Baseline and input, compared.
    pub diff: Diff<'s>,
    /// What is tolerated.
    pub accept: Accept,
    /// What makes the answer untrustworthy, with the way out.
    pub problems: Vec<String>,
    /// Kernels that are better than their baseline, with the way out.
    pub stale: Vec<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl<'s> Check<'s> {
    /// Judges a comparison of a baseline with what is there now; `repin` is the command that would write it anew.
    pub fn new(diff: Diff<'s>, accept: Accept, repin: &str) -> Check<'s> {
        let mut problems = diff.input_problems.clone();
        let (mut stale, mut notes) = (Vec::new(), diff.notes.clone());
        for row in &diff.rows {
            let kind = Kind::of(row);
            match kind {
                _ if accept.has(kind) => {}
                Kind::New => {
                    problems.push(format!("{}: NEW: the baseline does not have it; pin it: `{repin}`", row.key))
                }
                Kind::Gone => problems.push(format!(
                    "{}: GONE: only the baseline has it; if it was removed or renamed on purpose, pin what is left: \
                     `{repin}`, or pair renamed kernels with --match",
                    row.key
                )),
                Kind::Improved => stale.push(format!(
                    "{}: IMPROVED: {}: stale baseline: it would not notice when the kernel gets worse again; pin the \
                     better figures: `{repin}`",
                    row.key,
                    moved(row).join(", ")
                )),
                _ => problems.extend(diff::problems_of(row).into_iter().map(|problem| match row.has_other_target() {
                    true => format!("{problem}; if that is meant, pin the new target: `{repin}`"),
                    false => problem,
                })),
            }
        }
        if diff.compared() == 0 && problems.is_empty() {
            problems.push(format!(
                "no kernel of the baseline is there any more: nothing was compared; pin anew: `{repin}`"
            ));
        }
        for kind in [Kind::New, Kind::Improved, Kind::Gone] {
            let count = diff.rows.iter().filter(|row| Kind::of(row) == kind).count();
            if accept.has(kind) && count > 0 {
                let kernels = if count == 1 { "kernel" } else { "kernels" };
                notes.push(format!("{count} {} {kernels} tolerated (accept: {accept})", kind.name()));
            }
        }
        Check { diff, accept, problems, stale, notes }
    }

    /// OK, REGRESSION or NOT TRUSTWORTHY.
    pub fn verdict(&self) -> Verdict {
        match (self.problems.is_empty(), self.diff.failing(), self.stale.is_empty()) {
            (false, _, _) => Verdict::NotTrustworthy,
            (true, 1.., _) => Verdict::Regression,
            (true, 0, false) => Verdict::NotTrustworthy,
            (true, 0, true) => Verdict::Ok,
        }
    }

    /// Problems and stale entries: what stands on stderr.
    pub fn messages(&self) -> Vec<String> {
        self.problems.iter().chain(&self.stale).cloned().collect()
    }

    /// How many kernels are of that kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.diff.rows.iter().filter(|row| Kind::of(row) == kind).count()
    }
}

/// As a comparison, with the keys of each kind added.
impl Serialize for Check<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keys = |kind: Kind| -> Vec<&str> {
            self.diff.rows.iter().filter(|row| Kind::of(row) == kind).map(|row| row.key).collect()
        };
        let listed = [Kind::Worse, Kind::Blocked, Kind::New, Kind::Gone, Kind::Improved, Kind::Changed];
        let mut baseline: serde_json::Map<String, serde_json::Value> =
            listed.into_iter().map(|kind| (kind.name().replace(' ', "_"), keys(kind).into())).collect();
        baseline.insert("accept".into(), self.accept.names().into());
        baseline.insert("unchanged_kernels".into(), self.count(Kind::Unchanged).into());
        let messages = self.messages();
        Form::of_diff(&self.diff)
            .as_check(self.verdict(), &messages, &self.notes, baseline.into())
            .serialize(serializer)
    }
}

/// Each kernel that is not as it was, the most urgent kinds first, with its figures on a line of their own.
pub fn listing(diff: &Diff<'_>, accept: Accept) -> String {
    let mut out = String::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Unchanged) {
        for row in diff.rows.iter().filter(|row| Kind::of(row) == kind) {
            let label = if kind == Kind::Blocked { "BLOCKED".to_owned() } else { kind.name().to_uppercase() };
            let accepted = if accept.has(kind) { " (accepted)" } else { "" };
            out.push_str(&format!("{label:<10}{}{accepted}\n", row.key));
            let details = match &row.outcome {
                Outcome::Blocked(reasons) => reasons.clone(),
                _ => wrapped(
                    row.one_sided
                        .iter()
                        .map(|m| format!("{} is recorded on one side only", m.name()))
                        .chain(moved(row)),
                ),
            };
            details.iter().for_each(|line| out.push_str(&format!("{:<10}{}\n", "", crate::printable(line))));
        }
    }
    out
}

/// `1 worse, 3 unchanged`: the kinds that there are.
pub fn counts(diff: &Diff<'_>) -> String {
    let count = |kind: Kind| diff.rows.iter().filter(|row| Kind::of(row) == kind).count();
    let counted = Kind::ALL.into_iter().map(|kind| (count(kind), kind.name())).filter(|(count, _)| *count > 0);
    counted.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
}

/// `vgpr 96->100(+4)`, for each figure that moved.
fn moved(row: &Row<'_>) -> Vec<String> {
    let value = |record: Option<&crate::Record>, metric: Metric| {
        record.map_or_else(String::new, |record| Cell::show(&record.cells[metric]))
    };
    let figure = |(metric, delta): &(Metric, i128)| {
        let allowed = if matches!(row.judgement(*metric), Judgement::Allowed(_)) { " allowed" } else { "" };
        let (before, after) = (value(row.before, *metric), value(row.after, *metric));
        format!("{} {before}->{after}({delta:+}){allowed}", metric.name())
    };
    let waves = row.judged_waves().map(|(before, after)| {
        let name = crate::occupancy::COLUMN;
        format!("{name} {before}->{after}({:+})", i128::from(after) - i128::from(before))
    });
    row.deltas().iter().map(figure).chain(waves).collect()
}

/// How wide the lines below a kernel's name are: with their indent, 80 columns.
const WIDTH: usize = 70;

/// Sets figures on lines, none of which is cut.
fn wrapped(figures: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for figure in figures {
        match lines.last_mut() {
            Some(line) if line.len() + 3 + figure.len() <= WIDTH => {
                line.push_str(", ");
                line.push_str(&figure);
            }
            Some(line) => {
                line.push(',');
                lines.push(figure);
            }
            None => lines.push(figure),
        }
    }
    lines
}

/// What a baseline holds of a snapshot: nothing of the machine or the run that it was made in. Sources are relative to
/// the input already, but for an input that is one file and is named by its path: there, the file's name is kept.
pub fn pinned(mut snapshot: Snapshot) -> Snapshot {
    snapshot.warnings.clear();
    for record in snapshot.kernels.values_mut() {
        let (file, member) = match record.source.split_once('!') {
            Some((file, member)) => (file, Some(member)),
            None => (&*record.source, None),
        };
        let path = std::path::Path::new(file);
        let leaves = path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir);
        if !leaves {
            continue;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        record.source = member.map_or_else(|| name.to_string(), |member| format!("{name}!{member}")).into();
    }
    snapshot
}
