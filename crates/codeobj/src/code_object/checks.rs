//! Facts that a code object records twice, in the descriptor and in the metadata.

use super::Kernel;
use crate::descriptor::Family;
use crate::metadata::Count;
use crate::target::TargetId;

/// Adds a problem to each kernel whose two records differ.
pub(super) fn compare(target: &TargetId, kernels: &mut [Kernel]) {
    let family = target.processor.as_deref().and_then(Family::of);
    for kernel in kernels {
        let Ok(placed) = &kernel.descriptor else { continue };
        let descriptor = &placed.descriptor;
        let metadata = &kernel.metadata;
        let mut equal = |key: &str, said: &Count, recorded: u64| {
            if let Some(said) = said.value().filter(|said| *said != recorded) {
                kernel.problems.push(format!("metadata says {key} {said}, the descriptor {recorded}"));
            }
        };
        equal(
            ".group_segment_fixed_size",
            &metadata.group_segment_fixed_size,
            descriptor.group_segment_fixed_size().into(),
        );
        equal(
            ".private_segment_fixed_size",
            &metadata.private_segment_fixed_size,
            descriptor.private_segment_fixed_size().into(),
        );
        equal("K.kernarg_segment_size", &metadata.kernarg_segment_size, descriptor.kernarg_size().into());
        if let Some(family) = family {
            let has_wave32 = !matches!(family, Family::Gfx6To8 | Family::Gfx9 | Family::Gfx90a);
            let wave32 = descriptor.wavefront_size32();
            if has_wave32 {
                equal(".wavefront_size", &metadata.wavefront_size, if wave32 { 32 } else { 64 });
            }
            let allocated = u64::from(descriptor.allocated_vgprs(family, wave32));
            if let Some(used) = metadata.vgpr_count.value().filter(|used| *used > allocated) {
                kernel.problems.push(format!("V.vgpr_count is {used}, the descriptor allocates {allocated} VGPRs"));
            }
            if let (Some(a), Some(used)) = (descriptor.allocated_sgprs(family), metadata.sgpr_count.value()) {
                if used > u64::from(a) {
                    kernel.problems.push(format!("S.sgpr_count is {used}, the descriptor allocates {a} SGPRs"));
                }
            }
        }
    }
}
