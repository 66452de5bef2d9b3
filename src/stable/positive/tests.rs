//! Draws against distribution functions of other sources, and against the Laplace transform.

use super::super::ks;
use super::*;
use crate::kernels::vector::LANES;
use crate::random::SeedTree;

/// `scipy.stats.levy_stable.cdf(x, a, 1, loc=0, scale=cos(pi a / 2)**(1 / a))` of SciPy 1.17.1
/// in its parametrisation S1, in which that scale gives the Laplace transform exp(-s^a).
const SCIPY: [(f64, [(f64, f64); 7]); 6] = [
    (
        0.15,
        [
            (8.716e-5, 0.019_999_9),
            (0.002_545, 0.100_000_6),
            (0.1687, 0.300_005_2),
            (6.258, 0.499_999_2),
            (500.6, 0.700_000_3),
            (1.636e6, 0.899_996_6),
            (9.772e10, 0.979_999_9),
        ],
    ),
    (
        0.45,
        [
            (0.062_97, 0.019_997_7),
            (0.1449, 0.100_015_3),
            (0.4348, 0.300_022_5),
            (1.192, 0.500_004_4),
            (4.354, 0.700_012_1),
            (55.42, 0.900_002_1),
            (2039.0, 0.979_998_7),
        ],
    ),
    (
        0.6,
        [
            (0.1709, 0.019_991_9),
            (0.2753, 0.100_007_8),
            (0.5264, 0.299_996_9),
            (0.9787, 0.499_989),
            (2.258, 0.699_961_1),
            (13.08, 0.899_997_4),
            (182.4, 0.980_003_1),
        ],
    ),
    (
        0.75,
        [
            (0.3464, 0.020_008_8),
            (0.444, 0.100_004_3),
            (0.6289, 0.299_998_2),
            (0.8916, 0.500_006_8),
            (1.473, 0.700_053_2),
            (4.783, 0.900_008_9),
            (34.69, 0.979_999_2),
        ],
    ),
    (
        0.9,
        [
            (0.6305, 0.020_001_7),
            (0.687, 0.100_021),
            (0.7778, 0.300_075_2),
            (0.8868, 0.500_043_9),
            (1.089, 0.699_820_9),
            (1.965, 0.899_964_3),
            (7.423, 0.980_000_9),
        ],
    ),
    (
        0.945,
        [
            (0.7578, 0.019_951_4),
            (0.793, 0.099_868),
            (0.8474, 0.300_023_7),
            (0.91, 0.500_006_8),
            (1.021, 0.699_594_5),
            (1.471, 0.899_948_2),
            (4.032, 0.980_001),
        ],
    ),
];

fn law(a: f64) -> PositiveStable {
    PositiveStable::new(a).unwrap()
}

fn doubles(a: f64, n: usize) -> Vec<f64> {
    let mut stream = SeedTree::new(11).rng(a.to_bits());
    (0..n).map(|_| law(a).sample(&mut stream)).collect()
}

/// Draws of the vector code, in frames of an odd length.
fn vectors(a: f64, n: usize) -> Vec<f64> {
    let streams = SeedTree::new(12).child(a.to_bits());
    let mut draws = vec![0.0_f32; n];
    for (i, frame) in draws.chunks_mut(257).enumerate() {
        law(a).fill(&mut streams.rng(i as u64), frame);
    }
    draws.into_iter().map(f64::from).collect()
}

/// P(A <= x) at a = 1/2: A is 1 / (2 Z^2) with Z standard normal.
fn levy_cdf(x: f64) -> f64 {
    libm::erfc(0.5 / x.sqrt())
}

/// Zolotarev's integral for P(A <= x) ("One-dimensional Stable Distributions", 1986, section
/// 2.6), by the midpoint rule.
fn zolotarev_cdf(a: f64, x: f64) -> f64 {
    let n = 2000;
    let sum: f64 = (0..n)
        .map(|i| {
            let u = std::f64::consts::PI * (f64::from(i) + 0.5) / f64::from(n);
            let ln_k = (a * libm::log(libm::sin(a * u)) + (1.0 - a) * libm::log(libm::sin((1.0 - a) * u))
                - libm::log(libm::sin(u)))
                / (1.0 - a);
            libm::exp(-libm::exp(ln_k - a / (1.0 - a) * libm::log(x)))
        })
        .sum();
    sum / f64::from(n)
}

#[test]
fn zolotarevs_integral_agrees_with_scipy() {
    for (a, table) in SCIPY {
        for (x, f) in table {
            let ours = zolotarev_cdf(a, x);
            assert!((ours - f).abs() < 2e-6, "a {a} x {x}: {ours} {f}");
        }
    }
}

#[test]
fn draws_follow_levys_closed_form() {
    let d = ks::statistic(doubles(0.5, 100_000), levy_cdf);
    let v = ks::statistic(vectors(0.5, 1_000_000), levy_cdf);
    // Just beside the closed form, Kanter's form must agree with it.
    let k = ks::statistic(vectors(0.5 + 1e-7, 1_000_000), levy_cdf);
    assert!(d < ks::CRITICAL && v < ks::CRITICAL && k < ks::CRITICAL, "{d} {v} {k}");
    let wrong = doubles(0.5, 100_000).into_iter().map(|x| 1.05 * x).collect();
    assert!(ks::statistic(wrong, levy_cdf) > 2.0 * ks::CRITICAL);
}

#[test]
fn draws_follow_scipys_distribution_function() {
    for (a, table) in SCIPY {
        let d = ks::statistic_at(&doubles(a, 100_000), &table);
        let v = ks::statistic_at(&vectors(a, 1_000_000), &table);
        assert!(d < ks::CRITICAL && v < ks::CRITICAL, "a {a}: {d} {v}");
    }
}

#[test]
fn draws_follow_zolotarevs_distribution_function() {
    for a in [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.975, 0.995] {
        let mut draws = vectors(a, 1_000_000);
        draws.sort_by(f64::total_cmp);
        // 200 quantiles and the far tails.
        let n = draws.len();
        let ranks = (1..200).map(|i| i * n / 200).chain([n / 10_000, n - n / 10_000, n - n / 1000]);
        let distance = |scale: f64| {
            let one = |rank| (zolotarev_cdf(a, scale * draws[rank]) - rank as f64 / n as f64).abs();
            ranks.clone().map(one).fold(0.0, f64::max) * (n as f64).sqrt()
        };
        let d = distance(1.0);
        assert!(d < ks::CRITICAL, "a {a}: {d}");
        // A scale wrong by the factor cos(pi a / 2)^(1/a) between the conventions.
        let d = distance(libm::pow(libm::cos(std::f64::consts::FRAC_PI_2 * a), 1.0 / a));
        assert!(d > 4.0 * ks::CRITICAL, "a {a}, wrong scale: {d}");
    }
}

#[test]
fn draws_have_the_laplace_transform() {
    let n = 400_000;
    for a in [0.15, 0.45, 0.5, 0.6, 0.75, 0.9, 0.945] {
        let draws = vectors(a, n);
        for s in [0.1_f64, 0.5, 1.0, 3.0] {
            let transform = |s: f64| libm::exp(-libm::pow(s, a));
            let mean = draws.iter().map(|x| libm::exp(-s * x)).sum::<f64>() / n as f64;
            let variance = transform(2.0 * s) - transform(s) * transform(s);
            let z = (mean - transform(s)) / (variance / n as f64).sqrt();
            assert!(z.abs() < 4.0, "a {a} s {s}: {z}");
            // Draws scaled by a factor of 1.1.
            if s == 1.0 {
                let mean = draws.iter().map(|x| libm::exp(-1.1 * x)).sum::<f64>() / n as f64;
                let z = (mean - transform(1.0)) / (variance / n as f64).sqrt();
                assert!(z.abs() > 6.0, "a {a}: {z}");
            }
        }
    }
}

#[test]
fn single_draws_and_filled_ones_share_the_law() {
    let mut stream = SeedTree::new(5).rng(0);
    let singles: Vec<f64> =
        (0..100_000).map(|_| f64::from(Distribution::<f32>::sample(&law(0.6), &mut stream))).collect();
    let d = ks::statistic_at(&singles, &SCIPY[2].1);
    assert!(d < ks::CRITICAL, "{d}");
}

/// Compares draws with the printed formula for equal random numbers.
#[test]
fn double_draws_are_kanters_form() {
    let mut stream = SeedTree::new(8).rng(0);
    for a in [0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 0.975] {
        for _ in 0..1000 {
            let mut twin = stream.clone();
            let mut uniform = || ((twin.next_u64() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64;
            let angle = std::f64::consts::PI * (1.0 - uniform());
            let exponential = -libm::log(uniform());
            let sine = |share: f64| libm::sin(share * angle);
            let expected = sine(a) / libm::pow(sine(1.0), 1.0 / a)
                * libm::pow(sine(1.0 - a) / exponential, (1.0 - a) / a);
            let draw: f64 = law(a).sample(&mut stream);
            assert!((draw / expected - 1.0).abs() < 1e-9, "a {a}: {draw}, {expected}");
        }
    }
}

#[test]
fn draws_are_finite_and_positive_for_every_exponent() {
    for alpha in (30..=200).map(|i| f64::from(i) / 100.0).chain([1.999, 1.999_999]) {
        let mut draws = vec![0.0; 20_000];
        let law = law(alpha / 2.0);
        law.fill(&mut SeedTree::new(1).rng(0), &mut draws);
        assert!(draws.iter().all(|x| x.is_normal() && *x > 0.0), "alpha {alpha}");
        let double: f64 = law.sample(&mut SeedTree::new(1).rng(0));
        assert!(double.is_normal() && double > 0.0, "alpha {alpha}");
    }
    // A tail beyond the range of `f64`.
    let mut stream = SeedTree::new(1).rng(0);
    let tiny = |_| -> f64 { law(0.01).sample(&mut stream) };
    assert!((0..20_000).map(tiny).all(|x| x.is_normal() && x > 0.0));
    let mut draws = [0.0; 3];
    law(1.0).fill(&mut SeedTree::new(1).rng(0), &mut draws);
    assert_eq!(draws, [1.0; 3]);
}

/// A generator of constant bits.
struct Constant(u64);

impl rand::TryRng for Constant {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        Ok(self.0 as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
        bytes.fill(self.0 as u8);
        Ok(())
    }
}

#[test]
fn extreme_bits_give_finite_positive_double_draws() {
    for bits in [0, 1, u64::MAX - 1, u64::MAX] {
        for a in [0.15, 0.5, 0.9] {
            let draw: f64 = law(a).sample(&mut Constant(bits));
            assert!(draw.is_normal() && draw > 0.0, "a {a}: {draw}");
        }
    }
}

#[test]
fn indices_outside_the_range_are_refused() {
    for a in [0.0, -0.1, 1.000_1, f64::NAN, f64::INFINITY] {
        assert!(PositiveStable::new(a).is_err(), "{a}");
    }
    let message = PositiveStable::new(1.5).unwrap_err().to_string();
    assert_eq!(message, "alpha / 2 is 1.5; expected 0 < alpha / 2 <= 1");
}

#[test]
fn laws_tell_their_index() {
    assert_eq!([0.3, 0.5, 1.0].map(|a| law(a).alpha_half()), [0.3, 0.5, 1.0]);
}

#[test]
fn wide_and_narrow_draws_agree_bit_for_bit() {
    let bits = Philox::from_rng(&mut SeedTree::new(3).rng(0));
    for form in [Form::General { a: 0.45, r: 0.55 / 0.45 }, Form::Levy] {
        let mut wide = vec![0.0; 1003];
        fill_form(form, bits, &mut wide);
        for (i, &draw) in wide.iter().enumerate() {
            let (chunk, i) = (i / (2 * LANES), i % (2 * LANES));
            let words = std::hint::black_box(bits).block((chunk * LANES + i % LANES) as u32);
            let half = 2 * (i / LANES);
            let (u, v) = std::hint::black_box((words[half], words[half + 1]));
            let alone = match form {
                Form::General { a, r } => kanter(a, r, u, v),
                _ => levy(u, v),
            };
            assert_eq!(draw.to_bits(), alone.to_bits());
        }
    }
}

#[test]
fn extreme_bits_give_finite_positive_draws() {
    let words = [0, 1, 2, 3, 255, 256, 1 << 31, (1 << 31) - 1, u32::MAX - 2, u32::MAX - 1, u32::MAX];
    for alpha in (30..200).map(|i| f64::from(i) / 100.0).chain([1.999, 1.999_99]) {
        let a = 0.5 * alpha;
        for u in words {
            for v in words {
                let draw = kanter(a as f32, ((1.0 - a) / a) as f32, u, v);
                assert!(draw.is_normal() && draw > 0.0, "alpha {alpha}: {draw}");
                let draw = levy(u, v);
                assert!(draw.is_normal() && draw > 0.0, "{draw}");
            }
        }
    }
}
