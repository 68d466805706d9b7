//! Facts that a text states twice: metadata, resource symbols, descriptor. Compilers write them from one source, so a
//! disagreement means damage. Each check holds for every real compiler output that was at hand.

use asm::expr::EvalError;
use asm::statement::strip_comment;
use codeobj::metadata::KernelMetadata;

use super::scan::DescriptorBlock;
use super::values::Values;
use crate::cell::{Cell, Cells};
use crate::metric::Metric;

/// What is known of one kernel.
pub struct Facts<'k> {
    pub kernel: &'k str,
    pub cells: &'k Cells,
    /// `.set NAME.private_seg_size`
    pub private_segment: &'k Cell,
    pub entry: &'k KernelMetadata,
}

/// Totals against their parts, and figures against the symbol of the same name. Each is `: what is wrong`.
pub fn totals(facts: &Facts<'_>, target: Option<&isa::Target>) -> Vec<String> {
    let value = |metric: Metric| facts.cells[metric].value();
    let mut found = Vec::new();
    if let (Some(total), Some(arch), Some(acc)) = (value(Metric::Vgpr), value(Metric::ArchVgpr), value(Metric::Agpr)) {
        let possible = match target {
            Some(target) => target.total_vgprs(arch, acc),
            None => arch.max(acc)..=arch.saturating_add(acc).saturating_add(3),
        };
        if !possible.contains(&total) {
            let relation = if total < *possible.start() { "below" } else { "beyond" };
            found.push(format!(
                ": .vgpr_count {total} is {relation} its parts: {arch} arch and {acc} accumulator VGPRs"
            ));
        }
    }
    if let (Some(total), Some(numbered)) = (value(Metric::Sgpr), value(Metric::NumberedSgpr))
        && total < numbered
    {
        found.push(format!(": .sgpr_count {total} is below its part, {numbered} numbered SGPRs"));
    }
    let kernel = facts.kernel;
    let mut same = |key: &str, metadata: Option<u64>, symbol: &str, set: Option<u64>| {
        if let (Some(metadata), Some(set)) = (metadata, set)
            && metadata != set
        {
            found.push(format!(": {key} is {metadata} and .set {kernel}.{symbol} is {set}"));
        }
    };
    same(".agpr_count", facts.entry.agpr_count.value(), "num_agpr", value(Metric::Agpr));
    let scratch = value(Metric::ScratchBytes);
    same(".private_segment_fixed_size", scratch, "private_seg_size", facts.private_segment.value());
    found
}

/// What the descriptor's directives say.
#[derive(Default)]
pub struct Directives {
    /// Where they disagree with the rest, each as `:line: what is wrong`.
    pub contradictions: Vec<String>,
    /// `.amdhsa_next_free_vgpr`
    pub next_free_vgpr: Option<u32>,
    /// `.amdhsa_workgroup_processor_mode`, where it is there and has a value: it goes by the target's features else.
    pub workgroup_processor_mode: Option<bool>,
}

/// The descriptor's directives against the rest. Register counts may be raised, to keep more waves off, and never
/// lowered.
pub fn descriptor(
    facts: &Facts<'_>,
    block: &DescriptorBlock<'_>,
    values: &mut Values<'_, '_>,
    line_of: impl Fn(usize) -> usize,
) -> Directives {
    let value = |metric: Metric| facts.cells[metric].value();
    let wave32 = facts.entry.wavefront_size.value().map(|lanes| u64::from(lanes == 32));
    let mut directives = Directives::default();
    let found = &mut directives.contradictions;
    for (field, text, at) in block.fields() {
        let (known, may_exceed) = match field {
            b".amdhsa_group_segment_fixed_size" => (value(Metric::LdsStaticBytes), false),
            b".amdhsa_private_segment_fixed_size" => (value(Metric::ScratchBytes), false),
            b".amdhsa_next_free_vgpr" => (value(Metric::Vgpr), true),
            b".amdhsa_next_free_sgpr" => (value(Metric::NumberedSgpr), true),
            b".amdhsa_kernarg_size" => (facts.entry.kernarg_segment_size.value(), false),
            b".amdhsa_wavefront_size32" => (wave32, false),
            b".amdhsa_workgroup_processor_mode" => {
                directives.workgroup_processor_mode = values.eval(strip_comment(text)).ok().map(|mode| mode != 0);
                continue;
            }
            _ => continue,
        };
        let Some(known) = known else { continue };
        let field = String::from_utf8_lossy(field);
        match values.eval(strip_comment(text)) {
            // Symbols that the assembler itself defines.
            Err(EvalError::Undefined(symbol)) if symbol.starts_with(".amdgcn.") => {}
            Err(why) => found.push(format!(":{}: {field} has no value: {why}", line_of(at))),
            Ok(stated) if field == ".amdhsa_next_free_vgpr" && u64::try_from(stated).is_ok_and(|s| s >= known) => {
                directives.next_free_vgpr = u32::try_from(stated).ok();
            }
            Ok(0) if field == ".amdhsa_kernarg_size" => {} // "not recorded"
            Ok(stated) if u64::try_from(stated).is_ok_and(|s| s == known || (may_exceed && s > known)) => {}
            Ok(stated) => found.push(format!(":{}: {field} is {stated}, elsewhere it is {known}", line_of(at))),
        }
    }
    directives
}
