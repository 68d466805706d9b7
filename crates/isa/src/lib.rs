//! Facts about the instruction set and the register files of AMD GPUs, one table each.
//!
//! `target` says what a processor has; `site` says what a mnemonic means to the resource table. Nothing here knows
//! files, text syntax or LLVM.

pub mod site;
pub mod target;

pub use site::Site;
pub use target::{RegisterFile, Target};
