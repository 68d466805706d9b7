//! What a person sees of the findings: the frozen table, or a list where the table does not fit.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use resources::occupancy::Settings;
use resources::report::list::{self, Look};
use resources::report::{Report, Sort};
use resources::{Diff, Snapshot, table};

/// Without a terminal that says otherwise.
const WIDTH: usize = 80;

/// How findings are shown on stdout.
#[derive(clap::Args)]
pub struct View {
    /// The table, or a list with whole names that fits 80 columns [default: the list on a terminal that is narrower than the
    /// table, else the table]
    #[arg(long, value_name = "VIEW")]
    view: Option<Kind>,
    /// Show only the first N kernels, the worst first unless --sort is given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// What comes first: worst, name, or a metric by how much it rose [default: name in the table, worst in the list]
    #[arg(long, value_name = "ORDER")]
    sort: Option<Sort>,
    /// Colour the list
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: Color,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Kind {
    Table,
    List,
}

#[derive(Clone, Copy, ValueEnum)]
enum Color {
    /// On a terminal that takes it; not with NO_COLOR or TERM=dumb
    Auto,
    Always,
    Never,
}

impl View {
    /// A comparison.
    pub fn diff(&self, diff: &Diff<'_>, report: &Report, wide: bool) -> String {
        if self.view == Some(Kind::List) {
            return self.list(report);
        }
        let order = report.order(self.sort_or(Sort::Name));
        let mut rows: Vec<_> = order.into_iter().map(|at| &diff.rows[at]).filter(|row| row.is_shown()).collect();
        let left_out = self.cut(&mut rows);
        self.table_or_list(table::diff_of(diff, &rows, wide) + &left_out, report)
    }

    /// One snapshot.
    pub fn snapshot(&self, snapshot: &Snapshot, report: &Report, wide: Option<Settings>) -> String {
        if self.view == Some(Kind::List) {
            return self.list(report);
        }
        let kernels: Vec<_> = snapshot.kernels.iter().collect();
        let mut rows: Vec<_> = report.order(self.sort_or(Sort::Name)).into_iter().map(|at| kernels[at]).collect();
        let left_out = self.cut(&mut rows);
        self.table_or_list(table::snapshot_of(snapshot, &rows, wide) + &left_out, report)
    }

    /// The list alone, for findings that have no table.
    pub fn list(&self, report: &Report) -> String {
        let look = Look {
            width: width().unwrap_or(WIDTH),
            sort: self.sort.unwrap_or(Sort::Worst),
            top: self.top.map(|top| top as usize),
            color: match self.color {
                Color::Auto => AutoStream::choice(&io::stdout()) != ColorChoice::Never,
                Color::Always => true,
                Color::Never => false,
            },
        };
        list::render(report, look)
    }

    fn table_or_list(&self, table: String, report: &Report) -> String {
        let narrow = self.view.is_none() && io::stdout().is_terminal();
        match width().filter(|_| narrow) {
            // The sentences around the table are long too; its header is the line that has to fit.
            Some(width) if table.lines().any(|line| line.starts_with("---") && line.len() > width) => self.list(report),
            _ => table,
        }
    }

    /// `--top` without an order asks for the worst.
    fn sort_or(&self, default: Sort) -> Sort {
        self.sort.unwrap_or(if self.top.is_some() { Sort::Worst } else { default })
    }

    fn cut<T>(&self, rows: &mut Vec<T>) -> String {
        let top = self.top.map_or(usize::MAX, |top| top as usize);
        let left_out = rows.len().saturating_sub(top);
        rows.truncate(top);
        match left_out {
            0 => String::new(),
            n => format!("note: --top {top} left {n} more kernel(s) out of the table\n"),
        }
    }
}

/// The columns of the terminal, else what COLUMNS says.
fn width() -> Option<usize> {
    let of_terminal = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    of_terminal.or_else(|| std::env::var("COLUMNS").ok()?.parse().ok()).filter(|width| *width > 0)
}
