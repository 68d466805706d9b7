//! What of stdout must agree with a conformance case: table cells, kinds of rows, counts and the verdict, not wording.

use regex::RegexBuilder;

/// The exit code and the last line of stdout say the same.
pub fn verdict(stdout: &str, exit: i32) -> Option<String> {
    let expected = match exit {
        0 => "RESULT: OK",
        1 => "RESULT: REGRESSION",
        2 => "RESULT: NOT TRUSTWORTHY",
        _ => return Some(format!("exit code {exit} is none of 0, 1 and 2")),
    };
    let last = stdout.lines().rev().find(|line| !line.is_empty()).unwrap_or("");
    (last != expected).then(|| format!("the last line `{last}` does not say what exit code {exit} says"))
}

/// Differences between the expected lines and the comparable part of `stdout`.
pub fn table(expected: &str, stdout: &str) -> Vec<String> {
    let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
    let mut actual: Vec<String> = stdout.lines().filter_map(comparable).collect();
    // Notes stand for themselves, once, at the end: where none is expected, some are allowed.
    let notes = stdout.lines().any(|line| line.trim_start().starts_with("note:"));
    if notes && expected.iter().any(|line| line == NOTES) {
        actual.push(NOTES.into());
    }
    if expected == actual {
        return Vec::new();
    }
    let missing = expected.iter().filter(|line| !actual.contains(line)).map(|line| format!("missing: {line}"));
    let extra = actual.iter().filter(|line| !expected.contains(line)).map(|line| format!("unexpected: {line}"));
    let mut differences: Vec<String> = missing.chain(extra).collect();
    if differences.is_empty() {
        differences.push("the same lines, but another order or number of them".into());
    }
    differences
}

const NOTES: &str = "notes";

/// A line with single spaces and without free text; none for lines whose wording and presence are free.
fn comparable(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let line = words.join(" ");
    let is_rule = line.bytes().all(|byte| byte == b'-');
    let is_legend = line.starts_with("* = regression") || line.starts_with("vgpr = total");
    let is_side = matches!(words.first(), Some(&("before" | "after")));
    if is_rule || is_legend || is_side && words.len() > 1 || line.starts_with("note:") {
        return None;
    }
    if let Some((row, _reason)) = line.split_once("BLOCKED: ") {
        return Some(format!("{row}BLOCKED:"));
    }
    if let Some((count, _)) = line.split_once(" kernel(s)/metric(s) not trustworthy")
        && count.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some("some not trustworthy".into());
    }
    Some(line)
}

/// Whether one line of a `has` file holds: `STREAM ~ REGEX`, `STREAM !~ REGEX` or `width <= N`.
pub fn holds(claim: &str, stdout: &str, stderr: &str, report: &str) -> Result<bool, String> {
    let wrong = || format!("not a claim: {claim}");
    let (subject, rest) = claim.split_once(' ').ok_or_else(wrong)?;
    let (operator, argument) = rest.trim_start().split_once(' ').ok_or_else(wrong)?;
    if subject == "width" {
        let limit: usize = argument.trim().parse().map_err(|_| wrong())?;
        return Ok(stdout.lines().all(|line| line.chars().count() <= limit));
    }
    let text = match subject {
        "stdout" => stdout,
        "stderr" => stderr,
        "json" => report,
        _ => return Err(wrong()),
    };
    let pattern = RegexBuilder::new(argument.trim_start()).case_insensitive(true).multi_line(true).build();
    let found = pattern.map_err(|error| format!("{claim}: {error}"))?.is_match(text);
    match operator {
        "~" => Ok(found),
        "!~" => Ok(!found),
        _ => Err(wrong()),
    }
}
