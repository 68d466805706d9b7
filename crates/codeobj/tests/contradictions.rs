//! Facts of a code object that contradict each other are problems, and name the kernel's parts.
//!
//! Each case changes a few bytes of a real code object.

mod support;

use codeobj::{CodeObject, ErrorKind};

const SMALL: &str = "code-objects/vector_add.gfx942.hsaco";
const QUOTED: &str = "code-objects/quoted.gfx942.co";

fn parse(bytes: &[u8]) -> CodeObject {
    CodeObject::parse(bytes).unwrap_or_else(|error| panic!("{error}"))
}

fn find(bytes: &[u8], what: &[u8]) -> usize {
    memchr::memmem::find(bytes, what).expect("the bytes to change")
}

#[test]
fn descriptor_and_metadata_that_differ_are_a_problem() {
    let bytes = support::bytes(SMALL);
    let descriptor = parse(&bytes).kernels[0].descriptor.clone().expect("descriptor").file_range.start;
    let changes = [(0, 16, ".group_segment_fixed_size"), (4, 8, ".private_segment_fixed_size"), (48, 0, ".vgpr_count")];
    for (offset, value, key) in changes {
        let mut changed = bytes.clone();
        changed[descriptor + offset] = value;
        let problems = &parse(&changed).kernels[0].problems;
        assert!(problems.len() == 1 && problems[0].contains(key), "{key}: {problems:?}");
    }
}

#[test]
fn header_and_metadata_targets_that_differ_are_a_problem() {
    let mut bytes = support::bytes(SMALL);
    bytes[48] = 0x4f; // EF_AMDGPU_MACH_AMDGCN_GFX950
    let object = parse(&bytes);
    assert_eq!(object.target.processor.as_deref(), Some("gfx950"));
    assert_eq!(object.problems, ["the ELF header says gfx950, amdhsa.target says gfx942"]);
}

#[test]
fn an_unknown_processor_number_leaves_the_metadata_to_name_it() {
    let mut bytes = support::bytes(SMALL);
    bytes[48] = 0xee;
    let object = parse(&bytes);
    assert_eq!(object.target.short(), "gfx942");
    let contradiction = "processor number 0xee in e_flags is unknown; amdhsa.target says gfx942, which is number 0x4c";
    assert_eq!(object.problems, [contradiction]);
    let named = find(&bytes, b"-gfx942") + 1;
    bytes[named..named + 6].copy_from_slice(b"gfx9zz");
    assert_eq!(parse(&bytes).problems, [""; 0], "newer than this crate's table");
    let at = find(&bytes, b"amdhsa.target");
    bytes[at] = b'x';
    let object = parse(&bytes);
    assert_eq!(object.target.processor, None);
    assert!(object.problems[0].contains("0xee"), "{:?}", object.problems);
}

#[test]
fn a_code_object_version_that_is_not_known_is_a_problem() {
    let mut bytes = support::bytes(SMALL);
    for (abi_version, problems) in
        [(4, &[][..]), (5, &["unknown code object version 7: its flags may mean something else"])]
    {
        bytes[8] = abi_version;
        assert_eq!(parse(&bytes).problems, problems);
    }
}

/// The loader finds the note through `PT_NOTE`, tools find it through the section.
#[test]
fn a_section_and_a_segment_with_different_notes_are_a_problem() {
    let original = support::bytes(SMALL);
    let note = parse(&original).sections.iter().find(|s| s.name == ".note").expect("note").file_range.clone();
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes")) as usize;
    let (segments, count) = (number(&original, 32), usize::from(original[56]));
    let is_note = |at: &usize| original[*at..*at + 4] == 4u32.to_le_bytes();
    let segment = (0..count).map(|index| segments + index * 56).find(is_note).expect("PT_NOTE");

    // The segment shows another note, behind the file's end.
    let mut bytes = original.clone();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let moved = bytes.len();
    bytes.extend_from_within(note.clone());
    bytes[segment + 8..segment + 16].copy_from_slice(&(moved as u64).to_le_bytes());
    assert_eq!(parse(&bytes).problems, [""; 0], "a copy is the same");
    let name = find(&bytes[moved..], b".vgpr_count") + moved;
    bytes[name + 11] += 1;
    let object = parse(&bytes);
    assert!(object.problems.len() == 1 && object.problems[0].contains("PT_NOTE"), "{:?}", object.problems);

    // One that cannot be read is no error: the section can.
    bytes[moved..moved + 4].fill(0xff);
    let problems = parse(&bytes).problems;
    assert!(problems.len() == 1 && problems[0].contains("damaged note"), "{problems:?}");
}

#[test]
fn an_entry_without_its_descriptor_and_the_descriptor_without_entry_are_problems() {
    let mut bytes = support::bytes(SMALL);
    let at = find(&bytes, b"vector_add.kd");
    bytes[at] = b'V';
    let object = parse(&bytes);
    assert_eq!(object.problems, ["descriptor `vector_add.kd` has no metadata entry"]);
    assert_eq!(object.kernels[0].problems, ["there is no symbol `Vector_add.kd` for its descriptor"]);
    assert!(object.kernels[0].descriptor.is_err() && object.kernels[0].code.is_err());
}

#[test]
fn an_entry_outside_code_is_a_problem() {
    let mut bytes = support::bytes(SMALL);
    let descriptor = parse(&bytes).kernels[0].descriptor.clone().expect("descriptor").file_range.start;
    bytes[descriptor + 23] = 0x7f;
    let kernel = &parse(&bytes).kernels[0];
    assert!(kernel.code.is_err());
    assert!(kernel.problems[0].contains("no executable section"), "{:?}", kernel.problems);
}

#[test]
fn a_body_without_size_runs_to_the_next_function() {
    let mut bytes = support::bytes(QUOTED);
    let before = parse(&bytes);
    for section in before.sections.iter().filter(|s| [".symtab", ".dynsym"].contains(&&*s.name)) {
        for symbol in section.file_range.clone().step_by(24) {
            if bytes[symbol + 4] & 0xf == 2 {
                bytes[symbol + 16..symbol + 24].fill(0); // st_size of an STT_FUNC
            }
        }
    }
    let after = parse(&bytes);
    let text = before.sections.iter().find(|s| s.name == ".text").expect("code").file_range.clone();
    let mut starts: Vec<usize> =
        after.kernels.iter().map(|k| k.code.as_ref().expect("code").file_range.start).collect();
    starts.extend(after.functions.iter().map(|function| function.code.file_range.start));
    starts.sort_unstable();
    for (before, after) in before.kernels.iter().zip(&after.kernels) {
        let (sized, unsized_) = (before.code.as_ref().expect("code"), after.code.as_ref().expect("code"));
        assert_eq!(sized.file_range.start, unsized_.file_range.start);
        assert!(sized.file_range.len() <= unsized_.file_range.len());
        let next = starts.iter().find(|start| **start > unsized_.file_range.start).copied();
        assert_eq!(unsized_.file_range.end, next.unwrap_or(text.end), "{}", after.name);
    }
}

#[test]
fn device_functions_are_listed_apart_from_kernels() {
    let object = parse(&support::bytes("code-objects/ind.gfx1250.o"));
    let functions: Vec<&str> = object.functions.iter().map(|function| &*function.name).collect();
    // clang keeps an OpenCL kernel's body in a function of its own.
    let bodies =
        ["indirect_call", "direct_call", "external_call"].map(|kernel| format!("__clang_ocl_kern_imp_{kernel}"));
    assert_eq!(functions[..2], ["f0", "f1"]);
    assert_eq!(functions[2..], bodies);
    let kernels: Vec<&str> = object.kernels.iter().map(|kernel| &*kernel.name).collect();
    assert_eq!(kernels, ["indirect_call", "direct_call", "external_call"]);
    assert!(object.kernels.iter().all(|kernel| kernel.code.is_ok()));
}

#[test]
fn code_object_v2_is_refused_with_the_way_out() {
    let mut bytes = support::bytes(SMALL);
    let owner = find(&bytes, b"AMDGPU\0");
    let size = u32::from_le_bytes(bytes[owner - 8..owner - 4].try_into().expect("4 bytes"));
    bytes[owner - 12..owner - 8].copy_from_slice(&4u32.to_le_bytes());
    bytes[owner - 8..owner - 4].copy_from_slice(&(size + 4).to_le_bytes());
    bytes[owner - 4..owner].copy_from_slice(&10u32.to_le_bytes());
    bytes[owner + 3] = 0;
    let error = CodeObject::parse(&bytes).expect_err("v2");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.message.contains("code object v2") && error.message.contains("rebuild"), "{error}");
}

#[test]
fn a_code_object_without_metadata_has_no_kernels_and_says_which_it_missed() {
    let mut bytes = support::bytes(SMALL);
    let owner = find(&bytes, b"AMDGPU\0");
    bytes[owner] = b'X';
    let object = parse(&bytes);
    assert!(object.metadata.is_none() && object.kernels.is_empty());
    assert_eq!(object.problems, ["descriptor `vector_add.kd` has no metadata entry"]);
}
