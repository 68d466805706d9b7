//! Random numbers by index, and the normal distribution, in arithmetic that is the same on every machine.

/// Numbers of one buffer, each computed from its index: SplitMix64 (Steele, Lea, Flood, *Fast splittable pseudorandom
/// number generators*, OOPSLA 2014), whose state is a counter.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    key: u64,
}

/// What the state advances by.
pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The numbers of a buffer of a run.
    pub fn new(seed: u64, buffer: u64) -> Stream {
        Stream { key: mix(mix(seed).wrapping_add(buffer.wrapping_mul(GOLDEN_GAMMA))) }
    }

    /// The number at an index.
    #[inline(always)]
    pub fn at(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA)))
    }
}

/// A number from a state.
#[inline(always)]
pub(crate) fn mix(z: u64) -> u64 {
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A number of (0, 1) from the high 53 bits.
#[inline(always)]
pub fn share(draw: u64) -> f64 {
    // At most 2^53 - 1; half a step more would round up to 1.
    ((draw >> 11) as f64 + 0.5).min(9_007_199_254_740_991.0) / 9_007_199_254_740_992.0
}

/// The value below which a share of the standard normal distribution lies: algorithm AS 241 (PPND16) of M. J. Wichura,
/// Applied Statistics 37 (1988) 477–484, good to 1 in 10^16.
pub fn normal_quantile(share: f64) -> f64 {
    let q = share - 0.5;
    if q.abs() <= CENTRAL { central(q) } else { outer(share, ratio(&MIDDLE, radius(share) - 1.6)) }
}

/// [`normal_quantile`] of each, in loops that vectorise.
#[inline(always)]
pub fn normal_quantiles<const N: usize>(shares: &mut [f64; N]) {
    // The outer seventh is worked on apart; behind it the list is filled up with shares that cost nothing special.
    let (mut list, mut places, mut count) = ([0.25; N], [0; N], 0);
    for (place, &share) in shares.iter().enumerate() {
        (list[count], places[count]) = (share, place);
        count += usize::from((share - 0.5).abs() > CENTRAL);
    }
    shares.iter_mut().for_each(|share| *share = central(*share - 0.5));
    let mut middle = list;
    for some in middle.as_chunks_mut::<16>().0.iter_mut().take(count.div_ceil(16)) {
        some.iter_mut().for_each(|share| *share = ratio(&MIDDLE, radius(*share) - 1.6));
    }
    for index in 0..count {
        shares[places[index]] = outer(list[index], middle[index]);
    }
}

/// |share - 1/2| up to which one ratio serves.
const CENTRAL: f64 = 0.425;

#[inline(always)]
fn central(q: f64) -> f64 {
    q * ratio(&CENTRE, 0.180_625 - q * q)
}

#[inline(always)]
fn radius(share: f64) -> f64 {
    (-ln(if share < 0.5 { share } else { 1.0 - share })).sqrt()
}

/// The quantile outside of the centre; `middle` is its magnitude unless the share is in the tail.
#[inline(always)]
fn outer(share: f64, middle: f64) -> f64 {
    // A radius of 5 is a share of e^-25.
    let is_near_tail = share.min(1.0 - share) < 2e-11;
    let tail = || Some(radius(share)).filter(|&radius| radius > 5.0).map(|radius| ratio(&TAIL, radius - 5.0));
    let magnitude = if is_near_tail { tail().unwrap_or(middle) } else { middle };
    magnitude.copysign(share - 0.5)
}

/// Two polynomials of degree 7, highest power first.
type Ratio = [[f64; 8]; 2];

#[inline(always)]
fn ratio([numerator, denominator]: &Ratio, r: f64) -> f64 {
    let value = |polynomial: &[f64; 8]| polynomial.iter().fold(0.0, |sum, coefficient| sum * r + coefficient);
    value(numerator) / value(denominator)
}

#[rustfmt::skip]
#[allow(clippy::excessive_precision)] // as published
const CENTRE: Ratio = [
    [2.509_080_928_730_122_6e3, 3.343_057_558_358_812_8e4, 6.726_577_092_700_870_1e4, 4.592_195_393_154_987_1e4,
     1.373_169_376_550_946_1e4, 1.971_590_950_306_551_4e3, 1.331_416_678_917_843_8e2, 3.387_132_872_796_366_6],
    [5.226_495_278_852_854_6e3, 2.872_908_573_572_194_3e4, 3.930_789_580_009_271_1e4, 2.121_379_430_158_659_6e4,
     5.394_196_021_424_751_1e3, 6.871_870_074_920_579_1e2, 4.231_333_070_160_091_1e1, 1.0],
];
#[rustfmt::skip]
#[allow(clippy::excessive_precision)] // as published
const MIDDLE: Ratio = [
    [7.745_450_142_783_414e-4, 2.272_384_498_926_918_5e-2, 2.417_807_251_774_506e-1, 1.270_458_252_452_368_4,
     3.647_848_324_763_204_6, 5.769_497_221_460_691_4, 4.630_337_846_156_545_3, 1.423_437_110_749_683_6],
    [1.050_750_071_644_416_8e-9, 5.475_938_084_995_345e-4, 1.519_866_656_361_645_7e-2, 1.481_039_764_274_800_7e-1,
     6.897_673_349_851e-1, 1.676_384_830_183_803_8, 2.053_191_626_637_758_8, 1.0],
];
#[rustfmt::skip]
#[allow(clippy::excessive_precision)] // as published
const TAIL: Ratio = [
    [2.010_334_399_292_288_1e-7, 2.711_555_568_743_487_6e-5, 1.242_660_947_388_078_4e-3, 2.653_218_952_657_612_3e-2,
     2.965_605_718_285_048_9e-1, 1.784_826_539_917_291_3, 5.463_784_911_164_114, 6.657_904_643_501_104],
    [2.044_263_103_389_939_8e-15, 1.421_511_758_316_445_9e-7, 1.846_318_317_510_054_7e-5, 7.868_691_311_456_133e-4,
     1.487_536_129_085_061_5e-2, 1.369_298_809_227_358e-1, 5.998_322_065_558_88e-1, 1.0],
];

/// The natural logarithm of a normal number, by the series of the inverse hyperbolic tangent: the C library's differs
/// between machines in the last place.
#[inline(always)]
fn ln(value: f64) -> f64 {
    let bits = value.to_bits();
    let (mut exponent, mut mantissa) = ((bits >> 52) as i32 - 1023, f64::from_bits(bits & !(0xfff << 52) | 1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        (exponent, mantissa) = (exponent + 1, mantissa / 2.0);
    }
    // |s| < 0.172: the first term left out is below 2^-55.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = (0..11).rev().fold(0.0, |sum, k| sum * (s * s) + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vigna's published first outputs of SplitMix64 with state 1234567.
    #[test]
    fn the_stream_is_splitmix64() {
        let stream = Stream { key: 1_234_567 };
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|index| stream.at(index)), expected);
    }

    /// Expected values: Python's `statistics.NormalDist().inv_cdf`.
    #[test]
    fn normal_quantiles_are_those_of_python() {
        for (share, expected) in [
            (5.551115123125783e-17, -8.292361075813595),
            (1e-10, -6.361340902404056),
            (0.001, -3.090232306167813),
            (0.02425, -1.9729610513118845),
            (0.07499, -1.4396021182393162),
            (0.075, -1.4395314709384557),
            (0.3, -0.5244005127080407),
            (0.5, 0.0),
            (0.9, 1.2815515655446008),
            (0.9999999999999999, 8.209536151601386),
        ] {
            let found = normal_quantile(share);
            assert!((found - expected).abs() <= 1e-15 * expected.abs() * 2.0, "{share}: {found} {expected}");
        }
    }

    #[test]
    fn many_quantiles_are_those_of_each() {
        let stream = Stream::new(1, 1);
        for outer in [0, 1, 17, 100] {
            // Of the centre, but for so many of the whole, the tails and the borders.
            let mut shares: [f64; 100] = std::array::from_fn(|index| 0.1 + 0.8 * share(stream.at(index as u64)));
            let ends = [1e-300, 1e-12, 1.4e-11, 0.001, 0.075, 0.925, 0.999, 1.0 - 1e-12, share(0), share(u64::MAX)];
            for index in 0..outer {
                let at = (index * 7 + 3) % 100;
                shares[at] = ends.get(index).copied().unwrap_or_else(|| share(stream.at(1_000 + index as u64)));
            }
            let expected = shares.map(|share| normal_quantile(share).to_bits());
            normal_quantiles(&mut shares);
            assert_eq!(shares.map(f64::to_bits), expected, "{outer}");
        }
    }

    #[test]
    fn shares_are_inside_of_0_and_1() {
        assert!(share(0) > 0.0 && share(u64::MAX) < 1.0 && normal_quantile(share(u64::MAX)).is_finite());
    }
}
