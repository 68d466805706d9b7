//! Many code objects in one directory.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Copies `sources` in turn until `count` files lie in `folder`.
pub fn copy_in_turn(folder: &Path, count: usize, sources: &[PathBuf]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for (index, source) in sources.iter().cycle().take(count).enumerate() {
        fs::copy(source, folder.join(format!("object_{index:05}.co")))?;
    }
    Ok(())
}
