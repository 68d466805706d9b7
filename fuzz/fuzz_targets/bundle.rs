//! Any bytes as a container: bundles, compressed bundles, fat binaries, archives; and what they hold.
#![no_main]

use codeobj::{CodeObject, container};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(contents) = container::open(bytes) else { return };
    // Each entry costs a decompression at most; the first ones show what there is to find.
    for entry in contents.entries.iter().take(16) {
        let Ok(loaded) = entry.load() else { continue };
        for member in loaded.entries.iter().take(16) {
            let _ = CodeObject::parse(&member.bytes);
        }
    }
});
