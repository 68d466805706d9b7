//! All kernels of one input, and its JSON form (`"schema": 2`), which is also that of the original script.

mod plain;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::occupancy;
use crate::record::{self, Record};
use crate::strict_json::Strict;
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

    /// Reads the JSON form. The error has the place in front (`12:3: …`) where one is known.
    pub fn from_json(text: &[u8]) -> Result<Snapshot, String> {
        match plain::read(text) {
            Some((snapshot, trustworthy)) => Ok(snapshot.with_conclusion(trustworthy)),
            None => Snapshot::from_any_json(text),
        }
    }

    /// Reads every form that there is, and says what is wrong with the others. [`Snapshot::from_json`] gives the same,
    /// sooner.
    ///
    /// # Errors
    /// As those of [`Snapshot::from_json`].
    pub fn from_any_json(text: &[u8]) -> Result<Snapshot, String> {
        let members: Members = serde_json::from_slice(text).map_err(|error| {
            let kind = if error.is_data() { "" } else { "not JSON: " };
            format!("{}:{}: {kind}{}", error.line(), error.column(), without_place(&error))
        })?;
        match members.schema {
            Some(Value::Number(n)) if n.as_u64() == Some(SCHEMA) => {}
            Some(schema) => return Err(format!("`schema` is {schema}, expected {SCHEMA}; write the snapshot anew")),
            None => return Err(format!("`schema` is missing, expected {SCHEMA}: is this a snapshot?")),
        }
        if let Some(tool) = members.tool.filter(|tool| tool != TOOL) {
            return Err(format!("`tool` is {tool}, expected \"{TOOL}\""));
        }
        let snapshot = Snapshot {
            kernels: match members.kernels {
                Some(kernels) => kernels.0,
                None if members.rows.is_some() => return Err(A_REPORT.into()),
                None => return Err("`kernels` is missing: is this a snapshot?".into()),
            },
            problems: record::strings(members.problems.as_ref(), "problems")?,
            warnings: record::strings(members.warnings.as_ref(), "warnings")?,
        };
        Ok(snapshot.with_conclusion(members.trustworthy.is_none_or(|v| v == Value::Bool(true))))
    }

    /// The original script records only the conclusion where a file could not be read.
    fn with_conclusion(mut self, trustworthy: bool) -> Snapshot {
        if !trustworthy && !self.kernels.is_empty() && self.verdict() == Verdict::Ok {
            self.problems.push("was not trustworthy when it was written".into());
        }
        self
    }
}

/// Written kernel by kernel, keys sorted: a library's snapshot is too large to be built as a tree first.
impl Serialize for Snapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(serializer, &self.kernels)
    }
}

impl Snapshot {
    fn write<S: Serializer>(&self, serializer: S, kernels: &impl Serialize) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("kernels", kernels)?;
        map.serialize_entry("problems", &self.problems)?;
        map.serialize_entry("schema", &SCHEMA)?;
        map.serialize_entry("tool", TOOL)?;
        map.serialize_entry("trustworthy", &(self.verdict() == Verdict::Ok))?;
        map.serialize_entry("warnings", &self.warnings)?;
        map.end()
    }
}

/// A snapshot whose kernels have a further member, `occupancy`. A reader of snapshots passes over it.
pub struct WithOccupancy<'s> {
    /// The kernels.
    pub snapshot: &'s Snapshot,
    /// What is known of launches.
    pub settings: occupancy::Settings,
}

impl Serialize for WithOccupancy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.snapshot.write(serializer, &KernelsWithOccupancy(self))
    }
}

struct KernelsWithOccupancy<'s>(&'s WithOccupancy<'s>);

impl Serialize for KernelsWithOccupancy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let WithOccupancy { snapshot, settings } = *self.0;
        serializer.collect_map(snapshot.kernels.iter().map(|(key, record)| (key, record.with_occupancy(settings))))
    }
}

/// The members of the JSON form that are read; others are anybody's.
#[derive(Deserialize)]
struct Members {
    schema: Option<Value>,
    kernels: Option<Kernels>,
    problems: Option<Value>,
    warnings: Option<Value>,
    trustworthy: Option<Value>,
    /// Reports of a comparison have these.
    rows: Option<IgnoredAny>,
    tool: Option<Value>,
}

const A_REPORT: &str = "this is a report of a comparison; expected a snapshot, as `summarize --json` writes it";

struct Kernels(BTreeMap<String, Record>);

impl<'de> Deserialize<'de> for Kernels {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kernels, D::Error> {
        deserializer.deserialize_map(KernelsVisitor)
    }
}

struct KernelsVisitor;

impl<'de> Visitor<'de> for KernelsVisitor {
    type Value = Kernels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("`kernels` to be an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kernels, A::Error> {
        let mut kernels = BTreeMap::new();
        while let Some((key, Strict(value))) = map.next_entry::<String, Strict>()? {
            let record = Record::from_json(&value).map_err(|why| A::Error::custom(format!("kernel `{key}`: {why}")))?;
            if kernels.contains_key(&key) {
                return Err(A::Error::custom(format!("kernel `{key}` is there twice")));
            }
            kernels.insert(key, record);
        }
        Ok(Kernels(kernels))
    }
}

/// serde_json appends the place to its message; we put it in front.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}
