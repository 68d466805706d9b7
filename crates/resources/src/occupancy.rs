//! The occupancy of a record: waves per execution unit (SIMD), by the model of `isa::occupancy`.
//!
//! What the model needs and the input does not have makes it unknown, with the reason; nothing is assumed. It is a
//! figure beside the table: no verdict follows from it unless a policy says so.

mod crossing;
mod json;
mod page;

use isa::RegisterFile;
use isa::occupancy::{Limits, MAX_WORK_ITEMS, Resident, Resource, Usage};

use crate::cell::Cell;
use crate::metric::Metric;
use crate::record::Record;

pub use crossing::crossing;
pub use json::kernel as json;
pub use page::describe;

/// The column's name in tables and JSON.
pub const COLUMN: &str = "occupancy";

/// What a user knows of the launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Work-items of a work-group, for kernels that require no size.
    pub workgroup_size: Option<u32>,
    /// LDS that a launch asks for beyond the static part, bytes.
    pub dynamic_lds_bytes: u32,
}

/// Where the size of the work-group comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeOrigin {
    /// `.reqd_workgroup_size`
    Required,
    /// [`Settings::workgroup_size`]
    Given,
    /// Any up to `.max_flat_workgroup_size`: the waves are the best case, as LLVM prints them.
    UpTo,
}

/// The occupancy of one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Of the processor.
    pub limits: &'static Limits,
    /// What the kernel takes.
    pub usage: Usage,
    /// What `usage.work_items` is.
    pub origin: SizeOrigin,
    /// The part of `usage.lds_bytes` that is asked for at launch.
    pub dynamic_lds_bytes: u32,
    /// VGPRs that the kernel uses, where the descriptor gives it so many more that they cost waves: `usage` then has
    /// what the descriptor gives.
    pub used_vgprs: Option<u32>,
}

impl Occupancy {
    /// That of a record.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn of(record: &Record, settings: Settings) -> Result<Occupancy, String> {
        let processor = record.target.as_deref().and_then(|target| target.processor.as_deref());
        let limits = limits_of(processor.ok_or("the target is not identified")?)?;
        let launch = record.launch.as_ref();
        let vgprs = figure(record, Metric::Vgpr)?;
        if vgprs > limits.max_total_vgprs() {
            let most = limits.max_total_vgprs();
            return Err(format!("{vgprs} VGPRs are more than the {most} that a wave of {} can have", limits.processor));
        }
        let sgprs = if limits.counts_sgprs() { figure(record, Metric::Sgpr)? } else { 0 };
        let lds_bytes = figure(record, Metric::LdsStaticBytes)?.saturating_add(settings.dynamic_lds_bytes);
        if lds_bytes > limits.max_lds_bytes() {
            let (most, processor) = (limits.max_lds_bytes(), limits.processor);
            return Err(format!("{lds_bytes} bytes of LDS are more than the {most} of a work-group on {processor}"));
        }
        let recorded = launch.and_then(|launch| launch.wavefront_size);
        let (work_items, origin) = work_items(record, settings)?;
        let mut usage = Usage {
            wave_size: wave_size(limits, recorded)?,
            wgp_mode: match launch.and_then(|launch| launch.workgroup_processor_mode) {
                Some(mode) => mode,
                None if !limits.has_wgp_mode() => false,
                None => return Err(not_recorded(record, "the work-group processor mode")),
            },
            vgprs, // the total already, whatever its parts
            agprs: 0,
            sgprs,
            lds_bytes,
            work_items,
        };
        let allocated = launch.and_then(|launch| launch.allocated_vgprs).filter(|all| *all > vgprs);
        let as_allocated = allocated.map(|vgprs| Usage { vgprs, ..usage.clone() });
        // More than is used is given to all kernels in granules, and to those that have less than all waves anyway.
        let costs = |other: &Usage| limits.occupancy(other).waves < limits.occupancy(&usage).waves;
        let mut used_vgprs = None;
        if let Some(as_allocated) = as_allocated.filter(costs) {
            usage = as_allocated;
            used_vgprs = Some(vgprs);
        }
        Ok(Occupancy { limits, usage, origin, dynamic_lds_bytes: settings.dynamic_lds_bytes, used_vgprs })
    }

    /// Waves per execution unit: what LLVM prints as `; Occupancy:`.
    pub fn waves(&self) -> u32 {
        self.limits.occupancy(&self.usage).waves
    }

    /// The same with work-groups of one size.
    pub fn at(&self, work_items: u32) -> Usage {
        Usage { work_items: work_items..=work_items, ..self.usage.clone() }
    }

    /// The sizes that are worth telling: the one of every launch, or the smallest (one wave) and the largest possible.
    pub fn sizes(&self) -> Vec<u32> {
        let most = *self.usage.work_items.end();
        match self.origin {
            SizeOrigin::UpTo if most > self.usage.wave_size => vec![self.usage.wave_size, most],
            _ => vec![most],
        }
    }

    /// Whole work-groups of that size on the execution units that share LDS.
    pub fn resident(&self, work_items: u32) -> Resident {
        self.limits.resident(&self.at(work_items))
    }

    /// `CU`, or `WGP` where a work-group may use a whole work-group processor.
    pub fn unit(&self) -> &'static str {
        if self.limits.has_wgp_mode() && self.usage.wgp_mode { "WGP" } else { "CU" }
    }

    /// Whether AGPRs are in the total.
    pub fn shares_file(&self) -> bool {
        self.limits.register_file() == RegisterFile::Unified
    }
}

/// How a resource is called in JSON and in messages: as the table's column where there is one.
pub fn resource_name(resource: Resource) -> &'static str {
    match resource {
        Resource::Vgprs => "vgpr",
        Resource::Sgprs => "sgpr",
        Resource::LdsBytes => "lds_bytes",
        Resource::WorkGroups => "workgroup_size",
    }
}

/// The waves as a cell of the table; one that is not known is `n/a`, which judges nothing.
pub fn cell(record: &Record, settings: Settings) -> Cell {
    match Occupancy::of(record, settings) {
        Ok(occupancy) => Cell::Value(occupancy.waves().into()),
        Err(why) => Cell::NotApplicable(why.into()),
    }
}

/// The limits of a processor, or that they are not known here.
pub fn limits_of(processor: &str) -> Result<&'static Limits, String> {
    // The strict variant differs in what it refuses, not in what it has.
    let name = processor.strip_suffix("-strict").unwrap_or(processor);
    Limits::of(name).ok_or_else(|| {
        let known: Vec<&str> = Limits::processors().collect();
        format!("the occupancy of `{processor}` is not modelled; that of {} is", known.join(", "))
    })
}

/// The lanes of a wave, where `recorded` is what is known of it.
pub fn wave_size(limits: &Limits, recorded: Option<u32>) -> Result<u32, String> {
    match (recorded, limits.only_wave_size()) {
        (Some(size), Some(only)) if size != only => {
            Err(format!("waves of {size} lanes do not exist on {}: they have {only}", limits.processor))
        }
        (Some(size), None) if ![32, 64].contains(&size) => {
            Err(format!("waves of {size} lanes do not exist on {}: they have 32 or 64", limits.processor))
        }
        (Some(size), _) => Ok(size),
        (None, Some(only)) => Ok(only),
        (None, None) => Err(".wavefront_size is not recorded".into()),
    }
}

/// A figure that the model needs.
fn figure(record: &Record, metric: Metric) -> Result<u32, String> {
    let name = metric.name();
    match &record.cells[metric] {
        Cell::Value(value) => u32::try_from(*value).map_err(|_| format!("{name} {value} is no figure of a kernel")),
        Cell::NotApplicable(why) => Err(format!("{name} is n/a: {why}")),
        Cell::NotRecorded(why) => Err(format!("{name} is not recorded: {why}")),
        Cell::Unparsed(why) => Err(format!("{name} is not known: {why}")),
    }
}

fn work_items(record: &Record, settings: Settings) -> Result<(std::ops::RangeInclusive<u32>, SizeOrigin), String> {
    let launch = record.launch.as_ref();
    let possible = |name: &str, size: u64| match u32::try_from(size) {
        Ok(size @ 1..=MAX_WORK_ITEMS) => Ok(size),
        _ => Err(format!("{name} {size} is no size of a work-group: 1 to {MAX_WORK_ITEMS} are")),
    };
    if let Some(size) = launch.and_then(|launch| launch.reqd_workgroup_size) {
        let size = size.iter().fold(1, |all: u64, n| all.saturating_mul(u64::from(*n)));
        let size = possible(".reqd_workgroup_size", size)?;
        return Ok((size..=size, SizeOrigin::Required));
    }
    let most = launch.and_then(|launch| launch.max_flat_workgroup_size).map(u64::from);
    let most = most.map(|size| possible(".max_flat_workgroup_size", size)).transpose()?;
    match (settings.workgroup_size, most) {
        (Some(size), Some(most)) if size > most => {
            Err(format!("a work-group of {size} is more than .max_flat_workgroup_size {most} allows"))
        }
        (Some(size), _) => possible("the work-group size", size.into()).map(|size| (size..=size, SizeOrigin::Given)),
        (None, Some(most)) => Ok((1..=most, SizeOrigin::UpTo)),
        (None, None) => Err(format!("{}, or give --workgroup-size", not_recorded(record, ".max_flat_workgroup_size"))),
    }
}

fn not_recorded(record: &Record, what: &str) -> String {
    match record.launch {
        Some(_) => format!("{what} is not recorded: compile with metadata that has it"),
        None => format!("{what} is not in the snapshot: write it anew"),
    }
}
