//! Every code object of `tests/data`, and of `COAX_CORPUS=FOLDER`, taken apart and put together; the texts in between are
//! given to LLVM's own assembler.

#[path = "corpus/files.rs"]
#[allow(dead_code, reason = "the corpus test uses the rest")]
mod files;
#[path = "harness/process.rs"]
mod process;
#[path = "harness/requirements.rs"]
mod requirements;

use codeobj::CodeObject;
use codeobj::code_object::ObjectKind;
use files::Object;
use libtest_mimic::{Arguments, Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut roots = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")];
    roots.extend(std::env::var_os("COAX_CORPUS").map(PathBuf::from));
    let mut trials = Vec::new();
    for root in roots {
        let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut add = |test: &str, need: &'static str, check: fn(&Path) -> Result<(), Failed>| {
            let root = root.clone();
            let missing = requirements::missing(need).unwrap_or_else(Some);
            let ignored = missing.is_some() && !requirements::is_required(need);
            let kind = missing.clone().unwrap_or_default();
            let run = move || missing.map_or_else(|| check(&root), |reason| Err(reason.into()));
            trials.push(Trial::test(format!("{name}::{test}"), run).with_kind(kind).with_ignored_flag(ignored));
        };
        add("all_code_objects_come_back", "llvm", all_come_back);
        add("longer_texts_fit_with_room", "llvm", texts_grow);
        add("texts_are_plain_and_llvm_mc_makes_the_same_code_of_them", "llvm-tools", llvm_mc_agrees);
    }
    let missing = requirements::missing("llvm").unwrap_or_else(Some);
    let ignored = missing.is_some() && !requirements::is_required("llvm");
    let kind = missing.clone().unwrap_or_default();
    let run = move || missing.map_or_else(cache_is_harmless, |reason| Err(reason.into()));
    let name = "a_cache_changes_no_answer_whatever_is_in_it";
    trials.push(Trial::test(name, run).with_kind(kind).with_ignored_flag(ignored));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What was printed with no cache is printed with an empty one, a full one, and one that is damaged, which the next run
/// makes whole.
fn cache_is_harmless() -> Result<(), Failed> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    let written = folder.path().join("k.s");
    let run = |cache: &Path, command: &[&str]| {
        let line: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
        let outcome = process::run_coax(&line, &data, &[("COAX_CACHE".into(), cache.display().to_string())])?;
        Ok::<_, Failed>((outcome.exit, outcome.stdout, outcome.stderr, fs::read(&written).unwrap_or_default()))
    };
    let off = Path::new("off");
    let output = written.display().to_string();
    let small = ["disasm", "clang/gfx942/k.co", "-o", &output, "--force"];
    for command in [&["roundtrip", "clang", "code-objects"][..], &small] {
        let plain = run(off, command)?;
        if plain.0 != 0 {
            return Err(format!("{command:?} fails").into());
        }
        for state in ["empty", "full"] {
            if run(&cache, command)? != plain {
                return Err(format!("{command:?} differs with a cache that is {state}").into());
            }
        }
    }
    if data.join("off").exists() {
        return Err("`off` was taken for a folder".into());
    }
    let only = folder.path().join("only");
    let plain = run(&only, &small)?;
    let files: Vec<PathBuf> = only.read_dir()?.flatten().map(|entry| entry.path()).collect();
    let [file] = &files[..] else { return Err(format!("{} files in the cache", files.len()).into()) };
    let whole = fs::read(file)?;
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        bytes
    };
    let places = (0..whole.len()).step_by(whole.len() / 12);
    let cuts = [0, 40, whole.len() / 2, whole.len() - 1].map(|len| whole[..len].to_vec());
    for (i, damaged) in places.map(flipped).chain(cuts).enumerate() {
        fs::write(file, damaged)?;
        if run(&only, &small)? != plain {
            return Err(format!("damage {i} to the cache changes the answer").into());
        }
        if fs::read(file)?.len() != whole.len() {
            return Err(format!("after damage {i} the cache is not whole again").into());
        }
    }
    Ok(())
}

fn all_come_back(root: &Path) -> Result<(), Failed> {
    let objects = files::objects(root)?.len();
    let line = ["roundtrip".to_owned(), root.display().to_string()];
    let outcome = process::run_coax(&line, root, &[])?;
    let text = String::from_utf8_lossy(&outcome.stdout);
    let verdict = format!("BYTE-IDENTICAL: {objects} of {objects} code objects are byte-identical");
    match outcome.exit == 0 && text.lines().last() == Some(&verdict) {
        true => Ok(()),
        false => Err(format!("exit {}\n{text}{}", outcome.exit, String::from_utf8_lossy(&outcome.stderr)).into()),
    }
}

/// For each linked object: no `.long` where LLVM knows all instructions, descriptors and metadata as directives, and the
/// code that `llvm-mc` makes is the original's but for bits that a hint names.
fn llvm_mc_agrees(root: &Path) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let mut compared = 0;
    let mut words = 0;
    for object in files::objects(root)? {
        let parsed = CodeObject::parse(&object.bytes).map_err(|error| error.to_string())?;
        let name = format!("{}!{}", object.file.display(), object.member);
        let Some(processor) = parsed.target.processor.clone() else { continue };
        let text = disassembled(&object)?;
        let long = text.lines().filter(|line| line.trim_start().starts_with(".long")).count();
        words += long;
        if long > 0 && !processor.starts_with("gfx125") {
            wrong.push(format!("{name}: {long} .long"));
        }
        let directives = text.matches("\n\t.amdhsa_kernel ").count();
        if directives != parsed.kernels.len() || !text.contains("\n\t.amdgpu_metadata") {
            wrong.push(format!("{name}: {directives} of {} descriptors are directives", parsed.kernels.len()));
        }
        let (assembled, hints) = (llvm_mc(&text, &parsed)?, text.matches(";@bits").count());
        compared += 1;
        for section in parsed.sections.iter().filter(|section| section.is_executable()) {
            let own = &object.bytes[section.file_range.clone()];
            let other = CodeObject::parse(&assembled).map_err(|error| format!("{name}: {error}"))?;
            let Some(other) = other.sections.iter().find(|other| other.name == section.name) else { continue };
            let other = &assembled[other.file_range.clone()];
            let differing = own.chunks(4).zip(other.chunks(4)).filter(|(own, other)| own != other).count();
            if own.len() != other.len() || (hints == 0 && differing > 0) || differing > 5 * hints {
                let sizes = format!("{} and {} bytes", own.len(), other.len());
                wrong.push(format!("{name}: {}: {differing} words differ, {hints} hints, {sizes}", section.name));
            }
        }
    }
    println!("compared {compared}, {words} .long");
    match (compared, wrong.is_empty()) {
        (0, _) => Err("nothing was compared".into()),
        (_, true) => Ok(()),
        _ => Err(wrong.join("\n").into()),
    }
}

/// Bytes that are added in front of the first `s_endpgm`, and refused before and accepted with `--grow`.
const GROWTH: [usize; 2] = [4, 4096];

/// For each linked object: grown, it has the code of the text that it was grown to, but for computed addresses and the padding
/// in front of entries, which growth uses up; and it is refused only where a branch or the program counter says why.
fn texts_grow(root: &Path) -> Result<(), Failed> {
    let (mut wrong, mut grown, mut refused) = (Vec::new(), 0, 0);
    for object in files::objects(root)? {
        let parsed = CodeObject::parse(&object.bytes).map_err(|error| error.to_string())?;
        let text = disassembled(&object)?;
        let lines: Vec<&str> = text.lines().collect();
        let end = lines.iter().position(|line| line.trim_start().starts_with("s_endpgm"));
        let (ObjectKind::Dynamic, Some(end)) = (parsed.kind, end) else { continue };
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("ref.co"), &object.bytes)?;
        for bytes in GROWTH {
            let added = vec!["\ts_nop 1"; bytes / 4];
            fs::write(folder.path().join("new.s"), [&lines[..end], &added, &lines[end..], &[""]].concat().join("\n"))?;
            let run = |line: &str| {
                let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
                process::run_coax(&words, folder.path(), &[])
            };
            let patch = run("patch ref.co new.s -o new.co --grow")?;
            let said = String::from_utf8_lossy(&patch.stderr).into_owned();
            let compared = run("cmp new.co new.s")?;
            let compared = String::from_utf8_lossy(&compared.stdout).into_owned();
            let differing = compared.lines().filter(|line| line.starts_with("  - ") || line.starts_with("  + "));
            let same = differing.clone().all(|line| {
                ["s_add_", "s_addc_", "s_sub", "s_nop 0", "... and "].iter().any(|add| line[4..].starts_with(add))
            });
            match patch.exit {
                0 if same => grown += 1,
                1 => refused += 1,
                2 if text.contains("s_getpc") || text.contains("s_get_pc") || said.contains("a branch reaches") => {
                    refused += 1
                }
                exit => {
                    wrong.push(format!(
                        "{}!{}: {bytes}: exit {exit}\n{said}{compared}",
                        object.file.display(),
                        object.member
                    ));
                }
            }
        }
    }
    println!("{grown} grown, {refused} refused");
    match (grown, wrong.is_empty()) {
        (0, _) => Err("nothing grew".into()),
        (_, true) => Ok(()),
        _ => Err(wrong.join("\n").into()),
    }
}

fn disassembled(object: &Object) -> Result<String, Failed> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("ref.co"), &object.bytes)?;
    let line = ["disasm", "ref.co", "-o", "ref.s"].map(str::to_owned);
    let outcome = process::run_coax(&line, folder.path(), &[])?;
    if outcome.exit != 0 {
        let said = String::from_utf8_lossy(&outcome.stderr).into_owned();
        return Err(format!("{}: exit {}\n{said}", object.file.display(), outcome.exit).into());
    }
    Ok(fs::read_to_string(folder.path().join("ref.s"))?)
}

/// The object that `llvm-mc` makes of a text.
fn llvm_mc(text: &str, object: &CodeObject) -> Result<Vec<u8>, Failed> {
    let folder = tempfile::tempdir()?;
    let [input, output] = ["in.s", "out.o"].map(|name| folder.path().join(name));
    fs::write(&input, text)?;
    let processor = object.target.processor.as_deref().unwrap_or_default();
    let mut features: Vec<String> = object
        .target
        .features
        .iter()
        .map(|feature| {
            let (name, sign) = feature.split_at(feature.len() - 1);
            format!("{sign}{name}")
        })
        .collect();
    let wave64 = text.contains(".amdhsa_wavefront_size32 0");
    features.extend(wave64.then(|| "+wavefrontsize64".to_owned()));
    let run = Command::new("llvm-mc-22")
        .args(["-triple=amdgcn-amd-amdhsa", "-filetype=obj", &format!("-mcpu={processor}")])
        .arg(format!("-mattr={}", features.join(",")))
        .arg(&input)
        .arg("-o")
        .arg(&output)
        .output()?;
    match run.status.success() {
        true => Ok(fs::read(output)?),
        false => Err(String::from_utf8_lossy(&run.stderr).lines().take(20).collect::<Vec<_>>().join("\n").into()),
    }
}
