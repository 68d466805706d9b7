//! The part of COMGR's C interface that is used, as function pointers looked up at run time. Types and numbers are those
//! of `amd_comgr.h` 2.4; the functions have stayed as they are since, the numbers of the actions have not ([`Actions`]).

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

/// An `amd_comgr_…_t`: what a function makes, and the function that takes it back.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Handle {
    handle: u64,
}

/// `amd_comgr_status_t`.
pub(crate) type Status = c_int;
/// `AMD_COMGR_STATUS_SUCCESS`.
pub(crate) const SUCCESS: Status = 0;

/// `amd_comgr_data_kind_t`: what a piece of data is.
pub(crate) type DataKind = c_int;
/// `AMD_COMGR_DATA_KIND_SOURCE`.
pub(crate) const SOURCE: DataKind = 1;
/// `AMD_COMGR_DATA_KIND_LOG`.
pub(crate) const LOG: DataKind = 5;
/// `AMD_COMGR_DATA_KIND_RELOCATABLE`.
pub(crate) const RELOCATABLE: DataKind = 7;
/// `AMD_COMGR_DATA_KIND_EXECUTABLE`.
pub(crate) const EXECUTABLE: DataKind = 8;

/// The numbers of two `amd_comgr_action_kind_t`.
#[derive(Clone, Copy)]
pub(crate) struct Actions {
    /// `AMD_COMGR_ACTION_ASSEMBLE_SOURCE_TO_RELOCATABLE`.
    pub assemble: c_int,
    /// `AMD_COMGR_ACTION_LINK_RELOCATABLE_TO_EXECUTABLE`.
    pub link: c_int,
}

impl Actions {
    /// Those of the interface's major version: version 3 took two actions out and numbered the rest anew. `None` for a
    /// version whose header was not yet there to be read.
    pub fn of(major: usize) -> Option<Self> {
        match major {
            2 => Some(Actions { assemble: 10, link: 9 }),
            3 => Some(Actions { assemble: 8, link: 7 }),
            _ => None,
        }
    }
}

/// `(address, to, size, user data)`: reads memory, returns how much.
pub(crate) type ReadMemory = extern "C" fn(u64, *mut c_char, u64, *mut c_void) -> u64;
/// `(text, user data)`.
pub(crate) type PrintInstruction = extern "C" fn(*const c_char, *mut c_void);
/// `(address, user data)`.
pub(crate) type PrintAddress = extern "C" fn(u64, *mut c_void);

/// Declares [`Api`]: one field per C function, and the lookup of all of them.
macro_rules! api {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// COMGR's functions. They stay valid for the life of the process, because the library is never unloaded.
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn look_up(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: names and signatures are those of the header named above.
                unsafe { Ok(Api { $($field: *library.get(concat!($symbol, "\0").as_bytes())?,)* }) }
            }
        }
    };
}

api! {
    get_version = "amd_comgr_get_version": fn(*mut usize, *mut usize);
    get_isa_name = "amd_comgr_get_isa_name": fn(usize, *mut *const c_char) -> Status;
    status_string = "amd_comgr_status_string": fn(Status, *mut *const c_char) -> Status;
    create_data = "amd_comgr_create_data": fn(DataKind, *mut Handle) -> Status;
    release_data = "amd_comgr_release_data": fn(Handle) -> Status;
    set_data = "amd_comgr_set_data": fn(Handle, usize, *const c_char) -> Status;
    set_data_name = "amd_comgr_set_data_name": fn(Handle, *const c_char) -> Status;
    get_data = "amd_comgr_get_data": fn(Handle, *mut usize, *mut c_char) -> Status;
    create_set = "amd_comgr_create_data_set": fn(*mut Handle) -> Status;
    destroy_set = "amd_comgr_destroy_data_set": fn(Handle) -> Status;
    set_add = "amd_comgr_data_set_add": fn(Handle, Handle) -> Status;
    set_count = "amd_comgr_action_data_count": fn(Handle, DataKind, *mut usize) -> Status;
    set_item = "amd_comgr_action_data_get_data": fn(Handle, DataKind, usize, *mut Handle) -> Status;
    create_info = "amd_comgr_create_action_info": fn(*mut Handle) -> Status;
    destroy_info = "amd_comgr_destroy_action_info": fn(Handle) -> Status;
    info_isa = "amd_comgr_action_info_set_isa_name": fn(Handle, *const c_char) -> Status;
    info_options = "amd_comgr_action_info_set_option_list": fn(Handle, *const *const c_char, usize) -> Status;
    info_logging = "amd_comgr_action_info_set_logging": fn(Handle, bool) -> Status;
    act = "amd_comgr_do_action": fn(c_int, Handle, Handle, Handle) -> Status;
    create_disassembly = "amd_comgr_create_disassembly_info":
        fn(*const c_char, ReadMemory, PrintInstruction, PrintAddress, *mut Handle) -> Status;
    destroy_disassembly = "amd_comgr_destroy_disassembly_info": fn(Handle) -> Status;
    disassemble = "amd_comgr_disassemble_instruction": fn(Handle, u64, *mut c_void, *mut u64) -> Status;
}

impl Api {
    /// Loads the library at `path`, or by name, in the loader's own search path.
    ///
    /// # Errors
    /// The loader's message: no such file, not a library, or one that is not COMGR 2 or later.
    pub fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: COMGR's initialisers have no precondition; the user or the system's package chose the file.
        let library = unsafe { libloading::Library::new(path)? };
        let api = Api::look_up(&library)?;
        // Unloading would run LLVM's static destructors under our handles.
        std::mem::forget(library);
        Ok(api)
    }
}
