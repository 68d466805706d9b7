//! docs/sites.md and docs/mock.md: every example is read, and nothing that the program knows is left out.

use std::path::Path;

use compare::dtype;
use compare::site::{DeviceFacts, Site};
use gpu::mock::script::Script;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(path).expect("the document is there")
}

/// The blocks marked `toml`.
fn examples(text: &str) -> Vec<&str> {
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.collect()
}

fn parse(text: &str) -> Result<Site, String> {
    Site::parse(text, "site", Path::new(""), DeviceFacts { compute_units: 304, wave_size: 64 })
}

/// What a message lists between two of its parts.
fn listed(message: &str, before: &str) -> Vec<String> {
    let (_, rest) = message.split_once(before).unwrap_or_else(|| panic!("no `{before}` in {message}"));
    let words = rest.split([',', ' ', '\n']).map(|word| word.trim_matches('`').to_owned());
    words.filter(|word| !word.is_empty() && word != "or" && word != "one" && word != "of").collect()
}

fn names_all(text: &str, words: &[String], at_least: usize) {
    assert!(words.len() >= at_least, "{words:?}");
    for word in words {
        let is_there = text.contains(&format!("`{word}`")) || text.contains(&format!("`{word} = "));
        assert!(is_there, "`{word}` is not in the document");
    }
}

#[test]
fn examples_of_sites_are_sites() {
    let text = document("sites.md");
    let found = examples(&text);
    assert_eq!(found.len(), 2, "one for AMD, one for CUDA");
    for example in found {
        let site = parse(example).unwrap_or_else(|why| panic!("{why}\n{example}"));
        assert!(site.buffers().any(|(_, buffer)| buffer.is_compared()) && site.flop.is_some());
    }
}

#[test]
fn all_that_a_site_knows_is_said() {
    let text = document("sites.md");
    let head = "kernel = \"k\"\ngrid = [1]\nblock = [1]\n";
    let refused = |site: String| parse(&site).expect_err("it is refused");
    names_all(&text, &listed(&refused(format!("{head}blok = 1\n")), "expected one of "), 10);
    names_all(&text, &listed(&refused(format!("{head}[[arg]]\nx = 1\n")), "expected one of "), 10);
    names_all(&text, &listed(&refused(format!("{head}[[arg]]\nrole = \"x\"\n")), "expected one of "), 4);
    let fill = "dtype = \"f32\"\nshape = [1]\nfill = ";
    let members = refused(format!("{head}[[arg]]\n{fill}{{ kind = \"bits\", x = 1 }}\n"));
    names_all(&text, &listed(&members, "expected one of "), 10);
    let kinds = refused(format!("{head}[[arg]]\n{fill}{{ kind = \"x\" }}\n"));
    names_all(&text, &listed(&kinds, "there are "), 8);
    let scalars = refused(format!("{head}[[arg]]\ntype = \"x\"\nvalue = 1\n"));
    names_all(&text, &listed(&scalars, "there are "), 12);
    let functions = refused(format!("{head}dynamic-lds = \"sin(1)\"\n"));
    for function in listed(&functions, "there are ") {
        assert!(text.contains(&format!("`{function}(")), "{function}");
    }
    for known in listed(&refused(format!("{head}dynamic-lds = \"x\"\n")), "known are ") {
        assert!(text.contains(&format!("`{known}`")), "{known}");
    }
    for facts in dtype::TABLE {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` |", facts.name)));
        let row = row.unwrap_or_else(|| panic!("{} has no row", facts.name));
        assert!(facts.aliases.iter().all(|alias| row.contains(alias)), "{row}");
        assert!(row.contains(&format!("| {}", facts.bits)), "{row}");
    }
    for builtin in compare::site::builtin::BUILTIN {
        assert!(text.contains(builtin.name), "{}", builtin.name);
    }
}

#[test]
fn all_that_the_scripted_device_knows_is_said() {
    let text = document("mock.md");
    for example in examples(&text) {
        Script::parse(example.as_bytes()).unwrap_or_else(|why| panic!("{why}\n{example}"));
    }
    let refused = |image: &str| Script::parse(image.as_bytes()).expect_err("it is refused").to_string();
    let kernel = "mock = 1\n[[kernel]]\nname = \"k\"\ntime_ns = 1.0\n";
    names_all(&text, &listed(&refused(&format!("{kernel}x = 1\n")), "expected one of "), 10);
    names_all(&text, &listed(&refused(&format!("{kernel}cheat = \"x\"\n")), "expected one of "), 19);
}
