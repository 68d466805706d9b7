//! COMGR in place of LLVM: what it decodes, encodes, assembles and links is what LLVM's libraries and tools make, and what
//! it cannot do is an error that says so.
//!
//! Debian's COMGR is version 2.4 on LLVM 15, whose library it needs and which is the reference for texts. A target
//! that both that one and LLVM 22 know is compared with LLVM 22 by its bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::{Failed, Trial};
use llvm::{
    Assembler, Assembly, Decoder, Encoder, ErrorKind, Isolation, Linker, Options, RoundTrip, Severity, State, Target,
    Toolchain,
};
use object::{Object, ObjectSection, ObjectSymbol};

use crate::noise::SplitMix;
use crate::{Engine, Outcome};

/// Debian 12's.
const COMGR: &str = "/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0";
/// The LLVM inside.
const ITS_LLVM: &str = "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1";
/// The environment variable that makes this program [`work_without_room`].
pub const NO_ROOM: &str = "COAX_TEST_COMGR_WITHOUT_ROOM";
/// Code objects of the repository whose targets it knows.
const CODE_OBJECTS: [(&str, &str); 3] = [
    ("clang/extra/small.gfx90a_xnack-.co", "gfx90a:xnack-"),
    ("clang/extra/small.gfx90a_xnack+.co", "gfx90a:xnack+"),
    ("code-objects/rocsparse.gfx1030.co", "gfx1030"),
];
const KERNEL: &str = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx90a:sramecc+\"\n\t.amdhsa_code_object_version 5\n\t.text\n\
    .globl k\n.p2align 8\n.type k,@function\nk:\ns_nop 0\nv_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]\ns_endpgm\n\
    .section .rodata,\"a\"\n.p2align 6\n.amdhsa_kernel k\n.amdhsa_next_free_vgpr 8\n.amdhsa_next_free_sgpr 4\n\
    .amdhsa_accum_offset 8\n.end_amdhsa_kernel\n\
    .amdgpu_metadata\namdhsa.version: [1, 2]\namdhsa.target: amdgcn-amd-amdhsa--gfx90a:sramecc+\namdhsa.kernels:\n\
    \x20 - {.name: k, .symbol: k.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 4, .wavefront_size: 64,\n\
    \x20    .private_segment_fixed_size: 0, .group_segment_fixed_size: 0, .sgpr_count: 4, .vgpr_count: 8,\n\
    \x20    .max_flat_workgroup_size: 256}\n.end_amdgpu_metadata\n";

pub fn trials() -> Vec<Trial> {
    let missing = [COMGR, ITS_LLVM].iter().any(|path| !Path::new(path).exists());
    if missing {
        eprintln!("skipped: COMGR: {COMGR} or {ITS_LLVM} is not installed (Debian: libamd-comgr2)");
    }
    let required = std::env::var("REQUIRE").is_ok_and(|list| list.split(',').any(|name| name.trim() == "comgr"));
    let trials = [
        Trial::test("comgr_says_what_it_is", described),
        Trial::test("comgr_decodes_real_code_as_its_llvm_does", decoded),
        Trial::test("comgr_decodes_noise_as_its_llvm_does", noise),
        Trial::test("comgr_encodes_what_llvm_22_prints_to_the_same_bytes", encoded),
        Trial::test("comgr_refuses_a_wrong_text_alone", wrong_texts),
        Trial::test("comgr_makes_the_object_of_its_llvms_llvm_mc", assembled),
        Trial::test("comgr_gives_errors_their_places", places),
        Trial::test("comgr_writes_the_code_object_version_asked_for_or_none", versions),
        Trial::test("comgr_links_as_ld_lld_does", linked),
        Trial::test("comgr_links_code_of_processors_that_it_does_not_know", linked_unknown),
        Trial::test("comgr_refuses_to_link_what_is_no_object", refused),
        Trial::test("comgr_refuses_targets_by_name", unknown),
        Trial::test("comgr_without_room_for_temporary_files_says_so", no_room),
        Trial::test("a_targets_features_change_no_text", features),
    ];
    trials.into_iter().map(|trial| trial.with_ignored_flag(missing && !required)).collect()
}

fn open(path: &str) -> Result<Toolchain, Failed> {
    Engine::Worker.open_at(Some(path))
}

fn described() -> Outcome {
    let comgr = open(COMGR)?;
    let description = comgr.describe();
    let linker = llvm::linker(Some(Path::new(COMGR)));
    let named = comgr.name_for(&Target::new("gfx90a"))?;
    let expected = format!("COMGR 2.4 ({COMGR})");
    match linker {
        Some(Linker::Comgr(linker))
            if linker == expected && description.starts_with(&expected) && named == "COMGR 2.4" =>
        {
            Ok(())
        }
        other => Err(format!("{description}, {named}, {other:?}").into()),
    }
}

fn code_objects() -> impl Iterator<Item = Result<(Target, Vec<u8>), Failed>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data");
    CODE_OBJECTS.into_iter().map(move |(file, target)| {
        let bytes = std::fs::read(folder.join(file))?;
        let file = object::File::parse(&*bytes)?;
        Ok((Target::from_id(target)?, file.section_by_name(".text").ok_or("no .text")?.data()?.to_vec()))
    })
}

/// The same texts as LLVM 15; the same pieces as LLVM 22.
fn decoded() -> Outcome {
    let (comgr, its_llvm, newest) = (open(COMGR)?, open(ITS_LLVM)?, Engine::Worker.open()?);
    let mut count = 0;
    for pair in code_objects() {
        let (target, code) = pair?;
        let [ours, theirs, new] = [&comgr, &its_llvm, &newest].map(|toolchain| toolchain.decode(&target, &code));
        let (ours, theirs, new) = (ours?, theirs?, new?);
        for ((a, b), c) in ours.instructions().iter().zip(theirs.instructions()).zip(new.instructions()) {
            let (text, expected) = (ours.text(a), theirs.text(b));
            let pieces = [a, b, c].map(|instruction| (instruction.offset, instruction.len, instruction.state));
            let newer = new.text(c) == V_ILLEGAL && a.state == State::Undecodable;
            if text != expected || pieces[0] != pieces[1] || pieces[0] != pieces[2] && !newer {
                return Err(format!("{target}: `{text}`, expected `{expected}`; {pieces:?}").into());
            }
            count += 1;
        }
        let lengths = [&ours, &theirs, &new].map(|listing| listing.instructions().len());
        if lengths != [lengths[0]; 3] {
            return Err(format!("{target}: {lengths:?} instructions").into());
        }
    }
    if count > 900 { Ok(()) } else { Err(format!("only {count}").into()) }
}

/// Random words: what decodes, what does not, and where the next begins.
fn noise() -> Outcome {
    let mut random = SplitMix(1);
    let code: Vec<u8> = (0..5000).flat_map(|_| random.next().to_le_bytes()).collect();
    for processor in ["gfx803", "gfx906", "gfx90a", "gfx1010", "gfx1030"] {
        let target = Target::new(processor);
        let [ours, theirs] = [open(COMGR)?, open(ITS_LLVM)?].map(|toolchain| toolchain.decode(&target, &code));
        let (ours, theirs) = (ours?, theirs?);
        let crashed = |state| state == State::Crashed;
        for (a, b) in ours.instructions().iter().zip(theirs.instructions()) {
            if (a.offset, a.len, a.state, ours.text(a)) != (b.offset, b.len, b.state, theirs.text(b)) {
                return Err(format!("{processor}: {a:?} `{}`, {b:?} `{}`", ours.text(a), theirs.text(b)).into());
            }
        }
        let count = |wanted: fn(State) -> bool| ours.instructions().iter().filter(|i| wanted(i.state)).count();
        eprintln!(
            "{processor}: {} decoded, {} not, {} crashed",
            count(|state| state == State::Decoded),
            count(|state| state == State::Undecodable),
            ours.instructions().iter().filter(|i| crashed(i.state)).count()
        );
    }
    Ok(())
}

/// What LLVM 22 makes of a word of zeros, which LLVM 15 does not decode.
const V_ILLEGAL: &str = "v_illegal";

/// Whether only LLVM 22 writes and reads a text. LLVM 15 prints `lit(…)` as the number alone, which is another
/// instruction, and the check of round trips says so.
fn is_newer(text: &str) -> bool {
    text.contains("lit(") || text == V_ILLEGAL
}

fn encoded() -> Outcome {
    let (comgr, newest) = (open(COMGR)?, Engine::Worker.open()?);
    for pair in code_objects() {
        let (target, code) = pair?;
        let new = newest.decode(&target, &code)?;
        let plain: Vec<_> = new.instructions().iter().filter(|i| !is_newer(new.text(i))).collect();
        let texts: Vec<&str> = plain.iter().map(|instruction| new.text(instruction)).collect();
        for (instruction, encoded) in plain.iter().zip(comgr.encode(&target, &texts)?) {
            let start = instruction.offset as usize;
            let bytes = &code[start..start + usize::from(instruction.len)];
            if encoded.as_deref() != Ok(bytes) {
                return Err(format!("{target}: `{}` is {encoded:x?}, not {bytes:x?}", new.text(instruction)).into());
            }
        }
        let listing = comgr.decode(&target, &code)?;
        let trips = comgr.round_trips(&target, &[(&code, &listing)])?;
        for (ours, new_one) in listing.instructions().iter().zip(new.instructions()) {
            let same = trips.get(ours.encoding) == Some(&RoundTrip::Same);
            if same == is_newer(new.text(new_one)) {
                return Err(format!("{target}: `{}` survives: {same}", listing.text(ours)).into());
            }
            if same && newest.encode(&target, &[listing.text(ours)])? != comgr.encode(&target, &[listing.text(ours)])? {
                return Err(format!("{target}: LLVM 22 encodes `{}` in another way", listing.text(ours)).into());
            }
        }
    }
    Ok(())
}

fn wrong_texts() -> Outcome {
    let texts = ["s_nop 1", "s_nop xx", ".if 0", "s_branch y", "s_mov_b32 s0, y", "", "s_nop 2", "v_mov_b32 v0, v900"];
    let encoded = open(COMGR)?.encode(&Target::new("gfx90a"), &texts)?;
    let refused: Vec<bool> = encoded.iter().map(Result::is_err).collect();
    let column = encoded[7].as_ref().map_err(|refusal| refusal.column);
    if refused == [false, true, true, true, true, true, false, true] && column == Err(15) {
        return Ok(());
    }
    Err(format!("{encoded:x?}").into())
}

/// LLVM 15 takes its version from elsewhere, so its reference has none in the text.
fn assembled() -> Outcome {
    let target = Target::from_id("gfx90a:sramecc+")?;
    let source: String =
        KERNEL.lines().filter(|line| !line.contains("code_object_version")).map(|l| format!("{l}\n")).collect();
    let source = source.replace("[1, 2]", "[1, 1]");
    let [ours, theirs] = [open(COMGR)?, open(ITS_LLVM)?].map(|toolchain| toolchain.assemble(&target, &source));
    match (ours?, theirs?) {
        (Assembly { object: Some(ours), .. }, Assembly { object: Some(theirs), .. }) if ours == theirs => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

fn places() -> Outcome {
    let source = "s_nop 0\n  v_mov_b32 v0, v900\n.warning \"error: none\"\n.nonsense\n";
    let Assembly { object, diagnostics } = open(COMGR)?.assemble(&Target::new("gfx90a"), source)?;
    let found: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    let expected =
        ["2:17: error: register index is out of range", "3:1: warning: error: none", "4:1: error: unknown directive"];
    if object.is_none() && found == expected { Ok(()) } else { Err(format!("{found:?}").into()) }
}

fn versions() -> Outcome {
    let (comgr, target) = (open(COMGR)?, Target::from_id("gfx90a:sramecc+")?);
    for version in [4, 5, 6, 7, 999] {
        let source = KERNEL.replace("version 5", &format!("version {version}"));
        let Assembly { object, diagnostics } = comgr.assemble(&target, &source)?;
        let abi = object.as_ref().map(|object| u32::from(object[8]) + 2);
        let error = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        if abi.is_some_and(|abi| abi != version) || error != abi.is_none() || version <= 5 && error {
            return Err(format!("{version}: {abi:?}, {diagnostics:?}").into());
        }
        if error {
            eprintln!("{version}: {diagnostics:?}");
        }
    }
    Ok(())
}

/// Sections, dynamic symbols and header; the layout is that of another version of lld.
type Parts = (Vec<(String, Vec<u8>)>, Vec<(String, u64)>, object::FileFlags);

fn parts(code_object: &[u8]) -> Result<Parts, Failed> {
    let file = object::File::parse(code_object)?;
    let mut sections = Vec::new();
    for name in [".note", ".rodata", ".text"] {
        let data = file.section_by_name(name).map_or(Ok(&[][..]), |section| section.data())?.to_vec();
        // The descriptor holds the distance to the code, which differs with the layout.
        sections.push((name.to_owned(), if name == ".rodata" { data.into_iter().take(16).collect() } else { data }));
    }
    let symbols = file.dynamic_symbols().map(|symbol| (symbol.name().unwrap_or_default().to_owned(), symbol.size()));
    Ok((sections, symbols.collect(), file.flags()))
}

fn linked() -> Outcome {
    let target = Target::from_id("gfx90a:sramecc+")?;
    let assembly = open(COMGR)?.assemble(&target, KERNEL)?;
    let object = assembly.object.ok_or_else(|| format!("{:?}", assembly.diagnostics))?;
    let (ours, theirs) = (llvm::link(Some(Path::new(COMGR)), &object)?, llvm::link(None, &object)?);
    let (ours, theirs) = (parts(&ours)?, parts(&theirs)?);
    if ours == theirs { Ok(()) } else { Err(format!("{ours:x?}, expected {theirs:x?}").into()) }
}

fn linked_unknown() -> Outcome {
    let source = ".globl f\n.type f,@function\n.p2align 8\nf:\ns_endpgm\n";
    let object = Engine::Worker.open()?.assemble(&Target::new("gfx942"), source)?.object.ok_or("no object")?;
    // LLVM 22's default is code object version 6, which lld 15 does not know: that is told.
    match llvm::link(Some(Path::new(COMGR)), &object) {
        Err(error) if error.kind() == ErrorKind::LinkFailed && error.to_string().contains("COMGR 2.4") => {}
        other => return Err(format!("version 6: {other:?}").into()),
    }
    let source = format!(".amdhsa_code_object_version 5\n{source}");
    let object = Engine::Worker.open()?.assemble(&Target::new("gfx942"), &source)?.object.ok_or("no object")?;
    let (ours, theirs) = (llvm::link(Some(Path::new(COMGR)), &object)?, llvm::link(None, &object)?);
    let (ours, theirs) = (parts(&ours)?, parts(&theirs)?);
    if ours == theirs { Ok(()) } else { Err(format!("{ours:x?}, expected {theirs:x?}").into()) }
}

fn refused() -> Outcome {
    for object in [&b"no object"[..], b"", b"\x7fELF"] {
        match llvm::link(Some(Path::new(COMGR)), object) {
            Err(error) if error.kind() == ErrorKind::LinkFailed && error.to_string().contains("COMGR 2.4") => {}
            other => return Err(format!("{object:?}: {other:?}").into()),
        }
    }
    Ok(())
}

fn unknown() -> Outcome {
    let comgr = open(COMGR)?;
    let wave64 = Target::new("gfx1030").with_wave64(true);
    // The last two: the API cannot say the wave size, and the processor has no XNACK.
    let targets = ["gfx942", "gfx1100", "gfx999", "", "gfx600", "gfx705", "gfx90a ", "generic"].map(Target::new);
    for target in targets.into_iter().chain([wave64, Target::from_id("gfx1030:xnack+")?]) {
        match comgr.decode(&target, &[0, 0, 0x81, 0xbf]) {
            Err(error) if error.kind() == ErrorKind::UnknownTarget => {
                let text = error.to_string();
                if !text.contains(&format!("`{target}`")) || !text.contains("COMGR 2.4") {
                    return Err(format!("{target}: {text}").into());
                }
            }
            other => return Err(format!("{target}: {:?}", other.map(|listing| listing.instructions().len())).into()),
        }
    }
    let always_wave64 = Target::new("gfx90a").with_wave64(true);
    comgr.decode(&always_wave64, &[0, 0, 0x81, 0xbf])?;
    Ok(())
}

fn no_room() -> Outcome {
    let nowhere = "/nowhere/at/all";
    let run = Command::new(std::env::current_exe()?).env(NO_ROOM, COMGR).env("TMPDIR", nowhere).output()?;
    let said = String::from_utf8_lossy(&run.stdout);
    if run.status.success() && said.matches(nowhere).count() >= 3 && said.matches("$TMPDIR").count() == 4 {
        return Ok(());
    }
    Err(format!("{run:?}").into())
}

/// What each function says where no temporary file can be made: COMGR in this process, then in workers.
pub fn work_without_room(path: PathBuf) -> Result<(), llvm::Error> {
    let options = Options { path: Some(path), isolation: Isolation::InProcess, ..Options::default() };
    let (comgr, target) = (llvm::open(&options)?, Target::new("gfx90a"));
    let errors = [
        comgr.decode(&target, &[0, 0, 0x81, 0xbf]).err(),
        comgr.encode(&target, &["s_nop 0", "s_nop 1"]).err(),
        comgr.assemble(&target, "s_nop 0\n").err(),
        llvm::open(&Options { isolation: Isolation::Worker, ..options }).err(),
    ];
    for error in errors {
        match error {
            Some(error) if error.kind() == ErrorKind::WorkerFailed => println!("{error}"),
            other => println!("not refused: {other:?}"),
        }
    }
    Ok(())
}

/// COMGR is given the processor alone; that is right as long as this holds.
fn features() -> Outcome {
    let mut random = SplitMix(2);
    let code: Vec<u8> = (0..5000).flat_map(|_| random.next().to_le_bytes()).collect();
    for (path, ids) in [
        (None, ["gfx90a", "gfx90a:sramecc+:xnack-", "gfx90a:sramecc-:xnack+"]),
        (None, ["gfx942", "gfx942:sramecc+:xnack-", "gfx942:sramecc-:xnack+"]),
        (None, ["gfx1010", "gfx1010:xnack-", "gfx1010:xnack+"]),
        (Some(ITS_LLVM), ["gfx90a", "gfx90a:sramecc+:xnack-", "gfx90a:sramecc-:xnack+"]),
        (Some(ITS_LLVM), ["gfx906", "gfx906:sramecc+:xnack-", "gfx906:sramecc-:xnack+"]),
    ] {
        let toolchain = Engine::Worker.open_at(path)?;
        let mut listings = Vec::new();
        for id in ids {
            let listing = toolchain.decode(&Target::from_id(id)?, &code)?;
            listings
                .push(listing.instructions().iter().map(|i| (i.len, listing.text(i).to_owned())).collect::<Vec<_>>());
        }
        if listings[0] != listings[1] || listings[0] != listings[2] {
            return Err(format!("{ids:?}: they differ").into());
        }
    }
    Ok(())
}
