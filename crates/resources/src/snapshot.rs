//! All kernels of one input, and its JSON form (`"schema": 2`), which is also that of the original script.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::record::{self, Record};
use crate::verdict::Verdict;

/// The version of the JSON form; others are refused.
pub const SCHEMA: u64 = 2;
/// The name under which snapshots and reports go, from the tool that the form was taken over from.
pub const TOOL: &str = "isa_resource_table";

/// All kernels of one input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// By key: `<place below the input>::<kernel name>`.
    pub kernels: BTreeMap<String, Record>,
    /// What makes the whole untrustworthy and belongs to no kernel, each with its place.
    pub problems: Vec<String>,
    /// What is worth knowing about the input and changes no verdict.
    pub warnings: Vec<String>,
}

impl Snapshot {
    /// OK, or NOT TRUSTWORTHY: one snapshot has nothing to regress from.
    pub fn verdict(&self) -> Verdict {
        let trustworthy =
            !self.kernels.is_empty() && self.problems.is_empty() && self.kernels.values().all(Record::is_trustworthy);
        if trustworthy { Verdict::Ok } else { Verdict::NotTrustworthy }
    }

    /// Every problem, those of kernels with their key in front.
    pub fn all_problems(&self) -> Vec<String> {
        let of_kernels =
            self.kernels.iter().flat_map(|(key, record)| record.problems.iter().map(move |p| format!("{key}: {p}")));
        self.problems.iter().cloned().chain(of_kernels).collect()
    }

    /// Adds a kernel; a key that is there already is a problem, and the first one stays.
    pub fn insert(&mut self, key: String, record: Record) {
        if let Some(first) = self.kernels.get_mut(&key) {
            let problem = match first.source == record.source {
                true => format!("{}: kernel is there twice; the first is shown", record.source),
                false => format!("kernel is in {} and in {}; the first is shown", first.source, record.source),
            };
            first.problems.push(problem);
            return;
        }
        self.kernels.insert(key, record);
    }

    /// The JSON form.
    pub fn to_json(&self) -> Value {
        let kernels: Map<String, Value> = self.kernels.iter().map(|(k, r)| (k.clone(), r.to_json())).collect();
        json!({
            "kernels": kernels,
            "problems": self.problems,
            "schema": SCHEMA,
            "tool": TOOL,
            "trustworthy": self.verdict() == Verdict::Ok,
            "warnings": self.warnings,
        })
    }

    /// Reads the JSON form. The error has the place in front (`12:3: …` for syntax, a member's path otherwise).
    pub fn from_json(text: &[u8]) -> Result<Snapshot, String> {
        let value: Value = serde_json::from_slice(text)
            .map_err(|e| format!("{}:{}: not JSON: {}", e.line(), e.column(), without_place(&e)))?;
        let object = value.as_object().ok_or("1:1: a snapshot must be a JSON object")?;
        match object.get("schema") {
            Some(schema) if schema.as_u64() == Some(SCHEMA) => {}
            Some(schema) => return Err(format!("`schema` is {schema}, expected {SCHEMA}; write the snapshot anew")),
            None => return Err(format!("`schema` is missing, expected {SCHEMA}: is this a snapshot?")),
        }
        let kernels = object.get("kernels").and_then(Value::as_object).ok_or("`kernels` must be an object")?;
        let mut snapshot = Snapshot {
            problems: record::strings(object.get("problems"), "problems")?,
            warnings: record::strings(object.get("warnings"), "warnings")?,
            ..Snapshot::default()
        };
        for (key, value) in kernels {
            let record = Record::from_json(value).map_err(|why| format!("kernel `{key}`: {why}"))?;
            snapshot.kernels.insert(key.clone(), record);
        }
        // The original script records only the conclusion where a file could not be read.
        let says_untrustworthy = object.get("trustworthy").is_some_and(|v| v != &Value::Bool(true));
        if says_untrustworthy && !snapshot.kernels.is_empty() && snapshot.verdict() == Verdict::Ok {
            snapshot.problems.push("was not trustworthy when it was written".into());
        }
        Ok(snapshot)
    }
}

/// serde_json appends the place to its message; we put it in front.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
