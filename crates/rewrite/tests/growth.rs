//! Grown code objects are what `ld.lld` links, and do what they did.

mod support;

use codeobj::CodeObject;
use llvm::{Decoder, Target};
use rewrite::{Edit, ErrorKind, Labels, change};
use support::relink::{Insertions, loadable, relink};

const SIZES: [usize; 5] = [4, 12, 256, 4096, 20000];

/// Where to insert, by kernel: its start, the target of a backward branch, its last instruction.
fn places(toolchain: &impl Decoder, bytes: &[u8]) -> Vec<u64> {
    let object = CodeObject::parse(bytes).expect("a code object");
    let target = Target::from_id(&object.target.short()).expect("a target");
    let mut places = Vec::new();
    for kernel in &object.kernels {
        let (Ok(body), Ok(placed)) = (&kernel.code, &kernel.descriptor) else { continue };
        let listing = toolchain.decode(&target, &bytes[body.file_range.clone()]).expect("decodes");
        let start = body.address - object.sections[body.section].address;
        let preloads = placed.descriptor.kernarg_preload_length() != 0 && !target.processor().starts_with("gfx125");
        places.push(start + if preloads { 256 } else { 0 });
        let offset = |i: &llvm::Instruction| u64::from(i.offset) + start;
        let code = &bytes[body.file_range.clone()];
        let back = listing.instructions().iter().filter(|i| !i.untrusted).find_map(|i| {
            let words = i16::from_le_bytes(code[i.offset as usize..][..2].try_into().ok()?);
            let target = (offset(i) + 4).checked_add_signed(i64::from(words) * 4)?;
            (listing.mnemonic(i).starts_with("s_cbranch") && words < 0 && target > start + 256).then_some(target)
        });
        places.extend(back);
        places.extend(listing.instructions().iter().rev().find(|i| listing.mnemonic(i) == "s_endpgm").map(offset));
    }
    places.sort_unstable();
    places.dedup();
    places
}

fn insertion(at: u64, size: usize) -> Edit {
    Edit { old: at..at, new: support::nops(size), labels: Labels::Before }
}

/// The first difference of two loadable images, for a person.
fn difference(a: &[u8], b: &[u8]) -> String {
    for ((a, a_bytes), (b, b_bytes)) in loadable(a).into_iter().zip(loadable(b)) {
        if a != b {
            return format!("{a} / {b}");
        }
        if let Some(at) = (0..a_bytes.len()).find(|at| a_bytes[*at] != b_bytes[*at]) {
            let end = a_bytes.len().min(at + 8);
            return format!("{:x?} / {:x?} at {at:#x} of {a}", &a_bytes[at..end], &b_bytes[at..end]);
        }
    }
    "the number of segments".to_string()
}

#[test]
fn grown_objects_pass_their_check_and_equal_a_relink() {
    let Some(toolchain) = support::llvm() else { return };
    let objects = support::objects();
    let (mut relinkable, mut equal, mut grown_count, mut too_far) = (0, 0, 0, 0);
    let mut refused = Vec::new();
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, bytes) in objects.iter().filter(|o| o.0.contains(&only)) {
        match change::apply(&toolchain, bytes, &[]) {
            Ok(same) => {
                assert!(same.warnings.iter().any(|w| w.contains(".debug_")) || same.code_object == *bytes, "{name}")
            }
            Err(error) if error.kind == ErrorKind::Unsupported => {
                eprintln!("{name}: refused: {error}");
                refused.push(name);
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        }
        let places = places(&toolchain, bytes);
        let own = relink(&toolchain, bytes, &Insertions::new());
        let applies = own.as_ref().is_ok_and(|own| loadable(own) == loadable(bytes));
        relinkable += usize::from(applies);
        if !applies {
            eprintln!(
                "{name}: a relink is not the original: {}",
                own.map_or_else(|e| e, |own| difference(bytes, &own))
            );
        }
        for size in SIZES {
            for at in &places {
                match change::apply(&toolchain, bytes, &[insertion(*at, size)]) {
                    Ok(_) => grown_count += 1,
                    Err(error) if error.kind == ErrorKind::NoRoom => too_far += 1,
                    Err(error) => panic!("{name}: {size} bytes at {at:#x}: {error}"),
                }
            }
            let edits: Vec<Edit> = places.iter().map(|at| insertion(*at, size)).collect();
            let grown = match change::apply(&toolchain, bytes, &edits) {
                Ok(grown) => grown,
                Err(error) if error.kind == ErrorKind::NoRoom => {
                    eprintln!("{name}: {size} bytes: {error}");
                    continue;
                }
                Err(error) => panic!("{name}: {size} bytes everywhere: {error}"),
            };
            if applies {
                let insertions = places.iter().map(|at| (*at, support::nops(size))).collect();
                let relinked = relink(&toolchain, bytes, &insertions).unwrap_or_else(|e| panic!("{name}: {size}: {e}"));
                let (ours, theirs) = (loadable(&grown.code_object), loadable(&relinked));
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    assert_eq!(ours.0, theirs.0, "{name}: {size} bytes: program header");
                    let differs = ours.1.iter().zip(&theirs.1).position(|(a, b)| a != b);
                    assert_eq!(differs, None, "{name}: {size} bytes: byte of {}", ours.0);
                }
                assert!(ours == theirs, "{name}: {size} bytes");
                equal += 1;
            }
        }
    }
    eprintln!(
        "{} objects, {} refused, {relinkable} whose relink is the original; {grown_count} grown at one place, {too_far} refused for a \
         branch or a prologue; {equal} grown at all places equal to their relink",
        objects.len(),
        refused.len(),
    );
    assert!(refused.is_empty(), "{refused:?}");
    assert!(relinkable >= 8 && equal > 0);
}
