//! Values of symbols. All are constants by the end of the file, whatever the order of their definitions.

use asm::Expr;
use asm::expr::{EvalError, Scope};

use super::scan::Scan;

/// The deepest chain of symbols that is followed.
const MAX_CHAIN: usize = 100;
/// Symbols that one expression may look up: shared symbols could make a full walk exponential.
const MAX_LOOKUPS: u32 = 10_000;

/// Evaluates expressions over a file's symbols.
pub struct Values<'s, 'a> {
    scan: &'s Scan<'a>,
    target: Option<isa::Target>,
    pending: Vec<Vec<u8>>,
    budget: u32,
}

/// A resource symbol's definition.
pub struct Definition {
    /// The value, or why there is none.
    pub value: Result<i64, EvalError>,
    /// Offset of the line.
    pub at: usize,
    /// Offset and text of a later definition that disagrees.
    pub conflict: Option<(usize, String)>,
}

impl<'s, 'a> Values<'s, 'a> {
    /// Values of the symbols of `scan`; functions are those of `target`.
    pub fn new(scan: &'s Scan<'a>, target: Option<isa::Target>) -> Self {
        Values { scan, target, pending: Vec::new(), budget: 0 }
    }

    /// The value of an expression.
    pub fn eval(&mut self, expression: &[u8]) -> Result<i64, EvalError> {
        self.budget = MAX_LOOKUPS;
        Expr(expression).eval(self)
    }

    /// The resource symbol `kernel.suffix`, also as `.Lkernel.suffix`; none when the file does not define it.
    pub fn resource(&mut self, kernel: &str, suffix: &str) -> Option<Definition> {
        let local = format!(".L{kernel}.{suffix}");
        let scan = self.scan;
        let mut definitions: Vec<_> =
            [&local[2..], &local].iter().flat_map(|name| scan.assignments(name.as_bytes())).collect();
        definitions.sort_by_key(|definition| definition.at);
        let (first, later) = definitions.split_first()?;
        let value = self.eval(first.value);
        let conflict = later.iter().find_map(|definition| {
            let differs = self.eval(definition.value) != value;
            differs.then(|| (definition.at, String::from_utf8_lossy(definition.value).into_owned()))
        });
        Some(Definition { value, at: first.at, conflict })
    }
}

impl Scope for Values<'_, '_> {
    fn symbol(&mut self, name: &[u8]) -> Result<i64, EvalError> {
        let shown = || String::from_utf8_lossy(name).into_owned();
        let definition = self.scan.assignments(name).first().ok_or_else(|| EvalError::Undefined(shown()))?;
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
                let total = target.total_vgprs(u64::try_from(arch).ok()?, u64::try_from(acc).ok()?);
                i64::try_from(*total.end()).ok()
            }
            (b"extrasgprs", &[vcc, flat_scratch, xnack]) => {
                i64::try_from(target.extra_sgprs(vcc != 0, flat_scratch != 0, xnack != 0)).ok()
            }
            _ => None,
        }
    }
}
