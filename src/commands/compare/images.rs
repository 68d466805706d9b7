//! The images of a comparison, out of whatever they are in.

use std::path::Path;

use compare::run::Image;

use crate::commands::edited;

/// Both images, read here so that paths into containers work.
pub struct Images(pub [Image; 2]);

impl Images {
    /// Reads them.
    pub fn read([reference, test]: [&Path; 2]) -> Result<Images, String> {
        Ok(Images([read_image(reference)?, read_image(test)?]))
    }
}

/// Reads an image; what is no container is taken as it is, for a driver to judge.
pub fn read_image(path: &Path) -> Result<Image, String> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) if codeobj::container::sniff(&bytes).is_none() || is_foreign_elf(&bytes) => bytes,
        _ => {
            let read = edited::Input::read(path).map(|input| input.bytes);
            read.map_err(|error| {
                error.messages.iter().map(|message| message.text.clone()).collect::<Vec<_>>().join("; ")
            })?
        }
    };
    Ok(Image { name: path.display().to_string(), bytes })
}

/// A cubin: an ELF file for EM_CUDA (190).
fn is_foreign_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x7fELF") && bytes.get(18..20) == Some(&190u16.to_le_bytes())
}
