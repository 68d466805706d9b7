//! A relocatable object to a code object that HSA loads, by the `ld.lld` that is installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::search::Search;
use crate::{Error, ErrorKind};

/// The `ld.lld` that [`link`] uses; `llvm` as there.
pub fn linker(llvm: Option<&Path>) -> Option<PathBuf> {
    Search::from_environment(llvm.map(Path::to_owned)).linker()
}

/// Links `object`, which an [`crate::Assembler`] made, as `ld.lld -shared` does. `llvm` is the user's choice of an
/// LLVM, as in [`crate::Options::path`]: its `ld.lld` comes first.
///
/// # Errors
/// [`ErrorKind::NotFound`] when there is no `ld.lld`, [`ErrorKind::LinkFailed`] with its message when it refuses.
pub fn link(llvm: Option<&Path>, object: &[u8]) -> Result<Vec<u8>, Error> {
    let linker = linker(llvm).ok_or_else(|| {
        let message = "no ld.lld found beside LLVM, in ROCm, in the system's folders or in $PATH\n\
                       install it (Debian, Ubuntu: apt install lld-22), or name its LLVM with --llvm PATH or $COAX_LLVM";
        Error::new(ErrorKind::NotFound, message)
    })?;
    let failed = |why: &dyn std::fmt::Display| {
        Error::new(ErrorKind::LinkFailed, format!("{} cannot link: {why}", linker.display()))
    };
    let link = || -> std::io::Result<_> {
        let folder = tempfile::tempdir()?;
        let [input, output] = ["in.o", "out.co"].map(|name| folder.path().join(name));
        std::fs::write(&input, object)?;
        let run = Command::new(&linker)
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
