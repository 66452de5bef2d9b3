//! The whole model against independent computations: finite differences, Itakura-Saito factorisation, exact
//! conditional draws, and data drawn from the model itself.

use super::*;
use crate::random::{SeedTree, SeededRng};
use crate::samplers::{Hmc, HmcSettings, LogMapped, Minibatch, Sampler, Target};
use crate::stable::PositiveStable;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Gamma};

/// A recording drawn from the model, with its parameters.
struct Problem<T> {
    mixture: Mixture<T>,
    /// rank x frames, speech first.
    activations: Vec<T>,
    impulses: SampledVariables<T>,
    /// bins x frames.
    power: Vec<T>,
}

fn problem(alpha: (f64, f64), bins: usize, frames: usize, ranks: (usize, usize), seed: u64) -> Problem<f64> {
    let mut stream = SeedTree::new(seed).rng(0);
    let mut positive =
        |count: usize| -> Vec<f64> { (0..count).map(|_| 0.1 + stream.random::<f64>()).collect() };
    let mixture = Mixture {
        bins,
        speech: Factor { alpha: alpha.0, spectra: positive(bins * ranks.0) },
        noise: Factor { alpha: alpha.1, spectra: positive(bins * ranks.1) },
    };
    let activations = positive((ranks.0 + ranks.1) * frames);
    let mut workspace = Workspace::default();
    let dispersed = workspace.disperse(&mixture, &activations);
    let (impulses, power) = draw_data(&mixture, dispersed.dispersions(), &mut stream);
    Problem { mixture, activations, impulses, power }
}

/// Impulse variables and powers from the model, by its definition.
fn draw_data(
    mixture: &Mixture<f64>,
    (lambda_speech, lambda_noise): (&[f64], &[f64]),
    stream: &mut SeededRng,
) -> (SampledVariables<f64>, Vec<f64>) {
    let mut source = |alpha: f64, lambda: &[f64]| -> (Vec<f64>, Vec<f64>) {
        let law = PositiveStable::new(alpha / 2.0).unwrap();
        let draw = |&lambda: &f64| {
            let phi: f64 = law.sample(stream);
            (phi, phi * lambda.powf(2.0 / alpha))
        };
        lambda.iter().map(draw).unzip()
    };
    let (speech, speech_variance) = source(mixture.speech.alpha, lambda_speech);
    let (noise, noise_variance) = source(mixture.noise.alpha, lambda_noise);
    let variances = speech_variance.iter().zip(&noise_variance);
    let power = variances.map(|(s, n)| (s + n) * Distribution::<f64>::sample(&Exp1, stream)).collect();
    (SampledVariables { speech, noise }, power)
}

fn table<T>(mixture: &Mixture<T>) -> MarginalTable {
    MarginalTable::new(mixture.speech.alpha, mixture.noise.alpha)
}

impl Problem<f64> {
    fn bins(&self) -> usize {
        self.mixture.bins
    }

    fn potential(&self, mixture: &Mixture<f64>, activations: &[f64], impulses: ImpulseVariables<f64>) -> f64 {
        let mut workspace = Workspace::default();
        let mut potential = vec![f64::NAN; self.power.len() / self.bins()];
        workspace.disperse(mixture, activations).potential(impulses, &self.power, &mut potential);
        potential.iter().sum()
    }

    /// Checks the gradients of activations, noise spectra and speech spectra (in this order) against
    /// differences over a relative `step`; errors are relative to the magnitude of the terms that add up.
    fn check_gradients(&self, impulses: ImpulseVariables<f64>, step: f64, tolerance: f64) {
        let Self { mixture, activations, .. } = self;
        let compare =
            |what: &str, values: &[f64], gradient: &[f64], magnitude: &[f64], at: &dyn Fn(&[f64]) -> f64| {
                for k in 0..values.len() {
                    let moved = |factor: f64| {
                        let mut values = values.to_vec();
                        values[k] *= factor.exp();
                        at(&values)
                    };
                    let slope = (moved(step) - moved(-step)) / (2.0 * step);
                    let error = (slope - gradient[k] * values[k]).abs() / (magnitude[k] * values[k]);
                    assert!(
                        error < tolerance,
                        "{what} {k}: {} against {slope}, error {error}",
                        gradient[k] * values[k]
                    );
                }
            };
        let (frames, bins) = (self.power.len() / self.bins(), self.bins());
        let mut workspace = Workspace::default();
        let mut dispersed = workspace.disperse(mixture, activations);
        let slopes = dispersed.evaluate(impulses, &self.power).update_terms();
        let zeros = |count: usize| (vec![0.0; count], vec![0.0; count]);
        let (mut numerator, mut denominator) = zeros(mixture.rank() * frames);
        slopes.activations(&mut numerator, &mut denominator);
        let (mut noise_numerator, mut noise_denominator) = zeros(bins * mixture.noise_rank());
        slopes.add_noise(&mut noise_numerator, &mut noise_denominator);
        let (mut speech_numerator, mut speech_denominator) = zeros(bins * mixture.speech_rank());
        slopes.add_speech(&mut speech_numerator, &mut speech_denominator);

        let derivatives = slopes.differentiate();
        let mut gradient = vec![f64::NAN; activations.len()];
        derivatives.activations(&mut gradient);
        let magnitude: Vec<f64> = numerator.iter().zip(&denominator).map(|(r, l)| r + l).collect();
        compare("activation", activations, &gradient, &magnitude, &|h| self.potential(mixture, h, impulses));

        let mut gradient = vec![0.0; noise_numerator.len()];
        derivatives.add_noise(&mut gradient);
        let magnitude: Vec<f64> =
            noise_numerator.iter().zip(&noise_denominator).map(|(r, l)| r + l).collect();
        compare("noise spectrum", &mixture.noise.spectra, &gradient, &magnitude, &|w| {
            let noise = Factor { spectra: w.to_vec(), ..mixture.noise };
            self.potential(&Mixture { noise, ..mixture.clone() }, activations, impulses)
        });

        let slopes = || speech_numerator.iter().zip(&speech_denominator);
        let gradient: Vec<f64> = slopes().map(|(r, l)| 2.0 / mixture.speech.alpha * (l - r)).collect();
        let magnitude: Vec<f64> = slopes().map(|(r, l)| r + l).collect();
        compare("speech spectrum", &mixture.speech.spectra, &gradient, &magnitude, &|w| {
            let speech = Factor { spectra: w.to_vec(), ..mixture.speech };
            self.potential(&Mixture { speech, ..mixture.clone() }, activations, impulses)
        });
    }
}

#[test]
fn gradients_are_finite_differences_of_the_potential() {
    for (seed, alpha) in [(1.2, 1.89), (0.6, 1.8), (2.0, 1.95), (1.5, 2.0)].into_iter().enumerate() {
        let problem = problem(alpha, 7, 5, (3, 2), seed as u64);
        problem.check_gradients(ImpulseVariables::Sampled(&problem.impulses), 1e-5, 1e-7);
        // Differences over the spacing of the table's grid; interpolation between grid points is accurate to 3%.
        problem.check_gradients(ImpulseVariables::Integrated(&table(&problem.mixture)), 0.4, 0.06);
    }
}

#[test]
fn a_subsample_of_all_bins_is_the_gradient_and_one_of_some_is_unbiased() {
    let Problem { mixture, activations, impulses, power } = problem((1.2, 1.89), 6, 3, (2, 2), 5);
    let gradient = |batches: &[(&[usize], f64)]| {
        let mut sum = vec![0.0; activations.len()];
        for (bins, scale) in batches {
            let mut weights = vec![0.0; 6];
            bins.iter().for_each(|&bin| weights[bin] += scale);
            let mut workspace = Workspace::default();
            let mut dispersed = workspace.disperse(&mixture, &activations);
            let shares = dispersed.evaluate(ImpulseVariables::Sampled(&impulses), &power);
            let mut gradient = vec![0.0; activations.len()];
            shares.update_terms().differentiate().weighted(&weights).activations(&mut gradient);
            sum.iter_mut().zip(gradient).for_each(|(sum, g)| *sum += g / batches.len() as f64);
        }
        sum
    };
    let full = gradient(&[(&[0, 1, 2, 3, 4, 5], 1.0)]);
    // All bins occur equally often in these batches.
    let halves = gradient(&[(&[0, 0, 1], 2.0), (&[1, 2, 2], 2.0), (&[3, 4, 5], 2.0), (&[3, 4, 5], 2.0)]);
    for (a, b) in full.iter().zip(halves) {
        assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()), "{a} {b}");
    }
}

/// `out[i, j] = sum_k f(i, k) g(k, j)`, column-major: the reference's matrix product.
fn sums(rows: usize, inner: usize, columns: usize, term: impl Fn(usize, usize, usize) -> f64) -> Vec<f64> {
    let at = |i: usize, j: usize| (0..inner).map(|k| term(i, k, j)).sum();
    (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| at(i, j)).collect()
}

#[test]
fn gaussian_sources_are_itakura_saito_factorisation() {
    let (bins, frames, split, rank) = (9, 7, 3, 5);
    let Problem { mixture, activations: h, power, .. } =
        problem((2.0, 2.0), bins, frames, (split, rank - split), 3);
    let w = [mixture.speech.spectra.clone(), mixture.noise.spectra.clone()].concat();
    let v = sums(bins, rank, frames, |f, k, t| w[f + k * bins] * h[k + t * rank]);
    let v_speech = sums(bins, split, frames, |f, k, t| w[f + k * bins] * h[k + t * rank]);
    let divergence: f64 = v.iter().zip(&power).map(|(v, p)| v.ln() + p / v).sum();
    // The multiplicative updates of Févotte, Bertin and Durrieu (2009), before the ratio is taken.
    let at = |f: usize, t: usize| f + t * bins;
    let h_numerator =
        sums(rank, bins, frames, |k, f, t| w[f + k * bins] * power[at(f, t)] / v[at(f, t)].powi(2));
    let h_denominator = sums(rank, bins, frames, |k, f, t| w[f + k * bins] / v[at(f, t)]);
    let w_numerator =
        sums(bins, frames, rank, |f, t, k| h[k + t * rank] * power[at(f, t)] / v[at(f, t)].powi(2));
    let w_denominator = sums(bins, frames, rank, |f, t, k| h[k + t * rank] / v[at(f, t)]);

    let mut step = ImpulseStep::new(2.0, 2.0).unwrap();
    let sampled = step.draw::<f64>(power.len(), &mut SeedTree::new(0).rng(0));
    let table = table(&mixture);
    for (impulses, tolerance) in
        [(ImpulseVariables::Sampled(&sampled), 1e-9), (ImpulseVariables::Integrated(&table), 0.03)]
    {
        let close = |what: &str, found: &[f64], expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!((found / expected - 1.0).abs() < tolerance, "{what}: {found} against {expected}");
            }
        };
        let mut workspace = Workspace::default();
        let mut dispersed = workspace.disperse(&mixture, &h);
        let mut potential = vec![0.0; frames];
        dispersed.potential(impulses, &power, &mut potential);
        assert!((potential.iter().sum::<f64>() - divergence).abs() < tolerance * power.len() as f64);
        let gain: Vec<f64> = v_speech.iter().zip(&v).map(|(s, v)| s / v).collect();
        let shares = dispersed.evaluate(impulses, &power);
        close("gain", shares.gain(), &gain);
        let slopes = shares.update_terms();
        let zeros = || vec![0.0; h.len()];
        let (mut numerator, mut denominator) = (zeros(), zeros());
        slopes.activations(&mut numerator, &mut denominator);
        close("numerator of H", &numerator, &h_numerator);
        close("denominator of H", &denominator, &h_denominator);
        let (mut numerator, mut denominator) = (vec![0.0; w.len()], vec![0.0; w.len()]);
        let (speech, noise) = (..split * bins, split * bins..);
        slopes.add_speech(&mut numerator[speech], &mut denominator[speech]);
        slopes.add_noise(&mut numerator[noise.clone()], &mut denominator[noise]);
        close("numerator of W", &numerator, &w_numerator);
        close("denominator of W", &denominator, &w_denominator);
    }
}

/// `sqrt(nm / (n + m))` times the largest distance of two empirical distribution functions.
fn two_sample_statistic(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let distance = a.iter().enumerate().fold(0.0_f64, |distance, (i, x)| {
        let below = b.partition_point(|y| y <= x) as f64 / m;
        distance.max((below - i as f64 / n).abs()).max((below - (i + 1) as f64 / n).abs())
    });
    distance * (n * m / (n + m)).sqrt()
}

#[test]
fn the_metropolis_step_has_the_exact_conditional() {
    /// The 99.99% point of the Kolmogorov distribution.
    const CRITICAL: f64 = 2.23;
    const CHAINS: usize = 8_000;
    const STEPS: usize = 60;
    for (case, (alpha, lambda, power)) in
        [((0.9, 1.9), (1.0, 1.0), 8.0), ((1.2, 1.8), (1.0, 0.5), 12.0), ((0.6, 1.5), (0.4, 1.0), 10.0)]
            .into_iter()
            .enumerate()
    {
        let mut stream = SeedTree::new(11).rng(case as u64);
        let laws = [alpha.0, alpha.1].map(|alpha| PositiveStable::new(alpha / 2.0).unwrap());
        let sigma2 = [f64::powf(lambda.0, 2.0 / alpha.0), f64::powf(lambda.1, 2.0 / alpha.1)];
        let summaries = |phi: [f64; 2]| {
            let v = [phi[0] * sigma2[0], phi[1] * sigma2[1]];
            [phi[0].ln(), phi[1].ln(), v[0] / (v[0] + v[1])]
        };
        // Exact draws by rejection: draws of the prior, accepted with a probability of the likelihood over
        // its maximum, 1 / (e |X|^2).
        let mut exact: [Vec<f64>; 3] = Default::default();
        while exact[0].len() < 20_000 {
            let phi: [f64; 2] = laws.map(|law| law.sample(&mut stream));
            let v = phi[0] * sigma2[0] + phi[1] * sigma2[1];
            if stream.random::<f64>() < power / v * (1.0 - power / v).exp() {
                exact.iter_mut().zip(summaries(phi)).for_each(|(all, value)| all.push(value));
            }
        }
        let mut distances = |scale: (f64, f64)| {
            let mixture = Mixture {
                bins: 1,
                speech: Factor { alpha: alpha.0, spectra: vec![1.0] },
                noise: Factor { alpha: alpha.1, spectra: vec![1.0] },
            };
            let dispersions = [vec![lambda.0 * scale.0; CHAINS], vec![lambda.1 * scale.1; CHAINS]];
            let power = vec![power; CHAINS];
            let mut step = ImpulseStep::new(alpha.0, alpha.1).unwrap();
            let mut impulses = step.draw::<f64>(CHAINS, &mut stream);
            let mut accepted = 0;
            for _ in 0..STEPS {
                let lambda = (&dispersions[0][..], &dispersions[1][..]);
                accepted += step.step(&mut impulses, &mixture, lambda, &power, &mut stream);
            }
            let acceptance = accepted as f64 / (2 * CHAINS * STEPS) as f64;
            assert!((0.3..1.0).contains(&acceptance), "acceptance {acceptance}");
            let SampledVariables { speech, noise } = impulses;
            let mut chains: [Vec<f64>; 3] = Default::default();
            for (&speech, &noise) in speech.iter().zip(&noise) {
                chains.iter_mut().zip(summaries([speech, noise])).for_each(|(all, value)| all.push(value));
            }
            chains
                .into_iter()
                .zip(exact.clone())
                .map(|(chain, exact)| two_sample_statistic(chain, exact))
                .fold(0.0, f64::max)
        };
        let right = distances((1.0, 1.0));
        assert!(right < CRITICAL, "case {case}: {right}");
        // Twice the impulse variable is 2^(alpha / 2) times the dispersion.
        for wrong in [(2_f64.powf(alpha.0 / 2.0), 1.0), (1.0, 2_f64.powf(alpha.1 / 2.0))] {
            let distance = distances(wrong);
            assert!(distance > 2.0 * CRITICAL, "case {case}: doubling goes unnoticed, {distance}");
        }
    }
}

#[test]
fn the_table_holds_averages_over_impulse_variables() {
    const DRAWS: usize = 100_000;
    for (case, alpha) in [(0.6, 1.8), (1.2, 1.95), (0.9, 1.5), (1.8, 2.0)].into_iter().enumerate() {
        let table = MarginalTable::new(alpha.0, alpha.1);
        let mut stream = SeedTree::new(12).rng(case as u64);
        let mut draws = |alpha: f64| -> Vec<f64> {
            PositiveStable::new(alpha / 2.0).unwrap().sample_iter(&mut stream).take(DRAWS).collect()
        };
        let (speech, noise) = (draws(alpha.0), draws(alpha.1));
        let mut compared = 0;
        for speech_ratio in [-7.0, -3.1, 0.0, 2.3, 6.0, 11.7, 19.0] {
            for noise_ratio in [-5.3, -1.0, 0.9, 4.2, 7.5_f64] {
                let scales = [f64::exp(-speech_ratio), f64::exp(-noise_ratio)];
                // Sums of the weights, of the weighted values, of their squares and products with the weights.
                let mut weights = [0.0; 2];
                let mut moments = [[0.0; 3]; 3];
                let mut likely = 0;
                for (phi_speech, phi_noise) in speech.iter().zip(&noise) {
                    let v = phi_speech * scales[0] + phi_noise * scales[1];
                    let weight = (-1.0 / v).exp() / v;
                    let gain = phi_speech * scales[0] / v;
                    likely += usize::from(v > 0.2);
                    weights[0] += weight;
                    weights[1] += weight * weight;
                    for (moment, value) in moments.iter_mut().zip([gain, gain / v, (1.0 - gain) / v]) {
                        moment[0] += weight * value;
                        moment[1] += weight * weight * value;
                        moment[2] += weight * weight * value * value;
                    }
                }
                if likely < 500 || weights[0] * weights[0] / weights[1] < 500.0 {
                    continue; // too few draws come near the power: their average proves nothing
                }
                compared += 1;
                let e = table.expectations(speech_ratio as f32, noise_ratio as f32);
                let found = [e.gain, e.speech_power, e.noise_power].map(f64::from);
                for (k, ([first, cross, square], found)) in moments.into_iter().zip(found).enumerate() {
                    let mean = first / weights[0];
                    let variance = square - 2.0 * mean * cross + mean * mean * weights[1];
                    let error = variance.max(0.0).sqrt() / weights[0];
                    let bound = 4.5 * error + 0.04 * mean + 0.005;
                    assert!(
                        (found - mean).abs() < bound,
                        "alpha {alpha:?}, ratios {speech_ratio} {noise_ratio}, number {k}: {found} against {mean} +- {error}"
                    );
                }
                // Interpolation errs by 0.058 at most here, beyond an eighth of the squared spacing times the curvature, about
                // E[|X|^2 / v]. The evidence only enters the acceptance of moves, whose rate 0.07 changes by 7 % at most.
                let excess = (moments[1][0] + moments[2][0]) / weights[0];
                let evidence = weights[0] / DRAWS as f64;
                let error = (weights[1] / DRAWS as f64 - evidence * evidence).sqrt()
                    / ((DRAWS as f64).sqrt() * evidence);
                let difference = (f64::from(e.log_evidence) - evidence.ln()).abs();
                assert!(
                    difference < 4.5 * error + 0.07 + 0.03 * excess,
                    "alpha {alpha:?}, ratios {speech_ratio} {noise_ratio}: evidence off by {difference} +- {error}"
                );
            }
        }
        assert!(compared >= 20, "only {compared} points compared");
    }
}

/// The activations of every frame under a Gamma prior.
struct Posterior<'a> {
    mixture: &'a Mixture<f32>,
    impulses: SampledVariables<f32>,
    power: &'a [f32],
    prior: Prior,
    workspace: Workspace<f32>,
}

impl Target<f32> for Posterior<'_> {
    fn dimension(&self) -> usize {
        self.mixture.rank()
    }

    fn blocks(&self) -> usize {
        self.power.len() / self.mixture.bins
    }

    fn gradient(&mut self, theta: &[f32], _: Minibatch<'_>, gradient: &mut [f32]) {
        let mut dispersed = self.workspace.disperse(self.mixture, theta);
        let shares = dispersed.evaluate(ImpulseVariables::Sampled(&self.impulses), self.power);
        shares.update_terms().differentiate().activations(gradient);
        self.prior.add_gradient(theta, gradient);
    }

    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        let impulses = ImpulseVariables::Sampled(&self.impulses);
        self.workspace.disperse(self.mixture, theta).potential(impulses, self.power, potential);
        for (potential, column) in potential.iter_mut().zip(theta.chunks_exact(self.mixture.rank())) {
            *potential += column.iter().map(|&h| self.prior.potential(h.into())).sum::<f64>();
        }
    }
}

/// Calibration of the posterior (Talts and others, 2018): when activations are drawn from their prior and recordings
/// from the model, the rank of the true activation among posterior draws is uniform. The sampler receives the powers
/// multiplied by `mistake`. Returns the chi-square statistics of the ranks of both activations and of one bin's gain,
/// with 15 degrees of freedom each.
fn calibration(alpha: (f64, f64), mistake: f64, seed: u64) -> [f64; 3] {
    const BINS: usize = 6;
    const FRAMES: usize = 1_000;
    const DRAWS: usize = 63;
    const CELLS: usize = 16;
    const SWEEPS_PER_DRAW: usize = 5;
    const BURN_IN: usize = 60;
    let streams = SeedTree::new(seed);
    let mut stream = streams.rng(0);
    let speech: Vec<f64> = (0..BINS).map(|_| 0.3 + stream.random::<f64>()).collect();
    let noise: Vec<f64> = (0..BINS).map(|_| 0.3 + stream.random::<f64>()).collect();
    let exact = Mixture {
        bins: BINS,
        speech: Factor { alpha: alpha.0, spectra: speech },
        noise: Factor { alpha: alpha.1, spectra: noise },
    };
    let (shape, rate) = (2.0, 2.0);
    let gamma = Gamma::new(shape, 1.0 / rate).unwrap();
    let truth: Vec<f64> = gamma.sample_iter(&mut stream).take(2 * FRAMES).collect();
    let mut workspace = Workspace::default();
    let mut dispersed = workspace.disperse(&exact, &truth);
    let (impulses, power) = draw_data(&exact, dispersed.dispersions(), &mut stream);
    let shares = dispersed.evaluate(ImpulseVariables::Sampled(&impulses), &power);
    let true_gain: Vec<f32> = shares.gain().iter().step_by(BINS).map(|&x| x as f32).collect();

    let single = |values: &[f64]| -> Vec<f32> { values.iter().map(|&x| x as f32).collect() };
    let mixture = Mixture {
        bins: BINS,
        speech: Factor { alpha: alpha.0, spectra: single(&exact.speech.spectra) },
        noise: Factor { alpha: alpha.1, spectra: single(&exact.noise.spectra) },
    };
    let power: Vec<f32> = power.iter().map(|&x| (x * mistake) as f32).collect();
    let mut step = ImpulseStep::new(alpha.0, alpha.1).unwrap();
    let impulses = step.draw(power.len(), &mut stream);
    let prior = Prior::Gamma { shape, rate };
    let mut target = LogMapped::new(Posterior {
        mixture: &mixture,
        impulses,
        power: &power,
        prior,
        workspace: Workspace::default(),
    });
    let settings = HmcSettings { step_size: 0.3, leaps: 4, jitter: 0.3, ..HmcSettings::default() };
    let mut sampler = Hmc::new(2, FRAMES, settings, streams.child(1)).unwrap();
    let mut state: Vec<f32> =
        gamma.sample_iter(&mut stream).take(2 * FRAMES).map(|h| h.ln() as f32).collect();
    let mut ranks = [vec![0_usize; FRAMES], vec![0; FRAMES], vec![0; FRAMES]];
    sampler.adapt(true);
    for sweep in 0..BURN_IN + DRAWS * SWEEPS_PER_DRAW {
        if sweep == BURN_IN {
            sampler.adapt(false);
        }
        sampler.step(&mut target, &mut state);
        let posterior = target.inner();
        let activations: Vec<f32> = state.iter().map(|x| x.exp()).collect();
        let mut dispersed = posterior.workspace.disperse(&mixture, &activations);
        step.step(&mut posterior.impulses, &mixture, dispersed.dispersions(), &power, &mut stream);
        if sweep >= BURN_IN && (sweep - BURN_IN) % SWEEPS_PER_DRAW == SWEEPS_PER_DRAW - 1 {
            let shares = dispersed.evaluate(ImpulseVariables::Sampled(&posterior.impulses), &power);
            for t in 0..FRAMES {
                ranks[0][t] += usize::from(activations[2 * t] < truth[2 * t] as f32);
                ranks[1][t] += usize::from(activations[2 * t + 1] < truth[2 * t + 1] as f32);
                ranks[2][t] += usize::from(shares.gain()[BINS * t] < true_gain[t]);
            }
        }
    }
    ranks.map(|ranks| {
        let mut counts = [0_usize; CELLS];
        ranks.iter().for_each(|rank| counts[rank * CELLS / (DRAWS + 1)] += 1);
        let expected = FRAMES as f64 / CELLS as f64;
        counts.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum()
    })
}

#[test]
fn posterior_draws_are_calibrated_and_only_with_the_right_scale() {
    /// The 99.99% point of chi-square with 15 degrees of freedom.
    const CRITICAL: f64 = 44.3;
    for (seed, alpha) in [(1.2, 1.8), (0.8, 1.95)].into_iter().enumerate() {
        let right = calibration(alpha, 1.0, seed as u64);
        assert!(right.iter().all(|&x| x < CRITICAL), "alpha {alpha:?}: {right:?}");
        // Impulse variables of twice the size, as without the constant of the convention.
        let wrong = calibration(alpha, 2.0, seed as u64);
        assert!(wrong[0].max(wrong[1]) > 2.0 * CRITICAL, "alpha {alpha:?}: {wrong:?}");
    }
}
