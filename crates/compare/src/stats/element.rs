//! The types of 16 bits and more as vectorised loops need them: branch-free, in integers of their own width. The facts
//! are those of [`crate::dtype`], and tests hold the two together.

/// A type, for the loops.
pub(super) trait Element {
    type Bits: Word;
    /// What holds the values of the type exactly, and is fast.
    type Value: Copy;
    const SIZE: usize;
    /// Whether f64 holds the product of any two values.
    const EXACT_PRODUCTS: bool;
    /// Magnitudes above are NaN, this one is infinity.
    const INFINITY: Option<Self::Bits>;

    fn read(bytes: &[u8]) -> Self::Bits;
    fn write(bits: Self::Bits, into: &mut [u8]);
    /// The bits without the sign: 0 is zero.
    fn magnitude(bits: Self::Bits) -> Self::Bits;
    /// A number whose unsigned difference to another's is their distance in ULP.
    fn key(bits: Self::Bits) -> Self::Bits;
    /// The value of a finite element.
    fn value(bits: Self::Bits) -> Self::Value;
    fn wide(value: Self::Value) -> f64;
    /// |a - b|.
    fn distance(a: Self::Value, b: Self::Value) -> f64;
}

/// An unsigned integer.
pub(super) trait Word:
    Copy
    + Default
    + Ord
    + From<bool>
    + Into<u64>
    + std::ops::Add<Output = Self>
    + std::ops::Sub<Output = Self>
    + std::ops::BitXor<Output = Self>
    + std::ops::BitOr<Output = Self>
{
}

impl Word for u16 {}
impl Word for u32 {}
impl Word for u64 {}

macro_rules! float {
    ($name:ident, $bits:ty, $signed:ty, $value:ty, $infinity:expr, |$at:ident| $decode:expr) => {
        pub(super) struct $name;

        impl Element for $name {
            type Bits = $bits;
            type Value = $value;
            const SIZE: usize = size_of::<$bits>();
            const EXACT_PRODUCTS: bool = 2 * <$value>::MANTISSA_DIGITS <= f64::MANTISSA_DIGITS;
            const INFINITY: Option<$bits> = Some($infinity);

            #[inline(always)]
            fn read(bytes: &[u8]) -> $bits {
                bytes.first_chunk().map_or(0, |bytes| <$bits>::from_le_bytes(*bytes))
            }

            #[inline(always)]
            fn write(bits: $bits, into: &mut [u8]) {
                into.copy_from_slice(&bits.to_le_bytes());
            }

            #[inline(always)]
            fn magnitude(bits: $bits) -> $bits {
                bits & (<$bits>::MAX >> 1)
            }

            #[inline(always)]
            fn key(bits: $bits) -> $bits {
                // Negative magnitudes count down; the sign bit is turned so that the order is unsigned.
                let negative = (bits as $signed >> (<$bits>::BITS - 1)) as $bits;
                (Self::magnitude(bits) ^ negative).wrapping_sub(negative) ^ !(<$bits>::MAX >> 1)
            }

            #[inline(always)]
            fn value($at: $bits) -> $value {
                $decode
            }

            #[inline(always)]
            fn wide(value: $value) -> f64 {
                f64::from(value)
            }

            #[inline(always)]
            fn distance(a: $value, b: $value) -> f64 {
                (f64::from(a) - f64::from(b)).abs()
            }
        }
    };
}

macro_rules! integer {
    ($name:ident, $bits:ty, $signed:ty) => {
        pub(super) struct $name;

        impl Element for $name {
            type Bits = $bits;
            type Value = $signed;
            const SIZE: usize = size_of::<$bits>();
            const EXACT_PRODUCTS: bool = 2 * <$bits>::BITS <= f64::MANTISSA_DIGITS;
            const INFINITY: Option<$bits> = None;

            #[inline(always)]
            fn read(bytes: &[u8]) -> $bits {
                bytes.first_chunk().map_or(0, |bytes| <$bits>::from_le_bytes(*bytes))
            }

            #[inline(always)]
            fn write(bits: $bits, into: &mut [u8]) {
                into.copy_from_slice(&bits.to_le_bytes());
            }

            #[inline(always)]
            fn magnitude(bits: $bits) -> $bits {
                bits
            }

            #[inline(always)]
            fn key(bits: $bits) -> $bits {
                bits ^ !(<$bits>::MAX >> 1)
            }

            #[inline(always)]
            fn value(bits: $bits) -> $signed {
                bits as $signed
            }

            #[inline(always)]
            fn wide(value: $signed) -> f64 {
                value as f64
            }

            #[inline(always)]
            fn distance(a: $signed, b: $signed) -> f64 {
                a.abs_diff(b) as f64
            }
        }
    };
}

float!(F64, u64, i64, f64, 0x7ff0_0000_0000_0000, |bits| f64::from_bits(bits));
float!(F32, u32, i32, f32, 0x7f80_0000, |bits| f32::from_bits(bits));
float!(Bf16, u16, i16, f32, 0x7f80, |bits| f32::from_bits(u32::from(bits) << 16));
float!(F16, u16, i16, f32, 0x7c00, |bits| {
    let (magnitude, sign) = (u32::from(bits & 0x7fff), u32::from(bits & 0x8000) << 16);
    // Normal numbers: the exponent's bias goes from 15 to 127. Denormals: units of 2^-24.
    let normal = (magnitude << 13) + (112 << 23);
    let denormal = (magnitude as i32 as f32 * f32::from_bits((127 - 24) << 23)).to_bits();
    f32::from_bits(sign | if magnitude < 0x400 { denormal } else { normal })
});
integer!(I16, u16, i16);
integer!(I32, u32, i32);
integer!(I64, u64, i64);
