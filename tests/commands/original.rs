//! `co_compare`, the original program: what it says of images that do not have what a site is for.

use crate::Test;
use crate::run::Said;
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;
use std::process::Command;

pub const TESTS: &[Test] = &[
    ("co_compare_tells_a_kernel_that_one_image_lost", "", lost),
    ("co_compare_tells_once_what_is_wrong_with_all_sites", "", once),
];

fn co_compare(work: &WorkDirectory, args: &[&str]) -> Result<Said, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_co_compare"));
    let output = command.args(args).args(["--device", "mock"]).current_dir(&work.path).output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok(Said { exit: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) })
}

fn image(work: &WorkDirectory, name: &str, kernels: &[&str]) -> Result<(), Failed> {
    let kernel = |name: &&str| format!("[[kernel]]\nname = \"{name}\"\ntime_ns = 1000.0\n");
    let kernels: String = kernels.iter().map(kernel).collect();
    Ok(fs::write(work.path.join(name), format!("mock = 1\n{kernels}"))?)
}

const FORWARD: &str = "_grouped_fp8_persistent_gemm_kernel";
const WEIGHT: &str = "_grouped_variable_k_gemm_kernel";

/// A site is left out when neither image has its kernel, and only then.
fn lost() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    image(&work, "both.mock", &[FORWARD, WEIGHT])?;
    image(&work, "lost.mock", &[WEIGHT])?;
    for (images, whose) in [(["both.mock", "lost.mock"], "lost.mock"), (["lost.mock", "both.mock"], "lost.mock")] {
        let said = co_compare(&work, &[images[0], images[1], "--site", "down_fwd"])?;
        assert_eq!((said.exit, said.stdout.as_str()), (2, "down_fwd         [NOT ESTABLISHED]\n"));
        assert_eq!(said.stderr, format!("error: {whose}: no kernel `{FORWARD}`; there are `{WEIGHT}`\n"));
    }
    Ok(())
}

fn once() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    image(&work, "other.mock", &["f<int, 2>"])?;
    fs::write(work.path.join("empty.mock"), "")?;
    let said = co_compare(&work, &["empty.mock", "other.mock"])?;
    assert_eq!((said.exit, said.stdout.lines().count()), (2, 6));
    assert_eq!(said.stderr, "error: empty.mock: the file is empty\n");
    let said = co_compare(&work, &["other.mock", "other.mock"])?;
    assert_eq!((said.exit, said.stdout.as_str()), (2, ""));
    let expected = format!(
        "error: gate_up_fwd, down_fwd, down_dgrad, gate_up_dgrad: other.mock: no kernel `{FORWARD}`; there are `f<int, 2>`\n\
         error: gate_up_wgrad, down_wgrad: other.mock: no kernel `{WEIGHT}`; there are `f<int, 2>`\n"
    );
    assert_eq!(said.stderr, expected);
    Ok(())
}
