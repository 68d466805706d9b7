//! Branches by a signed number of words, relative to the instruction behind them.
//!
//! All of them keep it in the low half of their first word (SOPP and SOPK, "Machine Code Formats" of AMD's ISA
//! documents), so one rule reads and writes it. What LLVM prints is a number or a symbol and is not used.

use crate::error::{Error, Result};
use llvm::Instruction;

/// Bytes that a branch distance counts in, and the size of every such branch.
const WORD: i64 = 4;

/// Whether a mnemonic is a branch with a distance. `s_cbranch_g_fork` and `s_cbranch_join` take registers.
pub(crate) fn is_branch(mnemonic: &str) -> bool {
    let Some(rest) = mnemonic.strip_prefix("s_") else { return false };
    matches!(rest, "branch" | "call_b64" | "call_i64" | "subvector_loop_begin" | "subvector_loop_end")
        || rest.strip_prefix("cbranch_").is_some_and(|kind| !matches!(kind, "g_fork" | "join"))
}

/// Section offset that a branch leads to; none for another instruction, and for a target before the section.
pub(crate) fn target(mnemonic: &str, instruction: &Instruction, bytes: &[u8]) -> Option<u64> {
    if !is_branch(mnemonic) {
        return None;
    }
    let words = i16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]);
    u64::from(instruction.offset + WORD as u32).checked_add_signed(i64::from(words) * WORD)
}

/// The distance from a branch at `at` to `target`, both offsets in the new section.
///
/// # Errors
/// `NoRoom`, with the distance, when the field cannot hold it.
pub(crate) fn distance(at: u64, target: u64, describe: impl FnOnce() -> String) -> Result<i16> {
    let bytes = target.wrapping_sub(at) as i64 - WORD;
    let words = bytes / WORD;
    i16::try_from(words).map_err(|_| {
        Error::no_room(format!(
            "{} would have to reach {words} words ({bytes} bytes) far, a branch reaches -32768 to 32767 words; move its \
             target nearer, or go through s_getpc_b64",
            describe()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn every_branch_is_one_and_its_lookalikes_are_not() {
        for mnemonic in ["s_branch", "s_cbranch_scc0", "s_cbranch_cdbgsys_or_user", "s_cbranch_i_fork", "s_call_b64"] {
            assert!(is_branch(mnemonic), "{mnemonic}");
        }
        for mnemonic in ["s_cbranch_g_fork", "s_cbranch_join", "s_setpc_b64", "s_nop", "v_branch", ""] {
            assert!(!is_branch(mnemonic), "{mnemonic}");
        }
    }

    #[test]
    fn a_branch_beyond_its_field_is_an_error_and_never_wraps() {
        let describe = || "`s_branch 5`".to_string();
        assert_eq!(distance(0, 4 + 32767 * 4, describe), Ok(32767));
        assert_eq!(distance(32767 * 4, 0, describe), Ok(-32768));
        let error = distance(0, 4 + 32768 * 4, describe).expect_err("too far");
        assert_eq!(error.kind, ErrorKind::NoRoom);
        assert!(error.to_string().contains("32768 words"), "{error}");
    }
}
