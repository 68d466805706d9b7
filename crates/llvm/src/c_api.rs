//! The part of LLVM's C API that is used, as function pointers looked up at run time. Types are those of
//! `llvm-c/{Core,Target,TargetMachine,Disassembler}.h`, which promise to stay as they are ("we strive to keep the C API
//! stable"); every handle is an opaque pointer.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::path::Path;

/// An `LLVM…Ref`.
pub(crate) type Ref = *mut c_void;
/// `LLVMDiagnosticHandler`: a diagnostic, and what was given along with the handler.
pub(crate) type DiagnosticHandler = extern "C" fn(Ref, *mut c_void);

/// `LLVMCodeGenLevelNone`.
pub(crate) const OPT_NONE: c_int = 0;
/// `LLVMRelocDefault`.
pub(crate) const RELOC_DEFAULT: c_int = 0;
/// `LLVMCodeModelDefault`.
pub(crate) const CODE_MODEL_DEFAULT: c_int = 0;
/// `LLVMObjectFile`.
pub(crate) const OBJECT_FILE: c_int = 1;
/// `LLVMModuleFlagBehaviorError`.
pub(crate) const FLAG_BEHAVIOR_ERROR: c_int = 0;
/// `LLVMDSError`.
pub(crate) const SEVERITY_ERROR: c_int = 0;
/// `LLVMDSWarning`.
pub(crate) const SEVERITY_WARNING: c_int = 1;

/// Declares [`Api`]: one field per C function, and the lookup of all of them.
macro_rules! api {
    ($($field:ident = $symbol:literal: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// LLVM's functions. They stay valid for the life of the process, because the library is never unloaded.
        #[derive(Clone, Copy)]
        pub(crate) struct Api {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// `LLVMGetVersion`, which LLVM has since version 16.
            pub get_version: Option<unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint)>,
        }

        impl Api {
            fn look_up(library: &libloading::Library) -> Result<Self, libloading::Error> {
                // SAFETY: names and signatures are those of the headers named above.
                unsafe {
                    Ok(Api {
                        $($field: *library.get(concat!($symbol, "\0").as_bytes())?,)*
                        get_version: library.get(b"LLVMGetVersion\0").ok().map(|symbol| *symbol),
                    })
                }
            }
        }
    };
}

api! {
    context_create = "LLVMContextCreate": fn() -> Ref;
    context_dispose = "LLVMContextDispose": fn(Ref);
    context_set_handler = "LLVMContextSetDiagnosticHandler": fn(Ref, DiagnosticHandler, *mut c_void);
    diagnostic_description = "LLVMGetDiagInfoDescription": fn(Ref) -> *mut c_char;
    diagnostic_severity = "LLVMGetDiagInfoSeverity": fn(Ref) -> c_int;
    int32_type = "LLVMInt32TypeInContext": fn(Ref) -> Ref;
    const_int = "LLVMConstInt": fn(Ref, u64, c_int) -> Ref;
    value_as_metadata = "LLVMValueAsMetadata": fn(Ref) -> Ref;
    module_create = "LLVMModuleCreateWithNameInContext": fn(*const c_char, Ref) -> Ref;
    module_dispose = "LLVMDisposeModule": fn(Ref);
    module_set_triple = "LLVMSetTarget": fn(Ref, *const c_char);
    module_add_flag = "LLVMAddModuleFlag": fn(Ref, c_int, *const c_char, usize, Ref);
    module_set_assembly = "LLVMSetModuleInlineAsm2": fn(Ref, *const c_char, usize);
    target_from_triple = "LLVMGetTargetFromTriple": fn(*const c_char, *mut Ref, *mut *mut c_char) -> c_int;
    machine_create = "LLVMCreateTargetMachine":
        fn(Ref, *const c_char, *const c_char, *const c_char, c_int, c_int, c_int) -> Ref;
    machine_dispose = "LLVMDisposeTargetMachine": fn(Ref);
    machine_emit = "LLVMTargetMachineEmitToMemoryBuffer": fn(Ref, Ref, c_int, *mut *mut c_char, *mut Ref) -> c_int;
    buffer_start = "LLVMGetBufferStart": fn(Ref) -> *const c_char;
    buffer_size = "LLVMGetBufferSize": fn(Ref) -> usize;
    buffer_dispose = "LLVMDisposeMemoryBuffer": fn(Ref);
    message_dispose = "LLVMDisposeMessage": fn(*mut c_char);
    disasm_create = "LLVMCreateDisasmCPUFeatures":
        fn(*const c_char, *const c_char, *const c_char, Ref, c_int, Ref, Ref) -> Ref;
    disasm_instruction = "LLVMDisasmInstruction": fn(Ref, *mut u8, u64, u64, *mut c_char, usize) -> usize;
    disasm_dispose = "LLVMDisasmDispose": fn(Ref);
}

/// Registers the AMDGPU backend; in this order, once per process, before other threads use LLVM.
const INITIALIZERS: [&[u8]; 6] = [
    b"LLVMInitializeAMDGPUTargetInfo\0",
    b"LLVMInitializeAMDGPUTarget\0",
    b"LLVMInitializeAMDGPUTargetMC\0",
    b"LLVMInitializeAMDGPUAsmPrinter\0",
    b"LLVMInitializeAMDGPUAsmParser\0",
    b"LLVMInitializeAMDGPUDisassembler\0",
];

impl Api {
    /// Loads the library at `path` (or by name, in the loader's own search path) and registers the AMDGPU backend.
    ///
    /// # Errors
    /// The loader's message: no such file, not a library, or an LLVM that was built without AMDGPU.
    pub fn load(path: &Path) -> Result<Self, libloading::Error> {
        // SAFETY: the initialisers of libLLVM have no precondition; the user or the system's package chose the file.
        let library = unsafe { libloading::Library::new(path)? };
        let api = Api::look_up(&library)?;
        for name in INITIALIZERS {
            // SAFETY: `void LLVMInitialize…(void)` of `llvm-c/Target.h`; the caller holds the lock of `Library::load`.
            unsafe { library.get::<unsafe extern "C" fn()>(name)?() };
        }
        // Unloading would run LLVM's static destructors under our contexts.
        std::mem::forget(library);
        Ok(api)
    }
}
