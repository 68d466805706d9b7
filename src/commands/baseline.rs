//! `coax baseline`: a snapshot kept in a repository, as a ratchet.

mod check;
mod write;

use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::process::ExitCode;

use resources::Snapshot;
use resources::collect::io_reason;
use resources::pairing::Rewrite;

/// Pin the resources of every kernel, and check that none gets worse
///
/// A baseline is a snapshot in a file that is kept with the code. `write` pins what is there now and says what changed
/// against the file that was there; `check` says of each kernel whether it is NEW, WORSE, IMPROVED, GONE or as it was. A
/// baseline that is behind is never silently green: a kernel that improved has to be pinned again, else it could get worse
/// again unnoticed.
///
/// The last line of stdout is the verdict and agrees with the exit code: 0 RESULT: OK, 1 RESULT: REGRESSION (a kernel is
/// worse), 2 RESULT: NOT TRUSTWORTHY (something is not known, or the baseline is not that of these kernels).
#[derive(clap::Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
#[command(after_long_help = "Examples:
  $ coax baseline write pinned.json before
  $ coax baseline check baseline/mixed.json before
  $ coax baseline check baseline/mixed.json after --match rmsnorm_fwd=rmsnorm                # exit 1
  $ coax baseline check baseline/mixed.json after --only 'softmax*' --allow-kernel '*'       # exit 2
  $ coax baseline check baseline/mixed.json after --only 'softmax*' --allow-kernel '*' --accept improved")]
pub struct Opts {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand)]
enum Task {
    Write(Box<write::Opts>),
    Check(Box<check::Opts>),
}

impl Opts {
    /// Runs the command.
    pub fn run(self) -> ExitCode {
        match self.task {
            Task::Write(opts) => opts.run(),
            Task::Check(opts) => opts.run(),
        }
    }
}

/// The command that writes this baseline, as it can be pasted.
fn write_command(file: &Path, input: &Path, rewrites: &[Rewrite], options: &[String]) -> String {
    let paths = [file, input].map(|path| path.display().to_string());
    let rewrites = rewrites.iter().flat_map(|rewrite| ["--match".to_owned(), rewrite.to_string()]);
    let words = ["coax", "baseline", "write"].map(str::to_owned).into_iter().chain(paths);
    let words = words.chain(rewrites).chain(options.to_vec());
    words.map(|word| quoted(&word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./=+,:@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Reads a baseline; `way_out` follows the reason when it is none.
fn read(file: &Path, way_out: &str) -> Result<Snapshot, String> {
    let name = file.display();
    // `<(git show main:baseline.json)` is a pipe; a device might never end.
    let is_readable = |kind: std::fs::FileType| kind.is_file() || kind.is_fifo();
    if std::fs::metadata(file).is_ok_and(|metadata| !is_readable(metadata.file_type())) {
        return Err(format!("{name}: is no file; expected a baseline, as `coax baseline write` writes it"));
    }
    let text = std::fs::read(file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!("{name}: there is no such baseline; {way_out}"),
        _ => format!("{name}: {}", io_reason(&error)),
    })?;
    Snapshot::from_json(&text).map_err(|why| {
        let space = if why.starts_with(|c: char| c.is_ascii_digit()) { "" } else { " " };
        format!("{name}:{space}{why}; {way_out}")
    })
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_can_be_pasted() {
        assert_eq!(quoted("a/b-1.json"), "a/b-1.json");
        assert_eq!(quoted("lib.so!gfx942"), "'lib.so!gfx942'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
