//! Which indices the elements that differ have: the range of each dimension, and repetitions along rows and columns.

use super::indices;

/// The longest repetition looked for; tiles of kernels are powers of two.
const LONGEST_PERIOD: usize = 256;

/// Indices are remembered by their remainder of this, so that several periods can be told apart.
const REMEMBERED: usize = 4 * LONGEST_PERIOD;

/// The indices met so far.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    /// Lowest and highest index of each dimension.
    ranges: Vec<(u64, u64)>,
    /// Which remainders of the column by [`REMEMBERED`] occurred.
    columns: Vec<bool>,
    /// The same of the second last dimension.
    rows: Vec<bool>,
}

impl Clusters {
    pub(super) fn new(dimensions: usize) -> Clusters {
        Clusters {
            ranges: vec![(u64::MAX, 0); dimensions],
            columns: vec![false; REMEMBERED],
            rows: vec![false; REMEMBERED],
        }
    }

    /// Something differs in the row that starts at this index.
    pub(super) fn enter_row(&mut self, shape: &[u64], row_start: u64) {
        let at = indices(shape, row_start);
        let Some((_, outer)) = at.split_last() else { return };
        for (range, &index) in self.ranges.iter_mut().zip(outer) {
            *range = (range.0.min(index), range.1.max(index));
        }
        if let Some(&row) = outer.last() {
            self.rows[row as usize % REMEMBERED] = true;
        }
    }

    /// In the row, the marked ones of the elements from this column on differ.
    pub(super) fn add(&mut self, column: u64, marks: &[bool]) {
        let ends = marks.iter().position(|&differs| differs).zip(marks.iter().rposition(|&differs| differs));
        if let (Some(range), Some((first, last))) = (self.ranges.last_mut(), ends) {
            *range = (range.0.min(column + first as u64), range.1.max(column + last as u64));
        }
        let (until_wrap, wrapped) = marks.split_at(marks.len().min(REMEMBERED - column as usize % REMEMBERED));
        let seen =
            |seen: &mut [bool], marks: &[bool]| seen.iter_mut().zip(marks).for_each(|(seen, &more)| *seen |= more);
        seen(&mut self.columns[column as usize % REMEMBERED..], until_wrap);
        wrapped.chunks(REMEMBERED).for_each(|marks| seen(&mut self.columns, marks));
    }

    pub(super) fn join(&mut self, other: &Clusters) {
        for (range, &(low, high)) in self.ranges.iter_mut().zip(&other.ranges) {
            *range = (range.0.min(low), range.1.max(high));
        }
        self.columns.iter_mut().zip(&other.columns).for_each(|(seen, more)| *seen |= more);
        self.rows.iter_mut().zip(&other.rows).for_each(|(seen, more)| *seen |= more);
    }

    /// A line for each fact.
    pub(super) fn describe(&self, shape: &[u64], total: u64) -> Vec<String> {
        let dimensions = shape.len();
        let mut lines = Vec::new();
        for (dimension, (&(low, high), &extent)) in self.ranges.iter().zip(shape).enumerate() {
            let name = name(dimension, dimensions);
            if extent > 1 && low == high {
                lines.push(format!("all in {name} {low} of {extent}"));
            } else if (low, high + 1) != (0, extent) {
                lines.push(format!("{} {low}–{high} of {extent}", plural(&name)));
            }
            let seen = match dimensions - dimension {
                1 => &self.columns,
                2 => &self.rows,
                _ => continue,
            };
            if let Some((period, first, last)) = repetition(seen, low, high) {
                let of = format!("of every {period}");
                lines.push(match first == last {
                    true => format!("{name} {first} {of}"),
                    false => format!("{} {first}–{last} {of}", plural(&name)),
                });
            }
        }
        let size = self.ranges.iter().fold(1_u128, |size, (low, high)| size * u128::from(high - low + 1));
        if total > 1 && u128::from(total) == size {
            lines.push("every element there".to_owned());
        }
        lines
    }
}

/// `row` and `column` for the last two dimensions, `index I of dimension N` says more than a name for others.
fn name(dimension: usize, dimensions: usize) -> String {
    match dimensions - dimension {
        1 => "column".to_owned(),
        2 => "row".to_owned(),
        _ => format!("dimension {dimension} index"),
    }
}

fn plural(name: &str) -> String {
    if name.ends_with("index") { name.replace("index", "indices") } else { format!("{name}s") }
}

/// The rarest repetition: period, first and last remainder, all that occurred lying between them. Only what takes at
/// most half of each period, and what is there in each period of the range, three of them at least: less is chance.
fn repetition(seen: &[bool], low: u64, high: u64) -> Option<(usize, usize, usize)> {
    let mut best: Option<(usize, usize, usize)> = None;
    for period in (1..=LONGEST_PERIOD.ilog2()).map(|power| 1 << power) {
        let periods = low / period as u64..=high / period as u64;
        let mut starts =
            periods.clone().take(REMEMBERED / period).map(|number| (number as usize % (REMEMBERED / period)) * period);
        let in_each = starts.all(|start| seen[start..start + period].contains(&true));
        if !in_each || periods.end() - periods.start() < 2 {
            continue;
        }
        let occurs = |remainder: &usize| seen.iter().skip(*remainder).step_by(period).any(|&seen| seen);
        let first = (0..period).find(occurs)?;
        let last = (0..period).rev().find(occurs)?;
        let rarer = |(other, low, high): (usize, usize, usize)| (last - first + 1) * other < (high - low + 1) * period;
        if 2 * (last - first + 1) <= period && best.is_none_or(rarer) {
            best = Some((period, first, last));
        }
    }
    best
}
