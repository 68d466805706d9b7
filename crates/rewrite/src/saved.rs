//! Halves of a program counter that are saved in a lane of a VGPR and restored later.
//!
//! ```text
//! s_get_pc_i64    s[36:37]
//! s_set_vgpr_msb  0x41
//! v_writelane_b32 v248, s36, 11        in v504, for bank 1 is in force
//! …
//! v_readlane_b32  s36, v248, 11        the same value again, where src0 is of bank 1
//! ```
//!
//! Every instruction that may read that VGPR has to be a `v_readlane_b32` with a constant lane; each of the saved lane
//! is where the half is in an SGPR again.

use llvm::State;

use crate::flow::{self, Banks, Step};
use crate::linked::Code;

/// Where a saved half is read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    /// Index of the instruction.
    pub at: usize,
    pub sgpr: u8,
}

/// Reads of the half that the `v_writelane_b32` at `index` saves from an SGPR.
///
/// # Errors
/// Index of the instruction that might use it otherwise.
pub(crate) fn restores(code: &Code<'_>, index: usize) -> Result<Vec<Restore>, usize> {
    let banks = banks(code);
    let text = |at: usize| without_comments(code.listing.text(&code.instructions()[at]));
    let (register, _, lane) = lane_access(&text(index)).ok_or(index)?;
    let bank = banks[index].slots().ok_or(index)?[DST];
    let saved = u16::from(bank) << 8 | u16::from(register);
    let mut found = Vec::new();
    for (at, instruction) in code.instructions().iter().enumerate() {
        if instruction.state != State::Decoded {
            continue;
        }
        let mnemonic = code.listing.mnemonic(instruction);
        // Which VGPR these read is in a register.
        if mnemonic.starts_with("v_movrel") || mnemonic.starts_with("s_set_gpr_idx") {
            return Err(at);
        }
        let text = text(at);
        let may_be_it = |slots: &[usize]| named(&text).any(|range| overlaps(range, saved, banks[at], slots));
        match mnemonic {
            // The other lanes stay, and this one gets another value or one that is followed by itself.
            "v_writelane_b32" => {}
            "v_readlane_b32" if !may_be_it(&[SRC0]) => {}
            "v_readlane_b32" => {
                let (_, sgpr, read) = lane_access(&text).ok_or(at)?;
                if read == lane {
                    // Certainly that VGPR: what may be another one is not followed.
                    let is_it = banks[at].slots().is_some();
                    found.push(Restore { at, sgpr: sgpr.filter(|_| is_it).ok_or(at)? });
                }
            }
            _ if may_be_it(&ALL) && !is_another(mnemonic, &text, saved, banks[at]) => return Err(at),
            _ => {}
        }
    }
    Ok(found)
}

/// So many SGPRs have numbers.
const SGPRS: u8 = 106;
const SRC0: usize = 0;
const DST: usize = 3;
const ALL: [usize; 4] = [0, 1, 2, 3];

fn banks(code: &Code<'_>) -> Vec<Banks> {
    let steps: Vec<Step> = code
        .instructions()
        .iter()
        .map(|instruction| {
            let is_certain = instruction.state == State::Decoded && !instruction.untrusted;
            Step::of(instruction.offset, code.listing.text(instruction), code.bytes_of(instruction), is_certain)
        })
        .collect();
    let kernels: Vec<u32> = code.entries.iter().filter_map(|entry| u32::try_from(entry.offset).ok()).collect();
    flow::banks(&steps, &kernels, &[])
}

/// Whether an instruction of a known form only writes the VGPR, or names others with the same low bits.
fn is_another(mnemonic: &str, text: &str, saved: u16, banks: Banks) -> bool {
    let is_move = mnemonic.starts_with("v_mov_b32");
    // Written in the order of their fields (VOP3P): dst, src0, src1, src2.
    let is_plain = mnemonic.starts_with("v_pk_") || mnemonic.starts_with("v_wmma_") && !mnemonic.contains("scale");
    if !is_move && !is_plain {
        return false;
    }
    let operands = text.split_once([' ', '\t']).map_or("", |(_, operands)| operands).split(", ");
    let mut slots = [DST, SRC0, 1, 2].into_iter();
    operands.enumerate().all(|(number, operand)| {
        let slot = slots.next().unwrap_or(DST);
        // Matrix instructions may keep what they write in what they read.
        let is_only_written = is_move && number == 0;
        is_only_written || !named(operand).any(|range| overlaps(range, saved, banks, &[slot]))
    })
}

/// Whether VGPRs with these low bits, in a bank of one of `slots`, may be `saved`.
fn overlaps((first, last): (u16, u16), saved: u16, banks: Banks, slots: &[usize]) -> bool {
    let in_bank = |bank: u8| {
        let base = u16::from(bank) << 8;
        (base + first..=base + last).contains(&saved)
    };
    match banks.slots() {
        Some(known) => slots.iter().any(|slot| in_bank(known[*slot])),
        None => (0..4).any(in_bank),
    }
}

/// VGPRs that a text names, by the low bits of their numbers: first and last.
fn named(text: &str) -> impl Iterator<Item = (u16, u16)> + '_ {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ':' | ']');
    text.split(move |c| !is_word(c)).filter_map(|word| {
        let number = word.strip_prefix('v')?;
        let (first, last) = match number.strip_prefix('[').and_then(|range| range.strip_suffix(']')) {
            Some(range) => range.split_once(':').unwrap_or((range, range)),
            None => (number, number),
        };
        let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
        Some((first % 256, first % 256 + last.saturating_sub(first).min(256)))
    })
}

/// Of `v_writelane_b32 v248, s36, 11` and `v_readlane_b32 s36, v248, 11`: the VGPR's low bits, the SGPR and the lane.
fn lane_access(text: &str) -> Option<(u8, Option<u8>, u32)> {
    let (mnemonic, operands) = text.split_once([' ', '\t'])?;
    let operands: Vec<&str> = operands.split(',').map(str::trim).collect();
    let [one, two, lane] = operands[..] else { return None };
    let (vgpr, sgpr) = if mnemonic == "v_writelane_b32" { (one, two) } else { (two, one) };
    let vgpr = vgpr.strip_prefix('v')?.parse::<u16>().ok()?;
    let sgpr = sgpr.strip_prefix('s').and_then(|number| number.parse().ok()).filter(|number| *number < SGPRS);
    let lane = match lane.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => lane.parse().ok()?,
    };
    Some(((vgpr % 256) as u8, sgpr, lane))
}

/// `v248 /*v504*/`: LLVM's own idea of the bank is not used.
fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::with_capacity(text.len());
    while let Some((before, behind)) = rest.split_once("/*") {
        plain.push_str(before.trim_end());
        rest = behind.split_once("*/").map_or("", |(_, behind)| behind);
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_told_with_their_banks() {
        assert_eq!(named("v_add_nc_u32_e64 v28, v[250:255], s36").collect::<Vec<_>>(), [(28, 28), (250, 255)]);
        assert!(overlaps((248, 248), 504, Banks::Known(0x41), &[SRC0]));
        assert!(!overlaps((248, 248), 504, Banks::Known(0x40), &[SRC0]));
        assert!(overlaps((248, 248), 504, Banks::Any, &[SRC0]));
        assert!(overlaps((250, 260), 514, Banks::Known(0x41), &[SRC0]));
        assert!(!overlaps((247, 247), 504, Banks::Any, &ALL));
    }

    #[test]
    fn only_other_registers_with_the_same_low_bits_are_let_pass() {
        let wmma = "v_wmma_f32_16x16x32_bf16 v[248:255], v[176:183], v[20:27], v[248:255]";
        let is_another =
            |text: &str, bits| is_another(text.split(' ').next().unwrap_or_default(), text, 504, Banks::Known(bits));
        assert!(is_another(wmma, 0x06));
        assert!(!is_another(wmma, 0x46) && !is_another(wmma, 0x16));
        assert!(is_another("v_mov_b32_e32 v248, 0", 0x40) && !is_another("v_mov_b32_e32 v1, v248", 0x01));
        assert!(!is_another("v_add_f32_e32 v248, v1, v2", 0x40));
    }

    #[test]
    fn lane_accesses_are_read() {
        let text = without_comments("v_writelane_b32 v248 /*v504*/, s36, 11");
        assert_eq!(lane_access(&text), Some((248, Some(36), 11)));
        assert_eq!(lane_access("v_readlane_b32 s37, v248, 0xc"), Some((248, Some(37), 12)));
        assert_eq!(lane_access("v_readlane_b32 s37, v248, s5"), None);
        assert_eq!(lane_access("v_writelane_b32 v248, 7, 3"), Some((248, None, 3)));
    }
}
