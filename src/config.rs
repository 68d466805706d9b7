//! `coax.toml`: what a team accepts, kept beside its code. Found from the current directory upwards, read strictly: a
//! misspelt key would be a rule that is not in force.
//!
//! ```toml
//! [gate]
//! fail-on = ["triggers", "occupancy"]
//! only = ["gemm_*"]
//!
//! [gate.allow]
//! vgpr = "+4"
//! scratch_bytes = "+5%"
//!
//! [[gate.kernel]]
//! pattern = "softmax_*"
//! allow = { sgpr = "+8" }      # or: allow-all = true
//! reason = "rewritten for gfx950, see the design page"
//!
//! [baseline]
//! accept = ["new"]
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use resources::baseline::Accept;
use resources::collect::io_reason;
use resources::policy::{Accepts, Allowance, FailOn, Pattern, Rule, metric_named};
use serde::Deserialize;
use toml::Spanned;

/// The file's name.
pub const NAME: &str = "coax.toml";

/// Far more than a policy needs; a device might never end.
const LARGEST: u64 = 1 << 20;

/// What the file says; nothing where there is none.
#[derive(Debug, Default)]
pub struct Config {
    /// The file as messages name it.
    pub file: Option<String>,
    /// `[gate] fail-on`.
    pub fail_on: Option<FailOn>,
    /// `[gate] only`.
    pub only: Vec<Pattern>,
    /// `[gate.allow]` and `[[gate.kernel]]`.
    pub rules: Vec<Rule>,
    /// `[baseline] accept`.
    pub accept: Option<Accept>,
}

impl Config {
    /// The nearest `coax.toml`, from the current directory up to the root of its repository (a `.git`). Outside of a
    /// repository only the current directory counts: a file further up would be anybody's.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not understood.
    pub fn find() -> Result<Config, String> {
        let here = std::env::current_dir().map_err(|e| format!("the current directory: {}", io_reason(&e)))?;
        let root = here.ancestors().position(|folder| folder.join(".git").exists()).unwrap_or(0);
        for (up, folder) in here.ancestors().enumerate().take(root + 1) {
            // As a user would write it from here. A link that leads nowhere, or a folder that cannot be looked into, may
            // hold a rule that is then not in force: that is no lack of a file.
            let shown: PathBuf = std::iter::repeat_n("..", up).collect::<PathBuf>().join(NAME);
            match std::fs::symlink_metadata(folder.join(NAME)) {
                Ok(_) => return Config::read(&shown),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(format!("{}: {}", shown.display(), io_reason(&error))),
            }
        }
        Ok(Config::default())
    }

    /// Reads that file.
    ///
    /// # Errors
    /// It cannot be read, or says something that is not understood: with line and column.
    pub fn read(path: &Path) -> Result<Config, String> {
        let name = path.display().to_string();
        let mut text = Vec::new();
        let file = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut text));
        file.map_err(|e| format!("{name}: {}", io_reason(&e)))?;
        if text.len() as u64 > LARGEST {
            return Err(format!("{name}: is larger than {LARGEST} bytes: expected a policy"));
        }
        let text = String::from_utf8(text)
            .map_err(|e| format!("{name}: not UTF-8 at byte {}; expected a TOML file", e.utf8_error().valid_up_to()))?;
        Config::parse(&text, &name).map_err(|(at, why)| match at {
            Some(at) => {
                let (line, column) = place(&text, at.start);
                format!("{name}:{line}:{column}: {why}")
            }
            None => format!("{name}: {why}"),
        })
    }

    fn parse(text: &str, name: &str) -> Result<Config, Wrong> {
        let file: Document = toml::from_str(text).map_err(|error| (error.span(), in_one_line(error.message())))?;
        let mut config = Config { file: Some(name.to_owned()), ..Config::default() };
        let origin = |at: &Range<usize>| format!("{name}:{}", place(text, at.start).0);
        if let Some(names) = file.gate.fail_on {
            let at = names.span();
            for entry in names.get_ref() {
                located(entry, FailOn::parse)?;
            }
            let list = FailOn::of(names.get_ref().iter().map(|name| name.get_ref().as_str()));
            config.fail_on = Some(list.map_err(|why| (Some(at), why))?);
        }
        for pattern in &file.gate.only {
            config.only.push(located(pattern, Pattern::parse)?);
        }
        for entry in &file.gate.allow {
            let (accepts, text) = allowance(entry)?;
            let origin = format!("{}: {text}", origin(&entry.0.span()));
            config.rules.push(Rule { pattern: None, accepts, origin, reason: None });
        }
        for table in file.gate.kernel {
            let (at, kernel) = (table.span(), table.into_inner());
            let pattern = located(&kernel.pattern, Pattern::parse)?;
            if kernel.allow.is_empty() && !kernel.allow_all {
                let why = "accepts nothing; expected `allow = { METRIC = \"+N\" }` or `allow-all = true`";
                return Err((Some(at), format!("the rule of `{pattern}` {why}")));
            }
            let rule = |accepts, place: &Range<usize>, text: &str| Rule {
                pattern: Some(pattern.clone()),
                accepts,
                origin: format!("{}: {pattern}: {text}", origin(place)),
                reason: kernel.reason.clone(),
            };
            for entry in &kernel.allow {
                let (accepts, text) = allowance(entry)?;
                config.rules.push(rule(accepts, &entry.0.span(), &text));
            }
            if kernel.allow_all {
                config.rules.push(rule(Accepts::Everything, &kernel.pattern.span(), "allow-all"));
            }
        }
        if let Some(kinds) = file.baseline.accept {
            let mut accept = Accept::default();
            for kind in &kinds {
                located(kind, |kind| accept.add(kind))?;
            }
            config.accept = Some(accept);
        }
        Ok(config)
    }
}

/// Where in the text, and what is wrong there.
type Wrong = (Option<Range<usize>>, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    gate: Gate,
    #[serde(default)]
    baseline: Baseline,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Gate {
    fail_on: Option<Spanned<Vec<Spanned<String>>>>,
    #[serde(default)]
    only: Vec<Spanned<String>>,
    #[serde(default)]
    allow: Allow,
    #[serde(default)]
    kernel: Vec<Spanned<Kernel>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Kernel {
    pattern: Spanned<String>,
    #[serde(default)]
    allow: Allow,
    #[serde(default)]
    allow_all: bool,
    reason: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Baseline {
    accept: Option<Vec<Spanned<String>>>,
}

type Allow = BTreeMap<Spanned<String>, Spanned<String>>;

fn allowance((metric, allowance): (&Spanned<String>, &Spanned<String>)) -> Result<(Accepts, String), Wrong> {
    let text = format!("{}={}", metric.get_ref(), allowance.get_ref());
    Ok((Accepts::Increase(located(metric, metric_named)?, located(allowance, Allowance::parse)?), text))
}

fn located<T>(text: &Spanned<String>, read: impl FnOnce(&str) -> Result<T, String>) -> Result<T, Wrong> {
    read(text.get_ref()).map_err(|why| (Some(text.span()), why))
}

/// Line and column of a byte, counted from 1, columns in characters.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.rsplit('\n').next().unwrap_or_default();
    (before.matches('\n').count() + 1, line.chars().count() + 1)
}

fn in_one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let (at, why) = Config::parse(text, NAME).expect_err(text);
        let (line, column) = place(text, at.expect("a place").start);
        format!("{line}:{column}: {why}")
    }

    #[test]
    fn what_is_not_understood_is_refused_with_its_place() {
        for (text, place, words) in [
            ("[gate]\nfail_on = []\n", "2:1", "fail-on"),
            ("[gat]\n", "1:2", "gate"),
            ("[gate]\nfail-on = \"vgpr\"\n", "2:11", "sequence"),
            ("[gate]\nfail-on = [\"vgpr\", \"vpgr\"]\n", "2:20", "scratch_bytes"),
            ("[gate]\nfail-on = []\n", "2:11", "triggers"),
            ("[gate.allow]\nvpgr = \"+4\"\n", "2:1", "lds_static_bytes"),
            ("[gate.allow]\nvgpr = 4\n", "2:8", "string"),
            ("[gate.allow]\nvgpr = \"4\"\n", "2:8", "+N"),
            ("[[gate.kernel]]\npattern = \"a\"\n", "1:1", "allow-all"),
            ("[[gate.kernel]]\nallow-all = true\n", "1:1", "pattern"),
            ("[[gate.kernel]]\npattern = \"\"\nallow-all = true\n", "2:11", "empty"),
            ("[gate]\nonly = [3]\n", "2:9", "string"),
            ("[baseline]\naccept = [\"worse\"]\n", "2:11", "--allow"),
            ("[baseline]\naccept = [\"better\"]\n", "2:11", "improved"),
            ("[gate\n", "1:6", ""),
        ] {
            let error = error(text);
            assert!(error.starts_with(&format!("{place}: ")) && error.contains(words), "{text}{error}");
        }
    }

    #[test]
    fn rules_say_where_they_stand() {
        let text = "[gate.allow]\nvgpr = \"+4\"\n[[gate.kernel]]\npattern = \"a*\"\nallow = { sgpr = \"+1%\" }\nreason = \"b\"\n";
        let config = Config::parse(text, NAME).expect(text);
        let shown: Vec<String> = config.rules.iter().map(Rule::to_string).collect();
        assert_eq!(shown, ["coax.toml:2: vgpr=+4", "coax.toml:5: a*: sgpr=+1% (b)"]);
    }
}
