//! The arrows between the rooms: which crate may use which. ARCHITECTURE.md draws them; this test holds them.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each room and what it may know. A new arrow is a decision: it changes this table and ARCHITECTURE.md together.
const ARROWS: [(&str, &[&str]); 10] = [
    ("coax", &["asm", "codeobj", "compare", "gpu", "isa", "llvm", "resources", "rewrite"]),
    ("resources", &["asm", "codeobj", "isa"]),
    ("rewrite", &["asm", "codeobj", "isa", "llvm"]),
    ("codeobj", &[]),
    ("asm", &[]),
    ("isa", &[]),
    ("gpu", &[]),
    ("compare", &["codeobj", "gpu"]),
    ("llvm", &[]),
    // Measures the program from outside, as its users run it.
    ("bench", &[]),
];

#[test]
fn rooms_know_only_what_the_architecture_allows() {
    let allowed: BTreeMap<&str, &[&str]> = ARROWS.into();
    for (room, used) in arrows_in_manifests() {
        let allowed =
            allowed.get(room.as_str()).unwrap_or_else(|| panic!("`{room}` is a room that ARROWS does not list"));
        for other in used {
            assert!(allowed.contains(&other.as_str()), "`{room}` must not depend on `{other}`");
        }
    }
}

#[test]
fn every_listed_room_exists() {
    let rooms = arrows_in_manifests();
    for (room, _) in ARROWS {
        assert!(rooms.contains_key(room), "`{room}` is listed but is not in the workspace");
    }
}

/// What each package of the workspace uses of the others, development dependencies included.
fn arrows_in_manifests() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let packages = metadata["packages"].as_array().expect("cargo metadata lists packages");
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().expect("a package lists its dependencies");
            // Only members of the workspace have a path.
            let rooms = dependencies.iter().filter(|dependency| dependency["path"].is_string());
            (text(&package["name"]), rooms.map(|room| text(&room["name"])).collect())
        })
        .collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
