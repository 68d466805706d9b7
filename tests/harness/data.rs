//! Where the test data lies.

use std::path::{Path, PathBuf};

/// The folder of test data, `%data` in cases.
pub fn data_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}
