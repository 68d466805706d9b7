//! Parts of containers that are stated to be for something else than an AMD GPU.
//!
//! Only a name that is known excuses bytes that are not: `amdgdn` may be a damaged `amdgcn`.

/// First parts of triples, as LLVM's `Triple::parseArch` reads them, and the variants that SYCL adds.
#[rustfmt::skip]
const ARCHITECTURES: &[&str] = &[
    "aarch64", "aarch64_be", "arm", "arm64", "armv7", "armv7a", "armv7l", "i386", "i586", "i686", "loongarch64",
    "native_cpu", "nvptx", "nvptx64", "powerpc64", "powerpc64le", "ppc64", "ppc64le", "riscv32", "riscv64", "s390x",
    "spir", "spir64", "spir64_fpga", "spir64_gen", "spir64_x86_64", "spirv", "spirv32", "spirv64", "wasm32", "x86_64",
];

/// Whether `triple` is for an architecture that is known, none of them an AMD GPU's.
pub(super) fn is_known(triple: &str) -> bool {
    let architecture = triple.split_once('-').map_or(triple, |(architecture, _)| architecture);
    ARCHITECTURES.contains(&architecture)
}
