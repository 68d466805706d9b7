//! New code of another size: where everything of the old code goes, and the filler that puts entries where they must be.
//!
//! The text's labels say where branches lead. An instruction that was kept but for its distance tells with it where the
//! label of its old target went; one that leads elsewhere than the others with its target was changed by the text.

use std::collections::BTreeMap;

use llvm::Decoder;

use super::SectionPlan;
use crate::assemble::Section;
use crate::branch;
use crate::change;
use crate::code::Code;
use crate::edit::{CodeEdit, OffsetMap};
use crate::error::Result;
use crate::grow::Grown;
use crate::kept::Kept;
use crate::object::Object;

/// The object with `new` in the place of a section's code.
///
/// # Errors
/// As [`change::exchange`].
pub(super) fn grow(decoder: &dyn Decoder, object: &Object<'_>, plan: &SectionPlan<'_>, new: &Section) -> Result<Grown> {
    let own = plan.new_section(new);
    let old = Code::decode(decoder, object, plan.section)?;
    let code = Code::decode_bytes(decoder, &object.target, &own, &new.bytes, super::named(&new.labels))?;
    let starts = plan.spans.iter().zip(&own.spans).map(|((old, _), new)| (old.range.start, new.range.start));
    let map = map(&old, &code, starts)?;
    let edit = CodeEdit { section: plan.section.index, new_code: new.bytes.clone(), map };
    change::exchange_fitted(decoder, object.bytes, edit)
}

/// Where the old places went; `starts` are those of the spans.
fn map(old: &Code<'_>, new: &Code<'_>, starts: impl Iterator<Item = (u32, u32)>) -> Result<OffsetMap> {
    let (old_len, new_len) = (old.bytes.len() as u64, new.bytes.len() as u64);
    let kept = Kept::between(old, new);
    let old_lens: BTreeMap<u32, u8> = old.instructions().map(|(offset, _, i)| (offset, i.len)).collect();
    let run = |(from, to): (u32, u32)| (u64::from(from), u64::from(to), u64::from(old_lens[&from]));
    let all = || kept.pairs().iter().copied();
    let first = OffsetMap::new(old_len, new_len, all().map(run))?;
    // Of each old target, the branches that were kept and where each leads now.
    let mut leads: BTreeMap<u64, Vec<(u32, u64)>> = BTreeMap::new();
    for (offset, listing, instruction) in old.instructions().filter(|(_, _, i)| i.len == 4) {
        let Some(at) = kept.new_offset(offset) else { continue };
        if branch::split(listing.text(instruction)).is_none() {
            continue;
        }
        let target = |offset, word| u64::try_from(branch::target(offset, word)).ok();
        if let (Some(was), Some(is)) = (target(offset, old.word(offset)), target(at, new.word(at))) {
            leads.entry(was).or_default().push((offset, is));
        }
    }
    let mut labels: BTreeMap<u64, u64> = starts.map(|(old, new)| (old.into(), new.into())).collect();
    let mut changed = Vec::new();
    for (was, branches) in leads.iter().filter(|(was, _)| **was <= old_len) {
        let votes = |place: u64| branches.iter().filter(|(_, is)| *is == place).count();
        let candidates = labels.get(was).copied().into_iter().chain(branches.iter().map(|(_, is)| *is));
        let place = labels.get(was).copied().or_else(|| {
            let possible = candidates.filter(|place| first.clone().with_label(*was, *place).is_ok());
            possible.max_by_key(|place| (votes(*place), *place == first.place(*was)))
        });
        let place = place.unwrap_or_else(|| first.place(*was));
        labels.insert(*was, place);
        changed.extend(branches.iter().filter(|(_, is)| *is != place).map(|(offset, _)| *offset));
    }
    changed.sort_unstable();
    let same = all().filter(|(old, _)| changed.binary_search(old).is_err()).map(run);
    let map = OffsetMap::new(old_len, new_len, same)?;
    labels.into_iter().filter(|(old, _)| *old < old_len).try_fold(map, |map, (old, new)| match map.place(old) == new {
        true => Ok(map),
        false => map.with_label(old, new),
    })
}
