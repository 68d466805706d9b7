//! What is known of one kernel, wherever it was read.

use std::sync::Arc;

use codeobj::TargetId;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use crate::cell::{Cell, Cells};
use crate::launch::Launch;
use crate::metric::Metric;
use crate::occupancy;
use crate::triton::Identity;

/// One kernel's line of the table and what goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The target; none when the input names none.
    pub target: Option<Arc<TargetId>>,
    /// The figures.
    pub cells: Cells,
    /// Facts that a reader of the figures should know.
    pub notes: Vec<String>,
    /// What makes the figures untrustworthy, each with its place.
    pub problems: Vec<String>,
    /// The file, relative to the input, with the container path behind it.
    pub source: Arc<str>,
    /// What identifies a specialisation beyond its name.
    pub identity: Option<Identity>,
    /// What a launch is bound to; none in a snapshot that was written without it.
    pub launch: Option<Launch>,
}

impl Record {
    /// Whether the figures are all known and nothing contradicts them.
    pub fn is_trustworthy(&self) -> bool {
        self.problems.is_empty() && self.cells.iter().all(|(_, cell)| cell.unparsed().is_none())
    }

    /// What is not known and why: a sentence for each reason, with all columns that it holds for.
    pub fn unknowns(&self) -> Vec<String> {
        let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
        for (metric, cell) in self.cells.iter() {
            let Some(reason) = cell.unparsed() else { continue };
            match by_reason.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, columns)) => columns.push(metric.name()),
                None => by_reason.push((reason, vec![metric.name()])),
            }
        }
        let sentence = |(reason, columns): (&str, Vec<&str>)| {
            let verb = if columns.len() == 1 { "is" } else { "are" };
            format!("{} {verb} not known: {reason}", columns.join(", "))
        };
        by_reason.into_iter().map(sentence).collect()
    }

    /// The facts of the target, if its processor is known.
    pub fn isa_target(&self) -> Option<isa::Target> {
        isa_target(self.target.as_deref()?)
    }

    /// Reads a snapshot's record; the error says what is wrong and in which member.
    pub fn from_json(value: &Value) -> Result<Record, String> {
        let object = value.as_object().ok_or("must be an object")?;
        let metrics = object.get("metrics").and_then(Value::as_object).ok_or("`metrics` must be an object")?;
        let mut bad = None;
        let cells = Cells::from_fn(|metric| match metrics.get(metric.name()).map(Cell::from_json) {
            Some(Ok(cell)) => cell,
            Some(Err(why)) => {
                bad.get_or_insert(format!("`metrics.{}`: {why}", metric.name()));
                Cell::Unparsed(why)
            }
            None => Cell::Unparsed("missing in the snapshot".into()),
        });
        if let Some(bad) = bad {
            return Err(bad);
        }
        let record = Record {
            target: match object.get("arch") {
                None | Some(Value::Null) => None,
                Some(arch) => Some(Arc::new(arch_from_json(arch)?)),
            },
            cells,
            notes: strings(object.get("notes"), "notes")?,
            problems: strings(object.get("problems"), "problems")?,
            source: object.get("source").and_then(Value::as_str).unwrap_or_default().into(),
            identity: object.get("identity").and_then(identity),
            launch: match object.get("launch") {
                None | Some(Value::Null) => None,
                Some(launch) => Some(Launch::from_json(launch)?),
            },
        };
        record.check_triggers()?;
        Ok(record)
    }

    /// A trigger exists on every target: it may be not recorded, but not absent.
    pub(crate) fn check_triggers(&self) -> Result<(), String> {
        let absent = |(m, cell): &(Metric, &Cell)| m.is_trigger() && matches!(cell, Cell::NotApplicable(_));
        let Some((metric, _)) = self.cells.iter().find(absent) else { return Ok(()) };
        let name = metric.name();
        Err(format!("`metrics.{name}`: n/a without the reason \"not recorded\": {name} exists on every target"))
    }
}

/// As a snapshot records it, keys sorted.
impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(serializer, None)
    }
}

/// A record with its occupancy as a further member.
pub struct WithOccupancy<'r> {
    record: &'r Record,
    occupancy: Cell,
}

impl Serialize for WithOccupancy<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.record.write(serializer, Some(&self.occupancy))
    }
}

impl Record {
    /// The record as JSON has it under `--wide`.
    pub fn with_occupancy(&self, settings: occupancy::Settings) -> WithOccupancy<'_> {
        WithOccupancy { record: self, occupancy: occupancy::cell(self, settings) }
    }

    fn write<S: Serializer>(&self, serializer: S, occupancy: Option<&Cell>) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("arch", &self.target.as_deref().map(Arch))?;
        if let Some(identity) = &self.identity {
            map.serialize_entry("identity", identity)?;
        }
        if let Some(launch) = &self.launch {
            map.serialize_entry("launch", launch)?;
        }
        map.serialize_entry("metrics", &self.cells)?;
        map.serialize_entry("notes", &self.notes)?;
        if let Some(occupancy) = occupancy {
            map.serialize_entry(occupancy::COLUMN, occupancy)?;
        }
        map.serialize_entry("problems", &self.problems)?;
        map.serialize_entry("source", &*self.source)?;
        map.end()
    }
}

/// A target as a snapshot records it.
struct Arch<'t>(&'t TargetId);

impl Serialize for Arch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("features", &self.0.features)?;
        map.serialize_entry("gen", &self.0.generation())?;
        map.serialize_entry("processor", &self.0.processor)?;
        map.serialize_entry("target_id", &self.0.text)?;
        map.end()
    }
}

/// The facts of a target ID's processor; none when it has none or its name is not of a known shape.
pub fn isa_target(target: &TargetId) -> Option<isa::Target> {
    Some(isa::Target::new(target.processor.as_deref()?, target.generation()?))
}

/// Reads an array of strings; a member that is not there is an empty one.
pub fn strings(value: Option<&Value>, name: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` must be an array of strings");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => value
            .as_array()
            .ok_or_else(wrong)?
            .iter()
            .map(|v| v.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect(),
    }
}

/// A target whose `processor` is null is known to be unnamed; that is no error.
fn arch_from_json(value: &Value) -> Result<TargetId, String> {
    let object = value.as_object().ok_or("`arch` must be an object or null")?;
    let text = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`arch.{name}` must be a string")),
    };
    let processor = text("processor")?;
    target(processor, strings(object.get("features"), "arch.features")?, text("target_id")?)
}

/// A snapshot's target out of its members; the error says where they contradict each other.
pub(crate) fn target(
    processor: Option<String>,
    features: Vec<String>,
    target_id: Option<String>,
) -> Result<TargetId, String> {
    let spelled = target_id.or_else(|| processor.clone()).unwrap_or_default();
    if let Some(named) =
        TargetId::parse(&spelled).ok().and_then(|t| t.processor).filter(|p| Some(p) != processor.as_ref())
    {
        let processor = processor.as_deref().unwrap_or("null");
        return Err(format!("`arch.processor` is {processor} and `arch.target_id` names {named}"));
    }
    Ok(TargetId { processor, features: features.into_iter().collect(), text: spelled })
}

/// What identifies a specialisation; one of another form is none.
pub(crate) fn identity(value: &Value) -> Option<Identity> {
    Identity::deserialize(value).ok()
}

/// A note on kernels that allocate stack at run time.
pub const DYNAMIC_STACK_NOTE: &str = "dynamic stack in use: scratch_bytes is only its static part";

/// A note on kernels whose LDS is asked for at launch.
pub const DYNAMIC_LDS_NOTE: &str = "dynamic LDS in use: lds_static_bytes is 0 whatever the launch asks for";

/// A note that a reader needs whenever static LDS is 0 and the body uses LDS all the same.
pub fn dynamic_lds_note(cells: &Cells, has_lds_traffic: bool) -> Option<String> {
    (has_lds_traffic && cells[Metric::LdsStaticBytes] == Cell::Value(0)).then(|| DYNAMIC_LDS_NOTE.into())
}

#[cfg(test)]
mod tests {
    use codeobj::descriptor::Family;
    use isa::RegisterFile;

    use super::*;

    #[test]
    fn both_tables_agree_on_which_processors_share_one_register_file() {
        // `codeobj` knows it as a descriptor layout and `isa` as a register file; neither may use the other.
        let mut seen = 0;
        for processor in codeobj::target::mach::PROCESSORS.iter().map(|row| row.1) {
            let Ok(target) = TargetId::parse(processor) else { continue };
            let (Some(isa), Some(family)) = (isa_target(&target), Family::of(processor)) else { continue };
            assert_eq!(isa.register_file == RegisterFile::Unified, family == Family::Gfx90a, "{processor}");
            seen += 1;
        }
        assert!(seen > 40, "{seen} processors");
    }
}
