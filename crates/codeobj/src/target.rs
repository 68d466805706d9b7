//! Target IDs: which processor, with which features, a code object was made for.
//!
//! Spellings follow "Target ID" and "Target Triples" of LLVM's AMDGPUUsage. The processor numbers of `e_flags` are
//! in [`mach`]; both are compared with `llvm-readelf` 22 in the tests.

pub mod mach;

use crate::error::{Error, Result};
use std::collections::BTreeSet;
use std::fmt;

/// A processor and the features that were fixed for it.
///
/// Two spellings of the same target differ under `==` (the text is part of the value); compare with
/// [`same_as`](Self::same_as).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetId {
    /// `gfx942`, `gfx9-4-generic`, `gfx1250-strict`; none for a bare triple.
    pub processor: Option<String>,
    /// `xnack+`, `sramecc-`, …; a feature that is not here is "any".
    pub features: BTreeSet<String>,
    /// As the source spelled it, or the canonical spelling when it came from `e_flags`.
    pub text: String,
}

impl TargetId {
    /// Reads `arch-vendor-os-environment-processor:feature:…`, or only `processor:feature:…`.
    ///
    /// These name one target: `amdgcn-amd-amdhsa--gfx942`, `amdgcn-amd-amdhsa-unknown-gfx942`,
    /// `amdgpu9.42-amd-amdhsa-unknown-gfx942`. Old producers leave the environment out (`amdgcn-amd-amdhsa-gfx906`).
    ///
    /// # Errors
    /// `WrongFormat` when the text is not of this shape, a feature lacks its `+` or `-`, or one is given twice.
    pub fn parse(text: &str) -> Result<TargetId> {
        let bad = |what: String| Err(Error::wrong_format(format!("{what} in target ID `{text}`")));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut features = BTreeSet::new();
        for feature in parts {
            let known_shape = feature.strip_suffix(['+', '-']).is_some_and(is_word);
            if !known_shape {
                return bad(format!("feature `{feature}` does not end in `+` or `-`"));
            }
            let stem = &feature[..feature.len() - 1];
            if features.iter().any(|f: &String| &f[..f.len() - 1] == stem) {
                return bad(format!("feature `{stem}` is given twice"));
            }
            features.insert(feature.to_string());
        }
        let processor = processor_of(name);
        if processor.is_some_and(|p| !p.split('-').all(is_word)) {
            return bad("no processor name".to_string());
        }
        let is_amdgpu_triple = name.starts_with("amdgcn-") || name.starts_with("amdgpu");
        match processor {
            Some(p) => Ok(TargetId { processor: Some(p.to_string()), features, text: text.to_string() }),
            None if is_amdgpu_triple && features.is_empty() => {
                Ok(TargetId { processor: None, features, text: text.to_string() })
            }
            None => bad("no processor".to_string()),
        }
    }

    /// Decodes the `e_flags` of an AMDGPU ELF header whose `EI_ABIVERSION` is `abi_version`.
    ///
    /// `None` when the processor number is unknown. The text is the canonical spelling. ABI version 1 (code object
    /// v3) records features as on or off; later ones as unsupported, any, off or on.
    pub fn from_elf(e_flags: u32, abi_version: u8) -> Option<TargetId> {
        let processor = mach::processor(e_flags & mach::MACH_MASK)?;
        let features = mach::features(e_flags, abi_version).map(str::to_string).collect();
        let mut target = TargetId { processor: Some(processor.to_string()), features, text: String::new() };
        target.text = target.canonical();
        Some(target)
    }

    /// Whether both name one processor with one set of features. Two unnamed processors are not the same.
    pub fn same_as(&self, other: &TargetId) -> bool {
        self.processor.is_some() && self.processor == other.processor && self.features == other.features
    }

    /// `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    pub fn canonical(&self) -> String {
        format!("amdgcn-amd-amdhsa--{}", self.short())
    }

    /// `gfx90a:sramecc+:xnack-`, empty without a processor.
    pub fn short(&self) -> String {
        let mut short = self.processor.clone().unwrap_or_default();
        for feature in &self.features {
            short.push(':');
            short.push_str(feature);
        }
        short
    }

    /// Major version of the processor: 9 for `gfx90a`, 12 for `gfx1250`. See [`generation`].
    pub fn generation(&self) -> Option<u32> {
        self.processor.as_deref().and_then(generation)
    }
}

impl fmt::Display for TargetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Major version in a processor name: `gfx`, decimal major, one hexadecimal minor, one hexadecimal stepping.
///
/// `gfx90a` → 9, `gfx1250` → 12, `gfx9-4-generic` → 9, `gfx1250-strict` → 12, `gfxabc` → none.
pub fn generation(processor: &str) -> Option<u32> {
    let version = processor.strip_prefix("gfx")?;
    let (number, suffix) = version.split_once('-').unwrap_or((version, ""));
    let major = if suffix.ends_with("generic") {
        number
    } else {
        let (major, minor_and_stepping) = number.split_at_checked(number.len().checked_sub(2)?)?;
        minor_and_stepping.bytes().all(|b| b.is_ascii_hexdigit()).then_some(major)?
    };
    let decimal = !major.is_empty() && major.len() <= 3 && major.bytes().all(|b| b.is_ascii_digit());
    decimal.then(|| major.parse().ok())?
}

/// What follows the triple, or the whole text when it starts with the processor.
fn processor_of(name: &str) -> Option<&str> {
    if name.starts_with("gfx") {
        return Some(name);
    }
    let (_, after_os) = name.match_indices('-').nth(2).map(|(at, _)| name.split_at(at + 1))?;
    if after_os.starts_with("gfx") {
        return Some(after_os);
    }
    after_os.split_once('-').map(|(_environment, processor)| processor)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> TargetId {
        TargetId::parse(text).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn spellings_of_one_target_are_the_same() {
        let spellings = [
            "amdgcn-amd-amdhsa--gfx942",
            "amdgcn-amd-amdhsa-unknown-gfx942",
            "amdgpu9.42-amd-amdhsa-unknown-gfx942",
            "amdgcn-amd-amdhsa-gfx942",
            "gfx942",
        ];
        for text in spellings {
            assert!(target(text).same_as(&target(spellings[0])), "{text}");
            assert_eq!(target(text).canonical(), spellings[0]);
        }
    }

    #[test]
    fn features_are_a_set() {
        let a = target("amdgcn-amd-amdhsa--gfx90a:xnack-:sramecc+");
        assert!(a.same_as(&target("gfx90a:sramecc+:xnack-")));
        assert!(!a.same_as(&target("gfx90a:sramecc+")));
        assert_eq!(a.canonical(), "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-");
    }

    #[test]
    fn processor_names_may_contain_dashes() {
        assert_eq!(target("amdgcn-amd-amdhsa--gfx9-4-generic:xnack+").processor.as_deref(), Some("gfx9-4-generic"));
        assert_eq!(target("amdgcn-amd-amdhsa-unknown-gfx1250-strict").short(), "gfx1250-strict");
    }

    #[test]
    fn a_bare_triple_names_no_processor() {
        let bare = target("amdgcn-amd-amdhsa");
        assert_eq!(bare.processor, None);
        assert!(!bare.same_as(&bare.clone()));
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for text in ["", "hello", "x86_64-unknown-linux-gnu", "gfx942:xnack", "gfx942:", "gfx90a:xnack+:xnack-", "a b"]
        {
            assert!(TargetId::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn generation_is_the_decimal_major() {
        let known = [("gfx90a", 9), ("gfx942", 9), ("gfx803", 8), ("gfx1030", 10), ("gfx1250", 12)];
        let dashed = [("gfx9-4-generic", 9), ("gfx11-generic", 11), ("gfx1250-strict", 12)];
        for (name, major) in known.into_iter().chain(dashed) {
            assert_eq!(generation(name), Some(major), "{name}");
        }
        for name in ["gfxabc", "gfx", "gfx9", "gfx-generic", "sm_90", "gfx99999900", "gfx90é"] {
            assert_eq!(generation(name), None, "{name}");
        }
    }
}
