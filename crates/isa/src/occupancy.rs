//! How many waves an execution unit (SIMD) can hold at once, as LLVM 22 computes it.
//!
//! ```text
//! occupancy = min(by vector registers, by scalar registers, by work-groups and their LDS)
//! ```
//!
//! The model reproduces what `llc-22` prints for 35,497 kernels with forced resources on the targets of [`LIMITS`]
//! (measured 2026-11; a sample is in the tests). It is a bound by resources, not a measurement of hardware: the
//! runtime may reserve more, and LLVM reports the best case over all work-group sizes that a kernel allows.
//!
//! What bounds the waves, and how far the next step is, is in [`steps`].

pub mod steps;

use crate::RegisterFile;
use std::ops::RangeInclusive;

pub use steps::{Resource, Step, Steps};

/// What bounds the waves of one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Processor name.
    pub processor: &'static str,
    /// Waves that an execution unit can hold.
    pub max_waves: u32,
    /// Registers per lane of an execution unit; twice as many in wave32 where both wave sizes exist.
    file_wave64: u32,
    /// Registers are given out in steps of this; twice as many in wave32 where both wave sizes exist.
    granule_wave64: u32,
    wave_sizes: WaveSizes,
    register_file: RegisterFile,
    /// Execution units that share LDS and work-groups, their LDS in bytes, and their most work-groups.
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaveSizes {
    Only64,
    Only32,
    Both,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    execution_units: u32,
    lds_bytes: u32,
    work_groups: u32,
}

const fn compute_unit(lds_kib: u32) -> Unit {
    Unit { execution_units: 4, lds_bytes: lds_kib << 10, work_groups: 16 }
}

/// The most work-items of a work-group on every target (AMDGPUUsage, `.max_flat_workgroup_size`).
pub const MAX_WORK_ITEMS: u32 = 1024;
/// The most SGPRs of a wave, VCC and the like included: 102 or 106 and what belongs to them, in granules of 8.
pub const MAX_SGPRS: u32 = 112;
/// SGPRs that a trap handler adds to a wave (LLVM: `TRAP_NUM_SGPRS`; the model leaves them out).
const TRAP_HANDLER_SGPRS: u32 = 16;

/// gfx10 and later: two execution units with half of the LDS, or a work-group processor with all of both.
const RDNA_CU: Unit = Unit { execution_units: 2, lds_bytes: 64 << 10, work_groups: 16 };
const RDNA_WGP: Unit = Unit { execution_units: 4, lds_bytes: 128 << 10, work_groups: 32 };

/// One row per processor that was measured.
#[rustfmt::skip]
pub const LIMITS: &[Limits] = {
    use RegisterFile::{ArchOnly, Split, Unified};
    use WaveSizes::{Both, Only32, Only64};
    const fn row(
        processor: &'static str, max_waves: u32, file_wave64: u32, granule_wave64: u32, wave_sizes: WaveSizes,
        register_file: RegisterFile, unit: Unit,
    ) -> Limits {
        Limits { processor, max_waves, file_wave64, granule_wave64, wave_sizes, register_file, unit }
    }
    &[
        row("gfx906",  10, 256,  4, Only64, ArchOnly, compute_unit(64)),
        row("gfx908",  10, 256,  4, Only64, Split,    compute_unit(64)),
        row("gfx90a",   8, 512,  8, Only64, Unified,  compute_unit(64)),
        row("gfx942",   8, 512,  8, Only64, Unified,  compute_unit(64)),
        row("gfx950",   8, 512,  8, Only64, Unified,  compute_unit(160)),
        row("gfx1030", 16, 512,  8, Both,   ArchOnly, RDNA_CU),
        row("gfx1100", 16, 768, 12, Both,   ArchOnly, RDNA_CU),
        row("gfx1201", 16, 768, 12, Both,   ArchOnly, RDNA_CU),
        row("gfx1250", 16, 512,  8, Only32, ArchOnly, compute_unit(320)),
    ]
};

/// What a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Lanes of a wave: 32 or 64.
    pub wave_size: u32,
    /// Whether work-groups are spread over a work-group processor (`.amdhsa_workgroup_processor_mode`); without
    /// meaning before gfx10 and on gfx1250.
    pub wgp_mode: bool,
    /// VGPRs, AGPRs not included.
    pub vgprs: u32,
    /// AGPRs.
    pub agprs: u32,
    /// SGPRs, VCC and the like included: `.sgpr_count`.
    pub sgprs: u32,
    /// LDS of a work-group, bytes.
    pub lds_bytes: u32,
    /// Work-items of a work-group, the fewest and the most.
    pub work_items: RangeInclusive<u32>,
}

/// How many work-groups of one size the execution units that share LDS hold at once.
///
/// Only whole work-groups count here, while LLVM's waves per execution unit are a bound of each resource by itself: three
/// waves per SIMD are room for twelve waves, and for one work-group of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resident {
    /// Work-groups; 0 when not even one fits.
    pub work_groups: u32,
    /// Waves of one work-group.
    pub waves_per_group: u32,
    /// Waves that the units could hold at most.
    pub slots: u32,
}

impl Resident {
    /// Waves of all work-groups.
    pub fn waves(&self) -> u32 {
        self.work_groups * self.waves_per_group
    }

    /// Share of the most possible, in per mille.
    pub fn per_mille(&self) -> u32 {
        (self.waves() * 1000 + self.slots / 2) / self.slots.max(1)
    }
}

/// Waves per execution unit, and what each resource alone would allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// The smallest of the others.
    pub waves: u32,
    /// By VGPRs and AGPRs.
    pub by_vgprs: u32,
    /// By SGPRs; the most possible from gfx10 on, where each wave has all of them.
    pub by_sgprs: u32,
    /// By work-group size and LDS.
    pub by_work_groups: u32,
}

impl Limits {
    /// The limits of a processor; none for one that was not measured.
    pub fn of(processor: &str) -> Option<&'static Limits> {
        LIMITS.iter().find(|limits| limits.processor == processor)
    }

    /// LDS that a work-group can have at most.
    pub fn max_lds_bytes(&self) -> u32 {
        self.unit.lds_bytes
    }

    /// Names of the processors that were measured.
    pub fn processors() -> impl Iterator<Item = &'static str> {
        LIMITS.iter().map(|limits| limits.processor)
    }

    /// How VGPRs and AGPRs share the file.
    pub fn register_file(&self) -> RegisterFile {
        self.register_file
    }

    /// VGPRs that an instruction can name, and as many AGPRs where there are any. gfx1250 reaches 1024 by
    /// `s_set_vgpr_msb`.
    pub fn max_vgprs(&self) -> u32 {
        if self.wave_sizes == WaveSizes::Only32 { 1024 } else { 256 }
    }

    /// The largest total of [`total_vgprs`](Self::total_vgprs).
    pub fn max_total_vgprs(&self) -> u32 {
        if self.register_file == RegisterFile::Unified { 2 * self.max_vgprs() } else { self.max_vgprs() }
    }

    /// Whether the number of SGPRs bounds the waves.
    pub fn counts_sgprs(&self) -> bool {
        self.wave_sizes == WaveSizes::Only64
    }

    /// The wave size where the processor has only one.
    pub fn only_wave_size(&self) -> Option<u32> {
        match self.wave_sizes {
            WaveSizes::Only64 => Some(64),
            WaveSizes::Only32 => Some(32),
            WaveSizes::Both => None,
        }
    }

    /// Whether [`Usage::wgp_mode`] makes a difference.
    pub fn has_wgp_mode(&self) -> bool {
        self.wave_sizes == WaveSizes::Both
    }

    /// Vector registers that a wave is charged for, out of the file that decides.
    pub fn total_vgprs(&self, vgprs: u32, agprs: u32) -> u32 {
        match self.register_file {
            RegisterFile::ArchOnly => vgprs,
            RegisterFile::Split => vgprs.max(agprs),
            RegisterFile::Unified if agprs > 0 => (vgprs.saturating_add(3) / 4 * 4).saturating_add(agprs),
            RegisterFile::Unified => vgprs,
        }
    }

    /// The occupancy of a kernel.
    pub fn occupancy(&self, usage: &Usage) -> Occupancy {
        let by_vgprs = self.by_vgprs(usage);
        let by_sgprs = self.by_sgprs(usage.sgprs);
        let by_work_groups = self.by_work_groups(usage);
        Occupancy { waves: by_vgprs.min(by_sgprs).min(by_work_groups), by_vgprs, by_sgprs, by_work_groups }
    }

    /// What the kernel takes if the runtime installs a trap handler; none where nobody has reported one at work.
    ///
    /// Observed publicly, not modelled by LLVM, not measured by us: on gfx942 a kernel of 92 or of 106 SGPRs ran in 28
    /// work-groups of one wave per compute unit where 32 were expected, 7 per SIMD instead of 8. A trap handler adds 16
    /// SGPRs to each wave; 108 and 122 are both above the 100 up to which the scalar registers hold 8 waves, and 7 is
    /// what they hold of any more. So this is the kernel with 16 SGPRs more, and the first that it costs a wave has 85.
    pub fn with_trap_handler(&self, usage: &Usage) -> Option<Usage> {
        const OBSERVED: &str = "gfx942";
        let sgprs = usage.sgprs.saturating_add(TRAP_HANDLER_SGPRS);
        (self.processor == OBSERVED).then(|| Usage { sgprs, ..usage.clone() })
    }

    /// How many work-groups of the larger size in `usage` fit into a compute unit, or a work-group processor.
    pub fn resident(&self, usage: &Usage) -> Resident {
        let unit = self.unit(usage);
        let slots = self.max_waves * unit.execution_units;
        let waves_per_group = waves_of(*usage.work_items.end(), usage);
        let by_registers = self.by_vgprs(usage).min(self.by_sgprs(usage.sgprs)) * unit.execution_units;
        let work_groups = unit.groups(slots, waves_per_group, usage.lds_bytes).min(by_registers / waves_per_group);
        Resident { work_groups, waves_per_group, slots }
    }

    /// File and granule of a wave's vector registers.
    fn vgpr_file(&self, wave_size: u32) -> (u32, u32) {
        let doubled = match self.wave_sizes {
            WaveSizes::Only64 => 1,
            WaveSizes::Only32 => 2,
            WaveSizes::Both => 64 / wave_size.clamp(32, 64),
        };
        (self.file_wave64 * doubled, self.granule_wave64 * doubled)
    }

    fn by_vgprs(&self, usage: &Usage) -> u32 {
        let (file, granule) = self.vgpr_file(usage.wave_size);
        let total = self.total_vgprs(usage.vgprs, usage.agprs);
        if total < granule {
            return self.max_waves;
        }
        let allocated = total.div_ceil(granule).saturating_mul(granule);
        (file / allocated).clamp(1, self.max_waves)
    }

    fn by_sgprs(&self, sgprs: u32) -> u32 {
        if !self.counts_sgprs() {
            return self.max_waves;
        }
        let waves = match sgprs {
            0..=80 => 10,
            81..=88 => 9,
            89..=100 => 8,
            _ => 7,
        };
        waves.min(self.max_waves)
    }

    fn unit(&self, usage: &Usage) -> Unit {
        if self.has_wgp_mode() && usage.wgp_mode { RDNA_WGP } else { self.unit }
    }

    fn by_work_groups(&self, usage: &Usage) -> u32 {
        let unit = self.unit(usage);
        let slots = self.max_waves * unit.execution_units;
        let groups = |waves: u32| unit.groups(slots, waves, usage.lds_bytes);
        let (low, high) = (waves_of(*usage.work_items.start(), usage), waves_of(*usage.work_items.end(), usage));
        let (of_low, of_high) = (groups(low) * low, groups(high) * high);
        let best = if of_high >= of_low {
            of_high
        } else {
            // Groups between the two sizes fill what the small ones leave.
            let each = (slots.saturating_sub(of_low) / groups(low)).min(high.saturating_sub(low));
            of_low + groups(low) * each
        };
        best.div_ceil(unit.execution_units).clamp(1, self.max_waves)
    }
}

impl Unit {
    /// Work-groups of so many waves each that fit.
    fn groups(&self, slots: u32, waves: u32, lds_bytes: u32) -> u32 {
        let by_slots = slots / waves;
        // Groups of one wave need no barrier, and none of the resources that bound the others.
        let by_groups = if waves > 1 { self.work_groups } else { u32::MAX };
        by_slots.min(by_groups).min(self.lds_bytes.checked_div(lds_bytes).unwrap_or(u32::MAX))
    }
}

/// Waves of a work-group.
fn waves_of(work_items: u32, usage: &Usage) -> u32 {
    work_items.div_ceil(usage.wave_size.max(1)).max(1)
}

#[cfg(test)]
mod tests;
