//! `coax show`: what is in a file.
use std::path::PathBuf;
use std::process::ExitCode;
/// Show
#[derive(clap::Args)]
pub struct Opts {
    /// File
    file: PathBuf,
}
impl Opts {
    /// Runs.
    pub fn run(self) -> ExitCode {
        let _ = self.file;
        ExitCode::from(3)
    }
}
