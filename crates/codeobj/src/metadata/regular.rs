//! The block form of YAML in which LLVM prints metadata, read line by line.

use super::{Detail, Node};

/// The document, or nothing when it strays from the form in any way.
pub(super) fn parse<'a>(_text: &'a str, _detail: Detail) -> Option<Node<'a>> {
    None
}
