//! What a reader of a comparison should know beside its rows.

use super::{Diff, Row};
use crate::cell::Cell;
use crate::metric::Metric;
use crate::policy::Judgement;
use crate::record::Record;
use crate::snapshot::Snapshot;

pub fn of_row(row: &Row<'_>) -> Vec<String> {
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
    notes.extend(row.crossing().map(|crossing| format!("{}: {crossing}", row.key)));
    notes
}

/// What the policy means for these rows; nothing under the default one.
pub fn on_policy(diff: &Diff<'_>, left_out: usize, sides: [&Snapshot; 2]) -> Vec<String> {
    let policy = &diff.policy;
    let Some(in_force) = policy.describe() else { return Vec::new() };
    let mut notes = vec![in_force];
    if !policy.only.is_empty() {
        notes.push(format!("{left_out} of {} kernels left out", left_out + diff.rows.len()));
    }
    notes.extend(policy.idle_rules(sides));
    for (rule, figures) in accepted(diff) {
        let (count, plural) = counted(figures.len());
        notes.push(format!("{count} change{plural} accepted by {rule}: {}", listed(&figures)));
    }
    let rose = |wanted: fn(Metric) -> bool, judgement: Judgement| {
        let rows = diff.rows.iter();
        let rose =
            rows.flat_map(|row| row.deltas().iter().filter(|(_, delta)| *delta > 0).map(move |(m, _)| (row, *m)));
        let wanted = rose.filter(|(row, m)| wanted(*m) && row.judgement(*m) == judgement);
        wanted.map(|(row, metric)| figure(row, metric)).collect::<Vec<String>>()
    };
    let passed_over = rose(Metric::is_trigger, Judgement::Informational);
    if !passed_over.is_empty() {
        let (count, plural) = counted(passed_over.len());
        notes.push(format!("{count} trigger{plural} rose that fail-on does not name: {}", listed(&passed_over)));
    }
    let beyond = rose(|m| !m.is_trigger(), Judgement::Worse);
    if !beyond.is_empty() {
        let (count, plural) = counted(beyond.len());
        notes.push(format!("{count} figure{plural} rose that only fail-on makes a failure: {}", listed(&beyond)));
    }
    let fell: Vec<String> = diff.rows.iter().filter(|row| row.has_fewer_waves()).map(waves).collect();
    if !fell.is_empty() {
        let (count, plural) = counted(fell.len());
        notes
            .push(format!("{count} kernel{plural} with fewer waves, which fail-on makes a failure: {}", listed(&fell)));
    }
    notes
}

/// What each rule accepted, in the order of the rules.
fn accepted<'d>(diff: &'d Diff<'_>) -> Vec<(&'d str, Vec<String>)> {
    let mut by_rule: Vec<(&str, Vec<String>)> = Vec::new();
    for row in &diff.rows {
        for (name, judgement) in row.judgements() {
            let Judgement::Allowed(rule) = judgement else { continue };
            let figure = Metric::named(name).map_or_else(|| waves(row), |metric| figure(row, metric));
            match by_rule.iter_mut().find(|(known, _)| known == rule) {
                Some((_, figures)) => figures.push(figure),
                None => by_rule.push((rule, vec![figure])),
            }
        }
    }
    by_rule
}

/// `key vgpr 96->100(+4)`.
fn figure(row: &Row<'_>, metric: Metric) -> String {
    let value = |record: Option<&Record>| record.and_then(|r| r.cells[metric].value()).unwrap_or_default();
    let (before, after) = (value(row.before), value(row.after));
    format!("{} {} {before}->{after}({:+})", row.key, metric.name(), i128::from(after) - i128::from(before))
}

/// `key occupancy 4->3(-1)`.
fn waves(row: &Row<'_>) -> String {
    let (before, after) = row.judged_waves().unwrap_or_default();
    format!("{} occupancy {before}->{after}({:+})", row.key, i128::from(after) - i128::from(before))
}

/// How many figures a note names; the others are in the table.
const NAMED: usize = 8;

fn listed(figures: &[String]) -> String {
    let mut named = figures[..figures.len().min(NAMED)].join(", ");
    if figures.len() > NAMED {
        named.push_str(&format!(" and {} more", figures.len() - NAMED));
    }
    named
}

fn counted(count: usize) -> (usize, &'static str) {
    (count, if count == 1 { "" } else { "s" })
}

/// Names the columns that no side of some kernel records.
pub fn not_recorded(rows: &[Row<'_>]) -> Option<String> {
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
