//! Any bytes as a code object: an error or kernels, never a panic, a hang or memory that a header merely claims.
#![no_main]

use codeobj::CodeObject;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = CodeObject::parse(bytes);
});
