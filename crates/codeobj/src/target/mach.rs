//! The processor and feature fields of an AMDGPU ELF header's `e_flags`.
//!
//! Facts: "AMDGPU ELF header e_flags" of LLVM's AMDGPUUsage; each row as `llvm-readelf` 22.1.8 prints it, but for
//! gfx940 and gfx941, which LLVM 20 removed, and gfx117x, gfx1310 and gfx12-5-generic, which LLVM 23 added.
//!
//! ```text
//! ABI version 1 (code object v3):  7:0 processor, 8 xnack, 9 sramecc
//! ABI version 2+ (v4 and later):   7:0 processor, 9:8 xnack, 11:10 sramecc, 31:24 generic version (v6)
//!                                  a field is 0 unsupported, 1 any, 2 off, 3 on
//! ```

/// Bits of `e_flags` that hold the processor number (`EF_AMDGPU_MACH`).
pub const MACH_MASK: u32 = 0xff;

/// `EI_ABIVERSION` of code object v3, the last whose features are single bits (`ELFABIVERSION_AMDGPU_HSA_V3`).
const ABI_V3: u8 = 1;
/// `EI_ABIVERSION` of code object v6, the first with a generic version (`ELFABIVERSION_AMDGPU_HSA_V6`).
const ABI_V6: u8 = 4;
/// The newest `EI_ABIVERSION` whose flags are known here.
pub const NEWEST_ABI: u8 = ABI_V6;

/// Name of the processor with this `EF_AMDGPU_MACH` number.
pub fn processor(mach: u32) -> Option<&'static str> {
    PROCESSORS.iter().find(|(number, _)| *number == mach).map(|(_, name)| *name)
}

/// The `EF_AMDGPU_MACH` number of the processor with this name.
pub fn number(processor: &str) -> Option<u32> {
    PROCESSORS.iter().find(|(_, name)| *name == processor).map(|(number, _)| *number)
}

/// The features that `e_flags` fixes, as they are spelled in a target ID; "any" and "unsupported" give none.
pub fn features(e_flags: u32, abi_version: u8) -> impl Iterator<Item = &'static str> {
    let fixed = if abi_version <= ABI_V3 {
        // One bit each: set is on. Clear is off or unsupported, which the flags do not tell apart.
        [(e_flags & 0x100 != 0).then_some("xnack+"), (e_flags & 0x200 != 0).then_some("sramecc+")]
    } else {
        let state = |shift: u32, off, on| match e_flags >> shift & 3 {
            2 => Some(off),
            3 => Some(on),
            _ => None,
        };
        [state(8, "xnack-", "xnack+"), state(10, "sramecc-", "sramecc+")]
    };
    fixed.into_iter().flatten()
}

/// Version of a generic processor's definition (`EF_AMDGPU_GENERIC_VERSION`), recorded since code object v6.
pub fn generic_version(e_flags: u32, abi_version: u8) -> Option<u8> {
    let version = (e_flags >> 24) as u8;
    (abi_version >= ABI_V6 && version != 0).then_some(version)
}

/// `EF_AMDGPU_MACH_AMDGCN_*`, in the order of their numbers.
#[rustfmt::skip]
pub const PROCESSORS: &[(u32, &str)] = &[
    (0x20, "gfx600"), (0x21, "gfx601"), (0x22, "gfx700"), (0x23, "gfx701"),
    (0x24, "gfx702"), (0x25, "gfx703"), (0x26, "gfx704"), (0x28, "gfx801"),
    (0x29, "gfx802"), (0x2a, "gfx803"), (0x2b, "gfx810"), (0x2c, "gfx900"),
    (0x2d, "gfx902"), (0x2e, "gfx904"), (0x2f, "gfx906"), (0x30, "gfx908"),
    (0x31, "gfx909"), (0x32, "gfx90c"), (0x33, "gfx1010"), (0x34, "gfx1011"),
    (0x35, "gfx1012"), (0x36, "gfx1030"), (0x37, "gfx1031"), (0x38, "gfx1032"),
    (0x39, "gfx1033"), (0x3a, "gfx602"), (0x3b, "gfx705"), (0x3c, "gfx805"),
    (0x3d, "gfx1035"), (0x3e, "gfx1034"), (0x3f, "gfx90a"), (0x40, "gfx940"),
    (0x41, "gfx1100"), (0x42, "gfx1013"), (0x43, "gfx1150"), (0x44, "gfx1103"),
    (0x45, "gfx1036"), (0x46, "gfx1101"), (0x47, "gfx1102"), (0x48, "gfx1200"),
    (0x49, "gfx1250"), (0x4a, "gfx1151"), (0x4b, "gfx941"), (0x4c, "gfx942"),
    (0x4e, "gfx1201"), (0x4f, "gfx950"), (0x50, "gfx1310"), (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"), (0x53, "gfx10-3-generic"), (0x54, "gfx11-generic"), (0x55, "gfx1152"),
    (0x58, "gfx1153"), (0x59, "gfx12-generic"), (0x5a, "gfx1251"), (0x5b, "gfx12-5-generic"),
    (0x5c, "gfx1172"), (0x5d, "gfx1170"), (0x5e, "gfx1171"), (0x5f, "gfx9-4-generic"),
];
