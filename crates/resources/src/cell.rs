//! One figure of one kernel: known, not existing, not recorded, or not readable. The four are never merged.

use std::borrow::Cow;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::metric::{self, Metric};

/// The state of one figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// The figure.
    Value(u64),
    /// Does not exist on this target, or was not asked for; the reason.
    NotApplicable(Reason),
    /// The format of the input has no place for it, or its producer left it out; the reason.
    NotRecorded(Reason),
    /// Should be there and could not be read; the reason. Forces the verdict to NOT TRUSTWORTHY.
    Unparsed(String),
}

/// Mostly one of a few fixed sentences, and a library has a hundred thousand kernels.
pub type Reason = Cow<'static, str>;

/// JSON has one state for both kinds of `n/a`; the reason tells them apart.
const NOT_RECORDED: &str = "not recorded";

impl Cell {
    /// The figure, if there is one.
    pub fn value(&self) -> Option<u64> {
        match self {
            Cell::Value(value) => Some(*value),
            _ => None,
        }
    }

    /// Why it could not be read, if that is so.
    pub fn unparsed(&self) -> Option<&str> {
        match self {
            Cell::Unparsed(reason) => Some(reason),
            _ => None,
        }
    }

    /// As a table shows it.
    pub fn show(&self) -> String {
        match self {
            Cell::Value(value) => value.to_string(),
            Cell::NotApplicable(_) | Cell::NotRecorded(_) => "n/a".into(),
            Cell::Unparsed(_) => "?".into(),
        }
    }

    /// One of the two kinds of `n/a`, by the reason that JSON gives.
    pub(crate) fn without_value(reason: String) -> Cell {
        match reason.strip_prefix(NOT_RECORDED) {
            Some(why) => Cell::NotRecorded(why.trim_start_matches(": ").to_owned().into()),
            None => Cell::NotApplicable(reason.into()),
        }
    }

    /// Reads a snapshot's cell; the error says what is wrong with it.
    pub fn from_json(value: &Value) -> Result<Cell, String> {
        let object = value.as_object().ok_or("a cell must be an object")?;
        let reason = match object.get("reason") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(reason)) => reason.clone(),
            Some(_) => return Err("`reason` must be a string".into()),
        };
        match object.get("state").and_then(Value::as_str) {
            Some("value") => match object.get("value") {
                Some(Value::Number(n)) if n.is_u64() => Ok(Cell::Value(n.as_u64().unwrap_or_default())),
                Some(Value::Number(n)) if n.is_i64() => Err(format!("`value` is {n}; a count is never negative")),
                Some(other) => Err(format!("`value` must be an integer, found {other}")),
                None => Err("`value` is missing".into()),
            },
            Some("n/a") => Ok(Cell::without_value(reason)),
            Some("unparsed") => Ok(Cell::Unparsed(reason)),
            Some(other) => Err(format!("unknown `state` {other:?}; known are \"value\", \"n/a\", \"unparsed\"")),
            None => Err("`state` is missing".into()),
        }
    }
}

/// As a snapshot records it.
impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match self {
            Cell::Value(value) => {
                map.serialize_entry("state", "value")?;
                map.serialize_entry("value", value)?;
                return map.end();
            }
            Cell::NotApplicable(reason) => map.serialize_entry("reason", reason)?,
            Cell::NotRecorded(why) => map.serialize_entry("reason", &format_args!("{NOT_RECORDED}: {why}"))?,
            Cell::Unparsed(reason) => map.serialize_entry("reason", reason)?,
        }
        map.serialize_entry("state", if self.unparsed().is_some() { "unparsed" } else { "n/a" })?;
        map.end()
    }
}

/// One cell for each metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells([Cell; metric::COUNT]);

impl Cells {
    /// Makes the cells by asking for each metric's.
    pub fn from_fn(mut cell: impl FnMut(Metric) -> Cell) -> Cells {
        let mut metrics = Metric::all();
        Cells(std::array::from_fn(|_| match metrics.next() {
            Some(metric) => cell(metric),
            None => Cell::Unparsed(String::new()), // as many metrics as cells: not reached
        }))
    }

    /// Metric and cell, in table order.
    pub fn iter(&self) -> impl Iterator<Item = (Metric, &Cell)> {
        Metric::all().zip(&self.0)
    }
}

/// An object with the metrics' names, sorted.
impl Serialize for Cells {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cells: Vec<_> = self.iter().map(|(metric, cell)| (metric.name(), cell)).collect();
        cells.sort_unstable_by_key(|(name, _)| *name);
        serializer.collect_map(cells)
    }
}

impl std::ops::Index<Metric> for Cells {
    type Output = Cell;
    fn index(&self, metric: Metric) -> &Cell {
        &self.0[metric as usize]
    }
}

impl std::ops::IndexMut<Metric> for Cells {
    fn index_mut(&mut self, metric: Metric) -> &mut Cell {
        &mut self.0[metric as usize]
    }
}
