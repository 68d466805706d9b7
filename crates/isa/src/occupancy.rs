//! How many waves an execution unit (SIMD) can hold at once, as LLVM 22 computes it.
//!
//! ```text
//! occupancy = min(by vector registers, by scalar registers, by work-groups and their LDS)
//! ```
//!
//! The model reproduces what `llc-22` prints for 35,497 kernels with forced resources on the targets of [`LIMITS`]
//! (measured 2026-11; a sample is in the tests). It is a bound by resources, not a measurement of hardware: the
//! runtime may reserve more, and LLVM reports the best case over all work-group sizes that a kernel allows.

use crate::RegisterFile;
use std::ops::RangeInclusive;

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

    fn by_vgprs(&self, usage: &Usage) -> u32 {
        let doubled = match self.wave_sizes {
            WaveSizes::Only64 => 1,
            WaveSizes::Only32 => 2,
            WaveSizes::Both => 64 / usage.wave_size.clamp(32, 64),
        };
        let (file, granule) = (self.file_wave64 * doubled, self.granule_wave64 * doubled);
        let total = self.total_vgprs(usage.vgprs, usage.agprs);
        if total < granule {
            return self.max_waves;
        }
        let allocated = total.div_ceil(granule).saturating_mul(granule);
        (file / allocated).clamp(1, self.max_waves)
    }

    fn by_sgprs(&self, sgprs: u32) -> u32 {
        if self.wave_sizes != WaveSizes::Only64 {
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

    fn by_work_groups(&self, usage: &Usage) -> u32 {
        let unit = if self.wave_sizes == WaveSizes::Both && usage.wgp_mode { RDNA_WGP } else { self.unit };
        let slots = self.max_waves * unit.execution_units;
        let waves = |work_items: u32| work_items.div_ceil(usage.wave_size.max(1)).max(1);
        let groups = |waves: u32| {
            let by_slots = slots / waves;
            // Groups of one wave need no barrier, and none of the resources that bound the others.
            let by_groups = if waves > 1 { unit.work_groups } else { u32::MAX };
            by_slots.min(by_groups).min(unit.lds_bytes.checked_div(usage.lds_bytes).unwrap_or(u32::MAX))
        };
        let (low, high) = (waves(*usage.work_items.start()), waves(*usage.work_items.end()));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns of the table, by name.
    fn check(table: &str) -> usize {
        let mut lines = table.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.next().expect("a header").split('\t').collect();
        let mut rows = 0;
        for line in lines {
            let cells: Vec<&str> = line.split('\t').collect();
            let cell = |name: &str| cells[names.iter().position(|n| *n == name).expect("a column")];
            let number = |name: &str| cell(name).parse::<u32>().unwrap_or_else(|_| panic!("{name} of {line}"));
            let usage = Usage {
                wave_size: number("wave"),
                wgp_mode: cell("mode") == "wgp",
                vgprs: number("vgprs"),
                agprs: number("agprs"),
                sgprs: number("sgprs"),
                lds_bytes: number("lds_bytes"),
                work_items: number("wg_lo")..=number("wg_hi"),
            };
            let limits = Limits::of(cell("target")).expect("a measured target");
            assert_eq!(limits.total_vgprs(usage.vgprs, usage.agprs), number("total_vgprs"), "{line}");
            assert_eq!(limits.occupancy(&usage).waves, number("occupancy"), "{line}");
            rows += 1;
        }
        rows
    }

    #[test]
    fn a_sample_of_kernels_has_the_occupancy_that_llvm_prints() {
        assert!(check(include_str!("../tests/data/occupancy.tsv")) > 100);
    }

    #[test]
    fn the_whole_table_has_the_occupancy_that_llvm_prints() {
        let Some(corpus) = std::env::var_os("COAX_CORPUS") else {
            return eprintln!("skipped: set COAX_CORPUS to a folder with isa/occupancy_llvm22.tsv");
        };
        match std::fs::read_to_string(std::path::Path::new(&corpus).join("isa/occupancy_llvm22.tsv")) {
            Ok(table) => assert!(check(&table) > 2000),
            Err(error) => eprintln!("skipped: isa/occupancy_llvm22.tsv: {error}"),
        }
    }

    #[test]
    fn one_register_too_many_halves_the_waves() {
        let limits = Limits::of("gfx942").expect("measured");
        let usage = |vgprs, agprs| Usage {
            wave_size: 64,
            wgp_mode: false,
            vgprs,
            agprs,
            sgprs: 32,
            lds_bytes: 0,
            work_items: 256..=256,
        };
        assert_eq!(limits.occupancy(&usage(128, 128)).waves, 2);
        assert_eq!(limits.occupancy(&usage(132, 128)).waves, 1);
    }

    #[test]
    fn impossible_numbers_give_the_smallest_occupancy() {
        for limits in LIMITS {
            let usage = Usage {
                wave_size: 0,
                wgp_mode: true,
                vgprs: u32::MAX,
                agprs: u32::MAX,
                sgprs: u32::MAX,
                lds_bytes: u32::MAX,
                work_items: 0..=0,
            };
            assert_eq!(limits.occupancy(&usage).waves, 1, "{}", limits.processor);
        }
    }
}
