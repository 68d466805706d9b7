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
}

const METRICS: [Row; COUNT] = {
    const fn row(metric: Metric, name: &'static str, trigger: bool) -> Row {
        Row { metric, name, trigger }
    }
    [
        row(Metric::Vgpr, "vgpr", true),                       // the count that decides occupancy
        row(Metric::ArchVgpr, "arch_vgpr", false),             // its arch part
        row(Metric::Agpr, "agpr", false),                      // its accumulator part
        row(Metric::Sgpr, "sgpr", true),                       // with VCC, XNACK, FLAT_SCRATCH
        row(Metric::NumberedSgpr, "numbered_sgpr", false),     // without them
        row(Metric::VgprSpill, "vgpr_spill", true),            // VGPRs that the allocator spilled
        row(Metric::SgprSpill, "sgpr_spill", true),            // SGPRs that the allocator spilled
        row(Metric::ScratchBytes, "scratch_bytes", true),      // private segment, per work-item
        row(Metric::LdsStaticBytes, "lds_static_bytes", true), // static LDS, per work-group
        row(Metric::LdsRead, "lds_read", false),               // instruction sites, as the four below
        row(Metric::LdsWrite, "lds_write", false),
        row(Metric::ScratchStore, "scratch_store", false),
        row(Metric::ScratchLoad, "scratch_load", false),
        row(Metric::MatrixOps, "matrix_ops", false),
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
