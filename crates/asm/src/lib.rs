//! asm
