//! SARIF 2.1.0 (OASIS) for code scanning: a rule for each metric, a result for each figure that rose. What is not
//! trustworthy is no finding about a kernel: it becomes a notification of the tool, and the run did not succeed.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::words::plain;
use super::{Column, Figure, Kernel, Report, Sort};
use crate::metric::{self, Metric};
use crate::occupancy;
use crate::pairing::bare_name;
use crate::policy::Judgement;
use crate::verdict::Verdict;

/// Where the schema can be had; consumers compare the text.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// GitHub refuses a file with more in one run (GitHub Docs, "SARIF results exceed one or more limits").
const MOST_RESULTS: usize = 25_000;

/// Writes the report.
pub(super) fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let lasting = lasting_names(&report.kernels);
    let of_kernel = |at: usize| {
        let (kernel, name) = (&report.kernels[at], &lasting[at]);
        kernel.judged().filter_map(move |figure| result(kernel, figure, name))
    };
    let mut results: Vec<Value> = report.order(Sort::Worst).into_iter().flat_map(of_kernel).collect();
    let left_out = results.len().saturating_sub(MOST_RESULTS);
    results.truncate(MOST_RESULTS);
    let run = json!({
        // Alerts of `diff` and of `baseline check` are two analyses of one commit.
        "automationDetails": { "id": format!("coax/{}/", report.command.replace(' ', "-")) },
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation(report, left_out)],
        "results": results,
        "tool": { "driver": {
            "name": "coax",
            "rules": Metric::all().map(rule).chain([rule_of_waves()]).collect::<Vec<_>>(),
            "version": env!("CARGO_PKG_VERSION"),
        }},
    });
    let log = json!({ "$schema": SCHEMA, "runs": [run], "version": "2.1.0" });
    serde_json::to_writer_pretty(&mut *out, &log)?;
    out.write_all(b"\n")
}

fn rule(metric: Metric) -> Value {
    let level = if metric.is_trigger() { "error" } else { "note" };
    let name = metric.name();
    json!({
        "defaultConfiguration": { "level": level },
        "fullDescription": { "text": format!("{}. An increase costs occupancy, memory traffic or both.", metric.meaning()) },
        "help": { "text": format!("{name}: {}. Compare the kernel's assembly before and after, or accept the increase.", metric.meaning()) },
        "id": name,
        "shortDescription": { "text": format!("{name} rose") },
    })
}

/// The waves come last, where they can fail; it is a rule of its own, since they fall where the others rise.
fn rule_of_waves() -> Value {
    let meaning = "waves per SIMD that registers, LDS and the size of work-groups leave room for";
    json!({
        "defaultConfiguration": { "level": "note" },
        "fullDescription": { "text": format!("{meaning}. Fewer waves hide less latency.") },
        "help": { "text": format!("{0}: {meaning}. `coax occupancy` says what limits it and how far the next step is.", occupancy::COLUMN) },
        "id": occupancy::COLUMN,
        "shortDescription": { "text": format!("{} fell", occupancy::COLUMN) },
    })
}

fn rule_index(column: Column) -> usize {
    match column {
        Column::Metric(metric) => metric as usize,
        Column::Occupancy => metric::COUNT,
    }
}

fn result(kernel: &Kernel, figure: &Figure, lasting_name: &str) -> Option<Value> {
    let (level, accepted) = match &figure.judgement {
        Judgement::Worse => ("error", None),
        Judgement::Allowed(rule) => ("note", Some(rule)),
        Judgement::Same | Judgement::Informational | Judgement::Better => return None,
    };
    let name = figure.column.name();
    let mut text = format!("{}: {name} {}", plain(&kernel.key), figure.change());
    if let Some(rule) = accepted {
        text.push_str(&format!("; accepted by {}", plain(rule)));
    }
    let fingerprint = fingerprint(lasting_name, name);
    Some(json!({
        "level": level,
        "locations": [location(kernel)],
        "message": { "text": text },
        // The first is the one that GitHub matches alerts by; it would else hash a source line, and there is none.
        "partialFingerprints": { "primaryLocationLineHash": fingerprint, "coaxKernelMetric/v1": fingerprint },
        "ruleId": name,
        "ruleIndex": rule_index(figure.column),
    }))
}

/// GitHub shows no result without a file; the kernel is the place that means something.
fn location(kernel: &Kernel) -> Value {
    let name = bare_name(&kernel.key);
    json!({
        "logicalLocations": [{
            "fullyQualifiedName": plain(&kernel.key),
            "kind": "function",
            "name": plain(name),
        }],
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&kernel.source) },
            "region": { "startLine": 1 },
        },
    })
}

fn invocation(report: &Report, left_out: usize) -> Value {
    let of_inputs = report.input_problems.iter().map(String::as_str).chain(report.unexplained());
    let mut notifications: Vec<Value> = of_inputs.map(|text| notification(text, None)).collect();
    for kernel in &report.kernels {
        let location = location(kernel);
        let said = |problem: &String| notification(&format!("{}: {problem}", kernel.key), Some(&location));
        notifications.extend(kernel.problems.iter().map(said));
        if kernel.problems.is_empty() && kernel.level() == super::words::Level::Error {
            notifications.push(said(&kernel.summary()));
        }
    }
    if left_out > 0 {
        let text = format!("{left_out} results left out: code scanning takes {MOST_RESULTS}; the worst are here");
        notifications.push(notification(&text, None));
    }
    json!({
        "executionSuccessful": report.verdict != Verdict::NotTrustworthy,
        "exitCode": report.verdict.exit_code(),
        "exitCodeDescription": report.verdict.line(),
        "toolExecutionNotifications": notifications,
    })
}

fn notification(text: &str, location: Option<&Value>) -> Value {
    let mut value = json!({ "level": "error", "message": { "text": plain(text) } });
    if let Some(location) = location {
        value["locations"] = json!([location]);
    }
    value
}

/// What each kernel is known by from run to run: its key, or, where its place is a hash that changes with every edit, its
/// name and what else tells it from its like. Those that are still alike are numbered, in the order of their keys.
fn lasting_names(kernels: &[Kernel]) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let name = |kernel: &Kernel| {
        let Some(identity) = &kernel.identity else { return kernel.key.clone() };
        let target = kernel.target.as_deref().unwrap_or_default();
        let parts = [bare_name(&kernel.key), target, &identity.signature, &identity.options, &identity.stores];
        let name = parts.join("\0");
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}\0{count}") }
    };
    kernels.iter().map(name).collect()
}

/// The same for a kernel and metric in every run, whatever the figures.
fn fingerprint(lasting_name: &str, metric: &str) -> String {
    let digest = Sha256::new().chain_update(lasting_name).chain_update([0]).chain_update(metric).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// A relative URI: everything but unreserved characters and `/` is encoded (RFC 3986, 2.3).
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::triton::Identity;

    #[test]
    fn paths_become_relative_uris() {
        assert_eq!(uri("a b/lib.so!hip_fatbin[0]"), "a%20b/lib.so%21hip_fatbin%5B0%5D");
        assert_eq!(uri("gfx942:xnack+"), "gfx942%3Axnack%2B"); // a colon would make it a scheme
    }

    #[test]
    fn names_last_when_the_folder_of_a_cache_changes() {
        let identity = |stores: &str| Some(Identity { stores: stores.into(), ..Identity::default() });
        let kernel = |key: &str, identity| {
            let kernel = crate::report::kernel(key, None, None, |_| Judgement::Same);
            Kernel { identity, ..kernel }
        };
        let names = |places: [&str; 4]| {
            let [a, b, c, d] = places.map(|place| format!("{place}/f::f"));
            let kernels =
                [kernel(&a, identity("64")), kernel(&b, identity("128")), kernel(&c, identity("64")), kernel(&d, None)];
            lasting_names(&kernels)
        };
        let before = names(["h1", "h2", "h3", "place"]);
        assert_eq!(before, names(["k1", "k2", "k3", "place"]));
        assert_eq!(before.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{before:?}");
        assert_ne!(before[3], names(["h1", "h2", "h3", "other"])[3]);
    }

    #[test]
    fn fingerprints_tell_kernels_and_metrics_apart() {
        assert_ne!(fingerprint("a", "bc"), fingerprint("ab", "c"));
        assert_eq!(fingerprint("a", "vgpr").len(), 32);
    }
}
