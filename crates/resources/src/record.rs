//! What is known of one kernel, wherever it was read.

use codeobj::TargetId;
use serde_json::{Map, Value, json};

use crate::cell::{Cell, Cells};
use crate::metric::Metric;
use crate::triton::Identity;

/// One kernel's line of the table and what goes with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The target; none when the input names none.
    pub target: Option<TargetId>,
    /// The figures.
    pub cells: Cells,
    /// Facts that a reader of the figures should know.
    pub notes: Vec<String>,
    /// What makes the figures untrustworthy, each with its place.
    pub problems: Vec<String>,
    /// The file, relative to the input, with the container path behind it.
    pub source: String,
    /// What identifies a specialisation beyond its name.
    pub identity: Option<Identity>,
}

impl Record {
    /// Whether the figures are all known and nothing contradicts them.
    pub fn is_trustworthy(&self) -> bool {
        self.problems.is_empty() && self.cells.iter().all(|(_, cell)| cell.unparsed().is_none())
    }

    /// The facts of the target, if its processor is known.
    pub fn isa_target(&self) -> Option<isa::Target> {
        isa_target(self.target.as_ref()?)
    }

    /// As a snapshot records it.
    pub fn to_json(&self) -> Value {
        let metrics: Map<String, Value> =
            self.cells.iter().map(|(metric, cell)| (metric.name().into(), cell.to_json())).collect();
        let mut object = json!({
            "arch": self.target.as_ref().map_or(Value::Null, arch_to_json),
            "metrics": metrics,
            "notes": self.notes,
            "problems": self.problems,
            "source": self.source,
        });
        if let Some(identity) = &self.identity {
            object["identity"] = identity.to_json();
        }
        object
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
        Ok(Record {
            target: match object.get("arch") {
                None | Some(Value::Null) => None,
                Some(arch) => arch_from_json(arch)?,
            },
            cells,
            notes: strings(object.get("notes"), "notes")?,
            problems: strings(object.get("problems"), "problems")?,
            source: object.get("source").and_then(Value::as_str).unwrap_or_default().into(),
            identity: object.get("identity").and_then(Identity::from_json),
        })
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

fn arch_to_json(target: &TargetId) -> Value {
    json!({
        "features": target.features,
        "gen": target.generation(),
        "processor": target.processor,
        "target_id": target.text,
    })
}

/// A target whose `processor` is null is known to be unnamed; that is no error.
fn arch_from_json(value: &Value) -> Result<Option<TargetId>, String> {
    let object = value.as_object().ok_or("`arch` must be an object or null")?;
    let text = |name: &str| match object.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`arch.{name}` must be a string")),
    };
    let processor = text("processor")?;
    let features = strings(object.get("features"), "arch.features")?.into_iter().collect();
    let spelled = text("target_id")?.or_else(|| processor.clone()).unwrap_or_default();
    Ok(Some(TargetId { processor, features, text: spelled }))
}

/// A note on kernels that allocate stack at run time.
pub const DYNAMIC_STACK_NOTE: &str = "dynamic stack in use: scratch_bytes is only its static part";

/// A note that a reader needs whenever static LDS is 0 and the body uses LDS all the same.
pub fn dynamic_lds_note(cells: &Cells, has_lds_traffic: bool) -> Option<String> {
    (has_lds_traffic && cells[Metric::LdsStaticBytes] == Cell::Value(0))
        .then(|| "dynamic LDS in use: lds_static_bytes is 0 whatever the launch asks for".into())
}
