//! What a comparison says, as one value: printed as text ([`text`]), in the original program's lines ([`seed`]), or as JSON.

pub mod page;
pub mod seed;
pub mod text;

use std::collections::BTreeMap;

use gpu::{Device, Telemetry};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::correctness::{Conduct, Observed, Round, RoundKind, RoundOutput};
use crate::site::Site;
use crate::stats::{Side, Stats};
use crate::timing::measure::Measured;
use crate::timing::roofline::{Peaks, Rates};
use crate::timing::{CacheMode, Settings, Speed};

/// The conclusion about correctness; written as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// All bits of all outputs are the same, in all rounds.
    #[serde(rename = "BIT-IDENTICAL")]
    BitIdentical,
    /// Not all bits are, and the requirement that was asked for is met.
    #[serde(rename = "PASS")]
    Met,
    /// Neither.
    #[serde(rename = "FAIL")]
    Fail,
    /// The test's results change from launch to launch.
    #[serde(rename = "NONDETERMINISTIC")]
    Nondeterministic,
    /// A launch of the test did not end.
    #[serde(rename = "HUNG")]
    Hung,
    /// Nothing can be said.
    #[serde(rename = "NOT ESTABLISHED")]
    NotEstablished,
}

impl Verdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::BitIdentical => "BIT-IDENTICAL",
            Verdict::Met => "PASS",
            Verdict::Fail => "FAIL",
            Verdict::Nondeterministic => "NONDETERMINISTIC",
            Verdict::Hung => "HUNG",
            Verdict::NotEstablished => "NOT ESTABLISHED",
        }
    }

    /// 0 yes, 1 no, 2 cannot say.
    pub fn exit_code(self) -> u8 {
        match self {
            Verdict::BitIdentical | Verdict::Met => 0,
            Verdict::Fail | Verdict::Nondeterministic | Verdict::Hung => 1,
            Verdict::NotEstablished => 2,
        }
    }
}

/// The report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What ran it.
    pub device: DeviceSummary,
    /// The kernel's name.
    pub kernel: String,
    /// How it was launched.
    pub site: SiteSummary,
    /// The one that is right by definition.
    pub reference: ImageSummary,
    /// The one that is judged.
    pub test: ImageSummary,
    /// The conclusion.
    pub verdict: Verdict,
    /// What led to it, the weightiest first.
    pub reasons: Vec<String>,
    /// Which requirement was met or missed.
    pub requirement: String,
    /// Whether both declare the same, or it was accepted that they do not.
    pub metadata_agrees: bool,
    /// Each compared output.
    pub outputs: Vec<OutputSummary>,
    /// What the reference did beside computing.
    pub reference_conduct: Conduct,
    /// What the test did beside computing.
    pub test_conduct: Conduct,
    /// Times, when they were asked for.
    pub timing: Option<Timing>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// The device of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// `hip:0`.
    pub id: String,
    /// As the driver calls it.
    pub name: String,
    /// Its target.
    pub target: String,
    /// The driver.
    pub driver: String,
    /// Compute units.
    pub compute_units: u32,
}

/// The site of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteSummary {
    /// Its name.
    pub name: String,
    /// Its dimensions, as they are printed.
    #[serde(deserialize_with = "crate::number::each_or_nan")]
    pub dims: BTreeMap<String, f64>,
    /// Work-groups.
    pub grid: [u32; 3],
    /// Work-items of a work-group.
    pub block: [u32; 3],
    /// Dynamic LDS.
    pub dynamic_lds_bytes: u32,
    /// Bytes of each buffer, by argument, in order.
    pub buffers: Vec<(String, u64)>,
    /// [`Site::fingerprint`]: the same for the same launch, whatever the file is called.
    pub sha256: String,
}

/// An image of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImageSummary {
    /// As the user named it.
    pub name: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
    /// How many.
    pub bytes: u64,
}

impl ImageSummary {
    /// Of an image.
    pub fn of(name: &str, bytes: &[u8]) -> ImageSummary {
        let hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        ImageSummary { name: name.to_owned(), sha256: hash, bytes: bytes.len() as u64 }
    }
}

/// One output over all rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OutputSummary {
    /// The argument.
    pub name: String,
    /// Its type.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Each round.
    pub rounds: Vec<RoundSummary>,
}

/// One output in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RoundSummary {
    /// What was special.
    pub kind: RoundKind,
    /// Seed of the inputs.
    pub seed: u64,
    /// Whether the inputs were those of no round before.
    pub has_other_inputs: bool,
    /// Reference against test, without the elements that neither wrote.
    pub stats: StatsSummary,
    /// Elements that neither wrote.
    pub untouched: u64,
    /// Units that one wrote and the other did not.
    pub one_sided: u64,
    /// The first mismatches, a line each.
    pub first_mismatches: Vec<String>,
    /// Where they cluster.
    pub clusters: Vec<String>,
    /// The same as a drawing.
    pub map: Vec<String>,
}

impl RoundSummary {
    /// As it is printed.
    pub fn name(&self) -> &'static str {
        self.kind.name(self.has_other_inputs)
    }
}

/// [`Stats`] as JSON can hold them: what is no number is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatsSummary {
    /// Pairs compared.
    pub elements: u64,
    /// Pairs whose bits differ.
    pub mismatches: u64,
    /// Pairs of which one is NaN or infinite and the other is not the same.
    pub special_mismatches: u64,
    /// Cosine.
    pub cos: Option<f64>,
    /// Relative norm of the difference.
    pub relative_norm: Option<f64>,
    /// Largest difference; null when infinite.
    #[serde(deserialize_with = "crate::number::or_infinite")]
    pub max_abs: f64,
    /// Largest relative difference; null when infinite.
    pub max_rel: Option<f64>,
    /// Largest distance in units in the last place.
    pub max_ulp: u64,
    /// The reference's side.
    pub reference: SideSummary,
    /// The test's side.
    pub test: SideSummary,
}

/// One side of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SideSummary {
    /// Elements that are not 0.
    pub nonzero: u64,
    /// NaN.
    pub nan: u64,
    /// Infinite.
    pub infinite: u64,
    /// Whether all elements are the same.
    pub is_constant: bool,
}

impl From<&Side> for SideSummary {
    fn from(side: &Side) -> Self {
        let Side { nonzero, nan, infinite, constant } = *side;
        SideSummary { nonzero, nan, infinite, is_constant: constant.is_some() }
    }
}

impl From<&Stats> for StatsSummary {
    fn from(stats: &Stats) -> Self {
        StatsSummary {
            elements: stats.elements,
            mismatches: stats.mismatches,
            special_mismatches: stats.special_mismatches,
            cos: stats.cos,
            relative_norm: stats.relative_norm.filter(|norm| norm.is_finite()),
            max_abs: stats.max_abs,
            max_rel: Some(stats.max_rel).filter(|rel| rel.is_finite()),
            max_ulp: stats.max_ulp,
            reference: (&stats.reference).into(),
            test: (&stats.test).into(),
        }
    }
}

/// Times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// The statement; none when there are too few blocks.
    pub speed: Option<Speed>,
    /// Whether caches were cold.
    pub cache: CacheMode,
    /// Bytes of the last cache; 0 when the driver does not tell.
    pub cache_bytes: u64,
    /// Rates of the reference.
    pub reference_rates: Rates,
    /// Rates of the test.
    pub test_rates: Rates,
    /// Peaks that the rates are held against.
    pub peaks: Peaks,
    /// Clocks, temperature and the like, before and after.
    pub telemetry: [Telemetry; 2],
    /// Every sample, and how they were taken.
    pub measured: Measured,
}

impl Timing {
    /// Puts together what was measured.
    pub fn new(
        site: &Site,
        settings: &Settings,
        measured: Measured,
        peaks: Peaks,
        cache_bytes: u64,
        telemetry: [Telemetry; 2],
    ) -> Timing {
        let speed = Speed::of(&measured.samples, settings.confidence);
        let rates = |time_ns: Option<f64>| {
            time_ns.map(|time_ns| Rates::of(time_ns, site.flop, site.bytes, peaks)).unwrap_or_default()
        };
        Timing {
            reference_rates: rates(speed.map(|speed| speed.reference_ns)),
            test_rates: rates(speed.map(|speed| speed.test_ns)),
            speed,
            cache: settings.cache,
            cache_bytes,
            peaks,
            telemetry,
            measured,
        }
    }
}

impl Report {
    /// An empty one, with nothing established.
    pub fn new(device: &dyn Device, site: &Site, kernel: &str, [reference, test]: [ImageSummary; 2]) -> Report {
        let info = device.info();
        Report {
            device: DeviceSummary {
                id: info.id.clone(),
                name: info.name.clone(),
                target: info.target.clone(),
                driver: info.driver.clone(),
                compute_units: info.compute_units,
            },
            kernel: kernel.to_owned(),
            site: SiteSummary {
                name: site.name.clone(),
                dims: site.dims.iter().map(|(name, value)| (name.clone(), value.as_f64())).collect(),
                grid: site.grid,
                block: site.block,
                dynamic_lds_bytes: site.dynamic_lds_bytes,
                buffers: site.buffers().map(|(name, buffer)| (name.to_owned(), buffer.bytes)).collect(),
                sha256: site.fingerprint(),
            },
            reference,
            test,
            verdict: Verdict::NotEstablished,
            reasons: Vec::new(),
            requirement: String::new(),
            metadata_agrees: true,
            outputs: site
                .buffers()
                .filter(|(_, buffer)| buffer.is_compared())
                .map(|(name, buffer)| OutputSummary {
                    name: name.to_owned(),
                    dtype: buffer.dtype.name().to_owned(),
                    shape: buffer.shape.clone(),
                    rounds: Vec::new(),
                })
                .collect(),
            reference_conduct: Conduct::default(),
            test_conduct: Conduct::default(),
            timing: None,
            notes: Vec::new(),
        }
    }

    /// Takes over what the rounds saw.
    pub fn fill_in(&mut self, observed: &Observed) {
        self.reference_conduct = observed.reference.clone();
        self.test_conduct = observed.test.clone();
        for output in &mut self.outputs {
            let seen = observed.rounds.iter().flat_map(|round| round.outputs.iter().map(move |found| (round, found)));
            let own = seen.filter(|(_, found)| found.name == output.name);
            output.rounds.extend(own.map(|(round, found)| summarize(round, found)));
        }
    }
}

fn summarize(round: &Round, output: &RoundOutput) -> RoundSummary {
    let first = output.mismatches.iter().flat_map(|mismatches| &mismatches.first);
    RoundSummary {
        kind: round.kind,
        seed: round.seed,
        has_other_inputs: round.has_other_inputs,
        stats: (&output.stats).into(),
        untouched: output.untouched,
        one_sided: output.one_sided(),
        first_mismatches: first
            .map(|found| {
                let at: Vec<String> = found.at.iter().map(u64::to_string).collect();
                let ulp = found.ulp.map_or_else(String::new, |ulp| format!(", {ulp} ulp"));
                format!(
                    "[{}] {} != {} (0x{:x}, 0x{:x}{ulp})",
                    at.join(", "),
                    found.reference,
                    found.test,
                    found.reference_bits,
                    found.test_bits
                )
            })
            .collect(),
        clusters: output.mismatches.as_ref().map(|mismatches| mismatches.describe()).unwrap_or_default(),
        map: output.mismatches.as_ref().map(|mismatches| mismatches.map()).unwrap_or_default(),
    }
}
