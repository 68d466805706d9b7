//! Any text as YAML metadata; where the fast reader answers, it says what the complete one says.
#![no_main]

use codeobj::{Detail, Metadata};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for detail in [Detail::Counts, Detail::Full] {
        if let Ok(metadata) = Metadata::from_yaml(text, detail) {
            assert_eq!(Some(metadata), Metadata::from_yaml_by_the_book(text, detail).ok());
        }
    }
});
