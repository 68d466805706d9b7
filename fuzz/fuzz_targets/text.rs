//! Any bytes as assembly text, once as a dump and once as a text of unknown origin.
#![no_main]

use libfuzzer_sys::fuzz_target;
use resources::text::{Origin, is_assembly, read};

fuzz_target!(|bytes: &[u8]| {
    let _ = is_assembly(bytes);
    let _ = read(bytes, "fuzz.s", Origin::Dump);
    let _ = read(bytes, "fuzz.s", Origin::Any);
});
