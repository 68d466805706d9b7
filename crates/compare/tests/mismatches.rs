//! Where outputs differ, and whether that is allowed.

use compare::dtype::{Dtype, TABLE};
use compare::mismatch::{Mismatches, Search};
use compare::requirement::{Outcome, Requirement, SeedVerdict, seed_verdict};
use compare::stats::Stats;

/// A tensor of bf16 ones, and one in which some elements are 2.
fn outputs(shape: &[u64], differs: impl Fn(&[u64]) -> bool) -> (Vec<u8>, Vec<u8>) {
    let elements: u64 = shape.iter().product();
    let a = 0x3f80_u16.to_le_bytes().repeat(elements as usize);
    let mut b = a.clone();
    for index in 0..elements {
        let mut rest = index;
        let mut at: Vec<u64> = shape.iter().rev().map(|extent| (rest % extent, rest /= extent).0).collect();
        at.reverse();
        if differs(&at) {
            Dtype::Bf16.set(&mut b, index, 0x4000);
        }
    }
    (a, b)
}

fn described(shape: &[u64], differs: impl Fn(&[u64]) -> bool) -> Vec<String> {
    let (a, b) = outputs(shape, differs);
    Mismatches::of(Dtype::Bf16, shape, 3, &a, &b).expect("sizes fit").describe()
}

#[test]
fn clusters_are_named() {
    let shape = [256, 384];
    assert_eq!(
        described(&shape, |at| at[1] == 17),
        ["256 of 98304 elements differ", "all in column 17 of 384", "every element there"]
    );
    assert_eq!(described(&shape, |at| at[0] >= 128 && at[1] % 7 == 1)[1], "rows 128–255 of 256");
    assert_eq!(described(&shape, |at| at[1] % 64 >= 48)[1..], ["columns 48–383 of 384", "columns 48–63 of every 64"]);
    assert_eq!(
        described(&shape, |at| at[0] % 32 == 5 && at[1] < 200)[1..],
        ["rows 5–229 of 256", "row 5 of every 32", "columns 0–199 of 384"]
    );
    assert_eq!(
        described(&shape, |at| (64..128).contains(&at[0]) && (128..256).contains(&at[1]))[1..],
        ["rows 64–127 of 256", "columns 128–255 of 384", "every element there"]
    );
    assert_eq!(
        described(&[4, 50, 60], |at| at[0] == 3)[1..],
        ["all in dimension 0 index 3 of 4", "every element there"]
    );
    assert_eq!(described(&shape, |_| false), ["0 of 98304 elements differ"]);
    assert_eq!(described(&[7], |at| at[0] == 6)[1..], ["all in column 6 of 7"]);
}

#[test]
fn the_first_mismatches_have_indices_values_bits_and_distance() {
    let shape = [2, 300, 500];
    let (a, b) = outputs(&shape, |at| at[0] == 1 && at[2] == 499);
    let found = Mismatches::of(Dtype::Bf16, &shape, 2, &a, &b).expect("sizes fit");
    let first: Vec<String> = found.first.iter().map(ToString::to_string).collect();
    assert_eq!(
        first,
        [
            "[1, 0, 499]: reference 1.0 (0x3f80), test 2.0 (0x4000), 128 ULP",
            "[1, 1, 499]: reference 1.0 (0x3f80), test 2.0 (0x4000), 128 ULP"
        ]
    );
    assert_eq!(found.total, 300);
}

#[test]
fn the_map_shows_where() {
    let (a, b) = outputs(&[32, 128], |at| at[0] >= 16 && at[1] < 64 || *at == [0, 127]);
    let map = Mismatches::of(Dtype::Bf16, &[32, 128], 0, &a, &b).expect("sizes fit").map();
    assert_eq!(map.len(), 17);
    assert_eq!(map[0], format!(" 0 |{}+|", ".".repeat(63)));
    assert_eq!(map[7], format!("14 |{}|", ".".repeat(64)));
    assert_eq!(map[8], format!("16 |{}{}|", "#".repeat(32), ".".repeat(32)));
    assert_eq!(map[16], "cell: 2 × 2; . none, - under 10 %, + under all, # all differ");
}

#[test]
fn pieces_and_packed_types_change_nothing() {
    for dtype in [Dtype::Fp4E2m1, Dtype::Fp6E2m3, Dtype::Fp8E4m3, Dtype::F32] {
        let shape = [333, 501];
        let bytes = dtype.bytes_for(333 * 501).expect("small") as usize;
        let (a, mut b) = (vec![0x11; bytes], vec![0x11; bytes]);
        for row in [7, 200, 332] {
            let at = row * 501 + 500;
            let bits = dtype.get(&b, at).expect("inside");
            dtype.set(&mut b, at, bits ^ 2);
        }
        let whole = Mismatches::of(dtype, &shape, 9, &a, &b).expect("sizes fit");
        assert_eq!(
            whole.first.iter().map(|first| first.at.clone()).collect::<Vec<_>>(),
            [[7, 500], [200, 500], [332, 500]]
        );
        let mut search = Search::new(dtype, &shape, 9).expect("small");
        for (a, b) in a.chunks(1_001).zip(b.chunks(1_001)) {
            search.add(a, b).expect("equal pieces");
        }
        let pieces = search.finish().expect("complete");
        assert_eq!((pieces.first, pieces.total), (whole.first.clone(), 3));
        assert_eq!(whole.describe()[1..], ["rows 7–332 of 333", "all in column 500 of 501"]);
    }
}

#[test]
fn each_element_that_differs_is_found_whatever_the_rows() {
    for dtype in TABLE.iter().map(|facts| facts.dtype) {
        for columns in [1, 3, 64, 501, 3_000] {
            let shape = [7_001_u64.div_ceil(columns), columns];
            let elements = shape[0] * columns;
            let a = vec![0x11; dtype.bytes_for(elements).expect("small") as usize];
            let mut b = a.clone();
            let places: Vec<u64> = (0..elements).filter(|index| index * index % 1_009 < 40).collect();
            for &index in &places {
                let bits = dtype.get(&a, index).expect("inside");
                dtype.set(&mut b, index, bits ^ 1);
            }
            let found = Mismatches::of(dtype, &shape, usize::MAX, &a, &b).expect("sizes fit");
            let indices: Vec<u64> = found.first.iter().map(|found| found.at[0] * columns + found.at[1]).collect();
            assert!(indices == places && found.total == places.len() as u64, "{dtype} {columns}");
            assert!(found.first.iter().all(|found| found.reference_bits ^ 1 == found.test_bits));
        }
    }
}

#[test]
fn long_rows_have_their_columns_and_cells() {
    assert_eq!(
        described(&[2, 3_200], |at| at[1] % 64 == 10)[1..],
        ["columns 10–3146 of 3200", "column 10 of every 64"]
    );
    let (a, b) = outputs(&[2, 3_200], |at| at[1] % 64 == 10 && at[1] > 1_100 || *at == [1, 3_199]);
    let found = Mismatches::of(Dtype::Bf16, &[2, 3_200], 0, &a, &b).expect("sizes fit");
    assert_eq!(found.describe()[..2], ["65 of 6400 elements differ", "columns 1162–3199 of 3200"]);
    // Cells of 50 columns: one begins at 2250, the last at 3150.
    let cells: String = (0..64)
        .map(|cell| if (cell * 50..cell * 50 + 50).any(|at| at % 64 == 10 && at > 1_100) { '-' } else { '.' })
        .collect();
    assert_eq!(found.map()[..2], [format!("0 |{}.|", &cells[..63]), format!("1 |{}-|", &cells[..63])]);
}

fn stats(a: &[f32], b: &[f32]) -> Stats {
    let [a, b] = [a, b].map(|values| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    Stats::of(Dtype::F32, a.len() as u64 / 4, &a, &b).expect("sizes fit")
}

#[test]
fn requirements_are_read_and_printed_back() {
    for text in ["bits", "cos=0.999,norm=0.001", "max_abs=0.5,max_rel=0.01,ulp=2"] {
        assert_eq!(text.parse::<Requirement>().map(|requirement| requirement.to_string()), Ok(text.to_owned()));
    }
    for (text, message) in [
        ("cosine=1", "requirement `cosine=1`: expected `bits`, or bounds out of cos=, norm=, max_abs=, max_rel=, ulp="),
        ("", "requirement ``: expected `bits`, or bounds out of cos=, norm=, max_abs=, max_rel=, ulp="),
        ("cos=x", "`x` in `cos=x` is no number"),
        ("cos=1.5,norm=0", "`cos=1.5`: expected above 0 and at most 1"),
        ("cos=0,norm=0", "`cos=0`: expected above 0 and at most 1"),
        ("ulp=-1", "`ulp=-1`: expected a whole number below 2^32"),
        ("ulp=1.5", "`ulp=1.5`: expected a whole number below 2^32"),
        ("norm=nan", "`norm=nan`: expected 0 or above, and below 1"),
        ("max_rel=1", "`max_rel=1`: expected 0 or above, and below 1"),
        ("max_abs=inf", "`max_abs=inf`: expected 0 or above, and finite"),
        (
            "cos=0.999",
            "requirement `cos=0.999`: the cosine does not see a wrong size; bound norm=, max_abs=, max_rel= or ulp= too, as \
             in cos=0.999,norm=1e-3",
        ),
        ("ulp=1,ulp=2", "requirement `ulp=1,ulp=2` bounds `ulp` twice"),
    ] {
        assert_eq!(text.parse::<Requirement>().expect_err("refused").to_string(), message);
    }
}

#[test]
fn each_bound_is_met_or_missed_and_says_by_what() {
    let near = stats(&[1.0, 2.0, 4.0], &[1.0, 2.0, 4.5]);
    let check = |text: &str| {
        let judgement = text.parse::<Requirement>().expect("a requirement").check(&near);
        (judgement.outcome, judgement.findings.last().expect("checked").text.clone())
    };
    assert_eq!(check("bits"), (Outcome::Missed, "bits: 1 of 3 elements differ".to_owned()));
    assert_eq!(check("max_abs=0.5"), (Outcome::Met, "max_abs 0.5 ≤ 0.5".to_owned()));
    assert_eq!(check("max_rel=0.1"), (Outcome::Missed, "max_rel 0.125 > 0.1".to_owned()));
    assert_eq!(check("ulp=1048576"), (Outcome::Met, "ulp 1048576 ≤ 1048576".to_owned()));
    // 23 / sqrt(21 * 25.25) = 0.99882
    assert_eq!(check("max_abs=1,cos=0.999").0, Outcome::Missed);
    assert_eq!(check("max_abs=1,cos=0.9988").0, Outcome::Met);
    assert_eq!(check("max_abs=1,norm=0.01").0, Outcome::Missed);
}

#[test]
fn nan_zero_and_nothing_do_not_pass() {
    let nan = f32::NAN;
    let bounds: Requirement = "max_abs=1e30".parse().expect("a requirement");
    assert_eq!(bounds.check(&stats(&[1.0, 2.0], &[1.0, nan])).outcome, Outcome::Missed);
    assert_eq!(bounds.check(&stats(&[1.0, f32::INFINITY], &[1.0, f32::NEG_INFINITY])).outcome, Outcome::Missed);
    assert_eq!(bounds.check(&stats(&[1.0, nan], &[1.5, nan])).outcome, Outcome::Met);
    assert_eq!(Requirement::Bits.check(&stats(&[nan; 4], &[nan; 4])).outcome, Outcome::NotEstablished);
    assert_eq!(Requirement::Bits.check(&stats(&[], &[])).outcome, Outcome::NotEstablished);
    let cos: Requirement = "cos=0.9,max_abs=1".parse().expect("a requirement");
    assert_eq!(cos.check(&stats(&[0.0; 4], &[0.0; 4])).outcome, Outcome::Met); // all bits are the same
    assert_eq!(cos.check(&stats(&[0.0; 4], &[0.0, 0.0, 0.0, 0.5])).outcome, Outcome::NotEstablished);
}

/// The figures of the three careless outputs that cosine alone lets through.
#[test]
fn the_seeds_rule_is_not_fooled_by_cosine() {
    let reference: Vec<f32> = (0..4_096).map(|index| 100.0 + (index * 37 % 11) as f32 * 0.3).collect();
    let doubled: Vec<f32> = reference.iter().map(|value| value * 2.0).collect();
    let constant = vec![101.5; 4_096];
    let signed: Vec<f32> = (0..4_096).map(|index| ((index * 37 % 11) as f32 - 5.0) * 0.3).collect();
    let mut close = signed.clone();
    close[7] *= 1.0001;
    let same = stats(&signed, &signed);
    let nearly = stats(&signed, &close);
    assert_eq!(seed_verdict(&stats(&reference, &reference), None), SeedVerdict::Pass);
    assert_eq!(seed_verdict(&stats(&reference, &reference), Some(&nearly)), SeedVerdict::Close);
    assert_eq!(seed_verdict(&nearly, Some(&nearly)), SeedVerdict::Close);
    assert_eq!(seed_verdict(&nearly, None), SeedVerdict::Fail);
    for wrong in [&doubled, &constant] {
        let wrong = stats(&reference, wrong);
        assert!(wrong.cos.expect("lengths") > 0.999);
        assert_eq!(seed_verdict(&wrong, Some(&same)), SeedVerdict::Fail);
    }
    assert_eq!(seed_verdict(&stats(&[f32::NAN], &[f32::NAN]), None), SeedVerdict::NotEstablished);
}
