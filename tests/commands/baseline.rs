//! Baselines and `coax.toml`: what depends on where a command is started.

use crate::Test;
use crate::run::{Said, coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;

pub const TESTS: &[Test] = &[
    ("a_baseline_has_the_same_bytes_wherever_it_is_written", "", same_bytes),
    ("a_baseline_of_one_file_names_no_machine", "", no_machine_paths),
    ("coax_toml_is_looked_for_up_to_the_root_of_the_repository", "", looked_for_upwards),
];

fn same_bytes() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let input = data("flydsl/mixed/before");
    std::os::unix::fs::symlink(&input, work.path.join("tree"))?;
    for (file, input) in [("absolute.json", input.as_str()), ("relative.json", "tree"), ("again.json", "relative.json")]
    {
        coax(&work, &["baseline", "write", file, input], &[])?.verdict("OK")?;
        if fs::read(work.path.join(file))? != fs::read(data("baseline/mixed.json"))? {
            return Err(format!("{file} is not tests/data/baseline/mixed.json").into());
        }
    }
    Ok(())
}

fn no_machine_paths() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["baseline", "write", "pinned.json", &data("clang/gfx942/ind.s")], &[])?.verdict("OK")?;
    let text = fs::read_to_string(work.path.join("pinned.json"))?;
    match text.contains("\"source\": \"ind.s\"") && !text.contains(&data("")) {
        true => Ok(()),
        false => Err(text.into()),
    }
}

fn looked_for_upwards() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let deep = work.path.join("repository/some/folder");
    fs::create_dir_all(&deep)?;
    fs::create_dir_all(work.path.join("outside/folder"))?;
    // Above of any repository: never read.
    fs::write(work.path.join("coax.toml"), "[gate]\nfail-on = [\"no such metric\"]\n")?;
    fs::write(work.path.join("repository/coax.toml"), "[gate]\nfail-on = [\"vgpr_spill\"]\n")?;
    fs::write(work.path.join("repository/.git"), "gitdir: elsewhere\n")?;
    let started_in = |folder: &str| -> Result<Said, Failed> {
        let inner = crate::process::coax(&work.path.join(folder))?;
        let mut command = inner;
        command.args(["diff", &data("flydsl/lds/before"), &data("flydsl/lds/after"), "-q"]);
        Ok(Said::from(crate::process::run(command)?))
    };
    started_in("repository/some/folder")?.verdict("OK")?.tells(&["policy of ../../coax.toml: fails on vgpr_spill"])?;
    started_in("repository")?.verdict("OK")?.tells(&["policy of coax.toml"])?;
    started_in("outside/folder")?.verdict("REGRESSION")?;
    started_in(".")?.verdict("NOT TRUSTWORTHY")?.tells(&["error: coax.toml:2:12: `no such metric`"])?;
    Ok(())
}
