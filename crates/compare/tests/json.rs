//! A report goes through JSON on its way out of the process that owns the device: whatever its figures are, it must arrive.

use std::path::Path;
use std::time::Duration;

use compare::report::Report;
use compare::requirement::Requirement;
use compare::run::{self, Image, Request};
use compare::site::Site;
use compare::timing::{CacheMode, Settings};
use compare::watch::Unwatched;
use gpu::mock::Mock;
use gpu::mock::script::FILL_LDS;
use serde_json::Value;

const SITE: &str = r#"
kernel = "scale"
grid = [4]
block = [64]
flop = "N"
bytes = "8*N"
[dims]
N = 1021
HALF = 0.5
[[arg]]
name = "in"
dtype = "f32"
shape = ["N"]
fill = { kind = "uniform", low = 0.25, high = 1.0 }
[[arg]]
name = "out"
dtype = "f32"
shape = ["N"]
[[arg]]
name = "n"
type = "u32"
value = "N"
"#;

/// Of a test that is wrong, and timed: every part is filled in.
fn report() -> Report {
    let device = Mock::new();
    let image = |factor: &str| {
        let text = format!(
            "mock = 1\n[[kernel]]\nname = \"scale\"\ninput = 0\noutput = 8\ncount = 16\nfactor = {factor}\ntime_ns = 600000.0\n"
        );
        Image { name: "image.mock".into(), bytes: text.into_bytes() }
    };
    let timing = Settings {
        warmup: 2,
        iterations: 60,
        blocks: 10,
        cache: CacheMode::Hot,
        budget: Duration::from_secs(60),
        ..Settings::default()
    };
    let request = Request {
        reference: image("2.0"),
        test: image("2.5"),
        requirement: Some(Requirement::Bits),
        seed: 42,
        allow_metadata: false,
        timing: Some(timing),
        peak_flops: Some(1e15),
        lds_filler: Ok(FILL_LDS.into()),
    };
    let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
    run::run(&device, &site, &request, &mut Unwatched).expect("a report")
}

#[test]
fn infinity_and_nan_arrive_as_what_they_can_be() {
    let mut report = report();
    report.site.dims.insert("X".into(), f64::INFINITY);
    report.outputs[0].rounds[0].stats.max_abs = f64::INFINITY;
    let timing = report.timing.as_mut().expect("it was timed");
    timing.measured.samples.0[0].time_ns = f64::NAN;
    timing.speed.as_mut().expect("ten blocks").speedup.high = f64::NEG_INFINITY;
    let text = serde_json::to_string(&report).expect("JSON");
    let back: Report = serde_json::from_str(&text).expect("the same report");
    assert_eq!(back.verdict, report.verdict);
    assert!(back.site.dims["X"].is_nan() && back.site.dims["HALF"] == 0.5);
    assert_eq!(back.outputs[0].rounds[0].stats.max_abs, f64::INFINITY);
    let timing = back.timing.expect("it was timed");
    assert!(timing.measured.samples.0[0].time_ns.is_nan());
    assert!(timing.speed.expect("ten blocks").speedup.high.is_nan());
}

/// No figure may be one that cannot be read back: each number that is no integer is made `null`, one at a time.
#[test]
fn every_figure_may_be_none() {
    let whole = serde_json::to_value(report()).expect("JSON");
    let mut places = Vec::new();
    floats(&whole, String::new(), &mut places);
    // Of the samples, the first stands for all.
    places.retain(|place| !place.contains("/samples/") || place.contains("/samples/0/"));
    for known in ["/site/dims/HALF", "/outputs/0/rounds/0/stats/max_abs", "/timing/measured/samples/0/time_ns"] {
        assert!(places.iter().any(|place| place == known), "{known} is none of {places:#?}");
    }
    for place in places {
        let mut changed = whole.clone();
        *changed.pointer_mut(&place).expect("found there") = Value::Null;
        let read = serde_json::from_value::<Report>(changed);
        assert!(read.is_ok(), "{place}: {}", read.expect_err("it is not"));
    }
}

fn floats(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Number(number) if number.is_f64() => places.push(at),
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| floats(value, format!("{at}/{n}"), places))
        }
        Value::Object(values) => values.iter().for_each(|(name, value)| floats(value, format!("{at}/{name}"), places)),
        _ => {}
    }
}
