//! From what was seen to a verdict. Reasons are in the order of their weight: what makes the question unanswerable, then what
//! is wrong with the test, then numbers.

use crate::correctness::{Conduct, Observed, Round, RoundKind, RoundOutput};
use crate::report::{Report, Timing, Verdict};
use crate::requirement::{Finding, Outcome, Requirement};
use crate::site::{Buffer, Site};
use crate::timing::estimate::MIN_BLOCKS;
use crate::timing::verdict::odd_blocks;
use crate::timing::{CacheMode, SpeedVerdict};

/// Judges correctness. `requested` is what the user asks of all outputs, beside what the site says of each; `differences` are
/// those of the metadata that nobody accepted.
pub fn judge(
    report: &mut Report,
    site: &Site,
    observed: &Observed,
    requested: Option<&Requirement>,
    differences: Vec<String>,
) {
    let unanswerable = unanswerable(observed);
    let wrong = wrong_conduct("test", &observed.test);
    let outputs = judge_outputs(site, observed, requested);
    let evidence = judge_evidence(site, observed);
    report.requirement = outputs.requirement;
    report.metadata_agrees = differences.is_empty();
    report.verdict = match () {
        () if !unanswerable.is_empty() => Verdict::NotEstablished,
        () if observed.test.unrepeatable > 0 => Verdict::Nondeterministic,
        () if !wrong.is_empty() || !differences.is_empty() => Verdict::Fail,
        () if outputs.outcome == Outcome::Missed => Verdict::Fail,
        () if outputs.outcome == Outcome::NotEstablished => Verdict::NotEstablished,
        // A difference that was seen is an answer whatever else was not seen; sameness is none.
        () if !evidence.missing.is_empty() => Verdict::NotEstablished,
        () if outputs.is_identical => Verdict::BitIdentical,
        () => Verdict::Met,
    };
    report.reasons.extend(unanswerable);
    if observed.test.unrepeatable > 0 {
        report.reasons.push(format!(
            "test: {} elements changed from launch to launch with the same inputs",
            observed.test.unrepeatable
        ));
    }
    report.reasons.extend(wrong);
    report.reasons.extend(differences);
    report.reasons.extend(outputs.reasons);
    report.reasons.extend(evidence.missing);
    report.notes.extend(evidence.notes);
    report.notes.extend(outputs.notes);
}

/// Judges the launches that were timed, and says what the times cannot be.
pub fn judge_timing(report: &mut Report, mut timing: Timing) {
    let measured = &timing.measured;
    let of_reference = |wrong: &String| wrong.starts_with("reference");
    let mut unknown: Vec<String> =
        measured.unattributed.iter().map(|what| format!("a timed launch {what}: it is not known whose")).collect();
    if !measured.wrong.is_empty() {
        report.verdict = match measured.wrong.iter().any(of_reference) {
            false if report.verdict != Verdict::NotEstablished => Verdict::Fail,
            _ => Verdict::NotEstablished,
        };
        report.reasons.splice(0..0, measured.wrong.iter().cloned());
    } else if measured.other_bits > 0 && report.verdict == Verdict::BitIdentical {
        report.verdict = Verdict::Met;
        report.notes.push(format!("{} timed launches gave other bits, within what is required", measured.other_bits));
    }
    if let Some(speed) = &mut timing.speed
        && measured.wrong.is_empty()
        && let Some(why) = speed.disturbed(&measured.alone)
    {
        speed.verdict = SpeedVerdict::NotEstablished;
        unknown.push(why);
    }
    for (whose, rates) in [("reference", timing.reference_rates), ("test", timing.test_rates)] {
        let Some((why, is_impossible)) = rates.beyond(whose, timing.cache) else { continue };
        if is_impossible { unknown.push(why) } else { report.notes.push(why) }
    }
    if !unknown.is_empty() && report.verdict.exit_code() == 0 {
        report.verdict = Verdict::NotEstablished;
    }
    report.reasons.extend(unknown);
    report.notes.extend(timing_notes(&timing));
    report.notes.dedup();
    report.timing = Some(timing);
}

/// The device failed while it timed. What was found wrong before stays found.
pub fn judge_untimed(report: &mut Report, error: &gpu::Error) {
    if report.verdict.exit_code() == 0 {
        report.verdict = Verdict::NotEstablished;
    }
    report.reasons.push(format!("timing failed: {error}"));
}

/// What a reader of the times should know.
fn timing_notes(timing: &Timing) -> Vec<String> {
    let measured = &timing.measured;
    let mut notes = Vec::new();
    if timing.speed.is_none() {
        notes.push(format!("too few blocks for a statement about speed: {MIN_BLOCKS} at least"));
    }
    notes.extend(measured.shortened.clone());
    if !measured.warmup_is_steady {
        notes.push(
            "times were not steady at the end of the warm-up: the clocks may not be up yet; try more --warmup".into(),
        );
    }
    if timing.cache == CacheMode::Cold && timing.cache_bytes == 0 {
        notes.push("the driver does not tell how large the last cache is: it may not have been cold".into());
    } else if timing.cache == CacheMode::Cold && measured.rotated_bytes < 2 * timing.cache_bytes {
        let (rotated, cache) = (measured.rotated_bytes, timing.cache_bytes);
        notes.push(format!("the cache was not cold: {rotated} bytes were rotated, it holds {cache}"));
    }
    notes.extend(odd_blocks(&measured.samples));
    for (when, state) in ["before", "after"].iter().zip(&timing.telemetry) {
        if !state.throttling.is_empty() {
            notes.push(format!("the clock was held down {when} the timing: {}", state.throttling.join(", ")));
        }
        if !state.other_processes.is_empty() {
            notes.push(format!("others are on the device: {}", state.other_processes.join(", ")));
        }
    }
    notes
}

/// Why the reference cannot be held against anything.
fn unanswerable(observed: &Observed) -> Vec<String> {
    let mut reasons = Vec::new();
    if observed.reference.unrepeatable > 0 {
        let count = observed.reference.unrepeatable;
        reasons.push(format!(
            "reference: {count} elements changed from launch to launch with the same inputs: it says not what is right"
        ));
    }
    reasons.extend(wrong_conduct("reference", &observed.reference));
    let outputs = || observed.rounds.iter().flat_map(|round| &round.outputs);
    if outputs().next().is_none() {
        reasons.push("no output was compared: the site has none, or no round ended".into());
    }
    let mut unwritten: Vec<&str> = outputs()
        .filter(|output| output.elements > 0 && output.untouched == output.elements)
        .map(|output| output.name.as_str())
        .collect();
    unwritten.sort_unstable();
    unwritten.dedup();
    reasons.extend(unwritten.iter().map(|name| format!("neither kernel wrote anything to `{name}`")));
    reasons
}

fn wrong_conduct(whose: &str, conduct: &Conduct) -> Vec<String> {
    let trespasses = conduct.trespasses.iter().map(|trespass| format!("{whose}: {trespass}"));
    let changed = conduct.changed_inputs.iter().map(|name| format!("{whose}: changed its input `{name}`"));
    let disturbs = conduct
        .disturbs_reference
        .then(|| format!("{whose}: the reference computes something else after the {whose} has run"));
    trespasses.chain(changed).chain(disturbs).collect()
}

/// What a "the same" needs besides numbers that are the same.
#[derive(Default)]
struct Evidence {
    /// What was not seen.
    missing: Vec<String>,
    /// The same where the site says that it is meant.
    notes: Vec<String>,
}

fn judge_evidence(site: &Site, observed: &Observed) -> Evidence {
    let mut evidence = Evidence::default();
    let mut say = |is_meant: bool, what: String, way_out: &str| match is_meant {
        true => evidence.notes.push(format!("{what}, as the site allows")),
        false => evidence.missing.push(format!("{what}; {way_out}")),
    };
    for (name, buffer) in site.buffers().filter(|(_, buffer)| buffer.is_compared()) {
        let outputs = observed.rounds.iter().flat_map(|round| &round.outputs).filter(|output| output.name == name);
        let most = outputs.map(|output| output.untouched).max().unwrap_or_default();
        let way_out = "if that is meant, say unwritten = \"allowed\" in its [[arg]]";
        if most > 0 {
            let elements = buffer.elements;
            say(
                buffer.may_stay_unwritten,
                format!("`{name}`: {most} of {elements} elements are written by neither kernel"),
                way_out,
            );
        }
        if observed.unchanged.iter().any(|unchanged| unchanged == name) {
            say(buffer.may_stay_unwritten, format!("the reference does not change `{name}`"), way_out);
        }
    }
    let has_inputs = site.buffers().any(|(_, buffer)| buffer.fill.is_some());
    let varied = observed.rounds.iter().skip(1).any(|round| round.has_other_inputs);
    if has_inputs && !varied && !observed.rounds.is_empty() {
        say(
            site.has_fixed_inputs,
            "every input is fixed (constant, or whole numbers that could be indices): a result that is remembered cannot be \
             told from one that is computed"
                .into(),
            "give an input another fill, or say fixed-inputs = true in the site",
        );
    }
    evidence
}

struct Outputs {
    outcome: Outcome,
    is_identical: bool,
    requirement: String,
    reasons: Vec<String>,
    notes: Vec<String>,
}

fn judge_outputs(site: &Site, observed: &Observed, requested: Option<&Requirement>) -> Outputs {
    let mut judged = Outputs {
        outcome: Outcome::Met,
        is_identical: true,
        requirement: describe_requirements(site, requested),
        reasons: Vec::new(),
        notes: Vec::new(),
    };
    for (name, buffer) in site.buffers().filter(|(_, buffer)| buffer.is_compared()) {
        let required = required(buffer, requested);
        let mut findings = Findings::default();
        for round in &observed.rounds {
            let Some(output) = round.outputs.iter().find(|output| output.name == name) else { continue };
            if says_nothing(name, round, observed) {
                judged.notes.push(format!(
                    "`{name}`: with inputs of both signs the reference writes no finite number, and the test the same: that \
                     round says nothing of it"
                ));
                continue;
            }
            judged.is_identical &= output.stats.is_identical() && output.one_sided() == 0;
            for (who, count) in [("reference", output.only_by_reference), ("test", output.only_by_test)] {
                if count > 0 {
                    let what = if buffer.dtype.bits() % 8 == 0 { "elements" } else { "bytes" };
                    findings.add(round, Outcome::Missed, format!("{count} {what} are written by the {who} only"));
                }
            }
            // Two requirements may say the same.
            let mut checked: Vec<Finding> = Vec::new();
            for finding in required.iter().flat_map(|required| required.check(&output.stats).findings) {
                if !checked.contains(&finding) {
                    checked.push(finding);
                }
            }
            checked.into_iter().for_each(|finding| findings.add(round, finding.outcome, finding.text));
            if output.stats.reference.constant.is_some() && output.stats.elements > 1 {
                judged.notes.push(format!(
                    "`{name}`: the reference writes the same value everywhere: inputs that say so little prove little"
                ));
            }
        }
        judged.outcome = judged.outcome.max(findings.worst());
        judged.reasons.extend(findings.lines(name, observed.rounds.len()));
    }
    judged.notes.sort();
    judged.notes.dedup();
    judged
}

/// Whether an output is lost to the inputs of both signs, as those of a square root or a logarithm are: then the other
/// rounds count.
fn says_nothing(name: &str, round: &Round, observed: &Observed) -> bool {
    let finite =
        |round: &Round| round.outputs.iter().find(|output| output.name == name).map(|output| output.stats.finite);
    let own = observed.rounds.iter().find(|round| round.kind == RoundKind::Fresh).and_then(finite);
    let output = round.outputs.iter().find(|output| output.name == name);
    let is_same = |output: &RoundOutput| output.stats.special_mismatches == 0 && output.one_sided() == 0;
    round.kind == RoundKind::Signed && finite(round) == Some(0) && own > Some(0) && output.is_some_and(is_same)
}

/// What an output has to fulfil: what the site says of it, and what the user asks for; bits when nobody says anything.
pub fn required<'r>(buffer: &'r Buffer, requested: Option<&'r Requirement>) -> Vec<&'r Requirement> {
    let mut all: Vec<&Requirement> = requested.into_iter().chain(&buffer.requirement).collect();
    all.dedup();
    if all.is_empty() { vec![&Requirement::Bits] } else { all }
}

/// In a line: once when it is the same for all outputs.
fn describe_requirements(site: &Site, requested: Option<&Requirement>) -> String {
    let outputs = site.buffers().filter(|(_, buffer)| buffer.is_compared());
    let each: Vec<(&str, String)> = outputs
        .map(|(name, buffer)| {
            let all: Vec<String> = required(buffer, requested).iter().map(ToString::to_string).collect();
            (name, all.join(" and "))
        })
        .collect();
    match each.split_first() {
        Some(((_, first), others)) if others.iter().all(|(_, other)| other == first) => first.clone(),
        Some(_) => each.iter().map(|(name, text)| format!("`{name}`: {text}")).collect::<Vec<_>>().join("; "),
        None => requested.unwrap_or(&Requirement::Bits).to_string(),
    }
}

/// What is not met, of one output; what several rounds say alike is told once.
#[derive(Default)]
struct Findings {
    found: Vec<Found>,
}

struct Found {
    outcome: Outcome,
    text: String,
    rounds: Vec<&'static str>,
}

impl Findings {
    fn add(&mut self, round: &Round, outcome: Outcome, text: String) {
        if outcome == Outcome::Met {
            return;
        }
        match self.found.iter_mut().find(|found| found.text == text) {
            Some(found) => found.rounds.push(round.name()),
            None => self.found.push(Found { outcome, text, rounds: vec![round.name()] }),
        }
    }

    fn worst(&self) -> Outcome {
        self.found.iter().map(|found| found.outcome).max().unwrap_or(Outcome::Met)
    }

    fn lines(self, name: &str, rounds: usize) -> impl Iterator<Item = String> {
        self.found.into_iter().map(move |mut found| {
            let all = rounds > 1 && found.rounds.len() == rounds;
            found.rounds.dedup();
            let rounds = if all { "all rounds".to_owned() } else { found.rounds.join("; ") };
            format!("`{name}` ({rounds}): {}", found.text)
        })
    }
}
