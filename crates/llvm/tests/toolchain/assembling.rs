//! Whole texts: the object equals `llvm-mc-22 -filetype=obj`'s byte for byte, and so do the places of errors.
//!
//! The texts are those of the repository's `tests/data`; `COAX_CORPUS=DIR` adds every `.s` and `.amdgcn` below DIR. A
//! target that LLVM 22 cannot spell is spelled for `llvm-mc`, by this test.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use llvm::{Assembler, Assembly, ErrorKind, Severity, Target};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::targets::OLD;
use crate::{Engine, MC, Outcome, files_below};

/// Texts in the repository that `llvm-mc-22` assembles.
const AT_LEAST: usize = 30;
/// Debian 12's.
const OLD_MC: &str = "/usr/lib/llvm-14/bin/llvm-mc";
/// What LLVM 23 has and LLVM 22 has not.
const NEWER: &str = "instprefsize(";

pub fn trials(engines: &[Engine]) -> Vec<Trial> {
    let ignored = !engines.contains(&Engine::Spawned); // the reference is missing
    let mut trials = vec![Trial::test("the_prefetch_size_of_newer_compilers_is_understood", prefetch_size)];
    for &engine in engines {
        trials.push(Trial::test(format!("objects_equal_those_of_llvm_mc_{engine:?}"), move || objects(engine)));
        trials.push(Trial::test(format!("errors_have_the_places_of_llvm_mc_{engine:?}"), move || places(engine)));
        trials.push(Trial::test(format!("an_unknown_target_is_not_assembled_{engine:?}"), move || unknown(engine)));
    }
    trials = trials.into_iter().map(|trial| trial.with_ignored_flag(ignored)).collect();
    let old = Trial::test("an_old_llvm_assembles_as_its_own_llvm_mc", old);
    trials.push(old.with_ignored_flag([OLD, OLD_MC].iter().any(|path| !Path::new(path).exists())));
    trials
}

fn objects(engine: Engine) -> Outcome {
    let toolchain = engine.open()?;
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    let folders = [Some(data), std::env::var_os("COAX_CORPUS").map(PathBuf::from)];
    let (mut equal, mut newer, mut refused, mut unknown) = (0, 0, 0, 0);
    for path in folders.into_iter().flatten().flat_map(|folder| files_below(&folder, &["s", "amdgcn"])) {
        let source = std::fs::read_to_string(&path)?;
        let Some(target) = Target::of_source(&source) else { continue };
        let wrong = |what: &str| Failed::from(format!("{}: {what}", path.display()));
        let assembly = match toolchain.assemble(&target, &source) {
            Err(error) if error.kind() == ErrorKind::UnknownTarget => {
                unknown += 1;
                continue;
            }
            assembly => assembly?,
        };
        match (reference(MC, &target, &source)?, &assembly) {
            (Ok(theirs), Assembly { object: Some(ours), .. }) if theirs == *ours => equal += 1,
            (Ok(_), Assembly { object: Some(_), .. }) => return Err(wrong("another object")),
            (Ok(_), Assembly { diagnostics, .. }) => return Err(wrong(&format!("{diagnostics:?}"))),
            (Err(_), Assembly { object: Some(_), .. }) if source.contains(NEWER) => newer += 1,
            (Err(said), Assembly { diagnostics, .. }) => {
                let first = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error);
                if first.is_none_or(|first| !said.contains(&format!(":{first}\n"))) {
                    return Err(wrong(&format!("{first:?}, but llvm-mc says {said}")));
                }
                refused += 1;
            }
        }
    }
    eprintln!(
        "{engine:?}: {equal} objects equal; {newer} that llvm-mc does not understand, {refused} refused by both, \
         {unknown} of an unknown target"
    );
    if equal < AT_LEAST { Err(format!("only {equal} compared").into()) } else { Ok(()) }
}

/// The object of `tool`, an `llvm-mc`, or what it says.
fn reference(tool: &str, target: &Target, source: &str) -> Result<Result<Vec<u8>, String>, Failed> {
    let spelled = source.lines().find(|line| line.contains(".amdgcn_target")).and_then(|line| line.split('"').nth(1));
    let canonical = format!("amdgcn-amd-amdhsa--{target}");
    let source = spelled.map_or(source.to_owned(), |spelled| source.replacen(spelled, &canonical, 1));
    let folder = tempfile::tempdir()?;
    let [input, object] = ["in.s", "out.o"].map(|name| folder.path().join(name));
    std::fs::write(&input, source)?;
    let id = target.to_string();
    let signed =
        |feature: &str| feature.split_at_checked(feature.len() - 1).map(|(name, sign)| format!("{sign}{name}"));
    let mut features: Vec<String> = id.split(':').skip(1).filter_map(signed).collect();
    features.extend(target.wave64().then(|| "+wavefrontsize64".to_owned()));
    let output = Command::new(tool)
        .args(["--triple=amdgcn-amd-amdhsa", "--filetype=obj", "in.s", "-o", "out.o"])
        .arg(format!("--mcpu={}", target.processor()))
        .arg(format!("--mattr={}", features.join(",")))
        .current_dir(folder.path())
        .output()?;
    Ok(if output.status.success() {
        Ok(std::fs::read(object)?)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    })
}

fn places(engine: Engine) -> Outcome {
    let source = ".amdgcn_target \"amdgcn-amd-amdhsa--gfx942\"\n.text\ns_nop 0\n  v_mov_b32 v0, v900\n.warning \"hey\"\n\
                  s_cbranch_scc0 70000\n.nonsense\n";
    let target = Target::new("gfx942");
    let Assembly { object, diagnostics } = engine.open()?.assemble(&target, source)?;
    let Err(said) = reference(MC, &target, source)? else { return Err("llvm-mc assembles it".into()) };
    let found: String = diagnostics.iter().map(|diagnostic| format!("in.s:{diagnostic}\n")).collect();
    let expected: String = said.lines().filter(|line| line.starts_with("in.s")).flat_map(|line| [line, "\n"]).collect();
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
    match object {
        None if found == expected && errors == 3 => Ok(()),
        _ => Err(format!("an object: {}, found\n{found}expected\n{expected}", object.is_some()).into()),
    }
}

/// It fills `.text` in another way.
fn old() -> Outcome {
    let source = ".globl k\n.p2align 8\nk:\ns_nop 0\n.warning \"kept\"\ns_endpgm\n.section .rodata,\"a\"\n.p2align 6\n\
                  .amdhsa_kernel k\n.amdhsa_next_free_vgpr 4\n.amdhsa_next_free_sgpr 4\n.amdhsa_accum_offset 4\n\
                  .end_amdhsa_kernel\n";
    let target = Target::new("gfx90a");
    let assembly = Engine::Worker.open_at(Some(OLD))?.assemble(&target, source)?;
    let Ok(expected) = reference(OLD_MC, &target, source)? else { return Err("llvm-mc refuses it".into()) };
    let warnings: Vec<&str> = assembly.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
    if assembly.object == Some(expected) && warnings == ["kept"] { Ok(()) } else { Err(format!("{warnings:?}").into()) }
}

fn unknown(engine: Engine) -> Outcome {
    match engine.open()?.assemble(&Target::new("gfx999"), "s_nop 0\n") {
        Err(error) if error.kind() == ErrorKind::UnknownTarget && error.to_string().contains("gfx999") => Ok(()),
        result => Err(format!("{result:?}").into()),
    }
}

/// In units of 128 bytes, rounded up, and 63 at most on gfx11, 255 on gfx12: bits 4 to 9 and 4 to 11 of the descriptor's
/// third word of settings (AMDGPU backend guide, "Kernel Descriptor").
fn prefetch_size() -> Outcome {
    let toolchain = Engine::Worker.open()?;
    for (processor, nops, mask, expected) in [
        ("gfx1100", 31, 1008, 1),
        ("gfx1100", 32, 1008, 2),
        ("gfx1100", 5000, 1008, 63),
        ("gfx1201", 5000, 4080, 157),
        ("gfx1201", 50_000, 4080, 255),
    ] {
        let source = format!(
            "k:\n.rept {nops}\ns_nop 0\n.endr\ns_endpgm\n.Lend:\n.section .rodata,\"a\"\n.amdhsa_kernel k\n\
             .amdhsa_next_free_vgpr 1\n.amdhsa_next_free_sgpr 1\n\
             .amdhsa_inst_pref_size ((instprefsize(.Lend-k)<<4)&{mask})>>4\n.end_amdhsa_kernel\n"
        );
        let Assembly { object, diagnostics } = toolchain.assemble(&Target::new(processor), &source)?;
        let object = object.ok_or_else(|| format!("{diagnostics:?}"))?;
        let file = object::File::parse(&*object)?;
        let kd = file.symbol_by_name("k.kd").ok_or("no descriptor")?.address() as usize;
        let settings = file.section_by_name(".rodata").ok_or("no .rodata")?.data()?.get(kd + 44..kd + 48);
        let settings = u32::from_le_bytes(settings.ok_or("too short")?.try_into()?);
        if (settings & mask) >> 4 != expected {
            return Err(format!("{processor}, {nops}: {settings:#x}, expected {expected}").into());
        }
    }
    Ok(())
}
