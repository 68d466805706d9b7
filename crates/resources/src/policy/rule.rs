//! One rule: which increase it accepts, for which kernels, and how the user wrote it.

use std::fmt;

use super::pattern::{Names, Pattern};
use crate::metric::Metric;

/// Accepts some increases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The kernels that it is for; none means all.
    pub pattern: Option<Pattern>,
    /// What it accepts.
    pub accepts: Accepts,
    /// The option that it was given by, or its place in a file and its text.
    pub origin: String,
    /// Why, where the user says so.
    pub reason: Option<String>,
}

/// What a rule accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepts {
    /// Any known change for the worse.
    Everything,
    /// An increase of one metric up to a size.
    Increase(Metric, Allowance),
}

/// The largest increase that is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// So many more.
    By(u64),
    /// So many hundredths of a per cent of the figure before.
    ByHundredthsOfPercent(u64),
}

impl Rule {
    /// Reads what `--allow` takes: `METRIC=+N`, `METRIC=+N%`, or `PATTERN:METRIC=…`. The last `:` separates, as no
    /// metric has one in its name.
    ///
    /// # Errors
    /// What is wrong, and what may stand there.
    pub fn parse_allow(text: &str) -> Result<Rule, String> {
        let (left, allowance) = text
            .rsplit_once('=')
            .ok_or_else(|| format!("`{text}` has no `=`; expected METRIC=+N, METRIC=+N% or PATTERN:METRIC=+N"))?;
        let (pattern, metric) = match left.rsplit_once(':') {
            Some((pattern, metric)) => (Some(Pattern::parse(pattern)?), metric),
            None => (None, left),
        };
        let accepts = Accepts::Increase(metric_named(metric)?, Allowance::parse(allowance)?);
        Ok(Rule { pattern, accepts, origin: format!("--allow {text}"), reason: None })
    }

    /// What `--allow-kernel` means.
    pub fn everything(pattern: Pattern, origin: &str) -> Rule {
        Rule { pattern: Some(pattern), accepts: Accepts::Everything, origin: origin.to_owned(), reason: None }
    }

    /// Whether it is for this kernel.
    pub fn is_for(&self, kernel: Names<'_>) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.fits_any(kernel))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, " ({reason})"))
    }
}

impl Accepts {
    /// Whether it has a say in this metric.
    pub fn is_about(&self, metric: Metric) -> bool {
        match self {
            Accepts::Everything => true,
            Accepts::Increase(own, _) => *own == metric,
        }
    }

    /// Whether it accepts that `metric` rose from `before` to `after`.
    pub fn increase(&self, metric: Metric, before: u64, after: u64) -> bool {
        match self {
            Accepts::Everything => true,
            Accepts::Increase(own, allowance) => *own == metric && allowance.holds(before, after),
        }
    }
}

impl Allowance {
    /// Reads `+4` or `+5%`; a part of a per cent has at most two digits behind the point.
    ///
    /// # Errors
    /// What was found and what is expected.
    pub fn parse(text: &str) -> Result<Allowance, String> {
        let wrong = || format!("`{text}` is no increase; expected +N or +N%, such as +4 or +5%");
        let number = text.strip_prefix('+').ok_or_else(wrong)?;
        let digits = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        let Some(percent) = number.strip_suffix('%') else { return digits(number).map(Allowance::By) };
        let (whole, part) = percent.split_once('.').unwrap_or((percent, "0"));
        if part.len() > 2 {
            return Err(wrong());
        }
        let hundredths = digits(whole)?.checked_mul(100).ok_or_else(wrong)?;
        let part = digits(part)? * if part.len() == 1 { 10 } else { 1 };
        hundredths.checked_add(part).map(Allowance::ByHundredthsOfPercent).ok_or_else(wrong)
    }

    fn holds(self, before: u64, after: u64) -> bool {
        let increase = u128::from(after.saturating_sub(before));
        match self {
            Allowance::By(most) => increase <= u128::from(most),
            Allowance::ByHundredthsOfPercent(most) => increase * 10_000 <= u128::from(before) * u128::from(most),
        }
    }
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Allowance::By(most) => write!(f, "+{most}"),
            Allowance::ByHundredthsOfPercent(most) if most % 100 == 0 => write!(f, "+{}%", most / 100),
            Allowance::ByHundredthsOfPercent(most) => write!(f, "+{}.{:02}%", most / 100, most % 100),
        }
    }
}

/// The metric of that name.
///
/// # Errors
/// There is none; names those that there are.
pub fn metric_named(name: &str) -> Result<Metric, String> {
    Metric::named(name).ok_or_else(|| {
        let known: Vec<&str> = Metric::all().map(Metric::name).collect();
        format!("`{name}` is no metric; known are {}", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowances_read_back() {
        for text in ["+0", "+4", "+5%", "+2.50%", "+0.01%", "+18446744073709551615"] {
            assert_eq!(Allowance::parse(text).expect(text).to_string(), text);
        }
        for text in
            ["4", "-4", "+", "+%", "++4", "+4 ", "+1.234%", "+.5%", "+1.%", "+99999999999999999999", "+1e3", "+٤"]
        {
            assert!(Allowance::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_colon_ends_the_pattern() {
        let rule = Rule::parse_allow("ns::gemm<a=b>:vgpr=+4").expect("a rule");
        assert_eq!(rule.pattern.expect("a pattern").as_str(), "ns::gemm<a=b>");
        assert_eq!(rule.accepts, Accepts::Increase(Metric::Vgpr, Allowance::By(4)));
        for text in ["vgpr", "vgprs=+4", ":vgpr=+4", "vgpr=4", "vgpr=+4,sgpr=+2"] {
            assert!(Rule::parse_allow(text).is_err(), "{text}");
        }
    }
}
