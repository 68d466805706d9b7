//! Whether a changed code object is what it should be: read again, decoded again, compared with the original.
//!
//! Every instruction outside the edit has to be there, with the same bytes but for a branch's distance and the
//! constants of a computed address, and those have to lead where the old ones led. Kernels keep their names and order.

use crate::error::{Error, ErrorKind, Result};
use crate::linked::Code;
use crate::moves::Moves;
use crate::pc_relative::{self, Computed};
use crate::reach;
use codeobj::CodeObject;
use llvm::{Decoder, Instruction};
use std::collections::{HashMap, HashSet};

/// Compares `new`, which came of `moves`, with `old`.
///
/// # Errors
/// `CheckFailed`, with the first difference.
pub(crate) fn check(decoder: &dyn Decoder, old: &Code<'_>, moves: &Moves<'_, '_>, new: &[u8]) -> Result<()> {
    let failed = |error: Error| Error::new(ErrorKind::CheckFailed, format!("the result is damaged: {error}"));
    let object = CodeObject::parse(new).map_err(|error| failed(error.into()))?;
    let code = Code::read(decoder, new, &object).map_err(failed)?;
    entries(old, &code, moves)?;
    let computed = matching(old, &code, moves)?;
    for instruction in old.instructions() {
        let address = old.address + u64::from(instruction.offset);
        let Some(moved) = moves.byte(address) else { continue };
        let found = code.index_at(moved.wrapping_sub(code.address)).map(|index| &code.instructions()[index]);
        let found = found.filter(|found| found.len == instruction.len && found.state == instruction.state);
        let found = found.ok_or_else(|| differs(old, instruction, "is not there any more"))?;
        let (was, is) = (old.bytes_of(instruction), code.bytes_of(found));
        let target = reach::target(old.listing.mnemonic(instruction), instruction, was);
        if let Some(target) = target.filter(|target| *target <= old.bytes.len() as u64) {
            let is_same = was.get(2..) == is.get(2..);
            let leads = reach::target(code.listing.mnemonic(found), found, is);
            if !is_same || leads.map(|to| code.address + to) != Some(moves.in_section(old.section, target)) {
                return Err(differs(old, instruction, "leads somewhere else"));
            }
        } else if was != is && !computed.contains(&instruction.offset) {
            return Err(differs(old, instruction, "has changed"));
        }
    }
    Ok(())
}

fn differs(code: &Code<'_>, instruction: &Instruction, what: &str) -> Error {
    let message = format!("{} {what} in the result; nothing was written", code.describe(instruction));
    Error::new(ErrorKind::CheckFailed, message)
}

fn entries(old: &Code<'_>, new: &Code<'_>, moves: &Moves<'_, '_>) -> Result<()> {
    let moved = |code: &Code<'_>, offset| moves.in_section(code.section, offset);
    let same = old.entries.len() == new.entries.len()
        && old.entries.iter().zip(&new.entries).all(|(was, is)| {
            was.kernel == is.kernel && was.preloads == is.preloads && moved(old, was.offset) == new.address + is.offset
        });
    if same {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::CheckFailed, "the kernels' entries are not where they should be"))
    }
}

/// Old offsets of the additions of computed addresses, each address found to lead where the old one led, by the same
/// instructions.
fn matching(old: &Code<'_>, new: &Code<'_>, moves: &Moves<'_, '_>) -> Result<HashSet<u32>> {
    let offset = |code: &Code<'_>, index: usize| code.instructions()[index].offset;
    let key = |code: &Code<'_>, computed: &Computed| {
        let adds: Vec<u32> = computed.adds.iter().map(|add| offset(code, add.instruction)).collect();
        (offset(code, computed.base), adds)
    };
    let found = pc_relative::find(new)?;
    let found: HashMap<_, _> = found.iter().map(|computed| (key(new, computed), computed.target)).collect();
    let mut matched = HashSet::new();
    for computed in pc_relative::find(old)? {
        let (base, adds) = key(old, &computed);
        let moved = |at: u32| moves.byte(old.address + u64::from(at)).map(|to| to.wrapping_sub(new.address) as u32);
        let (Some(new_base), Some(new_adds)) =
            (moved(base), adds.iter().map(|at| moved(*at)).collect::<Option<Vec<_>>>())
        else {
            continue;
        };
        let target = found.get(&(new_base, new_adds)).copied();
        if target.is_none() || target != moves.address(computed.target) {
            return Err(differs(old, &old.instructions()[computed.base], "computes another address"));
        }
        matched.extend(adds);
    }
    Ok(matched)
}
