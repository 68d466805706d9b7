//! Numbers out of JSON, which has neither infinity nor NaN: they are written as `null`. A report with one must still be read,
//! or a run that ended is lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

/// `null` is NaN.
pub fn or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// `null` is infinity, for figures that are never NaN or negative.
pub fn or_infinite<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::INFINITY))
}

/// As [`or_nan`], by name.
pub fn each_or_nan<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let found = BTreeMap::<String, Option<f64>>::deserialize(from)?;
    Ok(found.into_iter().map(|(name, number)| (name, number.unwrap_or(f64::NAN))).collect())
}
