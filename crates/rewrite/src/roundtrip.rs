//! disasm, assemble, patch, compare: on many code objects at once, so that LLVM sees each distinct instruction once and
//! in large batches.

use std::collections::BTreeMap;

use llvm::{Target, Toolchain};

use crate::code::Code;
use crate::disasm::{self, Counts, Options};
use crate::error::{Error, Result};
use crate::identity::Identities;
use crate::object::Object;
use crate::patch::{Fields, Plan};
use crate::source::Source;

/// What a round trip gave.
#[derive(Clone, Debug)]
pub struct RoundTrip {
    /// Whether every byte came back; else what was different.
    pub identical: std::result::Result<(), String>,
    /// How instructions were written.
    pub counts: Counts,
    /// Bytes of code.
    pub code_bytes: usize,
}

/// A code object on its way, decoded.
pub struct Decoded<'a> {
    object: &'a Object<'a>,
    codes: Vec<Code<'a>>,
}

impl<'a> Decoded<'a> {
    /// The first step.
    ///
    /// # Errors
    /// As [`Code::decode`].
    pub fn new(toolchain: &Toolchain, object: &'a Object<'a>) -> Result<Self> {
        let codes = object.sections.iter().map(|section| Code::decode(toolchain, object, section));
        Ok(Decoded { object, codes: codes.collect::<Result<_>>()? })
    }

    /// The remaining steps.
    ///
    /// # Errors
    /// Whatever stops one of them.
    pub fn finish(&self, all: &Checked<'_>, options: Options) -> Result<RoundTrip> {
        let object = self.object;
        let identities = all.by_target.get(&object.target);
        let identities = identities.ok_or_else(|| Error::input("its instructions were not checked"))?;
        let written = disasm::write(object, &self.codes, identities, None, options)?;
        let source = Source::read(&written.text);
        let plan = Plan::new(identities.toolchain(), object, &source, Fields::Keep)?;
        let patched = plan.in_place()?;
        let identical = match patched.bytes == object.bytes {
            true => Ok(()),
            false => Err(first_difference(object, &patched.bytes)),
        };
        let code_bytes = self.codes.iter().map(|code| code.bytes.len()).sum();
        Ok(RoundTrip { identical, counts: written.counts, code_bytes })
    }
}

/// What the instructions of many code objects assemble to.
pub struct Checked<'t> {
    by_target: BTreeMap<Target, Identities<'t>>,
}

impl<'t> Checked<'t> {
    /// The second step, for all at once.
    ///
    /// # Errors
    /// As [`Identities::check`].
    pub fn new<'d, 'o: 'd>(
        toolchain: &'t Toolchain,
        decoded: impl IntoIterator<Item = &'d Decoded<'o>>,
    ) -> Result<Self> {
        let mut codes: BTreeMap<&Target, Vec<&Code<'_>>> = BTreeMap::new();
        for decoded in decoded {
            codes.entry(&decoded.object.target).or_default().extend(&decoded.codes);
        }
        let check = |(target, codes): (&Target, Vec<&Code<'_>>)| {
            Ok((target.clone(), Identities::check(toolchain, target, codes)?))
        };
        Ok(Checked { by_target: codes.into_iter().map(check).collect::<Result<_>>()? })
    }
}

/// Where two files of the same size differ first.
fn first_difference(object: &Object<'_>, other: &[u8]) -> String {
    let at = object.bytes.iter().zip(other).position(|(a, b)| a != b).unwrap_or(object.bytes.len().min(other.len()));
    match object.sections.iter().find(|section| section.file_range.contains(&at)) {
        Some(section) => format!("{}+{:#x} (file offset {at:#x})", section.name, at - section.file_range.start),
        None => format!("file offset {at:#x}"),
    }
}
