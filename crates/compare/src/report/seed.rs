//! The lines of the original `co_compare`:
//!
//! ```text
//! Device: AMD Instinct MI355X (256 CUs)
//!   kernel: _grouped_fp8_persistent_gemm_kernel
//!
//! gate_up_fwd      M=131072 D1=2880 D2=5760  A=377MB B=531MB Out=1510MB
//!   [PASS] cos=1.000000  max_diff=0.000000  ref_nz=…/…  test_nz=…/…  nan=0
//!   ref=2.272 ms (1914 TFLOPS)  test=2.272 ms (1914 TFLOPS)  speedup=1.0000x
//! ```

use crate::correctness::RoundKind;
use crate::report::{Report, RoundSummary, StatsSummary, Verdict};
use crate::site::builtin::{Builtin, M};

/// What stands in the brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// Bit-identical.
    Pass,
    /// Not, but the numbers agree with its own and with signed inputs.
    Close,
    /// Neither.
    Fail,
    /// Nothing can be said.
    NotEstablished,
}

impl Word {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Word::Pass => "PASS",
            Word::Close => "CLOSE",
            Word::Fail => "FAIL",
            Word::NotEstablished => "NOT ESTABLISHED",
        }
    }

    /// 0 for PASS alone, 2 when nothing can be said.
    pub fn exit_code(self) -> u8 {
        match self {
            Word::Pass => 0,
            Word::Close | Word::Fail => 1,
            Word::NotEstablished => 2,
        }
    }

    /// Of a report made with the requirement `bits`.
    pub fn of(report: &Report) -> Word {
        let rounds = || report.outputs.iter().flat_map(|output| &output.rounds);
        let conduct = &report.test_conduct;
        let conducts_itself =
            conduct.unrepeatable == 0 && conduct.trespasses.is_empty() && conduct.changed_inputs.is_empty();
        let timed_alike = report.timing.as_ref().is_none_or(|timing| timing.measured.wrong.is_empty());
        match report.verdict {
            Verdict::BitIdentical => Word::Pass,
            Verdict::NotEstablished => Word::NotEstablished,
            // Bits are the only thing that is wrong, and every round is within the bounds.
            Verdict::Fail
                if conducts_itself
                    && timed_alike
                    && rounds().any(|round| round.kind == RoundKind::Signed)
                    && rounds().all(is_close)
                    && report.metadata_agrees =>
            {
                Word::Close
            }
            _ => Word::Fail,
        }
    }
}

/// The bounds of the original program, and of the norm that the cosine does not see.
fn is_close(round: &RoundSummary) -> bool {
    let stats = &round.stats;
    stats.special_mismatches == 0
        && round.one_sided == 0
        && stats.cos.is_some_and(|cos| cos >= 0.999)
        && stats.relative_norm.is_some_and(|norm| norm <= 1e-3)
}

/// The first two lines and the empty one.
pub fn head(device: &str, compute_units: u32, kernel: &str) -> String {
    format!("Device: {device} ({compute_units} CUs)\n  kernel: {kernel}\n\n")
}

/// The lines of one site.
pub fn site(report: &Report, builtin: &Builtin) -> String {
    let size = |name: &str| {
        let bytes = report.site.buffers.iter().find(|(buffer, _)| buffer == name).map_or(0, |(_, bytes)| *bytes);
        (bytes as f64 / 1e6).round()
    };
    let (a, b, out) = (size("lhs"), size("rhs"), size("out"));
    let Builtin { name, d1, d2, .. } = builtin;
    let mut text = format!("{name:<16} M={M} D1={d1} D2={d2}  A={a}MB B={b}MB Out={out}MB\n");
    let own = report.outputs.iter().flat_map(|output| &output.rounds).find(|round| round.kind == RoundKind::Fresh);
    if let Some(round) = own {
        text.push_str(&format!("  [{}] {}\n", Word::of(report).name(), numbers(&round.stats)));
    } else {
        text.push_str(&format!("  [{}]\n", Word::of(report).name()));
    }
    for reason in &report.reasons {
        text.push_str(&format!("  {reason}\n"));
    }
    if Word::of(report) == Word::Fail && own.is_some_and(|round| round.stats.cos.is_none_or(|cos| cos < 0.999)) {
        text.push_str("  cos < 0.999: you changed program semantics, not just scheduling\n");
    }
    for note in &report.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    if let Some(timing) = &report.timing
        && let Some(speed) = &timing.speed
    {
        let rate =
            |flops: Option<f64>| flops.map_or_else(String::new, |flops| format!(" ({:.0} TFLOPS)", flops / 1e12));
        text.push_str(&format!(
            "  ref={:.3} ms{}  test={:.3} ms{}  speedup={:.4}x\n",
            speed.reference_ns / 1e6,
            rate(timing.reference_rates.flops),
            speed.test_ns / 1e6,
            rate(timing.test_rates.flops),
            speed.speedup.value
        ));
        text.push_str(&format!(
            "  {} [{:.4}x, {:.4}x] at {:.0} %; ref against its own copy [{:.4}x, {:.4}x]\n",
            speed.verdict.name(),
            speed.speedup.low,
            speed.speedup.high,
            speed.confidence * 100.0,
            speed.control.low,
            speed.control.high
        ));
    }
    text
}

fn numbers(stats: &StatsSummary) -> String {
    let cos = stats.cos.map_or_else(|| "n/a".to_owned(), |cos| format!("{cos:.6}"));
    let elements = stats.elements;
    format!(
        "cos={cos}  max_diff={:.6}  ref_nz={}/{elements}  test_nz={}/{elements}  nan={}",
        stats.max_abs,
        stats.reference.nonzero,
        stats.test.nonzero,
        stats.reference.nan + stats.test.nan
    )
}
