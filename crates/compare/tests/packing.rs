//! The argument buffer of every kernel of every code object at hand stands as `llvm-readobj` prints it: the scaffold of a site
//! is a site, its arguments fall where the metadata has them, and none may be left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use codeobj::code_object::Kernel;
use codeobj::metadata::Metadata;
use codeobj::{CodeObject, Detail, container};
use compare::pack::{Layout, is_passable};
use compare::site::scaffold::{self, Beside};
use compare::site::{DeviceFacts, Site};

const DEVICE: DeviceFacts = DeviceFacts { compute_units: 256, wave_size: 64 };

#[test]
fn committed_code_objects_are_packed_as_their_metadata_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let checked = check_folder(&folder);
    assert!(checked.kernels >= 20 && checked.arguments >= 100, "{checked:?}");
}

#[test]
fn the_corpus_is_packed_as_its_metadata_says() {
    let Some(corpus) = std::env::var_os("COAX_CORPUS") else {
        return eprintln!("skipped: set COAX_CORPUS to a folder with code objects");
    };
    let checked = check_folder(Path::new(&corpus));
    eprintln!("{checked:?}");
    assert!(checked.kernels > 200, "{checked:?}");
}

#[derive(Debug, Default)]
struct Checked {
    kernels: usize,
    arguments: usize,
    refused: usize,
    by_llvm: usize,
}

fn check_folder(folder: &Path) -> Checked {
    let mut checked = Checked::default();
    for path in files_below(folder) {
        let bytes = std::fs::read(&path).expect("readable");
        let Ok(members) = container::select(&bytes, "") else { continue };
        for member in members {
            let Ok(object) = CodeObject::parse_with(&member.bytes, Detail::Full) else { continue };
            let printed = printed_by_llvm(&member.bytes);
            for (index, kernel) in object.kernels.iter().enumerate() {
                let place = format!("{} {} {}", path.display(), member.path, kernel.name);
                let llvm = printed.as_ref().map(|kernels| &kernels.kernels[index]);
                check_kernel(&place, kernel, llvm, &mut checked);
            }
        }
    }
    checked
}

/// The metadata as text of LLVM's; none without the tool or without metadata.
fn printed_by_llvm(object: &[u8]) -> Option<Metadata> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), object).expect("written");
    let output = Command::new("llvm-readobj-22").arg("--notes").arg(file.path()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let start = text.find("---\n")?;
    let end = start + text[start..].find("\n...\n")?;
    Some(Metadata::from_yaml_by_the_book(&text[start..end], Detail::Full).expect("YAML of LLVM's"))
}

fn check_kernel(place: &str, kernel: &Kernel, llvm: Option<&codeobj::metadata::KernelMetadata>, checked: &mut Checked) {
    let explicit: Vec<_> = kernel.metadata.args.iter().filter(|arg| !is_hidden(arg.value_kind.as_deref())).collect();
    checked.kernels += 1;
    let unpassable: Vec<&str> =
        explicit.iter().filter_map(|arg| arg.value_kind.as_deref()).filter(|kind| !is_passable(kind)).collect();
    let written = scaffold::site_text(&kernel.name, &kernel.metadata, &Beside::default());
    let text = match (written, unpassable.first()) {
        (Ok(text), None) => text,
        (Err(why), Some(kind)) => {
            assert!(why.iter().any(|why| why.contains(&format!("is of kind {kind}, which"))), "{why:?}");
            checked.refused += 1;
            return;
        }
        (found, unpassable) => panic!("{place}: {found:?}, {unpassable:?}"),
    };
    let parse = |text: &str| Site::parse(text, "site", Path::new(""), DEVICE);
    let unedited = parse(&text).expect_err("nobody has filled it in");
    assert!(unedited.contains("still to be filled in"), "{place}: {unedited}");
    let text = filled_in(&text);
    let site = parse(&text).unwrap_or_else(|why| panic!("{place}: {why}\n{text}"));
    let layout =
        Layout::from_metadata(&site, &kernel.metadata).unwrap_or_else(|why| panic!("{place}: {why:?}\n{text}"));
    if let Some(llvm) = llvm {
        let listed = llvm.args.iter().filter(|arg| !is_hidden(arg.value_kind.as_deref()));
        let listed: Vec<(u64, u64)> =
            listed.map(|arg| (arg.offset.value().expect("offset"), arg.size.value().expect("size"))).collect();
        let sizes = site.arguments.iter().map(|argument| argument.value.size());
        let packed: Vec<(u64, u64)> = layout.offsets.iter().copied().zip(sizes).collect();
        assert_eq!(packed, listed, "{place}");
        checked.by_llvm += 1;
    }
    let addresses: Vec<u64> = (1..=site.buffers().count() as u64).map(|n| n << 32 | 0xabcd).collect();
    let packed = layout.pack(&site, &addresses);
    let pointers: Vec<u64> = explicit
        .iter()
        .filter(|arg| arg.value_kind.as_deref() == Some("global_buffer"))
        .map(|arg| {
            let offset = arg.offset.value().expect("offset") as usize;
            u64::from_le_bytes(packed[offset..offset + 8].try_into().expect("eight bytes"))
        })
        .collect();
    assert_eq!(pointers, addresses, "{place}");
    checked.arguments += explicit.len();
    // Long lists of the same argument: each of the first and the last few.
    let blocks: Vec<&str> = text.split("[[arg]]").collect();
    for left_out in (1..blocks.len()).filter(|index| *index < 20 || *index + 20 > blocks.len()) {
        let kept = blocks.iter().enumerate().filter(|(index, _)| *index != left_out).map(|(_, block)| *block);
        let shorter = parse(&kept.collect::<Vec<_>>().join("[[arg]]")).unwrap_or_else(|why| panic!("{place}: {why}"));
        let why = Layout::from_metadata(&shorter, &kernel.metadata).expect_err("an argument is missing");
        assert!(
            !why.is_empty() && why.iter().any(|why| why.contains("which the site does not give")),
            "{place}: {why:?}"
        );
    }
}

/// As a user would: sizes, values, structures.
fn filled_in(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("bytes = \"?\"  # ").and_then(|rest| rest.split(' ').next()) {
        Some(count) => format!("bytes = \"{}\"\n", "00".repeat(count.parse().expect("a number"))),
        None => line.replace("\"?\"", "1") + "\n",
    };
    text.lines().map(line).collect()
}

fn is_hidden(kind: Option<&str>) -> bool {
    kind.is_some_and(|kind| kind.starts_with("hidden_"))
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir().expect("a folder").flatten() {
            if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    found
}

/// What compilers say of an argument is taken over; what they do not say is marked as a guess.
#[test]
fn roles_and_types_are_those_of_the_metadata() {
    let text = "amdhsa.kernels:\n  - .name: k\n    .max_flat_workgroup_size: 1024\n    .args:\n      \
        - { .name: a, .offset: 0, .size: 8, .value_kind: global_buffer, .actual_access: read_only, .type_name: 'half*' }\n      \
        - { .name: b, .offset: 8, .size: 8, .value_kind: global_buffer, .access: read_write, .type_name: 'int*' }\n      \
        - { .name: x, .offset: 16, .size: 8, .value_kind: global_buffer, .actual_access: write_only, .value_type: f64 }\n      \
        - { .name: p, .offset: 24, .size: 8, .value_kind: global_buffer, .is_const: true }\n      \
        - { .name: g, .offset: 32, .size: 8, .value_kind: global_buffer }\n      \
        - { .name: s, .offset: 40, .size: 4, .value_kind: by_value, .type_name: float }\n";
    let metadata = Metadata::from_yaml(text, Detail::Full).expect("YAML");
    let site = scaffold::site_text("k", &metadata.kernels[0], &Beside::default()).expect("can be passed");
    for lines in [
        "name = \"a\"\nrole = \"in\"  # .actual_access\ndtype = \"f16\"\n",
        "name = \"b\"\nrole = \"inout\"  # .access\ndtype = \"i32\"\n",
        "name = \"x\"\nrole = \"out\"  # .actual_access\ndtype = \"f64\"\n",
        "name = \"p\"\nrole = \"in\"  # const\ndtype = \"f32\"  # guessed\n",
        "name = \"g\"\nrole = \"in\"  # guessed",
        "name = \"s\"\ntype = \"f32\"\nvalue = \"?\"\n",
    ] {
        assert!(site.contains(lines), "{lines}\n{site}");
    }
    assert!(scaffold::has_output(&site));
    let read_only = text.replace("read_write", "read_only").replace("write_only", "read_only");
    let read_only =
        read_only.replace(", .value_kind: global_buffer }", ", .value_kind: global_buffer, .access: read_only }");
    let metadata = Metadata::from_yaml(&read_only, Detail::Full).expect("YAML");
    let site = scaffold::site_text("k", &metadata.kernels[0], &Beside::default()).expect("can be passed");
    assert!(!scaffold::has_output(&site) && site.contains("# No argument is written"), "{site}");
}

/// Triton appends two pointers, and its file says how many lanes a work-group has.
#[test]
fn what_a_compiler_writes_beside_is_taken_over() {
    let pointer = |name: &str, offset: u32| {
        format!("      - {{ .name: {name}, .offset: {offset}, .size: 8, .value_kind: global_buffer }}\n")
    };
    let args: String = ["x", "z", "s", "t"].iter().zip(0..).map(|(name, index)| pointer(name, 8 * index)).collect();
    let text = format!("amdhsa.kernels:\n  - .name: k\n    .args:\n{args}");
    let metadata = Metadata::from_yaml(&text, Detail::Full).expect("YAML");
    let beside = Beside {
        file: "k.json".into(),
        block: Some(512),
        dynamic_lds_bytes: Some(1024),
        appended: vec![("global scratch", 64), ("profile scratch", 0)],
    };
    let site = scaffold::site_text("k", &metadata.kernels[0], &beside).expect("can be passed");
    for lines in [
        "block = [512, 1, 1]  # k.json\ndynamic-lds = 1024  # bytes; k.json\n",
        "name = \"x\"\nrole = \"in\"",
        "name = \"z\"\nrole = \"out\"",
        "name = \"s\"\nrole = \"scratch\"  # Triton's global scratch\ndtype = \"u8\"\nshape = [\"?\"]  # 64 bytes",
        "name = \"t\"\nnull = true  # Triton's profile scratch",
    ] {
        assert!(site.contains(lines), "{lines}\n{site}");
    }
}
