//! AMD's Code Object Manager, `libamd_comgr.so`: an LLVM, a clang and an lld behind a C interface of their own, on every
//! machine that runs HIP or OpenCL programs. It decodes instruction by instruction (`disassembler`), and assembles and
//! links by actions, which go through temporary files (`emitter`).
//!
//! What its interface cannot say is an error that says so: the wave size of code that is decoded. A target is named
//! by its target ID, and COMGR refuses those that it does not know.

mod c_api;
mod disassembler;
mod emitter;
mod log;

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use c_api::{Actions, Api, DataKind, EXECUTABLE, Handle, LOG, RELOCATABLE, SUCCESS, Status};
pub(crate) use disassembler::Disassembler;
pub(crate) use emitter::Emitter;

use crate::target::TRIPLE;
use crate::{Error, ErrorKind, Target};

/// Variables that make COMGR write its log elsewhere, more than it has to, or what it should remove.
pub(crate) const MEDDLING_VARIABLES: [&str; 4] =
    ["AMD_COMGR_REDIRECT_LOGS", "AMD_COMGR_EMIT_VERBOSE_LOGS", "AMD_COMGR_SAVE_TEMPS", "AMD_COMGR_TIME_STATISTICS"];
/// Processors that are always wave64.
const WAVE64_ONLY: [&str; 4] = ["gfx6", "gfx7", "gfx8", "gfx9"];
/// What an object is called in the linker's messages.
const OBJECT_NAME: &CStr = c"in.o";
/// COMGR parses options into variables that all threads share.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// `libamd_comgr.so`, `libamd_comgr.so.2.4.0`; not `libamd_comgr_loader.so`.
pub(crate) fn is_comgr(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libamd_comgr.so"))
}

/// A COMGR in this process. Never unloaded.
pub(crate) struct Comgr {
    api: Api,
    actions: Actions,
    path: PathBuf,
    version: (usize, usize),
}

/// What goes into an action.
struct Input<'a> {
    kind: DataKind,
    name: &'a CStr,
    bytes: &'a [u8],
}

/// What came of an action.
struct Done {
    /// `None` when the action failed.
    output: Option<Vec<u8>>,
    /// COMGR's word for how it ended.
    status: String,
    log: String,
}

impl Comgr {
    /// Loads the library at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with the loader's message, or for a version of the interface that is not known.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let not_found = |why: String| Error::new(ErrorKind::NotFound, why);
        let api = Api::load(path).map_err(|error| not_found(error.to_string()))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: two pointers to live integers.
        unsafe { (api.get_version)(&mut major, &mut minor) };
        let actions = Actions::of(major).ok_or_else(|| {
            not_found(format!("it has version {major}.{minor} of COMGR's interface, expected 2 or 3"))
        })?;
        Ok(Comgr { api, actions, path: path.to_owned(), version: (major, minor) })
    }

    /// The name of `target` in COMGR's words, `amdgcn-amd-amdhsa--gfx90a:sramecc+`.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] when COMGR does not know it; also for wave64 where the processor has both wave sizes,
    /// because a target's name does not say which and a disassembler has no options.
    fn isa_name(&self, target: &Target) -> Result<CString, Error> {
        if target.wave64() && !WAVE64_ONLY.iter().any(|family| target.processor().starts_with(family)) {
            let why = format!("{self} knows no wave64 code of `{target}`: its interface cannot say the wave size");
            return Err(Error::new(ErrorKind::UnknownTarget, why));
        }
        let unknown = || Error::new(ErrorKind::UnknownTarget, format!("{self} does not know the target `{target}`"));
        let name = CString::new(format!("{TRIPLE}--{target}")).map_err(|_| unknown())?;
        let info = self.info()?;
        // SAFETY: a live handle and a C string.
        match unsafe { (self.api.info_isa)(info.handle, name.as_ptr()) } {
            SUCCESS => Ok(name),
            _ => Err(unknown()),
        }
    }

    /// Links `object` into a code object, as `ld.lld -shared` does but for symbols that are nowhere, which are refused.
    ///
    /// # Errors
    /// [`ErrorKind::LinkFailed`] with the linker's message.
    pub fn link(&self, object: &[u8]) -> Result<Vec<u8>, Error> {
        let refused = |why: &str| Error::new(ErrorKind::LinkFailed, format!("{self} cannot link: {why}"));
        if object.is_empty() {
            return Err(refused("the object is empty"));
        }
        let mut isa = null();
        // SAFETY: a pointer to a live variable; the name is COMGR's for good.
        let isa = unsafe {
            self.expect("list its targets", (self.api.get_isa_name)(0, &mut isa))?;
            CStr::from_ptr(isa)
        };
        // Any target will do: lld takes the processor from the object.
        let input = Input { kind: RELOCATABLE, name: OBJECT_NAME, bytes: object };
        let Done { output, status, log } = self.perform(self.actions.link, isa, &input, &[], EXECUTABLE)?;
        output.ok_or_else(|| if log.trim().is_empty() { refused(&self.silence(&status)) } else { refused(log.trim()) })
    }

    /// Why an action may have failed without a word: what it does first is to make a folder.
    fn silence(&self, status: &str) -> String {
        let folder = std::env::temp_dir();
        let why = match tempfile::tempdir() {
            Ok(_) => "it does not say why".to_owned(),
            Err(error) => format!("it cannot write temporary files: {error}; set $TMPDIR to a folder with room"),
        };
        format!("{status} (temporary files go to {}): {why}", folder.display())
    }

    fn perform(
        &self,
        action: c_int,
        isa: &CStr,
        input: &Input,
        options: &[CString],
        output: DataKind,
    ) -> Result<Done, Error> {
        let api = &self.api;
        let (info, inputs, outputs) = (self.info()?, self.set()?, self.set()?);
        let data = self.make(api.release_data, |handle| {
            // SAFETY: `make` passes a pointer to a live handle.
            unsafe { (api.create_data)(input.kind, handle) }
        })?;
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: live handles; strings and bytes of the lengths given, which COMGR copies; one thread at a time.
        let status = unsafe {
            let bytes = input.bytes.as_ptr().cast();
            self.expect("take its input", (api.set_data)(data.handle, input.bytes.len(), bytes))?;
            self.expect("take its input", (api.set_data_name)(data.handle, input.name.as_ptr()))?;
            self.expect("take its input", (api.set_add)(inputs.handle, data.handle))?;
            self.expect("take its target", (api.info_isa)(info.handle, isa.as_ptr()))?;
            self.expect("take its options", (api.info_options)(info.handle, options.as_ptr(), options.len()))?;
            self.expect("take its options", (api.info_logging)(info.handle, true))?;
            let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
            (api.act)(action, info.handle, inputs.handle, outputs.handle)
        };
        let log = self.first(&outputs, LOG)?.unwrap_or_default();
        Ok(Done {
            output: if status == SUCCESS { self.first(&outputs, output)? } else { None },
            status: self.status(status),
            log: String::from_utf8_lossy(&log).into_owned(),
        })
    }

    /// The first piece of data of that kind in a set.
    fn first(&self, set: &Owned, kind: DataKind) -> Result<Option<Vec<u8>>, Error> {
        let api = &self.api;
        let mut count = 0;
        // SAFETY: a live handle and a pointer to a live integer.
        self.expect("give its output", unsafe { (api.set_count)(set.handle, kind, &mut count) })?;
        if count == 0 {
            return Ok(None);
        }
        // SAFETY: as above, and `make` passes a pointer to a live handle.
        let data = self.make(api.release_data, |handle| unsafe { (api.set_item)(set.handle, kind, 0, handle) })?;
        let mut len = 0;
        // SAFETY: without a place to write to, COMGR only tells the length; then it writes at most that much.
        let bytes = unsafe {
            self.expect("give its output", (api.get_data)(data.handle, &mut len, std::ptr::null_mut()))?;
            let mut bytes = vec![0_u8; len];
            self.expect("give its output", (api.get_data)(data.handle, &mut len, bytes.as_mut_ptr().cast()))?;
            bytes
        };
        Ok(Some(bytes))
    }

    fn info(&self) -> Result<Owned, Error> {
        // SAFETY: `make` passes a pointer to a live handle.
        self.make(self.api.destroy_info, |handle| unsafe { (self.api.create_info)(handle) })
    }

    fn set(&self) -> Result<Owned, Error> {
        // SAFETY: `make` passes a pointer to a live handle.
        self.make(self.api.destroy_set, |handle| unsafe { (self.api.create_set)(handle) })
    }

    fn make(&self, release: Release, create: impl FnOnce(*mut Handle) -> Status) -> Result<Owned, Error> {
        let mut handle = Handle::default();
        self.expect("make what it needs", create(&mut handle))?;
        Ok(Owned { handle, release })
    }

    fn expect(&self, what: &str, status: Status) -> Result<(), Error> {
        match status {
            SUCCESS => Ok(()),
            status => {
                Err(Error::new(ErrorKind::WorkerFailed, format!("{self} cannot {what}: {}", self.status(status))))
            }
        }
    }

    fn status(&self, status: Status) -> String {
        let mut text = null();
        // SAFETY: a pointer to a live variable; a string that is there is COMGR's for good.
        unsafe {
            match (self.api.status_string)(status, &mut text) {
                SUCCESS if !text.is_null() => CStr::from_ptr(text).to_string_lossy().into_owned(),
                _ => format!("status {status}"),
            }
        }
    }
}

/// `COMGR 2.4 (/usr/lib/x86_64-linux-gnu/libamd_comgr.so.2.4.0)`.
impl fmt::Display for Comgr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "COMGR {}.{} ({})", self.version.0, self.version.1, self.path.display())
    }
}

type Release = unsafe extern "C" fn(Handle) -> Status;

/// A handle that is given back.
struct Owned {
    handle: Handle,
    release: Release,
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by the function that `release` belongs to, given back once.
        unsafe { (self.release)(self.handle) };
    }
}
