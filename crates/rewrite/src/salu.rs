//! As much of scalar instructions as it takes to follow a register pair.
//!
//! Encodings ("SOP1", "SOP2" of AMD's ISA documents): sources in the low bytes of the first word, the destination in
//! bits 22:16; 0–105 is an SGPR, 128–192 is 0 to 64, 193–208 is −1 to −16, 255 a 32-bit literal behind the word, 254
//! (gfx1250) a 64-bit one.

use std::ops::Range;

/// A constant operand: its value, and how the instruction holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub value: i64,
    place: Held,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// In this byte of the first word.
    Inline(usize),
    Literal32,
    /// The same in a 64-bit operation, where it is extended with zeros or with its sign: not negative, so that both
    /// agree.
    Literal31,
    Literal64,
}

/// What part of a pair an addition adds to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Low,
    High,
    Both,
    /// `s_sext_i32_i16` of the high half: a 48-bit counter becomes an address. Adds nothing.
    SignExtension,
}

/// How an instruction uses the two registers of a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    pub low_read: bool,
    pub high_read: bool,
    pub low_written: bool,
    pub high_written: bool,
}

/// Makes an address of a 48-bit program counter, in its high half.
pub(crate) const SIGN_EXTENSION: &str = "s_sext_i32_i16";

const SGPRS: Range<u8> = 0..106;
const LITERAL_32: u8 = 255;
const LITERAL_64: u8 = 254;

/// First register of the pair that a SOP1 instruction writes; none when that is no SGPR.
pub(crate) fn destination(bytes: &[u8]) -> Option<u8> {
    bytes.get(2).map(|byte| byte & 0x7f).filter(|register| SGPRS.contains(register))
}

/// The 64-bit constant that is a SOP1 instruction's source.
pub(crate) fn source64(bytes: &[u8]) -> Option<Operand> {
    constant64(bytes, 0)
}

fn constant64(bytes: &[u8], source: usize) -> Option<Operand> {
    let operand = constant(bytes, source)?;
    match operand.place {
        Held::Literal32 => (operand.value >= 0).then_some(Operand { place: Held::Literal31, ..operand }),
        _ => Some(operand),
    }
}

fn constant(bytes: &[u8], source: usize) -> Option<Operand> {
    let literal = |range: Range<usize>| {
        let bytes = bytes.get(range)?;
        Some(bytes.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let (value, place) = match *bytes.get(source)? {
        code @ 128..=192 => (i64::from(code) - 128, Held::Inline(source)),
        code @ 193..=208 => (192 - i64::from(code), Held::Inline(source)),
        LITERAL_32 => (i64::from(literal(4..8)? as i32), Held::Literal32),
        LITERAL_64 => (literal(4..12)? as i64, Held::Literal64),
        _ => return None,
    };
    Some(Operand { value, place })
}

impl Operand {
    /// Writes another value in the same form; `false` when the form cannot hold it.
    pub fn write(self, bytes: &mut [u8], value: i64) -> bool {
        match self.place {
            Held::Inline(at) => {
                let code = match value {
                    0..=64 => 128 + value,
                    -16..=-1 => 192 - value,
                    _ => return false,
                };
                put(bytes, at, &[code as u8])
            }
            Held::Literal32 => i32::try_from(value).is_ok_and(|value| put(bytes, 4, &value.to_le_bytes())),
            Held::Literal31 => {
                value >= 0 && i32::try_from(value).is_ok_and(|value| put(bytes, 4, &value.to_le_bytes()))
            }
            Held::Literal64 => put(bytes, 4, &value.to_le_bytes()),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, new: &[u8]) -> bool {
    bytes.get_mut(at..at + new.len()).map(|place| place.copy_from_slice(new)).is_some()
}

/// An addition of a constant to a half of `pair`, or to both; whether it is a subtraction.
pub(crate) fn addition(mnemonic: &str, bytes: &[u8], pair: u8) -> Option<(Half, Operand, bool)> {
    let (half, negative) = match mnemonic {
        "s_add_u32" | "s_add_co_u32" => (Half::Low, false),
        "s_sub_u32" | "s_sub_co_u32" => (Half::Low, true),
        "s_addc_u32" | "s_add_co_ci_u32" => (Half::High, false),
        "s_subb_u32" | "s_sub_co_ci_u32" => (Half::High, true),
        "s_add_nc_u64" | "s_add_u64" => (Half::Both, false),
        "s_sub_nc_u64" | "s_sub_u64" => (Half::Both, true),
        SIGN_EXTENSION => {
            let high = pair + 1;
            let in_place = bytes.first() == Some(&high) && destination(bytes) == Some(high);
            return in_place.then_some((Half::SignExtension, Operand { value: 0, place: Held::Inline(0) }, false));
        }
        _ => return None,
    };
    let register = if half == Half::High { pair + 1 } else { pair };
    let constant_in = match (*bytes.first()? == register, *bytes.get(1)? == register) {
        (true, false) => 1,
        (false, true) if !negative => 0,
        _ => return None,
    };
    let operand = if half == Half::Both { constant64(bytes, constant_in)? } else { constant(bytes, constant_in)? };
    Some((half, operand, negative))
}

/// Whether nothing behind an instruction is executed from here.
pub(crate) fn ends_path(mnemonic: &str) -> bool {
    let ends = ["s_endpgm", "s_setpc_b64", "s_set_pc_i64", "s_rfe"];
    ends.iter().any(|end| mnemonic.starts_with(end))
}

/// Scalar instructions whose first operand is read, or is written only in part or only sometimes.
const FIRST_IS_READ: [&str; 22] = [
    "s_cmp",
    "s_bitcmp",
    "s_bitset",
    "s_cmov",
    "s_cmovk",
    "s_addk",
    "s_mulk",
    "s_setpc",
    "s_set_pc",
    "s_rfe",
    "s_store",
    "s_buffer_store",
    "s_scratch_store",
    "s_atomic",
    "s_buffer_atomic",
    "s_atc",
    "s_prefetch",
    "s_buffer_prefetch",
    "s_setreg",
    "s_set_gpr",
    "s_movrel",
    "s_cbranch",
];

/// How `text` uses the registers `pair` and `pair + 1`. Unknown instructions read all that they name.
pub(crate) fn uses(text: &str, pair: u8) -> Uses {
    let (mnemonic, operands) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    let first_is_written = (mnemonic.starts_with("s_") && !FIRST_IS_READ.iter().any(|name| mnemonic.starts_with(name)))
        || mnemonic.starts_with("v_");
    // A carry or a comparison that goes to SGPRs beside the result.
    let second_is_written = [
        "v_add_co",
        "v_sub_co",
        "v_subrev_co",
        "v_addc_co",
        "v_subb_co",
        "v_subbrev_co",
        "v_div_scale",
        "v_mad_u64",
        "v_mad_i64",
        "v_mad_co",
    ]
    .iter()
    .any(|name| mnemonic.starts_with(name));
    let mut uses = Uses::default();
    for (index, operand) in operands.split(", ").enumerate() {
        for named in registers(operand) {
            let (low, high) = (named.contains(&pair), named.contains(&(pair + 1)));
            if (index == 0 && first_is_written) || (index == 1 && second_is_written) {
                uses.low_written |= low;
                uses.high_written |= high;
            } else {
                uses.low_read |= low;
                uses.high_read |= high;
            }
        }
    }
    uses
}

/// The SGPRs in an operand: `s4`, `s[4:5]`, `-|s4|`.
fn registers(operand: &str) -> impl Iterator<Item = Range<u8>> + '_ {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '[' | ':' | ']');
    operand.split(move |c| !is_word(c)).filter_map(|word| {
        let number = word.strip_prefix('s')?;
        let range = number.strip_prefix('[').and_then(|range| range.strip_suffix(']'));
        let (first, last) = match range {
            Some(range) => range.split_once(':').unwrap_or((range, range)),
            None => (number, number),
        };
        Some(first.parse().ok()?..last.parse::<u8>().ok()?.checked_add(1)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_of_a_pair_are_told_apart() {
        let low_written = Uses { low_written: true, low_read: true, ..Uses::default() };
        assert_eq!(uses("s_add_u32 s4, s4, 0xffffff4c", 4), low_written);
        let both_read = Uses { low_read: true, high_read: true, ..Uses::default() };
        assert_eq!(uses("s_swappc_b64 s[30:31], s[4:5]", 4), both_read);
        assert_eq!(uses("s_prefetch_inst s[4:5], 0x0, s6, 0", 4), both_read);
        assert_eq!(uses("s_cmp_eq_u64 s[4:5], 0", 4), both_read);
        assert_eq!(uses("global_load_dword v0, v3, s[4:5]", 4), both_read);
        assert_eq!(
            uses("s_load_dwordx8 s[0:7], s[8:9], 0x0", 4),
            Uses { low_written: true, high_written: true, ..Uses::default() }
        );
        assert_eq!(uses("s_mov_b32 s40, s14", 4), Uses::default());
    }

    #[test]
    fn constants_are_read_and_written_in_their_own_form() {
        let mut add = [0xff, 0x04, 0x04, 0x80, 0x4c, 0xff, 0xff, 0xff]; // s_add_u32 s4, 0xffffff4c, s4
        let (half, operand, negative) = addition("s_add_u32", &add, 4).expect("an addition");
        assert_eq!((half, operand.value, negative), (Half::Low, -0xb4, false));
        assert!(operand.write(&mut add, 0x1234));
        assert_eq!(add[4..], [0x34, 0x12, 0, 0]);
        let mut carry = [0x05, 0x80, 0x05, 0x82]; // s_addc_u32 s5, s5, 0
        let (half, operand, _) = addition("s_addc_u32", &carry, 4).expect("an addition");
        assert_eq!((half, operand.value), (Half::High, 0));
        assert!(operand.write(&mut carry, -1) && carry[1] == 193);
        assert!(!operand.write(&mut carry, 1000));
        assert_eq!(addition("s_add_u32", &[0x04, 0x06, 0x04, 0x80], 4), None, "s_add_u32 s4, s4, s6");
    }
}
