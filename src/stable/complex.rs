//! The complex isotropic alpha-stable law.

use super::{ParameterError, PositiveStable, checked};
use num_complex::Complex;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

/// The complex isotropic symmetric alpha-stable law with characteristic function
/// `E exp(i Re(X conj(t))) = exp(-sigma^alpha |t|^alpha)`.
///
/// `X = sigma sqrt(A) Z`, with A positive stable of index alpha / 2 and Z complex normal with
/// `E|Z|^2 = 4` (Samoradnitsky and Taqqu, "Stable Non-Gaussian Random Processes", 1994,
/// section 2.6). Each part alone is symmetric alpha-stable of scale sigma.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ComplexStable {
    impulse: PositiveStable,
    scale: f64,
}

impl ComplexStable {
    /// The law with exponent `alpha` in (0, 2] and scale `sigma > 0`, in the units of the variable.
    ///
    /// # Errors
    /// If a parameter is outside its range.
    pub fn new(alpha: f64, sigma: f64) -> Result<Self, ParameterError> {
        checked("alpha", alpha, alpha > 0.0 && alpha <= 2.0, "0 < alpha <= 2")?;
        let scale = checked("sigma", sigma, sigma > 0.0 && sigma.is_finite(), "a positive number")?;
        Ok(Self { impulse: PositiveStable::new(alpha / 2.0)?, scale })
    }
}

impl Distribution<Complex<f64>> for ComplexStable {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Complex<f64> {
        let impulse: f64 = self.impulse.sample(rng);
        let radius = self.scale * libm::sqrt(2.0 * impulse);
        let mut part = || radius * Distribution::<f64>::sample(&StandardNormal, rng);
        Complex::new(part(), part())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ks;
    use super::*;
    use crate::random::SeedTree;

    /// `scipy.stats.levy_stable.cdf(x, alpha, 0)` of SciPy 1.17.1 (at beta = 0 its
    /// parametrisations S0 and S1 are one).
    const SCIPY: [(f64, [(f64, f64); 7]); 6] = [
        (
            0.5,
            [
                (0.1, 0.556_721_5),
                (0.5, 0.668_690_4),
                (1.0, 0.728_719_7),
                (2.0, 0.786_071_8),
                (4.0, 0.836_227_2),
                (10.0, 0.888_714_6),
                (40.0, 0.940_769_4),
            ],
        ),
        (
            0.9,
            [
                (0.1, 0.533_33),
                (0.5, 0.650_978_7),
                (1.0, 0.747_456_2),
                (2.0, 0.841_397_4),
                (4.0, 0.908_795_5),
                (10.0, 0.958_568),
                (40.0, 0.987_917),
            ],
        ),
        (
            1.2,
            [
                (0.1, 0.529_883_4),
                (0.5, 0.642_842_1),
                (1.0, 0.753_367_8),
                (2.0, 0.871_772_6),
                (4.0, 0.944_221_3),
                (10.0, 0.982_032_1),
                (40.0, 0.996_660_8),
            ],
        ),
        (
            1.5,
            [
                (0.1, 0.5287),
                (0.5, 0.639_404_2),
                (1.0, 0.756_342),
                (2.0, 0.894_960_2),
                (4.0, 0.969_424_5),
                (10.0, 0.993_360_2),
                (40.0, 0.999_206_5),
            ],
        ),
        (
            1.8,
            [
                (0.1, 0.528_280_3),
                (0.5, 0.638_282_9),
                (1.0, 0.758_714_8),
                (2.0, 0.912_296_6),
                (4.0, 0.987_899_3),
                (10.0, 0.998_452_1),
                (40.0, 0.999_879_7),
            ],
        ),
        (
            1.95,
            [
                (0.1, 0.528_200_7),
                (0.5, 0.638_162_3),
                (1.0, 0.759_867_8),
                (2.0, 0.919_243_1),
                (4.0, 0.995_374_7),
                (10.0, 0.999_706_9),
                (40.0, 0.999_981_5),
            ],
        ),
    ];

    fn draws(alpha: f64, sigma: f64, n: usize) -> Vec<Complex<f64>> {
        let mut stream = SeedTree::new(21).rng(alpha.to_bits());
        let law = ComplexStable::new(alpha, sigma).unwrap();
        (0..n).map(|_| law.sample(&mut stream)).collect()
    }

    #[test]
    fn each_part_follows_scipys_distribution_function() {
        let sigma = 0.3;
        for (alpha, table) in SCIPY {
            let draws = draws(alpha, sigma, 200_000);
            for part in [|x: &Complex<f64>| x.re, |x: &Complex<f64>| x.im] {
                let scaled: Vec<f64> = draws.iter().map(|x| part(x) / sigma).collect();
                let d = ks::statistic_at(&scaled, &table);
                assert!(d < ks::CRITICAL, "alpha {alpha}: {d}");
                // A complex normal with E|Z|^2 = 2 instead of 4 must be detected.
                let halved: Vec<f64> = scaled.iter().map(|x| x / 2.0_f64.sqrt()).collect();
                let d = ks::statistic_at(&halved, &table);
                assert!(d > 4.0 * ks::CRITICAL, "alpha {alpha}, wrong scale: {d}");
            }
        }
    }

    #[test]
    fn modulus_follows_the_closed_form_at_alpha_one() {
        // The bivariate Cauchy law: P(|X| > r) = sigma / sqrt(sigma^2 + r^2).
        let sigma = 2.5;
        let moduli: Vec<f64> = draws(1.0, sigma, 100_000).iter().map(|x| x.norm()).collect();
        let d = ks::statistic(moduli, |r| 1.0 - sigma / sigma.hypot(r));
        assert!(d < ks::CRITICAL, "{d}");
    }

    #[test]
    fn modulus_is_rayleigh_at_alpha_two() {
        let sigma = 0.7;
        let moduli: Vec<f64> = draws(2.0, sigma, 100_000).iter().map(|x| x.norm()).collect();
        let d = ks::statistic(moduli, |r| 1.0 - libm::exp(-r * r / (4.0 * sigma * sigma)));
        assert!(d < ks::CRITICAL, "{d}");
    }

    #[test]
    fn draws_have_the_characteristic_function_in_every_direction() {
        let n = 200_000;
        for alpha in [0.4, 0.9, 1.2, 1.5, 1.89, 2.0] {
            let sigma = 1.7;
            let draws = draws(alpha, sigma, n);
            for (modulus, angle) in [(0.1, 0.0), (0.3, 0.7), (0.6, 2.2)] {
                let t = Complex::from_polar(modulus, angle);
                let phi = |r: f64| libm::exp(-libm::pow(sigma * r, alpha));
                let mean = draws.iter().map(|x| libm::cos((x * t.conj()).re)).sum::<f64>() / n as f64;
                // Var cos = (1 + phi(2t)) / 2 - phi(t)^2
                let variance = 0.5 * (1.0 + phi(2.0 * modulus)) - phi(modulus) * phi(modulus);
                let z = (mean - phi(modulus)) / (variance / n as f64).sqrt();
                assert!(z.abs() < 4.0, "alpha {alpha} t {t}: {z}");
            }
        }
    }

    #[test]
    fn parameters_outside_the_range_are_refused() {
        for (alpha, sigma) in [(0.0, 1.0), (2.1, 1.0), (f64::NAN, 1.0), (1.0, 0.0), (1.0, f64::INFINITY)] {
            assert!(ComplexStable::new(alpha, sigma).is_err(), "{alpha} {sigma}");
        }
    }
}
