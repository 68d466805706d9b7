//! The report for people.

use gpu::Telemetry;

use crate::report::{OutputSummary, Report, RoundSummary, Timing};

/// All of it above the last line.
pub fn render(report: &Report) -> String {
    let Report { device, site, .. } = report;
    let target = if device.target.is_empty() { String::new() } else { format!(", {}", device.target) };
    let extent = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
    let mut text = format!(
        "Device: {} ({} CUs{target}), {}\n  kernel: {}\n  site: {}, {} work-groups of {}, {} bytes of dynamic LDS\n",
        device.name,
        device.compute_units,
        device.id,
        report.kernel,
        site.name,
        extent(site.grid),
        extent(site.block),
        site.dynamic_lds_bytes
    );
    for (whose, image) in [("reference", &report.reference), ("test", &report.test)] {
        text.push_str(&format!("  {whose:<9} {} {}\n", &image.sha256[..12.min(image.sha256.len())], image.name));
    }
    for output in &report.outputs {
        text.push_str(&render_output(output));
    }
    if let Some(timing) = &report.timing {
        text.push_str(&render_timing(timing));
    }
    text.push('\n');
    if !report.requirement.is_empty() {
        text.push_str(&format!("required: {}\n", report.requirement));
    }
    for reason in &report.reasons {
        text.push_str(&format!("reason: {reason}\n"));
    }
    for note in &report.notes {
        text.push_str(&format!("note: {note}\n"));
    }
    text
}

fn render_output(output: &OutputSummary) -> String {
    let shape: Vec<String> = output.shape.iter().map(u64::to_string).collect();
    let mut text = format!("\n{}: {} {}\n", output.name, output.dtype, shape.join("x"));
    for round in &output.rounds {
        text.push_str(&render_round(round));
    }
    // The rounds differ in their inputs; where the first mismatches lie is told once.
    if let Some(round) = output.rounds.iter().find(|round| !round.first_mismatches.is_empty()) {
        text.push_str(&format!("  first mismatches, {}:\n", round.name()));
        let lines = round.first_mismatches.iter().chain(&round.clusters).chain(&round.map);
        lines.for_each(|line| text.push_str(&format!("    {line}\n")));
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
        text.push_str(&format!(
            "    cos={cos} norm={} max_abs={:.3e} max_rel={} max_ulp={}\n",
            number(stats.relative_norm),
            stats.max_abs,
            number(stats.max_rel),
            stats.max_ulp
        ));
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
                let share = share.map_or_else(String::new, |share| format!(" ({:.0} % of peak)", share * 100.0));
                rate.map_or_else(String::new, |rate| format!("  {:.1} {name}{share}", rate / unit))
            };
            text.push_str(&format!(
                "{whose:<9} {:>10}{}{}\n",
                time(time_ns),
                rate(rates.flops, 1e12, "TFLOPS", rates.flops_share),
                rate(rates.bytes_per_second, 1e9, "GB/s", rates.bytes_share)
            ));
        }
        let percent = speed.confidence * 100.0;
        text.push_str(&format!(
            "speed-up  {:.4} [{:.4}, {:.4}] at {percent:.0} %; the reference against its own copy {:.4} [{:.4}, {:.4}]\n{}\n",
            speed.speedup.value,
            speed.speedup.low,
            speed.speedup.high,
            speed.control.value,
            speed.control.low,
            speed.control.high,
            speed.verdict.name()
        ));
    }
    let triples = measured.samples.0.len() / 3;
    let cache = match timing.cache {
        crate::timing::CacheMode::Cold => "cold",
        crate::timing::CacheMode::Hot => "hot",
    };
    text.push_str(&format!(
        "  {triples} triples, {} launches a sample, {cache} cache ({} sets of buffers), {} launches of warm-up,\n  \
         {} timed launches checked, {} of the host to queue one\n",
        measured.launches_per_sample,
        measured.buffer_sets,
        measured.warmup_launches,
        measured.checked_launches,
        time(measured.launch_overhead_ns)
    ));
    text.push_str(&render_state(&timing.telemetry));
    text
}

/// The device before and after, as far as the driver tells.
fn render_state(states: &[Telemetry; 2]) -> String {
    let figures: [(&str, fn(&Telemetry) -> Option<f64>, &str); 4] = [
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

/// A time with a unit in which it is easily read.
fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e6 => format!("{:.4} ms", ns / 1e6),
        ns if ns >= 1e3 => format!("{:.3} us", ns / 1e3),
        ns => format!("{ns:.0} ns"),
    }
}
