//! Makes one record per metadata entry of an assembly text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use asm::Lines;
use asm::Statement;
use codeobj::TargetId;
use codeobj::metadata::{Count, KernelMetadata, Metadata};

use super::labels::Labels;
use super::scan::{DescriptorBlock, Scan, Terminator};
use super::sites::Sites;
use super::values::{Definition, Values};
use super::{FileKernels, Origin, kernel_name};
use crate::cell::{Cell, Cells};
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
    for block in &scan.descriptors {
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
        if let (Cell::Value(symbol), Cell::Value(metadata)) = (&private_segment, &cells[Metric::ScratchBytes])
            && symbol != metadata
        {
            problems.push(format!(
                "{}: .private_segment_fixed_size is {metadata} and .set {name}.private_seg_size is {symbol}",
                self.source
            ));
        }
        self.check_parts(&cells, &mut problems);
        if let (Some(total), Some(numbered)) = (cells[Metric::Sgpr].value(), cells[Metric::NumberedSgpr].value())
            && total < numbered
        {
            problems.push(format!("{}: .sgpr_count {total} is below its part, {numbered} numbered SGPRs", self.source));
        }
        if let Some(block) = self.descriptors.get(name.as_bytes()) {
            self.check_descriptor(block, &cells, &mut values, &mut problems);
        }
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

    /// What the body counts, or why its bounds are not known.
    fn body(&self, name: &str) -> Result<SiteCounts, String> {
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

    /// The total may not be below its parts, nor beyond what they add up to.
    fn check_parts(&self, cells: &Cells, problems: &mut Vec<String>) {
        let (Cell::Value(total), Cell::Value(arch), Cell::Value(acc)) =
            (&cells[Metric::Vgpr], &cells[Metric::ArchVgpr], &cells[Metric::Agpr])
        else {
            return;
        };
        let possible = match &self.isa_target {
            Some(target) => target.total_vgprs(*arch, *acc),
            None => *arch.max(acc)..=arch.saturating_add(*acc).saturating_add(3),
        };
        if !possible.contains(total) {
            let relation = if total < possible.start() { "below" } else { "beyond" };
            problems.push(format!(
                "{}: .vgpr_count {total} is {relation} its parts: {arch} arch and {acc} accumulator VGPRs",
                self.source
            ));
        }
    }

    /// The descriptor repeats what the metadata and the symbols say; they must agree. Its register counts may be
    /// raised, to keep more waves off, and never lowered.
    fn check_descriptor(
        &self,
        block: &DescriptorBlock<'_>,
        cells: &Cells,
        values: &mut Values<'_, 'a>,
        problems: &mut Vec<String>,
    ) {
        for (field, value, at) in block.fields() {
            let (metric, may_exceed) = match field {
                b".amdhsa_group_segment_fixed_size" => (Metric::LdsStaticBytes, false),
                b".amdhsa_private_segment_fixed_size" => (Metric::ScratchBytes, false),
                b".amdhsa_next_free_vgpr" => (Metric::Vgpr, true),
                b".amdhsa_next_free_sgpr" => (Metric::NumberedSgpr, true),
                _ => continue,
            };
            let (Ok(stated), Cell::Value(metadata)) = (values.eval(value), &cells[metric]) else {
                continue;
            };
            let agrees = u64::try_from(stated).is_ok_and(|s| if may_exceed { s >= *metadata } else { s == *metadata });
            if !agrees {
                let (field, line) = (String::from_utf8_lossy(field), self.scan.line_of(at));
                problems.push(format!("{}:{line}: {field} is {stated}, elsewhere it is {metadata}", self.source));
            }
        }
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
