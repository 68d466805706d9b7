//! Any text as a site: what is accepted has a layout or a reason why not, and its arguments fit into that.
#![no_main]

use std::path::Path;

use compare::pack::Layout;
use compare::site::{DeviceFacts, Site};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let device = DeviceFacts { compute_units: 304, wave_size: 64 };
    let Ok(site) = Site::parse(text, "site", Path::new(""), device) else { return };
    if let Ok(layout) = Layout::from_site(&site) {
        let addresses: Vec<u64> = site.buffers().map(|_| u64::MAX).collect();
        assert_eq!(layout.pack(&site, &addresses).len() as u64, layout.bytes);
    }
});
