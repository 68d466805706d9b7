//! Addresses that code computes from the program counter, where the edit moves what they lead to: their distances are
//! literals, which nothing adjusts in place.

use llvm::Toolchain;

use crate::assemble::Section;
use crate::code::Code;
use crate::error::{Message, Result};
use crate::kept::Kept;
use crate::linked;
use crate::object::{CodeSection, Object};
use crate::pc_relative;

/// What of the old code's computed addresses is wrong in the new.
///
/// # Errors
/// As [`linked::Code::of_section`].
pub(super) fn check(
    toolchain: &Toolchain,
    object: &Object<'_>,
    section: &CodeSection,
    codes: [&Code<'_>; 2],
    new: &Section,
) -> Result<Vec<Message>> {
    let kept = Kept::between(codes[0], codes[1]);
    let Some(moved) = kept.pairs().iter().find(|(old, new)| old != new) else { return Ok(Vec::new()) };
    let code = linked::Code::of_section(toolchain, object, section)?;
    let mut messages = Vec::new();
    let help =
        "--grow adjusts it; or keep the code in between at its size: put `s_nop 0` in the place of what you take out";
    for (index, base) in code.instructions().iter().enumerate() {
        let Some(new_base) = kept.new_offset(base.offset) else { continue };
        let line = new.line_at(new_base);
        let computed = match pc_relative::of(&code, index) {
            Ok(computed) => computed,
            Err(error) if span_moves(section, &kept, base.offset) => {
                messages.push(Message::at(line, error.to_string()).help(help));
                continue;
            }
            Err(_) => continue,
        };
        for computed in computed {
            let adds = computed.adds.iter().map(|add| code.instructions()[add.instruction].offset);
            let old_target = computed.target.wrapping_sub(code.address);
            // A distance that the text changed is the author's; what is outside the section stays.
            if old_target >= code.bytes.len() as u64 || !adds.clone().all(|add| kept.new_offset(add).is_some()) {
                continue;
            }
            let text = code.listing.text(base);
            let distance = old_target.wrapping_sub(base.offset.into());
            let text = match place(section, &kept, old_target as u32) {
                Some(place) if u64::from(place).wrapping_sub(new_base.into()) == distance => continue,
                Some(place) => format!(
                    "what `{text}` computes the address of has moved from {}+{old_target:#x} to +{place:#x}, and its \
                     distance is not adjusted",
                    section.name
                ),
                None => format!(
                    "what `{text}` computes the address of, {}+{old_target:#x}, was changed, and where it is now is not \
                     known: code moves from line {} on",
                    section.name,
                    new.line_at(moved.1)
                ),
            };
            messages.push(Message::at(line, text).help(help));
        }
    }
    Ok(messages)
}

/// Where the place at `old` went: itself, or what stands on both sides of it. Entries stay.
fn place(section: &CodeSection, kept: &Kept, old: u32) -> Option<u32> {
    if section.spans.iter().any(|span| span.range.start == old && !span.name.is_empty()) {
        return Some(old);
    }
    if let Some(new) = kept.new_offset(old) {
        return Some(new);
    }
    let pairs = kept.pairs();
    let behind = pairs.partition_point(|(offset, _)| *offset < old);
    let shift = |pair: &(u32, u32)| i64::from(pair.1) - i64::from(pair.0);
    let before = behind.checked_sub(1).map_or(0, |at| shift(&pairs[at]));
    let after = pairs.get(behind).map_or(0, shift);
    (before == after).then(|| (i64::from(old) + before) as u32)
}

/// Whether anything of the kernel or function with the place `old` is at another place now.
fn span_moves(section: &CodeSection, kept: &Kept, old: u32) -> bool {
    let Some(span) = section.spans.iter().find(|span| span.range.contains(&old)) else { return true };
    kept.pairs().iter().any(|(old, new)| span.range.contains(old) && old != new)
}
