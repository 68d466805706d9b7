//! What this crate reads from real code objects is what `llvm-readelf` prints about them.
//!
//! The committed objects have its output beside them; a larger corpus (`COAX_CORPUS`) is compared with the tool itself.

mod support;

use codeobj::code_object::ObjectKind;
use codeobj::metadata::Detail;
use codeobj::{CodeObject, Count, Kernel, Metadata, container};
use std::path::Path;
use std::process::Command;

#[test]
fn committed_objects_read_as_llvm_readelf_prints_them() {
    for name in support::code_objects() {
        let printed = String::from_utf8(support::bytes(&format!("{name}.readelf"))).expect("UTF-8");
        compare(&name, &support::bytes(&name), &printed);
    }
}

#[test]
fn corpus_reads_as_llvm_readelf_prints_it() {
    let Some(corpus) = support::corpus() else { return };
    let mut compared = 0;
    for path in support::files_below(&corpus) {
        let bytes = std::fs::read(&path).expect("readable");
        if container::sniff(&bytes) == Some(container::Kind::CodeObject) {
            match readelf(&path) {
                Some(printed) => compare(&path.display().to_string(), &bytes, &printed),
                None => return eprintln!("skipped: there is no llvm-readelf-22 or llvm-readelf"),
            }
            compared += 1;
        }
    }
    eprintln!("{compared} code objects compared");
    assert!(compared > 100);
}

fn readelf(path: &Path) -> Option<String> {
    let run = |tool| Command::new(tool).args(["-h", "-s", "--notes"]).arg(path).output().ok();
    let output = run("llvm-readelf-22").or_else(|| run("llvm-readelf"))?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn compare(name: &str, bytes: &[u8], printed: &str) {
    let object = CodeObject::parse_with(bytes, Detail::Full).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(object.problems, [""; 0], "{name}");
    assert_eq!(object.target.canonical(), printed_target(printed), "{name}");
    assert_eq!(object.abi_version.to_string(), printed_field(printed, "ABI Version:"), "{name}");

    let text = printed.find("---\n").map(|at| &printed[at..]).expect("metadata");
    let text = &text[..text.find("\n...").expect("end of metadata") + "\n...\n".len()];
    let from_text = Metadata::from_yaml(text, Detail::Full).unwrap_or_else(|error| panic!("{name}: {error}"));
    let from_note: Vec<_> = object.kernels.iter().map(|kernel| kernel.metadata.clone()).collect();
    assert_eq!(from_note, from_text.kernels, "{name}: MessagePack and YAML differ");

    for (key, value) in [
        (".vgpr_count", (|k| &k.metadata.vgpr_count) as fn(&Kernel) -> &Count),
        (".sgpr_count", |k| &k.metadata.sgpr_count),
        (".group_segment_fixed_size", |k| &k.metadata.group_segment_fixed_size),
        (".private_segment_fixed_size", |k| &k.metadata.private_segment_fixed_size),
        (".wavefront_size", |k| &k.metadata.wavefront_size),
    ] {
        let read: Vec<String> = object.kernels.iter().map(|k| value(k).value().expect("a count").to_string()).collect();
        assert_eq!(read, kernel_values(text, key), "{name}: {key}");
    }
    for kernel in &object.kernels {
        assert_eq!(kernel.problems, [""; 0], "{name}: {}", kernel.name);
        compare_addresses(name, &object, kernel, printed);
    }
}

fn compare_addresses(name: &str, object: &CodeObject, kernel: &Kernel, printed: &str) {
    let descriptor = kernel.descriptor.as_ref().expect("descriptor");
    let code = kernel.code.as_ref().expect("code");
    let (address, size) = symbol(printed, "OBJECT", &format!("{}.kd", kernel.name)).expect("descriptor symbol");
    assert_eq!((descriptor.address, 64), (address, size), "{name}: {}", kernel.name);
    assert!(!code.file_range.is_empty(), "{name}: {} has no code", kernel.name);
    if let Some((address, size)) = symbol(printed, "FUNC", &kernel.name) {
        assert_eq!(code.address, address, "{name}: entry of {}", kernel.name);
        if size != 0 {
            assert_eq!(code.file_range.len() as u64, size, "{name}: size of {}", kernel.name);
        }
    }
    if object.kind == ObjectKind::Dynamic {
        let section = &object.sections[code.section];
        let offset = code.file_range.start - section.file_range.start;
        assert_eq!(section.address + offset as u64, code.address, "{name}: {}", kernel.name);
    }
}

fn printed_field<'a>(printed: &'a str, field: &str) -> &'a str {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix(field));
    line.unwrap_or_else(|| panic!("{field} is not printed")).trim()
}

/// `0x54c, gfx942, xnack, sramecc+` → canonical target ID: a feature without a sign is "any".
fn printed_target(printed: &str) -> String {
    let mut parts = printed_field(printed, "Flags:").split(", ").skip(1);
    let processor = parts.next().expect("processor");
    let mut features: Vec<&str> = parts.filter(|feature| feature.ends_with(['+', '-'])).collect();
    features.sort_unstable();
    features.iter().fold(format!("amdgcn-amd-amdhsa--{processor}"), |target, feature| format!("{target}:{feature}"))
}

/// Values of `key` in the kernels' entries: the lines at their level, no deeper.
fn kernel_values(text: &str, key: &str) -> Vec<String> {
    let at_level = text.lines().filter_map(|line| line.strip_prefix("  - ").or_else(|| line.strip_prefix("    ")));
    let values = at_level.filter_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    values.map(|value| value.trim().to_string()).collect()
}

/// Value and size of a symbol in `12: 0000000000002000    32 FUNC    GLOBAL PROTECTED   7 k<float, 4>`.
fn symbol(printed: &str, kind: &str, name: &str) -> Option<(u64, u64)> {
    printed.lines().find_map(|line| {
        let head = line.strip_suffix(name)?.strip_suffix(' ')?;
        let [_, value, size, printed_kind, _, _, section] = head.split_whitespace().collect::<Vec<_>>()[..] else {
            return None;
        };
        let matches = printed_kind == kind && section != "UND";
        matches.then(|| u64::from_str_radix(value, 16).ok().zip(size.parse().ok()))?
    })
}
