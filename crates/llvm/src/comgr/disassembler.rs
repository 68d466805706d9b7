//! COMGR's disassembler of one target: bytes in, one instruction's text out. Used by one thread at a time.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::{Arc, PoisonError};

use super::c_api::SUCCESS;
use super::{Comgr, Emitter, ONE_AT_A_TIME, Owned};
use crate::encodings::{MAX_INSTRUCTION_BYTES, Outcome, Window};
use crate::engine::Disassemble;
use crate::target::TRIPLE;
use crate::{Error, ErrorKind, Target, probe};

/// An `amd_comgr_disassembly_info_t`.
pub(crate) struct Disassembler {
    comgr: Arc<Comgr>,
    info: Owned,
    exchange: Exchange,
}

/// What COMGR's callbacks read and write.
struct Exchange {
    bytes: [u8; MAX_INSTRUCTION_BYTES],
    text: String,
}

impl Disassembler {
    /// The features of `target` are checked and not passed on: they change no text, and Debian's COMGR 2.4 reads behind
    /// the end of their names.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`].
    pub fn new(comgr: &Arc<Comgr>, target: &Target) -> Result<Self, Error> {
        let unknown = |why: &str| Error::new(ErrorKind::UnknownTarget, format!("{comgr} {why} `{target}`"));
        comgr.isa_name(target)?;
        // A processor without a disassembler would end the process.
        let empty = Emitter::new(comgr, target)?.emit_or_fail("", None)?.object;
        if !probe::has_disassembler(probe::machine_number(&empty)) {
            return Err(unknown("has no disassembler for"));
        }
        let name = CString::new(format!("{TRIPLE}--{}", target.processor())).map_err(|_| unknown("does not know"))?;
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let info = comgr.make(comgr.api.destroy_disassembly, |handle| {
            // SAFETY: a C string, three functions of the types declared, and `make`'s pointer to a live handle.
            unsafe { (comgr.api.create_disassembly)(name.as_ptr(), read, print, print_address, handle) }
        });
        drop(alone);
        let exchange = Exchange { bytes: [0; MAX_INSTRUCTION_BYTES], text: String::new() };
        let mut disassembler = Disassembler { comgr: Arc::clone(comgr), info: info?, exchange };
        probe::family_is_decoded(&mut disassembler, comgr.as_ref(), target)?;
        Ok(disassembler)
    }
}

impl Disassemble for Disassembler {
    fn decode(&mut self, window: &Window) -> Outcome<'_> {
        self.exchange.bytes = window.bytes();
        self.exchange.text.clear();
        let mut len = 0;
        // SAFETY: a live handle, and a pointer to a live `Exchange`, which the callbacks get during this call and
        // nothing else uses. The address is always 0: nothing printed depends on it.
        let status = unsafe {
            let exchange = (&raw mut self.exchange).cast();
            (self.comgr.api.disassemble)(self.info.handle, 0, exchange, &mut len)
        };
        let text = self.exchange.text.trim();
        match u8::try_from(len / 4) {
            Ok(words @ 1..) if status == SUCCESS && len % 4 == 0 && len <= MAX_INSTRUCTION_BYTES as u64 => {
                Outcome::Decoded { words, text }
            }
            _ => Outcome::Undecodable,
        }
    }
}

extern "C" fn read(from: u64, to: *mut c_char, size: u64, exchange: *mut c_void) -> u64 {
    // SAFETY: what `decode` passed, during that call.
    let bytes = unsafe { &(*exchange.cast::<Exchange>()).bytes };
    let rest = usize::try_from(from).ok().and_then(|from| bytes.get(from..)).unwrap_or_default();
    let len = rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    // SAFETY: COMGR has room for `size` bytes at `to`.
    unsafe { rest.as_ptr().copy_to_nonoverlapping(to.cast(), len) };
    len as u64
}

extern "C" fn print(text: *const c_char, exchange: *mut c_void) {
    // SAFETY: what `decode` passed, during that call; a C string that lives through this one. AMDGPU's printer writes
    // ASCII.
    unsafe { (*exchange.cast::<Exchange>()).text.push_str(CStr::from_ptr(text).to_str().unwrap_or_default()) };
}

/// A branch's text has the number that is encoded; its destination is not needed.
extern "C" fn print_address(_: u64, _: *mut c_void) {}
