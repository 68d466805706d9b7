//! Snapshots as `coax summarize --json` writes them, read as plain JSON: the library's own types are what is tested.

use crate::process;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// By key.
pub type Kernels = BTreeMap<String, Kernel>;

/// One kernel of a snapshot.
pub struct Kernel {
    /// Processor and features, as in `gfx90a:sramecc+:xnack-`.
    pub target: String,
    /// By column.
    pub cells: BTreeMap<String, Cell>,
}

/// One figure.
#[derive(Debug)]
pub enum Cell {
    Value(u64),
    NotApplicable(String),
    Unparsed(String),
}

/// Whether the column counts instructions.
pub fn is_instruction_count(column: &str) -> bool {
    matches!(column, "lds_read" | "lds_write" | "scratch_store" | "scratch_load" | "matrix_ops")
}

/// The kernels of `input`. The verdict must agree with the exit code and with what the cells say.
pub fn summarize(input: &Path, options: &[&str]) -> Result<Kernels, String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments = vec!["summarize".to_owned(), input.display().to_string()];
    arguments.extend(["--json", "snapshot.json", "-q"].iter().chain(options).map(|argument| (*argument).to_owned()));
    let outcome = process::run_coax(&arguments, work.path(), &[])?;
    let stderr = String::from_utf8_lossy(&outcome.stderr);
    let text = std::fs::read(work.path().join("snapshot.json"))
        .map_err(|error| format!("{}: no snapshot: {error}\n{stderr}", input.display()))?;
    let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let kernels = value["kernels"].as_object().ok_or("a snapshot without kernels")?;
    let kernels: Kernels = kernels.iter().map(|(key, value)| (key.clone(), kernel(value))).collect();
    let is_known = |kernel: &Kernel| kernel.cells.values().all(|cell| !matches!(cell, Cell::Unparsed(_)));
    let is_trustworthy = value["trustworthy"] == Value::Bool(true);
    let (exit, verdict) = if is_trustworthy { (0, "RESULT: OK") } else { (2, "RESULT: NOT TRUSTWORTHY") };
    let last = String::from_utf8_lossy(&outcome.stdout).lines().last().unwrap_or_default().to_owned();
    if outcome.exit != exit || last != verdict || (is_trustworthy && !kernels.values().all(is_known)) {
        return Err(format!(
            "{}: exit {}, {last}, trustworthy {is_trustworthy}\n{stderr}",
            input.display(),
            outcome.exit
        ));
    }
    Ok(kernels)
}

fn kernel(value: &Value) -> Kernel {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut target = text(&value["arch"]["processor"]);
    for feature in value["arch"]["features"].as_array().into_iter().flatten() {
        target.push_str(&format!(":{}", text(feature)));
    }
    let cell = |cell: &Value| match cell["state"].as_str() {
        Some("value") => Cell::Value(cell["value"].as_u64().expect("a value is a count")),
        Some("n/a") => Cell::NotApplicable(text(&cell["reason"])),
        _ => Cell::Unparsed(text(&cell["reason"])),
    };
    let metrics = value["metrics"].as_object().expect("a kernel has metrics");
    Kernel { target, cells: metrics.iter().map(|(column, value)| (column.clone(), cell(value))).collect() }
}
