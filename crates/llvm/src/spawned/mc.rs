//! The program `llvm-mc`, started for every text.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::run_within;
use crate::emitter::Emission;
use crate::target::TRIPLE;
use crate::{Assembly, Diagnostic, Encoded, Error, ErrorKind, Severity, Target, directives, instructions};

/// How many instructions' texts one process is given: it starts in the time of some of them.
const BATCH_TEXTS: usize = 4000;
/// The name of a source text, with which diagnostics begin.
const SOURCE: &str = "in.s";

/// See the module.
pub(super) struct Mc {
    program: PathBuf,
    timeout: Duration,
}

impl Mc {
    /// That of the same LLVM as `objdump`; whether it is there shows when it is needed.
    pub fn beside(objdump: &Path, timeout: Duration) -> Self {
        let name = objdump.file_name().unwrap_or_default().to_string_lossy().replacen("llvm-objdump", "llvm-mc", 1);
        Mc { program: objdump.with_file_name(name), timeout }
    }

    /// As [`crate::Encoder::encode`]. A text that kills the program is found by halving.
    pub fn encode(&self, target: &Target, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        let mut failure = None;
        let mut emit = |source: &str| match failure {
            Some(_) => Emission::default(), // it would fail again
            None => self.emit(target, source).unwrap_or_else(|error| {
                failure = Some(error);
                Emission::default()
            }),
        };
        let encoded = texts.chunks(BATCH_TEXTS).flat_map(|batch| instructions::encode(batch, &mut emit)).collect();
        failure.map_or(Ok(encoded), |error| Err(self.failed(&error)))
    }

    /// As [`crate::Assembler::assemble`].
    pub fn assemble(&self, target: &Target, source: &str) -> Result<Assembly, Error> {
        let emission = self.emit(target, &directives::understood(target, source));
        let Emission { object, diagnostics } = emission.map_err(|error| self.failed(&error))?;
        Ok(Assembly { object: (!object.is_empty()).then_some(object), diagnostics })
    }

    /// Assembles `source` as it is.
    fn emit(&self, target: &Target, source: &str) -> io::Result<Emission> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join(SOURCE), source)?;
        let [object, err] = ["out.o", "err"].map(|name| folder.path().join(name));
        let mut command = Command::new(&self.program);
        command
            .arg(format!("--triple={TRIPLE}"))
            .arg(format!("--mcpu={}", target.processor()))
            .arg(format!("--mattr={}", target.feature_string()))
            .args(["--filetype=obj", "-o", "out.o", SOURCE])
            .stdout(Stdio::null())
            .stderr(File::create(&err)?);
        let status = run_within(self.timeout, folder.path(), &mut command)?;
        let err = String::from_utf8_lossy(&fs::read(err)?).into_owned();
        let mut diagnostics: Vec<Diagnostic> = err.lines().filter_map(diagnostic).collect();
        if status.success() {
            return Ok(Emission { object: fs::read(object)?, diagnostics });
        }
        if diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error) {
            let last_words = err.lines().next().unwrap_or_default();
            diagnostics.push(Diagnostic::of_death(&format!("{status}; {last_words}")));
        }
        Ok(Emission { object: Vec::new(), diagnostics })
    }

    fn failed(&self, error: &io::Error) -> Error {
        let (kind, way_out) = match error.kind() {
            io::ErrorKind::NotFound => (ErrorKind::NotFound, "\ninstall it (Debian, Ubuntu: apt install llvm-22)"),
            _ => (ErrorKind::WorkerFailed, ""),
        };
        Error::new(kind, format!("cannot run {}: {error}{way_out}", self.program.display()))
    }
}

/// Reads `in.s:12:7: error: MESSAGE`; `None` for the other lines.
fn diagnostic(line: &str) -> Option<Diagnostic> {
    let (place, message) = line.strip_prefix(SOURCE)?.strip_prefix(':')?.split_once(": ")?;
    let (line, column) = place.split_once(':')?;
    let (severity, message) = message.split_once(": ")?;
    let severity = match severity {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        _ => Severity::Note,
    };
    Some(Diagnostic { severity, line: line.parse().ok()?, column: column.parse().ok()?, message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_is_told_from_the_line_that_it_quotes() {
        let found = diagnostic("in.s:12:7: error: invalid operand: x").map(|found| found.to_string());
        assert_eq!(found.as_deref(), Some("12:7: error: invalid operand: x"));
        assert_eq!(diagnostic("        in.s: nop"), None);
    }

    #[test]
    fn a_missing_program_is_named() {
        let mc = Mc::beside(Path::new("/nowhere/llvm-objdump-22"), Duration::from_secs(1));
        let errors = [
            mc.encode(&Target::new("gfx942"), &["s_nop 0"]).expect_err("no program"),
            mc.assemble(&Target::new("gfx942"), "s_nop 0").expect_err("no program"),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(error.to_string().contains("/nowhere/llvm-mc-22"), "{error}");
        }
    }
}
