//! The highest register of each file that an instruction names, and how many of each a kernel was given.

use codeobj::Descriptor;
use codeobj::descriptor::Family;

/// A file of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum File {
    /// `v0`, …
    Vgpr,
    /// `a0`, …: the accumulation VGPRs.
    Agpr,
    /// `s0`, …
    Sgpr,
}

impl File {
    /// All of them.
    pub const ALL: [File; 3] = [File::Vgpr, File::Agpr, File::Sgpr];

    /// The letter in front of a register's number.
    pub fn letter(self) -> char {
        match self {
            File::Vgpr => 'v',
            File::Agpr => 'a',
            File::Sgpr => 's',
        }
    }

    /// As AMD names the registers.
    pub fn name(self) -> &'static str {
        match self {
            File::Vgpr => "VGPRs",
            File::Agpr => "AGPRs",
            File::Sgpr => "SGPRs",
        }
    }
}

/// One past the highest number of each file, by [`File`]; 0 when none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u32; 3]);

impl Counts {
    /// One past the highest number in a file.
    pub fn get(&self, file: File) -> u32 {
        self.0[file as usize]
    }

    /// The larger of both in each file.
    pub fn raise(&mut self, other: Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own = (*own).max(other));
    }

    /// As many of one file.
    pub(crate) fn raise_file(&mut self, file: File, count: u32) {
        let own = &mut self.0[file as usize];
        *own = (*own).max(count);
    }

    /// Those that an instruction names: `v7`, `a[0:3]`. Comments are not looked at.
    pub fn of(text: &str) -> Counts {
        let text = text.split(';').next().unwrap_or_default();
        let bytes = text.as_bytes();
        let mut counts = Counts::default();
        let mut at = 0;
        while at < bytes.len() {
            if bytes[at..].starts_with(b"/*") {
                at += text[at..].find("*/").map_or(bytes.len() - at, |end| end + 2);
                continue;
            }
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
            let starts_word = at == 0 || !is_word(bytes[at - 1]);
            let file = File::ALL.into_iter().find(|file| file.letter() as u8 == bytes[at]).filter(|_| starts_word);
            at += 1;
            if let Some((file, count)) = file.and_then(|file| Some((file, count(&bytes[at..])?))) {
                counts.raise_file(file, count);
            }
        }
        counts
    }
}

/// One past the number or the end of the range behind a register's letter.
fn count(rest: &[u8]) -> Option<u32> {
    let number = |digits: &[u8]| {
        let end = digits.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
        let value = std::str::from_utf8(&digits[..end]).ok()?.parse::<u32>().ok()?;
        Some((value, digits.get(end).copied()))
    };
    let Some(range) = rest.strip_prefix(b"[") else {
        let (value, next) = number(rest)?;
        let ends = next.is_none_or(|next| !next.is_ascii_alphanumeric() && next != b'_');
        return ends.then_some(value + 1);
    };
    match number(range)? {
        (first, Some(b']')) => Some(first + 1),
        (_, Some(b':')) => {
            let colon = range.iter().position(|byte| *byte == b':')?;
            Some(number(&range[colon + 1..])?.0 + 1)
        }
        _ => None,
    }
}

/// How many registers of a file a wave of this kernel has; none where every wave has as many as can be named.
///
/// Where both kinds of VGPRs share one file, the AGPRs begin at the accumulation offset.
pub fn allocated(descriptor: &Descriptor, family: Family, file: File) -> Option<u32> {
    let wave32 = family.has_wave32() && descriptor.wavefront_size32();
    let vgprs = descriptor.allocated_vgprs(family, wave32);
    match (file, descriptor.accum_offset(family)) {
        (File::Vgpr, Some(offset)) => Some(vgprs.min(offset)),
        (File::Agpr, Some(offset)) => Some(vgprs.saturating_sub(offset)),
        (File::Vgpr | File::Agpr, None) => Some(vgprs),
        (File::Sgpr, _) => descriptor.allocated_sgprs(family),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_register_of_each_file_is_found() {
        let counts = |text| File::ALL.map(|file| Counts::of(text).get(file));
        for (text, want) in [
            ("v_mov_b32_e32 v7, s3", [8, 0, 4]),
            ("v_mfma_f32_32x32x8_f16 a[0:15], v[16:17], v[18:19], a[0:15]", [20, 16, 0]),
            ("s_load_dwordx2 s[8:9], s[0:1], 0x10", [0, 0, 10]),
            ("v_add_f16 v1.l, v2.h, 0xa5 ; v99", [3, 0, 0]),
            ("v_mov_b32 v1, v2 /*v258*/", [3, 0, 0]),
            ("s_waitcnt vmcnt(0)", [0, 0, 0]),
            ("v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 src0_sel:BYTE_3", [3, 0, 0]),
            ("v_cmp_eq_u32_e64 vcc, s[4], ttmp9", [0, 0, 5]),
        ] {
            assert_eq!(counts(text), want, "{text}");
        }
    }

    #[test]
    fn agprs_begin_at_the_accumulation_offset() {
        let mut bytes = [0; codeobj::descriptor::SIZE];
        bytes[44] = 15; // accum_offset 64
        bytes[48] = 11; // 96 VGPRs
        let descriptor = Descriptor::new(bytes);
        let of = |file| allocated(&descriptor, Family::Gfx90a, file);
        assert_eq!(File::ALL.map(of), [Some(64), Some(32), Some(8)]);
        assert_eq!(allocated(&descriptor, Family::Gfx11, File::Sgpr), None);
    }
}
