//! Any bytes as a snapshot: the quick reader and the one that knows every form say the same of it, and one that can be read
//! is the same after it was written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use resources::Snapshot;

fuzz_target!(|bytes: &[u8]| {
    let read = Snapshot::from_json(bytes);
    assert_eq!(read, Snapshot::from_any_json(bytes));
    if let Ok(snapshot) = read {
        let written = serde_json::to_vec(&snapshot).expect("a snapshot can be written");
        assert_eq!(Ok(snapshot), Snapshot::from_json(&written));
    }
});
