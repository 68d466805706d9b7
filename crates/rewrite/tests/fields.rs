//! Descriptor fields and metadata counts change alone, and LLVM reads what was written.

mod support;

use codeobj::{CodeObject, Kernel};
use rewrite::fields::{self, Allocation};
use rewrite::{ErrorKind, metadata};
use support::relink::loadable;

const OBJECT: &str = "code-objects/topksoftmax_4x128x4.gfx942.co";

fn first_kernel(bytes: &[u8]) -> Kernel {
    CodeObject::parse(bytes).expect("a code object").kernels.swap_remove(0)
}

#[test]
fn a_descriptor_field_changes_alone() {
    let old = support::bytes(OBJECT);
    let kernel = first_kernel(&old);
    let new = fields::set(&old, &kernel.name, ".amdhsa_group_segment_fixed_size", 0x1234_5678).expect("a field");
    let differing: Vec<usize> = (0..old.len()).filter(|at| old[*at] != new[*at]).collect();
    let at = kernel.descriptor.expect("a descriptor").file_range.start;
    assert!(!differing.is_empty() && differing.iter().all(|byte| (at..at + 4).contains(byte)), "{differing:?}");
    let new = fields::set(&old, &kernel.name, "accum_offset", 132).expect("a field");
    let placed = first_kernel(&new).descriptor.expect("a descriptor");
    assert_eq!(placed.descriptor.accum_offset(codeobj::descriptor::Family::Gfx90a), Some(132));
}

#[test]
fn what_a_field_cannot_hold_is_refused() {
    let old = support::bytes(OBJECT);
    let name = first_kernel(&old).name;
    let kind = |field: &str, value| fields::set(&old, &name, field, value).expect_err("refused").kind;
    assert_eq!(kind("accum_offset", 130), ErrorKind::NoRoom);
    assert_eq!(kind("accum_offset", 260), ErrorKind::NoRoom);
    assert_eq!(kind("next_free_vgpr", 513), ErrorKind::NoRoom);
    assert_eq!(kind("priority", 4), ErrorKind::NoRoom);
    assert_eq!(kind("wavefront_size32", 1), ErrorKind::NotFound);
    assert_eq!(fields::set(&old, "other", "priority", 1).expect_err("refused").kind, ErrorKind::NotFound);
}

#[test]
fn a_raised_allocation_is_in_descriptor_and_metadata_and_says_what_it_costs() {
    let Some(llvm) = support::llvm() else { return };
    let old = support::bytes(OBJECT);
    let kernel = first_kernel(&old);
    let wanted = Allocation { vgprs: 129, agprs: 12, sgprs: 102, lds_bytes: 40_000 };
    let raised = fields::raise_allocation(&llvm, &old, &kernel.name, wanted).expect("raised");
    let new = first_kernel(&raised.grown.code_object);
    let descriptor = new.descriptor.expect("a descriptor").descriptor;
    let family = codeobj::descriptor::Family::Gfx90a;
    assert_eq!(descriptor.accum_offset(family), Some(132));
    assert_eq!(descriptor.allocated_vgprs(family, false), 144);
    assert_eq!(descriptor.allocated_sgprs(family), Some(112), "it had them");
    assert_eq!(descriptor.group_segment_fixed_size(), 40_000);
    assert_eq!(new.metadata.vgpr_count.value(), Some(144));
    assert_eq!(new.metadata.sgpr_count.value(), Some(112));
    assert_eq!(new.metadata.group_segment_fixed_size.value(), Some(40_000));
    let (before, after) = raised.occupancy.expect("a modelled processor");
    assert!(after.waves < before.waves, "{before:?} {after:?}");
    assert_eq!((after.by_vgprs, after.by_sgprs), (3, 7));
    assert!(raised.changes.iter().any(|change| change.starts_with(".amdhsa_accum_offset")), "{:?}", raised.changes);
    let again = fields::raise_allocation(&llvm, &raised.grown.code_object, &kernel.name, wanted).expect("raised");
    assert_eq!((again.grown.code_object, again.changes), (raised.grown.code_object, Vec::new()));
}

/// For each object, one count is made longer again and again until the note's padding is used up.
#[test]
fn a_note_that_outgrows_its_padding_moves_what_is_behind_it() {
    let Some(llvm) = support::llvm() else { return };
    let (mut moved, mut refused) = (0, 0);
    for (name, bytes) in support::objects() {
        let object = CodeObject::parse(&bytes).expect("a code object");
        let Some(kernel) = object.kernels.first().filter(|kernel| !kernel.name.is_empty()) else { continue };
        let counts: Vec<(&str, u64)> = [".vgpr_count", ".sgpr_count", ".kernarg_segment_size"]
            .into_iter()
            .map(|key| (key, 0x1_0000_0000))
            .collect();
        let grown = match metadata::set_counts(&llvm, &bytes, &kernel.name, &counts) {
            Ok(grown) => grown.code_object,
            Err(error) if error.kind == ErrorKind::Unsupported => {
                eprintln!("{name}: {error}");
                refused += 1;
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let new = CodeObject::parse(&grown).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(new.kernels[0].metadata.vgpr_count.value(), Some(0x1_0000_0000), "{name}");
        assert_eq!(new.kernels.len(), object.kernels.len(), "{name}");
        assert!(loadable(&grown) != loadable(&bytes), "{name}");
        moved += 1;
        // And back: the layout is the one that it was.
        let counts = [
            (".vgpr_count", kernel.metadata.vgpr_count.value()),
            (".sgpr_count", kernel.metadata.sgpr_count.value()),
            (".kernarg_segment_size", kernel.metadata.kernarg_segment_size.value()),
        ];
        let counts: Vec<(&str, u64)> = counts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        let back = metadata::set_counts(&llvm, &grown, &kernel.name, &counts).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(loadable(&back.code_object) == loadable(&bytes), "{name}: not the original again");
    }
    eprintln!("{moved} notes grew and shrank again, {refused} refused");
    assert!(moved > 8);
}
