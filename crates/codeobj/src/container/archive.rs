//! Archives of the `ar` family.

use crate::error::{Error, Place, Result};
use object::read::archive::ArchiveFile;

/// First bytes of an archive.
pub(super) const MAGIC: &[u8] = b"!<arch>\n";
/// First bytes of an archive that only names files.
pub(super) const THIN_MAGIC: &[u8] = b"!<thin>\n";

/// Members with their names, symbol tables left out.
pub(super) fn members(bytes: &[u8]) -> Result<Vec<(String, &[u8])>> {
    if bytes.starts_with(THIN_MAGIC) {
        let message = "a thin archive holds only the names of its members; give those files instead";
        return Err(Error::unsupported(Place::Whole, message));
    }
    let damaged = |error: object::read::Error| Error::malformed(0, format!("damaged archive: {error}"));
    let archive = ArchiveFile::parse(bytes).map_err(damaged)?;
    let mut members = Vec::new();
    for member in archive.members() {
        let member = member.map_err(damaged)?;
        let data = member.data(bytes).map_err(damaged)?;
        members.push((String::from_utf8_lossy(member.name()).into_owned(), data));
    }
    Ok(members)
}
