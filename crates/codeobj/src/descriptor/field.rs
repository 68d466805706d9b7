//! The bit fields of the kernel descriptor, one row each.
//!
//! Names are those of the `.amdhsa_*` directives where there is one, else LLVM's. Facts:
//! `llvm/Support/AMDHSAKernelDescriptor.h` and "Kernel Descriptor" in AMDGPUUsage.

use super::SIZE;

/// Processors whose descriptors have the same fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// gfx6, gfx7, gfx8
    Gfx6To8,
    /// gfx900 to gfx909, gfx90c, gfx9-generic
    Gfx9,
    /// gfx90a, gfx94x, gfx950, gfx9-4-generic: AGPRs and VGPRs share one file
    Gfx90a,
    /// gfx10
    Gfx10,
    /// gfx11
    Gfx11,
    /// gfx120x, gfx12-generic
    Gfx120,
    /// gfx125x
    Gfx125,
}

impl Family {
    /// All of them, oldest first.
    pub const ALL: [Family; 7] = {
        use Family::*;
        [Gfx6To8, Gfx9, Gfx90a, Gfx10, Gfx11, Gfx120, Gfx125]
    };

    /// Family of a processor name; none for processors whose descriptor is not known here (gfx13).
    pub fn of(processor: &str) -> Option<Family> {
        let unified = ["gfx90a", "gfx94", "gfx95", "gfx9-4-generic"];
        Some(match crate::target::generation(processor)? {
            6..=8 => Family::Gfx6To8,
            9 if unified.iter().any(|name| processor.starts_with(name)) => Family::Gfx90a,
            9 => Family::Gfx9,
            10 => Family::Gfx10,
            11 => Family::Gfx11,
            12 if processor.starts_with("gfx125") || processor == "gfx12-5-generic" => Family::Gfx125,
            12 => Family::Gfx120,
            _ => return None,
        })
    }

    /// VGPRs per step of `granulated_workitem_vgpr_count` (LLVM's `getVGPREncodingGranule`).
    pub fn vgpr_granule(self, wave32: bool) -> u32 {
        match (self, wave32) {
            (Family::Gfx6To8 | Family::Gfx9, _) => 4,
            (Family::Gfx90a, _) => 8,
            (Family::Gfx10 | Family::Gfx11 | Family::Gfx120, true) => 8,
            (Family::Gfx10 | Family::Gfx11 | Family::Gfx120, false) => 4,
            (Family::Gfx125, true) => 16,
            (Family::Gfx125, false) => 8,
        }
    }

    /// Whether waves may have 32 lanes.
    pub fn has_wave32(self) -> bool {
        !matches!(self, Family::Gfx6To8 | Family::Gfx9 | Family::Gfx90a)
    }

    const fn mask(self) -> u8 {
        1 << self as u8
    }
}

/// Where a field is, and on which processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Directive name without `.amdhsa_`.
    pub name: &'static str,
    /// First byte of the little-endian word that holds it.
    pub byte: usize,
    /// Lowest bit within that word.
    pub bit: usize,
    /// Bits.
    pub width: usize,
    families: u8,
}

impl Field {
    /// Whether `family` defines the field.
    pub fn exists_on(&self, family: Family) -> bool {
        self.families & family.mask() != 0
    }

    /// The raw value in a descriptor.
    pub fn get(&self, descriptor: &[u8; SIZE]) -> u64 {
        let mut word = [0; 8];
        let end = SIZE.min(self.byte + 8);
        word[..end - self.byte].copy_from_slice(&descriptor[self.byte..end]);
        u64::from_le_bytes(word) >> self.bit & self.max()
    }

    /// The largest raw value.
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Writes a raw value and leaves all other bits as they are; `false`, and nothing written, for one above
    /// [`max`](Self::max).
    #[must_use]
    pub fn set(&self, descriptor: &mut [u8; SIZE], value: u64) -> bool {
        if value > self.max() {
            return false;
        }
        let mut word = [0; 8];
        let end = SIZE.min(self.byte + 8);
        word[..end - self.byte].copy_from_slice(&descriptor[self.byte..end]);
        let others = u64::from_le_bytes(word) & !(self.max() << self.bit);
        let word = (others | value << self.bit).to_le_bytes();
        descriptor[self.byte..end].copy_from_slice(&word[..end - self.byte]);
        true
    }
}

const ALL: u8 = 0x7f;
const GFX6_8: u8 = Family::Gfx6To8.mask();
const GFX9: u8 = Family::Gfx9.mask() | GFX90A;
const GFX90A: u8 = Family::Gfx90a.mask();
const GFX10: u8 = Family::Gfx10.mask();
const GFX11: u8 = Family::Gfx11.mask();
const GFX120: u8 = Family::Gfx120.mask();
const GFX125: u8 = Family::Gfx125.mask();
const GFX12: u8 = GFX120 | GFX125;
const GFX6_11: u8 = ALL & !GFX12;
const GFX9_ON: u8 = ALL & !GFX6_8;
const GFX10_ON: u8 = GFX9_ON & !GFX9;

const RSRC3: usize = 44;
const RSRC1: usize = 48;
const RSRC2: usize = 52;
const PROPERTIES: usize = 56;
const PRELOAD: usize = 58;

const fn row(name: &'static str, byte: usize, bit: usize, width: usize, families: u8) -> Field {
    Field { name, byte, bit, width, families }
}

/// Every field, in the order of the bytes.
#[rustfmt::skip]
pub const FIELDS: &[Field] = &[
    row("group_segment_fixed_size",         0, 0, 32, ALL),
    row("private_segment_fixed_size",       4, 0, 32, ALL),
    row("kernarg_size",                     8, 0, 32, ALL),
    row("kernel_code_entry_byte_offset",   16, 0, 64, ALL),
    row("accum_offset",                     RSRC3,  0, 6, GFX90A), // granules of 4, less one
    row("shared_vgpr_count",                RSRC3,  0, 4, GFX10 | GFX11),
    row("inst_pref_size",                   RSRC3,  4, 6, GFX11),
    row("inst_pref_size",                   RSRC3,  4, 8, GFX12),
    row("trap_on_start",                    RSRC3, 10, 1, GFX11),
    row("trap_on_end",                      RSRC3, 11, 1, GFX11),
    row("glg_en",                           RSRC3, 13, 1, GFX12),
    row("named_barrier_count",              RSRC3, 14, 3, GFX125), // granules of 4
    row("tg_split",                         RSRC3, 16, 1, GFX90A),
    row("enable_dynamic_vgpr",              RSRC3, 17, 1, GFX125),
    row("tcp_split",                        RSRC3, 18, 3, GFX125),
    row("enable_didt_throttle",             RSRC3, 21, 1, GFX125),
    row("image_op",                         RSRC3, 31, 1, GFX11 | GFX12),
    row("granulated_workitem_vgpr_count",   RSRC1,  0, 6, ALL), // see `Descriptor::allocated_vgprs`
    row("granulated_wavefront_sgpr_count",  RSRC1,  6, 4, ALL), // see `Descriptor::allocated_sgprs`
    row("priority",                         RSRC1, 10, 2, ALL),
    row("float_round_mode_32",              RSRC1, 12, 2, ALL),
    row("float_round_mode_16_64",           RSRC1, 14, 2, ALL),
    row("float_denorm_mode_32",             RSRC1, 16, 2, ALL),
    row("float_denorm_mode_16_64",          RSRC1, 18, 2, ALL),
    row("priv",                             RSRC1, 20, 1, ALL),
    row("dx10_clamp",                       RSRC1, 21, 1, GFX6_11),
    row("round_robin_scheduling",           RSRC1, 21, 1, GFX12),
    row("debug_mode",                       RSRC1, 22, 1, ALL),
    row("ieee_mode",                        RSRC1, 23, 1, GFX6_11),
    row("disable_perf",                     RSRC1, 23, 1, GFX12),
    row("bulky",                            RSRC1, 24, 1, ALL),
    row("cdbg_user",                        RSRC1, 25, 1, ALL),
    row("fp16_overflow",                    RSRC1, 26, 1, GFX9_ON),
    row("flat_scratch_is_nv",               RSRC1, 27, 1, GFX125),
    row("workgroup_processor_mode",         RSRC1, 29, 1, GFX10_ON),
    row("memory_ordered",                   RSRC1, 30, 1, GFX10_ON),
    row("forward_progress",                 RSRC1, 31, 1, GFX10_ON),
    row("enable_private_segment",           RSRC2,  0, 1, ALL), // older directive: system_sgpr_private_segment_wavefront_offset
    row("user_sgpr_count",                  RSRC2,  1, 5, ALL & !GFX125),
    row("user_sgpr_count",                  RSRC2,  1, 6, GFX125),
    row("enable_trap_handler",              RSRC2,  6, 1, GFX6_11),
    row("enable_dynamic_vgpr",              RSRC2,  6, 1, GFX120),
    row("system_sgpr_workgroup_id_x",       RSRC2,  7, 1, ALL),
    row("system_sgpr_workgroup_id_y",       RSRC2,  8, 1, ALL),
    row("system_sgpr_workgroup_id_z",       RSRC2,  9, 1, ALL),
    row("system_sgpr_workgroup_info",       RSRC2, 10, 1, ALL),
    row("system_vgpr_workitem_id",          RSRC2, 11, 2, ALL),
    row("exception_address_watch",          RSRC2, 13, 1, ALL),
    row("exception_memory",                 RSRC2, 14, 1, ALL),
    row("granulated_lds_size",              RSRC2, 15, 9, ALL),
    row("exception_fp_ieee_invalid_op",     RSRC2, 24, 1, ALL),
    row("exception_fp_denorm_src",          RSRC2, 25, 1, ALL),
    row("exception_fp_ieee_div_zero",       RSRC2, 26, 1, ALL),
    row("exception_fp_ieee_overflow",       RSRC2, 27, 1, ALL),
    row("exception_fp_ieee_underflow",      RSRC2, 28, 1, ALL),
    row("exception_fp_ieee_inexact",        RSRC2, 29, 1, ALL),
    row("exception_int_div_zero",           RSRC2, 30, 1, ALL),
    row("user_sgpr_private_segment_buffer", PROPERTIES,  0, 1, ALL),
    row("user_sgpr_dispatch_ptr",           PROPERTIES,  1, 1, ALL),
    row("user_sgpr_queue_ptr",              PROPERTIES,  2, 1, ALL),
    row("user_sgpr_kernarg_segment_ptr",    PROPERTIES,  3, 1, ALL),
    row("user_sgpr_dispatch_id",            PROPERTIES,  4, 1, ALL),
    row("user_sgpr_flat_scratch_init",      PROPERTIES,  5, 1, ALL),
    row("user_sgpr_private_segment_size",   PROPERTIES,  6, 1, ALL),
    row("wavefront_size32",                 PROPERTIES, 10, 1, GFX10_ON),
    row("uses_dynamic_stack",               PROPERTIES, 11, 1, ALL),
    row("user_sgpr_kernarg_preload_length", PRELOAD, 0, 7, GFX90A | GFX125),
    row("user_sgpr_kernarg_preload_offset", PRELOAD, 7, 9, GFX90A | GFX125),
];
