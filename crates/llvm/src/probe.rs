//! Whether a library knows a target. LLVM prints a warning for a processor that it does not know and goes on with
//! an empty feature set; creating a disassembler then ends the process (`LLVM ERROR: disassembly not yet supported for
//! subtarget`: seen with LLVM 14, 15 and 22).
//!
//! Two questions, neither of which reads the version (AMD's forks backport):
//! 1. Which machine number does it write into the ELF header of an empty object for that processor? 0 means "unknown"
//!    (`EF_AMDGPU_MACH_NONE`). This asks LLVM's own list, is safe for any name, and takes 2 ms.
//! 2. Does it print what is expected for one word that only that family has? That finds a library that knows the name
//!    but not yet the instructions.

use std::fmt;
use std::sync::Arc;

use crate::emitter::Emitter;
use crate::encodings::{Outcome, Window};
use crate::engine::Disassemble;
use crate::library::Library;
use crate::{Error, ErrorKind, Target};

/// `e_flags` of a 64-bit ELF header: 4 bytes at offset 48.
const E_FLAGS: std::ops::Range<usize> = 48..52;
/// `EF_AMDGPU_MACH` (AMDGPU backend guide, "ELF Header").
const MACH_MASK: u32 = 0xff;
/// The machines that LLVM knows and has no disassembler for: r600 (below 0x20), gfx600–gfx602 and gfx700–gfx705.
const NOT_DISASSEMBLED: [std::ops::RangeInclusive<u32>; 3] = [0x01..=0x1f, 0x20..=0x26, 0x3a..=0x3b];

/// Words that only one family decodes to that mnemonic, by the start of the processor's name: the longest start counts.
/// In wave32 and in wave64 (so no `v_dual_…`). Source: `llvm-mc-22 --show-encoding`.
const FAMILY_WORDS: &[(&str, [u32; 4], &str)] = &[
    ("gfx8", [0xbf81_0000, 0, 0, 0], "s_endpgm"),
    ("gfx9", [0xbf81_0000, 0, 0, 0], "s_endpgm"),
    ("gfx908", [0xd3c0_0000, 0x048a_0300, 0, 0], "v_mfma_f32_32x32x1"),
    ("gfx90a", [0xd3b0_4000, 0x1c1a_0902, 0, 0], "v_pk_fma_f32"),
    ("gfx9-4", [0xd3d7_0000, 0x0422_0d04, 0, 0], "v_mfma_i32_16x16x32_i8"),
    ("gfx94", [0xd3f3_8000, 0x0402_0902, 0, 0], "v_mfma_f32_16x16x32_fp8_fp8"),
    ("gfx95", [0xd3ac_0000, 0x0002_2b14, 0xd3ad_0800, 0x0402_1904], "v_mfma_scale_f32_16x16x128_f8f6f4"),
    ("gfx10", [0xbfa1_003f, 0, 0, 0], "s_clause"),
    ("gfx11", [0xbf87_0001, 0, 0, 0], "s_delay_alu"),
    ("gfx12", [0xbfc0_0003, 0, 0, 0], "s_wait_loadcnt"),
    ("gfx125", [0xcc35_0000, 0x0402_0501, 0xcc33_0000, 0x04a2_3108], "v_wmma_scale_f32_16x16x128_f8f6f4"),
];

/// # Errors
/// [`ErrorKind::UnknownTarget`] when LLVM has no machine number for the processor, or no disassembler.
pub(crate) fn processor_is_known(library: &Arc<Library>, target: &Target) -> Result<(), Error> {
    match machine_number(&Emitter::new(library, target)?.emit("", None).object) {
        0 => Err(unknown(library, target, "does not know the processor")),
        mach if !has_disassembler(mach) => Err(unknown(library, target, "has no disassembler for the processor")),
        _ => Ok(()),
    }
}

/// # Errors
/// [`ErrorKind::UnknownTarget`] when the family's own instruction is not printed as it should be.
pub(crate) fn family_is_decoded(
    disassembler: &mut dyn Disassemble,
    library: &dyn fmt::Display,
    target: &Target,
) -> Result<(), Error> {
    let Some((window, mnemonic)) = family_word(target) else { return Ok(()) };
    match disassembler.decode(&window) {
        Outcome::Decoded { text, .. } if text.starts_with(mnemonic) => Ok(()),
        _ => Err(unknown(library, target, &format!("does not decode `{mnemonic}` of the processor"))),
    }
}

/// An instruction of the target's family and its mnemonic; `None` for a family without a row.
pub(crate) fn family_word(target: &Target) -> Option<(Window, &'static str)> {
    let rows = FAMILY_WORDS.iter().filter(|(family, ..)| target.processor().starts_with(family));
    let (_, [a, b, c, d], mnemonic) = rows.max_by_key(|(family, ..)| family.len())?;
    Some((Window([*a, *b, *c, *d, 0]), mnemonic))
}

fn unknown(library: &dyn fmt::Display, target: &Target, what: &str) -> Error {
    Error::new(ErrorKind::UnknownTarget, format!("{library} {what} `{}`", target.processor()))
}

/// The `EF_AMDGPU_MACH` in an object's header; 0 when there is none.
pub(crate) fn machine_number(object: &[u8]) -> u32 {
    let flags = object.get(E_FLAGS).and_then(|flags| flags.first_chunk());
    flags.map_or(0, |flags| u32::from_le_bytes(*flags)) & MACH_MASK
}

/// Whether LLVM has a disassembler for a machine, which it dies without.
pub(crate) fn has_disassembler(machine: u32) -> bool {
    machine != 0 && !NOT_DISASSEMBLED.iter().any(|range| range.contains(&machine))
}
