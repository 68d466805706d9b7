//! A `.case` file: what it holds, how it is read and how it is printed.
//!
//! `tests/cli/format.case` explains the format. Printing a parsed case gives the same bytes, which a test proves for
//! every file; so blessing can replace some sections and leave the rest as its author wrote it.

use crate::escape;
use std::fmt;

/// One behaviour of the program: its inputs, its command lines and what they must print.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Everything above the first section, as written.
    pub head: Vec<String>,
    /// What this machine must have, from the `needs:` lines.
    pub needs: Vec<String>,
    /// Environment for every command, from the `env:` lines.
    pub env: Vec<(String, String)>,
    /// The sections in the order of the file, which is the order in which they take effect.
    pub sections: Vec<Section>,
}

/// A part of the file that a `---- ` line opens.
#[derive(Clone, Debug, PartialEq)]
pub enum Section {
    /// An input file, written into the working directory.
    File { path: String, body: Body },
    /// Preparations of the working directory, a line each.
    Setup(Vec<String>),
    /// Command lines of `coax`, without the program's name.
    Run(Vec<String>),
    /// What the last command of the group printed.
    Stdout(Body),
    /// What the last command of the group printed on the second stream.
    Stderr(Body),
    /// The exit code of the last command of the group.
    Exit(i32),
}

/// Lines of a section as the file holds them, and whether they are written with byte escapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body {
    /// The raw lines, section marks already freed of their backslash.
    pub lines: Vec<String>,
    /// Whether the lines use the escapes of [`escape`].
    pub escaped: bool,
}

const MARK: &str = "---- ";
const ESCAPED: &str = " (escaped)";

impl Case {
    /// Reads a case; the error names the line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.strip_suffix('\n').ok_or("the file must end with a newline")?;
        let mut case = Self { head: Vec::new(), needs: Vec::new(), env: Vec::new(), sections: Vec::new() };
        for (index, line) in body.split('\n').enumerate() {
            let place = |message: &str| format!("line {}: {message}: `{line}`", index + 1);
            if index == 0 && !line.starts_with("# ") {
                return Err(place("the first line must say the behaviour in a sentence, after `# `"));
            }
            if let Some(title) = line.strip_prefix(MARK) {
                case.sections.push(Section::open(title).map_err(|message| place(&message))?);
            } else if let Some(section) = case.sections.last_mut() {
                section.lines_mut().ok_or_else(|| place("nothing may follow the exit code"))?.push(unmark(line));
            } else {
                case.read_head(line).map_err(|message| place(&message))?;
            }
        }
        if !case.sections.iter().any(|section| matches!(section, Section::Run(_))) {
            return Err("there is no `---- run` section".into());
        }
        Ok(case)
    }

    fn read_head(&mut self, line: &str) -> Result<(), String> {
        if let Some(names) = line.strip_prefix("needs: ") {
            self.needs.extend(names.split(", ").map(str::to_owned));
        } else if let Some(setting) = line.strip_prefix("env: ") {
            let (name, value) = setting.split_once('=').ok_or("expected NAME=VALUE")?;
            self.env.push((name.to_owned(), value.to_owned()));
        } else if !line.is_empty() && !line.starts_with('#') {
            return Err("expected `# text`, `needs: NAME`, `env: NAME=VALUE` or a section".into());
        }
        self.head.push(line.to_owned());
        Ok(())
    }
}

impl Section {
    fn open(title: &str) -> Result<Self, String> {
        let (word, escaped) = match title.strip_suffix(ESCAPED) {
            Some(word) => (word, true),
            None => (title, false),
        };
        let body = Body { lines: Vec::new(), escaped };
        Ok(match word.split_once(' ') {
            Some(("file", path)) => Self::File { path: path.to_owned(), body },
            Some(("exit", code)) if !escaped => {
                Self::Exit(code.parse().map_err(|_| "the exit code is not a number".to_owned())?)
            }
            None if word == "stdout" => Self::Stdout(body),
            None if word == "stderr" => Self::Stderr(body),
            None if word == "setup" && !escaped => Self::Setup(Vec::new()),
            None if word == "run" && !escaped => Self::Run(Vec::new()),
            _ => return Err("expected file PATH, setup, run, stdout, stderr or exit CODE".into()),
        })
    }

    fn title(&self) -> String {
        let suffix = |body: &Body| if body.escaped { ESCAPED } else { "" };
        match self {
            Self::File { path, body } => format!("file {path}{}", suffix(body)),
            Self::Setup(_) => "setup".into(),
            Self::Run(_) => "run".into(),
            Self::Stdout(body) => format!("stdout{}", suffix(body)),
            Self::Stderr(body) => format!("stderr{}", suffix(body)),
            Self::Exit(code) => format!("exit {code}"),
        }
    }

    fn lines(&self) -> &[String] {
        match self {
            Self::File { body, .. } | Self::Stdout(body) | Self::Stderr(body) => &body.lines,
            Self::Setup(lines) | Self::Run(lines) => lines,
            Self::Exit(_) => &[],
        }
    }

    fn lines_mut(&mut self) -> Option<&mut Vec<String>> {
        match self {
            Self::File { body, .. } | Self::Stdout(body) | Self::Stderr(body) => Some(&mut body.lines),
            Self::Setup(lines) | Self::Run(lines) => Some(lines),
            Self::Exit(_) => None,
        }
    }
}

impl Body {
    /// The bytes that the lines stand for.
    pub fn bytes(&self) -> Result<Vec<u8>, String> {
        if self.escaped {
            return escape::decode(&self.lines);
        }
        Ok(self.lines.iter().flat_map(|line| line.bytes().chain([b'\n'])).collect())
    }

    /// The lines for some output: plain where that is possible, else escaped.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok("") => Self::default(),
            Ok(text) if text.ends_with('\n') && !text.chars().any(escape::is_invisible) => {
                Self { lines: text[..text.len() - 1].split('\n').map(str::to_owned).collect(), escaped: false }
            }
            _ => Self { lines: escape::encode(bytes), escaped: true },
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.head {
            writeln!(out, "{line}")?;
        }
        for section in &self.sections {
            writeln!(out, "{MARK}{}", section.title())?;
            for line in section.lines() {
                let backslash = if looks_like_mark(line) { "\\" } else { "" };
                writeln!(out, "{backslash}{line}")?;
            }
        }
        Ok(())
    }
}

/// Whether a line is a section mark once its leading backslashes are taken off.
fn looks_like_mark(line: &str) -> bool {
    line.trim_start_matches('\\').starts_with(MARK)
}

fn unmark(line: &str) -> String {
    let escaped = line.starts_with('\\') && looks_like_mark(line);
    line[usize::from(escaped)..].to_owned()
}
