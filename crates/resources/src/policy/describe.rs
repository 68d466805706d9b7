//! A policy as it is told: in a note whenever it is not the default, and in JSON.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Accepts, FailOn, Policy, Rule};
use crate::snapshot::Snapshot;

impl Policy {
    /// One sentence on the rules in force; none when that is just the contract.
    pub fn describe(&self) -> Option<String> {
        if self.is_default() {
            return None;
        }
        let mut parts = vec![format!("fails on {}", self.fail_on)];
        if !self.rules.is_empty() {
            let rules: Vec<String> = self.rules.iter().map(Rule::to_string).collect();
            parts.push(format!("accepts {}", rules.join(", ")));
        }
        if !self.only.is_empty() {
            parts.push(format!("looks only at {}", self.only_names().join(", ")));
        }
        let file = self.file.as_ref().map(|file| format!(" of {file}")).unwrap_or_default();
        Some(format!("policy{file}: {}", parts.join("; ")))
    }

    /// Rules that have no effect here, which a reader might rely on all the same.
    pub fn idle_rules(&self, sides: [&Snapshot; 2]) -> Vec<String> {
        let mut notes = Vec::new();
        for rule in &self.rules {
            if let Some(pattern) = &rule.pattern
                && !sides.iter().any(|side| side.kernels.keys().any(|key| pattern.fits(key)))
            {
                notes.push(format!("stale rule: `{pattern}` matches no kernel on either side: {rule}"));
            }
            if let Accepts::Increase(metric, _) = rule.accepts
                && !self.fail_on.has(metric)
            {
                let (name, fail_on) = (metric.name(), &self.fail_on);
                notes.push(format!("rule without effect: {name} fails nothing (fail-on is {fail_on}): {rule}"));
            }
        }
        notes
    }

    /// Patterns of `only` that match nothing: what was to be looked at is not there.
    pub fn unmatched_only(&self, sides: [&Snapshot; 2]) -> Vec<String> {
        let keys = || sides.into_iter().flat_map(|side| side.kernels.keys());
        let like = keys().next().map(|key| format!("; keys look like `{key}`")).unwrap_or_default();
        let unmatched = self.only.iter().filter(|pattern| !keys().any(|key| pattern.fits(key)));
        unmatched.map(|pattern| format!("only `{pattern}`: matches no kernel on either side{like}")).collect()
    }

    fn only_names(&self) -> Vec<&str> {
        self.only.iter().map(super::Pattern::as_str).collect()
    }
}

/// Keys sorted.
impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("allow", &self.rules)?;
        map.serialize_entry("fail_on", &self.fail_on)?;
        map.serialize_entry("file", &self.file)?;
        map.serialize_entry("only", &self.only_names())?;
        map.end()
    }
}

/// The single names, so that a reader need not know what `triggers` are.
impl Serialize for FailOn {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metrics = self.metrics().map(crate::Metric::name);
        serializer.collect_seq(metrics.chain(self.occupancy().then_some("occupancy")))
    }
}

/// `by` and `metric` are null where everything is accepted, `pattern` where the rule is for all kernels.
impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (metric, by) = match &self.accepts {
            Accepts::Everything => (None, None),
            Accepts::Increase(metric, allowance) => (Some(metric.name()), Some(allowance.to_string())),
        };
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("by", &by)?;
        map.serialize_entry("metric", &metric)?;
        map.serialize_entry("origin", &self.origin)?;
        map.serialize_entry("pattern", &self.pattern.as_ref().map(super::Pattern::as_str))?;
        map.serialize_entry("reason", &self.reason)?;
        map.end()
    }
}
