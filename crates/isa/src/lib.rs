//! Facts about the instruction set and the register files of AMD GPUs, one table each.
//!
//! `target` says what a processor has; `occupancy` how many waves fit into it; `site` what a mnemonic means to the
//! resource table. Nothing here knows
//! files, text syntax or LLVM.

pub mod occupancy;
pub mod site;
pub mod target;

pub use occupancy::Occupancy;
pub use site::Site;
pub use target::{RegisterFile, Target};
