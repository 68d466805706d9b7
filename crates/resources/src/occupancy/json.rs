//! The JSON form of an occupancy. Keys are sorted; what is not known is a state of its own.

use isa::occupancy::Step;
use serde_json::{Map, Value, json};

use super::{Occupancy, SizeOrigin, resource_name};

/// One kernel: `"state"` is `value`, or `unknown` with a reason.
pub fn kernel(occupancy: &Result<Occupancy, String>) -> Value {
    let occupancy = match occupancy {
        Ok(occupancy) => occupancy,
        Err(why) => return json!({ "state": "unknown", "reason": why }),
    };
    let (limits, usage) = (occupancy.limits, &occupancy.usage);
    let steps = limits.steps(usage);
    let sizes = occupancy.sizes().into_iter().map(|size| {
        let resident = occupancy.resident(size);
        json!({
            "max_waves_per_unit": resident.slots,
            "waves_per_simd": limits.occupancy(&occupancy.at(size)).waves,
            "waves_per_unit": resident.waves(),
            "work_groups_per_unit": resident.work_groups,
            "workgroup_size": size,
        })
    });
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| all.insert(key.to_owned(), value);
    put("dynamic_lds_bytes", occupancy.dynamic_lds_bytes.into());
    put("lds_bytes", usage.lds_bytes.into());
    put("limited_by", steps.limiters.iter().map(|resource| resource_name(*resource)).collect());
    put("max_waves_per_simd", limits.max_waves.into());
    put("next_down", steps.lower.iter().map(step).collect());
    put("next_up", steps.higher.iter().map(step).collect());
    put("processor", limits.processor.into());
    if limits.counts_sgprs() {
        put("sgpr", usage.sgprs.into());
    }
    put("state", "value".into());
    put("unit", occupancy.unit().into());
    if let Some(used) = occupancy.used_vgprs {
        put("used_vgpr", used.into());
    }
    put("vgpr", limits.total_vgprs(usage.vgprs, usage.agprs).into());
    put("waves_per_simd", occupancy.waves().into());
    if let Some(beside) = limits.with_trap_handler(usage) {
        put("waves_per_simd_with_trap_handler", limits.occupancy(&beside).waves.into());
    }
    put("wavefront_size", usage.wave_size.into());
    put("workgroup_size_from", origin(occupancy.origin).into());
    put("workgroup_sizes", sizes.collect());
    Value::Object(all)
}

/// In `next_up`, the waves are those after all its steps.
fn step(step: &Step) -> Value {
    json!({ "from": step.from, "resource": resource_name(step.resource), "to": step.to, "waves_per_simd": step.waves })
}

fn origin(origin: SizeOrigin) -> &'static str {
    match origin {
        SizeOrigin::Required => "reqd_workgroup_size",
        SizeOrigin::Given => "option",
        SizeOrigin::UpTo => "max_flat_workgroup_size",
    }
}
