//! The directives of a source text that say for what it is assembled; and the spelling of them that every LLVM
//! understands.

use std::borrow::Cow;

use crate::Target;
use crate::target::TRIPLE;

const TARGET: &str = ".amdgcn_target";
const CODE_OBJECT_VERSION: &str = ".amdhsa_code_object_version";
const WAVE32: &str = ".amdhsa_wavefront_size32";

impl Target {
    /// The target that `source` names in `.amdgcn_target "amdgcn-amd-amdhsa--gfx942:xnack-"`, in wave64 where a kernel
    /// says `.amdhsa_wavefront_size32 0`; `None` without the first or when it makes no sense.
    pub fn of_source(source: &str) -> Option<Self> {
        let (_, id) = split(arguments(source, TARGET).next()?)?;
        let wave64 = arguments(source, WAVE32).any(|argument| argument == "0");
        Some(Target::from_id(id).ok()?.with_wave64(wave64))
    }
}

/// The code object version that `source` asks for.
pub(crate) fn code_object_version(source: &str) -> Option<u32> {
    arguments(source, CODE_OBJECT_VERSION).next()?.parse().ok()
}

/// `source` with its `.amdgcn_target` spelled by [`TRIPLE`], whatever the triple's spelling was: `amdgcn-amd-amdhsa-unknown-…`,
/// or `amdgpu9.42-amd-amdhsa-unknown-…`, which LLVM 22 does not know.
pub(crate) fn with_known_triple(source: &str) -> Cow<'_, str> {
    let Some((triple, id)) = arguments(source, TARGET).next().and_then(split) else { return source.into() };
    source.replacen(&format!("{triple}-{id}"), &format!("{TRIPLE}--{id}"), 1).into()
}

/// What stands behind `directive` on each line that begins with it.
fn arguments<'a>(source: &'a str, directive: &str) -> impl Iterator<Item = &'a str> {
    source.lines().filter_map(move |line| {
        let argument = line.trim_start().strip_prefix(directive)?;
        argument.starts_with([' ', '\t']).then(|| argument.split([';', '/']).next().unwrap_or_default().trim())
    })
}

/// The triple and the target ID of `"amdgcn-amd-amdhsa--gfx9-4-generic:xnack+"`; the triple has four parts.
fn split(argument: &str) -> Option<(&str, &str)> {
    let argument = argument.strip_prefix('"')?.strip_suffix('"')?;
    let (end, _) = argument.match_indices('-').nth(3)?;
    Some((&argument[..end], &argument[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_its_target() {
        let source = "\t.amdgcn_target \"amdgcn-amd-amdhsa--gfx1100:xnack-\" ; a\n  .amdhsa_wavefront_size32 0\n";
        let target = Target::of_source(source).map(|target| (target.to_string(), target.wave64()));
        assert_eq!(target, Some(("gfx1100:xnack-".to_owned(), true)));
        let generic = Target::of_source(".amdgcn_target \"amdgpu9.4-amd-amdhsa-unknown-gfx9-4-generic\"");
        assert_eq!(generic, Some(Target::new("gfx9-4-generic")));
        assert_eq!(Target::of_source("s_nop 0\n.amdgcn_target gfx942"), None);
    }

    #[test]
    fn a_newer_spelling_of_the_triple_is_replaced() {
        let source = ".text\n.amdgcn_target \"amdgpu9.42-amd-amdhsa-unknown-gfx942:xnack+\"\ns_nop 0\n";
        let expected = ".text\n.amdgcn_target \"amdgcn-amd-amdhsa--gfx942:xnack+\"\ns_nop 0\n";
        assert_eq!(with_known_triple(source), expected);
        assert_eq!(with_known_triple(expected), expected);
    }

    #[test]
    fn the_code_object_version_is_read() {
        assert_eq!(code_object_version(".text\n\t.amdhsa_code_object_version 5\n"), Some(5));
        assert_eq!(code_object_version("s_nop 0"), None);
    }
}
