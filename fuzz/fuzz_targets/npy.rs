//! Any bytes as a `.npy` file: what is accepted has the bytes that its shape says.
#![no_main]

use compare::fill::npy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = npy::parse(bytes);
});
