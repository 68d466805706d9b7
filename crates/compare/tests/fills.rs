//! Fills: known streams, distributions, files.

use compare::dtype::{Class, Dtype, TABLE};
use compare::fill::{Fill, Source, specials};
use std::path::PathBuf;

fn filled(fill: &Fill, dtype: Dtype, shape: &[u64], seed: u64) -> Result<Vec<u8>, String> {
    let mut buffer = vec![0xee; dtype.bytes_for(shape.iter().product()).expect("small") as usize];
    let done = Source::new(seed).fill(fill, dtype, shape, &mut buffer);
    done.map(|()| buffer).map_err(|error| error.to_string())
}

fn values(fill: &Fill, dtype: Dtype, elements: u64, seed: u64) -> Vec<f64> {
    let bytes = filled(fill, dtype, &[elements], seed).expect("it fits");
    (0..elements).map(|index| dtype.decode(dtype.get(&bytes, index).expect("inside"))).collect()
}

#[test]
fn masked_bytes_are_one_stream_over_all_buffers() {
    // The first draws of std::mt19937(42), as NumPy's RandomState(42).randint gives them too: 1608637542, 3421126067, …
    let mut source = Source::new(42);
    let (mut a, mut b) = ([0; 2], [0; 2]);
    let fill = Fill::MaskedBytes { mask: 0x3f };
    source.fill(&fill, Dtype::Fp8E4m3, &[2], &mut a).expect("it fits");
    source.fill(&fill, Dtype::Fp8E4m3, &[2], &mut b).expect("it fits");
    let draws = [1_608_637_542_u32, 3_421_126_067, 4_083_286_876, 787_846_414];
    assert_eq!([a, b].concat(), draws.map(|draw| draw as u8 & 0x3f));
}

#[test]
fn seeded_fills_do_not_depend_on_threads_and_differ_by_seed_and_buffer() {
    let fills = [
        Fill::Bits,
        Fill::Uniform { low: -1.0, high: 1.0 },
        Fill::Normal { mean: 0.0, deviation: 1.0 },
        Fill::Special { fill: Box::new(Fill::MaskedBytes { mask: 0xff }), rate: 0.1 },
    ];
    for dtype in [Dtype::F64, Dtype::Bf16, Dtype::Fp8E4m3, Dtype::Fp6E2m3, Dtype::Fp4E2m1] {
        for fill in &fills {
            let shape = [70_001];
            let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads start");
            let alone = alone.install(|| filled(fill, dtype, &shape, 1));
            let many = rayon::ThreadPoolBuilder::new().num_threads(4).build().expect("threads start");
            assert_eq!(many.install(|| filled(fill, dtype, &shape, 1)), alone, "{dtype} {fill:?}");
            assert_ne!(filled(fill, dtype, &shape, 2), alone, "{dtype} {fill:?}");
            let (mut source, mut second) = (Source::new(1), vec![0; alone.as_ref().expect("it fits").len()]);
            source.fill(fill, dtype, &shape, &mut second.clone()).expect("it fits");
            source.fill(fill, dtype, &shape, &mut second).expect("it fits");
            assert_ne!(Ok(second), alone, "{dtype} {fill:?}");
        }
    }
}

#[test]
fn distributions_have_their_moments() {
    for dtype in TABLE.iter().map(|facts| facts.dtype).filter(|&dtype| dtype != Dtype::E8m0 && dtype != Dtype::U8) {
        let count = 50_000;
        // Rounding to a grid of step s adds s²/12 to a variance; the narrowest grids here have steps of up to 2.
        let uniform = values(&Fill::Uniform { low: -4.0, high: 4.0 }, dtype, count, 9);
        let normal = values(&Fill::Normal { mean: 0.5, deviation: 2.0 }, dtype, count, 9);
        for (what, values, mean, variance) in [("uniform", uniform, 0.0, 64.0 / 12.0), ("normal", normal, 0.5, 4.0)] {
            let found = values.iter().sum::<f64>() / count as f64;
            let spread = values.iter().map(|value| (value - found).powi(2)).sum::<f64>() / count as f64;
            assert!((found - mean).abs() < 0.03, "{what} {dtype}: mean {found}");
            assert!((spread - variance).abs() < 0.2, "{what} {dtype}: variance {spread}");
        }
    }
}

/// The fill of f64 has the numbers that all types are made of.
fn elements(fill: &Fill, dtype: Dtype, count: u64) -> Vec<u64> {
    let bytes = filled(fill, dtype, &[count], 3).expect("it fits");
    (0..count).map(|index| dtype.get(&bytes, index).expect("inside")).collect()
}

#[test]
fn random_bits_of_a_type_are_the_low_ones() {
    let numbers = elements(&Fill::Bits, Dtype::F64, 70_003);
    for dtype in TABLE.iter().map(|facts| facts.dtype) {
        let low: Vec<u64> = numbers.iter().map(|number| number & (u64::MAX >> (64 - dtype.bits()))).collect();
        assert!(elements(&Fill::Bits, dtype, 70_003) == low, "{dtype}");
    }
}

#[test]
fn wide_types_round_the_same_values() {
    // Denormals, all of the range, and beyond it.
    for scale in [1e-41, 1e-7, 1.0, 1e5, 1e39] {
        for fill in [Fill::Uniform { low: -scale, high: 2.0 * scale }, Fill::Normal { mean: 0.0, deviation: scale }] {
            let values = elements(&fill, Dtype::F64, 2_001);
            for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::I16, Dtype::I32, Dtype::I64] {
                let rounded: Vec<u64> =
                    values.iter().map(|&bits| dtype.encode(f64::from_bits(bits)).expect("a number")).collect();
                assert!(elements(&fill, dtype, 2_001) == rounded, "{dtype} {fill:?}");
            }
        }
    }
}

#[test]
fn narrow_types_take_16_bits_of_a_number_for_each_element() {
    let numbers = elements(&Fill::Bits, Dtype::F64, 501);
    for dtype in TABLE.iter().map(|facts| facts.dtype).filter(|dtype| dtype.bits() <= 8) {
        let expected: Vec<u64> = (0..2_001)
            .map(|index| {
                let step = numbers[index / 4] >> (16 * (index % 4)) & 0xffff;
                dtype.encode(-1.0 + 3.0 * (step as f64 + 0.5) / 65_536.0).expect("a number")
            })
            .collect();
        assert!(elements(&Fill::Uniform { low: -1.0, high: 2.0 }, dtype, 2_001) == expected, "{dtype}");
    }
}

#[test]
fn plain_fills_are_what_they_say() {
    assert_eq!(values(&Fill::Range { start: -1.0, step: 0.5 }, Dtype::Fp4E2m1, 5, 0), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    assert_eq!(values(&Fill::Constant(3.0), Dtype::Fp6E3m2, 5, 0), [3.0; 5]);
    assert_eq!(values(&Fill::OneHot { index: 2, value: 1.0 }, Dtype::Bf16, 4, 0), [0.0, 0.0, 1.0, 0.0]);
    // Nothing is written behind the last element.
    assert_eq!(filled(&Fill::MaskedBytes { mask: 0xff }, Dtype::Fp4E2m1, &[3], 0).expect("it fits")[1] & 0xf0, 0);
    assert_eq!(filled(&Fill::Constant(6.0), Dtype::Fp4E2m1, &[3], 0), Ok(vec![0x77, 0x07]));
}

#[test]
fn special_values_come_at_their_rate_and_in_all_kinds() {
    for dtype in TABLE.iter().map(|facts| facts.dtype) {
        let fill = Fill::Special { fill: Box::new(Fill::Constant(2.0)), rate: 0.25 };
        let bytes = filled(&fill, dtype, &[40_000], 5).expect("it fits");
        let two = dtype.encode(2.0);
        let replaced: Vec<u64> =
            (0..40_000).filter_map(|index| dtype.get(&bytes, index)).filter(|&bits| Some(bits) != two).collect();
        assert!((9_500..10_500).contains(&replaced.len()), "{dtype}: {}", replaced.len());
        for special in specials(dtype) {
            assert!(replaced.contains(&special), "{dtype} {special:x}");
        }
    }
    let kinds: Vec<Class> = specials(Dtype::F16).iter().map(|&bits| Dtype::F16.classify(bits)).collect();
    use Class::{Denormal, Infinite, Nan, Zero};
    assert_eq!(kinds, [Zero, Zero, Denormal, Denormal, Denormal, Denormal, Infinite, Infinite, Nan]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |fill: Fill, dtype| filled(&fill, dtype, &[4], 0).expect_err("refused");
    assert_eq!(refused(Fill::Constant(f64::NAN), Dtype::I32), "NaN is no value of i32");
    assert_eq!(
        refused(Fill::OneHot { index: 4, value: 1.0 }, Dtype::F32),
        "one-hot fill at 4: the tensor has 4 elements"
    );
    assert!(refused(Fill::Uniform { low: 1.0, high: 0.0 }, Dtype::F32).starts_with("uniform fill from 1 to 0"));
    let mut small = [0; 3];
    let error = Source::new(0).fill(&Fill::Bits, Dtype::F32, &[1], &mut small).expect_err("refused");
    assert_eq!(error.to_string(), "a buffer of 3 bytes: f32 elements of shape [1] take 4");
}

/// A `.npy` file as `numpy.save` writes it: the header padded with spaces to a multiple of 64.
fn npy(version: u8, header: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{header:<117}\n");
    let mut file = b"\x93NUMPY".to_vec();
    file.extend([version, 0]);
    match version {
        1 => file.extend((header.len() as u16).to_le_bytes()),
        _ => file.extend((header.len() as u32).to_le_bytes()),
    }
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn from_file(file: &[u8], dtype: Dtype, shape: &[u64]) -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("a.npy");
    std::fs::write(&path, file).expect("written");
    let place = format!("{}: ", path.display());
    filled(&Fill::File(path), dtype, shape, 0).map_err(|error| error.replace(&place, ""))
}

#[test]
fn files_are_taken_as_numbers_or_as_bits() {
    let floats: Vec<u8> = [1.0_f32, -2.5, 0.1, 1e9].iter().flat_map(|value| value.to_le_bytes()).collect();
    let file = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }", &floats);
    assert_eq!(from_file(&file, Dtype::F32, &[2, 2]), Ok(floats.clone()));
    assert_eq!(from_file(&file, Dtype::Fp8E4m3, &[2, 2]), Ok(vec![0x38, 0xc2, 0x1d, 0x7e]));
    assert_eq!(
        from_file(&file, Dtype::F32, &[4, 1]).expect_err("shape"),
        "the array has shape [2, 2], the argument [4, 1]"
    );
    assert_eq!(from_file(&file, Dtype::I32, &[2, 2]).expect_err("not whole"), "element 1: -2.5 is no value of i32");
    let flat = npy(2, "{\"shape\": (4,), \"fortran_order\": True, \"descr\": \"|V2\"}", &floats[..8]);
    assert_eq!(from_file(&flat, Dtype::Bf16, &[2, 2]), Ok(floats[..8].to_vec()));
    let bytes = npy(3, "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", &[0x21, 0x43, 0x05]);
    assert_eq!(from_file(&bytes, Dtype::Fp4E2m1, &[5]), Ok(vec![0x21, 0x43, 0x05]));
    assert_eq!(from_file(&bytes, Dtype::I64, &[3]), Ok([0x21_u64, 0x43, 5].map(u64::to_le_bytes).concat()));
    let scalar = npy(1, "{'descr': '<i8', 'fortran_order': False, 'shape': (), }", &(-5_i64).to_le_bytes());
    assert_eq!(from_file(&scalar, Dtype::I8, &[]), Ok(vec![0xfb]));
    assert!(from_file(&scalar, Dtype::U8, &[]).expect_err("negative").contains("-5 is no value of u8"));
}

#[test]
fn files_that_lie_or_end_early_are_refused() {
    let good = npy(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", &[0; 8]);
    for end in 0..good.len() {
        from_file(&good[..end], Dtype::F32, &[2]).expect_err("cut short");
    }
    for (header, message) in [
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 8), }", "more than there can be"),
        ("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "'>f4': expected floats"),
        ("{'descr': '|O8', 'fortran_order': False, 'shape': (1,), }", "'|O8': expected floats"),
        ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "not understood"),
        ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1, 1, 3), }", "Fortran order"),
        ("{'descr': '<f4', 'shape': (2,), }", "not understood"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "not understood"),
        ("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "8 bytes of data: shape [3] and '<f4' need 12"),
    ] {
        let error = from_file(&npy(1, header, &[0; 8]), Dtype::F32, &[2]).expect_err("refused");
        assert!(error.contains(message), "{header}: {error}");
    }
    let mut long = good.clone();
    (long[6], long[8], long[9]) = (2, 0xff, 0xff);
    assert!(from_file(&long, Dtype::F32, &[2]).expect_err("refused").contains("ends early"));
    assert!(from_file(b"PK\x03\x04", Dtype::F32, &[2]).expect_err("refused").contains("not a .npy file"));
}
