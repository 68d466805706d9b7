//! A relocatable object to a code object that HSA loads, by the `ld.lld` that is installed, or by COMGR, which has one
//! inside.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::search::{FoundLinker, Search};
use crate::{Error, ErrorKind, worker};

/// COMGR takes 20 ms for a kernel.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What [`link`] uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linker {
    /// The program.
    Lld(PathBuf),
    /// What COMGR says of itself, `COMGR 2.4 (/opt/rocm/lib/libamd_comgr.so.2)`.
    Comgr(String),
}

impl fmt::Display for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Linker::Lld(path) => path.display().fmt(f),
            Linker::Comgr(description) => description.fmt(f),
        }
    }
}

/// A linker that runs.
enum Ready {
    Lld(PathBuf),
    Comgr(worker::Linker),
}

/// The linker that [`link`] uses; `llvm` as there.
pub fn linker(llvm: Option<&Path>) -> Option<Linker> {
    Some(match find(&Search::from_environment(llvm.map(Path::to_owned))).ok()? {
        Ready::Lld(path) => Linker::Lld(path),
        Ready::Comgr(linker) => Linker::Comgr(linker.describe().to_owned()),
    })
}

/// What the COMGR that is installed says of itself, whether or not an LLVM or a linker comes before it.
pub fn comgr(llvm: Option<&Path>) -> Option<String> {
    let found = Search::from_environment(llvm.map(Path::to_owned)).comgrs().into_iter();
    found
        .filter_map(|path| worker::Linker::start(&path, TIMEOUT).ok())
        .map(|linker| linker.describe().to_owned())
        .next()
}

/// Links `object`, which an [`crate::Assembler`] made, as `ld.lld -shared` does. `llvm` is the user's choice of an
/// LLVM, as in [`crate::Options::path`]: its `ld.lld` comes first, or itself when it is COMGR. Where no `ld.lld` is
/// installed, COMGR links, in a worker process ([`worker::main_if_requested`]).
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no linker, [`ErrorKind::LinkFailed`] with its message when it refuses.
pub fn link(llvm: Option<&Path>, object: &[u8]) -> Result<Vec<u8>, Error> {
    match find(&Search::from_environment(llvm.map(Path::to_owned)))? {
        Ready::Lld(path) => run(&path, object),
        Ready::Comgr(mut linker) => linker.link(object),
    }
}

/// The first linker that is there; a COMGR has to load.
fn find(search: &Search) -> Result<Ready, Error> {
    let mut message =
        "no ld.lld found beside LLVM, in ROCm, in the system's folders or in $PATH, and no COMGR".to_owned();
    for found in search.linkers() {
        match found {
            FoundLinker::Lld(path) => return Ok(Ready::Lld(path)),
            FoundLinker::Comgr(path) => match worker::Linker::start(&path, TIMEOUT) {
                Ok(linker) => return Ok(Ready::Comgr(linker)),
                // The loader says "no such file" of every name that was only a guess.
                Err(error) if path.is_absolute() => message += &format!("\n  {}: {error}", path.display()),
                Err(_) => {}
            },
        }
    }
    message += "\ninstall it (Debian, Ubuntu: apt install lld-22), or name its LLVM with --llvm PATH or $COAX_LLVM";
    Err(Error::new(ErrorKind::NotFound, message))
}

fn run(linker: &Path, object: &[u8]) -> Result<Vec<u8>, Error> {
    let failed =
        |why: &dyn fmt::Display| Error::new(ErrorKind::LinkFailed, format!("{} cannot link: {why}", linker.display()));
    let link = || -> std::io::Result<_> {
        let folder = tempfile::tempdir()?;
        let [input, output] = ["in.o", "out.co"].map(|name| folder.path().join(name));
        std::fs::write(&input, object)?;
        let run = Command::new(linker)
            .args(["-shared", "in.o", "-o", "out.co"])
            .current_dir(folder.path()) // messages name `in.o`, not a folder that is gone
            .stdin(Stdio::null())
            .output()?;
        Ok(if run.status.success() { Ok(std::fs::read(output)?) } else { Err(run) })
    };
    match link().map_err(|error| failed(&error))? {
        Ok(code_object) => Ok(code_object),
        Err(run) => Err(failed(&format_args!("{}; {}", run.status, String::from_utf8_lossy(&run.stderr).trim()))),
    }
}
