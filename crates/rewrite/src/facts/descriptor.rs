//! A kernel descriptor as `.amdhsa_*` directives.
//!
//! The directives count registers as a compiler does, the descriptor counts granules; on gfx9 LLVM adds SGPRs for VCC,
//! FLAT_SCRATCH and XNACK to `.amdhsa_next_free_sgpr` before it rounds up, of which `.amdhsa_reserve_*` takes back only
//! some. A text that leaves out `.amdhsa_user_sgpr_count` gets as many user SGPRs as its other directives imply, and
//! hand-written kernels have more.

use std::fmt::Write;

use codeobj::TargetId;
use codeobj::descriptor::{Descriptor, FIELDS, Family, Field, SIZE};
use llvm::Toolchain;

use super::{byte_lines, descriptor_name, prologue, section_of};
use crate::disasm::symbols::quoted;
use crate::error::Result;
use crate::object::Object;

/// Where a linker puts the distance to the entry.
pub(crate) const ENTRY_OFFSET: std::ops::Range<usize> = 16..24;

/// SGPRs that have numbers on gfx9; LLVM refuses to count more. It still rounds up to all that are allocated.
const NUMBERED_SGPRS: u64 = 102;

/// Fields that are no directives: the packet processor fills them in, or nothing sets them from a text.
const NOT_DIRECTIVES: &[&str] = &[
    "kernel_code_entry_byte_offset",
    "trap_on_start",
    "trap_on_end",
    "glg_en",
    "enable_dynamic_vgpr",
    "tcp_split",
    "enable_didt_throttle",
    "image_op",
    "priority",
    "priv",
    "debug_mode",
    "disable_perf",
    "bulky",
    "cdbg_user",
    "flat_scratch_is_nv",
    "enable_trap_handler",
    "exception_address_watch",
    "exception_memory",
    "granulated_lds_size",
];

/// Directives whose absence does not mean 0.
const ALWAYS: &[&str] = &[
    "group_segment_fixed_size",
    "private_segment_fixed_size",
    "kernarg_size",
    "user_sgpr_count",
    "system_sgpr_workgroup_id_x",
    "float_denorm_mode_16_64",
    "dx10_clamp",
    "ieee_mode",
    "workgroup_processor_mode",
    "memory_ordered",
    "forward_progress",
    "wavefront_size32",
];

/// The directives of a descriptor, from `.amdhsa_kernel` to `.end_amdhsa_kernel`; none when a field is set that no
/// directive sets.
pub(super) fn block(descriptor: &Descriptor, family: Family, target: &TargetId, kernel: &str) -> Option<String> {
    let mut text = format!("\t.amdhsa_kernel {}\n", quoted(kernel));
    let traits = Traits::of(target, family);
    for (field, value) in descriptor.fields(family) {
        if NOT_DIRECTIVES.contains(&field.name) {
            if value != 0 && field.name != "kernel_code_entry_byte_offset" {
                return None;
            }
            continue;
        }
        for (name, value) in directive(field, value, descriptor, family, &traits)? {
            let _ = writeln!(text, "\t\t.amdhsa_{name} {value}");
        }
    }
    text += "\t.end_amdhsa_kernel\n";
    Some(text)
}

/// What a target decides about the directives.
struct Traits {
    /// FLAT_SCRATCH is set up by the hardware and takes no user SGPRs.
    architected_flat_scratch: bool,
    /// SGPRs that LLVM adds to those counted when VCC and FLAT_SCRATCH are not reserved.
    extra_sgprs: u64,
}

impl Traits {
    fn of(target: &TargetId, family: Family) -> Traits {
        let processor = target.processor.as_deref().unwrap_or_default();
        let isa = isa::Target::new(processor, target.generation().unwrap_or_default());
        // XNACK is on unless the target says otherwise, on processors that have it: all of gfx9, two of gfx8.
        let has_xnack = matches!(family, Family::Gfx9 | Family::Gfx90a) || ["gfx801", "gfx810"].contains(&processor);
        let xnack = has_xnack && !target.features.contains("xnack-");
        Traits { architected_flat_scratch: isa.scratch_instructions, extra_sgprs: isa.extra_sgprs(false, false, xnack) }
    }
}

/// A field as directives: usually one, none when it is as it is without.
fn directive(
    field: &'static Field,
    value: u64,
    descriptor: &Descriptor,
    family: Family,
    traits: &Traits,
) -> Option<Vec<(&'static str, u64)>> {
    let wave32 = family.has_wave32() && descriptor.wavefront_size32();
    Some(match field.name {
        "accum_offset" => vec![("accum_offset", (value + 1) * 4)],
        "granulated_workitem_vgpr_count" => {
            vec![("next_free_vgpr", u64::from(descriptor.allocated_vgprs(family, wave32)))]
        }
        "granulated_wavefront_sgpr_count" => match descriptor.allocated_sgprs(family) {
            // Every wave gets all SGPRs; the directive must be there and changes nothing.
            None => vec![("next_free_sgpr", 1), ("reserve_vcc", 0)],
            Some(allocated) => {
                let used = u64::from(allocated).checked_sub(traits.extra_sgprs)?.min(NUMBERED_SGPRS);
                let flat_scratch = (!traits.architected_flat_scratch).then_some(("reserve_flat_scratch", 0));
                [("next_free_sgpr", used), ("reserve_vcc", 0)].into_iter().chain(flat_scratch).collect()
            }
        },
        "enable_private_segment" if !traits.architected_flat_scratch && value != 0 => {
            vec![("system_sgpr_private_segment_wavefront_offset", value)]
        }
        "named_barrier_count" if value != 0 => vec![("named_barrier_count", value * 4)],
        "wavefront_size32" | "workgroup_processor_mode" if family == Family::Gfx125 && value <= 1 => {
            // Always wave32, always in one mode: LLVM has no directive.
            vec![]
        }
        name if value != 0 || ALWAYS.contains(&name) => vec![(name, value)],
        _ => vec![],
    })
}

/// What LLVM makes of a block of directives; none when it refuses them.
pub(crate) fn assemble(toolchain: &Toolchain, object: &Object<'_>, block: &str) -> Result<Option<[u8; SIZE]>> {
    let source = format!("{}\t.section .rodata,\"a\",@progbits\n\t.p2align 6\n{block}", prologue(object));
    let content = section_of(toolchain, &object.target, &source, ".rodata")?;
    Ok(content.and_then(|content| content.first_chunk().copied()))
}

/// Whether two descriptors are the same but for the entry, which a linker fills in.
pub(crate) fn same(one: &[u8; SIZE], other: &[u8; SIZE]) -> bool {
    one[..ENTRY_OFFSET.start] == other[..ENTRY_OFFSET.start] && one[ENTRY_OFFSET.end..] == other[ENTRY_OFFSET.end..]
}

/// The names of the fields in which two descriptors differ; empty names stand for bits that are no field.
pub(crate) fn differing(one: &[u8; SIZE], other: &[u8; SIZE], family: Option<Family>) -> Vec<(&'static str, u64, u64)> {
    let fields = FIELDS.iter().filter(|field| family.is_none_or(|family| field.exists_on(family)));
    let values = fields.map(|field| (field.name, field.get(one), field.get(other)));
    values.filter(|(name, a, b)| a != b && *name != "kernel_code_entry_byte_offset").collect()
}

/// A descriptor as bytes with its fields in comments.
pub(super) fn as_bytes(descriptor: &Descriptor, family: Option<Family>, kernel: &str) -> String {
    let name = descriptor_name(kernel);
    let bytes = descriptor.bytes();
    let mut text = format!("\t.size {name}, {SIZE}\n{name}:\n");
    for (field, value) in family.into_iter().flat_map(|family| descriptor.fields(family)) {
        if value != 0 {
            let _ = writeln!(text, "\t; {} {value}", field.name);
        }
    }
    text += &byte_lines(&bytes[..ENTRY_OFFSET.start]);
    let _ = writeln!(text, "\t.quad {}-{name}", quoted(kernel));
    text + &byte_lines(&bytes[ENTRY_OFFSET.end..])
}
