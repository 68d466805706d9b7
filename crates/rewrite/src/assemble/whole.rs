//! Assembling by LLVM as a whole, for texts with macros, symbols or conditions.

use llvm::{Target, Toolchain};

use super::{Assembled, Pins};
use crate::error::{Error, Result};
use crate::source::Source;

pub(super) fn assemble(
    _toolchain: &Toolchain,
    _target: &Target,
    source: &Source<'_>,
    _pins: &Pins,
) -> Result<Assembled> {
    Err(Error::line(source.beyond.unwrap_or(0), "not yet"))
}
