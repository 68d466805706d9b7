//! The report for people.

use std::borrow::Cow;

use gpu::Telemetry;

use crate::report::page::{collapsed, counted, wrapped};
use crate::report::{OutputSummary, Report, RoundSummary, Timing};
use crate::timing::CacheMode;
use crate::timing::verdict::Ratio;

/// Makes of a text from outside what can be printed: names must not look like lines of ours or steer a terminal.
pub type Clean = for<'t> fn(&'t str) -> Cow<'t, str>;

/// All of it above the last line, no line wider than 80 columns unless a name is; but messages (`required`, `reason`, `note`)
/// have a line each, for those who search for them.
pub fn render(report: &Report, clean: Clean) -> String {
    let Report { device, site, .. } = report;
    let target = if device.target.is_empty() { String::new() } else { format!(", {}", clean(&device.target)) };
    let extent = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let lds = counted(site.dynamic_lds_bytes.into(), "byte", "bytes");
    let (grid, block) = (extent(site.grid), extent(site.block));
    let mut text = format!(
        "Device: {} ({} CUs{target}), {}\n  kernel: {}\n{}",
        clean(&device.name),
        device.compute_units,
        device.id,
        clean(&report.kernel),
        wrapped(&format!("  site: {}, {grid} work-groups of {block}, {lds} of dynamic LDS", clean(&site.name))),
    );
    for (whose, image) in [("reference", &report.reference), ("test", &report.test)] {
        let hash: String = image.sha256.chars().take(12).collect();
        text.push_str(&format!("  {whose:<9} {hash} {}\n", clean(&image.name)));
    }
    for output in &report.outputs {
        text.push_str(&render_output(output, clean));
    }
    if let Some(timing) = &report.timing {
        text.push_str(&render_timing(timing));
    }
    text.push('\n');
    if !report.requirement.is_empty() {
        text.push_str(&format!("required: {}\n", clean(&report.requirement)));
    }
    for reason in collapsed(&report.reasons) {
        text.push_str(&format!("reason: {}\n", clean(&reason)));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {}\n", clean(note)));
    }
    text
}

fn render_output(output: &OutputSummary, clean: Clean) -> String {
    let shape: Vec<String> = output.shape.iter().map(u64::to_string).collect();
    let mut text = format!("\n{}: {} {}\n", clean(&output.name), output.dtype, shape.join("x"));
    for round in &output.rounds {
        text.push_str(&render_round(round));
    }
    // The rounds differ in their inputs; where the first mismatches lie is told once.
    if let Some(round) = output.rounds.iter().find(|round| !round.first_mismatches.is_empty()) {
        text.push_str(&format!("  first mismatches, {}:\n", round.name()));
        let lines = round.first_mismatches.iter().chain(&round.clusters);
        lines.for_each(|line| text.push_str(&wrapped(&format!("    {line}"))));
        round.map.iter().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    text
}

fn render_round(round: &RoundSummary) -> String {
    let stats = &round.stats;
    let number = |value: Option<f64>| value.map_or_else(|| "n/a".into(), |value| format!("{value:.3e}"));
    let cos = stats.cos.map_or_else(|| "n/a".into(), |cos| format!("{cos:.9}"));
    let (kind, elements, differ) = (round.name(), stats.elements, stats.mismatches);
    let mut text = match differ == 0 && round.one_sided == 0 {
        true => format!("  same bits  {kind}: {elements} elements\n"),
        false => format!("  DIFFERENT  {kind}: {differ} of {elements} elements differ\n"),
    };
    if stats.mismatches > 0 {
        text.push_str(&wrapped(&format!(
            "    cos={cos} norm={} max_abs={:.3e} max_rel={} max_ulp={}",
            number(stats.relative_norm),
            stats.max_abs,
            number(stats.max_rel),
            stats.max_ulp
        )));
    }
    let sides = [("reference", stats.reference), ("test", stats.test)];
    if stats.mismatches > 0 || sides.iter().any(|(_, side)| side.nan + side.infinite > 0) {
        for (whose, side) in sides {
            let constant = if side.is_constant { ", all the same" } else { "" };
            let (nonzero, nan, infinite) = (side.nonzero, side.nan, side.infinite);
            text.push_str(&format!("    {whose}: nz={nonzero} nan={nan} inf={infinite}{constant}\n"));
        }
    }
    text
}

fn render_timing(timing: &Timing) -> String {
    let mut text = String::from("\n");
    let measured = &timing.measured;
    if let Some(speed) = &timing.speed {
        for (whose, time_ns, rates) in
            [("reference", speed.reference_ns, timing.reference_rates), ("test", speed.test_ns, timing.test_rates)]
        {
            let rate = |rate: Option<f64>, unit: f64, name: &str, share: Option<f64>| {
                let share = share.map_or_else(String::new, |share| format!(" ({} of peak)", percent(share)));
                rate.map_or_else(String::new, |rate| format!("  {} {name}{share}", digits(rate / unit)))
            };
            text.push_str(&format!(
                "{whose:<9} {:>10}{}{}\n",
                time(time_ns),
                rate(rates.flops, 1e12, "TFLOPS", rates.flops_share),
                rate(rates.bytes_per_second, 1e9, "GB/s", rates.bytes_share)
            ));
        }
        let ratio = |ratio: &Ratio| format!("{:.4} [{:.4}, {:.4}]", ratio.value, ratio.low, ratio.high);
        text.push_str(&format!(
            "speed-up  {} at {:.0} %\n  the reference against its own copy {}\n{}\n",
            ratio(&speed.speedup),
            speed.confidence * 100.0,
            ratio(&speed.control),
            speed.verdict.name()
        ));
    }
    let triples = counted(measured.samples.0.len() as u64 / 3, "triple", "triples");
    let cache = match timing.cache {
        CacheMode::Cold => "cold",
        CacheMode::Hot => "hot",
    };
    let launches = |count: u32| counted(count.into(), "launch", "launches");
    text.push_str(&format!(
        "  {triples}, {} a sample, {cache} cache ({} of buffers),\n  {} of warm-up, {} checked,\n  \
         {} of the host to queue one launch\n",
        launches(measured.launches_per_sample),
        counted(measured.buffer_sets.into(), "set", "sets"),
        launches(measured.warmup_launches),
        counted(measured.checked_launches.into(), "timed launch", "timed launches"),
        time(measured.launch_overhead_ns)
    ));
    text.push_str(&render_state(&timing.telemetry));
    text
}

/// The device before and after, as far as the driver tells.
fn render_state(states: &[Telemetry; 2]) -> String {
    type Figure = fn(&Telemetry) -> Option<f64>;
    let figures: [(&str, Figure, &str); 4] = [
        ("clock", |state| state.clock_hz.map(|hz| hz / 1e6), "MHz"),
        ("memory clock", |state| state.memory_clock_hz.map(|hz| hz / 1e6), "MHz"),
        ("temperature", |state| state.temperature_celsius, "°C"),
        ("power", |state| state.power_watts, "W"),
    ];
    let told = figures.iter().filter_map(|(name, figure, unit)| {
        let [before, after] = states.each_ref().map(figure);
        Some(format!("{name} {:.0}-{:.0} {unit}", before?, after?))
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { String::new() } else { format!("  before-after: {}\n", told.join(", ")) }
}

/// A share in percent.
fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent < 0.1 => "under 0.1 %".into(),
        percent => format!("{} %", if percent < 10.0 { format!("{percent:.1}") } else { format!("{percent:.0}") }),
    }
}

/// A number with a decimal, or as many as its first two digits take.
fn digits(number: f64) -> String {
    let decimals = (1.0 - number.abs().max(1e-9).log10().floor()).clamp(1.0, 9.0) as usize;
    format!("{number:.decimals$}")
}

/// A time with a unit in which it is easily read.
fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{:.4} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.3} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_keep_their_digits() {
        assert_eq!([1914.3, 12.0, 1.25, 0.0013].map(digits), ["1914.3", "12.0", "1.2", "0.0013"]);
        assert_eq!([0.0, 0.0049, 0.42, 1.7].map(percent), ["under 0.1 %", "0.5 %", "42 %", "170 %"]);
    }
}
