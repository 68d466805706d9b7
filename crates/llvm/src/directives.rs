//! The directives of a source text that say for what it is assembled; and the spelling of them that every LLVM
//! understands.

use std::borrow::Cow;

use crate::Target;
use crate::target::TRIPLE;

const TARGET: &str = ".amdgcn_target";
const CODE_OBJECT_VERSION: &str = ".amdhsa_code_object_version";
const WAVE32: &str = ".amdhsa_wavefront_size32";
const INST_PREF_SIZE: &str = ".amdhsa_inst_pref_size";
/// A function in expressions that LLVM has since 23: how much code the instruction prefetcher is told of.
const INSTPREFSIZE: &str = "instprefsize(";
/// Its unit, a line of the instruction cache of gfx11 and gfx12.
const CACHE_LINE_BYTES: u32 = 128;

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

/// `source` without the directives that ask for a code object version; lines stay lines.
pub(crate) fn without_code_object_version(source: &str) -> String {
    let asks = |line: &str| arguments(line, CODE_OBJECT_VERSION).next().is_some();
    source.split_inclusive('\n').map(|line| if asks(line) { "\n" } else { line }).collect()
}

/// `source` with what only newer assemblers know in words of LLVM 22; lines stay lines.
pub(crate) fn understood<'a>(target: &Target, source: &'a str) -> Cow<'a, str> {
    let mut source = with_known_triple(source);
    if source.contains(INSTPREFSIZE) {
        let calculate = |line: &str| inst_pref_size(target, line).unwrap_or_else(|| line.to_owned());
        source = source.split_inclusive('\n').map(calculate).collect::<String>().into();
    }
    source
}

/// `source` with its `.amdgcn_target` spelled by [`TRIPLE`], whatever the triple's spelling was:
/// `amdgcn-amd-amdhsa-unknown-…`, or `amdgpu9.42-amd-amdhsa-unknown-…`, which LLVM 22 does not know.
fn with_known_triple(source: &str) -> Cow<'_, str> {
    let Some((triple, id)) = arguments(source, TARGET).next().and_then(split) else { return source.into() };
    source.replacen(&format!("{triple}-{id}"), &format!("{TRIPLE}--{id}"), 1).into()
}

/// `.amdhsa_inst_pref_size` with its [`INSTPREFSIZE`] calculated: cache lines, rounded up, at most what the field
/// holds. (Equal to what Triton's LLVM 23 put into descriptors of gfx1100 and gfx1201.)
fn inst_pref_size(target: &Target, line: &str) -> Option<String> {
    let field_bits = if target.processor().starts_with("gfx11") { 6 } else { 8 };
    let most = (1 << field_bits) - 1;
    let (before, rest) = line.split_once(INSTPREFSIZE)?;
    if !before.trim_start().starts_with(INST_PREF_SIZE) {
        return None;
    }
    let (bytes, behind) = rest.split_once(')')?;
    let lines = format!("((({bytes})+{CACHE_LINE_BYTES}-1)/{CACHE_LINE_BYTES})");
    // LLVM has `max` and no `min`.
    Some(format!("{before}({lines}+{most}-max({lines},{most})){behind}"))
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
    fn the_prefetch_size_is_calculated() {
        let source = ".amdhsa_inst_pref_size ((instprefsize(b-a)<<4)&1008)>>4\n";
        let expected = ".amdhsa_inst_pref_size ((((((b-a)+128-1)/128)+63-max((((b-a)+128-1)/128),63))<<4)&1008)>>4\n";
        assert_eq!(understood(&Target::new("gfx1100"), source), expected);
    }

    #[test]
    fn the_code_object_version_is_read() {
        assert_eq!(code_object_version(".text\n\t.amdhsa_code_object_version 5\n"), Some(5));
        assert_eq!(code_object_version("s_nop 0"), None);
        let without = without_code_object_version("s_nop 0\n\t.amdhsa_code_object_version 5 ; a\ns_nop 1");
        assert_eq!(without, "s_nop 0\n\ns_nop 1");
    }
}
