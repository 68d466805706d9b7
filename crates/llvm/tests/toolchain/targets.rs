//! A library that does not know a target says so, by name, and never prints a guess.

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use llvm::{Decoder, ErrorKind, Options, State, Target};

use crate::{Engine, Outcome};

/// Debian 12's, which knows gfx90a and nothing later.
pub const OLD: &str = "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1";
const OLD_TOOL: &str = "/usr/lib/llvm-14/bin/llvm-objdump";
/// `s_endpgm` of gfx8 to gfx10, and of gfx11 and later.
const S_ENDPGM: [[u8; 4]; 2] = [[0, 0, 0x81, 0xbf], [0, 0, 0xb0, 0xbf]];

pub fn trials(engines: &[Engine]) -> Vec<Trial> {
    let no_old = [OLD, OLD_TOOL].iter().any(|path| !Path::new(path).exists());
    if no_old {
        eprintln!("skipped: an LLVM that is too old: {OLD} or {OLD_TOOL} is not installed");
    }
    let mut trials = vec![
        Trial::test("a_missing_library_is_not_found", missing),
        Trial::test("every_processor_with_a_disassembler_is_accepted", accepted),
        Trial::test("a_branch_prints_its_raw_operand_wherever_it_is", branches),
        Trial::test("wave64_prints_vcc_as_a_pair", wave64),
    ];
    for &engine in engines {
        trials.push(Trial::test(format!("nonsense_is_an_unknown_target_{engine:?}"), move || {
            let decoder = engine.open()?;
            refuses(&decoder, &["gfx999", "gfx94", "gfx600", "gfx705", "", "generic", "r600", "gfx942 ", "gfx1310"])
        }));
        let old = Trial::test(format!("an_old_llvm_refuses_what_it_does_not_know_{engine:?}"), move || {
            let decoder = engine.open_at(Some(if engine == Engine::Spawned { OLD_TOOL } else { OLD }))?;
            refuses(&decoder, &["gfx942", "gfx950", "gfx1100", "gfx1250", "gfx999"])?;
            decodes(&decoder, "gfx90a")
        });
        trials.push(old.with_ignored_flag(no_old));
    }
    trials
}

fn missing() -> Outcome {
    for path in ["/nowhere", "/etc/passwd", "/proc/self"] {
        let options = Options { path: Some(path.into()), ..Options::default() };
        match llvm::open(&options) {
            Err(error) if error.kind() == ErrorKind::NotFound && error.to_string().contains(path) => {}
            Err(error) => return Err(format!("{path}: {error}").into()),
            Ok(decoder) => return Err(format!("{path} is {}", decoder.describe()).into()),
        }
    }
    Ok(())
}

fn refuses(decoder: &dyn Decoder, processors: &[&str]) -> Outcome {
    for processor in processors {
        match decoder.decode(&Target::new(processor), &S_ENDPGM[0]) {
            Err(error) if error.kind() == ErrorKind::UnknownTarget && error.to_string().contains(processor) => {}
            Err(error) => return Err(format!("{processor}: {error}").into()),
            Ok(_) => return Err(format!("{processor} was decoded by {}", decoder.describe()).into()),
        }
    }
    Ok(())
}

fn decodes(decoder: &dyn Decoder, processor: &str) -> Outcome {
    let target = Target::new(processor);
    let listings = S_ENDPGM.map(|code| decoder.decode(&target, &code));
    for listing in listings {
        let listing = listing?;
        if listing.instructions().iter().any(|instruction| listing.text(instruction) == "s_endpgm") {
            return Ok(());
        }
    }
    Err(format!("{processor}: no s_endpgm").into())
}

fn accepted() -> Outcome {
    let decoder = Engine::Worker.open()?;
    let processors = "gfx801 gfx803 gfx810 gfx900 gfx906 gfx908 gfx90a gfx90c gfx942 gfx950 gfx9-generic gfx9-4-generic \
        gfx1010 gfx1013 gfx1030 gfx1036 gfx10-1-generic gfx10-3-generic gfx1100 gfx1103 gfx1150 gfx1153 gfx11-generic \
        gfx1200 gfx1201 gfx12-generic gfx1250 gfx1251";
    processors.split_whitespace().try_for_each(|processor| decodes(&decoder, processor))
}

/// Caching by bytes rests on this.
fn branches() -> Outcome {
    let decoder = Engine::InProcess.open()?;
    let code = [0x05, 0x00, 0x82, 0xbf].repeat(3);
    let listing = decoder.decode(&Target::new("gfx942"), &code)?;
    let texts: Vec<&str> = listing.instructions().iter().map(|instruction| listing.text(instruction)).collect();
    equal(texts, vec!["s_branch 5"; 3])
}

fn wave64() -> Outcome {
    let decoder = Engine::InProcess.open()?;
    let v_cmp_eq_u32 = [0x00, 0x03, 0x94, 0x7c];
    let gfx1100 = Target::new("gfx1100");
    equal(decoder.name_for(&gfx1100.clone().with_wave64(true))?, decoder.name_for(&gfx1100)?)?;
    for (wave64, mask) in [(false, "vcc_lo"), (true, "vcc")] {
        let listing = decoder.decode(&Target::new("gfx1100").with_wave64(wave64), &v_cmp_eq_u32)?;
        let first = listing.instructions()[0];
        equal((first.state, listing.text(&first)), (State::Decoded, &format!("v_cmp_eq_u32_e32 {mask}, v0, v1")))?;
    }
    Ok(())
}

fn equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("found {found:?}, expected {expected:?}").into()) }
}
