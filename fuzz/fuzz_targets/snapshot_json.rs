//! Any bytes as a snapshot; one that can be read is the same after it was written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use resources::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(snapshot) = Snapshot::from_json(bytes) {
        let written = serde_json::to_vec(&snapshot).expect("a snapshot can be written");
        assert_eq!(Ok(snapshot), Snapshot::from_json(&written));
    }
});
