//! What a processor has: register files and the instructions that spills use.
//!
//! Source: LLVM 22's AMDGPU backend documentation ("Processors", "Kernel descriptor") and its target definitions; the
//! register-file column agrees with the occupancy that LLVM prints for the same targets.

/// How arch VGPRs and accumulator VGPRs share a SIMD's vector registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterFile {
    /// There are no accumulator VGPRs.
    ArchOnly,
    /// Two files of equal size (gfx908): the larger count decides occupancy.
    Split,
    /// One file (gfx90a and later MFMA parts): accumulators follow the arch VGPRs, aligned to 4.
    Unified,
}

/// The facts of one processor that the resource table needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The instruction set's generation: 9 for gfx9xx, 12 for gfx12xx.
    pub generation: u32,
    /// How VGPRs and AGPRs share the file.
    pub register_file: RegisterFile,
    /// Spills and private arrays go through `scratch_*` instructions (else through `buffer_*`).
    pub scratch_instructions: bool,
    /// SGPRs that every kernel is charged for XNACK and FLAT_SCRATCH whether it uses them or not.
    has_architected_flat_scratch: bool,
}

/// gfx9 processors whose accumulators share the VGPR file.
const UNIFIED: &[&str] = &["gfx90a", "gfx940", "gfx941", "gfx942", "gfx950", "gfx9-4-generic"];
/// gfx9 processors that address scratch by `scratch_*` (architected flat scratch).
const GFX9_SCRATCH: &[&str] = &["gfx940", "gfx941", "gfx942", "gfx950", "gfx9-4-generic"];

impl Target {
    /// The facts for `processor` (`gfx942`, `gfx9-4-generic`, `gfx1250-strict`), whose generation the caller has read
    /// off the name. Later processors of a known generation are taken to be like their siblings.
    pub fn new(processor: &str, generation: u32) -> Target {
        let name = processor.strip_suffix("-strict").unwrap_or(processor);
        let register_file = match name {
            "gfx908" => RegisterFile::Split,
            _ if UNIFIED.contains(&name) => RegisterFile::Unified,
            _ => RegisterFile::ArchOnly,
        };
        let gfx9_scratch = GFX9_SCRATCH.contains(&name);
        Target {
            generation,
            register_file,
            scratch_instructions: generation >= 11 || gfx9_scratch,
            has_architected_flat_scratch: generation >= 12 || gfx9_scratch,
        }
    }

    /// The fewest and the most vector registers that `arch` VGPRs and `acc` AGPRs can be reported as. They differ
    /// only in a unified file, where LLVM aligns the arch part to 4 before it adds the accumulators.
    pub fn total_vgprs(&self, arch: u64, acc: u64) -> std::ops::RangeInclusive<u64> {
        match self.register_file {
            RegisterFile::Unified if acc > 0 => {
                arch.saturating_add(acc)
                    ..=arch.saturating_add(3).saturating_div(4).saturating_mul(4).saturating_add(acc)
            }
            _ => arch.max(acc)..=arch.max(acc),
        }
    }

    /// LLVM's `extrasgprs(uses_vcc, uses_flat_scratch, uses_xnack)`: SGPRs beyond the numbered ones.
    pub fn extra_sgprs(&self, uses_vcc: bool, uses_flat_scratch: bool, uses_xnack: bool) -> u64 {
        let vcc = if uses_vcc { 2 } else { 0 };
        match self.generation {
            10.. => vcc,
            9 if uses_flat_scratch || self.has_architected_flat_scratch => 6,
            9 if uses_xnack => 4,
            9 => vcc,
            8 if uses_flat_scratch => 6,
            8 if uses_xnack => 4,
            8 => vcc,
            _ if uses_flat_scratch => 4,
            _ => vcc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unified_files_align_the_arch_part_before_they_add_accumulators() {
        // LLVM 22.1.8: 129 arch + 1 accumulator is 133 registers on gfx90a and later.
        assert!(Target::new("gfx942", 9).total_vgprs(129, 1).contains(&133));
        assert_eq!(Target::new("gfx942", 9).total_vgprs(48, 0), 48..=48);
        assert_eq!(Target::new("gfx908", 9).total_vgprs(64, 60), 64..=64);
    }

    #[test]
    fn spills_use_scratch_instructions_from_gfx11_and_on_gfx94x() {
        for (name, generation, scratch) in [
            ("gfx906", 9, false),
            ("gfx90a", 9, false),
            ("gfx942", 9, true),
            ("gfx950", 9, true),
            ("gfx1030", 10, false),
            ("gfx1100", 11, true),
            ("gfx1250-strict", 12, true),
        ] {
            assert_eq!(Target::new(name, generation).scratch_instructions, scratch, "{name}");
        }
    }
}
