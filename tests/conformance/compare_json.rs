//! What of a report must agree with a conformance case: every expected key and value; keys of ours may be added.

use serde_json::Value;

/// Lists of free text, of which only their being empty or not is compared.
const FREE_LISTS: [&str; 4] = ["problems", "warnings", "blocked", "notes"];

/// Free text and lists that are not compared at all.
const UNCOMPARED: [&str; 2] = ["reason", "warnings"];

/// Every place where `actual` lacks or contradicts what is expected.
pub fn differences(expected: &Value, actual: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("report", None, expected, actual, &mut found);
    found
}

fn compare(place: &str, key: Option<&str>, expected: &Value, actual: &Value, found: &mut Vec<String>) {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            for (key, value) in expected.iter().filter(|(key, _)| !UNCOMPARED.contains(&key.as_str())) {
                match actual.get(key) {
                    Some(other) => compare(&format!("{place}.{key}"), Some(key), value, other, found),
                    None => found.push(format!("{place}.{key} is missing")),
                }
            }
        }
        // The expectation of a free list is the number 0 or 1: none or some.
        (Value::Number(some), Value::Array(items)) if key.is_some_and(|key| FREE_LISTS.contains(&key)) => {
            if some.as_u64() != Some(items.len().min(1) as u64) {
                found.push(format!(
                    "{place}: expected {}, got {items:?}",
                    if items.is_empty() { "some" } else { "none" }
                ));
            }
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            for (index, (value, other)) in expected.iter().zip(actual).enumerate() {
                compare(&format!("{place}[{index}]"), None, value, other, found);
            }
        }
        _ if expected == actual => {}
        _ => found.push(format!("{place}: expected {expected}, got {actual}")),
    }
}
