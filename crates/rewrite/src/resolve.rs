//! Gives kept instructions their targets again after the code around them moved.

use crate::edit::CodeEdit;
use crate::error::{Error, Result};
use crate::linked::Code;
use crate::moves::Moves;
use crate::pc_relative::{self, Add};
use crate::reach;
use llvm::Instruction;

/// Re-resolves, in the new code, every branch and PC-relative address of the old code that was kept. Where the new code
/// has them right already (an assembler resolved its labels), this changes nothing.
///
/// # Errors
/// `NoRoom` for a branch that would have to reach too far; `Unsupported`, with the instruction, for what computes an
/// address in a way that is not understood.
pub(crate) fn resolve(code: &Code<'_>, moves: &Moves<'_, '_>, edit: &mut CodeEdit) -> Result<()> {
    for instruction in code.instructions() {
        if let Some(target) = reach::target(code.listing.mnemonic(instruction), instruction, code.bytes_of(instruction))
        {
            branch(code, edit, instruction, target)?;
        }
    }
    for computed in pc_relative::find(code)? {
        let parts = [computed.base].into_iter().chain(computed.adds.iter().map(|add| add.instruction));
        let kept: Vec<Option<u64>> =
            parts.map(|index| edit.map.kept(code.instructions()[index].offset.into())).collect();
        if kept.iter().all(Option::is_none) {
            continue;
        }
        let base = &code.instructions()[computed.base];
        let (Some(new_base), true) = (kept[0], kept.iter().all(Option::is_some)) else {
            let message =
                format!("the edit takes a part of the address computation that starts with {}", code.describe(base));
            return Err(Error::unsupported(message));
        };
        let target = moves.address(computed.target).ok_or_else(|| {
            Error::unsupported(format!(
                "{} leads to {:#x}, which is in no section",
                code.describe(base),
                computed.target
            ))
        })?;
        let text = moves.layout.sections[code.section].address;
        let value = target.wrapping_sub(text + new_base + u64::from(base.len));
        write(code, edit, &computed.adds, value)?;
    }
    Ok(())
}

fn branch(code: &Code<'_>, edit: &mut CodeEdit, instruction: &Instruction, target: u64) -> Result<()> {
    let Some(at) = edit.map.kept(instruction.offset.into()) else { return Ok(()) };
    if target > edit.map.old_len() {
        return unsure(code, edit, instruction, at, target);
    }
    let words = reach::distance(at, edit.map.place(target), || code.describe(instruction))?;
    let old = &code.bytes_of(instruction)[..2];
    // Behind a word that LLVM does not know, this may be a part of another instruction.
    if instruction.untrusted && old != words.to_le_bytes() && code.index_at(target).is_none() {
        return unsure(code, edit, instruction, at, target);
    }
    edit.new_code[at as usize..at as usize + 2].copy_from_slice(&words.to_le_bytes());
    Ok(())
}

/// A branch that leads nowhere is no branch, unless all around it stays.
fn unsure(code: &Code<'_>, edit: &CodeEdit, instruction: &Instruction, at: u64, target: u64) -> Result<()> {
    if at == u64::from(instruction.offset) && edit.map.old_len() == edit.map.new_len() {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{} would lead to .text+{target:#x}, where no instruction starts: behind {}, it may be none itself",
        code.describe(instruction),
        if instruction.untrusted { "a word that LLVM does not know" } else { "data" },
    )))
}

/// Writes the distance of a computed address into its additions.
fn write(code: &Code<'_>, edit: &mut CodeEdit, adds: &[Add], distance: u64) -> Result<()> {
    for (index, add) in adds.iter().enumerate() {
        let value = if add.negative { distance.wrapping_neg() } else { distance };
        let value = match (adds.len(), index) {
            (1, _) => value as i64,
            (_, 0) => i64::from(value as i32),
            _ => i64::from((value >> 32) as i32),
        };
        let instruction = &code.instructions()[add.instruction];
        let Some(at) = edit.map.kept(instruction.offset.into()) else { continue };
        let bytes = &mut edit.new_code[at as usize..at as usize + usize::from(instruction.len)];
        if !add.operand.write(bytes, value) {
            let message = format!("{} has no room for {value:#x}, its new distance", code.describe(instruction));
            return Err(Error::no_room(message));
        }
    }
    Ok(())
}
