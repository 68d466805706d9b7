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
//! here. A half may be saved in a lane of a VGPR (see [`saved`]); what is restored from there may only be prefetched
//! from.

use crate::error::{Error, Result};
use crate::linked::Code;
use crate::reach;
use crate::salu::{self, Half, Operand};
use crate::saved;
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

/// Where a path is, and what of a register pair still holds the program counter there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Path {
    /// Index of the next instruction.
    at: usize,
    /// First register of the pair.
    pair: u8,
    low: bool,
    high: bool,
    /// The instruction that added to the low half and whose carry the high half waits for.
    carry: Option<usize>,
    /// Whether it comes out of a VGPR.
    restored: bool,
}

/// All addresses that `code` computes.
///
/// # Errors
/// `Unsupported`, with the instruction, for a use of the program counter that is not understood.
pub(crate) fn find(code: &Code<'_>) -> Result<Vec<Computed>> {
    let mut found = Vec::new();
    for index in 0..code.instructions().len() {
        found.extend(of(code, index)?);
    }
    found.sort_by_key(|computed| (computed.base, computed.adds.first().map(|add| add.instruction)));
    found.dedup();
    Ok(found)
}

/// Those whose base is the instruction at `index`.
///
/// # Errors
/// As [`find`].
pub(crate) fn of(code: &Code<'_>, index: usize) -> Result<Vec<Computed>> {
    match code.listing.mnemonic(&code.instructions()[index]) {
        "s_getpc_b64" | "s_get_pc_i64" => follow(code, index),
        "s_add_pc_i64" => Ok(vec![long_branch(code, index)?]),
        _ => Ok(Vec::new()),
    }
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
    let instruction = &code.instructions()[base];
    let pair = salu::destination(code.bytes_of(instruction)).ok_or_else(|| not_understood(code, base, base))?;
    let pc = code.address + u64::from(instruction.offset) + u64::from(instruction.len);
    let mut trace = Trace { code, base, pc, found: Vec::new(), paths: Vec::new() };
    trace.paths.push(Path { at: base + 1, pair, low: true, high: true, carry: None, restored: false });
    let mut seen = HashSet::new();
    while let Some(path) = trace.paths.pop() {
        if path.at < code.instructions().len() && seen.insert(path) {
            trace.step(path)?;
        }
    }
    Ok(trace.found)
}

/// Following one program counter.
struct Trace<'c, 'a> {
    code: &'c Code<'a>,
    base: usize,
    pc: u64,
    found: Vec<Computed>,
    paths: Vec<Path>,
}

impl Trace<'_, '_> {
    fn refuse(&self, index: usize) -> Error {
        not_understood(self.code, index, self.base)
    }

    /// Goes over one instruction, and leaves the paths behind it in `paths`.
    fn step(&mut self, mut path: Path) -> Result<()> {
        let (code, index) = (self.code, path.at);
        let instruction = &code.instructions()[index];
        path.at += 1;
        if instruction.state != State::Decoded {
            self.paths.push(path);
            return Ok(());
        }
        let (mnemonic, uses) =
            (code.listing.mnemonic(instruction), salu::uses(code.listing.text(instruction), path.pair));
        let reads = (uses.low_read && path.low) || (uses.high_read && path.high);
        if reads && mnemonic == "v_writelane_b32" && !path.restored && path.carry.is_none() {
            self.save(index, &path)?;
        } else if reads && !mnemonic.starts_with("s_prefetch_inst") {
            self.read(index, &mut path)?;
            if mnemonic == salu::SIGN_EXTENSION {
                self.paths.push(path);
                return Ok(());
            }
        }
        path.low &= !uses.low_written;
        path.high &= !uses.high_written;
        if (!path.low && !path.high) || salu::ends_path(mnemonic) {
            return path.carry.map_or(Ok(()), |low| Err(self.refuse(low)));
        }
        let jump = if mnemonic == "s_add_pc_i64" {
            Some(long_branch(code, index)?.target.wrapping_sub(code.address))
        } else {
            reach::target(mnemonic, instruction, code.bytes_of(instruction))
        };
        if let Some(target) = jump {
            let at = code.index_at(target).ok_or_else(|| self.refuse(index))?;
            self.paths.push(Path { at, ..path });
        }
        if !matches!(mnemonic, "s_branch" | "s_add_pc_i64") {
            self.paths.push(path);
        }
        Ok(())
    }

    /// A half goes into a lane of a VGPR: it is followed from everywhere where it is read back.
    fn save(&mut self, index: usize, path: &Path) -> Result<()> {
        let instruction = &self.code.instructions()[index];
        let is_low = salu::uses(self.code.listing.text(instruction), path.pair).low_read;
        for restore in saved::restores(self.code, index).map_err(|at| self.refuse(at))? {
            let pair = if is_low { Some(restore.sgpr) } else { restore.sgpr.checked_sub(1) };
            let pair = pair.ok_or_else(|| self.refuse(restore.at))?;
            let (at, low, high) = (restore.at + 1, is_low, !is_low);
            self.paths.push(Path { at, pair, low, high, carry: None, restored: true });
        }
        Ok(())
    }

    /// An instruction that reads what still holds the program counter.
    fn read(&mut self, index: usize, path: &mut Path) -> Result<()> {
        if path.restored {
            return Err(self.refuse(index));
        }
        match self.addition(index, path.pair)? {
            (Half::Low, ..) if path.low && path.carry.is_none() => path.carry = Some(index),
            (Half::High, operand, negative) if path.high => {
                let low = path.carry.take().ok_or_else(|| self.refuse(index))?;
                let (_, low_operand, low_negative) = self.addition(low, path.pair)?;
                if negative != low_negative {
                    return Err(self.refuse(index));
                }
                let value = (operand.value as u64) << 32 | low_operand.value as u64 & 0xffff_ffff;
                let add = |instruction, operand| Add { instruction, operand, negative };
                self.compute(value, vec![add(low, low_operand), add(index, operand)]);
            }
            (Half::Both, operand, negative) if path.low && path.high => {
                self.compute(operand.value as u64, vec![Add { instruction: index, operand, negative }]);
            }
            (Half::SignExtension, ..) => {}
            _ => return Err(self.refuse(index)),
        }
        Ok(())
    }

    fn addition(&self, index: usize, pair: u8) -> Result<(Half, Operand, bool)> {
        let instruction = &self.code.instructions()[index];
        salu::addition(self.code.listing.mnemonic(instruction), self.code.bytes_of(instruction), pair)
            .ok_or_else(|| self.refuse(index))
    }

    fn compute(&mut self, value: u64, adds: Vec<Add>) {
        let negative = adds.iter().any(|add| add.negative);
        let target = if negative { self.pc.wrapping_sub(value) } else { self.pc.wrapping_add(value) };
        self.found.push(Computed { base: self.base, adds, target });
    }
}
