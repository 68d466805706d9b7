//! LLVM, for the commands that cannot work without it.

use std::path::PathBuf;

use llvm::Toolchain;

/// Where LLVM is.
#[derive(clap::Args)]
pub struct Llvm {
    /// LLVM's shared library or libamd_comgr.so, or the folder of one [default: $COAX_LLVM, then a search]
    #[arg(long = "llvm", value_name = "PATH")]
    path: Option<PathBuf>,
}

impl Llvm {
    /// What the user chose, if anything.
    pub fn path(&self) -> Option<PathBuf> {
        self.path.clone().or_else(|| llvm::Options::default().path)
    }

    /// Finds and opens it, with what earlier runs learnt of it.
    pub fn open(&self) -> Result<Toolchain, rewrite::Error> {
        Ok(llvm::open(&llvm::Options { path: self.path(), cache: llvm::cache_folder(), ..llvm::Options::default() })?)
    }
}
