//! One disassembler context of LLVM: bytes in, one instruction's text out. Used by one thread at a time.

use std::ffi::{CStr, c_char};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::library::{Library, TargetStrings};
use crate::{Error, ErrorKind, Target, probe};

/// LLVM cuts what is longer. The longest text of an AMDGPU instruction has some 200 bytes.
const TEXT_BYTES: usize = 1024;

/// An `LLVMDisasmContextRef`, with LLVM's default printing options (those of `llvm-objdump -d`) and no symbol lookup,
/// so that a branch prints its operand as the raw number that is encoded: the text is a function of the bytes alone.
pub(crate) struct Disassembler {
    library: Arc<Library>,
    context: NonNull<std::ffi::c_void>,
    text: Box<[c_char; TEXT_BYTES]>,
}

// SAFETY: a context has no tie to the thread that made it; `&mut self` keeps it to one thread at a time.
unsafe impl Send for Disassembler {}

impl Disassembler {
    /// A context for `target`, which `library` has been found to know.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`].
    pub fn new(library: &Arc<Library>, target: &Target) -> Result<Self, Error> {
        probe::processor_is_known(library, target)?;
        let strings = TargetStrings::new(target)?;
        // SAFETY: three C strings that live through the call; no callbacks and no data for them. The probe has ruled
        // out the processors for which this call ends the process.
        let context = unsafe {
            (library.api.disasm_create)(
                strings.triple.as_ptr(),
                strings.processor.as_ptr(),
                strings.features.as_ptr(),
                null_mut(),
                0,
                null_mut(),
                null_mut(),
            )
        };
        let context = NonNull::new(context).ok_or_else(|| {
            Error::new(ErrorKind::UnknownTarget, format!("{library} has no disassembler for {}", target.processor()))
        })?;
        let mut disassembler = Disassembler { library: Arc::clone(library), context, text: Box::new([0; TEXT_BYTES]) };
        probe::family_is_decoded(&mut disassembler, library.as_ref(), target)?;
        Ok(disassembler)
    }

    /// Decodes the instruction at the start of `window`.
    pub fn decode(&mut self, window: &Window) -> Outcome<'_> {
        let mut bytes = window.bytes();
        // SAFETY: the pointers are to live arrays of the lengths given; LLVM reads the first and ends the second with a
        // zero. The address is always 0: nothing printed depends on it.
        let len = unsafe {
            (self.library.api.disasm_instruction)(
                self.context.as_ptr(),
                bytes.as_mut_ptr(),
                MAX_INSTRUCTION_BYTES as u64,
                0,
                self.text.as_mut_ptr(),
                TEXT_BYTES,
            )
        };
        if len == 0 || len % 4 != 0 || len > MAX_INSTRUCTION_BYTES {
            return Outcome::Undecodable;
        }
        // SAFETY: LLVM ended the text with a zero inside the array.
        let text = unsafe { CStr::from_ptr(self.text.as_ptr()) };
        // AMDGPU's printer writes ASCII.
        Outcome::Decoded { words: (len / 4) as u8, text: text.to_str().unwrap_or_default().trim() }
    }
}

impl Drop for Disassembler {
    fn drop(&mut self) {
        // SAFETY: made by `disasm_create`, disposed of once.
        unsafe { (self.library.api.disasm_dispose)(self.context.as_ptr()) };
    }
}
