//! A kernel with preloaded arguments has a second entry at a fixed distance behind the first: new firmware starts it there,
//! behind the loads that the preloading made unnecessary. What stands there must go on standing there.

use std::collections::HashMap;

use llvm::Toolchain;

use super::{SectionPlan, named};
use crate::assemble::Section;
use crate::code::Code;
use crate::disasm::instructions::PRELOAD_ENTRY;
use crate::error::{Error, ErrorKind, Message, Result};
use crate::kept::Kept;
use crate::object::Object;

/// Lines at second entries that the new code has moved to the front, and where they must be.
#[derive(Default)]
pub(super) struct Lines {
    /// With entries where the text puts them.
    pub natural: HashMap<u32, u32>,
    /// With entries where the reference has them.
    pub in_place: HashMap<u32, u32>,
}

/// Finds them in a section.
///
/// # Errors
/// Code in front of a second entry that became longer; an edit that leaves open what the second entry is.
pub(super) fn find(
    toolchain: &Toolchain,
    object: &Object<'_>,
    plan: &SectionPlan<'_>,
    section: &Section,
    lines: &mut Lines,
) -> Result<()> {
    let preloads = |span: &crate::object::Span| {
        let placed = object.kernel(span).and_then(|kernel| kernel.descriptor.as_ref().ok());
        placed.is_some_and(|placed| placed.descriptor.kernarg_preload_length() != 0)
    };
    if section.bytes == object.code(plan.section) || !plan.spans.iter().any(|(span, _)| preloads(span)) {
        return Ok(());
    }
    let own = plan.new_section(section);
    let old = Code::decode(toolchain, object, plan.section)?;
    let new = Code::decode_bytes(toolchain, &object.target, &own, &section.bytes, named(&section.labels))?;
    let map = Kept::between(&old, &new);
    let mut shift = 0;
    for ((span, _), own) in plan.spans.iter().zip(&own.spans).filter(|((span, _), _)| preloads(span)) {
        let (from, wanted) = (span.range.start + PRELOAD_ENTRY, own.range.start + PRELOAD_ENTRY);
        let name = &span.name;
        // Of the instruction itself when it was kept, else of the first one behind it that was.
        let kept = map.pairs().partition_point(|(old, _)| *old < from);
        let Some((old, now)) = map.pairs().get(kept).filter(|(_, new)| own.range.contains(new)) else {
            let message =
                format!("no instruction behind the second entry of kernel `{name}`, at +{PRELOAD_ENTRY:#x}, was kept");
            return Err(Message::new(message).help("patch in smaller steps").into());
        };
        let front = i64::from(*now) - i64::from(old - from);
        let missing = i64::from(wanted) - front;
        if missing < 0 {
            let message = format!(
                "the code in front of the second entry of kernel `{name}`, at +{PRELOAD_ENTRY:#x}, is {} bytes too long",
                -missing
            );
            let help = "its arguments are preloaded: use --grow, or take an `s_nop 0` out in front of the second entry";
            let message = Message::at(section.line_at(*now), message).help(help);
            return Err(Error { kind: ErrorKind::NoRoom, ..Error::from(message) });
        }
        if missing > 0 {
            let line = section.line_at(front as u32);
            lines.natural.insert(line, wanted + shift);
            lines.in_place.insert(line, from);
            shift += missing as u32;
        }
    }
    Ok(())
}
