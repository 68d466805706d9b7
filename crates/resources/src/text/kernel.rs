//! Makes one record per metadata entry of an assembly text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use asm::Lines;
use asm::Statement;
use codeobj::TargetId;
use codeobj::metadata::{Count, KernelMetadata, Metadata};

use super::checks;
use super::labels::Labels;
use super::scan::{DescriptorBlock, Scan, Terminator};
use super::sites::Sites;
use super::values::{Definition, Values};
use super::{FileKernels, Origin, kernel_name};
use crate::cell::{Cell, Cells};
use crate::launch::Launch;
use crate::metric::Metric;
use crate::record::{self, Record};
use crate::sites::{self, SiteCounts};

/// The resource symbols of a kernel that are read.
const RESOURCE_SYMBOLS: [&str; 4] = ["num_vgpr", "num_agpr", "numbered_sgpr", "private_seg_size"];

/// Makes the records of all entries and judges what belongs to no entry.
pub fn read_all(scan: &Scan<'_>, metadata: &Metadata, source: &str, origin: Origin, file: &mut FileKernels) {
    let (target, target_problem) = target(scan, metadata, source, file);
    let records_symbols = origin == Origin::Dump || has_resource_symbols(scan);
    let reader = Reader {
        scan,
        source,
        isa_target: target.as_ref().and_then(record::isa_target),
        target: target.map(Arc::new),
        source_name: Arc::from(source),
        records_symbols,
        sites: Sites::read(scan.text),
        labels: Labels::new(scan, metadata.kernels.len()),
        sizes: scan.sizes.iter().map(|size| (size.name.as_ref(), &size.value)).collect(),
        descriptors: scan.descriptors.iter().rev().map(|block| (block.kernel, block)).collect(),
    };
    let mut seen = HashSet::new();
    for (at, entry) in metadata.kernels.iter().enumerate() {
        let (Some(name), disagreement) = kernel_name(entry) else {
            file.problems.push(format!("{source}: metadata entry {} has neither .name nor .symbol", at + 1));
            continue;
        };
        if !seen.insert(name) {
            let problem = format!("{source}: kernel is declared twice in the metadata; the first is shown");
            if let Some((_, first)) = file.kernels.iter_mut().find(|(n, _)| n == name) {
                first.problems.push(problem);
            }
            continue;
        }
        let mut record = reader.record(name, entry, &mut file.problems);
        record.problems.extend(disagreement.map(|d| format!("{source}: {d}")));
        record.problems.extend(target_problem.clone());
        file.kernels.push((name.to_owned(), record));
    }
    report_unlisted_code(&reader, &seen, source, file);
    let mut described = HashSet::new();
    for block in &scan.descriptors {
        if !described.insert(block.kernel) {
            let (line, name) = (scan.line_of(block.at), String::from_utf8_lossy(block.kernel));
            file.problems.push(format!("{source}:{line}: a second .amdhsa_kernel of `{name}`"));
        }
        let name = String::from_utf8_lossy(block.kernel);
        if !seen.contains(name.as_ref()) {
            file.problems.push(format!(
                "{source}:{}: kernel `{name}` has a descriptor and no metadata entry: the metadata is cut",
                scan.line_of(block.at)
            ));
        }
    }
    warn_of_redefinitions(scan, &seen, source, file);
}

/// The target that the directive and the metadata name, and the problem that they do not agree.
fn target(
    scan: &Scan<'_>,
    metadata: &Metadata,
    source: &str,
    file: &mut FileKernels,
) -> (Option<TargetId>, Option<String>) {
    let mut parse = |text: &str, at: Option<usize>| {
        let place = || at.map(|at| format!(":{}", scan.line_of(at))).unwrap_or_default();
        match TargetId::parse(text) {
            Ok(target) => {
                if let Some(processor) = target.processor.as_deref().filter(|_| target.generation().is_none()) {
                    file.problems
                        .push(format!("{source}{}: `{processor}` is no AMD processor that can be named", place()));
                }
                Some(target)
            }
            Err(error) => {
                file.problems.push(format!("{source}{}: {}", place(), error.message));
                None
            }
        }
    };
    let directive = scan.target.and_then(|(text, at)| parse(&String::from_utf8_lossy(text), Some(at)));
    let Some(directive) = directive else {
        return (metadata.target.as_deref().and_then(|text| parse(text, None)), None);
    };
    let other = metadata.target.as_deref().filter(|&text| text != directive.text).and_then(|text| parse(text, None));
    let disagrees =
        |other: &TargetId| (other.processor.is_some() || directive.processor.is_some()) && !other.same_as(&directive);
    let problem = other
        .filter(disagrees)
        .map(|other| format!("{source}: .amdgcn_target is `{directive}` and amdhsa.target is `{other}`"));
    (Some(directive), problem)
}

fn has_resource_symbols(scan: &Scan<'_>) -> bool {
    scan.sets.iter().any(|set| RESOURCE_SYMBOLS.iter().any(|s| ends_with_member(&set.name, s)))
}

fn ends_with_member(name: &[u8], member: &str) -> bool {
    name.strip_suffix(member.as_bytes()).is_some_and(|stem| stem.ends_with(b"."))
}

/// Code that ends the wave is a kernel's; one that the metadata does not list was cut out of it.
fn report_unlisted_code(reader: &Reader<'_, '_>, kernels: &HashSet<&str>, source: &str, file: &mut FileKernels) {
    for size in &reader.scan.sizes {
        let name = String::from_utf8_lossy(&size.name);
        if kernels.contains(name.as_ref()) || reader.descriptors.contains_key(size.name.as_ref()) {
            continue;
        }
        let Ok((start, end)) = reader.bounds(&name) else { continue };
        let ends_the_wave = |line: asm::Line<'_>| {
            matches!(Statement::parse(line.text), Statement::Instruction { mnemonic: b"s_endpgm", .. })
        };
        if Lines::new(&reader.scan.text[start..end]).any(ends_the_wave) {
            let line = reader.scan.line_of(start);
            file.problems.push(format!(
                "{source}:{line}: `{name}` ends the wave and has no metadata entry: the metadata is cut"
            ));
        }
    }
}

/// A symbol that no kernel uses may be set as often as one likes; that is only worth a warning.
fn warn_of_redefinitions(scan: &Scan<'_>, kernels: &HashSet<&str>, source: &str, file: &mut FileKernels) {
    for pair in scan.sets.windows(2) {
        let [first, again] = pair else { continue };
        if first.name != again.name || first.value == again.value {
            continue;
        }
        let Some(member) = RESOURCE_SYMBOLS.iter().find(|s| ends_with_member(&first.name, s)) else { continue };
        let stem = &first.name[..first.name.len() - member.len() - 1];
        let stem = String::from_utf8_lossy(stem.strip_prefix(b".L").unwrap_or(stem));
        if !kernels.contains(stem.as_ref()) {
            let (line, before) = (scan.line_of(again.at), scan.line_of(first.at));
            file.warnings.push(format!("{source}:{line}: `{stem}.{member}` was set differently in line {before}"));
        }
    }
}

struct Reader<'s, 'a> {
    scan: &'s Scan<'a>,
    source: &'s str,
    source_name: Arc<str>,
    target: Option<Arc<TargetId>>,
    isa_target: Option<isa::Target>,
    /// Whether LLVM's resource symbols are to be expected.
    records_symbols: bool,
    sites: Sites,
    labels: Labels<'s, 'a>,
    /// The last `.size` of each symbol: that is the one in force.
    sizes: HashMap<&'s [u8], &'s Terminator<'a>>,
    /// First descriptor of each kernel.
    descriptors: HashMap<&'s [u8], &'s DescriptorBlock<'a>>,
}

impl<'a> Reader<'_, 'a> {
    /// The record of one entry; a symbol that is set twice is the file's problem.
    fn record(&self, name: &str, entry: &KernelMetadata, conflicts: &mut Vec<String>) -> Record {
        let mut problems: Vec<String> =
            entry.problems.iter().map(|p| format!("{}: metadata: {p}", self.source)).collect();
        let mut values = Values::new(self.scan, self.isa_target);
        let mut symbol = |suffix: &str| self.symbol(&mut values, name, suffix, conflicts);
        let arch_vgpr = symbol("num_vgpr");
        let agpr = symbol("num_agpr");
        let numbered_sgpr = symbol("numbered_sgpr");
        let private_segment = symbol("private_seg_size");

        let mut cells = Cells::from_fn(|metric| match metric {
            Metric::Vgpr => count_cell(&entry.vgpr_count, ".vgpr_count"),
            Metric::ArchVgpr => arch_vgpr.clone(),
            Metric::Agpr => agpr.clone(),
            Metric::Sgpr => count_cell(&entry.sgpr_count, ".sgpr_count"),
            Metric::NumberedSgpr => numbered_sgpr.clone(),
            Metric::VgprSpill => count_cell(&entry.vgpr_spill_count, ".vgpr_spill_count"),
            Metric::SgprSpill => count_cell(&entry.sgpr_spill_count, ".sgpr_spill_count"),
            Metric::ScratchBytes => count_cell(&entry.private_segment_fixed_size, ".private_segment_fixed_size"),
            Metric::LdsStaticBytes => count_cell(&entry.group_segment_fixed_size, ".group_segment_fixed_size"),
            _ => Cell::Unparsed(String::new()), // filled in below
        });
        let body = self.body(name);
        match &body {
            Ok(sites) => {
                sites.fill(&mut cells, self.isa_target.as_ref());
                if sites.mixes_spellings() {
                    problems
                        .push(format!("{}: ds_read and ds_load in one body: not one compiler's output", self.source));
                }
            }
            Err(why) => {
                for metric in Metric::all().filter(|m| m.is_instruction_count()) {
                    cells[metric] = Cell::Unparsed(why.clone());
                }
                sites::mark_scratch(&mut cells, self.isa_target.as_ref());
            }
        }
        let facts = checks::Facts { kernel: name, cells: &cells, private_segment: &private_segment, entry };
        let mut contradictions = checks::totals(&facts, self.isa_target.as_ref());
        let mut launch = Launch::from_metadata(entry);
        if let Some(block) = self.descriptors.get(name.as_bytes()) {
            let found = checks::descriptor(&facts, block, &mut values, |at| self.scan.line_of(at));
            contradictions.extend(found.contradictions);
            launch.allocated_vgprs = found.next_free_vgpr;
            launch.workgroup_processor_mode = found.workgroup_processor_mode;
        }
        problems.extend(contradictions.iter().map(|c| format!("{}{c}", self.source)));
        let notes = [
            record::dynamic_lds_note(&cells, body.is_ok_and(|sites| sites.has_lds_traffic())),
            (entry.uses_dynamic_stack == Some(true)).then(|| record::DYNAMIC_STACK_NOTE.to_owned()),
        ];
        Record {
            target: self.target.clone(),
            cells,
            notes: notes.into_iter().flatten().collect(),
            problems,
            source: self.source_name.clone(),
            identity: None,
            launch: Some(launch),
        }
    }

    /// The cell of a resource symbol; a second, other value is a conflict.
    fn symbol(&self, values: &mut Values<'_, 'a>, kernel: &str, suffix: &str, conflicts: &mut Vec<String>) -> Cell {
        let source = self.source;
        let Some(Definition { value, at, conflict }) = values.resource(kernel, suffix) else {
            return match self.records_symbols {
                true => Cell::Unparsed(format!("{source}: no .set {kernel}.{suffix}")),
                false => Cell::NotRecorded("the file has no resource symbols (.set NAME.num_vgpr)".into()),
            };
        };
        let line = |at| self.scan.line_of(at);
        if let Some((again, other)) = conflict {
            conflicts.push(format!(
                "{source}:{}: .set {kernel}.{suffix} is `{other}`, another value than in line {}",
                line(again),
                line(at)
            ));
        }
        let unparsed = |why: String| Cell::Unparsed(format!("{source}:{}: .set {kernel}.{suffix} {why}", line(at)));
        match value {
            Ok(value) => u64::try_from(value).map_or_else(|_| unparsed(format!("is negative: {value}")), Cell::Value),
            Err(why) => unparsed(format!("has no value: {why}")),
        }
    }

    /// Offsets of the body's first line and of the line that ends it, or why they are not known.
    fn bounds(&self, name: &str) -> Result<(usize, usize), String> {
        let source = self.source;
        let line = |at| self.scan.line_of(at);
        let start = self.labels.find(name.as_bytes()).ok_or_else(|| format!("{source}: no label `{name}:`"))?;
        let size = self.sizes.get(name.as_bytes()).ok_or_else(|| format!("{source}: no .size of `{name}`"))?;
        let end = match size {
            Terminator::Unknown => {
                return Err(format!("{source}: .size of `{name}` is not of the form `.Lfunc_end-{name}`"));
            }
            Terminator::Here(at) => *at,
            Terminator::Label(label) => self.labels.find(label).ok_or_else(|| {
                format!("{source}: no label `{}:` for the end of `{name}`", String::from_utf8_lossy(label))
            })?,
        };
        if end < start {
            return Err(format!(
                "{source}:{}: the end of `{name}` stands before its start in line {}",
                line(end),
                line(start)
            ));
        }
        Ok((start, end))
    }

    /// What the body counts, or why that is not known.
    fn body(&self, name: &str) -> Result<SiteCounts, String> {
        let source = self.source;
        let line = |at| self.scan.line_of(at);
        let (start, end) = self.bounds(name)?;
        if let Some((at, what)) = self.expansion(start, end) {
            let what = String::from_utf8_lossy(what);
            return Err(format!(
                "{source}:{}: `{what}` in the code: only an assembler knows what it expands to",
                line(at)
            ));
        }
        Ok(self.sites.between(start, end))
    }

    /// The first directive or macro call between the offsets that stands for other code than itself.
    fn expansion(&self, start: usize, end: usize) -> Option<(usize, &[u8])> {
        let directive = self.scan.opaque.iter().find(|o| (start..end).contains(&o.at)).map(|o| (o.at, o.name.as_ref()));
        if directive.is_some() || self.scan.macros.is_empty() {
            return directive;
        }
        let is_call = |mnemonic: &&[u8]| self.scan.macros.contains(mnemonic);
        Lines::new(&self.scan.text[start..end]).find_map(|line| match Statement::parse(line.text) {
            Statement::Instruction { mnemonic, .. } => Some(mnemonic).filter(is_call).map(|m| (start + line.offset, m)),
            _ => None,
        })
    }
}

/// The cell of a metadata count.
pub(crate) fn count_cell(count: &Count, key: &str) -> Cell {
    match count {
        Count::Value(value) => Cell::Value(*value),
        Count::Absent => Cell::Unparsed(format!("{key} is not in the metadata")),
        Count::Negative(value) => Cell::Unparsed(format!("{key} is negative: {value}")),
        Count::Bad(why) => Cell::Unparsed(format!("{key}: {why}")),
    }
}
