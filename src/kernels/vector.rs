//! Elementary functions and random bits over slices of `f32`, with the widest instructions of the CPU.
//!
//! The functions are branch-free polynomials without fused multiplication, so every result is bit-identical on every
//! CPU and for every SIMD width, including the remainder of a slice. [`dispatch`] runs a loop over them with the widest
//! instructions that the CPU has.

/// Runs `op` compiled for the widest SIMD instructions of the CPU at hand.
///
/// `op` and all functions that it calls must be inlined for an effect, so write `dispatch(#[inline(always)] || ...)`;
/// the functions of this module are inlined.
#[inline]
pub(crate) fn dispatch<R>(op: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(op)
}

/// Maximum result of [`ln`] and the argument above which [`exp`] saturates: `ln(f32::MAX)`.
const LN_MAX: f32 = 88.722_83;
/// Minimum result of [`ln`] and the argument below which [`exp`] saturates: `ln(f32::MIN_POSITIVE)`.
const LN_MIN_POSITIVE: f32 = -87.336_54;

/// Natural logarithm, with a relative error of at most 2e-7 or an error of 4 units in the last place.
///
/// Arguments below `f32::MIN_POSITIVE` (zero, subnormal and negative ones) count as
/// `f32::MIN_POSITIVE`; the result for a NaN or an infinity is unspecified.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    let x = if x < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { x };
    // x = m 2^e with m in [sqrt(1/2), sqrt(2)).
    let offset = x.to_bits().wrapping_sub(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let e = (offset as i32) >> 23;
    let t = f32::from_bits(x.to_bits().wrapping_sub((e << 23) as u32)) - 1.0;
    let e = e as f32;
    // ln(1 + t) = t - t^2/2 + t^3 p(t); p is a minimax fit of relative error 7e-10.
    let mut p = 0.067_466_415;
    p = p * t - 0.116_756_57;
    p = p * t + 0.118_881_65;
    p = p * t - 0.124_055_885;
    p = p * t + 0.142_195_52;
    p = p * t - 0.166_679_96;
    p = p * t + 0.200_021_19;
    p = p * t - 0.250_000_1;
    p = p * t + 0.333_333_13;
    let t2 = t * t;
    let tail = t2 * t * p + e * LN_2_LOW - 0.5 * t2;
    (tail + t) + e * LN_2_HIGH
}

/// Exponential, with a relative error of at most 2e-7.
///
/// Saturates at `f32::MIN_POSITIVE` and just below `f32::MAX`: the result of a finite argument is
/// always positive, finite and normal. A NaN gives an unspecified value.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let x = if x < LN_MIN_POSITIVE { LN_MIN_POSITIVE } else { x };
    let x = if x > LN_MAX { LN_MAX } else { x };
    // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // exp(r) = 1 + r + r^2 p(r) on |r| <= ln(2)/2; p is a minimax fit of relative error 3e-9.
    let mut p = 0.001_381_459_9;
    p = p * r + 0.008_368_717;
    p = p * r + 0.041_668_39;
    p = p * r + 0.166_665_21;
    p = p * r + 0.499_999_94;
    let y = r * r * p + r + 1.0;
    // 2^n in two factors, as 2^128 exceeds the range of `f32`.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let half_power = ((half + 127) << 23) as u32;
    let other_power = ((n - half + 127) << 23) as u32;
    let y = y * f32::from_bits(half_power) * f32::from_bits(other_power);
    if y < f32::MIN_POSITIVE { f32::MIN_POSITIVE } else { y }
}

/// `ln 2` in two parts; the first has 9 significant bits, so its product with an exponent is exact.
const LN_2_HIGH: f32 = 355.0 / 512.0;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// `sin(pi x)` for x in \[0, 1/2\], with a relative error of at most 2e-7.
#[inline(always)]
pub(crate) fn sin_pi(x: f32) -> f32 {
    let z = x * x;
    let mut p = 0.077_560_39;
    p = p * z - 0.598_242_1;
    p = p * z + 2.550_069_8;
    p = p * z - 5.167_71;
    p = p * z + std::f32::consts::PI;
    p * x
}

/// `x^exponent` as `exp(exponent ln(x))`, with the ranges of [`exp`] and [`ln`].
///
/// The relative error grows with `|exponent ln(x)|`, to 1e-5 at its limits.
#[inline(always)]
pub(crate) fn powf(x: f32, exponent: f32) -> f32 {
    exp(exponent * ln(x))
}

/// Minimum distance of a fraction from 0 and 1 in log odds.
const MIN_FRACTION: f32 = 1e-6;

/// Natural log odds of a fraction.
#[inline(always)]
pub(crate) fn log_odds(fraction: f32) -> f32 {
    let fraction = fraction.clamp(MIN_FRACTION, 1.0 - MIN_FRACTION);
    ln(fraction / (1.0 - fraction))
}

/// The fraction with these natural log odds.
#[inline(always)]
pub(crate) fn logistic(log_odds: f32) -> f32 {
    1.0 / (1.0 + exp(-log_odds))
}

/// Hyperbolic tangent.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    2.0 * logistic(2.0 * x) - 1.0
}

/// Hyperbolic tangent within 2e-5, in a third of the time of [`tanh`]; sufficient for networks.
#[inline(always)]
pub(crate) fn rough_tanh(x: f32) -> f32 {
    // Argument above which the exact value is within 1.3e-5 of one.
    const MAX_ARGUMENT: f32 = 6.0;
    let x = if x > MAX_ARGUMENT { MAX_ARGUMENT } else { x };
    let x = if x < -MAX_ARGUMENT { -MAX_ARGUMENT } else { x };
    // A minimax fit, odd, of degrees 5 and 6.
    let z = x * x;
    let above = 0.999_971_2 + z * (0.114_472_86 + z * 1.495_558_4e-3);
    let below = 1.0 + z * (0.447_714_27 + z * (1.748_748_7e-2 + z * 5.518_621e-5));
    x * above / below
}

/// The fraction with these natural log odds within 1e-5, by [`rough_tanh`].
#[inline(always)]
pub(crate) fn rough_logistic(log_odds: f32) -> f32 {
    0.5 + 0.5 * rough_tanh(0.5 * log_odds)
}

/// The counter-based generator Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// every block is computed from its index alone, so lanes are independent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Philox {
    key: [u32; 2],
    nonce: [u32; 2],
}

impl Philox {
    /// The sequence seeded by 128 bits of `rng`.
    pub(crate) fn from_rng<R: rand::Rng + ?Sized>(rng: &mut R) -> Self {
        let halves = |word: u64| [word as u32, (word >> 32) as u32];
        Self { key: halves(rng.next_u64()), nonce: halves(rng.next_u64()) }
    }

    /// Block `index` of the sequence: four words of 32 bits.
    #[inline(always)]
    pub(crate) fn block(&self, index: u32) -> [u32; 4] {
        philox([index, 0, self.nonce[0], self.nonce[1]], self.key)
    }
}

#[inline(always)]
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    let multiply = |a: u32, b: u32| {
        let product = u64::from(a) * u64::from(b);
        ((product >> 32) as u32, product as u32)
    };
    for _ in 0..10 {
        let (high_0, low_0) = multiply(0xd251_1f53, counter[0]);
        let (high_1, low_1) = multiply(0xcd9e_8d57, counter[2]);
        counter = [high_1 ^ counter[1] ^ key[0], low_1, high_0 ^ counter[3] ^ key[1], low_0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// A uniform variable in (0, 1) from 31 of the bits; relative precision is kept towards 0.
#[inline(always)]
pub(crate) fn uniform(bits: u32) -> f32 {
    // An offset of half a step excludes 0; above 2^24 the conversion rounds, at most to 1.
    const BELOW_ONE: f32 = 1.0 - f32::EPSILON / 2.0;
    let u = ((bits >> 1) as i32 as f32 + 0.5) * (1.0 / 2_147_483_648.0);
    if u > BELOW_ONE { BELOW_ONE } else { u }
}

/// Number of blocks of the generator computed together: enough for the widest registers.
pub(crate) const LANES: usize = 16;

/// Fills `out` with `draw(word, another word)`; value i depends only on the sequence and on i.
pub(crate) fn fill(bits: Philox, out: &mut [f32], draw: impl Fn(u32, u32) -> f32) {
    dispatch(
        #[inline(always)]
        || {
            for (chunk, out) in out.chunks_mut(2 * LANES).enumerate() {
                let mut words = [[0_u32; LANES]; 4];
                for lane in 0..LANES {
                    let block = bits.block((chunk * LANES + lane) as u32);
                    for (row, word) in words.iter_mut().zip(block) {
                        row[lane] = word;
                    }
                }
                let mut draws = [0.0_f32; 2 * LANES];
                for lane in 0..LANES {
                    draws[lane] = draw(words[0][lane], words[1][lane]);
                }
                for lane in 0..LANES {
                    draws[LANES + lane] = draw(words[2][lane], words[3][lane]);
                }
                out.copy_from_slice(&draws[..out.len()]);
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The largest relative error over every 97th number of the range.
    fn worst(range: std::ops::RangeInclusive<f32>, f: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let (mut bits, last) = (range.start().to_bits(), range.end().to_bits());
        let mut worst = 0.0_f64;
        while bits <= last {
            let x = f32::from_bits(bits);
            let y = exact(f64::from(x));
            worst = worst.max((f64::from(f(x)) - y).abs() / y.abs().max(f64::MIN_POSITIVE));
            bits += 97;
        }
        worst
    }

    #[test]
    fn exp_is_accurate_over_its_range() {
        let positive = worst(0.0..=LN_MAX, exp, libm::exp);
        let negative = worst(0.0..=-LN_MIN_POSITIVE, |x| exp(-x), |x| libm::exp(-x));
        assert!(positive < 2e-7 && negative < 2e-7, "{positive:e} {negative:e}");
    }

    #[test]
    fn exp_saturates_at_finite_positive_numbers() {
        for x in [-f32::INFINITY, f32::MIN, -1000.0, -88.0, LN_MIN_POSITIVE] {
            let y = exp(x);
            assert!((f32::MIN_POSITIVE..1.0001 * f32::MIN_POSITIVE).contains(&y), "{x}: {y:e}");
        }
        for x in [LN_MAX, 89.0, 1000.0, f32::MAX, f32::INFINITY] {
            let y = exp(x);
            assert!((0.9999 * f32::MAX..=f32::MAX).contains(&y), "{x}: {y:e}");
        }
    }

    #[test]
    fn ln_is_accurate_over_its_range() {
        let error = worst(f32::MIN_POSITIVE..=f32::MAX, ln, libm::log);
        assert!(error < 2e-7, "{error:e}");
        assert_eq!(ln(1.0), 0.0);
        for x in [0.0, -0.0, -1.0, 1e-40] {
            assert_eq!(ln(x), ln(f32::MIN_POSITIVE));
        }
    }

    #[test]
    fn sin_pi_is_accurate_over_its_range() {
        let exact = |x: f64| libm::sin(std::f64::consts::PI * x);
        let error = worst(f32::MIN_POSITIVE..=0.5, sin_pi, exact);
        assert!(error < 2e-7, "{error:e}");
    }

    #[test]
    fn powf_is_accurate_over_its_range() {
        let error = worst(1e-19..=1e19, |x| powf(x, 1.9), |x| libm::pow(x, f64::from(1.9_f32)));
        assert!(error < 1e-5, "{error:e}");
    }

    #[test]
    fn rough_functions_are_within_their_bounds_and_stay_inside_their_ranges() {
        for n in -20_000..=20_000 {
            let x = n as f32 / 1000.0;
            let (tanh, logistic) = (rough_tanh(x), rough_logistic(x));
            let exact = libm::tanh(f64::from(x));
            assert!((f64::from(tanh) - exact).abs() < 2e-5 && tanh.abs() < 1.0, "{x}: {tanh}");
            let exact = 1.0 / (1.0 + libm::exp(-f64::from(x)));
            assert!(
                (f64::from(logistic) - exact).abs() < 1e-5 && (0.0..1.0).contains(&logistic),
                "{x}: {logistic}"
            );
        }
        assert!(rough_tanh(f32::INFINITY) > 0.9999 && rough_tanh(f32::NEG_INFINITY) < -0.9999);
    }

    #[test]
    fn philox_gives_the_published_vectors() {
        // kat_vectors of the Random123 distribution, philox4x32 with 10 rounds.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn uniform_stays_inside_the_open_interval() {
        assert!(uniform(0) > 0.0);
        assert!(uniform(u32::MAX) < 1.0);
        assert_eq!(uniform(1 << 31), 0.5);
    }

    #[test]
    fn wide_and_narrow_code_agree_bit_for_bit() {
        let mut wide: Vec<f32> = (0..1003).map(|i| i as f32 * 0.17 - 85.0).collect();
        let narrow: Vec<f32> = wide.iter().map(|&x| exp(std::hint::black_box(x))).collect();
        dispatch(
            #[inline(always)]
            || wide.iter_mut().for_each(|x| *x = exp(*x)),
        );
        assert_eq!(wide, narrow);
    }
}
