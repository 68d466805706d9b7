//! Direct branches: their last operand is a signed 16-bit distance in words from the next instruction, in the low half
//! of the first word (SOPP and SOPK in AMD's ISA documents). The printed operand is that number, unsigned.

/// The farthest a branch reaches, in words.
pub const REACH: i64 = 32767;

/// The text up to a direct branch's distance or label, and what follows: `("s_cbranch_scc0 ", "65413")`.
pub fn split(text: &str) -> Option<(&str, &str)> {
    // By bytes: this is asked of every instruction of every kernel.
    let is_branch = match text.as_bytes() {
        [b's', b'_', b'b', rest @ ..] => rest.starts_with(b"ranch "),
        [b's', b'_', b'c', b'b', rest @ ..] => {
            rest.starts_with(b"ranch_") && !rest.starts_with(b"ranch_g_fork") && !rest.starts_with(b"ranch_join")
        }
        [b's', b'_', b'c', b'a', rest @ ..] => rest.starts_with(b"ll_b64 ") || rest.starts_with(b"ll_i64 "),
        [b's', b'_', b's', b'u', rest @ ..] => rest.starts_with(b"bvector_loop_"),
        _ => false,
    };
    if !is_branch {
        return None;
    }
    let at = text.rfind([' ', '\t', ','])? + 1;
    Some(text.split_at(at))
}

/// Where the branch at `offset` with this first word goes; below zero when it leaves the section at its front.
pub fn target(offset: u32, word: u32) -> i64 {
    i64::from(offset) + 4 + 4 * i64::from(word as u16 as i16)
}

/// The operand of a branch at `offset` that goes to `target`.
///
/// # Errors
/// The distance in words, when the operand cannot hold it.
pub fn operand(offset: u32, target: u32) -> Result<u16, i64> {
    let words = (i64::from(target) - i64::from(offset) - 4) / 4;
    i16::try_from(words).map(|words| words as u16).map_err(|_| words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_told_from_what_only_looks_like_them() {
        assert_eq!(split("s_branch 65413"), Some(("s_branch ", "65413")));
        assert_eq!(split("s_call_b64 s[2:3], 12"), Some(("s_call_b64 s[2:3], ", "12")));
        assert_eq!(split("s_cbranch_i_fork s[2:3], .L1"), Some(("s_cbranch_i_fork s[2:3], ", ".L1")));
        for other in ["s_cbranch_g_fork s[0:1], s[2:3]", "s_cselect_b32 s0, s1, s2", "s_barrier", "v_mov_b32 v0, v1"] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn a_distance_reads_back_as_the_target() {
        for (from, to) in [(0, 4), (100, 0), (0, 131_072), (131_072, 4)] {
            let word = u32::from(operand(from, to).expect("in reach"));
            assert_eq!(target(from, 0xbf82_0000 | word), i64::from(to));
        }
        assert_eq!(operand(0, 131_076), Err(32_768));
        assert_eq!(operand(131_076, 0), Err(-32_770));
    }
}
