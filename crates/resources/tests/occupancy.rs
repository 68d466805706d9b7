//! Waves of kernels that compilers have compiled: our figure against the `; Occupancy:` that LLVM prints beside them.

use resources::binary::{self, Instructions};
use resources::occupancy::{self, Occupancy, Settings};
use resources::text::{self, Origin};
use std::path::{Path, PathBuf};

/// What LLVM prints and we cannot derive, by a part of the path, and why.
const NOT_DERIVED: [(&str, &str); 1] = [("gfx9-4-generic", "not a row of the measured table")];

/// Files below `folder` whose text has the comment.
fn texts(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            texts(&path, found);
        } else if path.extension().is_some_and(|extension| ["s", "amdgcn"].iter().any(|e| extension == *e)) {
            found.push(path);
        }
    }
}

/// Kernel and number of each `; Occupancy: N`; an expression in its place is left out.
fn printed(text: &str) -> Vec<(&str, u32)> {
    let mut kernel = "";
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix(".amdhsa_kernel ") {
            kernel = name.trim().trim_matches('"');
        } else if let Some(waves) = line.strip_prefix("; Occupancy: ").and_then(|waves| waves.parse().ok()) {
            found.push((kernel, waves));
        }
    }
    found
}

/// Compares all below `folder`; gives how many were compared.
fn check(folder: &Path) -> usize {
    let mut files = Vec::new();
    texts(folder, &mut files);
    let (mut compared, mut wrong) = (0, Vec::new());
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        let name = file.display().to_string();
        // Without what Triton writes beside it: LLVM does not know that either.
        let kernels = text::read(text.as_bytes(), &name, Origin::Any).kernels;
        let object = std::fs::read(file.with_extension("co")).or_else(|_| std::fs::read(file.with_extension("hsaco")));
        let binary =
            object.map(|bytes| binary::read(&bytes, &name, Instructions::NotWanted).kernels).unwrap_or_default();
        for (kernel, record) in &binary {
            let text =
                kernels.iter().find(|(name, _)| name == kernel).map(|(_, record)| record).expect("the same kernels");
            let [text, binary] = [text, record].map(|record| Occupancy::of(record, Settings::default()));
            assert_eq!(text.map(|t| t.waves()), binary.map(|b| b.waves()), "{name} and its binary: {kernel}");
        }
        for (kernel, waves) in printed(&text) {
            let record = kernels.iter().find(|(name, _)| name == kernel).map(|(_, record)| record);
            let ours = record.map(|record| Occupancy::of(record, Settings::default()).map(|ours| ours.waves()));
            let excused = NOT_DERIVED.iter().any(|(part, _)| name.contains(part));
            match ours {
                Some(Ok(ours)) if ours == waves && !excused => compared += 1,
                Some(Err(_)) if excused => {}
                ours => wrong.push(format!("{name}: {kernel}: LLVM has {waves}, we {ours:?}")),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    compared
}

#[test]
fn waves_of_compiler_outputs_are_those_that_llvm_prints() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    assert!(check(&data) >= 25);
}

#[test]
fn waves_of_a_whole_corpus_are_those_that_llvm_prints() {
    let Some(corpus) = std::env::var_os("COAX_CORPUS") else {
        return eprintln!("skipped: set COAX_CORPUS to a folder with compiler outputs");
    };
    println!("compared {}", check(Path::new(&corpus)));
}

#[test]
fn registers_that_a_descriptor_gives_beyond_the_used_ones_cost_waves() {
    // As clang 22 compiles amdgpu_waves_per_eu(8, 8): it prints 8 waves for 98 VGPRs, of which 9 waves would fit.
    let metadata =
        with("    .max_flat_workgroup_size: 64\n    .wavefront_size: 32\n").replace("count: 24", "count: 98");
    let metadata = metadata.replace("8192", "0");
    let waves_with = |allocated: u32| {
        let descriptor = format!("\t\t.amdhsa_next_free_vgpr {allocated}\n");
        waves(&record("gfx1250", &descriptor, &metadata), Settings::default())
    };
    assert_eq!((waves_with(98), waves_with(113)), (Ok(9), Ok(8)));
}

/// A text of one kernel, with the lines that the case is about.
fn record(target: &str, descriptor: &str, metadata: &str) -> resources::Record {
    let text = format!(
        "\t.amdgcn_target \"amdgcn-amd-amdhsa--{target}\"\nk:\n\ts_endpgm\n.Lfunc_end0:\n\t.size k, .Lfunc_end0-k\n\
         \t.amdhsa_kernel k\n{descriptor}\t.end_amdhsa_kernel\n\t.amdgpu_metadata\n---\namdhsa.kernels:\n  - .name: k\n\
         \x20   .symbol: k.kd\n{metadata}...\n\t.end_amdgpu_metadata\n"
    );
    let file = text::read(text.as_bytes(), "k.s", Origin::Any);
    assert!(file.problems.is_empty(), "{:?}", file.problems);
    file.kernels.into_iter().next().expect("a kernel").1
}

const FIGURES: &str = "    .vgpr_count: 24\n    .sgpr_count: 16\n    .vgpr_spill_count: 0\n    .sgpr_spill_count: 0\n\
    \x20   .private_segment_fixed_size: 0\n    .group_segment_fixed_size: 8192\n";

fn with(more: &str) -> String {
    format!("{FIGURES}{more}")
}

fn waves(record: &resources::Record, settings: Settings) -> Result<u32, String> {
    Occupancy::of(record, settings).map(|occupancy| occupancy.waves())
}

#[test]
fn what_is_not_recorded_is_not_assumed() {
    let settings = Settings::default();
    let why = |record: &resources::Record| waves(record, settings).expect_err("not known");
    let no_size = record("gfx942", "", &with("    .wavefront_size: 64\n"));
    assert!(why(&no_size).contains(".max_flat_workgroup_size is not recorded"));
    assert_eq!(waves(&no_size, Settings { workgroup_size: Some(256), ..settings }), Ok(8));
    let size = "    .max_flat_workgroup_size: 256\n";
    assert!(why(&record("gfx1100", "", &with(size))).contains(".wavefront_size"));
    let wave32 = format!("{size}    .wavefront_size: 32\n");
    assert!(why(&record("gfx1100", "", &with(&wave32))).contains("work-group processor mode"));
    let mode = "\t\t.amdhsa_workgroup_processor_mode 1\n";
    assert_eq!(waves(&record("gfx1100", mode, &with(&wave32)), settings), Ok(16));
    assert!(why(&record("gfx1103", mode, &with(&wave32))).contains("not modelled"));
    let huge = with("    .max_flat_workgroup_size: 2048\n");
    assert!(why(&record("gfx942", "", &huge)).contains("2048 is no size of a work-group"));
}

#[test]
fn settings_add_to_what_is_recorded_and_never_overrule_it() {
    let kernel = record("gfx942", "", &with("    .max_flat_workgroup_size: 256\n"));
    let given = |workgroup_size, dynamic_lds_bytes| waves(&kernel, Settings { workgroup_size, dynamic_lds_bytes });
    // 8 KiB: 8 work-groups on a compute unit; of one wave each they are 2 waves per SIMD.
    assert_eq!((given(None, 0), given(Some(64), 0), given(None, 8192)), (Ok(8), Ok(2), Ok(4)));
    assert!(given(Some(512), 0).expect_err("too large").contains(".max_flat_workgroup_size 256"));
    assert!(given(None, 60000).expect_err("too large").contains("68192 bytes of LDS are more than the 65536"));
    let required =
        with("    .max_flat_workgroup_size: 64\n    .reqd_workgroup_size:\n      - 8\n      - 8\n      - 1\n");
    let required = record("gfx942", "", &required);
    assert_eq!(waves(&required, Settings { workgroup_size: Some(256), ..Settings::default() }), Ok(2));
}

#[test]
fn a_crossing_names_the_figure_and_its_limit() {
    let kernel = |vgpr: u32| {
        let figures = FIGURES.replace(".vgpr_count: 24", &format!(".vgpr_count: {vgpr}"));
        record("gfx90a", "", &format!("{figures}    .max_flat_workgroup_size: 256\n"))
    };
    let of = |record: &resources::Record| Occupancy::of(record, Settings::default()).expect("known");
    let (before, after) = (of(&kernel(256)), of(&kernel(260)));
    let expected = "occupancy 2 -> 1 waves per SIMD: vgpr 256->260 (limit for 2 is 256)";
    assert_eq!(occupancy::crossing(&before, &after).as_deref(), Some(expected));
    let expected = "occupancy 1 -> 2 waves per SIMD: vgpr 260->256 (limit for 2 is 256)";
    assert_eq!(occupancy::crossing(&after, &before).as_deref(), Some(expected));
    assert_eq!(occupancy::crossing(&before, &of(&kernel(250))), None);
    // 8 KiB of LDS: 8 work-groups, of one wave each 2 waves per SIMD. Only the size of the work-groups moved.
    let size = |size: u32| of(&record("gfx90a", "", &with(&format!("    .max_flat_workgroup_size: {size}\n"))));
    let note = occupancy::crossing(&size(256), &size(64)).expect("a crossing");
    assert!(note.ends_with(", work-group size 256->64"), "{note}");
}

#[test]
fn a_snapshot_keeps_what_a_launch_is_bound_to() {
    let launch = "    .max_flat_workgroup_size: 64\n    .wavefront_size: 32\n    .reqd_workgroup_size:\n      - 8\n      - 4\n      - 2\n";
    let written = record("gfx1100", "\t\t.amdhsa_workgroup_processor_mode 0\n", &with(launch));
    let json = serde_json::to_value(&written).expect("JSON");
    let read = resources::Record::from_json(&json).expect("a record");
    assert_eq!((read.launch.as_ref(), waves(&read, Settings::default())), (written.launch.as_ref(), Ok(8)));
    let mut old = json.clone();
    old.as_object_mut().expect("an object").remove("launch");
    let old = resources::Record::from_json(&old).expect("a record without it");
    assert!(waves(&old, Settings::default()).expect_err("not known").contains("not in the snapshot"));
    let mut wrong = json;
    wrong["launch"]["wavefront_size"] = "32".into();
    assert!(resources::Record::from_json(&wrong).expect_err("wrong").contains("launch.wavefront_size"));
}
