//! Kernels that deceive, each on the scripted device: none gets past.

use std::path::Path;
use std::time::Duration;

use compare::report::{Report, Verdict};
use compare::requirement::Requirement;
use compare::run::{self, Failure, Image, Request};
use compare::site::Site;
use compare::timing::{CacheMode, Settings, SpeedVerdict};
use compare::watch::Unwatched;
use gpu::mock::script::FILL_LDS;
use gpu::mock::{Mock, Noise};

const SITE: &str = r#"
kernel = "scale"
grid = [4]
block = [64]
bytes = "8*N"
[dims]
N = 1021
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

fn image(extra: &str) -> Image {
    let text = format!(
        "mock = 1\n[[kernel]]\nname = \"scale\"\ninput = 0\noutput = 8\ncount = 16\nfactor = 2.0\ntime_ns = 600000.0\n{extra}"
    );
    Image { name: "image.mock".into(), bytes: text.into_bytes() }
}

fn settings() -> Settings {
    Settings {
        warmup: 5,
        iterations: 60,
        blocks: 10,
        cache: CacheMode::Hot,
        budget: Duration::from_secs(60),
        ..Settings::default()
    }
}

fn compare(reference: &str, test: &str, timed: bool) -> Result<Report, Failure> {
    let device = Mock::new();
    let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
    let request = Request {
        reference: image(reference),
        test: image(test),
        requirement: Requirement::Bits,
        seed: 42,
        allow_metadata: false,
        timing: timed.then(settings),
        peak_flops: None,
        lds_filler: Ok(FILL_LDS.into()),
    };
    run::run(&device, &site, &request, &mut Unwatched)
}

fn verdict(reference: &str, test: &str, timed: bool) -> (Verdict, Vec<String>) {
    let report = compare(reference, test, timed).expect("a report");
    (report.verdict, report.reasons)
}

#[test]
fn an_honest_copy_is_bit_identical() {
    for timed in [false, true] {
        assert_eq!(verdict("", "", timed), (Verdict::BitIdentical, vec![]));
    }
}

#[test]
fn every_cheat_is_caught_before_timing() {
    for (cheat, expected, reason) in [
        ("no-write", Verdict::Fail, "written by one kernel only"),
        ("early-exit", Verdict::Fail, "written by one kernel only"),
        ("half", Verdict::Fail, "written by one kernel only"),
        ("cache-by-pointer", Verdict::Fail, "elements differ"),
        ("cache-by-fingerprint", Verdict::Fail, "elements differ"),
        ("wrong-element", Verdict::Fail, "1 of 1021 elements differ"),
        ("zero-inputs", Verdict::Fail, "changed its input `in`"),
        ("nan", Verdict::Fail, "NaN or Inf"),
        ("read-outside", Verdict::Nondeterministic, "changed from launch to launch"),
        ("read-lds", Verdict::Nondeterministic, "changed from launch to launch"),
        ("write-outside", Verdict::Fail, "wrote outside `out`: 4 bytes from byte 4084"),
        ("write-before", Verdict::Fail, "wrote outside `out`: 4 bytes from byte -4"),
        ("constant", Verdict::Fail, "elements differ"),
        ("low-precision", Verdict::Fail, "elements differ"),
        ("nondeterministic", Verdict::Nondeterministic, "changed from launch to launch"),
    ] {
        let (verdict, reasons) = verdict("", &format!("cheat = \"{cheat}\""), false);
        assert_eq!(verdict, expected, "{cheat}: {reasons:?}");
        assert!(reasons.iter().any(|found| found.contains(reason)), "{cheat}: {reasons:?}");
    }
}

#[test]
fn a_cheat_that_begins_later_is_caught_while_it_is_timed() {
    for (cheat, reason) in [
        ("early-exit", "of a timed launch is wrong"),
        ("no-write", "of a timed launch is wrong"),
        ("wrong-element", "of a timed launch is wrong: 1 of 1021"),
        ("constant", "of a timed launch is wrong"),
        ("cache-by-pointer", "of a timed launch is wrong"),
        ("cache-by-fingerprint", "of a timed launch is wrong"),
        ("half", "of a timed launch is wrong"),
        ("write-outside", "wrote outside `out`: 4 bytes from byte 4084"),
        ("write-before", "wrote outside `out`: 4 bytes from byte -4"),
        ("zero-inputs", "changed its input `in`"),
    ] {
        // Four launches of a module at most are those of the rounds; it begins in the middle of the timing.
        let (verdict, reasons) = verdict("", &format!("cheat = \"{cheat}\"\nafter = 12"), true);
        assert_eq!(verdict, Verdict::Fail, "{cheat}: {reasons:?}");
        assert!(
            reasons.iter().any(|found| found.starts_with("test: ") && found.contains(reason)),
            "{cheat}: {reasons:?}"
        );
    }
}

#[test]
fn a_reference_that_misbehaves_later_establishes_nothing() {
    for cheat in ["write-outside", "zero-inputs"] {
        let (verdict, reasons) = verdict(&format!("cheat = \"{cheat}\"\nafter = 12"), "", true);
        assert_eq!(verdict, Verdict::NotEstablished, "{cheat}: {reasons:?}");
        assert!(reasons.iter().any(|found| found.starts_with("reference: ")), "{cheat}: {reasons:?}");
    }
}

#[test]
fn there_is_poison_in_every_launch_that_is_timed() {
    let report = compare("", "cheat = \"look-for-poison\"", true).expect("a report");
    let speed = report.timing.expect("timed").speed.expect("enough blocks");
    // It always has to do its work, and then takes its time.
    assert_eq!((report.verdict, speed.verdict), (Verdict::BitIdentical, SpeedVerdict::NoDifference), "{speed:?}");
}

#[test]
fn a_test_that_slows_the_reference_down_is_not_faster() {
    let report = compare("", "cheat = \"slow-others\"", true).expect("a report");
    let speed = report.timing.expect("timed").speed.expect("enough blocks");
    assert_eq!((report.verdict, speed.verdict), (Verdict::NotEstablished, SpeedVerdict::NotEstablished), "{speed:?}");
    assert!(report.reasons[0].contains("they disturb each other"), "{:?}", report.reasons);
}

#[test]
fn a_fault_while_timing_says_whose_it_is_and_keeps_what_was_found() {
    let report = compare("", "cheat = \"fault\"\nafter = 12", true).expect("a report");
    assert_eq!(report.verdict, Verdict::NotEstablished);
    assert_eq!(report.reasons, ["timing failed: timing of the test: memory access fault at 0x0"]);
    let (verdict, reasons) = verdict("cheat = \"wrong-element\"", "cheat = \"fault\"\nafter = 12", true);
    assert_eq!(verdict, Verdict::Fail, "{reasons:?}");
}

#[test]
fn a_reference_that_is_no_reference_establishes_nothing() {
    for cheat in ["nondeterministic", "read-outside", "write-outside", "zero-inputs"] {
        let cheat = format!("cheat = \"{cheat}\"");
        let (verdict, reasons) = verdict(&cheat, &cheat, false);
        assert_eq!(verdict, Verdict::NotEstablished, "{cheat}: {reasons:?}");
    }
}

#[test]
fn two_kernels_that_do_nothing_are_not_equal() {
    for cheat in ["no-write", "early-exit"] {
        let cheat = format!("cheat = \"{cheat}\"");
        let (verdict, reasons) = verdict(&cheat, &cheat, false);
        assert_eq!(verdict, Verdict::NotEstablished, "{reasons:?}");
        assert!(reasons[0].contains("neither kernel wrote anything to `out`"), "{reasons:?}");
    }
}

#[test]
fn a_fault_is_a_failure_to_answer() {
    let failure = compare("", "cheat = \"fault\"", false).expect_err("no report");
    assert!(matches!(&failure, Failure::NotEstablished(why) if why.contains("fault")), "{failure:?}");
}

#[test]
fn a_faster_kernel_is_faster_and_a_slower_one_slower() {
    for (time, expected) in [
        ("time_ns = 590000.0", SpeedVerdict::Faster),
        ("time_ns = 610000.0", SpeedVerdict::Slower),
        ("", SpeedVerdict::NoDifference),
    ] {
        let device = Mock::with_noise(Noise::autocorrelated(7, 0.004, 0.95, 0.002, 32.0));
        let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
        let mut test = image("");
        if !time.is_empty() {
            let text = String::from_utf8(test.bytes).expect("text").replace("time_ns = 600000.0", time);
            test.bytes = text.into_bytes();
        }
        let request = Request {
            reference: image(""),
            test,
            requirement: Requirement::Bits,
            seed: 42,
            allow_metadata: false,
            timing: Some(settings()),
            peak_flops: None,
            lds_filler: Ok(FILL_LDS.into()),
        };
        let report = run::run(&device, &site, &request, &mut Unwatched).expect("a report");
        let speed = report.timing.expect("timed").speed.expect("enough blocks");
        assert_eq!(speed.verdict, expected, "{speed:?}");
    }
}

#[test]
fn other_parameters_than_the_sites_are_refused_before_launch() {
    let failure = compare("parameters = [[0, 8], [8, 8], [16, 4], [20, 4]]", "", false).expect_err("no report");
    assert_eq!(failure, Failure::BadInput(vec!["the kernel takes 4 arguments, the site gives 3".into()]));
    let failure = compare("parameters = [[0, 8], [8, 8], [16, 8]]", "", false).expect_err("no report");
    let expected = "the site's `n` has 4 bytes at offset 16; the kernel takes 8 at 16";
    assert_eq!(failure, Failure::BadInput(vec![expected.into()]));
    let honest = "parameters = [[0, 8], [8, 8], [16, 4]]";
    assert_eq!(verdict(honest, honest, false).0, Verdict::BitIdentical);
    let (verdict, reasons) = verdict(honest, "parameters = [[0, 8], [8, 8], [16, 4], [24, 8]]", false);
    assert_eq!(verdict, Verdict::Fail);
    assert!(reasons[0].contains("take different arguments"), "{reasons:?}");
}
