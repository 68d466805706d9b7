//! Options that say how inputs are read; shared by the commands that make snapshots.

use std::path::{Path, PathBuf};

use resources::Snapshot;
use resources::binary::Instructions;
use resources::collect::{self, InputError, Options};

use crate::counter::LlvmCounter;
use crate::progress::Progress;

/// How inputs are read.
#[derive(clap::Args)]
pub struct Reading {
    /// Do not decode binaries: their instruction columns are n/a
    #[arg(long)]
    metadata_only: bool,
    /// LLVM's shared library, or the folder of one [default: $COAX_LLVM, then a search]
    #[arg(long, value_name = "PATH")]
    llvm: Option<PathBuf>,
}

impl Reading {
    /// The kernels of one input.
    pub fn snapshot(&self, path: &Path) -> Result<Snapshot, InputError> {
        self.with_options(|options| collect::snapshot(path, options))
    }

    /// The kernels of two inputs, read side by side.
    pub fn snapshots(&self, paths: [&Path; 2]) -> [Result<Snapshot, InputError>; 2] {
        self.with_options(|options| {
            let [before, after] = paths;
            let (before, after) =
                rayon::join(|| collect::snapshot(before, options), || collect::snapshot(after, options));
            [before, after]
        })
    }

    /// The options as they have to be given again.
    pub fn arguments(&self) -> Vec<String> {
        let metadata_only = self.metadata_only.then(|| "--metadata-only".to_owned());
        let llvm = self.llvm.iter().flat_map(|path| ["--llvm".to_owned(), path.display().to_string()]);
        metadata_only.into_iter().chain(llvm).collect()
    }

    fn with_options<T>(&self, read: impl FnOnce(Options<'_>) -> T) -> T {
        let counter = LlvmCounter::new(self.llvm.clone());
        let progress = Progress::new();
        let instructions = if self.metadata_only { Instructions::NotWanted } else { Instructions::Counted(&counter) };
        read(Options { instructions, progress: &|done, total| progress.at(done, total) })
    }
}
