//! Inputs that are not what they are said to be: each ends with 2, its path in the message and the verdict at the end.

use crate::Test;
use crate::run::{coax, data};
use crate::workdir::WorkDirectory;
use libtest_mimic::Failed;
use std::fs;

pub const TESTS: &[Test] = &[
    ("deep_json_is_refused", "", deep_json_is_refused),
    ("sizes_of_2_to_the_63_are_refused", "", sizes_of_2_to_the_63_are_refused),
    ("files_of_other_kinds_are_refused", "", files_of_other_kinds_are_refused),
    ("a_missing_file_is_refused", "", a_missing_file_is_refused),
    ("a_folder_without_kernels_is_refused", "", a_folder_without_kernels_is_refused),
    ("a_folder_is_no_file_to_show", "", a_folder_is_no_file_to_show),
    ("a_file_is_compared_with_itself", "", a_file_is_compared_with_itself),
    ("a_part_that_is_not_there_is_refused", "", a_part_that_is_not_there_is_refused),
];

/// Every command that reads `name` refuses it and names it.
fn refused(work: &WorkDirectory, name: &str, words: &[&str]) -> Result<(), Failed> {
    let words = [&[name], words].concat();
    coax(work, &["summarize", name], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&words)?;
    let good = data("flydsl/lds/before");
    coax(work, &["diff", &good, name], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&words)?.tells(&["error: after: "])?;
    coax(work, &["diff", name, &good], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&words)?.tells(&["error: before: "])?;
    // The part that is wanted is not reached when the file is not there.
    let file = name.split('!').next().unwrap_or(name);
    coax(work, &["show", name], &[])?.exits(2)?.tells(&[file])?;
    Ok(())
}

fn deep_json_is_refused() -> Result<(), Failed> {
    const LEVELS: usize = 100_000;
    let work = WorkDirectory::new()?;
    for (name, text) in [
        ("arrays.json", "[".repeat(LEVELS) + &"]".repeat(LEVELS)),
        ("objects.json", "{\"a\":".repeat(LEVELS) + "1" + &"}".repeat(LEVELS)),
        (
            "kernels.json",
            "{\"schema\":2,\"kernels\":".to_owned() + &"{\"a\":".repeat(LEVELS) + "1" + &"}".repeat(LEVELS + 1),
        ),
        ("unclosed.json", "{\"a\":[".repeat(LEVELS)),
    ] {
        fs::write(work.path.join(name), text)?;
        refused(&work, name, &[])?;
    }
    Ok(())
}

/// Fields of the ELF header, of the first section header and of the first program header: offset and size in bytes.
fn sizes_of_2_to_the_63_are_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let whole = fs::read(data("clang/gfx942/k.co"))?;
    let word = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().expect("8 bytes")) as usize;
    let (segments, sections) = (word(32), word(40));
    // e_phoff, e_shoff; sh_offset, sh_size of the note; p_offset, p_filesz of its segment.
    let note = (0..20).map(|at| sections + 64 * at).find(|at| whole[at + 4] == 7).expect("a note section");
    for at in [32, 40, note + 24, note + 32] {
        let mut bytes = whole.clone();
        bytes[at..at + 8].copy_from_slice(&(1u64 << 63).to_le_bytes());
        fs::write(work.path.join("hostile.co"), &bytes)?;
        refused(&work, "hostile.co", &[])?;
    }
    // Segments are for loading: coax reads sections, and may say so or not.
    let mut bytes = whole.clone();
    bytes[segments + 8..segments + 16].copy_from_slice(&(1u64 << 63).to_le_bytes());
    fs::write(work.path.join("segment.co"), &bytes)?;
    let said = coax(&work, &["summarize", "segment.co", "-q", "--metadata-only"], &[])?;
    let exit = said.exit;
    said.verdict(if exit == 0 { "OK" } else { "NOT TRUSTWORTHY" })?;

    let bundle = fs::read(data("fatbin/multi_plain.hipfb"))?;
    // Number of entries; offset, size and length of the name of the first.
    for at in [24, 32, 40, 48] {
        let mut bytes = bundle.clone();
        bytes[at..at + 8].copy_from_slice(&(1u64 << 63).to_le_bytes());
        fs::write(work.path.join("hostile.hipfb"), &bytes)?;
        refused(&work, "hostile.hipfb", &[])?;
    }
    // Sizes in the headers of compressed bundles: total and uncompressed, 4 bytes each in version 2, 8 in version 3.
    for (from, at, size) in [("v2", 8, 4), ("v2", 12, 4), ("v3", 8, 8), ("v3", 16, 8)] {
        let mut bytes = fs::read(data(&format!("fatbin/single_ccob_{from}.hipfb")))?;
        bytes[at..at + size].fill(0xff);
        fs::write(work.path.join("hostile.ccob"), &bytes)?;
        refused(&work, "hostile.ccob", &[])?;
    }
    Ok(())
}

fn files_of_other_kinds_are_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    let mut host = fs::read(data("fatbin/host_fatbin.so"))?;
    while let Some(at) = host.windows(11).position(|name| name == b".hip_fatbin") {
        host[at + 5] = b'_'; // any other name
    }
    let files: [(&str, &[u8]); 8] = [
        ("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01"),
        ("notes.txt", b"nothing about kernels\n"),
        ("empty.co", b""),
        ("empty.s", b""),
        ("empty.json", b""),
        ("x86.so", &host),
        ("x86.s", b"\t.text\nmain:\n\txorl %eax, %eax\n\tret\n"),
        ("newlines.s", b"\n\n\n"),
    ];
    for (name, bytes) in files {
        fs::write(work.path.join(name), bytes)?;
        refused(&work, name, &[])?;
    }
    Ok(())
}

fn a_missing_file_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for name in ["missing.co", "missing/", "missing.hipfb!gfx942"] {
        refused(&work, name, &["no such file or directory"])?;
    }
    Ok(())
}

fn a_folder_without_kernels_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    fs::create_dir_all(work.path.join("dumps/kernel_0"))?;
    fs::write(work.path.join("dumps/kernel_0/21_llvm_ir.ll"), "define void @k() { ret void }\n")?;
    fs::write(work.path.join("dumps/notes.md"), "nothing\n")?;
    let good = data("flydsl/lds/before");
    coax(&work, &["summarize", "dumps"], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&["error: dumps: no kernels"])?;
    coax(&work, &["diff", "dumps", &good], &[])?
        .verdict("NOT TRUSTWORTHY")?
        .tells(&["error: before: dumps: no kernels"])?;
    Ok(())
}

fn a_folder_is_no_file_to_show() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    coax(&work, &["show", "."], &[])?.exits(2)?.tells(&["error: .:", "directory"])?;
    // A file is not a folder either.
    let file = format!("{}/", data("clang/gfx942/k.co"));
    coax(&work, &["summarize", &file], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&[&file])?;
    Ok(())
}

fn a_file_is_compared_with_itself() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for file in ["clang/gfx942/ind.s", "fatbin/multi_ccob.hipfb", "clang/gfx942/k.co"] {
        let file = data(file);
        coax(&work, &["diff", &file, &file, "--metadata-only"], &[])?.verdict("OK")?;
    }
    Ok(())
}

fn a_part_that_is_not_there_is_refused() -> Result<(), Failed> {
    let work = WorkDirectory::new()?;
    for part in ["fatbin/multi_plain.hipfb!gfx9999", "fatbin/host_fatbin.so!hip_fatbin[9]", "clang/gfx942/k.co!gfx942"]
    {
        let part = data(part);
        let (file, wanted) = part.rsplit_once('!').expect("a part");
        coax(&work, &["summarize", &part], &[])?.verdict("NOT TRUSTWORTHY")?.tells(&[file, wanted])?;
        coax(&work, &["show", &part], &[])?.exits(2)?.tells(&[file, wanted])?;
    }
    Ok(())
}
