//! Addresses that code computes from its own place.
//!
//! ```text
//! s_getpc_b64 s[4:5]              gfx12: s_getpc_b64 …, s_sext_i32_i16 s5, s5 (48-bit counter)
//! s_add_u32   s4, s4, low         gfx12: s_add_co_u32
//! s_addc_u32  s5, s5, high        gfx12: s_add_co_ci_u32;  gfx1250: s_get_pc_i64, one s_add_nc_u64
//!
//! s_add_pc_i64 distance           gfx1250's long branch
//! ```
//!
//! The base is the address behind the first instruction. From there on, every path is followed until both halves are
//! overwritten, and every reader has to be one of these, or an instruction prefetch: that one only gives a hint, and
//! its base may lie anywhere near. Anything else is refused: it might compute an address in a way that is not known
//! here.

use crate::error::{Error, Result};
use crate::linked::Code;
use crate::reach;
use crate::salu::{self, Half, Operand};
use llvm::State;
use std::collections::HashSet;

/// An address computed from the program counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Computed {
    /// Index of the instruction that reads the program counter, and of those that add to it, low half first.
    pub base: usize,
    pub adds: Vec<Add>,
    /// The address that comes out.
    pub target: u64,
}

/// One constant operand of a computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Add {
    pub instruction: usize,
    pub operand: Operand,
    /// Whether it is subtracted.
    pub negative: bool,
}

/// What of a register pair still holds the program counter.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Live {
    low: bool,
    high: bool,
    /// The instruction that added to the low half and whose carry the high half waits for.
    carry: Option<usize>,
}

/// All addresses that `code` computes.
///
/// # Errors
/// `Unsupported`, with the instruction, for a use of the program counter that is not understood.
pub(crate) fn find(code: &Code<'_>) -> Result<Vec<Computed>> {
    let mut found = Vec::new();
    for (index, instruction) in code.instructions().iter().enumerate() {
        match code.listing.mnemonic(instruction) {
            "s_getpc_b64" | "s_get_pc_i64" => found.extend(follow(code, index)?),
            "s_add_pc_i64" => found.push(long_branch(code, index)?),
            _ => {}
        }
    }
    found.sort_by_key(|computed| (computed.base, computed.adds.first().map(|add| add.instruction)));
    found.dedup();
    Ok(found)
}

fn not_understood(code: &Code<'_>, index: usize, base: usize) -> Error {
    let instructions = code.instructions();
    Error::unsupported(format!(
        "{} uses the program counter of {} in a way that is not understood, so the code behind the edit cannot be moved",
        code.describe(&instructions[index]),
        code.describe(&instructions[base]),
    ))
}

fn long_branch(code: &Code<'_>, index: usize) -> Result<Computed> {
    let instruction = &code.instructions()[index];
    let operand = salu::source64(code.bytes_of(instruction)).ok_or_else(|| not_understood(code, index, index))?;
    let add = Add { instruction: index, operand, negative: false };
    let end = code.address + u64::from(instruction.offset) + u64::from(instruction.len);
    Ok(Computed { base: index, target: end.wrapping_add(operand.value as u64), adds: vec![add] })
}

/// Follows the register pair that the instruction at `base` fills.
fn follow(code: &Code<'_>, base: usize) -> Result<Vec<Computed>> {
    let instructions = code.instructions();
    let refuse = |index| not_understood(code, index, base);
    let pair = salu::destination(code.bytes_of(&instructions[base])).ok_or_else(|| refuse(base))?;
    let pc = code.address + u64::from(instructions[base].offset) + u64::from(instructions[base].len);
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut paths = vec![(base + 1, Live { low: true, high: true, carry: None })];
    while let Some((index, mut live)) = paths.pop() {
        let Some(instruction) = instructions.get(index) else { continue };
        if !seen.insert((index, live)) {
            continue;
        }
        if instruction.state == State::Decoded {
            let text = code.listing.text(instruction);
            let mnemonic = code.listing.mnemonic(instruction);
            let bytes = code.bytes_of(instruction);
            let uses = salu::uses(text, pair);
            let reads_live = (uses.low_read && live.low) || (uses.high_read && live.high);
            if reads_live && !mnemonic.starts_with("s_prefetch_inst") {
                match salu::addition(mnemonic, bytes, pair).ok_or_else(|| refuse(index))? {
                    (Half::Low, _, _) if live.low && live.carry.is_none() => live.carry = Some(index),
                    (Half::High, operand, negative) if live.high => {
                        let low = live.carry.take().ok_or_else(|| refuse(index))?;
                        let (_, low_operand, low_negative) = salu::addition(
                            code.listing.mnemonic(&instructions[low]),
                            code.bytes_of(&instructions[low]),
                            pair,
                        )
                        .ok_or_else(|| refuse(low))?;
                        if negative != low_negative {
                            return Err(refuse(index));
                        }
                        let value = (operand.value as u64) << 32 | low_operand.value as u64 & 0xffff_ffff;
                        let adds = vec![
                            Add { instruction: low, operand: low_operand, negative },
                            Add { instruction: index, operand, negative },
                        ];
                        found.push(Computed { base, adds, target: added(pc, value, negative) });
                    }
                    (Half::Both, operand, negative) if live.low && live.high => {
                        let adds = vec![Add { instruction: index, operand, negative }];
                        found.push(Computed { base, adds, target: added(pc, operand.value as u64, negative) });
                    }
                    (Half::SignExtension, _, _) => {
                        paths.push((index + 1, live));
                        continue;
                    }
                    _ => return Err(refuse(index)),
                }
            }
            live.low &= !uses.low_written;
            live.high &= !uses.high_written;
            if (!live.low && !live.high) || salu::ends_path(mnemonic) {
                match live.carry {
                    Some(low) => return Err(refuse(low)),
                    None => continue,
                }
            }
            let jump = if mnemonic == "s_add_pc_i64" {
                Some(long_branch(code, index)?.target.wrapping_sub(code.address))
            } else {
                reach::target(mnemonic, instruction, bytes)
            };
            if let Some(target) = jump {
                paths.push((code.index_at(target).ok_or_else(|| refuse(index))?, live));
                if matches!(mnemonic, "s_branch" | "s_add_pc_i64") {
                    continue;
                }
            }
        }
        paths.push((index + 1, live));
    }
    Ok(found)
}

fn added(pc: u64, value: u64, negative: bool) -> u64 {
    if negative { pc.wrapping_sub(value) } else { pc.wrapping_add(value) }
}
