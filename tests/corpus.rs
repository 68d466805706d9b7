//! What coax says about real files is held against others: LLVM's tools for binaries, a plain line count for texts, and
//! each text against the binary made of it.
//!
//! The files are those of `tests/data`. `COAX_CORPUS=FOLDER` adds every file below FOLDER, of which nothing else is known.

#[path = "corpus/coax.rs"]
mod coax;
#[path = "corpus/files.rs"]
mod files;
#[path = "corpus/lines.rs"]
mod lines;
#[path = "harness/process.rs"]
mod process;
#[path = "corpus/readobj.rs"]
mod readobj;
#[path = "harness/requirements.rs"]
mod requirements;

use coax::{Cell, Kernels};
use files::Object;
use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut roots = vec![("data", Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"))];
    roots.extend(std::env::var_os("COAX_CORPUS").map(|folder| ("corpus", PathBuf::from(folder))));
    let mut trials = Vec::new();
    for (name, root) in roots {
        let mut add = |test: &str, need: &str, check: fn(&Path) -> Result<(), Failed>| {
            let root = root.clone();
            trials.push(trial(format!("{name}::{test}"), need, move || check(&root)));
        };
        add("figures_of_binaries_equal_those_of_llvm_readobj", "llvm-tools", figures_equal_readobj);
        add("targets_equal_those_of_llvm_readelf", "llvm-tools", targets_equal_readelf);
        add("containers_hold_what_the_bundler_lists", "offload-bundler", containers_equal_bundler);
        add("what_is_not_a_value_has_a_known_reason", "llvm", reasons_are_known);
        add("instruction_cells_of_texts_equal_a_line_count", "llvm", sites_equal_lines);
        add("a_text_and_the_binary_made_of_it_agree", "llvm", texts_equal_binaries);
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(name: String, need: &str, check: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    let missing = match need {
        "offload-bundler" => readobj::no_bundler(),
        need => requirements::missing(need).unwrap_or_else(Some),
    };
    let ignored = missing.is_some() && !requirements::is_required(need);
    let kind = missing.clone().unwrap_or_default();
    let run = move || missing.map_or_else(check, |reason| Err(reason.into()));
    Trial::test(name, run).with_kind(kind).with_ignored_flag(ignored)
}

/// All differences at once; a corpus that holds nothing to compare proves nothing.
fn conclude(compared: usize, wrong: Vec<String>) -> Result<(), Failed> {
    println!("compared {compared}");
    match (compared, wrong.len()) {
        (0, _) => Err("nothing was compared".into()),
        (_, 0) => Ok(()),
        (_, count) => Err(format!("{count} differences in {compared}:\n{}", wrong.join("\n")).into()),
    }
}

/// Column and the key of the metadata that it is read from.
const FIGURES: [(&str, &str); 7] = [
    ("vgpr", ".vgpr_count"),
    ("agpr", ".agpr_count"),
    ("sgpr", ".sgpr_count"),
    ("vgpr_spill", ".vgpr_spill_count"),
    ("sgpr_spill", ".sgpr_spill_count"),
    ("scratch_bytes", ".private_segment_fixed_size"),
    ("lds_static_bytes", ".group_segment_fixed_size"),
];

fn figures_equal_readobj(root: &Path) -> Result<(), Failed> {
    let objects = files::objects(root)?;
    let notes = readobj::kernels(&objects)?;
    let accum_offsets = readobj::accum_offsets(&objects)?;
    let mut wrong = Vec::new();
    let mut compared = 0;
    for file in files::files_of(&objects) {
        let ours = coax::summarize(&file, &["--metadata-only"])?;
        let of_file: Vec<_> =
            objects.iter().zip(&notes).zip(&accum_offsets).filter(|((object, _), _)| object.file == file).collect();
        let listed: usize = of_file.iter().map(|((_, kernels), _)| kernels.len()).sum();
        if listed != ours.len() {
            wrong.push(format!("{}: coax has {} kernels, readobj {listed}", file.display(), ours.len()));
        }
        for ((object, kernels), accum_offsets) in of_file {
            for theirs in kernels {
                let key = format!("{}::{}", object.member, theirs.name);
                let Some(kernel) = ours.get(&key) else {
                    wrong.push(format!("{}: kernel `{key}` is missing", file.display()));
                    continue;
                };
                let total = theirs.figures.get(".vgpr_count").copied().unwrap_or_default();
                for (column, field) in FIGURES {
                    compared += 1;
                    // Without a count of its own, what the descriptor leaves for accumulators.
                    let left = || Some(total.saturating_sub(*accum_offsets.get(&theirs.name)?));
                    let recorded = theirs.figures.get(field).copied();
                    let expected = recorded.or_else(|| left().or(Some(0)).filter(|_| column == "agpr"));
                    wrong.extend(
                        figure_differs(object, column, expected, &kernel.cells[column])
                            .map(|why| format!("{} {key}: {column}: {why}", file.display())),
                    );
                }
            }
        }
    }
    conclude(compared, wrong)
}

/// How a cell differs from what the file records. What it does not record must not look recorded; Triton records static
/// LDS in a file of its own.
fn figure_differs(object: &Object, column: &str, expected: Option<u64>, cell: &Cell) -> Option<String> {
    let shared = files::triton_shared(&object.file).filter(|_| column == "lds_static_bytes" && expected == Some(0));
    let right = match (expected, cell) {
        (Some(_), Cell::Value(value)) if shared.is_some() => shared == Some(*value),
        (Some(expected), Cell::Value(value)) => expected == *value,
        (None, Cell::NotApplicable(reason)) => reason.starts_with("not recorded"),
        (Some(0), Cell::NotApplicable(reason)) => column == "lds_static_bytes" && reason.contains("Triton"),
        _ => false,
    };
    (!right).then(|| format!("coax has {cell:?}, the file {expected:?}"))
}

fn targets_equal_readelf(root: &Path) -> Result<(), Failed> {
    let objects = files::objects(root)?;
    let targets = readobj::targets(&objects)?;
    let mut wrong = Vec::new();
    for file in files::files_of(&objects) {
        let ours = coax::summarize(&file, &["--metadata-only"])?;
        for (object, target) in objects.iter().zip(&targets).filter(|(object, _)| object.file == file) {
            let prefix = format!("{}::", object.member);
            for (key, kernel) in ours.iter().filter(|(key, _)| key.starts_with(&prefix)) {
                if kernel.target != *target {
                    wrong.push(format!("{} {key}: coax has {}, readelf {target}", file.display(), kernel.target));
                }
            }
        }
    }
    conclude(objects.len(), wrong)
}

fn containers_equal_bundler(root: &Path) -> Result<(), Failed> {
    let objects = files::objects(root)?;
    let mut wrong = Vec::new();
    let mut compared = 0;
    for file in files::files_of(&objects).into_iter().filter(|f| f.extension().is_some_and(|e| e == "hipfb")) {
        let mut ours: Vec<String> =
            objects.iter().filter(|object| object.file == file).map(|object| object.member.clone()).collect();
        let mut theirs = readobj::bundle_entries(&file)?;
        ours.sort();
        theirs.sort();
        compared += 1;
        if ours != theirs {
            wrong.push(format!("{}: coax has {ours:?}, the bundler {theirs:?}", file.display()));
        }
    }
    conclude(compared, wrong)
}

/// Reasons of `n/a`, by their start.
const NOT_APPLICABLE: [&str; 6] = [
    "not recorded: code objects have only the total",
    "not recorded: accum_offset is the arch VGPR count rounded up to 4",
    "not recorded: the metadata has no .vgpr_spill_count",
    "not recorded: the metadata has no .sgpr_spill_count",
    "not recorded: Triton",
    "spills go through buffer_* on this target",
];

fn reasons_are_known(root: &Path) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    let mut compared = 0;
    for (key, kernel) in coax::summarize(root, &[])? {
        for (column, cell) in &kernel.cells {
            compared += 1;
            let (reason, is_known) = match cell {
                Cell::Value(_) => continue,
                Cell::NotApplicable(reason) => {
                    (reason.as_str(), NOT_APPLICABLE.iter().any(|known| reason.starts_with(known)))
                }
                // Hand-written kernels for targets that are newer than LLVM.
                Cell::Unparsed(reason) => {
                    let known = kernel.target.starts_with("gfx1250") && reason.contains("no instructions to LLVM");
                    ("no instructions to LLVM", known && coax::is_instruction_count(column))
                }
            };
            *seen.entry(format!("{column}: {reason}")).or_default() += 1;
            if !is_known {
                wrong.push(format!("{key}: {column}: {cell:?}"));
            }
        }
    }
    seen.iter().for_each(|(reason, count)| println!("{count:5} {reason}"));
    conclude(compared, wrong)
}

fn sites_equal_lines(root: &Path) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for file in files::texts(root)? {
        let text = std::fs::read_to_string(&file)?;
        for (key, kernel) in coax::summarize(&file, &[])? {
            let name = key.strip_prefix("::").unwrap_or(&key);
            let counts = lines::count(&text, name).ok_or_else(|| format!("{}: no body of {key}", file.display()))?;
            for (column, expected) in counts {
                compared += 1;
                match kernel.cells[column] {
                    Cell::Value(value) if value == expected => {}
                    Cell::NotApplicable(_) if column.starts_with("scratch") => {}
                    ref cell => {
                        wrong.push(format!("{}: {key}: {column}: {cell:?}, counted {expected}", file.display()))
                    }
                }
            }
        }
    }
    conclude(compared, wrong)
}

fn texts_equal_binaries(root: &Path) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for file in files::texts(root)? {
        for binary in ["co", "o", "hsaco"].map(|extension| file.with_extension(extension)) {
            if !binary.exists() {
                continue;
            }
            let sides: [Kernels; 2] = [coax::summarize(&file, &[])?, coax::summarize(&binary, &[])?];
            if !sides[0].keys().eq(sides[1].keys()) {
                wrong.push(format!("{}: other kernels than in {}", file.display(), binary.display()));
            }
            for (key, kernel) in &sides[0] {
                for (column, cell) in &kernel.cells {
                    let (Cell::Value(text), Some(Cell::Value(code))) =
                        (cell, sides[1].get(key).and_then(|other| other.cells.get(column)))
                    else {
                        continue;
                    };
                    compared += 1;
                    if text != code {
                        wrong.push(format!("{}: {key}: {column}: text {text}, binary {code}", file.display()));
                    }
                }
            }
        }
    }
    conclude(compared, wrong)
}
