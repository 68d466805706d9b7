//! COMGR's assembler of one target: assembly text in, an object out, the one that `llvm-mc` of its LLVM makes. Used by one
//! thread at a time.
//!
//! An action goes through temporary files, and their failing looks like a text's. So what fails without a place in the
//! text is not believed before a known instruction has been assembled.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use super::c_api::{RELOCATABLE, SOURCE};
use super::{Comgr, Done, Input, log};
use crate::assembler::{Assembly, Diagnostic, Severity};
use crate::emitter::Emission;
use crate::engine::Emit;
use crate::{Encoded, Error, ErrorKind, Target, directives, instructions};

/// What the text is called; clang runs no preprocessor over a `.s`.
const SOURCE_NAME: &CStr = c"coax.s";
/// An instruction of every processor.
const KNOWN_GOOD: &str = "s_nop 0\n";
/// `EI_ABIVERSION` of an ELF header: the code object version less 2 (AMDGPU backend guide, "ELF Header").
const ABI_VERSION_AT: usize = 8;

/// See the module.
pub(crate) struct Emitter {
    comgr: Arc<Comgr>,
    target: Target,
    isa: CString,
}

impl Emitter {
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] when COMGR does not know it.
    pub fn new(comgr: &Arc<Comgr>, target: &Target) -> Result<Self, Error> {
        Ok(Emitter { comgr: Arc::clone(comgr), target: target.clone(), isa: comgr.isa_name(target)? })
    }

    /// Assembles `source`; `code_object_version` is clang's default when `None`.
    ///
    /// # Errors
    /// [`ErrorKind::WorkerFailed`] when COMGR assembles nothing at all: it has no room for its temporary files.
    pub(super) fn emit_or_fail(&self, source: &str, code_object_version: Option<u32>) -> Result<Emission, Error> {
        let (emission, status) = self.run(source, code_object_version)?;
        let placeless = emission.diagnostics.iter().any(|d| d.severity == Severity::Error && d.line == 0);
        if placeless {
            let (reference, _) = self.run(KNOWN_GOOD, None)?;
            if reference.object.is_empty() {
                let first = reference.diagnostics.first().map_or(String::new(), |first| first.message.clone());
                let why = format!("{} cannot assemble even `{}`: {first}", self.comgr, KNOWN_GOOD.trim());
                let why =
                    if first.contains("TMPDIR") { why } else { format!("{why}; {}", self.comgr.silence(&status)) };
                return Err(Error::new(ErrorKind::WorkerFailed, why));
            }
        }
        Ok(emission)
    }

    /// The object is empty, and a diagnostic is an error, when COMGR fails.
    fn run(&self, source: &str, code_object_version: Option<u32>) -> Result<(Emission, String), Error> {
        let version = code_object_version.map(|version| format!("-mcode-object-version={version}"));
        let options: Vec<CString> = version.into_iter().filter_map(|option| CString::new(option).ok()).collect();
        let source = if source.is_empty() { "\n" } else { source }; // COMGR takes no empty text
        let input = Input { kind: SOURCE, name: SOURCE_NAME, bytes: source.as_bytes() };
        let action = self.comgr.actions.assemble;
        let Done { output, status, log } = self.comgr.perform(action, &self.isa, &input, &options, RELOCATABLE)?;
        let mut diagnostics = log::diagnostics(&log);
        let told = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        if output.is_none() && !told {
            diagnostics.push(Diagnostic::parse(Severity::Error, &self.comgr.silence(&status)));
        }
        Ok((Emission { object: output.unwrap_or_default(), diagnostics }, status))
    }
}

impl Emit for Emitter {
    fn encode(&mut self, texts: &[&str]) -> Result<Vec<Encoded>, Error> {
        let mut failure = None;
        let encoded = instructions::encode(texts, &mut |source| {
            if failure.is_some() {
                return Emission::default(); // nothing more will come
            }
            self.emit_or_fail(source, None).unwrap_or_else(|error| {
                failure = Some(error);
                Emission::default()
            })
        });
        failure.map_or(Ok(encoded), Err)
    }

    fn assemble(&mut self, source: &str) -> Result<Assembly, Error> {
        let version = directives::code_object_version(source);
        let mut source = directives::understood(&self.target, source);
        if version.is_some() {
            // The option says the same, and LLVM 15 does not know the directive.
            source = directives::without_code_object_version(&source).into();
        }
        let Emission { object, mut diagnostics } = self.emit_or_fail(&source, version)?;
        if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Ok(Assembly { object: None, diagnostics });
        }
        let written = object.get(ABI_VERSION_AT).map(|abi| u32::from(*abi) + 2);
        if version.is_some() && version != written {
            let (asked, written) = (version.unwrap_or_default(), written.unwrap_or_default());
            let message = format!("{} writes code object version {written}, not {asked}", self.comgr);
            diagnostics.push(Diagnostic { severity: Severity::Error, line: 0, column: 0, message });
            return Ok(Assembly { object: None, diagnostics });
        }
        Ok(Assembly { object: Some(object), diagnostics })
    }
}
