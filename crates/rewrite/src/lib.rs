//! Code objects taken apart, changed and put back, with everything that the change moves.
//!
//! | module | owns |
//! |---|---|
//! | [`edit`] | new code for a section, and where each old place went |
//! | [`change`] | an edit of code applied: targets re-resolved, everything behind it moved, the result checked |
//! | [`fields`] | descriptor fields, raised allocations and what they cost |
//! | [`metadata`] | numbers of the metadata note |
//! | [`splice`] | writing a code object back into its container |
//! | [`mod@grow`] | room for it: sections, segments, symbols, descriptors behind it move |

mod addresses;
mod branch;
pub mod change;
mod check;
mod code;
mod debug_sections;
pub mod edit;
mod entries;
mod error;
pub mod fields;
pub mod grow;
mod image;
mod layout;
pub mod metadata;
mod moves;
mod msgpack;
mod pc_relative;
mod resolve;
mod salu;
pub mod splice;

pub use edit::{CodeEdit, Edit, Labels, OffsetMap};
pub use error::{Error, ErrorKind};
pub use grow::{Grown, grow};
