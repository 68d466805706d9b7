//! Why two kernels differ in waves, in one sentence.

use isa::occupancy::{Resource, Usage};

use super::Occupancy;

const WORK_GROUP_SIZE: &str = "work-group size";

/// `occupancy 2 -> 1 waves per SIMD: vgpr 256->260 (limit for 2 is 256)`; none when the waves are the same.
pub fn crossing(before: &Occupancy, after: &Occupancy) -> Option<String> {
    let waves = (before.waves(), after.waves());
    if waves.0 == waves.1 {
        return None;
    }
    let more = waves.0.max(waves.1);
    // What keeps the lower side from having as many as the other.
    let lower = if waves.0 < waves.1 { before } else { after };
    let mut reasons: Vec<String> =
        Resource::ALL.into_iter().filter_map(|resource| reason(resource, before, after, lower, more)).collect();
    let (a, b) = (&before.usage, &after.usage);
    if a.wave_size != b.wave_size {
        reasons.push(format!("wave size {}->{}", a.wave_size, b.wave_size));
    }
    if before.unit() != after.unit() {
        reasons.push(format!("{} mode->{} mode", before.unit(), after.unit()));
    }
    // LDS and registers bound whole work-groups: their size may be all that changed.
    let (most, other) = (a.work_items.end(), b.work_items.end());
    if most != other && !reasons.iter().any(|reason| reason.contains("->")) {
        reasons.push(format!("{WORK_GROUP_SIZE} {most}->{other}"));
    }
    Some(format!("occupancy {} -> {} waves per SIMD: {}", waves.0, waves.1, reasons.join(", ")))
}

/// What a resource has to do with it, if the lower side cannot have `more` waves because of it.
fn reason(resource: Resource, before: &Occupancy, after: &Occupancy, lower: &Occupancy, more: u32) -> Option<String> {
    let (limits, usage) = (lower.limits, &lower.usage);
    let bounds = limits.occupancy(usage);
    let without_lds = limits.occupancy(&Usage { lds_bytes: 0, ..usage.clone() }).by_work_groups;
    let bound = match resource {
        Resource::Vgprs => bounds.by_vgprs,
        Resource::Sgprs => bounds.by_sgprs,
        Resource::LdsBytes if without_lds >= more => bounds.by_work_groups,
        Resource::LdsBytes => return None,
        Resource::WorkGroups => without_lds,
    };
    if bound >= more {
        return None;
    }
    let name = match resource {
        Resource::Vgprs if lower.used_vgprs.is_some() => "allocated VGPRs",
        Resource::Vgprs => "vgpr",
        Resource::Sgprs => "sgpr",
        Resource::LdsBytes if lower.dynamic_lds_bytes == 0 => "lds_static_bytes",
        Resource::LdsBytes => "static and dynamic LDS",
        Resource::WorkGroups => WORK_GROUP_SIZE,
    };
    let figures = (limits.figure(resource, &before.usage), limits.figure(resource, &after.usage));
    let moved = if figures.0 == figures.1 { figures.0.to_string() } else { format!("{}->{}", figures.0, figures.1) };
    let limit = limits.most(resource, usage, more).map(|most| format!(" (limit for {more} is {most})"));
    Some(format!("{name} {moved}{}", limit.unwrap_or_default()))
}
