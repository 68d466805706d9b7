//! AMDGPU assembly text, without loss: lines, statements, symbols, expressions.
//!
//! Works on bytes, since a dump may hold anything; positions are byte offsets and 1-based line numbers. What an
//! instruction *does* is not known here. Syntax: LLVM 22's AMDGPU assembler.

pub mod comment;
pub mod expr;
pub mod lines;
pub mod statement;
pub mod symbol;

pub use expr::Expr;
pub use lines::{Line, Lines};
pub use statement::Statement;
