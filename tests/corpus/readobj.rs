//! What LLVM's tools say about code objects, read from what they print.

use crate::files::Object;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// One entry of `amdhsa.kernels`.
#[derive(Default)]
pub struct KernelNote {
    /// `.name`.
    pub name: String,
    /// The counts among its keys.
    pub figures: BTreeMap<String, u64>,
}

/// The kernels of each object, from `llvm-readobj --notes`.
pub fn kernels(objects: &[Object]) -> Result<Vec<Vec<KernelNote>>, String> {
    let pages = pages("llvm-readobj-22", "--notes", objects)?;
    Ok(pages.iter().map(|page| kernels_in(page)).collect())
}

/// The first accumulator register of each kernel that has one, from `llvm-objdump` of the descriptors. It is started for
/// each object: behind one of gfx1250, version 22 shows the descriptors of the others as plain bytes.
pub fn accum_offsets(objects: &[Object]) -> Result<Vec<BTreeMap<String, u64>>, String> {
    let of_one = |object| {
        dump("llvm-objdump-22", &["-D", "-j", ".rodata"], std::slice::from_ref(object))
            .map(|page| accum_offsets_in(&page))
    };
    objects.iter().map(of_one).collect()
}

fn accum_offsets_in(page: &str) -> BTreeMap<String, u64> {
    let mut kernel = "";
    let mut offsets = BTreeMap::new();
    for line in page.lines() {
        if let Some(name) = line.strip_prefix(".amdhsa_kernel ") {
            kernel = name.trim_matches('"');
        } else if let Some(offset) = line.strip_prefix("\t.amdhsa_accum_offset ").and_then(|text| text.parse().ok()) {
            offsets.insert(kernel.to_owned(), offset);
        }
    }
    offsets
}

/// Processor and features of each object, from the flags that `llvm-readelf -h` prints.
pub fn targets(objects: &[Object]) -> Result<Vec<String>, String> {
    let pages = pages("llvm-readelf-22", "-h", objects)?;
    pages.iter().map(|page| target_in(page)).collect()
}

/// Entries for AMD GPUs of a bundle in a file, as processor and features.
pub fn bundle_entries(file: &Path) -> Result<Vec<String>, String> {
    let input = format!("--input={}", file.display());
    let listed = run(BUNDLER, &["--list", "--type=o", &input])?;
    Ok(listed.lines().filter_map(|line| Some(line.split_once("amdgcn-amd-amdhsa--")?.1.to_owned())).collect())
}

const BUNDLER: &str = "clang-offload-bundler-22";

/// Why bundles cannot be listed here.
pub fn no_bundler() -> Option<String> {
    run(BUNDLER, &["--version"]).err().map(|_| format!("no {BUNDLER} (Debian: clang-22)"))
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}

/// What a tool that heads each page with `File: ` prints about each object.
fn pages(tool: &str, option: &str, objects: &[Object]) -> Result<Vec<String>, String> {
    let text = dump(tool, &[option], objects)?;
    let pages: Vec<String> = match objects.len() {
        1 => vec![text],
        _ => format!("\n{text}").split("\nFile: ").skip(1).map(str::to_owned).collect(),
    };
    match pages.len() == objects.len() {
        true => Ok(pages),
        false => Err(format!("{tool} printed {} pages for {} files", pages.len(), objects.len())),
    }
}

/// Starts the tool once for all objects.
fn dump(tool: &str, options: &[&str], objects: &[Object]) -> Result<String, String> {
    let work = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut arguments: Vec<String> = options.iter().map(|option| (*option).to_owned()).collect();
    for (at, object) in objects.iter().enumerate() {
        let path = work.path().join(at.to_string());
        std::fs::write(&path, &object.bytes).map_err(|error| error.to_string())?;
        arguments.push(path.display().to_string());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    run(tool, &arguments)
}

/// Keys of a kernel stand at the fourth column, with `- ` in front of an entry's first.
fn kernels_in(page: &str) -> Vec<KernelNote> {
    let lines = page.lines().skip_while(|line| *line != "amdhsa.kernels:").skip(1);
    let mut kernels: Vec<KernelNote> = Vec::new();
    for line in lines.take_while(|line| line.starts_with(' ')) {
        let (is_first, key) = match (line.strip_prefix("  - "), line.strip_prefix("    ")) {
            (Some(key), _) => (true, key),
            (None, Some(key)) => (false, key),
            (None, None) => continue,
        };
        if is_first {
            kernels.push(KernelNote::default());
        }
        let Some((key, value)) = key.split_once(':').filter(|(key, _)| key.starts_with('.')) else { continue };
        let Some(kernel) = kernels.last_mut() else { continue };
        match (key, value.trim().parse()) {
            (".name", _) => kernel.name = unquoted(value.trim()),
            (_, Ok(count)) => drop(kernel.figures.insert(key.to_owned(), count)),
            _ => {}
        }
    }
    kernels
}

fn unquoted(text: &str) -> String {
    text.strip_prefix('\'').and_then(|t| t.strip_suffix('\'')).map_or_else(|| text.to_owned(), |t| t.replace("''", "'"))
}

/// `Flags: 0x73f, gfx90a, xnack+, sramecc`: a feature without a sign is supported and of either setting. Objects
/// before version 4 have other flags, which have no such setting.
fn target_in(page: &str) -> Result<String, String> {
    let flags = page.lines().find_map(|line| line.trim().strip_prefix("Flags:"));
    let mut words = flags.ok_or_else(|| format!("no flags in:\n{page}"))?.split(", ").skip(1).map(str::trim);
    let processor = words.next().unwrap_or_default().to_owned();
    let mut features: Vec<&str> = words.filter(|word| word.ends_with(['+', '-'])).collect();
    features.sort_unstable();
    Ok([&[processor.as_str()], &features[..]].concat().join(":"))
}
