//! A kernel that is given by its figures; those that no kernel can have are refused.

use codeobj::TargetId;
use isa::RegisterFile;
use isa::occupancy::{Limits, MAX_SGPRS, MAX_WORK_ITEMS, Usage};
use resources::Occupancy;
use resources::occupancy::{Settings, SizeOrigin, limits_of, wave_size};

/// What a kernel takes.
#[derive(clap::Args)]
#[command(next_help_heading = "Figures")]
pub struct Figures {
    /// Processor, or target ID
    #[arg(long)]
    target: Option<String>,
    /// VGPRs; without --agpr the total of both, as the column `vgpr` of `summarize` has it
    #[arg(long, value_name = "N", default_value_t = 0, requires = "target")]
    vgpr: u32,
    /// AGPRs
    #[arg(long, value_name = "N", default_value_t = 0, requires = "target")]
    agpr: u32,
    /// SGPRs, VCC and the like included
    #[arg(long, value_name = "N", default_value_t = 0, requires = "target")]
    sgpr: u32,
    /// Static LDS of a work-group
    #[arg(long, value_name = "BYTES", default_value_t = 0, requires = "target")]
    lds: u32,
    /// Lanes of a wave [default: the only size, or 32]
    #[arg(long, value_name = "LANES", requires = "target")]
    wave: Option<u32>,
    /// Work-groups stay in one compute unit (gfx10 to gfx12) [default: work-group processor mode]
    #[arg(long, requires = "target")]
    cu_mode: bool,
}

impl Figures {
    /// The occupancy, or which figure is impossible.
    pub fn occupancy(&self, settings: Settings) -> Result<Occupancy, String> {
        let target = self.target.as_deref().unwrap_or_default();
        let target = TargetId::parse(target).map_err(|error| format!("--target: {error}"))?;
        let limits =
            limits_of(target.processor.as_deref().unwrap_or(&target.text)).map_err(|why| format!("--target: {why}"))?;
        self.check_registers(limits)?;
        let lds_bytes = self.lds.saturating_add(settings.dynamic_lds_bytes);
        at_most("--lds and --dynamic-lds", "bytes of LDS of a work-group", lds_bytes, limits.max_lds_bytes(), limits)?;
        if settings.workgroup_size == Some(0) {
            return Err(format!("--workgroup-size: 0 is no work-group: it has 1 to {MAX_WORK_ITEMS} work-items"));
        }
        at_most("--workgroup-size", "work-items", settings.workgroup_size.unwrap_or(1), MAX_WORK_ITEMS, limits)?;
        if self.cu_mode && !limits.has_wgp_mode() {
            return Err(format!("--cu-mode: {} has no work-group processor mode", limits.processor));
        }
        // LLVM's default where there are both sizes.
        let recorded = self.wave.or(limits.only_wave_size()).or(Some(32));
        let usage = Usage {
            wave_size: wave_size(limits, recorded).map_err(|why| format!("--wave: {why}"))?,
            wgp_mode: limits.has_wgp_mode() && !self.cu_mode,
            vgprs: self.vgpr,
            agprs: self.agpr,
            sgprs: self.sgpr,
            lds_bytes,
            work_items: settings.workgroup_size.map_or(1..=MAX_WORK_ITEMS, |size| size..=size),
        };
        let resident = limits.resident(&usage);
        if let (Some(size), 0) = (settings.workgroup_size, resident.work_groups) {
            let waves = limits.occupancy(&usage);
            return Err(format!(
                "--workgroup-size: a work-group of {size} is {} waves, and does not fit: the registers leave room for {} per SIMD",
                resident.waves_per_group,
                waves.by_vgprs.min(waves.by_sgprs)
            ));
        }
        let origin = if settings.workgroup_size.is_some() { SizeOrigin::Given } else { SizeOrigin::UpTo };
        Ok(Occupancy { limits, usage, origin, dynamic_lds_bytes: settings.dynamic_lds_bytes, used_vgprs: None })
    }

    fn check_registers(&self, limits: &Limits) -> Result<(), String> {
        let vgprs = if self.agpr == 0 { limits.max_total_vgprs() } else { limits.max_vgprs() };
        at_most("--vgpr", "VGPRs", self.vgpr, vgprs, limits)?;
        let agprs = if limits.register_file() == RegisterFile::ArchOnly { 0 } else { limits.max_vgprs() };
        at_most("--agpr", "AGPRs", self.agpr, agprs, limits)?;
        at_most("--sgpr", "SGPRs", self.sgpr, MAX_SGPRS, limits)
    }
}

fn at_most(option: &str, what: &str, figure: u32, most: u32, limits: &Limits) -> Result<(), String> {
    if figure <= most {
        return Ok(());
    }
    Err(format!("{option}: {figure} {what} are more than the {most} of {}", limits.processor))
}
