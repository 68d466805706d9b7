//! One loaded LLVM: its functions, version and path.

use std::collections::HashMap;
use std::ffi::{CString, c_uint};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::c_api::Api;
use crate::target::TRIPLE;
use crate::{Error, ErrorKind};

/// An LLVM in this process. Never unloaded.
pub(crate) struct Library {
    pub api: Api,
    path: PathBuf,
    /// Major, minor, patch; `None` before LLVM 16, which has no function that tells.
    version: Option<(c_uint, c_uint, c_uint)>,
}

impl Library {
    /// Loads the library at `path`, or returns the one that is loaded already: the backend is registered once.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] with the loader's message.
    pub fn load(path: &Path) -> Result<Arc<Self>, Error> {
        static LOADED: Mutex<Option<HashMap<PathBuf, Arc<Library>>>> = Mutex::new(None);
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.get_or_insert_default();
        if let Some(library) = loaded.get(path) {
            return Ok(Arc::clone(library));
        }
        let api = Api::load(path).map_err(|error| Error::new(ErrorKind::NotFound, error.to_string()))?;
        let version = api.get_version.map(|get_version| {
            let (mut major, mut minor, mut patch) = (0, 0, 0);
            // SAFETY: three pointers to live integers, as `llvm-c/Core.h` declares.
            unsafe { get_version(&mut major, &mut minor, &mut patch) };
            (major, minor, patch)
        });
        let library = Arc::new(Library { api, path: path.to_owned(), version });
        loaded.insert(path.to_owned(), Arc::clone(&library));
        Ok(library)
    }
}

/// `LLVM 22.1.8 (/usr/lib/x86_64-linux-gnu/libLLVM.so.22.1)`.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.version {
            Some((major, minor, patch)) => write!(f, "LLVM {major}.{minor}.{patch} ({})", self.path.display()),
            None => write!(f, "LLVM before 16 ({})", self.path.display()),
        }
    }
}

/// The triple, processor and features of a target as C strings.
pub(crate) struct TargetStrings {
    pub triple: CString,
    pub processor: CString,
    pub features: CString,
}

impl TargetStrings {
    /// # Errors
    /// [`ErrorKind::UnknownTarget`] for a name with a zero byte in it.
    pub fn new(target: &crate::Target) -> Result<Self, Error> {
        let string = |text: &str| {
            CString::new(text).map_err(|_| Error::new(ErrorKind::UnknownTarget, "a target's name contains a zero byte"))
        };
        Ok(TargetStrings {
            triple: string(TRIPLE)?,
            processor: string(target.processor())?,
            features: string(&target.feature_string())?,
        })
    }
}
