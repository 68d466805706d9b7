//! What this crate reads from real code objects is what `llvm-readelf` and `llvm-objdump` print about them.
//!
//! The committed objects have that output beside them; a larger corpus (`COAX_CORPUS`) is compared with the tools
//! themselves, version 22.

mod support;

use codeobj::code_object::ObjectKind;
use codeobj::descriptor::Family;
use codeobj::metadata::Detail;
use codeobj::{CodeObject, Count, Kernel, Metadata, TargetId, container};
use std::path::Path;
use std::process::Command;

#[test]
fn committed_objects_read_as_llvm_prints_them() {
    for name in support::code_objects() {
        let printed = String::from_utf8(support::bytes(&format!("{name}.llvm"))).expect("UTF-8");
        compare(&name, &support::bytes(&name), &printed);
    }
}

#[test]
fn corpus_reads_as_llvm_prints_it() {
    let Some(corpus) = support::corpus() else { return };
    let mut compared = 0;
    for path in support::files_below(&corpus) {
        let bytes = std::fs::read(&path).expect("readable");
        if container::sniff(&bytes) == Some(container::Kind::CodeObject) {
            match printed_by_llvm(&path) {
                Some(printed) => compare(&path.display().to_string(), &bytes, &printed),
                None => return eprintln!("skipped: there is no llvm-readelf-22"),
            }
            compared += 1;
        }
    }
    eprintln!("{compared} code objects compared");
    assert!(compared > 100);
}

fn printed_by_llvm(path: &Path) -> Option<String> {
    let run = |tool, arguments: &[&str]| {
        let output = Command::new(tool).args(arguments).arg(path).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let readelf = run("llvm-readelf-22", &["-h", "-s", "--notes"])?;
    Some(readelf + &run("llvm-objdump-22", &["-D", "-j", ".rodata"])?)
}

/// Every processor number and every state of the features, put into the header of a real code object.
#[test]
fn e_flags_read_as_llvm_prints_them() {
    let path = std::env::temp_dir().join(format!("coax-e-flags-{}", std::process::id()));
    let mut object = support::bytes("code-objects/vector_add.gfx942.hsaco");
    let mut printed = |e_flags: u32, abi_version: u8| {
        object[8] = abi_version;
        object[48..52].copy_from_slice(&e_flags.to_le_bytes());
        std::fs::write(&path, &object).expect("temporary file");
        printed_by_llvm(&path)
    };
    if printed(0, 3).is_none() {
        return eprintln!("skipped: there is no llvm-readelf-22");
    }
    let newer = ["gfx940", "gfx941", "gfx1170", "gfx1171", "gfx1172", "gfx1310", "gfx12-5-generic"];
    for mach in 0x20..0x80 {
        let text = printed(mach, 3).expect("output");
        match TargetId::from_elf(mach, 3) {
            Some(target) if newer.contains(&&*target.short()) => {}
            Some(target) => assert_eq!(target.canonical(), printed_target(&text), "{mach:#x}"),
            None => assert!(!printed_field(&text, "Flags:").contains("gfx"), "{mach:#x}"),
        }
    }
    for state in 0..16 {
        let e_flags = 0x3f | state << 8;
        let text = printed(e_flags, 2).expect("output");
        assert_eq!(TargetId::from_elf(e_flags, 2).expect("gfx90a").canonical(), printed_target(&text), "{e_flags:#x}");
    }
    std::fs::remove_file(&path).expect("temporary file");
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
        compare_descriptor(name, &object, kernel, printed);
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

/// The directives that `llvm-objdump` prints for a descriptor are our fields.
fn compare_descriptor(name: &str, object: &CodeObject, kernel: &Kernel, printed: &str) {
    let Some((_, directives)) = printed.split_once(&format!(".amdhsa_kernel {}\n", kernel.name)) else {
        return assert!(object.kind == ObjectKind::Relocatable, "{name}: {} is not printed", kernel.name);
    };
    let descriptor = &kernel.descriptor.as_ref().expect("descriptor").descriptor;
    let family = Family::of(object.target.processor.as_deref().expect("processor")).expect("family");
    let wave32 = family.has_wave32() && descriptor.wavefront_size32();
    let field = |name: &str| descriptor.fields(family).find(|(field, _)| field.name == name).map(|(_, value)| value);
    let mut compared = 0;
    for line in directives.lines().take_while(|line| *line != ".end_amdhsa_kernel") {
        let (directive, value) = line.trim().trim_start_matches("; ").split_once(' ').expect("directive and value");
        let directive = directive.trim_start_matches(".amdhsa_").to_lowercase();
        let ours = match &*directive {
            "system_sgpr_private_segment_wavefront_offset" => field("enable_private_segment"),
            "accum_offset" => descriptor.accum_offset(family).map(u64::from),
            "next_free_vgpr" => Some(descriptor.allocated_vgprs(family, wave32).into()),
            "next_free_sgpr" => descriptor.allocated_sgprs(family).map(u64::from).or_else(|| value.parse().ok()),
            "reserve_vcc" | "reserve_flat_scratch" | "reserve_xnack_mask" => continue,
            name => field(name),
        };
        assert_eq!(ours.map(|ours| ours.to_string()).as_deref(), Some(value), "{name}: {}: {directive}", kernel.name);
        compared += 1;
    }
    assert!(compared > 20, "{name}: {}", kernel.name);
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
