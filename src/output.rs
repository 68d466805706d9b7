//! Where results go: stdout, stderr, files. A file is whole or absent; a closed pipe is no error.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::path::Path;

use crate::interrupt::Interrupt;

/// How many problems are listed before the rest is only counted.
const LISTED: usize = 20;

/// Writes to stdout. The reader may have gone (`| head -1`): then nobody misses the rest. Any other failure, such as
/// a full disk, is returned.
pub fn stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Writes a line to stderr; when even that fails, there is nobody to tell.
pub fn stderr(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Lists messages on stderr, each after `kind: `, and counts those beyond the twentieth.
pub fn list(kind: &str, messages: &[String]) {
    let mut text = String::new();
    for message in messages.iter().take(LISTED) {
        text.push_str(&format!("{kind}: {}\n", on_lines_of_its_own(message)));
    }
    if messages.len() > LISTED {
        text.push_str(&format!("{kind}: ... and {} more\n", messages.len() - LISTED));
    }
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// A message whose further lines are indented and whose control characters are escaped: names from outside may hold
/// both, and must not look like a message of ours or steer a terminal.
fn on_lines_of_its_own(message: &str) -> String {
    message.lines().map(|line| resources::printable(line)).collect::<Vec<_>>().join("\n  ")
}

/// Writes a file through a temporary beside it, so that the old one is whole until the new one is; a signal leaves no
/// temporary. Devices and pipes
/// (`/dev/stdout`) are written in place.
///
/// # Errors
/// The path and the system's reason.
pub fn write_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), String> {
    let result = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::new(io::ErrorKind::IsADirectory, "is a directory")),
        Ok(metadata) if !metadata.is_file() => {
            OpenOptions::new().write(true).open(path).and_then(|file| fill_buffered(&file, fill))
        }
        _ => replace(path, fill),
    };
    result.map_err(|error| {
        let reason = match path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir()) {
            Some(parent) => format!("there is no directory {}", parent.display()),
            // Without the name of the temporary, which nobody asked for.
            None => error.to_string().split(" at path ").next().unwrap_or_default().to_owned(),
        };
        format!("{}: cannot be written: {reason}", path.display())
    })
}

fn fill_buffered(file: impl Write, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::new(file);
    fill(&mut out)?;
    out.flush()
}

fn replace(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    // A link is written through, as every other program does.
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let directory = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".coax-").permissions(permissions(path));
    // From here on there is a temporary, which a signal is not to leave behind.
    let interrupt = Interrupt::watch().map_err(io::Error::other)?;
    let written = builder.tempfile_in(directory).and_then(|temporary| {
        fill_buffered(Interruptible { file: temporary.as_file(), interrupt: &interrupt }, fill)?;
        temporary.as_file().sync_all()?;
        interrupted(&interrupt)?;
        temporary.persist(path).map(drop).map_err(|e| e.error)
    });
    interrupt.end();
    written
}

/// A file that is written in pieces, none of them after a signal.
struct Interruptible<'f> {
    file: &'f File,
    interrupt: &'f Interrupt,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const PIECE: usize = 1 << 20;
        interrupted(self.interrupt)?;
        self.file.write(&bytes[..bytes.len().min(PIECE)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn interrupted(interrupt: &Interrupt) -> io::Result<()> {
    if interrupt.seen() { Err(io::Error::other("interrupted")) } else { Ok(()) }
}

/// Those of the file that is replaced, else those that any new file asks for; the system applies the umask.
fn permissions(path: &Path) -> Permissions {
    let of_a_new_file = || std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::metadata(path).map_or_else(|_| of_a_new_file(), |old| old.permissions())
}
