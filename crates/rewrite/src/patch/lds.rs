//! LDS that an edit uses: instructions that are not in the old code, against what the kernel was given. Only a constant
//! offset says something; what an address in a register adds is not known.

use std::collections::HashMap;

use crate::assemble::Section;
use crate::error::{Message, Result};
use crate::fields;
use crate::lds;
use crate::object::{Object, Span};
use crate::part::Part;

/// What an edit brought to one kernel or function.
pub(super) struct Use {
    /// Index of the kernel; none of a function.
    kernel: Option<usize>,
    name: String,
    /// The line of the first new instruction that touches LDS.
    line: u32,
    /// Of the new instructions whose constant offset reaches farthest: line, text and one past the last byte.
    farthest: Option<(u32, String, u64)>,
    /// How far the old code's offsets reach; none when it has no such instruction.
    before: Option<u64>,
}

/// A kernel whose new code needs more LDS.
pub(super) struct Beyond {
    /// Its name.
    pub kernel: String,
    /// As many bytes at least.
    pub bytes: u64,
    /// Which instruction on which line, and the way out.
    pub message: Message,
}

/// What the code of a span touches that it did not touch before; none when there is nothing.
pub(super) fn fresh(span: &Span, old: &Part<'_>, new: &Part<'_>, section: &Section) -> Option<Use> {
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (_, text) in old.texts().filter(|(_, text)| lds::touches(text)) {
        *known.entry(text).or_default() += 1;
    }
    // Code that uses LDS reaches one byte at least.
    let before = known.keys().map(|text| lds::constant_end(text).unwrap_or(1)).max();
    let mut found: Option<Use> = None;
    for (offset, text) in new.texts().filter(|(_, text)| lds::touches(text)) {
        match known.get_mut(text) {
            Some(left) if *left > 0 => *left -= 1,
            _ => {
                let line = section.line_at(offset);
                let first = || Use { kernel: span.kernel, name: span.name.clone(), line, farthest: None, before };
                let found = found.get_or_insert_with(first);
                if let Some(end) = lds::constant_end(text)
                    && found.farthest.as_ref().is_none_or(|(.., known)| *known < end)
                {
                    found.farthest = Some((line, text.to_owned(), end));
                }
            }
        }
    }
    found
}

/// Judges it against `bytes`, the code object with the fields that the text sets.
///
/// # Errors
/// As [`fields::get`].
pub(super) fn judge(object: &Object<'_>, bytes: &[u8], uses: &[Use]) -> Result<(Vec<Beyond>, Vec<Message>)> {
    let (mut beyond, mut notes) = (Vec::new(), Vec::new());
    for used in uses {
        let message = "LDS that is used by computed addresses is not checked";
        notes.push(Message::at(used.line, message).help("compare it with .amdhsa_group_segment_fixed_size yourself"));
        let kernel = used.kernel.and_then(|index| object.code_object.kernels.get(index));
        let (Some(kernel), Some((line, text, end))) = (kernel, &used.farthest) else { continue };
        let Ok(placed) = &kernel.descriptor else { continue };
        if object.family().is_none() {
            continue;
        }
        let had = placed.descriptor.group_segment_fixed_size().into();
        let has = fields::get(bytes, &kernel.name, "group_segment_fixed_size")?;
        if *end <= has || lds::is_dynamic(kernel, had, used.before) {
            continue;
        }
        let message = format!(
            "`{text}` needs {end} bytes of LDS by its offset alone: kernel `{}` allocates {has} bytes",
            used.name
        );
        let help = "raise the allocation with --update-descriptor, or use a lower offset";
        let message = Message::at(*line, message).help(help);
        beyond.push(Beyond { kernel: kernel.name.clone(), bytes: *end, message });
    }
    Ok((beyond, notes))
}
