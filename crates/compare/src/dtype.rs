//! Element types: one table of facts, and what follows from it: decoding, rounding, classes, ULP distances, packing.
//!
//! Sources: IEEE 754-2019 (f16, f32, f64); bfloat16 as f32 without its low half; *OCP 8-bit Floating Point
//! Specification (OFP8)* 1.0, table 1 (fp8 e4m3, e5m2); *OCP Microscaling Formats (MX) Specification* 1.0, sections
//! 5.3.2 to 5.4.1 (fp6, fp4, e8m0); FNUZ as in *8-bit Numerical Formats for Deep Neural Networks* (Noune et al.,
//! 2022), which gfx940 to gfx942 implement.

pub mod float;
pub mod packing;
pub mod ulp;

use crate::error::{Error, Result};
use float::{Format, Specials};
use std::fmt;
use std::str::FromStr;

/// An element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the table says what each is")]
pub enum Dtype {
    F64,
    F32,
    F16,
    Bf16,
    Fp8E4m3,
    Fp8E5m2,
    Fp8E4m3Fnuz,
    Fp8E5m2Fnuz,
    Fp6E2m3,
    Fp6E3m2,
    Fp4E2m1,
    E8m0,
    I8,
    U8,
    I16,
    I32,
    I64,
}

/// How the bits of an element are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sign, exponent, mantissa.
    Float(Format),
    /// 2^(bits - 127) without sign, zero or infinity; 0xFF is NaN.
    Scale,
    /// Two's complement.
    Signed,
    /// Binary.
    Unsigned,
}

/// What is known of an element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Which type.
    pub dtype: Dtype,
    /// Its name here.
    pub name: &'static str,
    /// What NumPy, PyTorch or Triton call it, accepted as well.
    pub aliases: &'static [&'static str],
    /// Bits of an element in memory.
    pub bits: u32,
    /// How they are read.
    pub kind: Kind,
}

/// The table, in the order of [`Dtype`].
pub const TABLE: [Facts; 17] = {
    use Dtype::{
        Bf16, E8m0, F16, F32, F64, Fp4E2m1, Fp6E2m3, Fp6E3m2, Fp8E4m3, Fp8E4m3Fnuz, Fp8E5m2, Fp8E5m2Fnuz, I8, I16, I32,
        I64, U8,
    };
    use Specials::{AllOnesNan, Fnuz, Ieee, None};
    [
        float(F64, "f64", &["float64", "double"], 11, 52, 1023, Ieee),
        float(F32, "f32", &["float32", "float"], 8, 23, 127, Ieee),
        float(F16, "f16", &["float16", "half"], 5, 10, 15, Ieee),
        float(Bf16, "bf16", &["bfloat16"], 8, 7, 127, Ieee),
        float(Fp8E4m3, "fp8_e4m3", &["float8_e4m3fn", "fp8e4nv"], 4, 3, 7, AllOnesNan),
        float(Fp8E5m2, "fp8_e5m2", &["float8_e5m2", "fp8e5"], 5, 2, 15, Ieee),
        float(Fp8E4m3Fnuz, "fp8_e4m3fnuz", &["float8_e4m3fnuz", "fp8e4b8"], 4, 3, 8, Fnuz),
        float(Fp8E5m2Fnuz, "fp8_e5m2fnuz", &["float8_e5m2fnuz", "fp8e5b16"], 5, 2, 16, Fnuz),
        float(Fp6E2m3, "fp6_e2m3", &["float6_e2m3fn"], 2, 3, 1, None),
        float(Fp6E3m2, "fp6_e3m2", &["float6_e3m2fn"], 3, 2, 3, None),
        float(Fp4E2m1, "fp4_e2m1", &["float4_e2m1fn", "fp4"], 2, 1, 1, None),
        Facts { dtype: E8m0, name: "e8m0", aliases: &["float8_e8m0fnu"], bits: 8, kind: Kind::Scale },
        Facts { dtype: I8, name: "i8", aliases: &["int8"], bits: 8, kind: Kind::Signed },
        Facts { dtype: U8, name: "u8", aliases: &["uint8"], bits: 8, kind: Kind::Unsigned },
        Facts { dtype: I16, name: "i16", aliases: &["int16"], bits: 16, kind: Kind::Signed },
        Facts { dtype: I32, name: "i32", aliases: &["int32", "int"], bits: 32, kind: Kind::Signed },
        Facts { dtype: I64, name: "i64", aliases: &["int64"], bits: 64, kind: Kind::Signed },
    ]
};

const fn float(
    dtype: Dtype,
    name: &'static str,
    aliases: &'static [&'static str],
    exponent_bits: u32,
    mantissa_bits: u32,
    bias: i32,
    specials: Specials,
) -> Facts {
    let format = Format { exponent_bits, mantissa_bits, bias, specials };
    Facts { dtype, name, aliases, bits: 1 + exponent_bits + mantissa_bits, kind: Kind::Float(format) }
}

/// What sort of value some bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// +0 or -0.
    Zero,
    /// Smaller than the smallest normal number.
    Denormal,
    /// Any other finite number; every integer but 0.
    Normal,
    /// +Inf or -Inf.
    Infinite,
    /// Not a number.
    Nan,
}

impl Dtype {
    /// Its row of the table.
    pub const fn facts(self) -> &'static Facts {
        &TABLE[self as usize]
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Whether it has a sign, an exponent and a mantissa.
    pub const fn is_float(self) -> bool {
        matches!(self.facts().kind, Kind::Float(_))
    }

    /// Bits of an element.
    pub const fn bits(self) -> u32 {
        self.facts().bits
    }

    /// The value of an element. Exact but for `i64` beyond 2^53, which rounds to nearest.
    pub fn decode(self, bits: u64) -> f64 {
        match self.facts().kind {
            Kind::Float(format) => format.decode(bits),
            Kind::Scale => float::decode_scale(bits),
            Kind::Signed => self.signed(bits) as f64,
            Kind::Unsigned => bits as f64,
        }
    }

    /// The element nearest to a value, ties to even.
    ///
    /// Finite values beyond the range: `f64`, `f32`, `f16` and `bf16` become infinite (IEEE 754 section 4.3.1); fp8,
    /// fp6, fp4, `e8m0` and integers saturate (OFP8 section 5.2's saturating mode, MX section 5.3). Infinity stays
    /// infinite where the type has one, becomes NaN where it has only that, saturates where it has neither. None:
    /// NaN for a type that has none.
    pub fn encode(self, value: f64) -> Option<u64> {
        let mask = u64::MAX >> (64 - self.bits());
        match self.facts().kind {
            Kind::Float(format) => format.encode(value, self.overflows()),
            Kind::Scale => Some(float::encode_scale(value)),
            _ if value.is_nan() => None,
            // `as` saturates at the 64 bits of i64; the range of the type is inside.
            Kind::Signed => {
                let largest = (mask >> 1) as i64;
                Some((value.round_ties_even() as i64).clamp(-largest - 1, largest) as u64 & mask)
            }
            Kind::Unsigned => Some((value.round_ties_even() as u64).min(mask)),
        }
    }

    /// Whether finite values beyond the range become infinite; they saturate otherwise.
    pub const fn overflows(self) -> bool {
        matches!(self, Dtype::F64 | Dtype::F32 | Dtype::F16 | Dtype::Bf16)
    }

    /// The class of an element.
    pub fn classify(self, bits: u64) -> Class {
        match self.facts().kind {
            Kind::Float(format) => format.classify(bits),
            Kind::Scale if bits == 0xff => Class::Nan,
            Kind::Scale => Class::Normal,
            _ if bits == 0 => Class::Zero,
            _ => Class::Normal,
        }
    }

    /// The sign-extended value of an integer element.
    fn signed(self, bits: u64) -> i64 {
        let unused = 64 - self.bits();
        ((bits << unused) as i64) >> unused
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dtype {
    type Err = Error;

    fn from_str(text: &str) -> Result<Dtype> {
        match TABLE.iter().find(|facts| facts.name == text || facts.aliases.contains(&text)) {
            Some(facts) => Ok(facts.dtype),
            None => {
                let names: Vec<&str> = TABLE.iter().map(|facts| facts.name).collect();
                Err(Error::new(format!("`{text}` is no element type; expected one of {}", names.join(", "))))
            }
        }
    }
}
