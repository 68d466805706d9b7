//! LLVM, for the commands that cannot work without it.

use std::path::PathBuf;

use llvm::{Isolation, Toolchain};

/// Where LLVM is.
#[derive(clap::Args)]
pub struct Llvm {
    /// LLVM's shared library, or the folder of one [default: $COAX_LLVM, then a search]
    #[arg(long = "llvm", value_name = "PATH")]
    pub path: Option<PathBuf>,
}

impl Llvm {
    /// Finds and opens it.
    pub fn open(&self) -> Result<Toolchain, rewrite::Error> {
        let defaults = llvm::Options::default();
        let path = self.path.clone().or_else(|| defaults.path.clone());
        // Until workers encode: see `Isolation`.
        let isolation = Isolation::InProcess;
        Ok(llvm::open(&llvm::Options { path, isolation, ..defaults })?)
    }
}
