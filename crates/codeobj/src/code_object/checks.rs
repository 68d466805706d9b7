//! Facts that a code object records twice, in the descriptor and in the metadata.
//!
//! Each comparison holds for every kernel of 175 real code objects (compiled, hand-tuned, from a shipped library).
//! Two more would not, and are left out: `.sgpr_count` may exceed the descriptor's allocation (a hand-tuned gfx942
//! kernel: 96 against 80), and a descriptor's `kernarg_size` of 0 only says "not recorded" (78 kernels).

use super::Kernel;
use crate::descriptor::{Descriptor, Family};
use crate::metadata::KernelMetadata;
use crate::target::TargetId;

/// Adds a problem to each kernel whose two records differ.
pub(super) fn compare(target: &TargetId, kernels: &mut [Kernel]) {
    let family = target.processor.as_deref().and_then(Family::of);
    for kernel in kernels {
        if let Ok(placed) = &kernel.descriptor {
            let differences = differences(&kernel.metadata, &placed.descriptor, family);
            kernel.problems.extend(differences);
        }
    }
}

fn differences(metadata: &KernelMetadata, descriptor: &Descriptor, family: Option<Family>) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |key: &str, said: Option<u64>, recorded: u64| {
        if let Some(said) = said.filter(|said| *said != recorded) {
            found.push(format!("`{key}` is {said} in the metadata and {recorded} in the descriptor"));
        }
    };
    let lds = descriptor.group_segment_fixed_size();
    compare(".group_segment_fixed_size", metadata.group_segment_fixed_size.value(), lds.into());
    let scratch = descriptor.private_segment_fixed_size();
    compare(".private_segment_fixed_size", metadata.private_segment_fixed_size.value(), scratch.into());
    if descriptor.kernarg_size() != 0 {
        compare(".kernarg_segment_size", metadata.kernarg_segment_size.value(), descriptor.kernarg_size().into());
    }
    let Some(family) = family else { return found };
    let wave32 = family.has_wave32() && descriptor.wavefront_size32();
    compare(".wavefront_size", metadata.wavefront_size.value(), if wave32 { 32 } else { 64 });
    let allocated = u64::from(descriptor.allocated_vgprs(family, wave32));
    if let Some(used) = metadata.vgpr_count.value().filter(|used| *used > allocated) {
        found.push(format!(
            "`.vgpr_count` is {used} in the metadata, more than the {allocated} that the descriptor allocates"
        ));
    }
    found
}
