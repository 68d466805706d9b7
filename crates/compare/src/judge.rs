//! From what was seen to a verdict. Reasons are in the order of their weight: what makes the question unanswerable, then what
//! is wrong with the test, then numbers.

use crate::correctness::{Conduct, Observed};
use crate::report::{Report, Timing, Verdict};
use crate::requirement::{Outcome, Requirement};
use crate::site::{Buffer, Site};
use crate::timing::estimate::MIN_BLOCKS;
use crate::timing::verdict::odd_blocks;
use crate::timing::{CacheMode, SpeedVerdict};

/// Judges correctness. `differences` are those of the metadata that nobody accepted.
pub fn judge(
    report: &mut Report,
    site: &Site,
    observed: &Observed,
    requirement: &Requirement,
    differences: Vec<String>,
) {
    let unanswerable = unanswerable(observed);
    let wrong = wrong_conduct("test", &observed.test);
    let outputs = judge_outputs(site, observed, requirement);
    report.requirement = outputs.requirement;
    report.metadata_agrees = differences.is_empty();
    report.verdict = match () {
        () if !unanswerable.is_empty() => Verdict::NotEstablished,
        () if observed.test.unrepeatable > 0 => Verdict::Nondeterministic,
        () if !wrong.is_empty() || !differences.is_empty() => Verdict::Fail,
        () if outputs.outcome == Outcome::Missed => Verdict::Fail,
        () if outputs.outcome == Outcome::NotEstablished => Verdict::NotEstablished,
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
    let unwritten = outputs().find(|output| output.units > 0 && output.untouched == output.units);
    if let Some(output) = unwritten {
        reasons.push(format!("neither kernel wrote anything to `{}`", output.name));
    }
    reasons
}

fn wrong_conduct(whose: &str, conduct: &Conduct) -> Vec<String> {
    let trespasses = conduct.trespasses.iter().map(|trespass| format!("{whose}: {trespass}"));
    let changed = conduct.changed_inputs.iter().map(|name| format!("{whose}: changed its input `{name}`"));
    trespasses.chain(changed).collect()
}

/// What an output has to fulfil: what the site says of it, else what is required of all.
pub fn requirement_of<'r>(buffer: &'r Buffer, requirement: &'r Requirement) -> &'r Requirement {
    buffer.requirement.as_ref().unwrap_or(requirement)
}

struct Outputs {
    outcome: Outcome,
    is_identical: bool,
    requirement: String,
    reasons: Vec<String>,
    notes: Vec<String>,
}

fn judge_outputs(site: &Site, observed: &Observed, requirement: &Requirement) -> Outputs {
    let mut judged = Outputs {
        outcome: Outcome::Met,
        is_identical: true,
        requirement: requirement.to_string(),
        reasons: Vec::new(),
        notes: Vec::new(),
    };
    for (name, buffer) in site.buffers().filter(|(_, buffer)| buffer.is_compared()) {
        let own = requirement_of(buffer, requirement);
        if own != requirement {
            judged.requirement.push_str(&format!("; `{name}`: {own}"));
        }
        for round in &observed.rounds {
            let Some(output) = round.outputs.iter().find(|output| output.name == name) else { continue };
            let judgement = own.check(&output.stats);
            judged.is_identical &= output.stats.is_identical() && output.one_sided == 0;
            let mut outcome = judgement.outcome;
            if output.one_sided > 0 {
                outcome = Outcome::Missed;
                judged.reasons.push(format!("`{name}`: {} elements are written by one kernel only", output.one_sided));
            }
            if outcome != Outcome::Met {
                let unmet = judgement.findings.iter().filter(|finding| finding.outcome != Outcome::Met);
                judged
                    .reasons
                    .extend(unmet.map(|finding| format!("`{name}` ({}): {}", round.kind.name(), finding.text)));
            }
            judged.outcome = judged.outcome.max(outcome);
            if output.untouched > 0 {
                judged.notes.push(format!(
                    "`{name}`: {} of {} elements are written by neither kernel",
                    output.untouched, output.units
                ));
            }
            if output.stats.reference.constant.is_some() && output.stats.elements > 1 {
                judged.notes.push(format!(
                    "`{name}`: the reference writes the same value everywhere: inputs that say so little prove little"
                ));
            }
        }
    }
    judged.notes.sort();
    judged.notes.dedup();
    judged
}
