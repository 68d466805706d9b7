//! Statistics against plain loops in f64, on every type, with NaN, Inf, denormals, at sizes that nothing divides.

use compare::dtype::{Class, Dtype, TABLE};
use compare::fill::{Fill, Source};
use compare::stats::{Comparison, Side, Stats};

/// What the plain loops find. The sums are of reference², test², reference * test, difference².
struct Plain {
    stats: Stats,
    sums: [f64; 4],
}

fn plain(dtype: Dtype, elements: u64, a: &[u8], b: &[u8]) -> Plain {
    let side = |bytes: &[u8]| {
        let bits: Vec<u64> = (0..elements).map(|index| dtype.get(bytes, index).expect("inside")).collect();
        let count = |class: Class| bits.iter().filter(|&&bits| dtype.classify(bits) == class).count() as u64;
        let constant = bits.first().copied().filter(|first| bits.iter().all(|bits| bits == first));
        let nonzero = elements - count(Class::Zero);
        (Side { nonzero, nan: count(Class::Nan), infinite: count(Class::Infinite), constant }, bits)
    };
    let ((reference, a), (test, b)) = (side(a), side(b));
    let mut stats = Stats {
        dtype,
        elements,
        finite: 0,
        mismatches: 0,
        special_mismatches: 0,
        max_abs: 0.0,
        max_rel: 0.0,
        max_ulp: 0,
        cos: None,
        relative_norm: None,
        reference,
        test,
    };
    let mut sums = [0.0; 4];
    for (&a, &b) in a.iter().zip(&b) {
        stats.mismatches += u64::from(a != b);
        let (x, y) = (dtype.decode(a), dtype.decode(b));
        if !x.is_finite() || !y.is_finite() {
            stats.special_mismatches += u64::from(!(x.is_nan() && y.is_nan()) && x != y);
            continue;
        }
        stats.finite += 1;
        let difference = match dtype {
            Dtype::I64 => (a as i64).abs_diff(b as i64) as f64,
            _ => (x - y).abs(),
        };
        stats.max_abs = stats.max_abs.max(difference);
        if difference > 0.0 {
            stats.max_rel = stats.max_rel.max(difference / x.abs());
        }
        stats.max_ulp = stats.max_ulp.max(dtype.ulp_distance(a, b).expect("finite"));
        for (sum, term) in sums.iter_mut().zip([x * x, y * y, x * y, difference * difference]) {
            *sum += term;
        }
    }
    Plain { stats, sums }
}

fn assert_equal(found: &Stats, plain: &Plain, what: &str) {
    let Plain { stats: expected, sums: [rr, tt, rt, dd] } = plain;
    // All but the three inexact figures is the same.
    let exact = Stats { cos: None, relative_norm: None, max_rel: expected.max_rel, ..*found };
    assert_eq!(exact, *expected, "{what}");
    let close = |x: f64, y: f64, tolerance: f64| x == y || (x - y).abs() <= tolerance * y.abs();
    assert!(close(found.max_rel, expected.max_rel, 1e-14), "{what}: {} {}", found.max_rel, expected.max_rel);
    let finite = |value: f64| value.is_finite() && value > 0.0;
    match found.cos {
        Some(cos) => assert!((cos - rt / (rr.sqrt() * tt.sqrt())).abs() < 1e-12, "{what}: {cos}"),
        None => assert!(!finite(*rr) || !finite(*tt), "{what}: {rr} {tt}"),
    }
    match found.relative_norm {
        Some(norm) => {
            assert!(close(norm, if *dd == 0.0 { 0.0 } else { dd.sqrt() / rr.sqrt() }, 1e-12), "{what}: {norm}")
        }
        None => assert!(expected.finite == 0 || !rr.is_finite() || !dd.is_finite(), "{what}: {rr} {dd}"),
    }
}

/// A tensor, and one like it.
fn tensors(dtype: Dtype, elements: u64, seed: u64) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let bytes = dtype.bytes_for(elements).expect("small") as usize;
    let make = |fill: &Fill, seed: u64| {
        let mut buffer = vec![0; bytes];
        Source::new(seed).fill(fill, dtype, &[elements], &mut buffer).expect("a fill that fits");
        buffer
    };
    let normal = Fill::Normal { mean: 1.0, deviation: 20.0 };
    let with = |fill: &Fill, rate| Fill::Special { fill: Box::new(fill.clone()), rate };
    let base = make(&normal, seed);
    let mut nearly = base.clone();
    for index in (0..elements).filter(|index| index * 2_654_435_761 % 97 < 3) {
        let bits = dtype.get(&nearly, index).expect("inside");
        dtype.set(&mut nearly, index, bits ^ 1);
    }
    let special = make(&with(&normal, 0.02), seed);
    // What differs is in the middle, so that there are blocks that are equal.
    let mut partly = special.clone();
    let (third, other) = (bytes / 3, make(&Fill::Bits, seed + 1));
    partly[third..2 * third].copy_from_slice(&other[third..2 * third]);
    vec![
        ("identical".to_owned(), base.clone(), base.clone()),
        ("identical, special".to_owned(), special.clone(), special.clone()),
        ("nearly".to_owned(), base.clone(), nearly),
        ("partly".to_owned(), special.clone(), partly),
        ("special".to_owned(), special, make(&with(&normal, 0.03), seed + 1)),
        ("any bits".to_owned(), make(&Fill::Bits, seed), make(&Fill::Bits, seed + 1)),
        ("zeros".to_owned(), base, make(&Fill::Constant(if dtype == Dtype::E8m0 { 1.0 } else { 0.0 }), 0)),
    ]
}

#[test]
fn statistics_equal_plain_loops() {
    for dtype in TABLE.iter().map(|facts| facts.dtype) {
        for elements in [0, 1, 2, 3, 5, 511, 513, 3073, 70_003] {
            // Of those larger than a chunk two say what there is to say.
            let few = if elements > 65_536 { 3..5 } else { 0..7 };
            for (name, a, b) in tensors(dtype, elements, elements + 7).drain(few) {
                let found = Stats::of(dtype, elements, &a, &b).expect("sizes fit");
                assert_equal(&found, &plain(dtype, elements, &a, &b), &format!("{dtype} {elements} {name}"));
            }
        }
    }
}

#[test]
fn results_are_the_same_bits_for_any_pieces_and_threads() {
    for dtype in TABLE.iter().map(|facts| facts.dtype) {
        let elements = 200_001;
        let (_, a, b) = tensors(dtype, elements, 3).swap_remove(4);
        let whole = Stats::of(dtype, elements, &a, &b).expect("sizes fit");
        for (threads, piece) in [(1, usize::MAX), (3, 1_000), (2, 65_536), (5, 131_071), (1, 500_000)] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads start");
            let found = pool.install(|| {
                let mut comparison = Comparison::new(dtype, elements).expect("small");
                for (a, b) in a.chunks(piece).zip(b.chunks(piece)) {
                    comparison.add(a, b).expect("equal pieces");
                }
                comparison.finish().expect("complete")
            });
            assert_eq!(found, whole, "{dtype} {threads} {piece}");
        }
    }
}

#[test]
fn a_nan_on_one_side_is_counted_wherever_it_is() {
    for dtype in [Dtype::F64, Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::Fp8E4m3, Dtype::Fp8E5m2Fnuz] {
        let (one, nan) = (dtype.encode(1.0).expect("a number"), dtype.encode(f64::NAN).expect("it has NaN"));
        for place in [0, 1, 700, 1_022] {
            let elements = 1_023;
            let mut a = vec![0; dtype.bytes_for(elements).expect("small") as usize];
            (0..elements).for_each(|index| assert!(dtype.set(&mut a, index, one)));
            let mut b = a.clone();
            dtype.set(&mut b, place, nan);
            let stats = Stats::of(dtype, elements, &a, &b).expect("sizes fit");
            let (there, both) = ((stats.special_mismatches, stats.test.nan, stats.finite), stats.mismatches);
            assert_eq!((there, both), ((1, 1, elements - 1), 1), "{dtype} {place}");
            assert_eq!(stats.reference.constant, Some(one));
            assert_eq!(stats.test.constant, None);
        }
    }
}

#[test]
fn sums_keep_what_plain_additions_lose() {
    // One large element and a million small ones, each too small to change the large one's square in f64.
    let elements = 1_000_001_usize;
    let mut a = vec![1.0_f32; elements];
    a[0] = 3e8;
    let bytes: Vec<u8> = a.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut b = bytes.clone();
    b[..4].copy_from_slice(&0.0_f32.to_le_bytes());
    let stats = Stats::of(Dtype::F32, elements as u64, &bytes, &b).expect("sizes fit");
    // cos = 1e6 / (sqrt(9e16 + 1e6) * 1e3)
    let expected = 1e3 / (9e16_f64 + 1e6).sqrt();
    assert!((stats.cos.expect("lengths") / expected - 1.0).abs() < 1e-14, "{stats:?}");
}

#[test]
fn lengths_that_f64_cannot_hold_are_not_made_up() {
    for value in [1e200_f64, 1e-200] {
        let (a, b) = ([value.to_le_bytes(); 9].concat(), [(value * 1.5).to_le_bytes(); 9].concat());
        let stats = Stats::of(Dtype::F64, 9, &a, &b).expect("sizes fit");
        assert_eq!((stats.cos, stats.relative_norm), (None, None), "{value:e}");
        assert_eq!(stats.mismatches, 9);
    }
}

#[test]
fn outputs_of_wrong_sizes_are_refused() {
    let error = |elements, a: &[u8], b: &[u8]| Stats::of(Dtype::F32, elements, a, b).expect_err("refused").to_string();
    assert_eq!(error(3, &[0; 8], &[0; 8]), "8 bytes of output: 3 elements take 12");
    assert_eq!(error(1, &[0; 8], &[0; 8]), "8 bytes of output: 1 elements take 4");
    assert_eq!(error(2, &[0; 8], &[0; 7]), "8 bytes of the reference against 7 of the test");
    assert!(error(u64::MAX, &[], &[]).starts_with("18446744073709551615 elements of f32"));
}
