//! Every instruction of real code objects equals `llvm-objdump-22 -d`: offset, length, text.
//!
//! Two differences are `llvm-objdump`'s own and are allowed: it prints a branch to a symbol as that symbol, and on
//! gfx1250 it follows `s_set_vgpr_msb` and comments registers with their full number (`v158 /*v414*/`).

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use llvm::{Decoder, State, Target};
use object::{FileFlags, Object, ObjectSection};

use crate::{Engine, OBJDUMP, Outcome, files_below, fixture};

const FIXTURE_INSTRUCTIONS: usize = 418;

pub fn trials(engines: &[Engine]) -> Vec<Trial> {
    let corpus = std::env::var_os("COAX_CORPUS").map(PathBuf::from);
    let ignored = !engines.contains(&Engine::Spawned); // the reference is missing
    let mut trials = Vec::new();
    for &engine in engines {
        trials.push(Trial::test(format!("a_kernel_decodes_as_in_objdump_{engine:?}"), move || {
            let decoder = engine.open()?;
            let counts = compare(&decoder, &fixture())?;
            let used = decoder.describe_for(&Target::new("gfx942"))?;
            if !used.contains(engine.description()) {
                return Err(format!("decoded by {used}").into()); // a worse one that still gives the right answer
            }
            if counts.instructions == FIXTURE_INSTRUCTIONS && counts.msb_comments == 0 {
                return Ok(());
            }
            Err(format!("{} instructions compared, {} with comments", counts.instructions, counts.msb_comments).into())
        }));
        if let Some(folder) = corpus.clone() {
            trials.push(Trial::test(format!("the_corpus_decodes_as_in_objdump_{engine:?}"), move || {
                whole_corpus(engine, &folder)
            }));
        }
    }
    trials.into_iter().map(|trial| trial.with_ignored_flag(ignored)).collect()
}

/// What was compared.
#[derive(Default)]
struct Counts {
    instructions: usize,
    undecodable: usize,
    symbols: usize,
    msb_comments: usize,
}

fn whole_corpus(engine: Engine, folder: &Path) -> Outcome {
    let decoder = engine.open()?;
    let (mut files, mut sum) = (0, Counts::default());
    for path in files_below(folder, &["co", "hsaco"]) {
        let counts = compare(&decoder, &path).map_err(|error| format!("{}: {error:?}", path.display()))?;
        files += 1;
        sum.instructions += counts.instructions;
        sum.undecodable += counts.undecodable;
        sum.symbols += counts.symbols;
        sum.msb_comments += counts.msb_comments;
    }
    eprintln!(
        "{engine:?}: {files} code objects, {} instructions equal; of them undecodable {}, branch printed as a symbol {}, \
         VGPR bank comment {}",
        sum.instructions, sum.undecodable, sum.symbols, sum.msb_comments
    );
    if files == 0 { Err(format!("no code object below {}", folder.display()).into()) } else { Ok(()) }
}

fn compare(decoder: &dyn Decoder, path: &Path) -> Result<Counts, Failed> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(&*bytes)?;
    let target = Target::new(processor(file.flags())?);
    let text = file.section_by_name(".text").ok_or("no .text")?;
    let listing = decoder.decode(&target, text.data()?)?;
    let expected = disassemble(path, text.address())?;
    let mut counts = Counts::default();
    let mut instructions = listing.instructions().iter();
    for theirs in &expected {
        let ours = instructions.next().ok_or("objdump has more instructions")?;
        let place = (ours.offset, ours.len);
        let found = match ours.state {
            State::Decoded => listing.text(ours).to_owned(),
            _ => format!(".long 0x{:08x}", u32::from_le_bytes(text.data()?[ours.offset as usize..][..4].try_into()?)),
        };
        counts.instructions += 1;
        counts.undecodable += usize::from(ours.state != State::Decoded);
        let branch = found.starts_with("s_branch") || found.starts_with("s_cbranch");
        if place == (theirs.offset, theirs.len) && found != theirs.text {
            if branch && theirs.text.starts_with(listing.mnemonic(ours)) {
                counts.symbols += 1;
                continue;
            }
            if without_comments(&theirs.text) == found {
                counts.msb_comments += 1;
                continue;
            }
        }
        if (place, found.as_str()) != ((theirs.offset, theirs.len), theirs.text.as_str()) {
            return Err(format!("{place:x?} `{found}`, but objdump has {theirs:x?}").into());
        }
    }
    match instructions.next() {
        Some(more) => Err(format!("objdump ends before {more:?}").into()),
        None => Ok(counts),
    }
}

/// One line of `llvm-objdump -d`.
#[derive(Debug)]
struct Line {
    offset: u32,
    len: u8,
    text: String,
}

/// Lines like `\ts_nop 0   // 000000001C00: BF800000`.
fn disassemble(path: &Path, address: u64) -> Result<Vec<Line>, Failed> {
    let output = Command::new(OBJDUMP).args(["-d", "-z", "-j", ".text"]).arg(path).output()?;
    let mut lines = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let Some((text, rest)) = line.strip_prefix('\t').and_then(|line| line.rsplit_once("// ")) else { continue };
        let (at, words) = rest.split_once(':').ok_or_else(|| format!("not understood: {line}"))?;
        let offset = (u64::from_str_radix(at, 16)? - address) as u32;
        let words = words.split_whitespace().take_while(|word| word.len() == 8 && !word.starts_with('<')).count();
        lines.push(Line { offset, len: 4 * words as u8, text: text.trim().to_owned() });
    }
    Ok(lines)
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(" /*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    kept + rest
}

pub fn processor(flags: FileFlags) -> Result<&'static str, Failed> {
    let FileFlags::Elf { e_flags, .. } = flags else { return Err("not ELF".into()) };
    // EF_AMDGPU_MACH of the AMDGPU backend guide.
    match e_flags.0 & 0xff {
        0x2c => Ok("gfx900"),
        0x2f => Ok("gfx906"),
        0x30 => Ok("gfx908"),
        0x33 => Ok("gfx1010"),
        0x36 => Ok("gfx1030"),
        0x3f => Ok("gfx90a"),
        0x41 => Ok("gfx1100"),
        0x48 => Ok("gfx1200"),
        0x49 => Ok("gfx1250"),
        0x4c => Ok("gfx942"),
        0x4e => Ok("gfx1201"),
        0x4f => Ok("gfx950"),
        0x5f => Ok("gfx9-4-generic"),
        mach => Err(format!("machine {mach:#x}").into()),
    }
}
