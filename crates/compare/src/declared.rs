//! What the two kernels declare: in the metadata, in the descriptor that the hardware reads, and what a driver says of images
//! that only it can read. A faster kernel that takes more LDS, other arguments or another rounding is another kernel.

use codeobj::Kernel;
use codeobj::descriptor::Family;
use codeobj::metadata::{Arg, Count, KernelMetadata};
use gpu::{Device, KernelLimits};

/// Fields of a descriptor that may differ: how many registers there are, how far the code is fetched ahead, and where it begins
/// may change with every edit.
const FREE: [&str; 6] = [
    "kernel_code_entry_byte_offset",
    "accum_offset",
    "shared_vgpr_count",
    "inst_pref_size",
    "granulated_workitem_vgpr_count",
    "granulated_wavefront_sgpr_count",
];

/// What two kernels of code objects declare differently. `processor` is what they are for.
pub fn differences(processor: Option<&str>, reference: &Kernel, test: &Kernel) -> Vec<String> {
    let mut found = in_metadata(&reference.metadata, &test.metadata);
    found.extend(in_descriptor(processor, reference, test));
    // The runtime reads one, the hardware the other; a reference in which they differ has its reasons.
    let own = test.problems.iter().filter(|problem| !reference.problems.contains(problem));
    found.extend(own.map(|problem| format!("the test contradicts itself: {problem}")));
    found
}

fn in_metadata(a: &KernelMetadata, b: &KernelMetadata) -> Vec<String> {
    let counts = [
        (".group_segment_fixed_size", &a.group_segment_fixed_size, &b.group_segment_fixed_size),
        (".private_segment_fixed_size", &a.private_segment_fixed_size, &b.private_segment_fixed_size),
        (".kernarg_segment_size", &a.kernarg_segment_size, &b.kernarg_segment_size),
        (".max_flat_workgroup_size", &a.max_flat_workgroup_size, &b.max_flat_workgroup_size),
        (".wavefront_size", &a.wavefront_size, &b.wavefront_size),
    ];
    let show = |count: &Count| count.value().map_or_else(|| "none".into(), |value| value.to_string());
    let mut found: Vec<String> = counts
        .iter()
        .filter(|(_, a, b)| a != b)
        .map(|(key, a, b)| {
            format!("the metadata differs: {key} is {} in the reference, {} in the test", show(a), show(b))
        })
        .collect();
    if a.reqd_workgroup_size != b.reqd_workgroup_size {
        found.push("the metadata differs: .reqd_workgroup_size".into());
    }
    let place = |arg: &Arg| (arg.offset.clone(), arg.size.clone(), arg.value_kind.clone());
    if a.args.len() != b.args.len() || a.args.iter().zip(&b.args).any(|(a, b)| place(a) != place(b)) {
        found.push(format!(
            "the metadata differs: {} arguments in the reference, {} in the test, or others",
            a.args.len(),
            b.args.len()
        ));
    }
    found
}

fn in_descriptor(processor: Option<&str>, reference: &Kernel, test: &Kernel) -> Vec<String> {
    let (Ok(a), Ok(b)) = (&reference.descriptor, &test.descriptor) else { return Vec::new() };
    let (a, b) = (&a.descriptor, &b.descriptor);
    let Some(family) = processor.and_then(Family::of) else {
        let differs = a.bytes() != b.bytes();
        let what = "the descriptors differ, and which of their fields matter on this processor is not known";
        return differs.then(|| what.to_owned()).into_iter().collect();
    };
    let pairs = a.fields(family).zip(b.fields(family));
    let differing = pairs.filter(|((field, a), (_, b))| a != b && !FREE.contains(&field.name));
    differing
        .map(|((field, a), (_, b))| {
            format!("the descriptor differs: {} is {a} in the reference, {b} in the test", field.name)
        })
        .collect()
}

/// Static LDS, bytes: the larger of what the metadata and the descriptor say.
pub fn static_lds_bytes(kernel: &Kernel) -> u64 {
    let said = kernel.metadata.group_segment_fixed_size.value().unwrap_or_default();
    let allocated = kernel.descriptor.as_ref().map_or(0, |placed| placed.descriptor.group_segment_fixed_size());
    said.max(allocated.into())
}

/// What a driver says of a kernel.
pub struct Declared {
    /// Offset and size of each parameter, where it tells.
    pub parameters: Option<Vec<(u64, u64)>>,
    /// LDS, scratch and the like.
    pub limits: KernelLimits,
}

impl Declared {
    /// Asks the driver.
    pub fn of(device: &dyn Device, kernel: gpu::Kernel) -> gpu::Result<Declared> {
        Ok(Declared { parameters: device.parameters(kernel)?, limits: device.limits(kernel)? })
    }

    /// As [`differences`], for images without metadata.
    pub fn differences(&self, test: &Declared) -> Vec<String> {
        let mut found = Vec::new();
        if self.parameters != test.parameters {
            found.push("the kernels take different arguments, says the driver".to_owned());
        }
        for (what, a, b) in [
            ("static LDS", self.limits.static_lds_bytes, test.limits.static_lds_bytes),
            ("scratch", self.limits.scratch_bytes, test.limits.scratch_bytes),
        ] {
            if a != b {
                found.push(format!("{what} is {a} bytes in the reference, {b} in the test, says the driver"));
            }
        }
        found
    }
}
