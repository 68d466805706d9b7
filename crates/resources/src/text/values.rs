//! Values of symbols. All are constants by the end of the file, whatever the order of their definitions.

use std::collections::HashSet;

use asm::Expr;
use asm::expr::{EvalError, Scope};

use super::scan::{Assignment, Scan};

/// The deepest chain of symbols that is followed.
const MAX_CHAIN: usize = 100;

/// Evaluates expressions over a file's symbols.
pub struct Values<'s, 'a> {
    scan: &'s Scan<'a>,
    target: Option<isa::Target>,
    pending: Vec<Vec<u8>>,
    /// Evaluations left: expressions may share symbols so that a full walk would be exponential.
    budget: u32,
}

/// The value of a resource symbol, or why there is none.
pub enum Lookup {
    /// Not in the file.
    Missing,
    /// There, with its line; `conflict` says if it is there again with another value.
    Found {
        /// The first definition's value.
        value: Result<i64, EvalError>,
        /// The first definition's line.
        line: u32,
        /// Line and value of a later definition that disagrees.
        conflict: Option<(u32, String)>,
    },
}

impl<'s, 'a> Values<'s, 'a> {
    /// Values of the symbols of `scan`; functions are those of `target`.
    pub fn new(scan: &'s Scan<'a>, target: Option<isa::Target>) -> Self {
        Values { scan, target, pending: Vec::new(), budget: 0 }
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &[u8]) -> Result<i64, EvalError> {
        self.budget = 10_000;
        Expr(expression).eval(self)
    }

    /// The resource symbol `kernel.suffix`, also as `.Lkernel.suffix`.
    pub fn resource(&mut self, kernel: &str, suffix: &str) -> Lookup {
        let plain = format!("{kernel}.{suffix}");
        let local = format!(".L{plain}");
        let both = [&plain, &local].map(|name| self.scan.sets.get(name.as_bytes()).map_or(&[][..], Vec::as_slice));
        let mut definitions: Vec<Assignment<'a>> = both.concat();
        definitions.sort_by_key(|d| d.line);
        let Some((first, later)) = definitions.split_first() else { return Lookup::Missing };
        let value = self.eval(first.value);
        let conflict = later.iter().find_map(|d| {
            let again = self.eval(d.value);
            (again != value).then(|| (d.line, String::from_utf8_lossy(d.value).into_owned()))
        });
        Lookup::Found { value, line: first.line, conflict }
    }
}

impl Scope for Values<'_, '_> {
    fn symbol(&mut self, name: &[u8]) -> Result<i64, EvalError> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let Some(definition) = self.scan.sets.get(name).and_then(|d| d.first()) else {
            return Err(EvalError::Undefined(shown()));
        };
        if let Some(value) = Expr(definition.value).as_decimal() {
            return Ok(value);
        }
        if self.pending.len() >= MAX_CHAIN || self.pending.iter().any(|p| p == name) {
            return Err(EvalError::Cycle(shown()));
        }
        self.budget =
            self.budget.checked_sub(1).ok_or_else(|| EvalError::Range("the expression is too large".into()))?;
        self.pending.push(name.to_vec());
        let value = Expr(definition.value).eval(self);
        self.pending.pop();
        value
    }

    fn function(&mut self, name: &[u8], arguments: &[i64]) -> Option<i64> {
        let target = self.target?;
        match (name, arguments) {
            (b"totalnumvgprs", &[acc, arch]) => {
                Some(*target.total_vgprs(u64::try_from(arch).ok()?, u64::try_from(acc).ok()?).end() as i64)
            }
            (b"extrasgprs", &[vcc, flat_scratch, xnack]) => {
                Some(target.extra_sgprs(vcc != 0, flat_scratch != 0, xnack != 0) as i64)
            }
            _ => None,
        }
    }
}

/// Names of the symbols that a file defines more than once with different texts, sorted.
pub fn redefined<'s>(scan: &'s Scan<'_>) -> Vec<(&'s [u8], u32, u32)> {
    let mut found: Vec<_> = scan
        .sets
        .iter()
        .filter(|(_, definitions)| definitions.len() > 1)
        .filter(|(_, d)| d.iter().map(|d| d.value).collect::<HashSet<_>>().len() > 1)
        .map(|(name, d)| (name.as_ref(), d[0].line, d[d.len() - 1].line))
        .collect();
    found.sort_unstable();
    found
}
