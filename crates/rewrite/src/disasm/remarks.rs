//! What comments say of the control flow: the VGPR banks that are in force, and how deep in loops a label is.

use std::fmt::Write;

use llvm::State;

use crate::code::Code;
use crate::flow::{self, Banks, Step};

/// Of one section.
pub(super) struct Remarks {
    steps: Vec<Step>,
    /// Empty where nothing sets banks.
    banks: Vec<Banks>,
    depths: Vec<u32>,
    /// The step that is written next.
    at: usize,
}

impl Remarks {
    pub fn of(code: &Code<'_>) -> Remarks {
        let step = |(offset, listing, instruction): (u32, &llvm::Listing, &llvm::Instruction)| {
            let is_certain = instruction.state == State::Decoded && !instruction.untrusted;
            Step::of(offset, listing.text(instruction), code.bytes_of(offset, instruction), is_certain)
        };
        let steps: Vec<Step> = code.instructions().map(step).collect();
        let spans = &code.section.spans;
        let starts = |is_kernel: bool| -> Vec<u32> {
            spans.iter().filter(|span| span.kernel.is_some() == is_kernel).map(|span| span.range.start).collect()
        };
        let (kernels, functions) = (starts(true), starts(false));
        let has_banks = steps.iter().any(Step::sets_banks);
        let banks = if has_banks { flow::banks(&steps, &kernels, &functions) } else { Vec::new() };
        let entries: Vec<u32> = spans.iter().map(|span| span.range.start).collect();
        let depths = flow::loop_depths(&steps, &entries);
        Remarks { steps, banks, depths, at: 0 }
    }

    /// In how many loops the instruction at an offset is.
    pub fn depth(&self, offset: u32) -> u32 {
        let at = self.steps.partition_point(|step| step.offset < offset);
        let is_there = self.steps.get(at).is_some_and(|step| step.offset == offset);
        self.depths.get(at).copied().filter(|_| is_there).unwrap_or(0)
    }

    /// Appends the banks before the instruction at `offset`, which are asked for in order; in LLVM's words.
    pub fn banks(&mut self, offset: u32, printed: &str, text: &mut String) {
        if self.banks.is_empty() || !names_vgpr(printed) {
            return;
        }
        while self.steps.get(self.at).is_some_and(|step| step.offset < offset) {
            self.at += 1;
        }
        let _ = match self.banks.get(self.at).and_then(|banks| banks.slots()) {
            Some([0, 0, 0, 0]) => write!(text, "  msbs: 0"),
            Some([src0, src1, src2, dst]) => write!(text, "  msbs: dst={dst} src0={src0} src1={src1} src2={src2}"),
            None => write!(text, "  msbs: ?"),
        };
    }
}

/// Whether an operand is a VGPR.
fn names_vgpr(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let Some(at) = memchr::memchr(b'v', rest) {
        let starts = at == 0 || !rest[at - 1].is_ascii_alphanumeric() && rest[at - 1] != b'_';
        let is_number = matches!(rest.get(at + 1), Some(b'[' | b'0'..=b'9'));
        if starts && is_number {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vgprs_are_told_from_mnemonics_and_names() {
        assert!(names_vgpr("v_mov_b32_e32 v1, s0") && names_vgpr("global_load_b32 v[2:3], v[0:1], off"));
        assert!(names_vgpr("v_add_f32_e64 v0, -v1, |v2|") && names_vgpr("s_mov_b32 s0, v0"));
        assert!(!names_vgpr("v_nop") && !names_vgpr("s_mov_b32 s0, vcc_lo") && !names_vgpr("s_branch kv1"));
    }
}
