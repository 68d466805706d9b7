//! The table in the form that scripts and agents rely on. Frozen: new columns go to other renderers, or are asked for
//! (`--wide`).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::cell::Cell;
use crate::diff::{Diff, ONLY_IN_AFTER, ONLY_IN_BEFORE, Outcome, Row, not_recorded_text};
use crate::metric::Metric;
use crate::occupancy::{self, Settings};
use crate::printable;
use crate::record::Record;
use crate::snapshot::Snapshot;

const LEGEND: &str = "* = regression trigger; other columns are informational.\n\
    vgpr = total (arch+acc, LLVM's occupancy number); arch_vgpr/agpr are its split -- do not add them.\n";

/// The widest that a kernel's name is shown.
const NAME_WIDTH: usize = 60;
/// How much of a shortened name's end stays: where names differ, it is mostly there.
const NAME_TAIL: usize = 12;

/// One snapshot: legend, table, notes, count. The verdict is the caller's last line. With `wide` there is a last column of
/// waves per execution unit.
pub fn snapshot(snapshot: &Snapshot, wide: Option<Settings>) -> String {
    snapshot_of(snapshot, &snapshot.kernels.iter().collect::<Vec<_>>(), wide)
}

/// The same with only these kernels in the table, in this order.
pub fn snapshot_of(snapshot: &Snapshot, shown: &[(&String, &Record)], wide: Option<Settings>) -> String {
    let names = short_names(shown.iter().map(|(key, _)| key.as_str()));
    let rows = shown.iter().map(|(key, record)| {
        let mut cells: Vec<String> = Metric::all().map(|m| record.cells[m].show()).collect();
        cells.extend(wide.map(|settings| occupancy::cell(record, settings).show()));
        (names[key.as_str()].as_ref(), cells)
    });
    let mut out = render(rows, wide.is_some());
    notes(snapshot).iter().for_each(|note| line(&mut out, &format!("note: {note}")));
    if let Some(settings) = wide {
        let cells = snapshot.kernels.iter().map(|(key, record)| (key.as_str(), occupancy::cell(record, settings)));
        unknown_notes(cells).iter().for_each(|note| line(&mut out, note));
    }
    line(&mut out, &format!("{} kernels", snapshot.kernels.len()));
    out
}

/// What a reader of the figures should know.
pub(crate) fn notes(snapshot: &Snapshot) -> Vec<String> {
    let of_kernels =
        snapshot.kernels.iter().flat_map(|(key, record)| record.notes.iter().map(move |note| format!("{key}: {note}")));
    let lacking: Vec<&str> = Metric::all()
        .filter(|&m| snapshot.kernels.values().any(|r| matches!(r.cells[m], Cell::NotRecorded(_))))
        .map(Metric::name)
        .collect();
    of_kernels.chain((!lacking.is_empty()).then(|| not_recorded_text(&lacking))).collect()
}

/// A comparison: legend, the rows that moved or are wrong, notes, count. With `wide` there is a last column of waves per
/// execution unit.
pub fn diff(diff: &Diff<'_>, wide: bool) -> String {
    diff_of(diff, &diff.rows.iter().filter(|row| row.is_shown()).collect::<Vec<_>>(), wide)
}

/// The same with only these rows in the table, in this order.
pub fn diff_of(diff: &Diff<'_>, shown: &[&Row<'_>], wide: bool) -> String {
    let names = short_names(shown.iter().map(|row| row.key));
    let rows = shown.iter().map(|row| {
        let name = names[row.key].as_ref();
        let cells = match &row.outcome {
            Outcome::Compared(_) => compared_cells(row, wide),
            Outcome::Blocked(reasons) => vec![format!("BLOCKED: {}", reasons.first().map_or("", String::as_str))],
            Outcome::OnlyBefore => vec![ONLY_IN_BEFORE.into()],
            Outcome::OnlyAfter => vec![ONLY_IN_AFTER.into()],
        };
        (name, cells)
    });
    let mut out = render(rows, wide);
    diff.notes.iter().for_each(|note| line(&mut out, &format!("note: {note}")));
    if wide {
        let cells = shown.iter().flat_map(|row| row.occupancy().into_iter().flatten().map(|cell| (&*row.key, cell)));
        unknown_notes(cells).iter().for_each(|note| line(&mut out, note));
    }
    let compared = diff.compared();
    let changed = diff.changed();
    line(
        &mut out,
        &format!(
            "compared {compared} of {} kernels; {} unchanged; {changed} changed; worsened: {}; improved: {}",
            diff.rows.len(),
            compared - changed,
            diff.worsened(),
            diff.improved()
        ),
    );
    out
}

/// The line that stands above the verdict when something is wrong; nothing when `problems` is 0.
pub fn untrustworthy(problems: usize) -> String {
    match problems {
        0 => String::new(),
        n => format!("{n} kernel(s)/metric(s) not trustworthy; see stderr\n"),
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

/// `942->960(+18)`, or the one figure when it did not move.
fn compared_cells(row: &Row<'_>, wide: bool) -> Vec<String> {
    let (Some(before), Some(after)) = (row.before, row.after) else { return Vec::new() };
    let mut cells: Vec<String> = Metric::all().map(|m| compared_cell(&before.cells[m], &after.cells[m])).collect();
    if let (true, [Some(before), Some(after)]) = (wide, row.occupancy()) {
        cells.push(compared_cell(&before, &after));
    }
    cells
}

fn compared_cell(before: &Cell, after: &Cell) -> String {
    match (before, after) {
        (Cell::Value(a), Cell::Value(b)) if a != b => format!("{a}->{b}({:+})", i128::from(*b) - i128::from(*a)),
        (a, b) if a.show() != b.show() => format!("{}->{}", a.show(), b.show()),
        (_, b) => b.show(),
    }
}

/// Why waves are not known: a line for each reason, with the first kernel that it holds for.
fn unknown_notes<'k>(cells: impl Iterator<Item = (&'k str, Cell)>) -> Vec<String> {
    let mut by_reason: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for (key, cell) in cells {
        if let Cell::NotApplicable(why) = cell {
            by_reason.entry(why.into_owned()).or_insert((key, 0)).1 += 1;
        }
    }
    let note = |(why, (first, count)): (String, (&str, usize))| {
        let others = if count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        format!("note: occupancy is not known of {first}{others}: {why}")
    };
    by_reason.into_iter().map(note).collect()
}

/// Rows of all cells are set in columns; a row of one cell is a sentence and does not widen them. The rows are made
/// twice, for their widths and for their text: those of a whole library need not be in memory at once.
fn render<'n>(rows: impl Iterator<Item = (&'n str, Vec<String>)> + Clone, wide: bool) -> String {
    let star = |m: Metric| format!("{}{}", if m.is_trigger() { "*" } else { "" }, m.name());
    let mut header: Vec<String> = Metric::all().map(star).collect();
    header.extend(wide.then(|| occupancy::COLUMN.to_owned()));
    let columns = header.len();
    let mut widths: Vec<usize> = header.iter().map(String::len).collect();
    let mut name_width = "kernel".len();
    for (name, cells) in rows.clone() {
        name_width = name_width.max(name.chars().count());
        if cells.len() == columns {
            widths.iter_mut().zip(&cells).for_each(|(width, cell)| *width = (*width).max(cell.len()));
        }
    }
    let total = name_width + widths.iter().map(|w| w + 2).sum::<usize>();
    let mut out = String::from(LEGEND);
    let set = |out: &mut String, name: &str, cells: &[String]| {
        out.push_str(&format!("{name:<name_width$}"));
        if cells.len() == columns {
            cells.iter().zip(&widths).for_each(|(cell, width)| out.push_str(&format!("  {cell:>width$}")));
        } else {
            cells
                .iter()
                .for_each(|cell| out.push_str(&format!("  {}", fit(cell, total.saturating_sub(name_width + 2)))));
        }
        out.push('\n');
    };
    set(&mut out, "kernel", &header);
    line(&mut out, &"-".repeat(total));
    rows.for_each(|(name, cells)| set(&mut out, name, &cells));
    out
}

/// Cuts a sentence that is wider than the table; the whole of it is on stderr.
fn fit(text: &str, width: usize) -> String {
    let text = &*printable(text);
    match text.char_indices().nth(width) {
        None => text.to_owned(),
        Some(_) => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Names as shown: cut in the middle when long, whole where two cut ones would look alike.
fn short_names<'k>(keys: impl Iterator<Item = &'k str> + Clone) -> BTreeMap<&'k str, Cow<'k, str>> {
    let mut seen: BTreeMap<Cow<'k, str>, usize> = BTreeMap::new();
    keys.clone().for_each(|key| *seen.entry(shorten(key)).or_default() += 1);
    keys.map(|key| {
        let short = shorten(key);
        (key, if seen[&short] > 1 { Cow::Borrowed(key) } else { short })
    })
    .collect()
}

fn shorten(key: &str) -> Cow<'_, str> {
    let length = key.chars().count();
    if length <= NAME_WIDTH {
        return Cow::Borrowed(key);
    }
    let head = NAME_WIDTH - NAME_TAIL - 1;
    Cow::Owned(key.chars().take(head).chain(['~']).chain(key.chars().skip(length - NAME_TAIL)).collect())
}
