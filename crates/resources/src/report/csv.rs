//! Comma-separated values after RFC 4180: a row for each kernel, three columns for each metric of a comparison.
//! `n/a` and `?` stay what they are: an empty cell would read as 0.

use std::borrow::Cow;
use std::io::{self, Write};

use super::words::plain;
use super::{Kernel, Report, Status};
use crate::cell::Cell;
use crate::metric::Metric;

/// Writes the report.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut csv = ::csv::WriterBuilder::new().terminator(::csv::Terminator::CRLF).from_writer(out);
    // A snapshot has one side, whose kernels are only listed.
    let sides = !report.kernels.iter().any(|kernel| kernel.status == Status::Listed) && report.command != "summarize";
    let mut header: Vec<String> = ["kernel", "status", "target", "file"].map(String::from).into();
    for name in Metric::all().map(Metric::name) {
        match sides {
            true => header.extend(["before", "after", "delta"].map(|part| format!("{name}_{part}"))),
            false => header.push(name.to_owned()),
        }
    }
    match sides {
        true => header.extend(["before", "after"].map(|part| format!("occupancy_{part}"))),
        false => header.push("occupancy".into()),
    }
    header.push("problems".into());
    csv.write_record(&header).map_err(io::Error::from)?;
    for kernel in &report.kernels {
        csv.write_record(row(kernel, sides).iter().map(|cell| cell.as_bytes())).map_err(io::Error::from)?;
    }
    csv.flush()
}

fn row(kernel: &Kernel, sides: bool) -> Vec<Cow<'_, str>> {
    let shown = |cell: &Option<Cell>| Cow::Owned(cell.as_ref().map(Cell::show).unwrap_or_default());
    let mut row: Vec<Cow<'_, str>> = vec![
        text(&kernel.key),
        status(kernel.status).into(),
        text(kernel.target.as_deref().unwrap_or_default()),
        text(&kernel.source),
    ];
    for figure in &kernel.figures {
        if sides {
            row.push(shown(&figure.before));
        }
        row.push(shown(&figure.after));
        if sides {
            row.push(figure.delta().map(|delta| delta.to_string()).unwrap_or_default().into());
        }
    }
    if sides {
        row.push(shown(&kernel.occupancy.before));
    }
    row.push(shown(&kernel.occupancy.after));
    row.push(text(&kernel.problems.join("; ")).into_owned().into());
    row
}

/// The word for a status.
pub(super) fn status(status: Status) -> &'static str {
    match status {
        Status::Listed => "listed",
        Status::Unchanged => "unchanged",
        Status::Changed => "changed",
        Status::Improved => "improved",
        Status::Worse => "worse",
        Status::New => "new",
        Status::Gone => "gone",
        Status::NotTrustworthy => "not trustworthy",
    }
}

/// A text from outside, which a spreadsheet would run as a formula if it began as one; an apostrophe in front makes it
/// text (OWASP, "CSV Injection"). Figures are ours: a fall is a negative number.
fn text(text: &str) -> Cow<'_, str> {
    let text = plain(text);
    match text.trim_start().starts_with(['=', '+', '-', '@']) {
        true => format!("'{text}").into(),
        false => text.into(),
    }
}
