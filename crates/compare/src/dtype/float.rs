//! Numbers of sign, exponent and mantissa, from 4 to 64 bits, and the e8m0 scale: decoding and rounding by the facts of
//! a format, in integers and exact steps, so that the result is the same on every machine.

use super::Class;

/// A binary floating-point format with a sign bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent_bits: u32,
    /// Bits of the mantissa field.
    pub mantissa_bits: u32,
    /// Subtracted from the exponent field.
    pub bias: i32,
    /// Which bits are no numbers.
    pub specials: Specials,
}

/// Which bits of a format are infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// The highest exponent: infinite where the mantissa is 0, else NaN.
    Ieee,
    /// All exponent and mantissa bits set is NaN; nothing is infinite (OFP8's E4M3).
    AllOnesNan,
    /// What would be -0 is NaN; nothing is infinite, and zero has one sign.
    Fnuz,
    /// Every code is a number (MX's FP6 and FP4).
    None,
}

impl Format {
    /// The sign bit.
    pub const fn sign_bit(self) -> u64 {
        1 << (self.exponent_bits + self.mantissa_bits)
    }

    /// The largest finite magnitude, as bits.
    pub const fn largest(self) -> u64 {
        match self.specials {
            Specials::Ieee => self.infinity_bits() - 1,
            Specials::AllOnesNan => self.sign_bit() - 2,
            Specials::Fnuz | Specials::None => self.sign_bit() - 1,
        }
    }

    /// The highest exponent over an empty mantissa: +Inf of an IEEE format.
    const fn infinity_bits(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.mantissa_bits
    }

    /// +Inf, if the format has it.
    pub fn infinity(self) -> Option<u64> {
        (self.specials == Specials::Ieee).then(|| self.infinity_bits())
    }

    /// A quiet NaN, if the format has one.
    pub fn nan(self) -> Option<u64> {
        match self.specials {
            Specials::Ieee => Some(self.infinity_bits() | 1 << (self.mantissa_bits - 1)),
            Specials::AllOnesNan => Some(self.sign_bit() - 1),
            Specials::Fnuz => Some(self.sign_bit()),
            Specials::None => None,
        }
    }

    /// What sort of value `bits` are.
    pub fn classify(self, bits: u64) -> Class {
        let magnitude = bits & (self.sign_bit() - 1);
        if self.specials == Specials::Fnuz && bits == self.sign_bit() {
            Class::Nan
        } else if magnitude == 0 {
            Class::Zero
        } else if magnitude >> self.mantissa_bits == 0 {
            Class::Denormal
        } else if magnitude <= self.largest() {
            Class::Normal
        } else if self.infinity() == Some(magnitude) {
            Class::Infinite
        } else {
            Class::Nan
        }
    }

    /// The value of `bits`, exact.
    pub fn decode(self, bits: u64) -> f64 {
        if self.mantissa_bits == 52 {
            return f64::from_bits(bits);
        }
        let sign = if bits & self.sign_bit() == 0 { 1.0 } else { -1.0 };
        let magnitude = bits & (self.sign_bit() - 1);
        match self.classify(bits) {
            Class::Nan => f64::NAN,
            Class::Infinite => sign * f64::INFINITY,
            _ => {
                let exponent = magnitude >> self.mantissa_bits;
                let mantissa = magnitude & ((1 << self.mantissa_bits) - 1);
                let implicit = u64::from(exponent != 0) << self.mantissa_bits;
                let power = exponent.max(1) as i32 - self.bias - self.mantissa_bits as i32;
                sign * (mantissa | implicit) as f64 * power_of_two(power)
            }
        }
    }

    /// The bits nearest to `value`, ties to even. What lies beyond the range becomes infinite if `overflows` says so,
    /// else the largest number. None: NaN in a format that has none.
    pub fn encode(self, value: f64, overflows: bool) -> Option<u64> {
        if value.is_nan() {
            return self.nan();
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        let magnitude = match self.round(value.abs()) {
            _ if value.is_infinite() => match self.infinity().or(self.nan()) {
                Some(special) => special,
                None => self.largest(),
            },
            rounded if rounded <= self.largest() => rounded,
            _ if overflows => self.infinity()?,
            _ => self.largest(),
        };
        match self.specials {
            // Zero has one sign, and NaN brings its own.
            Specials::Fnuz if magnitude == 0 || magnitude == self.sign_bit() => Some(magnitude),
            _ => Some(sign | magnitude),
        }
    }

    /// [`Format::encode`] of a number, not NaN, in a format that has infinities, where what is too large becomes infinite.
    /// Free of branches, for loops.
    #[inline(always)]
    pub(crate) fn encode_number(self, value: f64) -> u64 {
        let sign = value.to_bits() >> 63 << (self.exponent_bits + self.mantissa_bits);
        sign | self.round(value.abs()).min(self.infinity_bits())
    }

    /// The magnitude nearest to a non-negative value as if the exponent had no end.
    #[inline(always)]
    fn round(self, value: f64) -> u64 {
        if self.mantissa_bits == 52 {
            return value.to_bits();
        }
        // What lies in range of the normal numbers loses the low bits of its mantissa; one that rounds up to the next power
        // of two carries into the exponent.
        let lost = 52 - self.mantissa_bits;
        let is_odd = value.to_bits() >> lost & 1;
        let rounded = (value.to_bits() + (1 << (lost - 1)) - 1 + is_odd) >> lost;
        let normal = rounded.wrapping_sub(((1023 - self.bias) as u64) << self.mantissa_bits);
        // Denormals share the exponent of the smallest normal numbers. Their last place is that of f64 at `unit`, so the sum
        // is rounded there.
        let smallest = 1 - self.bias;
        let unit = power_of_two(smallest - self.mantissa_bits as i32 + 52);
        let denormal = (value + unit).to_bits().wrapping_sub(unit.to_bits());
        if value < power_of_two(smallest) { denormal } else { normal }
    }
}

/// 2^power for powers that f64 has as normal numbers.
#[inline(always)]
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(((power + 1023) as u64) << 52)
}

/// The value of an e8m0 scale.
pub(super) fn decode_scale(bits: u64) -> f64 {
    if bits == 0xff { f64::NAN } else { power_of_two(bits as i32 - 127) }
}

/// The scale nearest to a value: halfway (1.5 times a power of two) goes up, finite values saturate, and what no scale
/// can stand for (zero, negative, infinite, NaN) is NaN. MX leaves this rounding open; this is `ml_dtypes`' but for
/// large values.
pub(super) fn encode_scale(value: f64) -> u64 {
    if value.is_nan() || value <= 0.0 || value.is_infinite() {
        return 0xff;
    }
    let bits = value.to_bits();
    let rounds_up = i32::from(bits >> 51 & 1 == 1);
    (((bits >> 52) as i32 - 1023 + rounds_up).clamp(-127, 127) + 127) as u64
}

#[cfg(test)]
mod tests {
    use crate::dtype::{Dtype, Kind};

    /// Neighbouring codes, and what lies between them: nearer to one, nearer to the other, halfway (to the even one).
    #[test]
    fn what_lies_between_two_numbers_becomes_the_nearer_one() {
        for dtype in [Dtype::F16, Dtype::Bf16] {
            let Kind::Float(format) = dtype.facts().kind else { continue };
            let encode = |value: f64| format.encode_number(value);
            for code in 0..=format.largest() {
                let (low, next) = (format.decode(code), code + 1);
                // Behind the largest number comes what would be the next one.
                let high =
                    if next > format.largest() { 2.0 * low - format.decode(code - 1) } else { format.decode(next) };
                let (middle, even) = ((low + high) / 2.0, code + (code & 1));
                let expected = [code, code, code, even, next, next];
                let values = [low, low.next_up(), middle.next_down(), middle, middle.next_up(), high.next_down()];
                assert_eq!(values.map(encode), expected, "{dtype} {code:#x}");
                assert_eq!(values.map(|value| encode(-value)), expected.map(|bits| bits | format.sign_bit()));
                assert_eq!(values.map(|value| format.encode(value, true)), expected.map(Some), "{dtype} {code:#x}");
            }
            for value in [f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY] {
                let expected = if value < 1.0 { 0 } else { format.largest() + 1 };
                assert_eq!(encode(value), expected, "{dtype} {value:e}");
            }
        }
    }
}
