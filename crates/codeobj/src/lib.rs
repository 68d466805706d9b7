//! AMD GPU code objects as bytes: ELF, metadata, kernel descriptor, target ID, and the containers they travel in.
//!
//! | module | owns |
//! |---|---|
//! | [`target`] | target IDs and the processor numbers of `e_flags` |
//! | [`metadata`] | kernel metadata, from YAML text or from the MessagePack note |
//! | [`descriptor`] | the 64-byte kernel descriptor |
//! | [`code_object`] | one AMDGPU ELF file: its kernels with metadata, descriptor and code |
//! | [`container`] | bundles, fat binaries, archives: finding code objects, naming them by a path |
//!
//! Nothing here knows LLVM or assembly text. Input comes from outside: no function panics on it, loops without a
//! bound, or allocates what a header merely claims.

pub mod code_object;
pub mod container;
pub mod descriptor;
mod elf;
mod error;
pub mod metadata;
pub mod target;

pub use code_object::{CodeObject, CodeRange, Function, Kernel};
pub use descriptor::Descriptor;
pub use error::{Error, ErrorKind, Place};
pub use metadata::{Count, Detail, KernelMetadata, Metadata};
pub use target::TargetId;
