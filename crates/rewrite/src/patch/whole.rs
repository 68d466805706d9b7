//! Whether a text is all there: a file that was cut still assembles, to code that ends nowhere.

use std::collections::HashSet;

use codeobj::CodeObject;

use crate::disasm::symbols::quoted;
use crate::error::{Error, Message, Result};
use crate::object::Object;
use crate::source::Source;

/// Looks for what [`crate::disasm`] writes behind the code, in a text with its header.
///
/// # Errors
/// The first part that is missing; a block that is opened and not ended, in any text.
pub fn check(object: &Object<'_>, source: &Source<'_>) -> Result<()> {
    if let Some(line) = source.open_block {
        return Err(Error::line(line, "the text is cut: the block that this line opens does not end"));
    }
    if source.reference.is_none() {
        return Ok(());
    }
    let lines: HashSet<&str> = source.text.lines().map(str::trim).collect();
    let cut = |what: String| {
        let help = "disassemble the reference again; or take the line `;@reference` out if that was meant";
        let last = source.text.lines().count() as u32;
        Err(Message::at(last, format!("the text is cut: it has no {what}")).help(help).into())
    };
    let described = object.code_object.kernels.iter().filter(|kernel| kernel.descriptor.is_ok());
    for name in described.map(|kernel| &kernel.name) {
        let block = format!(".amdhsa_kernel {}", quoted(name));
        let label = format!("{}:", quoted(&format!("{name}.kd")));
        if !lines.contains(&*block) && !lines.contains(&*label) {
            return cut(format!("descriptor of kernel `{name}`"));
        }
    }
    let is_metadata = |line: &&str| *line == ".amdgpu_metadata" || line.starts_with(".section .note");
    if CodeObject::metadata_range(object.bytes)?.is_some() && !lines.iter().any(is_metadata) {
        return cut("metadata".to_owned());
    }
    Ok(())
}
