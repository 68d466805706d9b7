//! Taking code objects apart and putting them back: `.s` out of bytes, code out of `.s`, and code back into its file
//! with every other byte kept.
//!
//! | module | owns |
//! |---|---|
//! | [`object`] | a code object's code, divided into the spans of kernels and functions |
//! | [`code`] | that code decoded, with labels |
//! | [`identity`], [`hint`] | how each instruction is written so that its bytes come back |
//! | [`disasm`], [`facts`] | the `.s` |
//! | [`source`], [`assemble`] | the `.s` read back to code |
//! | [`patch`], [`edit`] | new code in the place of the old |
//! | [`registers`] | which registers an instruction names, and how many a kernel has |
//! | [`build`] | a whole code object out of a `.s` |
//! | [`compare`] | where two code objects or texts differ |
//! | [`roundtrip`] | all of it, on many code objects |
//! | [`mod@reference`] | which file a `.s` was made of |
//!
//! Nothing here knows a GPU, reads or writes files.

pub mod assemble;
pub mod branch;
pub mod build;
pub mod code;
pub mod compare;
pub mod disasm;
pub mod edit;
pub mod error;
pub mod facts;
pub mod hint;
pub mod identity;
pub mod object;
pub mod patch;
pub mod reference;
pub mod registers;
mod resync;
pub mod roundtrip;
pub mod source;

pub use code::Code;
pub use error::{Error, ErrorKind, Message, Result};
pub use object::Object;
pub use source::Source;
