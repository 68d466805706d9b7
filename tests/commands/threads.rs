//! The number of threads changes no byte of any output.

use crate::Test;
use crate::run::{coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;

pub const TESTS: &[Test] = &[
    ("summarize_says_the_same_with_any_number_of_threads", "", summarize_says_the_same),
    ("diff_says_the_same_with_any_number_of_threads", "", diff_says_the_same),
];

fn summarize_says_the_same() -> Result<(), Failed> {
    same_with_threads(&["summarize", &data(""), "--json", "out.json"])
}

fn diff_says_the_same() -> Result<(), Failed> {
    same_with_threads(&["diff", &data(""), &data("flydsl"), "--json", "out.json"])
}

fn same_with_threads(args: &[&str]) -> Result<(), Failed> {
    let mut first = None;
    for threads in ["1", "4", "4", "13"] {
        let work = WorkDirectory::new()?;
        let said = coax(&work, args, &[("RAYON_NUM_THREADS", threads)])?;
        let all = (said.exit, said.stdout, said.stderr, fs::read_to_string(work.path.join("out.json"))?);
        let Some(first) = &first else {
            first = Some(all);
            continue;
        };
        if *first != all {
            return Err(format!("other output with {threads} threads than with 1:\n{}\n{}", all.1, all.2).into());
        }
    }
    Ok(())
}
