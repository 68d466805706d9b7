//! Objects become code objects by the `ld.lld` that is installed.

use std::process::Command;

use libtest_mimic::Trial;
use llvm::{Assembler, ErrorKind, Target};

use crate::{Engine, Outcome};

/// Debian's name of the reference.
const LLD: &str = "ld.lld-22";
const SOURCE: &str = ".globl f\n.type f,@function\n.p2align 8\nf:\ns_endpgm\n";

pub fn trials() -> Vec<Trial> {
    let missing = Command::new(LLD).arg("--version").output().is_err();
    if missing {
        eprintln!("skipped: linking: {LLD} is not installed");
    }
    let trials =
        [Trial::test("an_object_is_linked_as_by_ld_lld", linked), Trial::test("no_object_is_refused", refused)];
    trials.into_iter().map(|trial| trial.with_ignored_flag(missing)).collect()
}

fn linked() -> Outcome {
    let assembly = Engine::Worker.open()?.assemble(&Target::new("gfx942"), SOURCE)?;
    let object = assembly.object.ok_or("no object")?;
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("a.o"), &object)?;
    let status = Command::new(LLD).args(["-shared", "a.o", "-o", "a.co"]).current_dir(folder.path()).status()?;
    let expected = std::fs::read(folder.path().join("a.co"))?;
    if status.success() && llvm::link(None, &object)? == expected { Ok(()) } else { Err("another code object".into()) }
}

fn refused() -> Outcome {
    match llvm::link(None, b"no object") {
        Err(error) if error.kind() == ErrorKind::LinkFailed && error.to_string().contains("ld.lld") => Ok(()),
        result => Err(format!("{result:?}").into()),
    }
}
