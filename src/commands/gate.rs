//! Options that say what fails, and `coax.toml` that says it for a whole repository; shared by the commands that judge.

use std::path::PathBuf;

use resources::Policy;
use resources::policy::{Accepts, FailOn, Pattern, Rule};

use crate::config::Config;

/// What fails and what is accepted.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Policy (default: any trigger that rises fails)")]
pub struct Gate {
    /// Accept an increase of a metric up to +N or +N%, of all kernels or those of a pattern; may be given several times
    ///
    /// It takes the place of the same metric's entry in [gate.allow]. A rule of a pattern takes the place of the general
    /// ones for its kernels. In patterns, * is any text and ? any character; they fit the whole key or the kernel name.
    #[arg(long, value_name = "[PATTERN:]METRIC=+N", value_parser = Rule::parse_allow)]
    allow: Vec<Rule>,
    /// Accept every known increase of these kernels; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    allow_kernel: Vec<Pattern>,
    /// What fails when it gets worse: triggers, names of columns, occupancy; the rest is shown only
    #[arg(long, value_name = "LIST", value_parser = FailOn::parse)]
    fail_on: Option<FailOn>,
    /// Look only at these kernels; may be given several times
    #[arg(long, value_name = "PATTERN", value_parser = Pattern::parse)]
    only: Vec<Pattern>,
    /// Read the policy from this file [default: coax.toml here or above, within the repository]
    #[arg(long, value_name = "FILE", conflicts_with = "no_config")]
    config: Option<PathBuf>,
    /// Read no coax.toml
    #[arg(long)]
    no_config: bool,
}

impl Gate {
    /// The file that applies.
    ///
    /// # Errors
    /// What is wrong with it, with its place.
    pub fn config(&self) -> Result<Config, String> {
        match (&self.config, self.no_config) {
            (Some(file), _) => Config::read(file),
            (None, true) => Ok(Config::default()),
            (None, false) => Config::find(),
        }
    }

    /// The rules of the file and of the options. `--fail-on` and `--only` take the place of the file's, `--allow` of the
    /// file's entry for that metric and those kernels; `--allow-kernel` is added.
    pub fn policy(&self, config: &Config) -> Policy {
        let subject = |rule: &Rule| match &rule.accepts {
            Accepts::Everything => None,
            Accepts::Increase(metric, _) => Some((*metric, rule.pattern.clone())),
        };
        let is_replaced = |rule: &Rule| {
            let own = subject(rule);
            own.is_some() && self.allow.iter().any(|other| subject(other) == own)
        };
        let everything = self.allow_kernel.iter().map(|p| Rule::everything(p.clone(), &format!("--allow-kernel {p}")));
        let of_file = config.rules.iter().filter(|rule| !is_replaced(rule)).cloned();
        Policy {
            fail_on: self.fail_on.clone().or_else(|| config.fail_on.clone()).unwrap_or_default(),
            rules: of_file.chain(self.allow.iter().cloned()).chain(everything).collect(),
            only: if self.only.is_empty() { config.only.clone() } else { self.only.clone() },
            file: config.file.clone(),
        }
    }

    /// The options that choose kernels and the file, as they have to be given again.
    pub fn arguments(&self) -> Vec<String> {
        let mut words = Vec::new();
        self.only.iter().for_each(|pattern| words.extend(["--only".to_owned(), pattern.to_string()]));
        if let Some(file) = &self.config {
            words.extend(["--config".to_owned(), file.display().to_string()]);
        }
        if self.no_config {
            words.push("--no-config".to_owned());
        }
        words
    }
}
