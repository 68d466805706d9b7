//! `coax capture` with a fake compiler: what it sets, what it refuses, what it says.

use crate::Test;
use crate::run::{Said, coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;

pub const TESTS: &[Test] = &[
    ("the_command_gets_the_dump_variables", "", the_command_gets_the_dump_variables),
    ("arch_makes_a_compile_only_run", "", arch_makes_a_compile_only_run),
    ("without_arch_its_variables_are_left_alone", "", without_arch_its_variables_are_left_alone),
    ("the_exit_code_of_the_command_is_told_and_not_trusted", "", the_exit_code_is_told),
    ("a_command_ended_by_a_signal_is_told", "", a_command_ended_by_a_signal_is_told),
    ("a_command_that_dumps_nothing_is_told_what_to_look_at", "", a_command_that_dumps_nothing),
    ("a_command_that_is_not_there_is_named", "", a_command_that_is_not_there_is_named),
    ("a_folder_that_is_not_empty_is_refused_untouched", "", a_folder_that_is_not_empty_is_refused),
    ("an_out_that_is_a_file_is_refused", "", an_out_that_is_a_file_is_refused),
    ("arguments_reach_the_command_as_given", "", arguments_reach_the_command_as_given),
    ("what_was_captured_can_be_compared", "", what_was_captured_can_be_compared),
];

/// A compiler: leaves the final ISA of the file `isa` where the variables say.
pub const COMPILER: &str = r#"mkdir -p "$FLYDSL_DUMP_DIR/kernel_gemm_0"
cp "$1" "$FLYDSL_DUMP_DIR/kernel_gemm_0/22_final_isa.s"
"#;

/// `tests/data/flydsl/lds/<side>`, which [`COMPILER`] can take.
pub fn isa(side: &str) -> String {
    data(&format!("flydsl/lds/{side}/kernel_gemm_0/22_final_isa.s"))
}

fn capture(script: &str, options: &[&str], env: &[(&str, &str)]) -> Result<(WorkDirectory, Said), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("compile.sh"), format!("{COMPILER}{script}"))?;
    let isa = isa("before");
    let args = [&["capture", "out"], options, &["--", "sh", "compile.sh", &isa]].concat();
    let said = coax(&work, &args, env)?;
    Ok((work, said))
}

/// The variables that the command saw.
fn variables(options: &[&str], env: &[(&str, &str)]) -> Result<(WorkDirectory, Vec<String>), Failed> {
    let (work, said) = capture("env > env.txt", options, env)?;
    said.exits(0)?;
    let text = fs::read_to_string(work.path.join("env.txt"))?;
    Ok((work, text.lines().map(str::to_owned).collect()))
}

fn must_have(variables: &[String], expected: &[&str]) -> Result<(), Failed> {
    let missing: Vec<_> = expected.iter().filter(|one| !variables.iter().any(|v| v == *one)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("not set: {missing:?} in {variables:#?}").into()) }
}

fn the_command_gets_the_dump_variables() -> Result<(), Failed> {
    let (work, variables) = variables(&[], &[("FLYDSL_RUNTIME_ENABLE_CACHE", "1")])?;
    let out = work.path.join("out");
    must_have(
        &variables,
        &[
            "FLYDSL_DUMP_IR=1",
            &format!("FLYDSL_DUMP_DIR={}", out.display()),
            "FLYDSL_RUNTIME_ENABLE_CACHE=0",
            "TRITON_ALWAYS_COMPILE=1",
        ],
    )?;
    let triton = variables.iter().find_map(|v| v.strip_prefix("TRITON_CACHE_DIR="));
    match triton.is_some_and(|folder| folder.starts_with(&out.display().to_string())) {
        true => Ok(()),
        false => Err(format!("TRITON_CACHE_DIR is {triton:?}").into()),
    }
}

fn arch_makes_a_compile_only_run() -> Result<(), Failed> {
    let (_work, variables) = variables(&["--arch", "gfx950"], &[])?;
    must_have(&variables, &["ARCH=gfx950", "FLYDSL_GPU_ARCH=gfx950", "COMPILE_ONLY=1"])
}

fn without_arch_its_variables_are_left_alone() -> Result<(), Failed> {
    let (_work, variables) = variables(&[], &[("ARCH", "gfx1100")])?;
    must_have(&variables, &["ARCH=gfx1100"])?;
    match variables.iter().find(|v| v.starts_with("COMPILE_ONLY=") || v.starts_with("FLYDSL_GPU_ARCH=")) {
        None => Ok(()),
        Some(set) => Err(format!("set: {set}").into()),
    }
}

fn the_exit_code_is_told() -> Result<(), Failed> {
    let (_work, said) = capture("exit 1", &[], &[])?;
    let said = said.exits(0)?;
    match said.stdout.contains("exited with 1") {
        true => Ok(()),
        false => Err(format!("stdout: {}", said.stdout).into()),
    }
}

fn a_command_ended_by_a_signal_is_told() -> Result<(), Failed> {
    let (_work, said) = capture("kill -9 $$", &[], &[])?;
    let said = said.exits(0)?;
    match said.stdout.contains("SIGKILL") || said.stdout.contains("signal: 9") {
        true => Ok(()),
        false => Err(format!("stdout: {}", said.stdout).into()),
    }
}

fn a_command_that_dumps_nothing() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["capture", "out", "--", "sh", "-c", "exit 5"], &[])?.exits(2)?.tells(&[
        "no kernel",
        "out",
        "exited with 5",
        "--arch",
    ])?;
    Ok(())
}

fn a_command_that_is_not_there_is_named() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["capture", "out", "--", "no-such-compiler", "x"], &[])?
        .exits(2)?
        .tells(&["error: no-such-compiler"])?;
    Ok(())
}

fn a_folder_that_is_not_empty_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::create_dir(work.path.join("out"))?;
    fs::write(work.path.join("out/old.s"), "old")?;
    coax(&work, &["capture", "out", "--", "touch", "started"], &[])?.exits(2)?.tells(&["error: out: is not empty"])?;
    if work.path.join("started").exists() || fs::read_to_string(work.path.join("out/old.s"))? != "old" {
        return Err("the command was started all the same".into());
    }
    Ok(())
}

fn an_out_that_is_a_file_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::write(work.path.join("out"), "a file")?;
    coax(&work, &["capture", "out", "--", "true"], &[])?.exits(2)?.tells(&["error: out:"])?;
    Ok(())
}

fn arguments_reach_the_command_as_given() -> Result<(), Failed> {
    let (work, said) = capture("", &[], &[])?;
    said.exits(0)?;
    let script = r#"printf '%s\n' "$@" > arguments.txt; sh compile.sh "$ISA""#;
    let isa = isa("before");
    let args = ["capture", "again", "--", "sh", "-c", script, "sh", "--arch", "a b", "-q", "*"];
    coax(&work, &args, &[("ISA", &isa)])?.exits(0)?;
    match fs::read_to_string(work.path.join("arguments.txt"))?.as_str() {
        "--arch\na b\n-q\n*\n" => Ok(()),
        other => Err(format!("the command got {other:?}").into()),
    }
}

fn what_was_captured_can_be_compared() -> Result<(), Failed> {
    let (work, said) = capture("", &[], &[])?;
    said.exits(0)?;
    let after = isa("after");
    coax(&work, &["capture", "after", "--", "sh", "compile.sh", &after], &[])?.exits(0)?;
    coax(&work, &["diff", "out", "after"], &[])?.verdict("REGRESSION")?;
    Ok(())
}
