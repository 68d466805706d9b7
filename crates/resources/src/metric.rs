//! The columns of the resource table, in their order. This is their only list.

/// One column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // each variant is documented by its row in `METRICS`
pub enum Metric {
    Vgpr,
    ArchVgpr,
    Agpr,
    Sgpr,
    NumberedSgpr,
    VgprSpill,
    SgprSpill,
    ScratchBytes,
    LdsStaticBytes,
    LdsRead,
    LdsWrite,
    ScratchStore,
    ScratchLoad,
    MatrixOps,
}

/// How many columns there are.
pub const COUNT: usize = 14;

/// What is known of a column.
struct Row {
    metric: Metric,
    name: &'static str,
    /// An increase is a regression.
    trigger: bool,
    /// What it counts, as part of a sentence.
    meaning: &'static str,
}

const METRICS: [Row; COUNT] = {
    const fn row(metric: Metric, name: &'static str, trigger: bool, meaning: &'static str) -> Row {
        Row { metric, name, trigger, meaning }
    }
    [
        row(Metric::Vgpr, "vgpr", true, "the VGPR count that decides occupancy"),
        row(Metric::ArchVgpr, "arch_vgpr", false, "its architectural part"),
        row(Metric::Agpr, "agpr", false, "its accumulator part"),
        row(Metric::Sgpr, "sgpr", true, "SGPRs with VCC, XNACK and FLAT_SCRATCH"),
        row(Metric::NumberedSgpr, "numbered_sgpr", false, "SGPRs without VCC, XNACK and FLAT_SCRATCH"),
        row(Metric::VgprSpill, "vgpr_spill", true, "VGPRs that the allocator spilled"),
        row(Metric::SgprSpill, "sgpr_spill", true, "SGPRs that the allocator spilled"),
        row(Metric::ScratchBytes, "scratch_bytes", true, "bytes of scratch for each work-item"),
        row(Metric::LdsStaticBytes, "lds_static_bytes", true, "bytes of static LDS for each work-group"),
        row(Metric::LdsRead, "lds_read", false, "instruction sites that read LDS"),
        row(Metric::LdsWrite, "lds_write", false, "instruction sites that write LDS"),
        row(Metric::ScratchStore, "scratch_store", false, "instruction sites that store to scratch"),
        row(Metric::ScratchLoad, "scratch_load", false, "instruction sites that load from scratch"),
        row(Metric::MatrixOps, "matrix_ops", false, "matrix instruction sites"),
    ]
};

impl Metric {
    /// All columns, in table order.
    pub fn all() -> impl Iterator<Item = Metric> {
        METRICS.iter().map(|row| row.metric)
    }

    /// The column's name in tables and JSON.
    pub fn name(self) -> &'static str {
        METRICS[self as usize].name
    }

    /// The column of that name.
    pub fn named(name: &str) -> Option<Metric> {
        METRICS.iter().find(|row| row.name == name).map(|row| row.metric)
    }

    /// What it counts, as part of a sentence.
    pub fn meaning(self) -> &'static str {
        METRICS[self as usize].meaning
    }

    /// Whether an increase is a regression.
    pub fn is_trigger(self) -> bool {
        METRICS[self as usize].trigger
    }

    /// Whether the column counts instructions of the body.
    pub fn is_instruction_count(self) -> bool {
        self >= Metric::LdsRead
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_where_their_metric_says() {
        assert!(METRICS.iter().enumerate().all(|(at, row)| row.metric as usize == at));
        assert_eq!(Metric::all().filter(|m| m.is_trigger()).count(), 6);
    }
}
