//! Expressions over named dimensions: `2*M*N*K`, `ceil_div(M, 128)`, `cu_count`.
//!
//! ```text
//! sum     = product (("+" | "-") product)*
//! product = unary (("*" | "/" | "%") unary)*
//! unary   = "-" unary | number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
//! ```
//!
//! Numbers are integers of 128 bits, or floating point where one is written so. A division that leaves a remainder is
//! an error: whoever means `floor_div` or `ceil_div` says it.

use std::collections::BTreeMap;
use std::fmt;

/// The deepest nesting that is read.
const MAX_DEPTH: u32 = 64;
/// The longest expression that is read, bytes.
const MAX_LENGTH: usize = 4096;

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A whole number.
    Int(i128),
    /// A floating-point number.
    Float(f64),
}

impl Value {
    /// As floating point.
    pub fn as_f64(self) -> f64 {
        match self {
            Value::Int(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(value) => value.fmt(f),
            Value::Float(value) => value.fmt(f),
        }
    }
}

/// Named values.
pub type Names = BTreeMap<String, Value>;

/// Evaluates `text`. The error says what is wrong and at which column.
pub fn evaluate(text: &str, names: &Names) -> Result<Value, String> {
    if text.len() > MAX_LENGTH {
        return Err(format!("the expression has {} bytes, at most {MAX_LENGTH} are read", text.len()));
    }
    let mut parser = Parser { text: text.as_bytes(), at: 0, depth: 0, names };
    let value = parser.sum()?;
    parser.skip_spaces();
    if parser.at < parser.text.len() {
        return Err(parser.error("expected an operator or the end"));
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    names: &'a Names,
}

impl Parser<'_> {
    fn error(&self, what: &str) -> String {
        format!("`{}`, column {}: {what}", String::from_utf8_lossy(self.text), self.at + 1)
    }

    fn skip_spaces(&mut self) {
        while self.text.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.skip_spaces();
        let found = self.text.get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        loop {
            let operator = match () {
                () if self.take(b'+') => b'+',
                () if self.take(b'-') => b'-',
                () => return Ok(value),
            };
            let right = self.product()?;
            value = self.apply(operator, value, right)?;
        }
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.unary()?;
        loop {
            let operator = match () {
                () if self.take(b'*') => b'*',
                () if self.take(b'/') => b'/',
                () if self.take(b'%') => b'%',
                () => return Ok(value),
            };
            let right = self.unary()?;
            value = self.apply(operator, value, right)?;
        }
    }

    fn unary(&mut self) -> Result<Value, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let value = if self.take(b'-') {
            match self.unary()? {
                Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(|| self.error("too large"))?,
                Value::Float(value) => Value::Float(-value),
            }
        } else if self.take(b'(') {
            let value = self.sum()?;
            if !self.take(b')') {
                return Err(self.error("expected `)`"));
            }
            value
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn atom(&mut self) -> Result<Value, String> {
        self.skip_spaces();
        let start = self.at;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        while self.text.get(self.at).copied().is_some_and(is_word) {
            let exponent = matches!(self.text[self.at], b'e' | b'E') && self.text[start].is_ascii_digit();
            let signed = exponent && !self.text[start..].starts_with(b"0x");
            self.at += 1;
            if signed && matches!(self.text.get(self.at), Some(b'-' | b'+')) {
                self.at += 1;
            }
        }
        let word = String::from_utf8_lossy(&self.text[start..self.at]).into_owned();
        match word.as_bytes().first() {
            None => Err(self.error("expected a number, a name or `(`")),
            Some(byte) if byte.is_ascii_digit() || *byte == b'.' => {
                number(&word).ok_or_else(|| self.error(&format!("`{word}` is no number")))
            }
            _ if self.take(b'(') => self.call(&word),
            _ => self.names.get(&word).copied().ok_or_else(|| {
                let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
                self.error(&format!("`{word}` is not known; known are {}", known.join(", ")))
            }),
        }
    }

    fn call(&mut self, name: &str) -> Result<Value, String> {
        let mut arguments = vec![self.sum()?];
        while self.take(b',') {
            arguments.push(self.sum()?);
        }
        if !self.take(b')') {
            return Err(self.error("expected `,` or `)`"));
        }
        let integers: Option<Vec<i128>> =
            arguments.iter().map(|value| if let Value::Int(value) = value { Some(*value) } else { None }).collect();
        let result = match (name, integers.as_deref()) {
            ("ceil_div", Some(&[a, b])) if b > 0 => a.checked_add(b - 1).map(|sum| sum.div_euclid(b)),
            ("floor_div", Some(&[a, b])) if b > 0 => Some(a.div_euclid(b)),
            ("align", Some(&[a, b])) if b > 0 => a.checked_add(b - 1).and_then(|sum| sum.div_euclid(b).checked_mul(b)),
            ("min", Some(values)) => values.iter().min().copied(),
            ("max", Some(values)) => values.iter().max().copied(),
            ("ceil_div" | "floor_div" | "align" | "min" | "max", _) => {
                let found: Vec<String> = arguments.iter().map(Value::to_string).collect();
                let expected = match name {
                    "min" | "max" => "whole numbers",
                    _ => "two whole numbers, the second above 0",
                };
                return Err(self.error(&format!("`{name}` takes {expected}; found {}", found.join(", "))));
            }
            _ => {
                return Err(
                    self.error(&format!("`{name}` is no function; there are ceil_div, floor_div, align, min, max"))
                );
            }
        };
        result.map(Value::Int).ok_or_else(|| self.error("too large"))
    }

    fn apply(&self, operator: u8, left: Value, right: Value) -> Result<Value, String> {
        let (Value::Int(a), Value::Int(b)) = (left, right) else {
            let (a, b) = (left.as_f64(), right.as_f64());
            return Ok(Value::Float(match operator {
                b'+' => a + b,
                b'-' => a - b,
                b'*' => a * b,
                b'/' => a / b,
                _ => a % b,
            }));
        };
        if b == 0 && matches!(operator, b'/' | b'%') {
            return Err(self.error("division by zero"));
        }
        let result = match operator {
            b'+' => a.checked_add(b),
            b'-' => a.checked_sub(b),
            b'*' => a.checked_mul(b),
            b'/' if a % b != 0 => {
                return Err(
                    self.error(&format!("{a}/{b} leaves a remainder; floor_div and ceil_div say what is meant"))
                );
            }
            b'/' => a.checked_div(b),
            _ => a.checked_rem(b),
        };
        result.map(Value::Int).ok_or_else(|| self.error("too large"))
    }
}

fn number(word: &str) -> Option<Value> {
    if let Some(digits) = word.strip_prefix("0x") {
        return i128::from_str_radix(digits, 16).ok().map(Value::Int);
    }
    let digits = word.replace('_', "");
    match digits.parse::<i128>() {
        Ok(value) => Some(Value::Int(value)),
        Err(_) if digits.bytes().all(|byte| byte.is_ascii_digit()) => None, // too large for an integer
        Err(_) => digits.parse::<f64>().ok().map(Value::Float),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        [("M", 131_072), ("N", 5760), ("K", 2880), ("cu_count", 256)]
            .map(|(name, value)| (name.to_owned(), Value::Int(value)))
            .into()
    }

    #[test]
    fn values_are_those_of_arithmetic() {
        for (text, value) in [
            ("2*M*N*K", 4_348_654_387_200),
            ("ceil_div(M + 1, 128)", 1025),
            ("floor_div(-7, 2)", -4),
            ("align(100, 64)", 128),
            ("max(1, cu_count - 200, 3)", 56),
            ("-(2 - 5) * 0x10", 48),
            ("7 % 4 - 10/5", 1),
            ("131_072", 131_072),
        ] {
            assert_eq!(evaluate(text, &names()), Ok(Value::Int(value)), "{text}");
        }
        assert_eq!(evaluate("1e-3*2", &names()), Ok(Value::Float(2e-3)));
        assert_eq!(evaluate("1.5 + 1", &names()), Ok(Value::Float(2.5)));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_column() {
        for (text, part) in [
            ("M/1000", "leaves a remainder"),
            ("M/0", "division by zero"),
            ("Q*2", "`Q` is not known; known are K, M, N, cu_count"),
            ("(M", "expected `)`"),
            ("M M", "column 3: expected an operator"),
            ("", "column 1: expected a number"),
            ("sin(1)", "no function"),
            ("ceil_div(1, 0)", "second above 0"),
            ("0x7fffffffffffffffffffffffffffffff + 1", "too large"),
            ("1..2", "no number"),
        ] {
            let error = evaluate(text, &names()).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
        let deep = "(".repeat(100_000);
        assert!(evaluate(&deep, &names()).is_err());
        assert!(evaluate(&"-".repeat(4000), &names()).expect_err("deep").contains("nested"));
    }
}
