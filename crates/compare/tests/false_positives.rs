//! How often a kernel is called faster or slower than itself, on a device whose times are autocorrelated, lie on a grid, and
//! depend on what each block was given. At 99 % it may happen once in a hundred runs.
//!
//! `RUNS=10000 cargo test --release -p compare --test false_positives -- --nocapture` is the whole experiment; a hundred of
//! them are run by default.

use std::path::Path;
use std::time::Duration;

use compare::pack::Layout;
use compare::rig::Subject;
use compare::run;
use compare::site::Site;
use compare::timing::measure::{Timed, measure};
use compare::timing::{CacheMode, Settings, Speed, SpeedVerdict};
use compare::watch::Unwatched;
use gpu::mock::{Mock, Noise};

const SITE: &str = "kernel = \"scale\"\ngrid = [1]\nblock = [64]\n\
    [[arg]]\nname = \"in\"\ndtype = \"f32\"\nshape = [4]\nfill = { kind = \"constant\", value = 1.0 }\n\
    [[arg]]\nname = \"out\"\ndtype = \"f32\"\nshape = [4]\n\
    [[arg]]\nname = \"n\"\ntype = \"u32\"\nvalue = 4\n";

fn image(time_ns: f64) -> Vec<u8> {
    format!("mock = 1\n[[kernel]]\nname = \"scale\"\ninput = 0\noutput = 8\ncount = 16\ntime_ns = {time_ns:?}\n").into()
}

fn verdict(reference_ns: f64, test_ns: f64, iterations: u32, seed: u64) -> SpeedVerdict {
    let device = Mock::with_noise(Noise::autocorrelated(seed, 0.003, 0.97, 0.002, 32.0));
    let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
    let layout = Layout::from_site(&site).expect("a layout");
    let inputs = [1.0f32.to_le_bytes().repeat(4), Vec::new()];
    let timed = Timed {
        subject: Subject {
            filler: None,
            device: &device,
            site: &site,
            layout: &layout,
            reference: &image(reference_ns),
            test: &image(test_ns),
            kernel: "scale",
        },
        inputs: &inputs,
        requirement: None,
    };
    let settings = Settings {
        warmup: 2,
        iterations,
        blocks: 10,
        cache: CacheMode::Hot,
        min_sample: Duration::from_nanos(1),
        budget: Duration::from_secs(3600),
        seed,
        ..Settings::default()
    };
    let measured = measure(&timed, &settings, &mut Unwatched).expect("the mock does not fail");
    Speed::of(&measured.samples, settings.confidence).expect("ten blocks").verdict
}

#[test]
fn a_kernel_is_hardly_ever_faster_or_slower_than_itself() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(100);
    let wrong = (0..runs).filter(|seed| verdict(210_000.0, 210_000.0, 60, *seed) != SpeedVerdict::NoDifference).count();
    println!("{wrong} of {runs} runs of A against A were called faster or slower");
    // One in a hundred, and three standard deviations of chance.
    let allowed = runs as f64 / 100.0 + 3.0 * (runs as f64 / 100.0).sqrt();
    assert!(wrong as f64 <= allowed, "{wrong} of {runs}");
}

#[test]
fn three_thousandths_are_found() {
    let runs: u64 = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(40).min(1000);
    let found = (0..runs)
        .filter(|seed| verdict(210_000.0, 210_630.0, Settings::default().iterations, *seed) == SpeedVerdict::Slower)
        .count();
    println!("{found} of {runs} runs of a kernel that is 0.3 % slower said so");
    assert!(found as f64 >= 0.8 * runs as f64, "{found} of {runs}");
}
