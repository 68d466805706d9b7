//! LDS that code uses, as far as its text says: the constant offsets of its instructions.

use isa::Site;

use codeobj::Kernel;

/// Whether an instruction touches LDS.
pub(crate) fn touches(text: &str) -> bool {
    let text = text.split(';').next().unwrap_or_default();
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    let is_gds = operands.split([' ', ',']).any(|word| word == "gds");
    !is_gds && Site::of(mnemonic.as_bytes(), || operands.as_bytes()).is_some_and(Site::is_lds_traffic)
}

/// One past the last byte that a DS instruction reaches by its constant offset, when the address in its register is 0;
/// none for one whose width or offset is not understood.
///
/// `ds_read2` and the like have two offsets that count elements, or 64 of them (`st64`).
pub(crate) fn constant_end(text: &str) -> Option<u64> {
    let text = text.split(';').next().unwrap_or_default();
    let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
    if !mnemonic.starts_with("ds_") || !touches(text) {
        return None;
    }
    let bytes = width(mnemonic)?;
    let value = |name: &str| {
        let word = operands.split_ascii_whitespace().find_map(|word| word.strip_prefix(name));
        word.map_or(Some(0), |number| match number.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => number.parse().ok(),
        })
    };
    const PAIRS: [&str; 6] = ["read2", "write2", "load_2addr", "store_2addr", "wrxchg2", "storexchg_2addr"];
    let is_double = PAIRS.iter().any(|part| mnemonic.contains(part));
    if is_double {
        let is_strided = mnemonic.contains("st64") || mnemonic.contains("stride64");
        let unit = if is_strided { bytes * 64 } else { bytes };
        return Some(value("offset0:")?.max(value("offset1:")?) * unit + bytes);
    }
    Some(value("offset:")? + bytes)
}

/// Bytes of an element, from the type at the end of the mnemonic.
fn width(mnemonic: &str) -> Option<u64> {
    let kind = mnemonic.split('_').rev().find(|part| {
        part.len() > 1 && part.starts_with(['b', 'u', 'i', 'f']) && part[1..].bytes().all(|byte| byte.is_ascii_digit())
    });
    match (kind.and_then(|kind| kind[1..].parse::<u64>().ok()), mnemonic) {
        (Some(bits @ (8 | 16 | 32 | 64 | 96 | 128)), _) => Some(bits / 8),
        (None, _) if mnemonic.contains("bf16") || mnemonic.contains("pk_add_f16") => Some(4),
        _ => None,
    }
}

/// Whether a launch certainly brings more LDS than the descriptor says, or may: the kernel has an argument for it, or code
/// that uses LDS and none that is allocated.
pub(crate) fn is_dynamic(kernel: &Kernel, allocated: u64, used_before: Option<u64>) -> bool {
    let by_argument = kernel
        .metadata
        .args
        .iter()
        .any(|arg| matches!(arg.value_kind.as_deref(), Some("dynamic_shared_pointer" | "hidden_dynamic_lds_size")));
    by_argument || used_before.is_some_and(|end| end > allocated)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Offsets as in the ISA documents ("LDS Instruction Fields"): bytes, but elements and 64 elements for pairs.
    #[test]
    fn constant_offsets_count_as_the_isa_says() {
        for (text, want) in [
            ("ds_write_b32 v0, v1", Some(4)),
            ("ds_write_b32 v0, v1 offset:1020", Some(1024)),
            ("ds_read_b128 v[0:3], v4 offset:16", Some(32)),
            ("ds_read2_b32 v[0:1], v4 offset1:3", Some(16)),
            ("ds_read2st64_b64 v[0:3], v4 offset0:1 offset1:2", Some(1032)),
            ("ds_load_2addr_stride64_b32 v[0:1], v4 offset1:1", Some(260)),
            ("ds_add_rtn_u32 v0, v1, v2 offset:8", Some(12)),
            ("ds_read_u16_d16_hi v0, v1 offset:6", Some(8)),
            ("ds_bpermute_b32 v0, v1, v2 offset:8", None),
            ("ds_add_u32 v0, v1 offset:8 gds", None),
            ("global_load_lds_dword v[0:1], off offset:64", None),
        ] {
            assert_eq!(constant_end(text), want, "{text}");
        }
    }
}
