//! Element types against others' implementations: tables of `ml_dtypes` and NumPy (tests/data/dtypes.txt), the `half`
//! crate, Rust's own conversions, and figures of the specifications.

use compare::dtype::{Class, Dtype, Kind, TABLE};

#[test]
fn codes_and_roundings_are_those_of_ml_dtypes() {
    let mut checked = [0, 0];
    for line in include_str!("data/dtypes.txt").lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let dtype: Dtype = fields[1].parse().expect(line);
        let [first, second] = [fields[2], fields[3]].map(|field| u64::from_str_radix(field, 16));
        if fields[0] == "decode" {
            let (value, expected) = (dtype.decode(first.expect(line)), second.map(f64::from_bits));
            match expected {
                Ok(expected) => assert_eq!(value.to_bits(), expected.to_bits(), "{line}: {value}"),
                Err(_) => assert!(value.is_nan(), "{line}: {value}"),
            }
            checked[0] += 1;
        } else {
            let value = f64::from_bits(first.expect(line));
            assert_eq!(dtype.encode(value), Some(second.expect(line)), "{line}: {value:e}");
            checked[1] += 1;
        }
    }
    assert!(checked[0] > 1900 && checked[1] > 4000, "{checked:?}");
}

#[test]
fn sixteen_bits_decode_as_the_half_crate_does_and_encode_back() {
    for bits in 0..=u16::MAX {
        for (dtype, expected) in
            [(Dtype::F16, half::f16::from_bits(bits).to_f64()), (Dtype::Bf16, half::bf16::from_bits(bits).to_f64())]
        {
            let value = dtype.decode(bits.into());
            assert!(value.to_bits() == expected.to_bits() || value.is_nan() && expected.is_nan(), "{dtype} {bits:x}");
            if !value.is_nan() {
                assert_eq!(dtype.encode(value), Some(bits.into()), "{dtype} {bits:x}");
            }
        }
    }
}

#[test]
fn f32_and_f16_round_as_the_hardware_and_the_half_crate_do() {
    for index in 0..2_000_000_u64 {
        let bits = scramble(index);
        // All exponents that matter to f32 and around, so that denormals and overflow are among them.
        let value = f64::from_bits(bits & !(0x7ff << 52) | (1023 - 155 + bits % 290) << 52);
        assert_eq!(Dtype::F32.encode(value), Some((value as f32).to_bits().into()), "{value:e}");
        assert_eq!(Dtype::F32.decode((value as f32).to_bits().into()), f64::from(value as f32));
        let value = f64::from_bits(bits & !(0x7ff << 52) | (1023 - 28 + bits % 50) << 52);
        // `half` drops the low half of an f64 before it rounds: it is asked with values of f32.
        let single = value as f32;
        let (f16, bf16) = (half::f16::from_f32(single), half::bf16::from_f32(single));
        assert_eq!(Dtype::F16.encode(single.into()), Some(f16.to_bits().into()), "{value:e}");
        assert_eq!(Dtype::Bf16.encode(single.into()), Some(bf16.to_bits().into()), "{value:e}");
    }
}

#[test]
fn every_number_of_a_small_type_survives_decoding_and_encoding_and_is_ordered() {
    for dtype in TABLE.iter().map(|facts| facts.dtype).filter(|dtype| dtype.bits() <= 16) {
        let mut ordered = Vec::new();
        for bits in 0..1_u64 << dtype.bits() {
            let (value, class) = (dtype.decode(bits), dtype.classify(bits));
            assert_eq!(value.is_nan(), class == Class::Nan, "{dtype} {bits:x}");
            assert_eq!(value.is_infinite(), class == Class::Infinite, "{dtype} {bits:x}");
            assert_eq!(value == 0.0, class == Class::Zero, "{dtype} {bits:x}");
            if !value.is_nan() {
                assert_eq!(dtype.encode(value), Some(bits), "{dtype} {bits:x} {value}");
            }
            ordered.extend(dtype.ulp_index(bits).map(|index| (index, value)));
        }
        ordered.sort_by_key(|&(index, _)| index);
        for pair in ordered.windows(2) {
            let ((low, small), (high, large)) = (pair[0], pair[1]);
            assert!(
                small < large && high == low + 1 || small == 0.0 && large == 0.0 && low == high,
                "{dtype} {pair:?}"
            );
        }
    }
}

/// OFP8 1.0 table 2, MX 1.0 tables 2 to 5 and the FNUZ definition: largest, smallest normal, smallest denormal.
#[test]
fn ranges_are_those_of_the_specifications() {
    for (name, largest, normal, denormal) in [
        ("fp8_e4m3", 448.0, 0.015_625, 0.001_953_125),
        ("fp8_e5m2", 57_344.0, 6.103_515_625e-5, 1.525_878_906_25e-5),
        ("fp8_e4m3fnuz", 240.0, 0.007_812_5, 0.000_976_562_5),
        ("fp8_e5m2fnuz", 57_344.0, 3.051_757_812_5e-5, 7.629_394_531_25e-6),
        ("fp6_e2m3", 7.5, 1.0, 0.125),
        ("fp6_e3m2", 28.0, 0.25, 0.0625),
        ("fp4_e2m1", 6.0, 1.0, 0.5),
    ] {
        let dtype: Dtype = name.parse().expect(name);
        let Kind::Float(format) = dtype.facts().kind else { panic!("{name} is no float") };
        assert_eq!(dtype.decode(format.largest()), largest, "{name}");
        assert_eq!(dtype.decode(1 << format.mantissa_bits), normal, "{name}");
        assert_eq!(dtype.decode(1), denormal, "{name}");
        // Finite values saturate.
        assert_eq!(dtype.encode(-1e9), Some(format.largest() | format.sign_bit()), "{name}");
    }
}

#[test]
fn what_a_type_cannot_hold_becomes_what_the_documentation_says() {
    assert_eq!(Dtype::Fp8E4m3.encode(f64::INFINITY), Some(0x7f));
    assert_eq!(Dtype::Fp8E5m2.encode(f64::NEG_INFINITY), Some(0xfc));
    assert_eq!(Dtype::Fp8E4m3Fnuz.encode(f64::NEG_INFINITY), Some(0x80));
    assert_eq!(Dtype::Fp8E4m3Fnuz.encode(-0.0), Some(0));
    assert_eq!(Dtype::Fp4E2m1.encode(f64::NEG_INFINITY), Some(0xf));
    assert_eq!(Dtype::Fp4E2m1.encode(f64::NAN), None);
    assert_eq!(Dtype::I32.encode(f64::NAN), None);
    assert_eq!(Dtype::F16.encode(65_520.0), Some(0x7c00));
    assert_eq!(Dtype::F16.encode(65_519.0), Some(0x7bff));
    assert_eq!(Dtype::I8.encode(-1e9), Some(0x80));
    assert_eq!(Dtype::I8.encode(2.5), Some(2));
    assert_eq!(Dtype::U8.encode(-3.0), Some(0));
    assert_eq!(Dtype::I64.encode(f64::INFINITY), Some(i64::MAX as u64));
    assert_eq!(Dtype::I16.decode(0xffff), -1.0);
    assert_eq!(Dtype::E8m0.encode(1e300), Some(0xfe));
    assert_eq!(Dtype::Bf16.ulp_distance(0x8001, 0x0001), Some(2));
    assert_eq!(Dtype::F64.ulp_distance(1 << 63, 0), Some(0));
    assert_eq!(Dtype::I64.ulp_distance(i64::MIN as u64, i64::MAX as u64), Some(u64::MAX));
    assert_eq!(Dtype::F32.ulp_distance(0x7fc0_0000, 0), None);
}

#[test]
fn names_are_read_back_and_the_table_is_in_order() {
    for facts in &TABLE {
        assert_eq!(facts.dtype.facts(), facts);
        for name in facts.aliases.iter().chain([&facts.name]) {
            assert_eq!(name.parse(), Ok(facts.dtype));
        }
    }
    let error = "f12".parse::<Dtype>().expect_err("no such type").to_string();
    assert!(error.starts_with("`f12` is no element type; expected one of f64, f32"), "{error}");
}

/// Steele and others' SplitMix64: the n-th number of a fixed sequence.
fn scramble(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
