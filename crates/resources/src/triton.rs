//! What Triton writes beside a kernel: the metadata file with its LDS size and options, the IR with its signature.
//!
//! Facts measured on Triton 3.9.0 for gfx942. A cache entry is `<hash>/F.{json,source,ttir,ttgir,llir,amdgcn,hsaco}`,
//! a dump directory has neither `.json` nor `.source`. The hash covers line numbers, so it changes without any change of
//! the kernel. Neither file records constexpr values; only their effects are left, of which the shapes that the kernel
//! stores are the most telling.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cell::Cell;
use crate::metric::Metric;
use crate::record::Record;
use crate::strict_json::Strict;

/// What tells specialisations of one kernel name apart. Two kernels that agree in a later member and not in an
/// earlier one may still be the same specialisation of a changed kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    // In the order of their names, as JSON has them.
    /// Compile options as JSON, without results and paths.
    pub options: String,
    /// Argument names, types and attributes, as the IR prints them.
    pub signature: String,
    /// A hash of the IR without locations.
    pub source: String,
    /// Shapes of the stores, sorted.
    pub stores: String,
}

impl Identity {
    /// From the strongest agreement to the weakest: what must be equal, and how a note says so.
    pub fn rounds(&self) -> [(String, &'static str); 3] {
        let base = format!("{}\n{}", self.signature, self.options);
        [
            (format!("{base}\n{}", self.source), "same signature, options and IR"),
            (
                format!("{base}\n{}", self.stores),
                "same signature, options and stored shapes; constexprs are not recorded",
            ),
            (base, "same signature and options; constexprs are not recorded"),
        ]
    }
}

/// Extensions under which Triton writes a compiled kernel; the first that is there is read.
pub const KERNEL_EXTENSIONS: [&str; 2] = ["amdgcn", "hsaco"];

/// What stands beside a kernel's `F.amdgcn` or `F.hsaco`.
#[derive(Clone, Debug, Default)]
pub struct Sidecar {
    /// `"shared"` of the metadata file: the kernel's static LDS in bytes.
    shared_bytes: Option<u64>,
    identity: Identity,
    has_metadata: bool,
}

impl Sidecar {
    /// Reads what Triton wrote beside `kernel` (`…/F.amdgcn`); none when nothing of Triton's is there.
    ///
    /// # Errors
    /// A file that is there and cannot be read or is not what Triton writes.
    pub fn beside(kernel: &Path) -> Result<Option<Sidecar>, String> {
        let mut sidecar = Sidecar::default();
        let text = |extension: &str| read_text(&kernel.with_extension(extension));
        if let Some(json) = text("json")?
            && let Some(metadata) = metadata_object(&json, &kernel.with_extension("json"))?
        {
            sidecar.has_metadata = true;
            sidecar.shared_bytes = Some(shared_bytes(&metadata, &kernel.with_extension("json"))?);
            sidecar.identity.options = options(&metadata);
        }
        let ir = match text("source")? {
            Some(source) => Some(source),
            None => text("ttir")?,
        };
        if ir.is_none() && !sidecar.has_metadata {
            return Ok(None);
        }
        if let Some(ir) = ir {
            let ir = without_locations(&ir);
            sidecar.identity.signature = signature(&ir);
            sidecar.identity.stores = stored_shapes(&ir);
            sidecar.identity.source = format!("{:016x}", fnv1a(&ir));
        }
        if !sidecar.has_metadata {
            sidecar.identity.options = text("ttgir")?.map(|ir| module_attributes(&ir)).unwrap_or_default();
        }
        Ok(Some(sidecar))
    }

    /// Puts the true LDS figure into the record: the ISA says 0 whatever the kernel takes.
    pub fn apply(&self, record: &mut Record) {
        record.identity = Some(self.identity.clone());
        let in_isa = record.cells[Metric::LdsStaticBytes].value();
        let cell = &mut record.cells[Metric::LdsStaticBytes];
        match (self.shared_bytes, in_isa) {
            (Some(shared), Some(0)) => *cell = Cell::Value(shared),
            (Some(shared), Some(isa)) if isa != shared => record.problems.push(format!(
                "{}: the ISA says {isa} bytes of LDS and Triton's metadata file says {shared}",
                record.source
            )),
            (None, Some(0)) => {
                *cell = Cell::NotRecorded("Triton's ISA says 0; the figure is in its .json, which is not here".into());
            }
            _ => {}
        }
        record.notes.retain(|note| !note.contains("dynamic LDS") || self.shared_bytes == Some(0));
    }
}

fn read_text(path: &Path) -> Result<Option<String>, String> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The object of a Triton metadata file; none for some other object that happens to be there.
fn metadata_object(json: &str, path: &Path) -> Result<Option<Map<String, Value>>, String> {
    match serde_json::from_str(json).map(|Strict(value)| value) {
        Ok(Value::Object(object)) if object.contains_key("shared") || object.contains_key("num_warps") => {
            Ok(Some(object))
        }
        Ok(Value::Object(_)) => Ok(None),
        Ok(_) => Err(format!("{}: is no JSON object; Triton's metadata file is", path.display())),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Static LDS: every version of the file has it.
fn shared_bytes(metadata: &Map<String, Value>, path: &Path) -> Result<u64, String> {
    let shared =
        metadata.get("shared").ok_or_else(|| format!("{}: `shared` (bytes of LDS) is missing", path.display()))?;
    shared.as_u64().ok_or_else(|| format!("{}: `shared` is {shared}, expected bytes of LDS", path.display()))
}

/// Keys of the metadata file that are results, places or the target.
const NOT_OPTIONS: [&str; 13] = [
    "hash",
    "name",
    "shared",
    "global_scratch_size",
    "global_scratch_align",
    "profile_scratch_size",
    "profile_scratch_align",
    "triton_version",
    "tensordesc_meta",
    "target",
    "arch",
    "base_arch",
    "warp_size",
];

/// The compile options, keys sorted. Of `extern_libs` only the names: the paths are those of an installation.
fn options(metadata: &Map<String, Value>) -> String {
    let mut options: Map<String, Value> = metadata.clone();
    options.retain(|key, _| !NOT_OPTIONS.contains(&key.as_str()));
    if let Some(Value::Array(libs)) = options.get_mut("extern_libs") {
        libs.iter_mut().for_each(|lib| *lib = lib.get(0).cloned().unwrap_or_default());
    }
    Value::Object(options).to_string()
}

/// Drops ` loc(…)` and the `#loc` lines.
fn without_locations(ir: &str) -> String {
    let mut out = String::with_capacity(ir.len());
    for line in ir.lines().filter(|line| !line.trim_start().starts_with("#loc")) {
        let mut rest = line;
        while let Some(at) = rest.find("loc(") {
            let (head, tail) = rest.split_at(at);
            out.push_str(head.trim_end());
            rest = behind_parentheses(&tail[3..]);
        }
        out.push_str(rest);
        out.push('\n');
    }
    out
}

/// What follows the parenthesis that `text` starts with.
fn behind_parentheses(text: &str) -> &str {
    let mut depth = 0usize;
    let mut quoted = false;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return &text[at + 1..];
                }
            }
            _ => {}
        }
    }
    ""
}

/// The kernel's own line: `tt.func public @F(…)`.
fn signature(ir: &str) -> String {
    let line = ir.lines().find_map(|line| line.trim_start().strip_prefix("tt.func public "));
    line.map(|line| line.trim_end().trim_end_matches('{').trim_end().to_owned()).unwrap_or_default()
}

/// Types of all stores, sorted: they follow the constexprs that shape the output tile.
fn stored_shapes(ir: &str) -> String {
    let is_store = |line: &&str| ["tt.store", "tt.atomic", "tt.descriptor_store"].iter().any(|op| line.contains(op));
    let mut shapes: Vec<&str> =
        ir.lines().filter(is_store).filter_map(|l| Some(l.rsplit_once(" : ")?.1.trim())).collect();
    shapes.sort_unstable();
    shapes.join("; ")
}

/// `module attributes {…}` of the GPU IR: all that a dump directory records of the options.
fn module_attributes(ir: &str) -> String {
    let line = ir.lines().find(|line| line.starts_with("module attributes"));
    line.map(|line| line.trim_end_matches(" {").to_owned()).unwrap_or_default()
}

/// FNV-1a, 64 bits: the same on every machine and in every version, which std's hasher does not promise.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_do_not_count_and_stores_are_found() {
        let ir = "#loc = loc(\"a.py\":6:1)\nmodule {\n  tt.func public @f(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} \
                  loc(\"x\"(#loc))) attributes {noinline = false} {\n    tt.store %1, %8, %m : tensor<64x32x!tt.ptr<f32>> loc(#loc10)\n";
        let bare = without_locations(ir);
        assert!(!bare.contains("loc("), "{bare}");
        assert_eq!(signature(&bare), "@f(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) attributes {noinline = false}");
        assert_eq!(stored_shapes(&bare), "tensor<64x32x!tt.ptr<f32>>");
    }

    #[test]
    fn results_and_paths_are_no_options() {
        let json = r#"{"hash":"a","shared":5,"num_warps":4,"extern_libs":[["ocml","/x/ocml.bc"]],"arch":"gfx942"}"#;
        let Value::Object(object) = serde_json::from_str(json).expect("JSON") else { panic!() };
        assert_eq!(options(&object), r#"{"extern_libs":["ocml"],"num_warps":4}"#);
    }
}
