//! What code is decoded for: a processor, the target ID's features, and the wave size.

use std::fmt;

use crate::{Error, ErrorKind};

/// The triple of every AMD GPU code object that HSA loads.
pub(crate) const TRIPLE: &str = "amdgcn-amd-amdhsa";

/// The features that a target ID can carry (AMDGPU backend guide, "Target ID"). LLVM only warns about any other.
const TARGET_ID_FEATURES: [&str; 2] = ["xnack", "sramecc"];

/// A processor with its features, in LLVM's names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    processor: String,
    features: Vec<String>,
    wave64: bool,
}

impl Target {
    /// A processor such as `gfx942` or `gfx9-4-generic`, without features, in its default wave size.
    pub fn new(processor: &str) -> Self {
        Target { processor: processor.to_owned(), features: Vec::new(), wave64: false }
    }

    /// From a target ID's short form, `gfx942:sramecc+:xnack-` (AMDGPU backend guide, "Target ID").
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] for a feature that no target ID has.
    pub fn from_id(id: &str) -> Result<Self, Error> {
        let mut parts = id.split(':');
        let mut target = Target::new(parts.next().unwrap_or_default());
        for part in parts {
            let on = part.strip_suffix('+').map(|name| (name, '+'));
            let off = || part.strip_suffix('-').map(|name| (name, '-'));
            match on.or_else(off) {
                Some((name, sign)) if TARGET_ID_FEATURES.contains(&name) => {
                    target.features.push(format!("{sign}{name}"));
                }
                _ => {
                    let message =
                        format!("`{part}` in target ID `{id}` is not a feature, expected xnack or sramecc with + or -");
                    return Err(Error::new(ErrorKind::UnknownTarget, message));
                }
            }
        }
        target.features.sort();
        Ok(target)
    }

    /// The same in wave64 (`wave64 = true`) or in the processor's default. Only gfx10 and later have the choice; there
    /// the wave size decides whether a mask is printed as `vcc` or `vcc_lo`.
    #[must_use]
    pub fn with_wave64(mut self, wave64: bool) -> Self {
        self.wave64 = wave64;
        self
    }

    /// Whether wave64 was asked for.
    pub fn wave64(&self) -> bool {
        self.wave64
    }

    /// The processor's name.
    pub fn processor(&self) -> &str {
        &self.processor
    }

    /// LLVM's feature string: `+xnack,-sramecc,+wavefrontsize64`.
    pub(crate) fn feature_string(&self) -> String {
        let wave = self.wave64.then_some("+wavefrontsize64");
        let features: Vec<&str> = self.features.iter().map(String::as_str).chain(wave).collect();
        features.join(",")
    }
}

/// The target ID, as [`Target::from_id`] reads it.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.processor)?;
        self.features.iter().try_for_each(|feature| write!(f, ":{}{}", &feature[1..], &feature[..1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_ids_become_features() {
        let target = Target::from_id("gfx942:xnack-:sramecc+").expect("a valid target ID");
        assert_eq!(target.to_string(), "gfx942:sramecc+:xnack-");
        assert_eq!(target.processor(), "gfx942");
        assert_eq!(target.feature_string(), "+sramecc,-xnack");
        assert_eq!(target.with_wave64(true).feature_string(), "+sramecc,-xnack,+wavefrontsize64");
    }

    #[test]
    fn a_feature_that_llvm_would_ignore_is_refused() {
        let error = Target::from_id("gfx942:warp+").expect_err("no such feature");
        assert_eq!(error.kind(), ErrorKind::UnknownTarget);
        assert!(error.to_string().contains("`warp+`"), "{error}");
    }
}
