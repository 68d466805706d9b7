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
//! | [`patch`], [`kept`] | new code in the place of the old, and what of the old it kept |
//! | [`edit`] | new code for a section of another size, and where each old place went |
//! | [`change`] | such an edit applied: targets re-resolved, everything behind it moved, the result checked |
//! | [`mod@grow`] | room for it: sections, segments, symbols, descriptors behind it move |
//! | [`fields`], [`metadata`] | descriptor fields and metadata numbers over the original bytes, and what a raised allocation costs |
//! | [`update`] | what a text says of them, applied |
//! | [`splice`] | a code object back in its container |
//! | `distance` | what numbers that are distances lead to, for code that is assembled elsewhere |
//! | [`registers`] | which registers an instruction names, and how many a kernel has |
//! | [`build`] | a whole code object out of a `.s` |
//! | [`compare`] | where two code objects or texts differ |
//! | [`roundtrip`] | all of it, on many code objects |
//! | [`mod@reference`] | which file a `.s` was made of |
//!
//! Nothing here knows a GPU, reads or writes files.

mod addresses;
pub mod assemble;
pub mod branch;
pub mod build;
pub mod change;
mod check;
pub mod code;
pub mod compare;
mod debug_sections;
pub mod disasm;
mod distance;
pub mod edit;
mod entries;
pub mod error;
pub mod facts;
pub mod fields;
mod flow;
pub mod grow;
pub mod hint;
pub mod identity;
mod image;
pub mod kept;
mod layout;
mod lds;
mod linked;
pub mod metadata;
mod moves;
mod msgpack;
pub mod object;
mod part;
pub mod patch;
mod pc_relative;
mod reach;
pub mod reference;
pub mod registers;
mod resolve;
mod resync;
pub mod roundtrip;
mod salu;
mod saved;
pub mod source;
pub mod splice;
mod tables;
pub mod update;

pub use code::Code;
pub use edit::{CodeEdit, Edit, Labels, OffsetMap};
pub use error::{Error, ErrorKind, Message, Result};
pub use grow::{Grown, grow};
pub use object::Object;
pub use source::Source;
