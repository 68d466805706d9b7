//! Flipped bits and cuts anywhere in a code object: an error, or a result that reads; never a panic.
//!
//! LLVM runs in worker processes here, since some words crash it.

mod support;

use codeobj::CodeObject;
use libtest_mimic::{Arguments, Failed, Trial};
use llvm::{Isolation, Options, Toolchain};
use rewrite::fields::{self, Allocation};
use rewrite::{CodeEdit, Edit, Labels, OffsetMap, change, grow, metadata};
use std::process::ExitCode;

const OBJECTS: [&str; 3] = [
    "code-objects/quoted.gfx942.co",
    "code-objects/rocsparse.gfx1030.co",
    "code-objects/topksoftmax_4x128x4.gfx942.co",
];

fn main() -> ExitCode {
    llvm::worker::main_if_requested();
    let trials = OBJECTS.into_iter().flat_map(|name| {
        let rest = name.to_string();
        [
            Trial::test(format!("damaged_tables_do_not_panic {name}"), move || tables(&support::bytes(name))),
            Trial::test(format!("damaged_objects_do_not_panic {rest}"), move || anywhere(&support::bytes(&rest))),
        ]
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

/// One to three flipped bits, half of them in the first kilobyte or in the section headers, where the structure is.
fn damaged(intact: &[u8], random: &mut support::Random) -> Vec<u8> {
    let mut damaged = intact.to_vec();
    for _ in 0..=random.below(3) {
        let at = match random.below(4) {
            0 => random.below(1024),
            1 => intact.len() - 1 - random.below(2048),
            _ => random.below(intact.len()),
        };
        damaged[at] ^= 1 << random.below(8);
    }
    if random.below(8) == 0 {
        damaged.truncate(random.below(intact.len()));
    }
    damaged
}

/// Moving the file apart, without LLVM: thousands of cases.
fn tables(intact: &[u8]) -> Result<(), Failed> {
    let object = CodeObject::parse(intact)?;
    let text = object.sections.iter().position(|section| section.name == ".text").ok_or("no .text")?;
    let mut random = support::Random(intact.len() as u64);
    for _ in 0..4000 {
        let bytes = damaged(intact, &mut random);
        let Ok(object) = CodeObject::parse(&bytes) else { continue };
        let Some(section) = object.sections.get(text) else { continue };
        let mut new_code = bytes.get(section.file_range.clone()).unwrap_or_default().to_vec();
        let old_len = new_code.len() as u64;
        new_code.splice(0..0, support::nops(4096));
        let Ok(map) = OffsetMap::new(old_len, new_code.len() as u64, [(0, 4096, old_len)]) else { continue };
        if let Ok(grown) = grow(&bytes, &CodeEdit { section: text, new_code, map }) {
            CodeObject::parse(&grown.code_object)?;
        }
        if let Some(kernel) = object.kernels.first() {
            _ = fields::set(&bytes, &kernel.name, "priority", 1);
        }
    }
    Ok(())
}

/// Everything, with decoding.
fn anywhere(intact: &[u8]) -> Result<(), Failed> {
    let llvm: Toolchain = match llvm::open(&Options { isolation: Isolation::Worker, workers: 1, ..Options::default() })
    {
        Ok(llvm) => llvm,
        Err(error) => {
            eprintln!("skipped: {error}");
            return Ok(());
        }
    };
    let mut random = support::Random(intact.len() as u64 + 1);
    for _ in 0..300 {
        let bytes = damaged(intact, &mut random);
        let edit = Edit { old: 0..0, new: support::nops(4), labels: Labels::Before };
        if let Ok(grown) = change::apply(&llvm, &bytes, &[edit]) {
            CodeObject::parse(&grown.code_object)?;
        }
        let Some(kernel) = CodeObject::parse(&bytes).ok().and_then(|object| object.kernels.into_iter().next()) else {
            continue;
        };
        _ = metadata::set_counts(&llvm, &bytes, &kernel.name, &[(".vgpr_count", 100_000)]);
        let wanted = Allocation { vgprs: 200, agprs: 0, sgprs: 100, lds_bytes: 1 << 20 };
        _ = fields::raise_allocation(&llvm, &bytes, &kernel.name, wanted);
    }
    Ok(())
}
