//! Element types by the names that compilers write into metadata: `.type_name` as in the source language, `.value_type` of
//! older ones.

use codeobj::metadata::Arg;

/// A C, OpenCL or HIP type: its name, the element type of a buffer of it, the type of a scalar. A site has no element types
/// u16, u32 and u64: bits are bits.
const TYPES: [(&str, &str, &str); 40] = [
    ("bool", "u8", "u8"),
    ("char", "u8", "i8"),
    ("signedchar", "i8", "i8"),
    ("int8_t", "i8", "i8"),
    ("i8", "i8", "i8"),
    ("uchar", "u8", "u8"),
    ("unsignedchar", "u8", "u8"),
    ("uint8_t", "u8", "u8"),
    ("u8", "u8", "u8"),
    ("short", "i16", "i16"),
    ("int16_t", "i16", "i16"),
    ("i16", "i16", "i16"),
    ("ushort", "i16", "u16"),
    ("unsignedshort", "i16", "u16"),
    ("uint16_t", "i16", "u16"),
    ("u16", "i16", "u16"),
    ("int", "i32", "i32"),
    ("int32_t", "i32", "i32"),
    ("i32", "i32", "i32"),
    ("uint", "i32", "u32"),
    ("unsignedint", "i32", "u32"),
    ("unsigned", "i32", "u32"),
    ("uint32_t", "i32", "u32"),
    ("u32", "i32", "u32"),
    ("long", "i64", "i64"),
    ("longlong", "i64", "i64"),
    ("int64_t", "i64", "i64"),
    ("i64", "i64", "i64"),
    ("ulong", "i64", "u64"),
    ("unsignedlong", "i64", "u64"),
    ("unsignedlonglong", "i64", "u64"),
    ("uint64_t", "i64", "u64"),
    ("size_t", "i64", "u64"),
    ("u64", "i64", "u64"),
    ("float", "f32", "f32"),
    ("f32", "f32", "f32"),
    ("double", "f64", "f64"),
    ("f64", "f64", "f64"),
    ("half", "f16", "f16"),
    ("f16", "f16", "f16"),
];

/// Names that contain these are of libraries; the first that fits counts.
const PARTS: [(&str, &str); 8] = [
    ("bfloat16", "bf16"),
    ("bf16", "bf16"),
    ("e4m3_fnuz", "fp8_e4m3fnuz"),
    ("e5m2_fnuz", "fp8_e5m2fnuz"),
    ("e4m3", "fp8_e4m3"),
    ("e5m2", "fp8_e5m2"),
    ("_float16", "f16"),
    ("half", "f16"),
];

/// The element type that an argument points to, and the type that it has as a scalar; none when the metadata does not say,
/// or says something else.
pub fn of(arg: &Arg) -> Option<(&'static str, &'static str)> {
    [&arg.type_name, &arg.value_type].into_iter().flatten().find_map(|name| find(name))
}

fn find(name: &str) -> Option<(&'static str, &'static str)> {
    let plain = without_qualifiers(name);
    let known =
        |name: &str| TYPES.iter().find(|(known, ..)| *known == name).map(|(_, dtype, scalar)| (*dtype, *scalar));
    // `float4`, `float4_t`: four of them.
    let vector = || known(plain.trim_end_matches("_t").trim_end_matches(|c: char| c.is_ascii_digit()));
    let library = || PARTS.iter().find(|(part, _)| plain.contains(part)).map(|(_, dtype)| (*dtype, *dtype));
    known(&plain).or_else(library).or_else(vector)
}

/// The element type's name alone, in small letters and without spaces.
fn without_qualifiers(name: &str) -> String {
    let inner = match name.split_once("HIP_vector_type<") {
        Some((_, rest)) => rest.split(',').next().unwrap_or_default(),
        None => name,
    };
    let words = inner.split(|c: char| c.is_whitespace() || "*&".contains(c));
    let kept = words.filter(|word| {
        !matches!(
            *word,
            "const" | "volatile" | "restrict" | "__restrict" | "__restrict__" | "__global" | "__constant" | "struct"
        )
    });
    kept.collect::<String>().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_compilers_are_element_types() {
        for (name, dtype, scalar) in [
            ("int*", "i32", "i32"),
            ("const float*", "f32", "f32"),
            ("float4_t*", "f32", "f32"),
            ("float4", "f32", "f32"),
            ("HIP_vector_type<float, 4u> const*", "f32", "f32"),
            ("__hip_bfloat16*", "bf16", "bf16"),
            ("half", "f16", "f16"),
            ("__half*", "f16", "f16"),
            ("_Float16", "f16", "f16"),
            ("__hip_fp8_e4m3_fnuz*", "fp8_e4m3fnuz", "fp8_e4m3fnuz"),
            ("uint8_t const*", "u8", "u8"),
            ("char*", "u8", "i8"),
            ("unsigned int", "i32", "u32"),
            ("unsigned long long", "i64", "u64"),
            ("double", "f64", "f64"),
        ] {
            assert_eq!(find(name), Some((dtype, scalar)), "{name}");
        }
        assert_eq!(find("struct params"), None);
        assert_eq!(find("void*"), None);
    }

    #[test]
    fn every_type_is_one_that_a_site_knows() {
        for (_, dtype, scalar) in TYPES {
            assert!(dtype.parse::<crate::dtype::Dtype>().is_ok(), "{dtype}");
            assert!(super::super::super::scalar_bytes(scalar, super::super::super::expr::Value::Int(1)).is_ok());
        }
        assert!(PARTS.iter().all(|(_, dtype)| dtype.parse::<crate::dtype::Dtype>().is_ok()));
    }
}
