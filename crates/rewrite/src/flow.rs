//! Control flow over a section's instructions: which VGPR banks are in force where, and how deep loops nest.
//!
//! gfx1250 has 1,024 VGPRs and encodes the low 8 bits of their numbers. `s_set_vgpr_msb` sets the two bits above for
//! each kind of operand: src0 in bits 1:0 of its constant, src1 in 3:2, src2 in 5:4, dst in 7:6 (LLVM's
//! `AMDGPULowerVGPREncoding`); bits 15:8 are the setting before, which the hardware does not read. Kernels start with 0.

use crate::branch;
use crate::salu;

/// One instruction, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub offset: u32,
    /// Where it branches to.
    target: Option<u32>,
    /// Whether the next instruction can follow.
    falls: bool,
    effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    Sets(u8),
    /// Nobody knows what is in force behind it.
    Forgets,
    /// It goes where its registers say, and may land anywhere.
    Jumps,
}

/// What is in force before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Banks {
    /// No path from an entry was found.
    Unreached,
    /// On all paths this.
    Known(u8),
    /// Paths join with different settings, or one comes from where nothing is known.
    Any,
}

impl Banks {
    fn join(self, other: Banks) -> Banks {
        match (self, other) {
            (Banks::Unreached, other) => other,
            (own, Banks::Unreached) => own,
            (own, other) if own == other => own,
            _ => Banks::Any,
        }
    }

    /// The banks of src0, src1, src2 and dst.
    pub fn slots(self) -> Option<[u8; 4]> {
        match self {
            Banks::Known(bits) => Some([0, 2, 4, 6].map(|shift| bits >> shift & 3)),
            _ => None,
        }
    }
}

impl Step {
    /// Of an instruction with this text and these bytes; `is_certain`: it was decoded, and starts where it seems to.
    pub fn of(offset: u32, text: &str, bytes: &[u8], is_certain: bool) -> Step {
        let plain = Step { offset, target: None, falls: true, effect: Effect::None };
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        if !is_certain {
            // Wherever the instructions in it start: the formats that change the mode or branch (SOPK, SOP1, SOPC,
            // SOPP) begin with these four bits.
            let is_any = bytes.chunks(4).any(|chunk| word(chunk) >> 28 == 0xb);
            return Step { effect: if is_any { Effect::Forgets } else { Effect::None }, ..plain };
        }
        let word = word(bytes);
        if !text.starts_with("s_") {
            return plain;
        }
        let mnemonic = text.split([' ', '\t']).next().unwrap_or_default();
        if mnemonic == "s_set_vgpr_msb" {
            return Step { effect: Effect::Sets(word as u8), ..plain };
        }
        if mnemonic.starts_with("s_setreg") {
            // Register 1 is MODE, which has these bits too.
            let effect = if word & 0x3f == 1 { Effect::Forgets } else { Effect::None };
            return Step { effect, ..plain };
        }
        let is_call = ["s_swappc", "s_swap_pc", "s_call"].iter().any(|call| mnemonic.starts_with(call));
        let target = branch::split(text).and_then(|_| u32::try_from(branch::target(offset, word)).ok());
        if is_call {
            return Step { target, effect: Effect::Forgets, ..plain };
        }
        let returns = text.ends_with(" s[30:31]"); // By the calling convention that is behind a call.
        let jumps = mnemonic.starts_with("s_setpc") || mnemonic.starts_with("s_set_pc");
        let is_computed = (jumps && !returns)
            || ["s_add_pc", "s_rfe", "s_cbranch_g_fork", "s_cbranch_join", "s_cbranch_i_fork"]
                .iter()
                .any(|other| mnemonic.starts_with(other));
        let falls = !salu::ends_path(mnemonic) && mnemonic != "s_branch" && !mnemonic.starts_with("s_add_pc");
        Step { target, falls, effect: if is_computed { Effect::Jumps } else { Effect::None }, ..plain }
    }

    /// Whether it sets banks.
    pub fn sets_banks(&self) -> bool {
        matches!(self.effect, Effect::Sets(_))
    }
}

/// Index of the step at an offset.
fn index(steps: &[Step], offset: u32) -> Option<usize> {
    steps.binary_search_by_key(&offset, |step| step.offset).ok()
}

/// What is in force before each of `steps`, which are in address order. Kernels start at `kernels`, what else may be
/// called at `functions`.
pub(crate) fn banks(steps: &[Step], kernels: &[u32], functions: &[u32]) -> Vec<Banks> {
    if steps.iter().any(|step| step.effect == Effect::Jumps) {
        return vec![Banks::Any; steps.len()];
    }
    let mut found = vec![Banks::Unreached; steps.len()];
    let mut work = Vec::new();
    let reach = |found: &mut Vec<Banks>, work: &mut Vec<usize>, at: usize, state: Banks| {
        let Some(own) = found.get_mut(at) else { return };
        let joined = own.join(state);
        if joined != *own {
            *own = joined;
            work.push(at);
        }
    };
    for (entries, state) in [(kernels, Banks::Known(0)), (functions, Banks::Any)] {
        for at in entries.iter().filter_map(|entry| index(steps, *entry)) {
            reach(&mut found, &mut work, at, state);
        }
    }
    // A state changes twice at most.
    while let Some(at) = work.pop() {
        let (step, before) = (steps[at], found[at]);
        let behind = match step.effect {
            Effect::Sets(bits) => Banks::Known(bits),
            Effect::Forgets | Effect::Jumps => Banks::Any,
            Effect::None => before,
        };
        if step.falls {
            reach(&mut found, &mut work, at + 1, behind);
        }
        if let Some(target) = step.target.and_then(|target| index(steps, target)) {
            reach(&mut found, &mut work, target, before);
        }
    }
    found
}

/// In how many natural loops each of `steps` lies; empty where the code is too large or tangled to say.
pub(crate) fn loop_depths(steps: &[Step], entries: &[u32]) -> Vec<u32> {
    Blocks::new(steps, entries).map_or_else(Vec::new, |blocks| blocks.depths(steps.len()))
}

/// The most pairs of blocks and loops that are looked at.
const MOST_WORK: usize = 1 << 24;

/// Basic blocks; 0 is one that leads to all entries.
struct Blocks {
    /// First step of each; the first is no step.
    starts: Vec<usize>,
    before: Vec<Vec<usize>>,
    /// Reachable blocks in reverse postorder.
    order: Vec<usize>,
}

impl Blocks {
    fn new(steps: &[Step], entries: &[u32]) -> Option<Blocks> {
        let entries: Vec<usize> = entries.iter().filter_map(|entry| index(steps, *entry)).collect();
        let mut starts: Vec<usize> = entries.clone();
        for (at, step) in steps.iter().enumerate() {
            if step.target.is_some() || !step.falls {
                starts.push(at + 1);
                starts.extend(step.target.and_then(|target| index(steps, target)));
            }
        }
        starts.retain(|start| *start < steps.len());
        starts.sort_unstable();
        starts.dedup();
        let block = |step: usize| starts.partition_point(|start| *start <= step); // 1 and up
        let mut after = vec![Vec::new(); starts.len() + 1];
        after[0] = entries.into_iter().map(block).collect();
        for (number, start) in starts.iter().enumerate() {
            let end = starts.get(number + 1).copied().unwrap_or(steps.len());
            let last = steps[*start..end].last()?;
            if last.falls && end < steps.len() {
                after[number + 1].push(block(end));
            }
            after[number + 1].extend(last.target.and_then(|target| index(steps, target)).map(block));
        }
        let mut before = vec![Vec::new(); after.len()];
        for (from, targets) in after.iter().enumerate() {
            targets.iter().for_each(|to| before[*to].push(from));
        }
        let mut seen = vec![false; after.len()];
        let (mut stack, mut order) = (vec![(0, 0)], Vec::new());
        seen[0] = true;
        while let Some((block, next)) = stack.pop() {
            match after[block].get(next) {
                Some(to) => {
                    stack.push((block, next + 1));
                    if !std::mem::replace(&mut seen[*to], true) {
                        stack.push((*to, 0));
                    }
                }
                None => order.push(block),
            }
        }
        order.reverse();
        Some(Blocks { starts, before, order })
    }

    /// Immediate dominators by the iteration of Cooper, Harvey and Kennedy; none where it does not settle soon.
    fn dominators(&self, rank: &[usize]) -> Option<Vec<usize>> {
        let mut dominator = vec![usize::MAX; self.before.len()];
        dominator[0] = 0;
        for _ in 0..64 {
            let mut changed = false;
            for block in self.order.iter().skip(1) {
                let mut new = usize::MAX;
                for from in self.before[*block].iter().filter(|from| rank[**from] != usize::MAX) {
                    if dominator[*from] == usize::MAX {
                        continue;
                    }
                    new = if new == usize::MAX { *from } else { meet(&dominator, rank, *from, new) };
                }
                changed |= std::mem::replace(&mut dominator[*block], new) != new;
            }
            if !changed {
                return Some(dominator);
            }
        }
        None
    }

    fn depths(&self, steps: usize) -> Vec<u32> {
        let mut rank = vec![usize::MAX; self.before.len()];
        self.order.iter().enumerate().for_each(|(at, block)| rank[*block] = at);
        let Some(dominator) = self.dominators(&rank) else { return Vec::new() };
        let dominates = |header: usize, mut block: usize| {
            while rank[block] > rank[header] {
                block = dominator[block];
            }
            block == header
        };
        let mut depth = vec![0_u32; self.before.len()];
        let mut work = 0;
        for header in &self.order {
            let backs = self.before[*header].iter().copied();
            let mut inside: Vec<usize> =
                backs.filter(|from| rank[*from] != usize::MAX && dominates(*header, *from)).collect();
            if inside.is_empty() {
                continue;
            }
            let mut is_in = vec![false; self.before.len()];
            is_in[*header] = true;
            work += self.before.len();
            if work > MOST_WORK {
                return Vec::new();
            }
            depth[*header] += 1;
            while let Some(block) = inside.pop() {
                if !std::mem::replace(&mut is_in[block], true) {
                    depth[block] += 1;
                    inside.extend(self.before[block].iter().filter(|from| rank[**from] != usize::MAX));
                }
            }
        }
        let mut depths = vec![0; steps];
        for (number, start) in self.starts.iter().enumerate() {
            let end = self.starts.get(number + 1).copied().unwrap_or(steps);
            depths[*start..end].fill(depth[number + 1]);
        }
        depths
    }
}

fn meet(dominator: &[usize], rank: &[usize], mut one: usize, mut other: usize) -> usize {
    while one != other {
        while rank[one] > rank[other] {
            one = dominator[one];
        }
        while rank[other] > rank[one] {
            other = dominator[other];
        }
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of one word each.
    fn steps(lines: &[(&str, u32)]) -> Vec<Step> {
        lines.iter().zip(0..).map(|((text, word), at)| Step::of(4 * at, text, &word.to_le_bytes(), true)).collect()
    }

    #[test]
    fn banks_are_known_until_paths_disagree() {
        let code = steps(&[
            ("s_nop 0", 0xbf80_0000),
            ("s_set_vgpr_msb 0x41", 0xbf86_0041),
            ("s_cbranch_scc0 1", 0xbfa1_0001),
            ("s_set_vgpr_msb 0x4100", 0xbf86_4100),
            ("v_nop", 0x7e00_0000),
            ("s_set_vgpr_msb 0x80", 0xbf86_0080),
            ("s_endpgm", 0xbfb0_0000),
            ("v_nop", 0x7e00_0000),
        ]);
        let found = banks(&code, &[0], &[]);
        let known = Banks::Known;
        assert_eq!(found[..4], [known(0), known(0), known(0x41), known(0x41)]);
        assert_eq!(found[4..], [Banks::Any, Banks::Any, known(0x80), Banks::Unreached]);
        assert_eq!(known(0x41).slots(), Some([1, 0, 0, 1]));
    }

    #[test]
    fn calls_modes_and_unknown_words_forget_and_computed_jumps_spoil_all() {
        for (text, word) in [
            ("s_swap_pc_i64 s[30:31], s[4:5]", 0xbe9e_4904),
            ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 24, 1), 1", 0xb980_0601),
        ] {
            assert_eq!(
                banks(&steps(&[(text, word), ("v_nop", 0)]), &[0], &[]),
                [Banks::Known(0), Banks::Any],
                "{text}"
            );
        }
        let mut code = steps(&[("v_nop", 0), ("v_nop", 0)]);
        code[0] = Step::of(0, "", &[0, 0, 0x31, 0xd0, 0, 0, 0x86, 0xbf], false);
        assert_eq!(banks(&code, &[0], &[]), [Banks::Known(0), Banks::Any]);
        code[0] = Step::of(0, "", &[0, 0, 0x31, 0xd0], false);
        assert_eq!(banks(&code, &[0], &[]), [Banks::Known(0); 2]);
        let code = steps(&[("v_nop", 0), ("s_set_pc_i64 s[4:5]", 0xbe80_4804)]);
        assert_eq!(banks(&code, &[0], &[]), [Banks::Any; 2]);
        let code = steps(&[("v_nop", 0), ("s_set_pc_i64 s[30:31]", 0xbe80_481e)]);
        assert_eq!(banks(&code, &[0], &[]), [Banks::Known(0); 2]);
    }

    #[test]
    fn loops_nest() {
        let back = |words: i16| 0xbfa1_0000 | u32::from(words as u16);
        let code = steps(&[
            ("v_nop", 0),
            ("v_nop", 0),                    // outer
            ("v_nop", 0),                    // inner
            ("s_cbranch_scc0 -2", back(-2)), // to 2
            ("v_nop", 0),
            ("s_cbranch_scc0 -5", back(-5)), // to 1
            ("s_endpgm", 0xbfb0_0000),
        ]);
        assert_eq!(loop_depths(&code, &[0]), [0, 1, 2, 2, 1, 1, 0]);
        assert_eq!(loop_depths(&[], &[0]), Vec::<u32>::new());
    }
}
