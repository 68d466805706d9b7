//! Outputs against their schemas: our JSON forms against docs/schemas, SARIF against OASIS's schema, JUnit against the XSD of
//! Jenkins' xUnit plugin. Each schema also has to refuse a broken output, or it would prove nothing.

#[path = "harness/data.rs"]
mod data;
#[path = "harness/process.rs"]
mod process;

use std::fs;
use std::path::Path;
use std::process::Command;

use jsonschema::Validator;
use serde_json::{Value, json};

/// Two sides each: a regression, one that is fine, renamed kernels, other targets, and what is not there.
const SIDES: [(&str, &str); 6] = [
    ("flydsl/mixed/before", "flydsl/mixed/after"),
    ("flydsl/spill/before", "flydsl/spill/after"),
    ("flydsl/nochange/before", "flydsl/nochange/after"),
    ("triton-cache/before", "triton-cache/after"),
    ("flydsl/mixed/before", "triton-cache/after"),
    ("flydsl/mixed/before", "missing"),
];

fn schema(path: &str) -> Validator {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("the schema is there");
    // OASIS's own text has a bracket too many in two patterns, which a strict reader of expressions refuses; both are
    // about `language`, which we do not write.
    let schema: Value = serde_json::from_str(&text.replace("{2}]?$", "{2}$")).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema is a schema")
}

/// Runs coax in an empty folder and returns what it wrote into `file`.
fn written(arguments: &[&str], file: &str) -> Option<String> {
    let work = tempfile::tempdir().expect("a folder");
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let outcome = process::run_coax(&arguments, work.path(), &[]).expect("coax runs");
    let text = fs::read_to_string(work.path().join(file)).ok();
    let said = [outcome.stdout, outcome.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(text.is_some() || outcome.exit == 2, "{arguments:?} exits {} and wrote nothing: {said}", outcome.exit);
    text
}

fn data(name: &str) -> String {
    data::data_directory().join(name).to_string_lossy().into_owned()
}

/// What a command writes for each pair of sides.
fn of_sides(format: &[&str], file: &str) -> Vec<String> {
    let arguments = |(before, after): (&str, &str)| -> Vec<String> {
        let words = ["diff".into(), data(before), data(after), "-q".into()];
        words.into_iter().chain(format.iter().map(|word| (*word).to_owned())).collect()
    };
    let run = |sides| {
        let arguments = arguments(sides);
        written(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), file)
    };
    SIDES.into_iter().filter_map(run).collect()
}

fn holds(schema: &Validator, value: &Value) {
    let errors: Vec<String> =
        schema.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{}", errors.join("\n"));
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("the output is JSON")
}

/// Each of these changes makes a valid document an invalid one; so does a member that is missing, but for those that are
/// optional.
fn refuses(schema: &Validator, value: &Value, changes: &[(&str, Value)]) {
    refuses_but(schema, value, changes, &["allowed_metrics", "failing_metrics", "policy", "baseline"]);
}

fn refuses_but(schema: &Validator, value: &Value, changes: &[(&str, Value)], optional: &[&str]) {
    for (pointer, new) in changes {
        let mut broken = value.clone();
        *broken.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer} in {value}")) = new.clone();
        assert!(!schema.is_valid(&broken), "{pointer} may be {new}");
    }
    for key in value.as_object().expect("an object").keys() {
        let mut broken = value.clone();
        broken.as_object_mut().expect("an object").remove(key);
        assert!(optional.contains(&key.as_str()) || !schema.is_valid(&broken), "{key} may be missing");
    }
}

#[test]
fn snapshots_hold_their_schema() {
    let schema = schema("docs/schemas/snapshot-2.schema.json");
    for input in ["flydsl/mixed/before", "triton-cache/before", "clang/gfx942", "fatbin", "code-objects"] {
        let text = written(&["summarize", &data(input), "--metadata-only", "-q", "--json", "s.json"], "s.json");
        let snapshot = json(&text.expect("a snapshot"));
        assert!(!snapshot["kernels"].as_object().expect("kernels").is_empty(), "{input}");
        holds(&schema, &snapshot);
    }
    let text = written(&["summarize", &data("flydsl/spill/before"), "-q", "--json", "s.json"], "s.json");
    let snapshot = json(&text.expect("a snapshot"));
    let vgpr = "/kernels/kernel_gemm_0::kernel_gemm_0/metrics/vgpr";
    let changes = [
        ("/schema", json!(3)),
        ("/kernels", json!([])),
        (vgpr, json!({"state": "value", "value": -1})),
        (vgpr, json!({"state": "value"})),
        (vgpr, json!({"state": "n/a", "value": 1})),
        (vgpr, json!({"state": "known", "value": 1})),
        ("/kernels/kernel_gemm_0::kernel_gemm_0/metrics", json!({})),
    ];
    refuses(&schema, &snapshot, &changes);
}

#[test]
fn reports_hold_their_schema() {
    let schema = schema("docs/schemas/diff-2.schema.json");
    let reports: Vec<Value> = of_sides(&["--json", "r.json"], "r.json").iter().map(|text| json(text)).collect();
    assert_eq!(reports.len(), SIDES.len() - 1, "a side that is not there gives no report");
    reports.iter().for_each(|report| holds(&schema, report));
    let changes = [
        ("/schema", json!(1)),
        ("/exit_code", json!(0)), // which does not agree with the verdict
        ("/verdict", json!("RESULT: FINE")),
        ("/rows/0/deltas", json!({"occupancy": 1})),
        ("/rows/0/kernel", json!(null)),
    ];
    refuses(&schema, &reports[1], &changes);
}

/// Runs `coax compare` on the scripted device; its report and the line of its history.
fn compared(test: &str, more: &[&str]) -> (Value, Option<Value>) {
    let work = tempfile::tempdir().expect("a folder");
    let (reference, site) = (data("compare/ref.mock"), data("compare/site.toml"));
    let fixed = ["compare", &reference, test, "--site", &site, "--device", "mock", "-q"];
    let files = ["--json", "r.json", "--history", "h.jsonl"];
    let arguments: Vec<String> = fixed.iter().chain(more).chain(&files).map(|word| (*word).to_owned()).collect();
    process::run_coax(&arguments, work.path(), &[]).expect("coax runs");
    let read = |file: &str| fs::read_to_string(work.path().join(file)).expect("it is written");
    let lines = read("h.jsonl");
    (json(&read("r.json")), lines.lines().next().map(json))
}

#[test]
fn comparisons_and_histories_hold_their_schemas() {
    let (report_schema, run_schema) =
        (schema("docs/schemas/compare-1.schema.json"), schema("docs/schemas/history-1.schema.json"));
    let (right, wrong) = (data("compare/test.mock"), data("compare/wrong.mock"));
    let timed = ["--benchmark", "--warmup", "2", "--iters", "60", "--require-speed=1.5", "--expect", "1.0169±0.01"];
    let ends = [
        (compared(&right, &timed[..5]), "RESULT: BIT-IDENTICAL", true),
        (compared(&right, &timed), "RESULT: SPEED NOT AS REQUIRED", true),
        (compared(&wrong, &timed[..5]), "RESULT: FAIL", true),
        (compared(&right, &["--require", "cos=2"]), "RESULT: NOT ESTABLISHED", false),
    ];
    for ((report, run), verdict, is_compared) in &ends {
        assert_eq!(report["verdict"], *verdict);
        assert_eq!(report["comparison"].is_object(), *is_compared);
        holds(&report_schema, report);
        run.iter().for_each(|run| holds(&run_schema, run));
        assert_eq!(run.is_some(), *is_compared, "what was not launched is no run");
    }
    let ((report, run), ..) = &ends[1];
    let changes = [
        ("/schema", json!(2)),
        ("/exit_code", json!(0)), // which does not agree with the verdict
        ("/verdict", json!("RESULT: FINE")),
        ("/speed_requirements/0/met", json!("yes")),
        ("/comparison/verdict", json!("SPEED NOT AS REQUIRED")),
        ("/comparison/reference/sha256", json!("0")),
        ("/comparison/outputs/0/rounds/0/stats/mismatches", json!(-1)),
        ("/comparison/outputs/0/rounds/0/kind", json!("stale")),
        ("/comparison/timing/measured/samples/0/which", json!("other")),
        ("/comparison/timing/speed/speedup", json!(1.5)),
        ("/comparison/timing/telemetry", json!([])),
    ];
    refuses(&report_schema, report, &changes);
    let mut null = report.clone();
    null["comparison"]["outputs"][0]["rounds"][0]["stats"]["max_abs"] = json!(null);
    holds(&report_schema, &null); // an infinite difference
    let mut fine = ends[0].0.0.clone();
    fine["errors"] = json!(["but"]);
    assert!(!report_schema.is_valid(&fine), "exit 0 has no errors");
    let changes = [
        ("/time", json!("today")),
        ("/verdict", json!("RESULT: FAIL")),
        ("/site_sha256", json!("0")),
        ("/speed/verdict", json!("FAST")),
        ("/cache", json!("warm")),
    ];
    let later = ["site_sha256", "exit_code", "error", "speed", "cache", "note"];
    refuses_but(&run_schema, run.as_ref().expect("a run"), &changes, &later);
}

#[test]
fn reports_and_histories_describe_images_and_speed_alike() {
    let read =
        |path: &str| json(&fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file"));
    let (report, run) = (read("docs/schemas/compare-1.schema.json"), read("docs/schemas/history-1.schema.json"));
    for name in ["image", "ratio", "speed", "verdict"] {
        assert_eq!(report["$defs"][name], run["$defs"][name], "{name}");
    }
}

#[test]
fn reports_and_snapshots_describe_kernels_alike() {
    let read =
        |path: &str| json(&fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect("a file"));
    let (snapshot, diff) = (read("docs/schemas/snapshot-2.schema.json"), read("docs/schemas/diff-2.schema.json"));
    for name in ["cell", "target", "kernel"] {
        assert_eq!(snapshot["$defs"][name], diff["$defs"][name], "{name}");
    }
}

#[test]
fn sarif_holds_the_schema_of_oasis() {
    let schema = schema("tests/data/schemas/sarif-schema-2.1.0.json");
    let logs: Vec<Value> =
        of_sides(&["--format", "sarif", "-o", "r.sarif"], "r.sarif").iter().map(|text| json(text)).collect();
    assert_eq!(logs.len(), SIDES.len(), "a failed run is told too");
    logs.iter().for_each(|log| holds(&schema, log));
    let run = &logs[1]["runs"][0];
    assert_eq!(run["results"].as_array().expect("results").len(), 2, "vgpr_spill and scratch_bytes rose");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let failed = &logs[5]["runs"][0]["invocations"][0];
    assert_eq!(failed["executionSuccessful"], false);
    assert!(!failed["toolExecutionNotifications"].as_array().expect("notifications").is_empty());
    let changes =
        [("/runs/0/results/0/level", json!("fatal")), ("/runs/0/invocations/0", json!({})), ("/version", json!("2.0"))];
    for (pointer, new) in changes {
        let mut broken = logs[1].clone();
        *broken.pointer_mut(pointer).expect("is there") = new;
        assert!(!schema.is_valid(&broken), "{pointer}");
    }
}

#[test]
fn junit_holds_the_schema_of_jenkins() {
    if Command::new("xmllint").arg("--version").output().is_err() {
        let required =
            std::env::var("REQUIRE").is_ok_and(|names| names.split(',').any(|name| name.trim() == "xmllint"));
        assert!(!required, "xmllint is missing: install libxml2-utils");
        eprintln!("skipped: xmllint is missing");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let xsd = data::data_directory().join("schemas/junit-10.xsd");
    let check = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("is written");
        let mut command = Command::new("xmllint");
        command.args(["--noout", "--nonet", "--schema"]).arg(&xsd).arg(path);
        let output = command.output().expect("xmllint runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let suites = of_sides(&["--format", "junit", "-o", "r.xml"], "r.xml");
    assert_eq!(suites.len(), SIDES.len());
    for (at, suite) in suites.iter().enumerate() {
        let (valid, said) = check(&format!("{at}.xml"), suite);
        assert!(valid, "{said}{suite}");
    }
    assert!(suites[1].contains("failures=\"1\"") && suites[5].contains("errors=\"1\""));
    assert!(!check("broken.xml", &suites[1].replace("testcase", "case")).0, "the schema refuses a broken one");
    assert!(!check("cut.xml", &suites[1][..suites[1].len() / 2]).0, "xmllint refuses a cut one");
}
