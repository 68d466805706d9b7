//! Absolute expressions as LLVM prints them in `.set` and `.amdhsa_*`: integers, symbols, unary and binary operators,
//! and the AMDGPU functions `max`, `or`, `alignto`, `totalnumvgprs`, `extrasgprs`, `occupancy`.
//!
//! The caller gives the symbols' values and the functions that depend on the target. Precedence is LLVM's for ELF
//! targets, see `OPERATORS`.

use std::fmt;

use crate::symbol;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// Not in the grammar; what was found and at which byte of the expression.
    Syntax(String),
    /// A symbol without a definition.
    Undefined(String),
    /// A symbol that is defined by itself.
    Cycle(String),
    /// A function that is not known, or not for this target.
    Function(String),
    /// The value does not fit 64 bits, or a division by zero.
    Range(String),
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::Syntax(what) => write!(f, "{what}"),
            EvalError::Undefined(name) => write!(f, "`{name}` is not defined in this file"),
            EvalError::Cycle(name) => write!(f, "`{name}` is defined by itself"),
            EvalError::Function(name) => write!(f, "function `{name}` is not known for this target"),
            EvalError::Range(what) => write!(f, "{what}"),
        }
    }
}

/// What an expression may ask of its surroundings.
pub trait Scope {
    /// The value of a symbol.
    fn symbol(&mut self, name: &[u8]) -> Result<i64, EvalError>;
    /// The value of a function that this module does not know (`max` and `or` it knows itself).
    fn function(&mut self, name: &[u8], arguments: &[i64]) -> Option<i64>;
}

/// Nesting that is followed; deeper text is an error instead of a stack overflow.
const MAX_DEPTH: u32 = 200;

/// An expression, as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expr<'a>(pub &'a [u8]);

impl<'a> Expr<'a> {
    /// The value if the text is one unsigned decimal integer, the common case.
    #[inline]
    pub fn as_decimal(self) -> Option<i64> {
        let digits = self.0;
        if digits.is_empty() || digits.len() > 18 || (digits[0] == b'0' && digits.len() > 1) {
            return None;
        }
        digits.iter().try_fold(0i64, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
    }

    /// Evaluates the expression.
    pub fn eval(self, scope: &mut dyn Scope) -> Result<i64, EvalError> {
        if let Some(value) = self.as_decimal() {
            return Ok(value);
        }
        let mut parser = Parser { text: self.0, at: 0, depth: 0, scope };
        let value = parser.binary(0)?;
        parser.blanks();
        match parser.text.get(parser.at) {
            None => Ok(value),
            Some(_) => Err(parser.unexpected()),
        }
    }
}

struct Parser<'a, 's> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    scope: &'s mut dyn Scope,
}

/// A binary operator's spelling and its rank; a higher rank binds tighter. As LLVM's `getGNUBinOpPrecedence`.
const OPERATORS: &[(&[u8], u8)] = &[
    (b"||", 1),
    (b"&&", 2),
    (b"==", 3),
    (b"!=", 3),
    (b"<>", 3),
    (b"<<", 6),
    (b">>", 6),
    (b"<=", 3),
    (b">=", 3),
    (b"<", 3),
    (b">", 3),
    (b"+", 4),
    (b"-", 4),
    (b"|", 5),
    (b"^", 5),
    (b"&", 5),
    (b"*", 6),
    (b"/", 6),
    (b"%", 6),
];

impl Parser<'_, '_> {
    fn blanks(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn unexpected(&self) -> EvalError {
        let rest = String::from_utf8_lossy(self.text.get(self.at..).unwrap_or_default());
        match rest.chars().next() {
            Some(c) => EvalError::Syntax(format!("unexpected `{c}` at byte {} of the expression", self.at + 1)),
            None => EvalError::Syntax("the expression ends early".into()),
        }
    }

    fn operator(&mut self) -> Option<(&'static [u8], u8)> {
        self.blanks();
        let rest = self.text.get(self.at..)?;
        OPERATORS.iter().find(|(op, _)| rest.starts_with(op)).copied()
    }

    fn binary(&mut self, min_rank: u8) -> Result<i64, EvalError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(EvalError::Syntax(format!("nested more than {MAX_DEPTH} deep")));
        }
        let mut left = self.unary()?;
        while let Some((op, rank)) = self.operator().filter(|&(_, rank)| rank > min_rank) {
            self.at += op.len();
            let right = self.binary(rank)?;
            left = apply(op, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64, EvalError> {
        self.blanks();
        let mut signs = Vec::new();
        while let Some(&sign @ (b'-' | b'~' | b'+' | b'!')) = self.text.get(self.at) {
            signs.push(sign);
            self.at += 1;
            self.blanks();
        }
        let value = self.primary()?;
        Ok(signs.iter().rev().fold(value, |v, sign| match sign {
            b'-' => v.wrapping_neg(),
            b'~' => !v,
            b'!' => i64::from(v == 0),
            _ => v,
        }))
    }

    fn primary(&mut self) -> Result<i64, EvalError> {
        match self.text.get(self.at) {
            Some(b'(') => {
                self.at += 1;
                let value = self.binary(0)?;
                self.expect(b')')?;
                Ok(value)
            }
            Some(b'0'..=b'9') => self.number(),
            Some(_) => self.name(),
            None => Err(self.unexpected()),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), EvalError> {
        self.blanks();
        if self.text.get(self.at) != Some(&byte) {
            return Err(self.unexpected());
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<i64, EvalError> {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(rest.len());
        self.at += end;
        let text = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let (digits, radix) = match text.as_bytes() {
            [b'0', b'x', ..] => (&text[2..], 16),
            [b'0', b'b', ..] => (&text[2..], 2),
            [b'0', _, ..] => (&text[1..], 8),
            _ => (&text[..], 10),
        };
        u64::from_str_radix(digits, radix).map(|v| v as i64).map_err(|_| {
            let shown: String = text.chars().take(24).collect();
            let dots = if text.len() > 24 { "…" } else { "" };
            if !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)) {
                EvalError::Range(format!("`{shown}{dots}` ({} digits) is too large to be a count", digits.len()))
            } else {
                EvalError::Syntax(format!("`{shown}{dots}` is not a number"))
            }
        })
    }

    fn name(&mut self) -> Result<i64, EvalError> {
        let Some((name, rest)) = symbol::split(&self.text[self.at..]) else { return Err(self.unexpected()) };
        self.at = self.text.len() - rest.len();
        self.blanks();
        if self.text.get(self.at) != Some(&b'(') {
            return self.scope.symbol(&name);
        }
        self.at += 1;
        let arguments = self.arguments()?;
        let value = match (name.as_ref(), arguments.as_slice()) {
            (b"max", all) => all.iter().copied().max(),
            (b"or", all) => Some(all.iter().fold(0, |a, b| a | b)),
            (b"alignto", &[value, align]) if align > 0 && value >= 0 => {
                value.checked_add(align - 1).map(|v| v / align * align)
            }
            (_, all) => self.scope.function(&name, all),
        };
        value.ok_or_else(|| EvalError::Function(String::from_utf8_lossy(&name).into_owned()))
    }

    fn arguments(&mut self) -> Result<Vec<i64>, EvalError> {
        let mut arguments = Vec::new();
        self.blanks();
        if self.text.get(self.at) == Some(&b')') {
            self.at += 1;
            return Ok(arguments);
        }
        loop {
            arguments.push(self.binary(0)?);
            self.blanks();
            match self.text.get(self.at) {
                Some(b',') => self.at += 1,
                Some(b')') => {
                    self.at += 1;
                    return Ok(arguments);
                }
                _ => return Err(self.unexpected()),
            }
        }
    }
}

fn apply(op: &[u8], a: i64, b: i64) -> Result<i64, EvalError> {
    // LLVM gives comparisons and logical operators the value -1 or 0 for ELF targets.
    let truth = |t: bool| if t { -1 } else { 0 };
    Ok(match op {
        b"+" => a.wrapping_add(b),
        b"-" => a.wrapping_sub(b),
        b"*" => a.wrapping_mul(b),
        b"/" | b"%" if b == 0 => return Err(EvalError::Range("division by zero".into())),
        b"/" => a.wrapping_div(b),
        b"%" => a.wrapping_rem(b),
        b"&" => a & b,
        b"|" => a | b,
        b"^" => a ^ b,
        b"<<" | b">>" if !(0..64).contains(&b) => return Err(EvalError::Range(format!("shift by {b}"))),
        b"<<" => a << b,
        b">>" => ((a as u64) >> b) as i64,
        b"==" => truth(a == b),
        b"!=" | b"<>" => truth(a != b),
        b"<" => truth(a < b),
        b"<=" => truth(a <= b),
        b">" => truth(a > b),
        b">=" => truth(a >= b),
        b"&&" => i64::from(a != 0 && b != 0),
        _ => i64::from(a != 0 || b != 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixed;
    impl Scope for Fixed {
        fn symbol(&mut self, name: &[u8]) -> Result<i64, EvalError> {
            match name {
                b"helper.num_vgpr" => Ok(40),
                b"k<float, 4>.num_vgpr" => Ok(2),
                _ => Err(EvalError::Undefined(String::from_utf8_lossy(name).into_owned())),
            }
        }
        fn function(&mut self, name: &[u8], a: &[i64]) -> Option<i64> {
            (name == b"totalnumvgprs").then(|| a.iter().sum())
        }
    }

    fn eval(text: &str) -> Result<i64, EvalError> {
        Expr(text.as_bytes()).eval(&mut Fixed)
    }

    #[test]
    fn values_equal_llvm_mc() {
        // Each value was read off `llvm-mc-22 -triple=amdgcn-amd-amdhsa` as `.quad EXPR`.
        for (text, want) in [
            ("48", 48),
            ("0x30", 48),
            ("010", 8),
            ("-1", -1),
            ("max(48, helper.num_vgpr)", 48),
            ("max(4, \"k<float, 4>.num_vgpr\")", 4),
            ("or(0, 1, 4)", 5),
            ("((alignto(max(1, 41), 4)/4)-1+1)*4", 44),
            ("(((((alignto(max(1, 41), 4)/4)-1)&~65536)&63)+1)*4", 44),
            ("max(totalnumvgprs(8, 32), 1, 0)", 40),
            ("1+2*3-4", 3),
            ("1|2+4", 7),
            ("6&3+1", 3),
            ("1<<4-1", 15),
            ("7/2%2", 1),
            ("3==3", -1),
        ] {
            assert_eq!(eval(text), Ok(want), "{text}");
        }
    }

    #[test]
    fn what_has_no_value_says_why() {
        assert!(matches!(eval("max(1, nobody)"), Err(EvalError::Undefined(n)) if n == "nobody"));
        assert!(matches!(eval("1/0"), Err(EvalError::Range(_))));
        assert!(matches!(eval(&"9".repeat(4301)), Err(EvalError::Range(t)) if t.contains("4301 digits")));
        assert!(matches!(eval(&"(".repeat(100_000)), Err(EvalError::Syntax(_))));
        assert!(matches!(eval("-"), Err(EvalError::Syntax(_))));
        assert!(matches!(eval("1 2"), Err(EvalError::Syntax(_))));
        assert!(matches!(eval("foo(1)"), Err(EvalError::Function(_))));
    }
}
