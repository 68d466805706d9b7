//! Patterns for kernels: `*` is any text, `?` any one character, everything else stands for itself, since kernel names
//! hold `<>[]{}::`. A pattern has to fit the whole key or the whole kernel name.

use std::fmt;

use crate::pairing::bare_name;

/// A pattern for kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// The keys that one kernel has on the two sides; they differ where it was renamed, and a pattern for either is meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Names<'k> {
    /// Its key before.
    pub before: Option<&'k str>,
    /// Its key after.
    pub after: Option<&'k str>,
}

impl Pattern {
    /// Reads a pattern; all but the empty text is one.
    ///
    /// # Errors
    /// The text is empty.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        match text.is_empty() {
            true => Err("an empty pattern fits no kernel; `*` fits each".into()),
            false => Ok(Pattern(text.to_owned())),
        }
    }

    /// As the user wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it fits this key, or the kernel's name in it.
    pub fn fits(&self, key: &str) -> bool {
        fits(&self.0, key) || fits(&self.0, bare_name(key))
    }

    /// Whether it fits the kernel under one of its names.
    pub fn fits_any(&self, kernel: Names<'_>) -> bool {
        kernel.before.into_iter().chain(kernel.after).any(|key| self.fits(key))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// When the text behind a `*` does not fit, that `*` takes one character more. Going back to the last one is enough, so
/// the time is bounded by the product of the lengths.
fn fits(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    let mut last_star = None;
    loop {
        let (mut rest, mut tail) = (pattern.clone(), text.clone());
        let fits_here = match (rest.next(), tail.next()) {
            (None, None) => return true,
            (Some('*'), _) => {
                last_star = Some((rest.clone(), text.clone()));
                pattern = rest;
                continue;
            }
            (Some('?'), Some(_)) => true,
            (Some(wanted), Some(found)) => wanted == found,
            (None, Some(_)) | (Some(_), None) => false,
        };
        if fits_here {
            (pattern, text) = (rest, tail);
            continue;
        }
        let Some((behind, mut from)) = last_star.take() else { return false };
        if from.next().is_none() {
            return false;
        }
        (pattern, text) = (behind.clone(), from.clone());
        last_star = Some((behind, from));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text) in [
            ("gemm", "gemm"),
            ("*", ""),
            ("*", "anything"),
            ("gemm_*", "gemm_"),
            ("*_64x?28", "gemm_64x128"),
            ("a*b*c", "a-b-b-c"),
            ("**a", "ba"),
            ("?", "é"),
            ("void f<*, [2]>(int)", "void f<float, [2]>(int)"),
            ("{}[]+.$^|\\", "{}[]+.$^|\\"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("gemm", "gemm_1"),
            ("gemm", "a gemm"),
            ("?", ""),
            ("a*b", "a-c"),
            ("", "a"),
            ("GEMM", "gemm"),
            ("[ab]", "a"),
        ] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn key_or_kernel_name() {
        let pattern = Pattern::parse("ns::gemm*").expect("a pattern");
        assert!(pattern.fits("lib/k.co::ns::gemm<1>"));
        assert!(pattern.fits("ns::gemm"));
        assert!(!pattern.fits("lib/k.co::other::ns::gemm<1>"));
        assert!(Pattern::parse("lib/*").expect("a pattern").fits("lib/k.co::ns::gemm<1>"));
        assert!(Pattern::parse("").is_err());
    }

    #[test]
    fn many_stars_end_soon() {
        let pattern = "*a".repeat(200);
        assert!(!fits(&pattern, &format!("{}b", "a".repeat(20_000))));
    }
}
