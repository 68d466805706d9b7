//! One target machine of LLVM: assembly text in, an object out, through a module that has nothing but module-level
//! inline assembly. Used by one thread at a time; every text has a context of its own.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::{NonNull, null_mut};
use std::slice;
use std::sync::Arc;

use crate::assembler::{Assembly, Diagnostic, Severity};
use crate::c_api::{
    Api, CODE_MODEL_DEFAULT, FLAG_BEHAVIOR_ERROR, OBJECT_FILE, OPT_NONE, RELOC_DEFAULT, Ref, SEVERITY_ERROR,
    SEVERITY_WARNING,
};
use crate::library::{Library, TargetStrings};
use crate::{Encoded, Error, ErrorKind, Target, directives, extras, instructions};

/// The module flag that chooses the code object version, as a hundredfold (AMDGPU backend guide, "Module Flags").
const CODE_OBJECT_VERSION: &str = "amdhsa_code_object_version";

/// An `LLVMTargetMachineRef`.
pub(crate) struct Emitter {
    library: Arc<Library>,
    machine: NonNull<c_void>,
    strings: TargetStrings,
    target: Target,
}

// SAFETY: a target machine has no tie to the thread that made it; `&mut self` keeps it to one thread at a time.
unsafe impl Send for Emitter {}

/// What LLVM made of a text. There is an object even when a diagnostic is an error: the wrong lines are missing in it.
#[derive(Default)]
pub(crate) struct Emission {
    pub object: Vec<u8>,
    pub diagnostics: Vec<Diagnostic>,
}

impl Emitter {
    /// Any processor's name is safe here: one that LLVM does not know gives objects of machine number 0 (the `probe`).
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] when LLVM has no target machine for the triple.
    pub fn new(library: &Arc<Library>, target: &Target) -> Result<Self, Error> {
        let api = &library.api;
        let strings = TargetStrings::new(target)?;
        let (mut llvm_target, mut message): (Ref, *mut c_char) = (null_mut(), null_mut());
        // SAFETY: C strings that live through the calls, and pointers to live variables; the message is LLVM's to free
        // and set when the first call fails.
        let machine = unsafe {
            if (api.target_from_triple)(strings.triple.as_ptr(), &mut llvm_target, &mut message) == 0 {
                (api.machine_create)(
                    llvm_target,
                    strings.triple.as_ptr(),
                    strings.processor.as_ptr(),
                    strings.features.as_ptr(),
                    OPT_NONE, // there is nothing to optimise, and the passes take 0.5 ms to set up
                    RELOC_DEFAULT,
                    CODE_MODEL_DEFAULT,
                )
            } else {
                (api.message_dispose)(message);
                null_mut()
            }
        };
        let machine = NonNull::new(machine).ok_or_else(|| {
            Error::new(ErrorKind::UnknownTarget, format!("{library} has no assembler for {}", target.processor()))
        })?;
        Ok(Emitter { library: Arc::clone(library), machine, strings, target: target.clone() })
    }

    /// Assembles `source`; `code_object_version` is LLVM's default when `None`.
    pub fn emit(&mut self, source: &str, code_object_version: Option<u32>) -> Emission {
        let api = &self.library.api;
        let mut listener = Listener { api, diagnostics: Vec::new() };
        let code_object_version = code_object_version.map(|version| (CODE_OBJECT_VERSION, u64::from(version) * 100));
        let (mut buffer, mut message): (Ref, *mut c_char) = (null_mut(), null_mut());
        // SAFETY: each handle is made here, used by this thread only, and disposed of once; strings and listener
        // outlive the context; the buffer is read within its size. The context is our own: LLVM's global one must not
        // be shared by threads.
        unsafe {
            let context = (api.context_create)();
            (api.context_set_handler)(context, listen, (&raw mut listener).cast());
            let module = (api.module_create)(c"coax".as_ptr(), context);
            (api.module_set_triple)(module, self.strings.triple.as_ptr());
            (api.module_set_assembly)(module, source.as_ptr().cast(), source.len());
            if let Some((name, value)) = code_object_version {
                let value = (api.const_int)((api.int32_type)(context), value, 0);
                let value = (api.value_as_metadata)(value);
                (api.module_add_flag)(module, FLAG_BEHAVIOR_ERROR, name.as_ptr().cast(), name.len(), value);
            }
            let failed = (api.machine_emit)(self.machine.as_ptr(), module, OBJECT_FILE, &mut message, &mut buffer) != 0;
            let mut object = Vec::new();
            if failed {
                let text = CStr::from_ptr(message).to_string_lossy();
                listener.diagnostics.push(Diagnostic::parse(Severity::Error, &text));
                (api.message_dispose)(message);
            } else {
                let start = (api.buffer_start)(buffer).cast::<u8>();
                object.extend_from_slice(slice::from_raw_parts(start, (api.buffer_size)(buffer)));
                (api.buffer_dispose)(buffer);
            }
            (api.module_dispose)(module);
            (api.context_dispose)(context);
            Emission { object, diagnostics: listener.diagnostics }
        }
    }

    /// As [`crate::Encoder::encode`].
    pub fn encode(&mut self, texts: &[&str]) -> Vec<Encoded> {
        instructions::encode(texts, &mut |source| self.emit(source, None))
    }

    /// As [`crate::Assembler::assemble`].
    pub fn assemble(&mut self, source: &str) -> Assembly {
        let version = directives::code_object_version(source);
        let Emission { object, mut diagnostics } =
            self.emit(&extras::avoid(&directives::understood(&self.target, source)), version);
        for diagnostic in &mut diagnostics {
            diagnostic.line = diagnostic.line.saturating_sub(extras::LINES_BEFORE);
        }
        if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Assembly { object: None, diagnostics };
        }
        let object = extras::strip(&object, source);
        if object.is_none() {
            diagnostics.push(Diagnostic::parse(Severity::Error, "LLVM's object is not understood"));
        }
        Assembly { object, diagnostics }
    }
}

impl Drop for Emitter {
    fn drop(&mut self) {
        // SAFETY: made by `machine_create`, disposed of once.
        unsafe { (self.library.api.machine_dispose)(self.machine.as_ptr()) };
    }
}

/// Takes in the diagnostics of one context.
struct Listener<'a> {
    api: &'a Api,
    diagnostics: Vec<Diagnostic>,
}

extern "C" fn listen(diagnostic: Ref, listener: *mut c_void) {
    // SAFETY: LLVM hands back the pointer that `emit` gave it, during that call and on its thread; the description is
    // a C string that we free.
    unsafe {
        let listener = &mut *listener.cast::<Listener>();
        let severity = match (listener.api.diagnostic_severity)(diagnostic) {
            SEVERITY_ERROR => Severity::Error,
            SEVERITY_WARNING => Severity::Warning,
            _ => Severity::Note,
        };
        let description = (listener.api.diagnostic_description)(diagnostic);
        let text = CStr::from_ptr(description).to_string_lossy();
        listener.diagnostics.push(Diagnostic::parse(severity, &text));
        (listener.api.message_dispose)(description);
    }
}
