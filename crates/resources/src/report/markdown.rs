//! A comment on a pull request: the verdict first, then what moved, worst first; everything else is folded away. It never
//! exceeds what GitHub takes, and says what was left out.
//!
//! Names come from outside. Inside code they are neither markup nor mentions, so they are always shown as code.

use super::csv::status;
use super::words::{Level, counted, plain};
use super::{Column, Figure, Kernel, Report, Sort};
use crate::metric::Metric;
use crate::policy::Judgement;
use crate::verdict::Verdict;

/// GitHub refuses a longer body ("maximum is 65536 characters"). Bytes are counted here: never fewer than characters.
const LIMIT: usize = 65_536;
/// What closing a section and saying what was left out needs, with some room for the next heading.
const RESERVE: usize = 1_024;

/// The heading of problems.
const WRONG: &str = "what is wrong";

/// The comment.
pub(super) fn render(report: &Report) -> String {
    let mut page = Page { text: String::new(), left_out: 0 };
    let mark = match report.verdict {
        Verdict::Ok => "✅",
        Verdict::Regression => "❌",
        Verdict::NotTrustworthy => "⚠️",
    };
    // The first line lets a workflow find its comment of the last run and replace it.
    let command = report.command;
    page.text.push_str(&format!("<!-- coax {command} -->\n## {mark} coax {command}: {}\n\n", report.verdict.line()));
    page.text.push_str(&format!("{}\n", counts(report)));

    let kernels = report.sorted(Sort::Worst);
    let at = |wanted: &[Level]| -> Vec<&Kernel> {
        kernels.iter().copied().filter(|kernel| wanted.contains(&kernel.level())).collect()
    };
    let problems: Vec<String> = report
        .input_problems
        .iter()
        .map(String::as_str)
        .chain(report.unexplained())
        .map(|p| format!("- {}\n", code(p)))
        .collect();
    page.list("### Not trustworthy: the inputs", "problems", &problems);
    let problems: Vec<String> = at(&[Level::Error]).iter().map(|kernel| problem_row(kernel)).collect();
    page.table("### Not trustworthy", "kernels", &["kernel", WRONG], &problems);
    page.kernels("### Regressions", &at(&[Level::Failure]));
    page.kernels("### Accepted", &at(&[Level::Warning]));

    page.folded("Helped", |page| page.kernels("", &at(&[Level::Note])));
    let informational: Vec<&Kernel> =
        kernels.iter().copied().filter(|kernel| kernel.compared_figures().any(is_informational)).collect();
    page.folded("Informational figures that moved", |page| page.informational(&informational));
    let totals: Vec<String> = report.totals().iter().map(total_row).collect();
    page.folded("Totals of the figures that moved", |page| {
        page.table("", "rows", &["figure", "before", "after", "change", "rose in", "fell in"], &totals);
    });
    let lines = |texts: &[String]| -> Vec<String> { texts.iter().map(|text| format!("- {}\n", code(text))).collect() };
    page.folded("Notes", |page| page.list("", "notes", &lines(&report.notes)));
    page.folded("Warnings", |page| page.list("", "warnings", &lines(&report.warnings)));
    if page.left_out > 0 {
        let rest = page.left_out;
        page.text.push_str(&format!(
            "\n{rest} lines did not fit into a comment and were left out; the verdict counts them.\n"
        ));
    }
    page.text
}

fn counts(report: &Report) -> String {
    let counts = report.counts();
    if report.command == "summarize" {
        return format!("{}, {} not trustworthy.", counted(counts.kernels, "kernel"), counts.unknown);
    }
    format!(
        "**{} hurt**, **{} helped**, {} changed otherwise, {} unchanged, {} not comparable; {} in all.",
        counts.hurt,
        counts.helped,
        counts.changed,
        counts.unchanged,
        counts.unknown,
        counted(counts.kernels, "kernel")
    )
}

struct Page {
    text: String,
    left_out: usize,
}

impl Page {
    fn has_room_for(&self, more: usize) -> bool {
        self.text.len() + more + RESERVE <= LIMIT
    }

    /// A table, if there are rows; as many of them as there is room for.
    fn table(&mut self, heading: &str, what: &str, columns: &[&str], rows: &[String]) {
        let mut head = format!("| {} |\n|", columns.join(" | "));
        // Figures stand to the right, beside each other.
        head.extend(
            columns
                .iter()
                .map(|column| if ["kernel", "figure", WRONG].contains(column) { " --- |" } else { " ---: |" }),
        );
        self.rows(heading, what, &format!("{head}\n"), rows);
    }

    fn list(&mut self, heading: &str, what: &str, rows: &[String]) {
        self.rows(heading, what, "", rows);
    }

    fn rows(&mut self, heading: &str, what: &str, head: &str, rows: &[String]) {
        if rows.is_empty() {
            return;
        }
        if !self.has_room_for(heading.len() + head.len()) {
            self.left_out += rows.len();
            return;
        }
        let heading = if heading.is_empty() { String::new() } else { format!("\n{heading}\n\n") };
        self.text.push_str(&heading);
        self.text.push_str(head);
        let mut left_out = 0;
        for row in rows {
            match self.has_room_for(row.len()) {
                true => self.text.push_str(row),
                false => left_out += 1,
            }
        }
        if left_out > 0 {
            self.text.push_str(&format!("\n{left_out} of {} {what} left out here.\n", rows.len()));
            self.left_out += left_out;
        }
    }

    /// Kernels with the figures that can fail and moved in one of them, and the waves per SIMD where they moved.
    fn kernels(&mut self, heading: &str, kernels: &[&Kernel]) {
        let moved: Vec<Metric> = Metric::all()
            .filter(|metric| {
                kernels.iter().any(|kernel| kernel.judged().any(|figure| figure.column == Column::Metric(*metric)))
            })
            .collect();
        let waves = kernels.iter().any(|kernel| kernel.moved_waves().is_some());
        let columns: Vec<&str> = ["kernel"]
            .into_iter()
            .chain(moved.iter().map(|metric| metric.name()))
            .chain(waves.then_some("waves per SIMD"))
            .collect();
        let rows: Vec<String> = kernels.iter().map(|kernel| figures_row(kernel, &moved, waves)).collect();
        self.table(heading, "kernels", &columns, &rows);
    }

    fn informational(&mut self, kernels: &[&Kernel]) {
        let moved: Vec<Metric> = Metric::all()
            .filter(|metric| {
                let shows = |figure: &Figure| figure.column == Column::Metric(*metric) && is_informational(figure);
                kernels.iter().any(|kernel| kernel.compared_figures().any(shows))
            })
            .collect();
        let columns: Vec<&str> = ["kernel"].into_iter().chain(moved.iter().map(|metric| metric.name())).collect();
        let rows: Vec<String> = kernels.iter().map(|kernel| figures_row(kernel, &moved, false)).collect();
        self.table("", "kernels", &columns, &rows);
    }

    /// A section that opens at a click; nothing when `fill` writes nothing.
    fn folded(&mut self, title: &str, fill: impl FnOnce(&mut Page)) {
        let start = self.text.len();
        // Markdown inside needs an empty line in front.
        self.text.push_str(&format!("\n<details><summary>{title}</summary>\n\n"));
        let opened = self.text.len();
        fill(self);
        match self.text.len() == opened {
            true => self.text.truncate(start),
            false => self.text.push_str("\n</details>\n"),
        }
    }
}

fn is_informational(figure: &Figure) -> bool {
    figure.judgement == Judgement::Informational
}

fn figures_row(kernel: &Kernel, metrics: &[Metric], waves: bool) -> String {
    let mut row = format!("| {}", code(&kernel.key));
    if metrics.is_empty() && !waves {
        row.push_str(&format!(" ({})", status(kernel.status)));
    }
    row.push_str(" |");
    for metric in metrics {
        let figure = kernel.figures.get(*metric as usize);
        row.push_str(&format!(" {} |", figure.map(cell).unwrap_or_default()));
    }
    if waves {
        let figure = &kernel.occupancy;
        let shown = if figure.is_judged() { cell(figure) } else { figure.arrow().replace("->", "→") };
        row.push_str(&format!(" {shown} |"));
    }
    row.push('\n');
    row
}

/// `96→284 **+188**`: bold is what fails.
fn cell(figure: &Figure) -> String {
    let arrow = figure.arrow().replace("->", "→");
    let Some(delta) = figure.delta().filter(|delta| *delta != 0) else { return arrow };
    let delta = signed(delta);
    match &figure.judgement {
        Judgement::Worse => format!("{arrow} **{delta}**"),
        Judgement::Allowed(rule) => format!("{arrow} {delta}, accepted by {}", code(rule)),
        Judgement::Same | Judgement::Informational | Judgement::Better => format!("{arrow} {delta}"),
    }
}

fn signed(delta: i128) -> String {
    format!("{delta:+}").replace('-', "−")
}

fn total_row(total: &super::Total) -> String {
    let (before, after, delta) = (total.before, total.after, signed(total.delta()));
    let star = if total.metric.is_trigger() { "\\*" } else { "" };
    let name = total.metric.name();
    format!("| {star}{name} | {before} | {after} | {delta} | {} | {} |\n", total.rose, total.fell)
}

fn problem_row(kernel: &Kernel) -> String {
    format!("| {} | {} |\n", code(&kernel.key), code(&kernel.summary()))
}

/// Text from outside as code. A code span takes every character literally but a fence like its own, and in a table `|`;
/// where the text has that one, or spaces that a code span would drop, HTML with the characters' numbers does.
fn code(text: &str) -> String {
    let text = plain(text);
    if text.is_empty() {
        return String::new();
    }
    if !text.contains('|') && text.trim() == text {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let (fence, gap) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
        return format!("{fence}{gap}{text}{gap}{fence}");
    }
    let mut out = String::from("<code>");
    for character in text.chars() {
        match character.is_ascii_punctuation() {
            true => out.push_str(&format!("&#{};", u32::from(character))),
            false => out.push(character),
        }
    }
    out.push_str("</code>");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_no_way_out() {
        assert_eq!(code("gemm<float, 4> @team"), "`gemm<float, 4> @team`");
        assert_eq!(code("paired `a` with ``b``"), "``` paired `a` with ``b`` ```");
        assert_eq!(code("a|b`c"), "<code>a&#124;b&#96;c</code>");
        assert_eq!(code("<b>|@x\n"), "<code>&#60;b&#62;&#124;&#64;x&#92;n</code>");
    }

    #[test]
    fn a_comment_stays_below_what_github_takes() {
        let rows: Vec<String> =
            (0..5000).map(|at| format!("| `kernel number {at} with a rather long name` | 1 |\n")).collect();
        let mut page = Page { text: String::new(), left_out: 0 };
        page.folded("all", |page| page.table("", "kernels", &["kernel", "vgpr"], &rows));
        page.folded("again", |page| page.table("", "kernels", &["kernel", "vgpr"], &rows));
        assert!(page.text.len() <= LIMIT, "{}", page.text.len());
        let shown = page.text.lines().filter(|line| line.starts_with("| `kernel")).count();
        assert_eq!(shown + page.left_out, 2 * rows.len());
        assert!(page.text.contains("of 5000 kernels left out here"));
        assert_eq!(page.text.matches("<details>").count(), page.text.matches("</details>").count());
    }
}
