//! Signals while an output is written: no temporary stays behind, and the target is whole.

use crate::Test;
use crate::process;
use crate::run::{coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

pub const TESTS: &[Test] = &[
    ("sigterm_leaves_no_temporary_and_the_old_file", "llvm", || interrupted("TERM", 15, 0)),
    ("sigint_leaves_no_temporary_and_the_old_file", "llvm", || interrupted("INT", 2, 0)),
    ("sigkill_leaves_at_most_a_temporary_and_the_old_file", "llvm", || interrupted("KILL", 9, 1)),
];

/// Of an archive's large member: enough that its copy takes longer than a signal.
const PADDING: u64 = 128 << 20;
/// How often a run may end before the signal reaches it.
const TRIES: usize = 10;

fn interrupted(signal: &str, number: i32, temporaries: usize) -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let object = fs::read(data("code-objects/vector_add.gfx942.hsaco"))?;
    fs::write(work.path.join("lib.a"), archive(&object))?;
    let archive = fs::OpenOptions::new().write(true).open(work.path.join("lib.a"))?;
    archive.set_len(archive.metadata()?.len() + PADDING)?;
    let text = "vector_add:\n\ts_endpgm\n";
    fs::write(work.path.join("edit.s"), text)?;
    fs::write(work.path.join("out.a"), "old")?;
    for _ in 0..TRIES {
        let status = run(&work.path, signal)?;
        if status.signal() == Some(number) {
            let left = temporaries_in(&work.path)?;
            if left > temporaries || fs::read(work.path.join("out.a"))? != b"old" {
                return Err(format!("SIG{signal}: {left} temporaries are left, or out.a is not what it was").into());
            }
            return Ok(());
        }
        // The whole file was there before the signal.
        coax(&work, &["show", "out.a"], &[])?.exits(0)?;
        fs::write(work.path.join("out.a"), "old")?;
    }
    Err(format!("{TRIES} runs ended before SIG{signal} reached them").into())
}

/// Starts a patch and sends the signal as soon as there is a temporary.
fn run(directory: &Path, signal: &str) -> Result<ExitStatus, Failed> {
    let args = ["patch", "lib.a!k.co", "edit.s", "-o", "out.a"];
    let mut child = process::coax(directory)?
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    while temporaries_in(directory)? == 0 && child.try_wait()?.is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).stderr(Stdio::null()).status()?;
    Ok(child.wait()?)
}

fn temporaries_in(directory: &Path) -> Result<usize, Failed> {
    let names = fs::read_dir(directory)?.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.filter(|name| name.to_string_lossy().starts_with(".coax-")).count())
}

/// A code object, and the header of a member that is all zeros.
fn archive(object: &[u8]) -> Vec<u8> {
    let header = |name: &str, size: u64| format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    let mut bytes = b"!<arch>\n".to_vec();
    bytes.extend(header("k.co/", object.len() as u64).into_bytes());
    bytes.extend(object);
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes.extend(header("zeros/", PADDING).into_bytes());
    bytes
}
