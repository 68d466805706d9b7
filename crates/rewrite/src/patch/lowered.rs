//! An allocation that a text lowers: what the code names still has to be there.

use llvm::Toolchain;

use crate::assemble::Section;
use crate::code::Code;
use crate::error::{Error, Message, Result};
use crate::lds;
use crate::object::{CodeSection, Object};
use crate::part::{Part, VGPR_BANK};
use crate::registers::{self, Counts, File};

/// Compares the allocations of `old` and `new`, whose sections have this layout and this code; gives what could not be
/// checked.
///
/// # Errors
/// Each file of registers that was lowered below what the code names, with the line of the highest one.
pub(super) fn check(
    toolchain: &Toolchain,
    old: &Object<'_>,
    new: &Object<'_>,
    sections: &[(CodeSection, &Section)],
) -> Result<Vec<Message>> {
    let lowered = lowered(old, new);
    let (mut notes, mut messages) = (Vec::new(), Vec::new());
    if lowered.is_empty() {
        return Ok(notes);
    }
    for (layout, section) in sections {
        let names = super::named(&section.labels);
        let code = Code::decode_bytes(toolchain, &old.target, layout, &section.bytes, names)?;
        for span in &layout.spans {
            let part = Part::new(&code, span);
            for (kernel, files) in &lowered {
                let (name, family) = (&new.code_object.kernels[*kernel].name, new.family());
                let placed = new.code_object.kernels[*kernel].descriptor.as_ref().ok();
                let Some((placed, family)) = placed.zip(family) else { continue };
                if span.kernel == Some(*kernel) && files.contains(&File::Vgpr) && part.is_banked() {
                    let message = format!("the VGPRs of {name} are not checked: {VGPR_BANK} changes what they mean");
                    notes.push(Message::new(message));
                }
                let found = part.beyond(&placed.descriptor, family, Counts::default());
                if span.kernel == Some(*kernel) {
                    let (was, is) = (lds_bytes(old, *kernel), lds_bytes(new, *kernel));
                    messages.extend(lds_beyond(&part, name, was, is, section));
                }
                for found in found.into_iter().filter(|found| files.contains(&found.file)) {
                    let line = section.line_at(found.offset);
                    if span.kernel == Some(*kernel) {
                        let help = "the text lowers the allocation: undo that, or use a lower register";
                        messages.push(Message::at(line, found.describe(name)).help(help));
                    } else if span.kernel.is_none() && !span.name.is_empty() {
                        let (register, function) = (found.count - 1, &span.name);
                        let message = format!(
                            "`{function}` names {}{register}, and kernel `{name}` now allocates {} {}: whether it calls \
                             `{function}` is not known",
                            found.file.letter(),
                            found.allocated,
                            found.file.name()
                        );
                        notes.push(Message::at(line, message));
                    }
                }
            }
        }
    }
    match messages.first().cloned() {
        Some(first) => Err(Error { messages, ..Error::from(first) }),
        None => Ok(notes),
    }
}

/// An instruction whose constant offset reaches beyond LDS that was there before.
fn lds_beyond(part: &Part<'_>, kernel: &str, was: u64, is: u64, section: &Section) -> Option<Message> {
    let ends = part.texts().filter_map(|(offset, text)| Some((lds::constant_end(text)?, offset, text)));
    let (end, offset, text) = ends.max_by_key(|(end, ..)| *end).filter(|(end, ..)| (is + 1..=was).contains(end))?;
    let message =
        format!("`{text}` needs {end} bytes of LDS by its offset alone: kernel `{kernel}` allocates {is} bytes");
    Some(Message::at(section.line_at(offset), message).help("the text lowers the allocation: undo that"))
}

/// Bytes of LDS that a kernel's descriptor allocates.
fn lds_bytes(object: &Object<'_>, kernel: usize) -> u64 {
    let placed = object.code_object.kernels.get(kernel).and_then(|kernel| kernel.descriptor.as_ref().ok());
    placed.map_or(0, |placed| placed.descriptor.group_segment_fixed_size().into())
}

/// Kernels with less LDS or fewer registers than before, and of which files.
fn lowered(old: &Object<'_>, new: &Object<'_>) -> Vec<(usize, Vec<File>)> {
    let kernels = old.code_object.kernels.iter().zip(&new.code_object.kernels).enumerate();
    let files = kernels.filter_map(|(index, (old_kernel, new_kernel))| {
        let (was, is) = (old_kernel.descriptor.as_ref().ok()?, new_kernel.descriptor.as_ref().ok()?);
        let family = old.family()?;
        let is_fewer = |file: &File| {
            registers::allocated(&is.descriptor, family, *file) < registers::allocated(&was.descriptor, family, *file)
        };
        Some((index, File::ALL.into_iter().filter(is_fewer).collect::<Vec<_>>()))
    });
    files.filter(|(index, files)| !files.is_empty() || lds_bytes(new, *index) < lds_bytes(old, *index)).collect()
}
