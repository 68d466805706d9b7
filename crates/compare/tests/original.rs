//! The lines of the original program, from comparisons on the scripted device.

use std::path::Path;

use compare::report::seed::{self, Word};
use compare::run::{self, Image, Request};
use compare::site::Site;
use compare::site::builtin::Builtin;
use compare::watch::Unwatched;
use gpu::mock::Mock;
use gpu::mock::script::FILL_LDS;

const SITE: &str = r#"
kernel = "k"
grid = [1]
block = [64]
[[arg]]
name = "lhs"
dtype = "f32"
shape = [250000]
fill = { kind = "uniform", low = 0.25, high = 1.0 }
[[arg]]
name = "rhs"
dtype = "f32"
shape = [500000]
fill = { kind = "uniform" }
[[arg]]
name = "out"
dtype = "f32"
shape = [250000]
[[arg]]
name = "n"
type = "u32"
value = 250000
"#;

fn lines(factor: &str, cheat: &str) -> (Word, Vec<String>) {
    lines_on(SITE, factor, cheat)
}

fn lines_on(site: &str, factor: &str, cheat: &str) -> (Word, Vec<String>) {
    let device = Mock::new();
    let site = Site::parse(site, "gate_up_fwd", Path::new(""), run::facts(&device)).expect("a valid site");
    let image = |factor: &str, cheat: &str| {
        Image {
        name: "image.mock".into(),
        bytes: format!(
            "mock = 1\n[[kernel]]\nname = \"k\"\ninput = 0\noutput = 16\ncount = 24\nfactor = {factor}\ntime_ns = 1e6\n{cheat}"
        )
        .into_bytes(),
    }
    };
    let request = Request {
        reference: image("2.0", ""),
        test: image(factor, cheat),
        requirement: None,
        seed: 42,
        allow_metadata: false,
        timing: None,
        peak_flops: None,
        lds_filler: Ok(FILL_LDS.into()),
    };
    let report = run::run(&device, &site, &request, &mut Unwatched).expect("a report");
    let text = seed::head(&report.device.name, report.device.compute_units, &report.kernel)
        + &seed::site(&report, Builtin::find("gate_up_fwd").expect("there"));
    (Word::of(&report), text.lines().map(str::to_owned).collect())
}

#[test]
fn the_same_kernel_passes_in_the_original_words() {
    let (word, lines) = lines("2.0", "");
    assert_eq!(word, Word::Pass);
    assert_eq!(
        lines,
        [
            "Device: mock device (8 CUs)",
            "  kernel: k",
            "",
            "gate_up_fwd      M=131072 D1=2880 D2=5760  A=1MB B=2MB Out=1MB",
            "  [PASS] cos=1.000000  max_diff=0.000000  ref_nz=250000/250000  test_nz=250000/250000  nan=0",
        ]
    );
}

#[test]
fn numbers_that_agree_are_close_and_no_pass() {
    // Both fills agree to 5 in 100,000: above the cosine's and below the norm's bound.
    let (word, lines) = lines("2.0001", "");
    assert_eq!((word, word.exit_code()), (Word::Close, 1));
    assert!(lines[4].starts_with("  [CLOSE] cos=1.000000  max_diff=0.0001"), "{}", lines[4]);
}

#[test]
fn a_cosine_alone_is_not_enough() {
    // Twice the output has a cosine of 1.
    let (word, lines) = lines("4.0", "");
    assert_eq!(word, Word::Fail);
    assert!(lines[4].starts_with("  [FAIL] cos=1.000000"), "{}", lines[4]);
    // Positive inputs hide a constant output from the cosine, and the signed ones do not.
    let (word, lines) = self::lines("2.0", "cheat = \"constant\"");
    assert_eq!(word, Word::Fail);
    assert!(lines[4].starts_with("  [FAIL] cos=0.9"), "{}", lines[4]);
}

#[test]
fn what_a_kernel_does_besides_is_no_pass_either() {
    for cheat in ["write-outside", "zero-inputs", "nondeterministic"] {
        let (word, lines) = lines("2.0", &format!("cheat = \"{cheat}\""));
        assert_eq!(word, Word::Fail, "{cheat}: {lines:?}");
        assert!(lines[5].contains("test: "), "{cheat}: {lines:?}");
    }
    let (word, _) = lines("2.0", "cheat = \"none\"");
    assert_eq!(word, Word::Pass);
}

#[test]
fn what_weakens_a_verdict_is_told_below_it() {
    let little = SITE.replace("value = 250000", "value = 64");
    let (word, lines) = lines_on(&little, "2.0", "");
    assert_eq!((word, word.exit_code()), (Word::NotEstablished, 2));
    assert!(
        lines[4].starts_with("  [NOT ESTABLISHED] cos=1.000000") && lines[4].contains("ref_nz=64/64"),
        "{}",
        lines[4]
    );
    assert!(lines[5].starts_with("  `out`: 249936 of 250000 elements are written by neither kernel; "), "{}", lines[5]);
    let (word, lines) =
        lines_on(&little.replace("name = \"out\"", "name = \"out\"\nunwritten = \"allowed\""), "2.0", "");
    assert_eq!(word, Word::Pass);
    assert_eq!(lines[5], "  note: `out`: 249936 of 250000 elements are written by neither kernel, as the site allows");
}
