//! Damaged input: an error or the same answer, never a panic, a hang, or silently fewer kernels.

mod support;

use codeobj::container::{self, Contents, Member};
use codeobj::{CodeObject, Error, ErrorKind, Place};
use std::time::{Duration, Instant};
use support::Random;

const CONTAINERS: [&str; 6] = [
    "fatbin/multi_plain.hipfb",
    "fatbin/multi_ccob.hipfb",
    "fatbin/single_ccob_v2.hipfb",
    "fatbin/single_ccob_v3.hipfb",
    "fatbin/offload_packager.bin",
    "fatbin/host_fatbin.so",
];

type Parsed = Result<CodeObject, Error>;

/// Every member of a container, its code object parsed.
fn read_all(bytes: &[u8]) -> Result<Vec<(String, Parsed)>, Error> {
    let Contents { entries, mut problems, .. } = container::open(bytes)?;
    let mut read = Vec::new();
    for entry in entries {
        let loaded = entry.load()?;
        problems.extend(loaded.problems);
        for Member { path, bytes, .. } in loaded.entries {
            read.push((path, CodeObject::parse(&bytes)));
        }
    }
    // Bytes that are no bundle may have been one: said, therefore not silent.
    match problems.first() {
        None => Ok(read),
        Some(problem) => Err(Error { message: problem.to_string(), ..silent() }),
    }
}

fn silent() -> Error {
    Error { kind: ErrorKind::Malformed, message: String::new(), place: Place::Whole }
}

#[test]
fn a_truncated_code_object_is_an_error_at_every_length() {
    for name in support::code_objects() {
        let bytes = support::bytes(&name);
        for length in 0..bytes.len() {
            let parsed = CodeObject::parse(&bytes[..length]);
            assert!(parsed.is_err(), "{name}: {length} of {} bytes", bytes.len());
        }
    }
}

#[test]
fn a_truncated_container_never_has_fewer_entries_silently() {
    for name in CONTAINERS {
        let bytes = support::bytes(name);
        let whole = read_all(&bytes).expect(name);
        // Two packages behind each other: cut between them, the first is a whole file.
        let boundary = if name.ends_with("packager.bin") { Some(0x1e70) } else { None };
        for length in (0..bytes.len()).filter(|length| Some(*length) != boundary) {
            // Decompressing the same prefix again and again tells nothing new; around the ends it does.
            if name.ends_with(".so") && length % 7 != 0 && length > 0x1000 {
                continue;
            }
            if let Ok(read) = read_all(&bytes[..length]) {
                let same = read.len() == whole.len() && read.iter().zip(&whole).all(|(a, b)| a == b);
                assert!(same, "{name}: {length} of {} bytes give {} entries", bytes.len(), read.len());
            }
        }
    }
}

/// What a disk loses. A bundle may hold anything, but not under an ID that says what it is for.
#[test]
fn a_zeroed_block_never_loses_or_changes_a_kernel_silently() {
    type Kernels = Vec<(String, Vec<codeobj::KernelMetadata>)>;
    // None when something is said to be wrong.
    let kernels = |bytes: &[u8]| -> Option<Kernels> {
        let mut kernels = Vec::new();
        for (path, object) in read_all(bytes).ok()? {
            let object = object.ok().filter(|o| o.problems.is_empty() && o.metadata.is_some())?;
            if object.kernels.iter().any(|k| !k.problems.is_empty() || !k.metadata.problems.is_empty()) {
                return None;
            }
            kernels.push((path, object.kernels.into_iter().map(|kernel| kernel.metadata).collect()));
        }
        (!kernels.is_empty()).then_some(kernels)
    };
    for name in ["fatbin/multi_plain.hipfb", "fatbin/host_fatbin.so"] {
        let bytes = support::bytes(name);
        let whole = kernels(&bytes).expect(name);
        for at in (0..bytes.len()).step_by(512) {
            let mut zeroed = bytes.clone();
            let end = bytes.len().min(at + 512);
            zeroed[at..end].fill(0);
            if let Some(read) = kernels(&zeroed) {
                assert!(read == whole, "{name}: block at {at:#x}");
            }
        }
    }
}

#[test]
fn flipped_bytes_neither_panic_nor_hang() {
    let inputs = support::code_objects().into_iter().chain(CONTAINERS.map(String::from));
    let inputs: Vec<Vec<u8>> = inputs.map(|name| support::bytes(&name)).collect();
    let mut random = Random(1);
    let mut slowest = Duration::ZERO;
    for _ in 0..10_000 {
        let mut bytes = inputs[random.below(inputs.len())].clone();
        for _ in 0..=random.below(3) {
            // Headers are small and decide most: every second flip goes there.
            let limit = if random.below(2) == 0 { bytes.len().min(0x400) } else { bytes.len() };
            let at = random.below(limit);
            bytes[at] ^= 1 << random.below(8);
        }
        let start = Instant::now();
        let _ = read_all(&bytes);
        let _ = CodeObject::parse(&bytes);
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
}

#[test]
fn sizes_beyond_the_file_are_errors_with_section_and_offset() {
    let bytes = support::bytes("code-objects/vector_add.gfx942.hsaco");
    let section_headers = u64::from_le_bytes(bytes[40..48].try_into().expect("8 bytes")) as usize;
    let count = u16::from_le_bytes([bytes[60], bytes[61]]) as usize;
    let mut named = 0;
    for section in 1..count {
        // sh_addr, sh_offset and sh_size of an ELF64 section header.
        for field in [16, 24, 32] {
            for value in [1u64 << 63, u64::MAX, u64::MAX - 63, 1 << 40] {
                let mut hostile = bytes.clone();
                let at = section_headers + section * 64 + field;
                hostile[at..at + 8].copy_from_slice(&value.to_le_bytes());
                if let Err(error) = CodeObject::parse(&hostile) {
                    named += usize::from(matches!(error.place, Place::Section { .. }));
                }
            }
        }
    }
    assert!(named > count * 4, "only {named} errors name their section");
}

#[test]
fn every_header_field_may_hold_anything() {
    let inputs = CONTAINERS.iter().map(|name| support::bytes(name));
    let objects =
        ["vector_add.gfx942.hsaco", "ind.gfx1250.o"].map(|name| support::bytes(&format!("code-objects/{name}")));
    for bytes in inputs.chain(objects) {
        for at in (0..bytes.len().min(0x300)).step_by(4) {
            for value in [0, 1, 1u64 << 63, u64::MAX, 1 << 31, 0x7fff_ffff] {
                let mut hostile = bytes.clone();
                let end = hostile.len().min(at + 8);
                hostile[at..end].copy_from_slice(&value.to_le_bytes()[..end - at]);
                let _ = read_all(&hostile);
            }
        }
    }
}

#[test]
fn metadata_notes_are_damaged_without_a_panic() {
    let bytes = support::bytes("code-objects/rocsparse.gfx1030.co");
    let object = CodeObject::parse(&bytes).expect("code object");
    let note = object.sections.iter().find(|section| section.name == ".note").expect("note").file_range.clone();
    let mut random = Random(3);
    for _ in 0..5_000 {
        let mut damaged = bytes.clone();
        let at = note.start + random.below(note.len());
        damaged[at] = random.next() as u8;
        let _ = CodeObject::parse(&damaged);
    }
}

#[test]
fn a_cut_file_says_where_it_should_end() {
    let bytes = support::bytes("code-objects/vector_add.gfx942.hsaco");
    let error = CodeObject::parse(&bytes[..4000]).expect_err("cut");
    let expected = "the file is cut or its header damaged: it has 4000 bytes (0xfa0), but the section header table ends \
                    at 0x14b8, as stated";
    assert_eq!((error.message.as_str(), error.place), (expected, Place::File(40)));
    // Without a section header table, the program headers are the first to miss.
    let mut stripped = bytes[..100].to_vec();
    stripped[40..48].fill(0);
    stripped[60..62].fill(0);
    let error = CodeObject::parse(&stripped).expect_err("cut");
    assert!(error.message.contains("100 bytes (0x64), but the program header table ends at 0x"), "{error}");
    assert_eq!(error.place, Place::File(32));
}

#[test]
fn other_files_are_said_by_name() {
    let message = |bytes: &[u8]| CodeObject::parse(bytes).expect_err("no code object").message;
    assert_eq!(message(b"\t.text\n"), "this is a text, expected an ELF file");
    assert!(message(&support::bytes("fatbin/host_fatbin.so")).contains("x86-64"));
    assert!(message(&support::bytes("fatbin/multi_plain.hipfb")).contains("an offload bundle"));
    assert!(message(b"\x7fELF\x02\x01").contains("cut short"));
    assert!(message(&[b"\x7fELF\x01\x01".as_slice(), &[0; 64]].concat()).contains("not 64-bit"));
}
