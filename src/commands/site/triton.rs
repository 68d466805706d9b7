//! What Triton writes beside a code object and a launch needs: `F.json` has `num_warps`, `warp_size`, `shared`, and since it
//! appends scratch pointers to the arguments, their sizes.

use std::path::Path;

use compare::site::scaffold::Beside;
use serde_json::{Map, Value};

/// Of the kernel in `path`; nothing when no file of Triton's for this kernel is beside it.
///
/// # Errors
/// A file that is there and no JSON.
pub fn beside(path: &Path, kernel: &str) -> Result<Beside, String> {
    let file = path.with_extension("json");
    // A path into a container has nothing beside it.
    if !path.is_file() || !file.is_file() || file == path {
        return Ok(Beside::default());
    }
    let shown = file.display();
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{shown}: {error}"))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
    Ok(match value.as_object().filter(|object| is_of(object, kernel)) {
        Some(object) => read(object, &file),
        None => Beside::default(),
    })
}

fn is_of(object: &Map<String, Value>, kernel: &str) -> bool {
    object.contains_key("shared") && object.get("name").and_then(Value::as_str).is_none_or(|name| name == kernel)
}

fn read(object: &Map<String, Value>, file: &Path) -> Beside {
    let number = |key: &str| object.get(key).and_then(Value::as_u64);
    let threads = number("num_warps").zip(number("warp_size").or_else(|| warp_size_of(object.get("target")?)));
    let pointers = [("global scratch", "global_scratch_size"), ("profile scratch", "profile_scratch_size")];
    Beside {
        file: file.file_name().unwrap_or_default().to_string_lossy().chars().filter(|c| !c.is_control()).collect(),
        block: threads.map(|(warps, size)| warps.saturating_mul(size)),
        dynamic_lds_bytes: number("shared"),
        appended: pointers.iter().filter_map(|(what, key)| Some((*what, number(key)?))).collect(),
    }
}

/// `{"warp_size": 64}`, or as older versions wrote it: `GPUTarget(backend='hip', arch='gfx942', warp_size=64)`.
fn warp_size_of(target: &Value) -> Option<u64> {
    if let Some(size) = target.get("warp_size") {
        return size.as_u64();
    }
    let (_, rest) = target.as_str()?.split_once("warp_size=")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triton_says_block_lds_and_what_it_appended() {
        let folder = tempfile::tempdir().expect("a folder");
        let object = folder.path().join("k.hsaco");
        std::fs::write(&object, "").expect("written");
        let json = r#"{"name": "k", "num_warps": 8, "shared": 32768, "global_scratch_size": 0, "profile_scratch_size": 16,
            "target": "GPUTarget(backend='hip', arch='gfx942', warp_size=64)"}"#;
        std::fs::write(folder.path().join("k.json"), json).expect("written");
        let found = beside(&object, "k").expect("readable");
        assert_eq!((found.block, found.dynamic_lds_bytes), (Some(512), Some(32768)));
        assert_eq!(found.appended, [("global scratch", 0), ("profile scratch", 16)]);
        assert_eq!(beside(&object, "other"), Ok(Beside::default()), "of another kernel");
        std::fs::write(folder.path().join("k.json"), "{").expect("written");
        assert!(beside(&object, "k").is_err());
    }
}
