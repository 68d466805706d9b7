//! Reads a snapshot that is written as we write it, straight into records: no tree of JSON values is built, which takes
//! most of the time of a large one.
//!
//! It knows only the plain form. Whatever is unusual, a key that we do not write, a state that is odd, a mistake of any
//! kind, is an error here without a message: the caller then reads the text again by the way that knows all forms and
//! explains mistakes. So this must never accept what the other refuses, nor read it differently; a test and the fuzzer
//! compare the two.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{SCHEMA, Snapshot, TOOL};
use crate::cell::{Cell, Cells};
use crate::launch::Launch;
use crate::metric::{self, Metric};
use crate::record::{self, Record};
use crate::strict_json::Strict;

/// The snapshot and whether it calls itself trustworthy; none when it is not of the plain form.
pub fn read(text: &[u8]) -> Option<(Snapshot, bool)> {
    let Object(document) = serde_json::from_slice::<Object<Document<'_>>>(text).ok()?;
    if document.schema != SCHEMA || document.tool != TOOL {
        return None;
    }
    let Document { kernels, problems, warnings, trustworthy, .. } = document;
    Some((Snapshot { kernels: kernels.0, problems, warnings }, trustworthy))
}

/// serde reads a structure from an array as well, which is none of our forms: this one is read from an object only.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<'t> {
    kernels: Kernels,
    problems: Vec<String>,
    schema: u64,
    #[serde(borrow)]
    tool: Cow<'t, str>,
    trustworthy: bool,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kernel<'t> {
    #[serde(borrow)]
    arch: Option<Object<Arch<'t>>>,
    identity: Option<Strict>,
    launch: Option<Strict>,
    metrics: PlainCells,
    notes: Vec<String>,
    #[serde(rename = "occupancy")]
    _occupancy: Option<Strict>,
    problems: Vec<String>,
    #[serde(borrow)]
    source: Cow<'t, str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arch<'t> {
    features: Vec<String>,
    #[serde(rename = "gen")]
    _generation: Option<u64>,
    #[serde(borrow)]
    processor: Option<Cow<'t, str>>,
    #[serde(borrow)]
    target_id: Option<Cow<'t, str>>,
}

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
        f.write_str("kernels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kernels, A::Error> {
        let mut kernels = Vec::new();
        let mut last_source: Arc<str> = "".into();
        while let Some((key, Object(kernel))) = map.next_entry::<String, Object<Kernel<'_>>>()? {
            let target = kernel.arch.map(|Object(arch)| {
                record::target(arch.processor.map(Cow::into_owned), arch.features, arch.target_id.map(Cow::into_owned))
            });
            if *last_source != *kernel.source {
                last_source = (*kernel.source).into(); // kernels of one file often follow each other
            }
            let record = Record {
                target: target.transpose().map_err(A::Error::custom)?.map(Arc::new),
                cells: kernel.metrics.0,
                notes: kernel.notes,
                problems: kernel.problems,
                source: last_source.clone(),
                identity: kernel.identity.and_then(|Strict(identity)| record::identity(&identity)),
                launch: match kernel.launch {
                    None => None,
                    Some(Strict(launch)) => Some(Launch::from_json(&launch).map_err(A::Error::custom)?),
                },
            };
            record.check_triggers().map_err(A::Error::custom)?;
            kernels.push((key, record));
        }
        let count = kernels.len();
        let kernels: BTreeMap<String, Record> = kernels.into_iter().collect(); // sorted already: built in one go
        match kernels.len() == count {
            true => Ok(Kernels(kernels)),
            false => Err(A::Error::custom("a kernel is there twice")),
        }
    }
}

/// A figure for each metric.
struct PlainCells(Cells);

impl<'de> Deserialize<'de> for PlainCells {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PlainCells, D::Error> {
        deserializer.deserialize_map(CellsVisitor)
    }
}

struct CellsVisitor;

impl<'de> Visitor<'de> for CellsVisitor {
    type Value = PlainCells;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metrics")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PlainCells, A::Error> {
        let mut found: [Option<Cell>; metric::COUNT] = Default::default();
        while let Some((name, Object(cell))) = map.next_entry::<Cow<'_, str>, Object<PlainCell<'_>>>()? {
            let metric = Metric::named(&name).ok_or_else(|| A::Error::custom("no metric"))?;
            if found[metric as usize].replace(cell.read().ok_or_else(|| A::Error::custom("no cell"))?).is_some() {
                return Err(A::Error::custom("a metric is there twice"));
            }
        }
        if found.iter().any(Option::is_none) {
            return Err(A::Error::custom("a metric is missing"));
        }
        Ok(PlainCells(Cells::from_fn(|m| found[m as usize].take().unwrap_or(Cell::Value(0))))) // all are there
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCell<'t> {
    #[serde(borrow)]
    reason: Option<Cow<'t, str>>,
    #[serde(borrow)]
    state: Cow<'t, str>,
    value: Option<u64>,
}

impl PlainCell<'_> {
    fn read(self) -> Option<Cell> {
        match (&*self.state, self.value, self.reason) {
            ("value", Some(value), None) => Some(Cell::Value(value)),
            ("n/a", None, Some(reason)) => Some(Cell::without_value(reason.into_owned())),
            ("unparsed", None, Some(reason)) => Some(Cell::Unparsed(reason.into_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: &str = r#"{"state": "value", "value": 1}"#;

    fn snapshot() -> String {
        let metrics: Vec<String> = Metric::all().map(|m| format!("\"{}\": {CELL}", m.name())).collect();
        let kernel = format!(
            r#"{{"arch": {{"features": ["xnack-"], "gen": 9, "processor": "gfx942", "target_id": "gfx942:xnack-"}},
                "identity": {{"options": "", "signature": "a", "source": "", "stores": ""}},
                "launch": {{"max_flat_workgroup_size": 256, "wavefront_size": 64}},
                "metrics": {{{}}}, "notes": ["n"], "problems": [], "source": "k.co"}}"#,
            metrics.join(", ")
        );
        format!(
            r#"{{"kernels": {{"a::k": {kernel}, "b::k": {kernel}}}, "problems": [], "schema": 2,
                "tool": "isa_resource_table", "trustworthy": true, "warnings": ["w"]}}"#
        )
    }

    #[test]
    fn both_ways_of_reading_agree() {
        let text = snapshot();
        let (read_plainly, _) = read(text.as_bytes()).expect("the plain form");
        assert_eq!(Ok(read_plainly), Snapshot::from_any_json(text.as_bytes()));
        // What is odd is either left to the other way or read as it reads it.
        let mut left = 0;
        for (found, odd) in [
            (r#""state": "value", "value": 1"#, r#""state": "value", "value": -1"#),
            (r#""state": "value", "value": 1"#, r#""state": "value", "value": 1, "value": 2"#),
            (r#""state": "value", "value": 1"#, r#""state": "n/a", "reason": "not recorded: why""#),
            (r#""state": "value", "value": 1"#, r#""state": "n/a", "reason": "no such thing""#),
            (r#""state": "value", "value": 1"#, r#""state": "unparsed", "reason": "why""#),
            (r#""state": "value", "value": 1"#, r#""state": "value", "value": 1, "reason": null"#),
            (CELL, r#"[null, "value", 1]"#),
            (r#""agpr""#, r#""agprs""#),
            (r#""agpr""#, r#""vgpr""#),
            (r#""b::k""#, r#""a::k""#),
            (r#""gfx942:xnack-""#, r#""gfx950:xnack-""#),
            (r#""arch""#, r#""arc""#),
            (r#"["n"]"#, r#"null"#),
            (r#""source": "k.co""#, r#""source": 3"#),
            (r#""signature": "a""#, r#""signature": 1"#),
            (r#""signature": "a""#, r#""signature": "a", "signature": "b""#),
            (r#""wavefront_size": 64"#, r#""wavefront_size": "64""#),
            (r#""wavefront_size": 64"#, r#""wavefront_size": 64, "wavefront_size": 32"#),
            (r#""trustworthy": true"#, r#""trustworthy": 1"#),
            (r#""trustworthy": true"#, r#""trustworthy": false"#),
            (r#""schema": 2"#, r#""schema": 2.0"#),
            (r#""isa_resource_table""#, r#""other""#),
        ] {
            let text = text.replacen(found, odd, 1);
            let plain = read(text.as_bytes()).map(|(snapshot, trustworthy)| snapshot.with_conclusion(trustworthy));
            left += usize::from(plain.is_none());
            if let Some(plain) = plain {
                assert_eq!(Ok(plain), Snapshot::from_any_json(text.as_bytes()), "{odd}");
            }
        }
        assert!(left > 10, "{left} are left to the other way");
    }
}
