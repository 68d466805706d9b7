//! The argument buffer of every kernel of every code object at hand stands as `llvm-readobj` prints it: the scaffold of a site
//! is a site, its arguments fall where the metadata has them, and none may be left out.

use std::path::{Path, PathBuf};
use std::process::Command;

use codeobj::code_object::Kernel;
use codeobj::metadata::Metadata;
use codeobj::{CodeObject, Detail, container};
use compare::pack::{Layout, is_passable};
use compare::site::{DeviceFacts, Site, scaffold};

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
    let text = scaffold::site_text(&kernel.name, &kernel.metadata);
    let parse = |text: &str| Site::parse(text, "site", Path::new(""), DEVICE);
    let site = parse(&text).unwrap_or_else(|why| panic!("{place}: {why}\n{text}"));
    let explicit: Vec<_> = kernel.metadata.args.iter().filter(|arg| !is_hidden(arg.value_kind.as_deref())).collect();
    checked.kernels += 1;
    let unpassable: Vec<&str> =
        explicit.iter().filter_map(|arg| arg.value_kind.as_deref()).filter(|kind| !is_passable(kind)).collect();
    let layout = match (Layout::from_metadata(&site, &kernel.metadata), unpassable.first()) {
        (Ok(layout), None) => layout,
        (Err(why), Some(kind)) => {
            assert!(
                why.iter().any(|why| why.contains(&format!("arguments of kind {kind} cannot be passed"))),
                "{why:?}"
            );
            checked.refused += 1;
            return;
        }
        (found, unpassable) => panic!("{place}: {found:?}, {unpassable:?}\n{text}"),
    };
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
