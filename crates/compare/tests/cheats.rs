//! Kernels that deceive, each on the scripted device: none gets past.

use std::path::Path;
use std::time::Duration;

use compare::report::{Report, Verdict};
use compare::run::{self, Failure, Image, Request};
use compare::site::Site;
use compare::timing::{CacheMode, Settings, SpeedVerdict};
use compare::watch::{Unwatched, Watch};
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
    let factor = if extra.contains("factor") { "" } else { "factor = 2.0\n" };
    let text = format!(
        "mock = 1\n[[kernel]]\nname = \"scale\"\ninput = 0\noutput = 8\ncount = 16\n{factor}time_ns = 600000.0\n{extra}"
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
    compare_on(SITE, reference, test, timed)
}

fn compare_on(site: &str, reference: &str, test: &str, timed: bool) -> Result<Report, Failure> {
    compare_for(site, None, reference, test, timed)
}

fn compare_for(
    site: &str,
    requirement: Option<&str>,
    reference: &str,
    test: &str,
    timed: bool,
) -> Result<Report, Failure> {
    let device = Mock::new();
    let site = Site::parse(site, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
    let requirement = requirement.map(|text| text.parse().expect("a requirement"));
    let request = Request {
        reference: image(reference),
        test: image(test),
        requirement,
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
        ("no-write", Verdict::Fail, "written by the reference only"),
        ("early-exit", Verdict::Fail, "written by the reference only"),
        ("half", Verdict::Fail, "written by the reference only"),
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
fn a_test_that_changes_the_reference_is_told_by_one_that_is_alone() {
    let (verdict, reasons) = verdict("", "cheat = \"patch-others\"\nafter = 12", true);
    assert_eq!(verdict, Verdict::Fail, "{reasons:?}");
    assert!(reasons[0].ends_with("elements differ, says the reference alone"), "{reasons:?}");
}

#[test]
fn what_is_read_and_written_changes_from_launch_to_launch_too() {
    let site = SITE.replace("name = \"in\"", "name = \"in\"\nrole = \"inout\"");
    let in_place = "cheat = \"cache-by-pointer\"\nafter = 12";
    let report = compare_on(&site, "", "", true).expect("a report");
    assert_eq!(report.verdict, Verdict::NotEstablished, "the kernel does not write it: {:?}", report.reasons);
    let site = site.replace("name = \"in\"", "name = \"in\"\nunwritten = \"allowed\"");
    let report = compare_on(&site, "", "", true).expect("a report");
    assert_eq!(report.verdict, Verdict::BitIdentical, "{:?}", report.reasons);
    let report = compare_on(&site, "", in_place, true).expect("a report");
    assert_eq!(report.verdict, Verdict::Fail, "{:?}", report.reasons);
}

#[test]
fn scratch_with_a_fill_holds_it_in_each_launch() {
    let site = SITE.replace("name = \"in\"", "name = \"in\"\nrole = \"scratch\"");
    for timed in [false, true] {
        let report = compare_on(&site, "", "", timed).expect("a report");
        assert_eq!(report.verdict, Verdict::BitIdentical, "{:?}", report.reasons);
    }
}

#[test]
fn zeros_that_are_the_same_meet_a_bound_on_the_cosine() {
    for timed in [false, true] {
        let report = compare_for(SITE, Some("cos=0.999,norm=1e-3"), "factor = 0.0", "factor = 0.0", timed);
        let report = report.expect("a report");
        assert_eq!(report.verdict, Verdict::BitIdentical, "{:?}", report.reasons);
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
            requirement: None,
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
    // A launch that fits the reference does not fit such a test.
    let failure = compare(honest, "parameters = [[0, 8], [8, 8], [16, 4], [24, 8]]", false).expect_err("no report");
    assert_eq!(failure, Failure::BadInput(vec!["image.mock: the kernel takes 4 arguments, the site gives 3".into()]));
    let (verdict, reasons) = verdict(honest, "", false);
    assert_eq!(verdict, Verdict::Fail);
    assert!(reasons[0].contains("take different arguments"), "{reasons:?}");
}

/// The site with something else in it.
fn site(from: &str, to: &str) -> String {
    assert!(SITE.contains(from), "{from}");
    SITE.replacen(from, to, 1)
}

/// Where the kernel writes fewer elements than the output has.
const ONE_OF_ALL: [&str; 2] = ["value = \"N\"", "value = 1"];

#[test]
fn what_neither_kernel_wrote_is_no_evidence() {
    let [from, to] = ONE_OF_ALL;
    let report = compare_on(&site(from, to), "", "", false).expect("a report");
    let expected = "`out`: 1020 of 1021 elements are written by neither kernel; if that is meant, say unwritten = \"allowed\" in \
                    its [[arg]]";
    assert_eq!((report.verdict, &report.reasons[..]), (Verdict::NotEstablished, &[expected.to_owned()][..]));
    for round in &report.outputs[0].rounds {
        assert_eq!((round.stats.elements, round.untouched, round.one_sided), (1, 1020, 0));
    }
    // What is different is so whatever was not written.
    let cheat = "cheat = \"wrong-element\"";
    assert_eq!(compare_on(&site(from, to), "", cheat, false).expect("a report").verdict, Verdict::Fail);
    let allowed = site(from, to).replace(
        "shape = [\"N\"]\n[[arg]]\nname = \"n\"",
        "shape = [\"N\"]\nunwritten = \"allowed\"\n[[arg]]\nname = \"n\"",
    );
    let report = compare_on(&allowed, "", "", false).expect("a report");
    assert_eq!((report.verdict, report.reasons.len()), (Verdict::BitIdentical, 0));
    assert_eq!(report.notes[0], "`out`: 1020 of 1021 elements are written by neither kernel, as the site allows");
    // Nothing at all is still nothing.
    let nothing = "cheat = \"no-write\"";
    assert_eq!(compare_on(&allowed, nothing, nothing, false).expect("a report").verdict, Verdict::NotEstablished);
}

const UNIFORM: &str = "dtype = \"f32\"\nshape = [\"N\"]\nfill = { kind = \"uniform\", low = 0.25, high = 1.0 }";

fn filled(dtype: &str, fill: &str) -> String {
    site(UNIFORM, &format!("dtype = \"{dtype}\"\nshape = [\"N\"]\nfill = {{ {fill} }}"))
}

#[test]
fn remembered_results_are_found_whatever_the_fill() {
    for (dtype, fill) in [
        ("f32", "kind = \"range\", start = 1"),
        ("f32", "kind = \"one-hot\", index = 700"),
        ("f32", "kind = \"uniform\", low = -1.0, high = 0.0"),
        ("i32", "kind = \"uniform\", low = 1065353216, high = 1073741823"),
    ] {
        let site = filled(dtype, fill);
        let honest = compare_on(&site, "", "", false).expect("a report");
        assert_eq!((honest.verdict, honest.reasons), (Verdict::BitIdentical, vec![]), "{fill}");
        for cheat in ["cache-by-pointer", "cache-by-fingerprint"] {
            let report = compare_on(&site, "", &format!("cheat = \"{cheat}\""), false).expect("a report");
            assert_eq!(report.verdict, Verdict::Fail, "{cheat}, {fill}: {:?}", report.reasons);
        }
    }
}

#[test]
fn inputs_that_are_always_the_same_establish_nothing() {
    for (dtype, fill) in [("f32", "kind = \"constant\", value = 2"), ("i32", "kind = \"range\", start = 1065353216")] {
        let site = filled(dtype, fill);
        for cheat in ["", "cheat = \"cache-by-pointer\""] {
            let report = compare_on(&site, "", cheat, false).expect("a report");
            assert_eq!(report.verdict, Verdict::NotEstablished);
            assert!(report.reasons[0].starts_with("every input is fixed"), "{:?}", report.reasons);
            let names: Vec<&str> = report.outputs[0].rounds.iter().map(|round| round.name()).collect();
            assert_eq!(names[1..], ["the same inputs again"; 3]);
        }
        let meant = compare_on(&format!("fixed-inputs = true\n{site}"), "", "", false).expect("a report");
        assert_eq!(meant.verdict, Verdict::BitIdentical, "{:?}", meant.reasons);
        assert!(meant.notes[0].starts_with("every input is fixed"), "{:?}", meant.notes);
    }
    let report = compare("", "", false).expect("a report");
    let names: Vec<&str> = report.outputs[0].rounds.iter().map(|round| round.name()).collect();
    let expected =
        ["the site's inputs", "inputs of both signs", "other inputs in the same buffers", "a few elements replaced"];
    assert_eq!(names, expected);
}

#[test]
fn two_kernels_that_change_nothing_are_not_equal() {
    let inout = site(
        "dtype = \"f32\"\nshape = [\"N\"]\n[[arg]]\nname = \"n\"",
        "dtype = \"f32\"\nshape = [\"N\"]\nrole = \"inout\"\nfill = { kind = \"normal\" }\n[[arg]]\nname = \"n\"",
    );
    assert_eq!(compare_on(&inout, "", "", false).expect("a report").verdict, Verdict::BitIdentical);
    let nothing = "cheat = \"no-write\"";
    let report = compare_on(&inout, nothing, nothing, false).expect("a report");
    assert_eq!(report.verdict, Verdict::NotEstablished);
    assert!(report.reasons[0].starts_with("the reference does not change `out`"), "{:?}", report.reasons);
    assert_eq!(compare_on(&inout, "", nothing, false).expect("a report").verdict, Verdict::Fail);
}

#[test]
fn a_test_that_changes_the_reference_is_found() {
    let report = compare("", "cheat = \"patch\"\nfactor = 3.0", false).expect("a report");
    assert_eq!(report.verdict, Verdict::Fail);
    let expected = "test: the reference computes something else after the test has run";
    assert!(report.reasons.iter().any(|reason| reason == expected), "{:?}", report.reasons);
    // A reference that changes its mind by itself was not changed by the test.
    let (verdict, reasons) = verdict("cheat = \"nondeterministic\"\nafter = 2", "", false);
    assert_eq!(verdict, Verdict::NotEstablished, "{reasons:?}");
    // It ran before anything of the test was loaded.
    assert_eq!(report.outputs[0].rounds[0].stats.mismatches, 1021);
}

#[test]
fn what_the_user_requires_holds_beside_what_the_site_requires() {
    let low = "cheat = \"low-precision\"";
    let lax = format!("require = \"norm=5e-3\"\n{SITE}");
    let verdict = |requested: Option<&str>, site: &str| {
        let report = compare_for(site, requested, "", low, false).expect("a report");
        (report.verdict, report.requirement)
    };
    assert_eq!(verdict(None, &lax), (Verdict::Met, "norm=0.005".into()));
    assert_eq!(verdict(Some("bits"), &lax), (Verdict::Fail, "bits and norm=0.005".into()));
    assert_eq!(verdict(Some("norm=5e-3"), &lax), (Verdict::Met, "norm=0.005".into()));
    let strict = format!("require = \"bits\"\n{SITE}");
    assert_eq!(verdict(Some("norm=5e-3"), &strict), (Verdict::Fail, "norm=0.005 and bits".into()));
    assert_eq!(verdict(None, SITE), (Verdict::Fail, "bits".into()));
}

#[test]
fn what_all_rounds_say_is_told_once() {
    let (_, reasons) = verdict("", "cheat = \"wrong-element\"", false);
    assert_eq!(reasons, ["`out` (all rounds): bits: 1 of 1021 elements differ"]);
    let (_, reasons) = verdict("cheat = \"half\"", "", false);
    assert_eq!(reasons[0], "`out` (all rounds): 511 elements are written by the test only");
    // What is remembered by pointer is right where the buffers are new.
    let (_, reasons) = verdict("", "cheat = \"cache-by-pointer\"", false);
    assert!(
        reasons.iter().all(|reason| reason.starts_with("`out` (other inputs in the same buffers")
            || reason.starts_with("`out` (a few elements")),
        "{reasons:?}"
    );
}

#[test]
fn a_kernel_that_one_image_lacks_is_lost_and_one_that_both_lack_is_another_direction_s() {
    let other = |name: &str| {
        let text = String::from_utf8(image("").bytes).expect("text");
        text.replace("\"scale\"", &format!("\"{name}\"")).into_bytes()
    };
    let run = |reference: Vec<u8>, test: Vec<u8>| {
        let device = Mock::new();
        let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
        let image = |name: &str, bytes| Image { name: name.into(), bytes };
        let request = Request {
            reference: image("ref", reference),
            test: image("test", test),
            requirement: None,
            seed: 42,
            allow_metadata: false,
            timing: None,
            peak_flops: None,
            lds_filler: Ok(FILL_LDS.into()),
        };
        run::run(&device, &site, &request, &mut Unwatched).map(|report| report.verdict)
    };
    let good = || image("").bytes;
    let lost = "test: no kernel `scale`; there are `f<int, 2>`";
    assert_eq!(run(good(), other("f<int, 2>")), Err(Failure::BadInput(vec![lost.into()])));
    assert_eq!(run(other("a"), good()), Err(Failure::BadInput(vec!["ref: no kernel `scale`; there are `a`".into()])));
    assert_eq!(run(other("a"), other("b")), Err(Failure::NoKernel("ref: no kernel `scale`; there are `a`".into())));
    let many: String = (0..10).map(|n| format!("[[kernel]]\nname = \"k{n}\"\ntime_ns = 1.0\n")).collect();
    let Err(Failure::BadInput(why)) = run(good(), format!("mock = 1\n{many}").into_bytes()) else { panic!("refused") };
    assert!(why[0].ends_with("`k6`, `k7`, … (10 in all)"), "{why:?}");
    // What is no image is an input that is wrong, whosever it is.
    let why = "not an image of the mock device: line 1: missing field `mock`";
    assert_eq!(run(b"target = \"mock\"".to_vec(), good()), Err(Failure::BadInput(vec![format!("ref: {why}")])));
    assert_eq!(run(good(), Vec::new()), Err(Failure::BadInput(vec!["test: the file is empty".into()])));
    let foreign = String::from_utf8(good()).expect("text").replace("mock = 1", "mock = 1\ntarget = \"gfx942\"");
    assert!(matches!(run(foreign.into_bytes(), good()), Err(Failure::NotAvailable(_))));
}

/// What happens, in order.
#[derive(Default)]
struct Events(Vec<String>);

impl Watch for Events {
    fn begun(&mut self, device: &gpu::DeviceInfo, kernel: &str) {
        self.0.push(format!("{kernel} on {}", device.name));
    }

    fn queued(&mut self, what: &str, _launches: u32) {
        self.0.push(what.to_owned());
    }

    fn returned(&mut self) {}
    fn progress(&mut self, _phase: &str, _done: u64, _total: u64) {}
}

#[test]
fn the_reference_runs_before_the_test_and_after_it() {
    let device = Mock::new();
    let site = Site::parse(SITE, "scale", Path::new(""), run::facts(&device)).expect("a valid site");
    let request = Request {
        reference: image(""),
        test: image(""),
        requirement: None,
        seed: 42,
        allow_metadata: false,
        timing: None,
        peak_flops: None,
        lds_filler: Ok(FILL_LDS.into()),
    };
    let mut events = Events::default();
    run::run(&device, &site, &request, &mut events).expect("a report");
    let round = ["reference", "reference", "test", "test", "reference"];
    assert_eq!(events.0[0], "scale on mock device");
    assert_eq!(events.0[1..11], [round, round].concat());
    // Four launches in each of the rounds whose order is drawn.
    assert_eq!(events.0.len(), 19);
}
