//! Which instructions the resource table counts, from their mnemonic (and, for loads that go to LDS, the operands).
//!
//! Source: the instruction lists of LLVM 22's AMDGPU backend for gfx9 to gfx12.5. A `_` or `2` must follow `ds_read`
//! and its siblings: `ds_storexchg_rtn_b32` is an atomic exchange and not a store.

/// What one instruction is to the resource table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// `ds_read*`: an LDS read in the spelling of gfx6 to gfx10.
    LdsRead,
    /// `ds_load*`: the same in the spelling of gfx11 and later.
    LdsLoad,
    /// `ds_write*`, `ds_store*`.
    LdsWrite,
    /// Any other access to LDS: an atomic, or a load from memory straight into LDS.
    LdsOther,
    /// `scratch_store_*`.
    ScratchStore,
    /// `scratch_load_*`.
    ScratchLoad,
    /// `scratch_load_lds_*`: counts as a scratch load and is LDS traffic too.
    ScratchLoadLds,
    /// `v_mfma*`, `v_wmma*`, `v_smfmac*`, `v_swmmac*`.
    Matrix,
}

impl Site {
    /// Classifies an instruction. `operands` gives what follows the mnemonic, without a comment; it is asked only for
    /// the few mnemonics whose class depends on it.
    #[inline]
    pub fn of<'a>(mnemonic: &[u8], operands: impl FnOnce() -> &'a [u8]) -> Option<Site> {
        match mnemonic {
            [b'v', b'_', b'm' | b'w' | b's', ..] => matrix(&mnemonic[2..]),
            [b'd', b's', b'_', rest @ ..] => lds(rest),
            [b's', b'c', b'r', b'a', b't', b'c', b'h', b'_', rest @ ..] => scratch(rest, operands),
            [b'b' | b'g' | b'c' | b't', ..] => lds_dma(mnemonic, operands),
            _ => None,
        }
    }

    /// Whether the instruction touches LDS.
    pub fn is_lds_traffic(self) -> bool {
        matches!(self, Site::LdsRead | Site::LdsLoad | Site::LdsWrite | Site::LdsOther | Site::ScratchLoadLds)
    }
}

fn matrix(rest: &[u8]) -> Option<Site> {
    [&b"mfma"[..], b"wmma", b"smfmac", b"swmmac"].iter().any(|p| rest.starts_with(p)).then_some(Site::Matrix)
}

fn lds(rest: &[u8]) -> Option<Site> {
    let access = |name: &[u8]| rest.strip_prefix(name).is_some_and(|r| matches!(r.first(), Some(b'_' | b'2')));
    if access(b"read") {
        return Some(Site::LdsRead);
    }
    if access(b"load") {
        return Some(Site::LdsLoad);
    }
    if access(b"write") || access(b"store") {
        return Some(Site::LdsWrite);
    }
    // These move data between lanes or go to GDS; no LDS is needed for them.
    const NO_LDS: &[&[u8]] = &[b"bpermute", b"permute", b"swizzle", b"nop", b"gws_", b"ordered_count"];
    (!NO_LDS.iter().any(|p| rest.starts_with(p))).then_some(Site::LdsOther)
}

fn scratch<'a>(rest: &[u8], operands: impl FnOnce() -> &'a [u8]) -> Option<Site> {
    if rest.starts_with(b"store") {
        Some(Site::ScratchStore)
    } else if rest.starts_with(b"load_lds") || (rest.starts_with(b"load") && has_lds_modifier(operands())) {
        Some(Site::ScratchLoadLds)
    } else if rest.starts_with(b"load") {
        Some(Site::ScratchLoad)
    } else {
        None
    }
}

/// `global_load_lds_dwordx4`, `buffer_load_dwordx4 … lds`, `global_load_async_to_lds_b128`, `tensor_load_to_lds`.
fn lds_dma<'a>(mnemonic: &[u8], operands: impl FnOnce() -> &'a [u8]) -> Option<Site> {
    let memory =
        [&b"global_load"[..], b"buffer_load", b"cluster_load", b"tensor_load", b"tensor_store", b"global_store_async"];
    let is_memory = memory.iter().any(|p| mnemonic.starts_with(p));
    let to_lds = |m: &[u8]| m.split(|&b| b == b'_').any(|part| part == b"lds");
    (is_memory && (to_lds(mnemonic) || has_lds_modifier(operands()))).then_some(Site::LdsOther)
}

/// Whether `lds` stands alone among the modifiers.
fn has_lds_modifier(operands: &[u8]) -> bool {
    operands.split(|&b| matches!(b, b' ' | b'\t' | b',')).any(|word| word == b"lds")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Option<Site> {
        let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
        Site::of(mnemonic.as_bytes(), || operands.as_bytes())
    }

    #[test]
    fn counted_mnemonics_are_told_from_their_lookalikes() {
        use Site::*;
        for (text, want) in [
            ("ds_read_b128 v[12:15], v2", Some(LdsRead)),
            ("ds_read2st64_b64 v[0:3], v4", Some(LdsRead)),
            ("ds_load_b128 v[0:3], v4", Some(LdsLoad)),
            ("ds_store2_b32 v0, v1, v2", Some(LdsWrite)),
            ("ds_storexchg_rtn_b32 v0, v1, v2", Some(LdsOther)),
            ("ds_wrxchg_rtn_b32 v0, v1, v2", Some(LdsOther)),
            ("ds_bpermute_b32 v0, v1, v2", None),
            ("ds_swizzle_b32 v0, v1", None),
            ("v_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[18:19], v[0:15]", Some(Matrix)),
            ("v_swmmac_f32_16x16x32_f16 v[0:7], v[8:11], v[12:19], v20", Some(Matrix)),
            ("v_mul_f32 v0, v1, v2", None),
            ("v_accvgpr_read_b32 v0, a0", None),
            ("scratch_store_short off, v0, s0", Some(ScratchStore)),
            ("scratch_load_ubyte_d16 v0, off, s0", Some(ScratchLoad)),
            ("scratch_load_lds_dword off, s0", Some(ScratchLoadLds)),
            ("global_load_lds_dwordx4 v[0:1], off", Some(LdsOther)),
            ("buffer_load_dwordx4 v1, s[4:7], 0 offen lds", Some(LdsOther)),
            ("buffer_load_dwordx4 v[0:3], v1, s[4:7], 0 offen", None),
            ("global_load_async_to_lds_b128 v0, v[2:3], off", Some(LdsOther)),
            ("tensor_load_to_lds s[0:3], s[4:11]", Some(LdsOther)),
        ] {
            assert_eq!(site(text), want, "{text}");
        }
    }
}
