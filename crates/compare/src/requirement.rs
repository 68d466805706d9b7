//! What outputs have to fulfil: `--require bits`, or bounds (`cos=0.999,norm=1e-3`), and the rule of `co_compare`.
//!
//! That NaN and infinity sit at the same places is always required. What the statistics do not say is never taken for
//! fulfilled: an outcome is met, missed or not established.

use crate::error::{Error, Result};
use crate::stats::Stats;
use std::fmt;
use std::str::FromStr;

/// The bounds of `co_compare`'s CLOSE.
pub const CLOSE: [Bound; 2] =
    [Bound { measure: Measure::Cos, value: 0.999 }, Bound { measure: Measure::Norm, value: 1e-3 }];

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// At least: the cosine of the angle between the outputs.
    Cos,
    /// At most: the length of the difference relative to the reference's.
    Norm,
    /// At most: the largest difference.
    MaxAbs,
    /// At most: the largest difference relative to the reference's element.
    MaxRel,
    /// At most: the largest distance in units in the last place.
    Ulp,
}

/// Each measure and its word.
const MEASURES: [(Measure, &str); 5] = [
    (Measure::Cos, "cos"),
    (Measure::Norm, "norm"),
    (Measure::MaxAbs, "max_abs"),
    (Measure::MaxRel, "max_rel"),
    (Measure::Ulp, "ulp"),
];

/// A measure and how far it may go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// What is measured.
    pub measure: Measure,
    /// The bound.
    pub value: f64,
}

/// A requirement.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Requirement {
    /// All bits are the same.
    #[default]
    Bits,
    /// All bounds are kept.
    Bounds(Vec<Bound>),
}

/// Whether something is fulfilled; later ones outweigh earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// It is.
    Met,
    /// The statistics do not say.
    NotEstablished,
    /// It is not.
    Missed,
}

/// One thing that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Whether it is fulfilled.
    pub outcome: Outcome,
    /// What was required and found: `cos 0.99812 < 0.999`.
    pub text: String,
}

/// Everything that was checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The worst outcome.
    pub outcome: Outcome,
    /// Each.
    pub findings: Vec<Finding>,
}

impl Requirement {
    /// Checks outputs.
    pub fn check(&self, stats: &Stats) -> Judgement {
        let mut findings = vec![evidence(stats), specials(stats)];
        match self {
            Requirement::Bits => findings.push(Finding {
                outcome: if stats.mismatches == 0 { Outcome::Met } else { Outcome::Missed },
                text: format!("bits: {} of {} elements differ", stats.mismatches, stats.elements),
            }),
            // A cosine of zeros cannot be computed, and need not be.
            Requirement::Bounds(_) if stats.mismatches == 0 => {
                findings.push(Finding { outcome: Outcome::Met, text: "all bits are the same".into() });
            }
            Requirement::Bounds(bounds) => findings.extend(bounds.iter().map(|bound| bound.check(stats))),
        }
        let outcome = findings.iter().map(|finding| finding.outcome).max().unwrap_or(Outcome::NotEstablished);
        Judgement { outcome, findings }
    }
}

/// Without numbers that are compared nothing is known.
fn evidence(stats: &Stats) -> Finding {
    let outcome = if stats.finite > 0 { Outcome::Met } else { Outcome::NotEstablished };
    Finding { outcome, text: format!("{} of {} pairs are finite numbers", stats.finite, stats.elements) }
}

fn specials(stats: &Stats) -> Finding {
    let outcome = if stats.special_mismatches == 0 { Outcome::Met } else { Outcome::Missed };
    Finding {
        outcome,
        text: format!("NaN or Inf at {} places where the other has not the same", stats.special_mismatches),
    }
}

impl Bound {
    fn check(self, stats: &Stats) -> Finding {
        let found = match self.measure {
            Measure::Cos => stats.cos,
            Measure::Norm => stats.relative_norm,
            Measure::MaxAbs => Some(stats.max_abs),
            Measure::MaxRel => Some(stats.max_rel),
            Measure::Ulp => Some(stats.max_ulp as f64),
        };
        let Some(found) = found else {
            return Finding { outcome: Outcome::NotEstablished, text: format!("{self}: it cannot be computed") };
        };
        let is_floor = self.measure == Measure::Cos;
        let met = if is_floor { found >= self.value } else { found <= self.value };
        let sign = match (is_floor, met) {
            (true, true) => "≥",
            (true, false) => "<",
            (false, true) => "≤",
            (false, false) => ">",
        };
        let outcome = if met { Outcome::Met } else { Outcome::Missed };
        Finding { outcome, text: format!("{} {found} {sign} {}", self.measure, self.value) }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = MEASURES.iter().find(|(measure, _)| measure == self).map_or("", |(_, word)| word);
        f.write_str(word)
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.measure, self.value)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Bits => f.write_str("bits"),
            Requirement::Bounds(bounds) => {
                let bounds: Vec<String> = bounds.iter().map(Bound::to_string).collect();
                f.write_str(&bounds.join(","))
            }
        }
    }
}

impl FromStr for Requirement {
    type Err = Error;

    fn from_str(text: &str) -> Result<Requirement> {
        if text.trim() == "bits" {
            return Ok(Requirement::Bits);
        }
        let bounds: Vec<Bound> = text.split(',').map(|part| part.trim().parse()).collect::<Result<_>>()?;
        for (index, bound) in bounds.iter().enumerate() {
            if bounds[..index].iter().any(|other| other.measure == bound.measure) {
                return Err(Error::new(format!("requirement `{text}` bounds `{}` twice", bound.measure)));
            }
        }
        // Twice the output has a cosine of 1, and so has a thousandth of it.
        if bounds.iter().all(|bound| bound.measure == Measure::Cos) {
            return Err(Error::new(format!(
                "requirement `{text}`: the cosine does not see a wrong size; bound norm=, max_abs=, max_rel= or ulp= too, as in \
                 {text},norm=1e-3"
            )));
        }
        Ok(Requirement::Bounds(bounds))
    }
}

impl FromStr for Bound {
    type Err = Error;

    fn from_str(text: &str) -> Result<Bound> {
        let known = || {
            let words: Vec<String> = MEASURES.iter().map(|(_, word)| format!("{word}=")).collect();
            Error::new(format!("requirement `{text}`: expected `bits`, or bounds out of {}", words.join(", ")))
        };
        let (word, number) = text.split_once('=').ok_or_else(known)?;
        let &(measure, _) = MEASURES.iter().find(|(_, known)| *known == word.trim()).ok_or_else(known)?;
        let value: f64 =
            number.trim().parse().map_err(|_| Error::new(format!("`{number}` in `{text}` is no number")))?;
        // A bound that anything keeps is a mistake: all zeros have a relative norm of 1 and a relative difference of 1.
        let (is_bound, expected) = match measure {
            Measure::Cos => (value > 0.0 && value <= 1.0, "above 0 and at most 1"),
            Measure::Norm | Measure::MaxRel => ((0.0..1.0).contains(&value), "0 or above, and below 1"),
            Measure::MaxAbs => ((0.0..=f64::MAX).contains(&value), "0 or above, and finite"),
            Measure::Ulp => {
                (value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value), "a whole number below 2^32")
            }
        };
        if !is_bound {
            return Err(Error::new(format!("`{text}`: expected {expected}")));
        }
        Ok(Bound { measure, value })
    }
}

/// What `co_compare` says of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeedVerdict {
    /// `[PASS]`: bit-identical with every fill.
    Pass,
    /// `[CLOSE]`: not identical, but within [`CLOSE`] with every fill, a signed one among them.
    Close,
    /// `[FAIL]`: neither.
    Fail,
    /// Nothing was compared.
    NotEstablished,
}

/// The rule of `co_compare`: `unsigned` is the comparison with its own, non-negative inputs, `signed` the one with
/// inputs of both signs, if it was made. The first alone cannot tell wrong from right by its cosine: a constant
/// output reaches 0.9994.
pub fn seed_verdict(unsigned: &Stats, signed: Option<&Stats>) -> SeedVerdict {
    let all = || [Some(unsigned), signed].into_iter().flatten();
    let worst = |requirement: Requirement| all().map(|stats| requirement.check(stats).outcome).max();
    let bounds = worst(Requirement::Bounds(CLOSE.to_vec()));
    match worst(Requirement::Bits) {
        Some(Outcome::Met) => SeedVerdict::Pass,
        Some(Outcome::NotEstablished) | None => SeedVerdict::NotEstablished,
        Some(Outcome::Missed) if signed.is_some() && bounds == Some(Outcome::Met) => SeedVerdict::Close,
        Some(Outcome::Missed) => SeedVerdict::Fail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_that_hold_whatever_the_output_is_are_refused() {
        let refused = |text: &str| text.parse::<Requirement>().map(|_| ()).map_err(|why| why.to_string());
        for (text, part) in [
            ("cos=0.999", "as in cos=0.999,norm=1e-3"),
            ("cos=1.0", "the cosine does not see a wrong size"),
            ("cos=0,norm=1e-3", "`cos=0`: expected above 0 and at most 1"),
            ("cos=-1", "above 0 and at most 1"),
            ("cos=nan,ulp=1", "above 0 and at most 1"),
            ("norm=1", "0 or above, and below 1"),
            ("norm=-0.1", "0 or above, and below 1"),
            ("max_rel=1", "0 or above, and below 1"),
            ("max_rel=inf", "0 or above, and below 1"),
            ("max_abs=inf", "0 or above, and finite"),
            ("ulp=1.5", "a whole number below 2^32"),
            ("ulp=4294967296", "a whole number below 2^32"),
            ("norm=1e-3,norm=1e-2", "twice"),
            ("", "expected `bits`"),
        ] {
            let said = refused(text).expect_err(text);
            assert!(said.contains(part), "{text}: {said}");
        }
        for text in ["bits", "cos=1,norm=0", "max_abs=3", "max_rel=0.5", "ulp=4294967295", "cos=0.999, ulp=2"] {
            assert_eq!(refused(text), Ok(()), "{text}");
        }
    }
}
