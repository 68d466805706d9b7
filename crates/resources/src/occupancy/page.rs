//! An occupancy in words, for 80 columns.
//!
//! ```text
//!   gfx942, work-groups of 256, 260 VGPRs (132 arch + 128 acc), 65536 bytes of LDS
//!   1 of 8 waves per SIMD, limited by VGPRs and LDS
//!   4 of 32 waves per CU (12.5%): 1 work-group of 256
//!   up    4 VGPRs fewer (256) and 32768 bytes of LDS fewer (32768) -> 2 waves
//!         only all of it together helps
//! ```

use isa::occupancy::{Resource, Step};

use super::{Occupancy, SizeOrigin};

/// The lines of one kernel.
pub fn describe(occupancy: &Occupancy) -> Vec<String> {
    let mut lines = wrapped(&figures(occupancy));
    let steps = occupancy.limits.steps(&occupancy.usage);
    let limited: Vec<&str> = steps.limiters.iter().map(|resource| limiter(*resource)).collect();
    let limited = match limited.as_slice() {
        [] => "the most there can be".to_owned(),
        names => format!("limited by {}", and(names)),
    };
    lines.push(format!("{} of {} waves per SIMD, {limited}", occupancy.waves(), occupancy.limits.max_waves));
    lines.extend(occupancy.sizes().into_iter().map(|size| resident(occupancy, size)));
    lines.extend(trap_handler(occupancy));
    let up: Vec<String> = steps.higher.iter().map(|step| change(step, step.from - step.to, "fewer")).collect();
    match (steps.higher.first(), steps.limiters.as_slice()) {
        (Some(first), _) => {
            let up: Vec<&str> = up.iter().map(String::as_str).collect();
            lines.push(format!("up    {} -> {}", and(&up), waves(first.waves)));
            if up.len() > 1 {
                lines.push("      only all of it together helps".into());
            }
        }
        (None, []) => {}
        (None, _) => lines.push("up    nothing but another size of work-groups".into()),
    }
    for (at, step) in steps.lower.iter().enumerate() {
        let label = if at == 0 { "down" } else { "" };
        lines.push(format!("{label:<6}{} -> {}", change(step, step.to - step.from, "more"), waves(step.waves)));
    }
    lines
}

/// What the kernel takes.
fn figures(occupancy: &Occupancy) -> Vec<String> {
    let usage = &occupancy.usage;
    let limits = occupancy.limits;
    let mut parts = vec![limits.processor.to_owned()];
    if limits.only_wave_size().is_none() {
        parts.push(format!("wave{}", usage.wave_size));
    }
    if limits.has_wgp_mode() {
        parts.push(format!("{} mode", occupancy.unit()));
    }
    let size = usage.work_items.end();
    parts.push(match occupancy.origin {
        SizeOrigin::Required => format!("work-groups of {size} (required)"),
        SizeOrigin::Given => format!("work-groups of {size}"),
        SizeOrigin::UpTo => format!("work-groups up to {size}"),
    });
    let total = limits.figure(Resource::Vgprs, usage);
    parts.push(match usage.agprs {
        0 if occupancy.used_vgprs.is_some() => {
            format!("{total} VGPRs allocated ({} used)", occupancy.used_vgprs.unwrap_or_default())
        }
        0 => count(total, "VGPR"),
        acc => format!("{total} VGPRs ({} arch + {acc} acc)", usage.vgprs),
    });
    if limits.counts_sgprs() && usage.sgprs > 0 {
        parts.push(count(usage.sgprs, "SGPR"));
    }
    match (usage.lds_bytes, occupancy.dynamic_lds_bytes) {
        (0, _) => {}
        (all, 0) => parts.push(format!("{all} bytes of LDS")),
        (all, dynamic) => parts.push(format!("{all} bytes of LDS ({dynamic} dynamic)")),
    }
    parts
}

/// The parts with commas between them, on lines that leave room for an indentation.
fn wrapped(parts: &[String]) -> Vec<String> {
    const WIDTH: usize = 76;
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            Some(line) if line.len() + part.len() + ", ".len() <= WIDTH => *line += &format!(", {part}"),
            Some(line) => {
                line.push(',');
                lines.push(format!("  {part}"));
            }
            None => lines.push(part.clone()),
        }
    }
    lines
}

fn resident(occupancy: &Occupancy, size: u32) -> String {
    let unit = occupancy.unit();
    let resident = occupancy.resident(size);
    if resident.work_groups == 0 {
        return format!("work-groups of {size} do not fit: {} on one {unit}", waves(resident.waves_per_group));
    }
    let percent = format!("{}%", f64::from(resident.per_mille()) / 10.0);
    let groups = count(resident.work_groups, "work-group");
    format!("{} of {} waves per {unit} ({percent}): {groups} of {size}", resident.waves(), resident.slots)
}

/// The runtime's reserve, beside the figures of the model, where it costs waves.
fn trap_handler(occupancy: &Occupancy) -> Vec<String> {
    let Some(beside) = occupancy.limits.with_trap_handler(&occupancy.usage) else { return Vec::new() };
    let beside = Occupancy { usage: beside, ..occupancy.clone() };
    let sizes = occupancy.sizes();
    let Some(size) = sizes.first().filter(|_| beside.waves() < occupancy.waves()) else { return Vec::new() };
    let (waves, resident) = (waves(beside.waves()), beside.resident(*size).waves());
    vec![
        format!("with a trap handler's 16 SGPRs: {waves} per SIMD, {resident} per {}", occupancy.unit()),
        "  (observed publicly, not modelled by LLVM)".into(),
    ]
}

fn change(step: &Step, by: u32, direction: &str) -> String {
    let what = match step.resource {
        Resource::Vgprs => count(by, "VGPR"),
        Resource::Sgprs => count(by, "SGPR"),
        Resource::LdsBytes => format!("{} of LDS", count(by, "byte")),
        Resource::WorkGroups => count(by, "work-item"),
    };
    format!("{what} {direction} ({})", step.to)
}

fn limiter(resource: Resource) -> &'static str {
    match resource {
        Resource::Vgprs => "VGPRs",
        Resource::Sgprs => "SGPRs",
        Resource::LdsBytes => "LDS",
        Resource::WorkGroups => "the size of work-groups",
    }
}

fn waves(waves: u32) -> String {
    count(waves, "wave")
}

fn count(number: u32, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// `a`, `a and b`, `a, b and c`.
fn and(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
