//! Any bytes as the MessagePack form of the metadata.
#![no_main]

use codeobj::{Detail, Metadata};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = Metadata::from_msgpack(bytes, Detail::Full);
});
