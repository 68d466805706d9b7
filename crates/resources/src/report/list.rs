//! What moved, as a list that fits a narrow terminal: each kernel's whole name, and under it the figures that can fail and
//! moved, aligned, then the informational ones; at the end counts and totals. The table of [`crate::table`] needs 230 columns.

use anstyle::{AnsiColor, Style};

use super::csv::status;
use super::words::{Level, counted, plain};
use super::{Figure, Kernel, Report, Sort, Status};
use crate::cell::Cell;
use crate::policy::Judgement;

/// How many notes are shown before the rest is only counted.
const NOTES: usize = 20;
/// Where names begin: behind the longest word for a status, and a gap.
const INDENT: usize = 11;

/// How the list is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The columns there are.
    pub width: usize,
    /// Which kernels come first.
    pub sort: Sort,
    /// How many kernels are shown.
    pub top: Option<usize>,
    /// Whether ANSI escapes are written.
    pub color: bool,
}

/// The list, without the verdict.
pub fn render(report: &Report, look: Look) -> String {
    let mut out = String::new();
    let listed: Vec<&Kernel> = report.sorted(look.sort).into_iter().filter(|kernel| is_shown(kernel)).collect();
    let shown = &listed[..listed.len().min(look.top.unwrap_or(usize::MAX))];
    let grid = Grid::of(shown, look);
    for kernel in shown {
        grid.kernel(&mut out, kernel);
    }
    if shown.len() < listed.len() {
        let rest = counted(listed.len() - shown.len(), "more kernel");
        out.push_str(&format!("... and {rest} left out by --top {}\n", shown.len()));
    }
    for note in report.notes.iter().take(NOTES) {
        wrap_words(&format!("note: {}", plain(note)), look.width)
            .iter()
            .for_each(|line| out.push_str(&format!("{line}\n")));
    }
    if report.notes.len() > NOTES {
        out.push_str(&format!("... and {}; --view table has all\n", counted(report.notes.len() - NOTES, "more note")));
    }
    if report.command == "summarize" {
        out.push_str(&format!("{}\n", counted(report.kernels.len(), "kernel")));
        return out;
    }
    totals(&mut out, report);
    let counts = report.counts();
    let line = format!(
        "{}: {} hurt, {} helped, {} otherwise changed, {} unchanged, {} not comparable",
        counted(counts.kernels, "kernel"),
        counts.hurt,
        counts.helped,
        counts.changed,
        counts.unchanged,
        counts.unknown
    );
    wrap_words(&line, look.width).iter().for_each(|line| out.push_str(&format!("{line}\n")));
    out
}

/// As in the table: something moved, or something is wrong; every kernel of a snapshot.
fn is_shown(kernel: &Kernel) -> bool {
    kernel.status != Status::Unchanged
}

struct Grid {
    look: Look,
    name: usize,
    arrow: usize,
    delta: usize,
}

impl Grid {
    /// All kernels share the columns, so that the eye finds a figure at one place.
    fn of(kernels: &[&Kernel], look: Look) -> Grid {
        let figures = || kernels.iter().flat_map(|kernel| aligned(kernel));
        let widest = |text: fn(&Figure) -> usize| figures().map(text).max().unwrap_or(0);
        Grid {
            look,
            name: widest(|figure| figure.column.name().len()),
            arrow: widest(|figure| figure.arrow().len()),
            delta: widest(|figure| delta(figure).len()),
        }
    }

    fn kernel(&self, out: &mut String, kernel: &Kernel) {
        let mut word = label(kernel);
        let indent = if kernel.status == Status::Listed { 0 } else { INDENT };
        let room = self.look.width.saturating_sub(indent);
        for part in wrap(&plain(&kernel.key), room) {
            out.push_str(&format!("{}{part}\n", self.styled(style(kernel.level()), &format!("{word:<indent$}"))));
            word = "";
        }
        if !kernel.problems.is_empty() {
            wrap_words(&plain(&kernel.summary()), room)
                .iter()
                .for_each(|l| out.push_str(&format!("{:indent$}{l}\n", "")));
        }
        self.figures(out, kernel);
        let waves = kernel.moved_waves().filter(|waves| !waves.is_judged());
        let waves = waves.map(|waves| format!("{} {} waves per SIMD", waves.column.name(), waves.arrow()));
        let informational = moved(kernel)
            .filter(|figure| figure.judgement == Judgement::Informational)
            .map(|figure| format!("{} {}", figure.column.name(), figure.change()));
        let informational: Vec<String> = waves.into_iter().chain(informational).collect();
        let lines = wrap_words(&informational.join(", "), self.look.width.saturating_sub(4));
        lines.iter().for_each(|line| out.push_str(&format!("    {line}\n")));
    }

    /// `! vgpr  96->284  (+188)`, as many side by side as there is room for.
    fn figures(&self, out: &mut String, kernel: &Kernel) {
        let cell = 2 + self.name + 2 + self.arrow + if self.delta > 0 { 2 + self.delta } else { 0 };
        let columns = (self.look.width / (cell + 2)).max(1);
        let figures: Vec<&Figure> = aligned(kernel).collect();
        for row in figures.chunks(columns) {
            let cells: Vec<String> = row.iter().map(|figure| self.cell(figure)).collect();
            out.push_str(&format!("  {}\n", cells.join("  ").trim_end()));
        }
    }

    fn cell(&self, figure: &Figure) -> String {
        let (mark, style) = match figure.judgement {
            Judgement::Worse => ('!', Style::new().fg_color(Some(AnsiColor::Red.into()))),
            Judgement::Better => (' ', Style::new().fg_color(Some(AnsiColor::Green.into()))),
            Judgement::Allowed(_) => ('~', Style::new().fg_color(Some(AnsiColor::Cyan.into()))),
            Judgement::Same | Judgement::Informational => (' ', Style::new()),
        };
        let (name, arrow, delta) = (self.name, self.arrow, self.delta);
        let mut text = format!("{mark} {:<name$}  {:<arrow$}", figure.column.name(), figure.arrow());
        if delta > 0 {
            text.push_str(&format!("  {:>delta$}", self::delta(figure)));
        }
        self.styled(style, &text)
    }

    fn styled(&self, style: Style, text: &str) -> String {
        match self.look.color && style != Style::new() {
            true => format!("{style}{text}{style:#}"),
            false => text.to_owned(),
        }
    }
}

fn style(level: Level) -> Style {
    let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
    match level {
        Level::Error => color(AnsiColor::Yellow).bold(),
        Level::Failure => color(AnsiColor::Red).bold(),
        Level::Note => color(AnsiColor::Green),
        Level::Warning => color(AnsiColor::Cyan),
        Level::None => Style::new(),
    }
}

fn label(kernel: &Kernel) -> &'static str {
    match kernel.status {
        Status::New => "NEW",
        Status::Gone => "GONE",
        _ if kernel.level() == Level::Error => "UNKNOWN",
        Status::Listed => "",
        Status::Worse => "WORSE",
        Status::Improved => "IMPROVED",
        other => status(other),
    }
}

/// The figures that differ between two sides.
fn moved(kernel: &Kernel) -> impl Iterator<Item = &Figure> + Clone {
    let shown = |cell: &Option<Cell>| cell.as_ref().map(Cell::show);
    let differs = move |figure: &&Figure| {
        figure.before.is_some() && figure.after.is_some() && shown(&figure.before) != shown(&figure.after)
    };
    kernel.figures.iter().filter(differs)
}

/// What stands in columns: of a comparison the figures that moved and are not merely informational, those that fail first;
/// of a snapshot all that are not 0.
fn aligned(kernel: &Kernel) -> impl Iterator<Item = &Figure> {
    let is_there = |figure: &&Figure| {
        kernel.status == Status::Listed || figure.before.is_none() && kernel.status == Status::NotTrustworthy
    };
    let is_shown = |figure: &&Figure| figure.after.as_ref().is_some_and(|c| !matches!(c.show().as_str(), "0" | "n/a"));
    let listed = kernel.figures.iter().filter(is_there).filter(is_shown);
    let fails = |figure: &&Figure| figure.judgement == Judgement::Worse;
    let waves = kernel.moved_waves();
    let moved = moved(kernel).chain(waves).filter(|figure| figure.judgement != Judgement::Informational);
    moved.clone().filter(fails).chain(moved.filter(move |figure| !fails(figure))).chain(listed)
}

fn delta(figure: &Figure) -> String {
    figure.delta().filter(|delta| *delta != 0).map(|delta| format!("({delta:+})")).unwrap_or_default()
}

/// Cuts into lines of at most `width` characters: nothing is left out, so two names never look alike.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(width.max(16)).map(|part| part.iter().collect()).collect()
}

/// Breaks at spaces; a longer word is cut.
fn wrap_words(text: &str, width: usize) -> Vec<String> {
    let width = width.max(16);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').flat_map(|word| wrap(word, width)) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

fn totals(out: &mut String, report: &Report) {
    let rows: Vec<[String; 6]> = report
        .totals()
        .iter()
        .map(|total| {
            let star = if total.metric.is_trigger() { "*" } else { "" };
            let name = format!("{star}{}", total.metric.name());
            let delta = format!("{:+}", total.delta());
            [
                name,
                total.before.to_string(),
                total.after.to_string(),
                delta,
                total.rose.to_string(),
                total.fell.to_string(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let header = ["total", "before", "after", "change", "rose in", "fell in"].map(String::from);
    let width = |at: usize| rows.iter().chain([&header]).map(|row| row[at].len()).max().unwrap_or(0);
    let widths: [usize; 6] = std::array::from_fn(width);
    for row in [&header].into_iter().chain(&rows) {
        out.push_str(&format!("{:<1$}", row[0], widths[0]));
        row.iter().zip(widths).skip(1).for_each(|(cell, width)| out.push_str(&format!("  {cell:>width$}")));
        out.push('\n');
    }
}
