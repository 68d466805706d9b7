//! Single instructions: their bytes are `llvm-mc`'s, those of real kernels are the kernels' own, and a wrong one costs
//! only itself.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use llvm::{Decoder, Encoded, Encoder, Listing, Options, RoundTrip, State, Target};
use object::{Object, ObjectSection};

use crate::objdump::processor;
use crate::{Engine, Outcome, files_below, fixture};

/// `v_mfma_scale_f32_16x16x128_f8f6f4` with bits 13 and 14 set, which nothing reads and no text shows.
const UNUSED_BITS: [u32; 4] = [0xd3ac_6000, 0x0003_319c, 0xd3ad_8c00, 0x8402_194c];
/// Printed as `v_min_num_f64_e32 v[1:2]/*Invalid register, …*/, …`, on gfx1250.
const PHANTOM: u32 = 0x1a02_1108;

pub fn trials(engines: &[Engine]) -> Vec<Trial> {
    let corpus = std::env::var_os("COAX_CORPUS").map(PathBuf::from);
    let mut trials = vec![Trial::test("workers_do_not_change_what_is_encoded", workers)];
    for &engine in engines {
        let corpus = corpus.clone();
        let mut add = |name: &str, test: fn(Engine) -> Outcome| {
            trials.push(Trial::test(format!("{name}_{engine:?}"), move || test(engine)));
        };
        add("a_kernels_text_gives_its_bytes", kernel);
        add("what_does_not_survive_is_told", casualties);
        add("a_wrong_text_costs_only_itself", wrong_texts);
        add("other_bytes_are_found_out", other_bytes);
        if let Some(folder) = corpus {
            let name = format!("the_corpus_survives_but_for_known_instructions_{engine:?}");
            trials.push(Trial::test(name, move || whole_corpus(engine, &folder)));
        }
    }
    trials
}

fn code(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn text_section(path: &Path) -> Result<(&'static str, Vec<u8>), Failed> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(&*bytes)?;
    Ok((processor(file.flags())?, file.section_by_name(".text").ok_or("no .text")?.data()?.to_vec()))
}

/// Both ways: text by text, and the listing as a whole.
fn kernel(engine: Engine) -> Outcome {
    let toolchain = engine.open()?;
    let (processor, code) = text_section(&fixture())?;
    let target = Target::new(processor);
    let listing = toolchain.decode(&target, &code)?;
    let trips = toolchain.round_trips(&target, &[(&code, &listing)])?;
    let texts: Vec<&str> = listing.instructions().iter().map(|instruction| listing.text(instruction)).collect();
    let encoded: Vec<Encoded> = toolchain.encode(&target, &texts)?;
    for (instruction, encoded) in listing.instructions().iter().zip(encoded) {
        let start = instruction.offset as usize;
        let bytes = &code[start..start + usize::from(instruction.len)];
        let trip = trips.get(instruction.encoding);
        if encoded.as_deref() != Ok(bytes) || trip != Some(&RoundTrip::Same) {
            return Err(format!("{}: {encoded:x?}, {trip:x?}", listing.text(instruction)).into());
        }
    }
    if texts.len() > 400 { Ok(()) } else { Err("too few".into()) }
}

fn casualties(engine: Engine) -> Outcome {
    let unused_bits = code(&UNUSED_BITS);
    let mut plain = unused_bits.clone();
    plain[1] = 0;
    match trip_of_first(engine, "gfx950", &unused_bits)? {
        Some(RoundTrip::Differs(bytes)) if *bytes == *plain => {}
        other => return Err(format!("{other:x?}").into()),
    }
    match trip_of_first(engine, "gfx1250", &code(&[PHANTOM]))? {
        Some(RoundTrip::Refused(refusal)) if refusal.column == 19 => {}
        other => return Err(format!("{other:x?}").into()),
    }
    Ok(())
}

fn trip_of_first(engine: Engine, processor: &str, code: &[u8]) -> Result<Option<RoundTrip>, Failed> {
    let (toolchain, target) = (engine.open()?, Target::new(processor));
    let listing = toolchain.decode(&target, code)?;
    let trips = toolchain.round_trips(&target, &[(code, &listing)])?;
    Ok(trips.get(listing.instructions()[0].encoding).cloned())
}

/// A check that passes over other bytes than those decoded would prove nothing.
fn other_bytes(engine: Engine) -> Outcome {
    let (toolchain, target) = (engine.open()?, Target::new("gfx942"));
    let listing = toolchain.decode(&target, &code(&[0xbf80_0001]))?;
    let trips = toolchain.round_trips(&target, &[(&code(&[0xbf80_0002]), &listing)])?;
    match trips.get(listing.instructions()[0].encoding) {
        Some(RoundTrip::Differs(bytes)) if **bytes == code(&[0xbf80_0001]) => Ok(()),
        other => Err(format!("{other:x?}").into()),
    }
}

fn wrong_texts(engine: Engine) -> Outcome {
    let texts = [
        ("s_nop 1", None),
        ("s_nop xx", Some("invalid operand")),
        (".if 0", Some("not an instruction")),
        ("s_nop 2", None),
        ("foo:", Some("not an instruction")),
        ("x = 5", Some("not an instruction")),
        ("s_mov_b32 s0, y", Some("symbol")),
        ("s_branch y", Some("")),
        ("s_branch 5", None),
        ("s_nop 0\ns_nop 1", Some("not an instruction")),
        ("", Some("not an instruction")),
        ("; s_nop 0", Some("not an instruction")),
        ("s_nop 3 /* ", Some("")),
        ("v_mov_b32 v1, v2 /*v256*/ ; text", None),
        ("s_nop 1", None),
        ("s_mov_b32 s0, \"", Some("")),
        ("s_mov_b32 s0, 0x12345678", None),
    ];
    let all: Vec<&str> = texts.iter().map(|(text, _)| *text).collect();
    let encoded = engine.open()?.encode(&Target::new("gfx942"), &all)?;
    for ((text, expected), encoded) in texts.iter().zip(&encoded) {
        let right = match (expected, encoded) {
            (None, Ok(bytes)) => !bytes.is_empty(),
            (Some(part), Err(refusal)) => refusal.message.contains(part),
            _ => false,
        };
        if !right {
            return Err(format!("`{text}` is {encoded:x?}").into());
        }
    }
    let [first, last] = [encoded[0].as_deref(), encoded[16].as_deref()];
    if (first, last) == (Ok(&[1, 0, 0x80, 0xbf]), Ok(&[0xff, 0, 0x80, 0xbe, 0x78, 0x56, 0x34, 0x12])) {
        return Ok(());
    }
    Err(format!("{first:x?}, {last:x?}").into())
}

/// Batches are cut where the number of workers says.
fn workers() -> Outcome {
    let texts =
        (0..5000).map(|i| if i % 7 == 0 { format!("s_nop s{i}") } else { format!("s_mov_b32 s{}, {i}", i % 200) });
    let texts: Vec<String> = texts.collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let encode = |workers| -> Result<Vec<Encoded>, llvm::Error> {
        llvm::open(&Options { workers, ..Options::default() })?.encode(&Target::new("gfx942"), &texts)
    };
    let alone = encode(1)?;
    let refused = alone.iter().filter(|encoded| encoded.is_err()).count();
    if refused < 700 || alone != encode(4)? { Err(format!("{refused} refused").into()) } else { Ok(()) }
}

/// The instructions of real kernels that do not survive, with a reason each.
const KNOWN: [(&str, &[&str]); 4] = [
    // Bits 13 and 14.
    ("gfx950", &["v_mfma_scale_f32_16x16x128_f8f6f4", "v_mfma_scale_f32_32x32x64_f8f6f4"]),
    // The third source, which is not there, is `s0` or `null`.
    (
        "gfx1100",
        &[
            "v_add_co_u32",
            "v_cmp_",
            "v_cvt_f16_f32_e64",
            "v_ldexp_f32",
            "v_lshlrev_b64",
            "v_mov_b16_e64",
            "v_mul_lo_u32",
            "v_readlane_b32",
        ],
    ),
    ("gfx1201", &["v_add_co_u32", "v_cmp_gt_i32_e64"]),
    // A newer compiler's choice of unused bits, and phantoms behind what LLVM 22 does not decode.
    ("gfx1250", &["v_cvt_pk_bf16_f32", "v_nop", "v_pk_", "v_min_num_f64_e32"]),
];

fn whole_corpus(engine: Engine, folder: &Path) -> Outcome {
    let toolchain = engine.open()?;
    let mut kernels: BTreeMap<&str, Vec<Vec<u8>>> = BTreeMap::new();
    for path in files_below(folder, &["co", "hsaco"]) {
        let (processor, code) = text_section(&path)?;
        kernels.entry(processor).or_default().push(code);
    }
    let mut surprises = String::new();
    for (processor, codes) in &kernels {
        let target = Target::new(processor);
        let listings = codes.iter().map(|code| toolchain.decode(&target, code)).collect::<Result<Vec<Listing>, _>>()?;
        let pieces: Vec<(&[u8], &Listing)> = codes.iter().map(Vec::as_slice).zip(&listings).collect();
        let trips = toolchain.round_trips(&target, &pieces)?;
        let known = KNOWN.iter().find(|(name, _)| name == processor).map_or(&[][..], |(_, known)| *known);
        let (mut same, mut differs, mut refused) = (0, 0, 0);
        for (listing, instruction) in listings.iter().flat_map(|l| l.instructions().iter().map(move |i| (l, i))) {
            match trips.get(instruction.encoding) {
                _ if instruction.state != State::Decoded => continue,
                Some(RoundTrip::Same) => same += 1,
                Some(RoundTrip::Differs(_)) => differs += 1,
                Some(RoundTrip::Refused(_)) => refused += 1,
                None => return Err(format!("{} was not checked", listing.text(instruction)).into()),
            }
            let survives = trips.get(instruction.encoding) == Some(&RoundTrip::Same);
            if !survives && !known.iter().any(|known| listing.mnemonic(instruction).starts_with(known)) {
                writeln!(surprises, "{processor}: {}", listing.text(instruction))?;
            }
        }
        eprintln!("{engine:?}, {processor}: {same} the same, {differs} with other bytes, {refused} refused");
    }
    if kernels.is_empty() || !surprises.is_empty() { Err(format!("surprises:\n{surprises}").into()) } else { Ok(()) }
}
