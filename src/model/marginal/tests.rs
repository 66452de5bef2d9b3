//! The table against quadrature and closed forms.

use super::*;
use crate::stable::log_impulse_quadrature;

/// The expectations by two-dimensional quadrature over the logits of both laws' distribution functions, each node
/// the law's own quantile, in logarithms throughout.
fn quadrature(speech: &[(f64, f64)], noise: &[(f64, f64)], ratios: (f64, f64)) -> Expectations<f64> {
    let terms = || {
        speech.iter().flat_map(|&(log_s, p_s)| {
            noise.iter().map(move |&(log_n, p_n)| {
                let (s, n) = (log_s - ratios.0, log_n - ratios.1);
                let log_v = s.max(n) + (-(s - n).abs()).exp().ln_1p();
                (p_s * p_n, s, n, log_v, -log_v - (-log_v).exp())
            })
        })
    };
    let largest = terms().map(|term| term.4).fold(f64::MIN, f64::max);
    let mut sums = [0.0; 4];
    for (probability, s, n, log_v, log_weight) in terms() {
        let weight = probability * (log_weight - largest).exp();
        sums[0] += weight;
        sums[1] += weight * (s - log_v).exp();
        sums[2] += weight * (s - 2.0 * log_v).exp();
        sums[3] += weight * (n - 2.0 * log_v).exp();
    }
    Expectations {
        gain: sums[1] / sums[0],
        speech_power: sums[2] / sums[0],
        noise_power: sums[3] / sums[0],
        log_evidence: sums[0].ln() + largest,
    }
}

/// The table is the quadrature, over the grid and beyond, for all valid exponents.
#[test]
fn the_table_is_the_quadrature() {
    for (alpha_speech, alpha_noise) in [
        (0.8, 1.9),
        (0.2, 1.9),
        (0.4, 1.9),
        (1.2, 1.5),
        (2.0, 2.0),
        (0.2, 0.2),
        (1.9, 0.6),
        (0.8, 2.0),
        (2.0, 1.9),
    ] {
        let table = MarginalTable::new(alpha_speech, alpha_noise);
        let (speech, noise) = (log_impulse_quadrature(alpha_speech), log_impulse_quadrature(alpha_noise));
        let (mut worst, mut worst_power, mut worst_evidence) =
            ((0.0_f64, (0.0, 0.0)), (0.0_f64, (0.0, 0.0)), 0.0_f64);
        let stretch = (1.0 / alpha_speech).max(1.0 / alpha_noise).max(1.0);
        for i in 0..10 {
            for j in 0..8 {
                // Off the grid, from below it to above it.
                let speech_ratio = stretch * (-16.07 + 8.13 * f64::from(i));
                let noise_ratio = stretch * (-15.03 + 5.31 * f64::from(j));
                let exact = quadrature(&speech, &noise, (speech_ratio, noise_ratio));
                let found = table.expectations(speech_ratio as f32, noise_ratio as f32);
                assert!(
                    [found.gain, found.speech_power, found.noise_power, found.log_evidence]
                        .iter()
                        .all(|x| x.is_finite()),
                    "alpha {alpha_speech} {alpha_noise} at {speech_ratio} {noise_ratio}: {found:?}"
                );
                let at = (speech_ratio, noise_ratio);
                let gain = (f64::from(found.gain) - exact.gain).abs();
                if gain > worst.0 {
                    worst = (gain, at);
                }
                let within = speech_ratio < 40.0 * stretch
                    && noise_ratio < 17.0
                    && speech_ratio > -6.0
                    && noise_ratio > -6.0;
                if within && speech_ratio.min(noise_ratio) < 12.0 {
                    for (found, exact) in
                        [(found.speech_power, exact.speech_power), (found.noise_power, exact.noise_power)]
                    {
                        let error = (f64::from(found) - exact).abs() / (exact + 0.1);
                        if error > worst_power.0 {
                            worst_power = (error, at);
                        }
                    }
                    let error = (f64::from(found.log_evidence) - exact.log_evidence).abs()
                        / (1.0 + exact.log_evidence.abs());
                    worst_evidence = worst_evidence.max(error);
                }
            }
        }
        let normal = alpha_speech == 2.0 || alpha_noise == 2.0;
        let (most, most_of_power) = if normal { (0.15, 0.3) } else { (0.05, 0.15) };
        assert!(
            worst.0 < most && worst_power.0 < most_of_power && worst_evidence < 0.03,
            "alpha {alpha_speech} {alpha_noise}: gain {worst:?} power {worst_power:?} evidence {worst_evidence}"
        );
    }
}

/// `E log A` is `gamma (1 / a - 1)`, with Euler's constant.
#[test]
fn lattices_keep_the_mean_of_the_logarithm() {
    for alpha in [0.4, 0.8, 1.2, 1.5, 1.9, 2.0] {
        let law = LatticeLaw::new(alpha, STEP * stretch(alpha), SPEECH_RANGE.1 * stretch(alpha));
        let mean: f64 = law.nodes.iter().map(|&(place, p)| f64::from(place) * law.spacing * p).sum();
        let expected = 0.577_215_664_901_532_9 * (2.0 / alpha - 1.0);
        assert!((mean - expected).abs() < 0.01, "alpha {alpha}: {mean} in place of {expected}");
    }
}

#[test]
fn gaussian_sources_have_the_wiener_gain() {
    let table = MarginalTable::new(2.0, 2.0);
    for (speech_ratio, noise_ratio) in [(0.0, 0.0), (1.3, -0.4), (-3.0, 2.2), (-30.0, -31.0)] {
        let (speech, noise) = (f64::exp(-speech_ratio), f64::exp(-noise_ratio));
        let e = table.expectations(speech_ratio as f32, noise_ratio as f32);
        let gain = speech / (speech + noise);
        assert!((f64::from(e.gain) - gain).abs() < 5e-3, "{e:?} against {gain}");
        if speech_ratio > -10.0 {
            let power = speech / (speech + noise).powi(2);
            assert!((f64::from(e.speech_power) / power - 1.0).abs() < 0.03, "{e:?} against {power}");
        }
    }
}

#[test]
fn fisher_identity_holds() {
    let table = MarginalTable::new(0.9, 1.95);
    for (a, b) in [(0.0, 0.0), (5.0, 1.0), (-2.0, 1.5), (20.0, 3.0)] {
        let at = |a: f32, b: f32| table.expectations(a, b);
        let step = 0.25;
        // Derivatives of the log evidence, of |X|^2 p(X), with respect to both log variances.
        let speech_slope = (at(a - step, b).log_evidence - at(a + step, b).log_evidence) / (2.0 * step);
        let noise_slope = (at(a, b - step).log_evidence - at(a, b + step).log_evidence) / (2.0 * step);
        let e = at(a, b);
        assert!((speech_slope - (e.speech_power - e.gain)).abs() < 0.02, "{speech_slope} {e:?}");
        assert!((noise_slope - (e.noise_power - (1.0 - e.gain))).abs() < 0.02, "{noise_slope} {e:?}");
    }
}
