//! Counts of the instructions that the table shows, summed over a body, and the cells made from them.

use isa::Site;

use crate::cell::{Cell, Cells};
use crate::metric::Metric;

/// How often each [`Site`] occurs. Sums are kept, so a body is the difference of two positions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// `ds_read*`.
    pub lds_read: u32,
    /// `ds_load*`.
    pub lds_load: u32,
    /// `ds_write*`, `ds_store*`.
    pub lds_write: u32,
    /// Other LDS traffic.
    pub lds_other: u32,
    /// `scratch_store_*`.
    pub scratch_store: u32,
    /// `scratch_load_*`.
    pub scratch_load: u32,
    /// Matrix operations.
    pub matrix: u32,
}

impl SiteCounts {
    /// Counts one instruction.
    #[inline]
    pub fn add(&mut self, site: Site) {
        match site {
            Site::LdsRead => self.lds_read += 1,
            Site::LdsLoad => self.lds_load += 1,
            Site::LdsWrite => self.lds_write += 1,
            Site::LdsOther => self.lds_other += 1,
            Site::ScratchStore => self.scratch_store += 1,
            Site::ScratchLoad => self.scratch_load += 1,
            Site::ScratchLoadLds => {
                self.scratch_load += 1;
                self.lds_other += 1;
            }
            Site::Matrix => self.matrix += 1,
        }
    }

    /// What was counted between `start` and `self`, a later position of the same sum.
    pub fn since(&self, start: &SiteCounts) -> SiteCounts {
        SiteCounts {
            lds_read: self.lds_read - start.lds_read,
            lds_load: self.lds_load - start.lds_load,
            lds_write: self.lds_write - start.lds_write,
            lds_other: self.lds_other - start.lds_other,
            scratch_store: self.scratch_store - start.scratch_store,
            scratch_load: self.scratch_load - start.scratch_load,
            matrix: self.matrix - start.matrix,
        }
    }

    /// Whether the body touches LDS at all.
    pub fn has_lds_traffic(&self) -> bool {
        self.lds_read + self.lds_load + self.lds_write + self.lds_other > 0
    }

    /// Whether both spellings of an LDS read occur, which no one target's assembler accepts.
    pub fn mixes_spellings(&self) -> bool {
        self.lds_read > 0 && self.lds_load > 0
    }

    /// Fills the instruction cells. `target` is none when it is not known; then nothing is `n/a`.
    pub fn fill(&self, cells: &mut Cells, target: Option<&isa::Target>) {
        cells[Metric::LdsRead] = Cell::Value(u64::from(self.lds_read) + u64::from(self.lds_load));
        cells[Metric::LdsWrite] = Cell::Value(u64::from(self.lds_write));
        cells[Metric::MatrixOps] = Cell::Value(u64::from(self.matrix));
        for (metric, count) in [(Metric::ScratchStore, self.scratch_store), (Metric::ScratchLoad, self.scratch_load)] {
            cells[metric] = Cell::Value(u64::from(count));
        }
        mark_scratch(cells, target);
    }
}

/// Makes `scratch_store` and `scratch_load` `n/a` on targets that spill through `buffer_*`: a count of 0 would say
/// something there that is not so.
pub fn mark_scratch(cells: &mut Cells, target: Option<&isa::Target>) {
    if target.is_some_and(|target| !target.scratch_instructions) {
        for metric in [Metric::ScratchStore, Metric::ScratchLoad] {
            cells[metric] = Cell::NotApplicable("spills go through buffer_* on this target; see scratch_bytes".into());
        }
    }
}
