//! Kernels of one code object. What the format does not record is told apart from what could not be read.

use std::sync::Arc;

use codeobj::code_object::Kernel;
use codeobj::descriptor::Family;
use codeobj::{CodeObject, Count, Detail, TargetId};
use isa::RegisterFile;

use crate::cell::{Cell, Cells};
use crate::launch::Launch;
use crate::metric::Metric;
use crate::record::{self, Record};
use crate::sites::{self, SiteCounts};
use crate::text::FileKernels;

/// Counts the instructions of a body; the decoder behind it is not known here.
pub trait InstructionCounter: Sync {
    /// Counts the sites in `code`, which was compiled for `target` with waves of `wave_size` lanes.
    ///
    /// # Errors
    /// Why the counts are not known, as the reason of a `?`.
    fn count(&self, target: &TargetId, wave_size: u64, code: &[u8]) -> Result<SiteCounts, String>;
}

/// How the instruction cells of binaries are filled.
#[derive(Clone, Copy)]
pub enum Instructions<'c> {
    /// By decoding.
    Counted(&'c dyn InstructionCounter),
    /// Not at all, because the user said so: `n/a`.
    NotWanted,
}

/// Reads the kernels of the code object in `bytes`. `source` is how it is named in records and problems.
pub fn read(bytes: &[u8], source: &str, instructions: Instructions<'_>) -> FileKernels {
    let mut file = FileKernels::default();
    let object = match CodeObject::parse_with(bytes, Detail::Counts) {
        Ok(object) => object,
        Err(error) => {
            file.problems.push(format!("{source}: {error}"));
            return file;
        }
    };
    file.problems.extend(object.problems.iter().map(|p| format!("{source}: {p}")));
    match &object.metadata {
        None => file.problems.push(format!("{source}: code object without AMDGPU metadata: its kernels are not known")),
        Some(metadata) => {
            file.problems.extend(metadata.problems.iter().map(|p| format!("{source}: metadata: {p}")));
            if object.kernels.is_empty() {
                file.problems.push(format!("{source}: the metadata lists no kernels"));
            }
        }
    }
    let (target, source_name) = (Arc::new(object.target), Arc::from(source));
    for (at, kernel) in object.kernels.iter().enumerate() {
        if kernel.name.is_empty() {
            file.problems.push(format!("{source}: metadata entry {} has neither .name nor .symbol", at + 1));
            continue;
        }
        let record = record(kernel, &target, bytes, &source_name, instructions);
        file.kernels.push((kernel.name.clone(), record));
    }
    file
}

fn record(
    kernel: &Kernel,
    target: &Arc<TargetId>,
    bytes: &[u8],
    source: &Arc<str>,
    instructions: Instructions<'_>,
) -> Record {
    let metadata = &kernel.metadata;
    let isa_target = record::isa_target(target);
    let mut problems: Vec<String> = kernel.problems.iter().map(|p| format!("{source}: {p}")).collect();
    problems.extend(metadata.problems.iter().map(|p| format!("{source}: metadata: {p}")));
    if let (_, Some(disagreement)) = crate::text::kernel_name(metadata) {
        problems.push(format!("{source}: {disagreement}"));
    }
    let accum_offset = accum_offset(kernel, target);
    if (metadata.vgpr_spill_count == Count::Absent) != (metadata.sgpr_spill_count == Count::Absent) {
        problems.push(format!(
            "{source}: only one of .vgpr_spill_count and .sgpr_spill_count is there: no producer writes so"
        ));
    }
    let agpr = agpr(kernel, isa_target.as_ref(), accum_offset);
    problems.extend(parts_problem(kernel, isa_target.as_ref(), accum_offset).map(|p| format!("{source}: {p}")));
    let vgpr = required(&metadata.vgpr_count, ".vgpr_count");
    let arch_vgpr = match (&vgpr, &agpr) {
        (Cell::Value(total), Cell::Value(0)) => Cell::Value(*total),
        _ => Cell::NotRecorded("accum_offset is the arch VGPR count rounded up to 4".into()),
    };
    let mut cells = Cells::from_fn(|metric| match metric {
        Metric::Vgpr => vgpr.clone(),
        Metric::ArchVgpr => arch_vgpr.clone(),
        Metric::Agpr => agpr.clone(),
        Metric::Sgpr => required(&metadata.sgpr_count, ".sgpr_count"),
        Metric::VgprSpill => optional(&metadata.vgpr_spill_count, ".vgpr_spill_count"),
        Metric::SgprSpill => optional(&metadata.sgpr_spill_count, ".sgpr_spill_count"),
        Metric::ScratchBytes => required(&metadata.private_segment_fixed_size, ".private_segment_fixed_size"),
        Metric::LdsStaticBytes => required(&metadata.group_segment_fixed_size, ".group_segment_fixed_size"),
        Metric::NumberedSgpr => Cell::NotRecorded("code objects have only the total".into()),
        _ => Cell::NotApplicable("not counted: --metadata-only".into()),
    });
    let mut has_lds_traffic = false;
    if let Instructions::Counted(counter) = instructions {
        match count(kernel, target, bytes, counter) {
            Ok(sites) => {
                sites.fill(&mut cells, isa_target.as_ref());
                has_lds_traffic = sites.has_lds_traffic();
            }
            Err(why) => {
                for metric in Metric::all().filter(|m| m.is_instruction_count()) {
                    cells[metric] = Cell::Unparsed(format!("{source}: {why}"));
                }
                sites::mark_scratch(&mut cells, isa_target.as_ref());
            }
        }
    }
    let notes = [
        record::dynamic_lds_note(&cells, has_lds_traffic),
        (metadata.uses_dynamic_stack == Some(true)).then(|| record::DYNAMIC_STACK_NOTE.to_owned()),
    ];
    Record {
        target: Some(target.clone()),
        cells,
        notes: notes.into_iter().flatten().collect(),
        problems,
        source: source.clone(),
        identity: None,
        launch: Some(Launch::of_kernel(kernel, target)),
    }
}

/// A count that every producer writes.
fn required(count: &Count, key: &str) -> Cell {
    crate::text::count_cell(count, key)
}

/// A count that hand-written and older code objects leave out.
fn optional(count: &Count, key: &str) -> Cell {
    match count {
        Count::Absent => Cell::NotRecorded(format!("the metadata has no {key}").into()),
        other => crate::text::count_cell(other, key),
    }
}

/// AGPRs: as recorded, else what the register file leaves for them.
fn agpr(kernel: &Kernel, target: Option<&isa::Target>, accum_offset: Option<u64>) -> Cell {
    if kernel.metadata.agpr_count != Count::Absent {
        return crate::text::count_cell(&kernel.metadata.agpr_count, ".agpr_count");
    }
    match target.map(|t| t.register_file) {
        Some(RegisterFile::ArchOnly) => Cell::Value(0),
        Some(RegisterFile::Unified) => match (kernel.metadata.vgpr_count.value(), accum_offset) {
            (Some(total), Some(offset)) => Cell::Value(total.saturating_sub(offset)),
            _ => Cell::NotRecorded("neither .agpr_count nor a descriptor with accum_offset".into()),
        },
        _ => Cell::NotRecorded("the metadata has no .agpr_count".into()),
    }
}

fn accum_offset(kernel: &Kernel, target: &TargetId) -> Option<u64> {
    let family = Family::of(target.processor.as_deref()?)?;
    kernel.descriptor.as_ref().ok()?.descriptor.accum_offset(family).map(u64::from)
}

/// In a unified file the accumulators start at accum_offset, so the total cannot be below their end. (An arch part of
/// no registers still has the least accum_offset, 4.)
fn parts_problem(kernel: &Kernel, target: Option<&isa::Target>, accum_offset: Option<u64>) -> Option<String> {
    if target?.register_file != RegisterFile::Unified {
        return None;
    }
    let (total, acc) = (kernel.metadata.vgpr_count.value()?, kernel.metadata.agpr_count.value()?);
    let offset = accum_offset?;
    (acc > 0 && offset > 4 && offset.saturating_add(acc) > total).then(|| {
        format!(".vgpr_count {total} is below its parts: accum_offset {offset} and .agpr_count {acc}; it is no total")
    })
}

fn count(
    kernel: &Kernel,
    target: &TargetId,
    bytes: &[u8],
    counter: &dyn InstructionCounter,
) -> Result<SiteCounts, String> {
    let code = kernel.code.as_ref().map_err(Clone::clone)?;
    let body = bytes.get(code.file_range.clone()).ok_or("its code lies outside the file")?;
    let wave_size = kernel.metadata.wavefront_size.value().unwrap_or(match target.generation() {
        Some(10..) => 32,
        _ => 64,
    });
    counter.count(target, wave_size, body)
}
