//! Metadata text: the fast reader and the YAML parser agree on everything the fast one answers.
//!
//! Real texts are those that `llvm-readelf` printed for the committed code objects, and the assembly files of a larger
//! corpus (`COAX_CORPUS`); each is also mutated, at positions and with fragments that matter to YAML.

mod support;

use codeobj::metadata::{Count, Detail, Metadata};
use codeobj::{ErrorKind, Place};
use support::Random;

fn both_ways(text: &str) {
    for detail in [Detail::Counts, Detail::Full] {
        let fast = Metadata::from_yaml(text, detail);
        let by_the_book = Metadata::from_yaml_by_the_book(text, detail);
        assert_eq!(fast, by_the_book, "{detail:?} of:\n{text}");
    }
}

fn real_texts() -> Vec<String> {
    let printed = support::code_objects().into_iter().map(|name| support::bytes(&format!("{name}.llvm")));
    let mut texts: Vec<String> = printed.filter_map(|bytes| between(&bytes, "---\n", "\n...\n")).collect();
    for path in support::corpus().map(|folder| support::files_below(&folder)).unwrap_or_default() {
        let bytes = std::fs::read(&path).expect("readable");
        texts.extend(between(&bytes, "\t.amdgpu_metadata\n", "\t.end_amdgpu_metadata"));
        texts.extend(between(&bytes, "\t.amdgpu_metadata\r\n", "\t.end_amdgpu_metadata"));
    }
    texts.sort();
    texts.dedup();
    texts
}

/// From the first `start` to the next `end`; the marks of YAML stay, those of the assembler go.
fn between(bytes: &[u8], start: &str, end: &str) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let from = text.find(start)? + if start == "---\n" { 0 } else { start.len() };
    let to = from + text[from..].find(end)?;
    Some(text[from..to].to_string() + if start == "---\n" { "\n...\n" } else { "" })
}

#[test]
fn fast_reader_agrees_on_real_texts() {
    let texts = real_texts();
    assert!(texts.len() >= 8);
    texts.iter().for_each(|text| both_ways(text));
}

#[test]
fn fast_reader_agrees_on_mutated_texts() {
    const FRAGMENTS: [&str; 34] = [
        "\n", " ", "  ", "\t", "\r", ":", ": ", "- ", "-", "#", " #", "'", "\"", "[", "]", "{}", "[]", "&a ", "*a",
        "!x ", "|", ">", "?", "%", "@", "é", "...", "---", "\n...\n", "\n---\n", "~", "null", "0x10", ",",
    ];
    let mut random = Random(7);
    for text in real_texts() {
        // Short texts get every kind of mutation at every kind of line; long ones the same number.
        for _ in 0..400 {
            let mut mutated = text.clone();
            for _ in 0..=random.below(2) {
                let at = random.below(mutated.len());
                if !mutated.is_char_boundary(at) {
                    continue;
                }
                match random.below(4) {
                    0 => drop(mutated.remove(at)),
                    1 => mutated.insert_str(at, FRAGMENTS[random.below(FRAGMENTS.len())]),
                    2 => mutated.truncate(at.max(1)),
                    _ => {
                        let line = mutated[..at].rfind('\n').map_or(0, |newline| newline + 1);
                        let fragment = FRAGMENTS[random.below(FRAGMENTS.len())];
                        mutated.insert_str(line, fragment);
                    }
                }
            }
            both_ways(&mutated);
        }
    }
}

#[test]
fn every_truncation_of_a_text_agrees() {
    for text in real_texts().iter().filter(|text| text.len() < 3000) {
        (0..text.len()).filter(|end| text.is_char_boundary(*end)).for_each(|end| both_ways(&text[..end]));
    }
}

fn kernel(entry: &str) -> codeobj::KernelMetadata {
    let text = format!("---\namdhsa.kernels:\n  - {}\n...\n", entry.replace('\n', "\n    "));
    both_ways(&text);
    let metadata = Metadata::from_yaml(&text, Detail::Full).unwrap_or_else(|error| panic!("{error} in:\n{text}"));
    metadata.kernels.into_iter().next().expect("a kernel")
}

#[test]
fn only_decimal_integers_are_counts() {
    assert_eq!(kernel(".vgpr_count: 41").vgpr_count, Count::Value(41));
    assert_eq!(kernel(".name: k").vgpr_count, Count::Absent);
    assert_eq!(kernel(".vgpr_count: -3").vgpr_count, Count::Negative(-3));
    for odd in ["0x30", "30.0", "'30'", "many", "[1]", "true", "1_000", "+5", "~"] {
        assert!(matches!(kernel(&format!(".vgpr_count: {odd}")).vgpr_count, Count::Bad(_)), "{odd}");
    }
    let huge = "9".repeat(4301);
    assert!(
        matches!(kernel(&format!(".vgpr_count: {huge}")).vgpr_count, Count::Bad(reason) if reason.contains("4301"))
    );
    assert!(matches!(kernel(".vgpr_count: 18446744073709551616").vgpr_count, Count::Bad(_)));
    assert_eq!(kernel(".vgpr_count: 18446744073709551615").vgpr_count, Count::Value(u64::MAX));
}

#[test]
fn a_count_in_quotes_is_called_that() {
    let reason = |value: &str| match kernel(&format!(".vgpr_count: {value}")).vgpr_count {
        Count::Bad(reason) => reason,
        other => panic!("{value}: {other:?}"),
    };
    assert_eq!(reason("'48'"), "\"48\" is a quoted text, not a number");
    assert_eq!(reason("\"-1\""), "\"-1\" is a quoted text, not a number");
    assert_eq!(reason("18446744073709551616"), "18446744073709551616 needs more than 64 bits");
    assert_eq!(reason(&"9".repeat(50)), "a number of 50 digits needs more than 64 bits");
}

#[test]
fn a_repeated_key_is_named_and_the_first_value_stays() {
    for entry in [".vgpr_count: 1\n.name: k\n.vgpr_count: 2", ".name: k\n.vgpr_count: 1\n.vgpr_count: 2"] {
        let repeated = kernel(entry);
        assert_eq!(repeated.vgpr_count, Count::Value(1));
        assert!(repeated.problems.iter().any(|problem| problem.contains("`.vgpr_count`")), "{:?}", repeated.problems);
    }
}

#[test]
fn names_of_arguments_are_not_the_kernels() {
    let kernel = kernel(".args:\n  - .name: argument\n    .offset: 0\n.vgpr_count: 1");
    assert_eq!(kernel.name, None);
    assert_eq!(kernel.args[0].name.as_deref(), Some("argument"));
}

#[test]
fn a_name_may_look_like_a_number() {
    assert_eq!(kernel(".name: 123").name.as_deref(), Some("123"));
    assert_eq!(kernel(".name: true").name.as_deref(), Some("true"));
    assert_eq!(kernel(".name: 'k<float, 4>'").name.as_deref(), Some("k<float, 4>"));
}

#[test]
fn wrong_types_are_problems_not_errors() {
    let no_list = Metadata::from_yaml("amdhsa.kernels: 5\n", Detail::Counts).expect("YAML");
    assert!(no_list.kernels_listed && no_list.kernels.is_empty());
    assert_eq!(no_list.problems, ["amdhsa.kernels is a number, expected a list"]);
    let no_map = Metadata::from_yaml("amdhsa.kernels:\n  - 5\n  - .name: k\n", Detail::Counts).expect("YAML");
    assert_eq!((no_map.kernels.len(), no_map.problems.len()), (1, 1));
    let no_key = Metadata::from_yaml("amdhsa.target: amdgcn-amd-amdhsa--gfx942\n", Detail::Counts).expect("YAML");
    assert!(!no_key.kernels_listed);
}

#[test]
fn what_is_not_one_document_is_an_error_with_its_place() {
    let error = |text: &str| Metadata::from_yaml(text, Detail::Counts).expect_err(text);
    assert!(matches!(error("a: [1\nb: 2\n").place, Place::Text { line: 1.., column: 1.. }));
    assert_eq!(error("a: &x 1\nb: *x\n").kind, ErrorKind::Unsupported);
    assert_eq!(error("a: 1\n---\nb: 2\n").place, Place::Text { line: 2, column: 1 });
    assert_eq!(error("").kind, ErrorKind::Malformed);
    let deep = (0..100).map(|level| "  ".repeat(level) + "a:\n").collect::<String>();
    assert_eq!(error(&deep).kind, ErrorKind::Limit);
    error(&"[".repeat(100_000));
    error(&"- ".repeat(100_000));
}
