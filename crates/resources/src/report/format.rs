//! The formats beside the table and JSON, by name.

use std::io::{self, Write};

use super::{Report, csv, github, junit, markdown, sarif};

/// One format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A comment on a pull request.
    Markdown,
    /// Workflow commands that become annotations of a pull request.
    Github,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// A test case for each kernel.
    Junit,
    /// A row for each kernel.
    Csv,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 5] = [Format::Markdown, Format::Github, Format::Sarif, Format::Junit, Format::Csv];

    /// Its name in arguments.
    pub fn name(self) -> &'static str {
        match self {
            Format::Markdown => "markdown",
            Format::Github => "github",
            Format::Sarif => "sarif",
            Format::Junit => "junit",
            Format::Csv => "csv",
        }
    }

    /// What it is for.
    pub fn purpose(self) -> &'static str {
        match self {
            Format::Markdown => "a comment on a pull request",
            Format::Github => "annotations, as GitHub's workflow commands",
            Format::Sarif => "SARIF 2.1.0, for code scanning",
            Format::Junit => "a test case for each kernel",
            Format::Csv => "a row for each kernel",
        }
    }

    /// The endings of files that hold it.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            Format::Markdown => &["md", "markdown"],
            Format::Github => &["txt", "log"],
            Format::Sarif => &["sarif", "json"],
            Format::Junit => &["xml"],
            Format::Csv => &["csv"],
        }
    }

    /// Writes the report in this format.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(self, report: &Report, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Format::Markdown => out.write_all(markdown::render(report).as_bytes()),
            Format::Github => out.write_all(github::annotations(report).as_bytes()),
            Format::Sarif => sarif::write(report, out),
            Format::Junit => junit::write(report, out),
            Format::Csv => csv::write(report, out),
        }
    }
}
