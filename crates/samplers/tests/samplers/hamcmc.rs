//! HAMCMC: pairs, bias, positivity and bookkeeping.

#[path = "../../examples/shared/curvature.rs"]
mod curvature;

use crate::proof::targets::gradient_at;
use crate::proof::{self, constant, narrow, worst};
use alphamf_samplers::lbfgs::InverseHessian;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;
use curvature::largest_curvature;

/// Returns the mean square of the moves that have pairs, in `steps` steps in one dimension, and the number of these
/// moves. The first moves, and a few later ones, have no usable pair.
fn mean_square(
    sampler: &mut Hamcmc<f64>,
    target: &mut dyn Target<f64>,
    start: f64,
    steps: usize,
) -> (f64, f64) {
    let (mut theta, mut square, mut count) = ([start], 0.0, 0.0);
    for _ in 0..steps {
        let start = sampler.next_start(&theta)[0];
        let step = sampler.step(target, &mut theta);
        if step.pairs > Some(0) {
            square += (theta[0] - start).powi(2);
            count += 1.0;
        }
    }
    (square / count, count)
}

/// In one dimension a pair is the whole of `H`: `1 / (curvature + lambda)`, whichever states it is of.
#[test]
fn pairs_of_hamcmc_have_lambda_in_their_curvature() {
    let (eps, lambda, precision) = (1e-3, 2.0, 1.5);
    for pairs in [Pairs::Moves, Pairs::States] {
        let settings = HamcmcSettings {
            gradient: constant(eps),
            memory: 3,
            trust_region: lambda,
            initial_scale: InitialScale::Fixed(1.0),
            ..HamcmcSettings::default()
        };
        let sampler = Hamcmc::new(1, 1, settings, SeedTree::new(2)).unwrap();
        let mut sampler = sampler.with_pairs(pairs).unwrap().with_shifted_pairs();
        let mut target = Gaussian::new(vec![0.0], vec![precision]).unwrap();
        let (square, count) = mean_square(&mut sampler, &mut target, 0.5, 100_000);
        let found = square / (2.0 * eps);
        let expected = 1.0 / (precision + lambda);
        // The standard error is half a percent.
        assert!(
            (found / expected - 1.0).abs() < 0.02 && count > 9e4,
            "{pairs:?}: {found}, {expected}, {count}"
        );
    }
}

/// Terms `(theta - k)^2 / 2`, a hundred of them: any minibatch has their curvature, and a gradient of its own.
struct Scattered;

impl Target<f64> for Scattered {
    fn dimension(&self) -> usize {
        1
    }

    fn terms(&self) -> usize {
        100
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        gradient[0] = batch.scale() * batch.iter().map(|k| theta[0] - k as f64).sum::<f64>();
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = (0..100).map(|k| 0.5 * (theta[0] - f64::from(k)).powi(2)).sum();
    }
}

/// The gradients of a pair are those of one minibatch, so that `H` is the inverse curvature in spite of their noise.
#[test]
fn pairs_of_hamcmc_are_free_of_the_noise_of_minibatches() {
    let eps = 1e-6;
    for pairs in [Pairs::Moves, Pairs::States] {
        let gradient = GradientSettings { minibatch: Some(10), ..constant(eps) };
        let settings = HamcmcSettings { gradient, memory: 4, ..HamcmcSettings::default() };
        let sampler = Hamcmc::new(1, 1, settings, SeedTree::new(2)).unwrap();
        let mut sampler = sampler.with_pairs(pairs).unwrap();
        let (square, count) = mean_square(&mut sampler, &mut Scattered, 49.5, 20_000);
        let found = square / (2.0 * eps);
        // The standard error is 1 %.
        assert!((found / 0.01 - 1.0).abs() < 0.04 && count > 19_000.0, "{pairs:?}: {found} {count}");
    }
}

/// The linear Gaussian model of hamcmc section 4.1: ten observations per unknown, noise variance 10.
#[test]
fn hamcmc_samples_the_linear_gaussian_posterior_and_the_printed_root_does_not() {
    for (dimension, memory) in [(2, 2), (10, 3)] {
        let mut model = LinearGaussian::synthetic(dimension, 10 * dimension, 10.0, 1.0, SeedTree::new(3));
        let exact = model.posterior().clone();
        let gamma = 1.0 / largest_curvature(&exact);
        let settings = HamcmcSettings {
            gradient: constant(0.1),
            memory,
            initial_scale: InitialScale::Fixed(gamma),
            refresh_interval: 1,
            trust_region: 0.0,
        };
        let mut sampler = Hamcmc::new(dimension, 1, settings, SeedTree::new(1)).unwrap();
        let mut moments = Moments::new(dimension);
        let mut chain = Chain::new(&mut model, &mut sampler, vec![0.0; dimension]).unwrap();
        chain.burn_in(2000);
        chain.run(200_000, |draw| moments.add(draw.theta));
        assert_eq!(chain.statistics().divergences, 0);
        let (mean, covariance) = moments.errors(&exact);
        assert!(mean < 0.12 && covariance < 0.15, "{mean} {covariance}");

        let covariance = printed_hamcmc(&mut model, memory, gamma).errors(&exact).1;
        assert!(covariance > 0.45, "{covariance}");
    }
}

/// Sums of draws and of their products.
struct Moments {
    count: f64,
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Moments {
    fn new(n: usize) -> Self {
        Self { count: 0.0, first: vec![0.0; n], second: vec![0.0; n * n] }
    }

    fn add(&mut self, theta: &[f64]) {
        let n = theta.len();
        self.count += 1.0;
        for j in 0..n {
            self.first[j] += theta[j];
            (0..n).for_each(|i| self.second[j * n + i] += theta[i] * theta[j]);
        }
    }

    /// The largest error of the mean in posterior deviations, and the Frobenius norm of `A^1/2 C A^1/2 - I`
    /// divided by the root of the dimension, where `C` is the draws' covariance and `A` the exact precision.
    fn errors(&self, exact: &Gaussian) -> (f64, f64) {
        let n = self.first.len();
        let mean: Vec<f64> = self.first.iter().map(|sum| sum / self.count).collect();
        let covariance = |i: usize, j: usize| self.second[j * n + i] / self.count - mean[i] * mean[j];
        let truth = exact.covariance();
        let error = |i: usize| (mean[i] - exact.mean()[i]).abs() / truth[i * n + i].sqrt();
        let product = |i: usize, j: usize| {
            (0..n).map(|k| exact.precision(i, k) * covariance(k, j)).sum::<f64>() - f64::from(i == j)
        };
        let pairs = (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        let trace: f64 = pairs.map(|(i, j)| product(i, j) * product(j, i)).sum();
        ((0..n).map(error).fold(0.0, f64::max), (trace / n as f64).sqrt())
    }
}

/// HAMCMC with the square root that eq. 11 of `hamcmc-2016` prints.
fn printed_hamcmc(model: &mut LinearGaussian, memory: usize, gamma: f64) -> Moments {
    let n = Target::<f64>::dimension(model);
    let mut stream = SeedTree::new(5).rng(0);
    let mut inverse = InverseHessian::new(n, memory);
    let mut states = vec![vec![0.0; n]; memory];
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = vec![(vec![0.0; n], vec![0.0; n]); memory];
    let mut moments = Moments::new(n);
    for t in 0..52_000 {
        inverse.reset(gamma);
        let ages = (1..memory).map(|age| (t + age) % memory);
        let used: Vec<_> =
            ages.filter(|&k| inverse.push(&pairs[k].0, &pairs[k].1)).map(|k| pairs[k].clone()).collect();
        let slot = t % memory;
        let before = gradient_at(model, &states[slot]);
        let mut drift = before.clone();
        inverse.multiply(&mut drift);
        let mut noise: Vec<f64> = (0..n).map(|_| f64::normal(&mut stream)).collect();
        printed_root(&used, gamma, &mut noise);
        let theta: Vec<f64> =
            (0..n).map(|i| states[slot][i] - 0.1 * drift[i] + 0.2_f64.sqrt() * noise[i]).collect();
        let after = gradient_at(model, &theta);
        let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
        pairs[slot] = (difference(&theta, &states[slot]), difference(&after, &before));
        if t >= 2000 {
            moments.add(&theta);
        }
        states[slot] = theta;
    }
    moments
}

/// `v <- S v` with eq. 11 of `hamcmc-2016` as printed.
fn printed_root(pairs: &[(Vec<f64>, Vec<f64>)], gamma: f64, v: &mut [f64]) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    v.iter_mut().for_each(|v| *v *= gamma.sqrt());
    let mut hessian: Vec<Vec<f64>> = Vec::new();
    for (s, y) in pairs {
        let apply = |x: &[f64]| -> Vec<f64> {
            let mut bx: Vec<f64> = x.iter().map(|x| x / gamma).collect();
            for ((s, y), bs) in pairs.iter().zip(&hessian) {
                let (p, q) = (dot(y, x) / dot(s, y), dot(bs, x) / dot(s, bs));
                bx.iter_mut().zip(y).zip(bs).for_each(|((bx, y), bs)| *bx += p * y - q * bs);
            }
            bx
        };
        let (bs, sby) = (apply(s), dot(s, &apply(y)));
        let root = (dot(s, y) / sby).abs().sqrt();
        let q: Vec<f64> = bs.iter().zip(y).map(|(bs, y)| root * bs - y).collect();
        let c = dot(&q, v) / dot(s, y);
        v.iter_mut().zip(s).for_each(|(v, s)| *v -= c * s);
        hessian.push(bs);
    }
}

/// A correlated Gaussian cut off at zero.
fn cut_gaussian() -> Gaussian {
    Gaussian::new(vec![0.2, 0.2], vec![5.0, -4.0, -4.0, 5.0]).unwrap()
}

/// Folding every draw of a dense sampler distorts the density near the boundary however small the step; with a
/// diagonal sampler, or with a mirrored target, it does not.
#[test]
fn mirrored_target_is_exact_where_folding_is_not() {
    let (mut norm, mut sums) = (0.0, [0.0; 3]);
    for i in 0..800 {
        for j in 0..800 {
            let (x, y) = ((f64::from(i) + 0.5) / 160.0, (f64::from(j) + 0.5) / 160.0);
            let mut u = [0.0];
            cut_gaussian().potential(&[x, y], &mut u);
            let weight = (-u[0]).exp();
            norm += weight;
            [x, x * x, x * y].iter().zip(&mut sums).for_each(|(value, sum)| *sum += weight * value);
        }
    }
    let [mean, square, product] = sums.map(|sum| sum / norm);
    let deviation = (square - mean * mean).sqrt();
    let problem = |target: fn() -> Box<dyn Target<f64>>| proof::Problem {
        name: "cut Gaussian",
        target,
        start: vec![0.5, 0.5],
        quantities: vec![
            proof::Quantity { name: "x", value: |t| t[0].abs(), mean, deviation },
            proof::Quantity { name: "x y", value: |t| (t[0] * t[1]).abs(), mean: product, deviation },
        ],
    };
    let folded = problem(|| Box::new(cut_gaussian()));
    let mirrored = problem(|| Box::new(Mirrored::new(cut_gaussian())));
    let hamcmc = |mirror, step, initial_scale| {
        let settings = HamcmcSettings {
            gradient: GradientSettings { mirror, ..constant(step) },
            memory: 3,
            initial_scale,
            refresh_interval: 1,
            trust_region: 2.0,
        };
        move |streams| -> Box<dyn Sampler<f64>> { Box::new(Hamcmc::new(2, 1, settings, streams).unwrap()) }
    };
    let folding = |step| GradientSettings { mirror: true, ..constant(step) };
    let sgld =
        |streams| -> Box<dyn Sampler<f64>> { Box::new(Sgld::new(2, 1, folding(0.01), streams).unwrap()) };
    // A fold reverses the momentum.
    let sghmc = |streams| -> Box<dyn Sampler<f64>> {
        let settings = SghmcSettings { gradient: folding(0.1), ..SghmcSettings::default() };
        Box::new(Sghmc::new(2, 1, settings, streams).unwrap())
    };
    type Factory<'a> = &'a (dyn Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync);
    let run = |problem, sampler: Factory<'_>| {
        worst(problem, &proof::estimate(problem, sampler, false, (2000, 150_000)), 0.03)
    };
    for step in [0.1, 0.03] {
        let (errors, _) = run(&folded, &hamcmc(true, step, InitialScale::Pairs(0.1)));
        assert!(errors > 6.0, "{errors}");
    }
    let (errors, precision) = run(&mirrored, &hamcmc(false, 0.1, InitialScale::Fixed(0.1)));
    assert!(errors < 5.0 && precision < 0.05, "{errors} {precision}");
    for (name, sampler) in [("SGLD", &sgld as Factory<'_>), ("SGHMC", &sghmc)] {
        let (errors, precision) = run(&folded, sampler);
        assert!(errors < 5.0 && precision < 0.05, "{name}: {errors} {precision}");
    }
}

/// `-x'x / 4`: curvature of -1/2 everywhere, and a slope that grows with the distance.
struct Saddle;

impl Target<f64> for Saddle {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.iter_mut().zip(theta).for_each(|(gradient, theta)| *gradient = -0.5 * theta);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = -0.25 * theta.iter().map(|theta| theta * theta).sum::<f64>();
    }
}

#[test]
fn pairs_that_the_trust_region_makes_positive_count_as_published_only() {
    let sampler = |trust_region| {
        let settings = HamcmcSettings { gradient: constant(0.01), trust_region, ..HamcmcSettings::default() };
        Hamcmc::new(2, 1, settings, SeedTree::new(1)).unwrap()
    };
    let pairs = |mut sampler: Hamcmc<f64>| {
        let mut theta = [1.0, 1.0];
        (0..9).map(|_| sampler.step(&mut Saddle, &mut theta).pairs).last().flatten()
    };
    assert_eq!(pairs(sampler(1.0)), Some(0));
    assert_eq!(pairs(sampler(1.0).with_shifted_pairs()), Some(2));
    // The trust region is too small to make them positive.
    assert_eq!(pairs(sampler(0.4).with_shifted_pairs()), Some(0));
}

#[test]
fn drifts_that_are_cut_are_counted() {
    let limited = |drift_limit| {
        let gradient = GradientSettings { drift_limit, ..constant(0.01) };
        let settings = HamcmcSettings { gradient, ..HamcmcSettings::default() };
        let mut sampler = Hamcmc::new(2, 1, settings, SeedTree::new(1)).unwrap();
        sampler.step(&mut Saddle, &mut [1.0, 100.0]).clipped
    };
    // The drifts are 0.005 and 0.5.
    assert_eq!([0.001, 0.1, 1.0, f64::INFINITY].map(limited), [2, 1, 0, 0].map(Some));
}

/// A move to a finite state without a finite gradient is not made.
#[test]
fn hamcmc_goes_nowhere_without_a_gradient() {
    let law = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = if theta[0] > 1.5 { f64::NAN } else { theta[0] };
        0.5 * theta[0] * theta[0]
    });
    let settings = HamcmcSettings { gradient: constant(0.1), ..HamcmcSettings::default() };
    let sampler = Hamcmc::new(1, 1, settings, SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(law, sampler, vec![1.0]).unwrap();
    chain.run(500, |draw| assert!(draw.theta[0] <= 1.5));
    assert!(chain.statistics().divergences > 0);
}

/// A runaway move to a state without a gradient is reverted, and counts as one divergence of its block.
#[test]
fn hamcmc_counts_a_divergence_once() {
    let law = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        gradient[0] = if theta[0].abs() > 1.5 { f64::INFINITY } else { theta[0] };
        0.5 * theta[0] * theta[0]
    });
    let settings = HamcmcSettings { gradient: constant(0.1), ..HamcmcSettings::default() };
    let sampler = Hamcmc::new(1, 1, settings, SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(law, sampler, vec![1.0]).unwrap();
    chain.run(500, |draw| assert!(draw.step.divergences <= 1, "{:?}", draw.step));
    assert!(chain.statistics().divergences > 0);
}

/// Every chain has a pair after its first step, however seldom it is renewed.
#[test]
fn hamcmc_renews_at_the_first_step_of_each_chain() {
    let settings = HamcmcSettings {
        gradient: constant(0.01),
        memory: 4,
        refresh_interval: 1000,
        ..HamcmcSettings::default()
    };
    let mut sampler = Hamcmc::new(2, 1, settings, SeedTree::new(1)).unwrap();
    let (mut target, mut theta) = (Gaussian::equicorrelated(2, 1.0, 0.3), vec![0.0; 2]);
    let pairs = (0..5).map(|_| sampler.step(&mut target, &mut theta).pairs).last();
    assert_eq!(pairs, Some(Some(3)));
}

/// Two logarithms of Gamma(5, 1) variables, `u` and `v`, seen as `(u, 2 u + v)`: correlated, with a Hessian that varies.
struct Sheared {
    blocks: usize,
}

const SHEAR: f64 = 2.0;

/// The mean and the variance of the logarithm of a Gamma(5, 1) variable.
const LOG_GAMMA: (f64, f64) = (1.506_117_668_431_8, 0.221_322_955_737_115);

impl Target<f64> for Sheared {
    fn dimension(&self) -> usize {
        2
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        for (theta, gradient) in theta.chunks_exact(2).zip(gradient.chunks_exact_mut(2)) {
            let slope = |x: f64| x.exp() - 5.0;
            let (u, v) = (slope(theta[0]), slope(theta[1] - SHEAR * theta[0]));
            gradient.copy_from_slice(&[u - SHEAR * v, v]);
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        for (theta, potential) in theta.chunks_exact(2).zip(potential) {
            let value = |x: f64| x.exp() - 5.0 * x;
            *potential = value(theta[0]) + value(theta[1] - SHEAR * theta[0]);
        }
    }
}

/// How far the means of `u` and `v` are from the truth, in standard deviations, and the standard error of the worse.
fn sheared_bias(pairs: Pairs, memory: usize, step: f64) -> ([f64; 2], f64) {
    let blocks = 100;
    let settings = HamcmcSettings {
        gradient: constant(step),
        memory,
        initial_scale: InitialScale::Fixed(0.1),
        ..HamcmcSettings::default()
    };
    let sampler = Hamcmc::new(2, blocks, settings, SeedTree::new(1)).unwrap().with_pairs(pairs).unwrap();
    let start = [LOG_GAMMA.0, (1.0 + SHEAR) * LOG_GAMMA.0].repeat(blocks);
    let mut chain = Chain::new(Sheared { blocks }, sampler, start).unwrap();
    let steps = (400.0 / step) as usize * memory;
    chain.burn_in(steps / 10);
    let mut sums = vec![[0.0; 2]; blocks];
    chain.run(steps, |draw| {
        for (sums, theta) in sums.iter_mut().zip(draw.theta.chunks_exact(2)) {
            sums[0] += theta[0];
            sums[1] += theta[1] - SHEAR * theta[0];
        }
    });
    assert_eq!(chain.statistics().divergences, 0);
    let (mut bias, mut error) = ([0.0; 2], 0.0_f64);
    for (k, bias) in bias.iter_mut().enumerate() {
        let means: Vec<f64> = sums.iter().map(|sums| sums[k] / steps as f64).collect();
        let (mean, variance) = diagnostics::mean_and_variance(&means);
        *bias = (mean - LOG_GAMMA.0) / LOG_GAMMA.1.sqrt();
        error = error.max((variance / blocks as f64 / LOG_GAMMA.1).sqrt());
    }
    (bias, error)
}

/// The pairs of the other chains' moves keep a bias; those of their states do not.
#[test]
fn hamcmc_is_exact_as_its_step_falls_with_pairs_of_states_only() {
    for (pairs, memory, step) in [(Pairs::Moves, 2, 0.04), (Pairs::Moves, 3, 0.04), (Pairs::States, 3, 0.03)]
    {
        let (bias, error) = sheared_bias(pairs, memory, step);
        println!("{pairs:?}, M = {memory}, step {step}: {bias:.4?} +- {error:.4}");
        assert!(error < 0.007, "{error}");
        if pairs == Pairs::Moves {
            assert!(bias[1] < -0.022, "{bias:?}");
        } else {
            assert!(bias[0].abs() < 0.03 && bias[1].abs() < 0.018, "{bias:?}");
        }
    }
    let two = HamcmcSettings { memory: 2, ..HamcmcSettings::default() };
    let two = Hamcmc::<f64>::new(2, 1, two, SeedTree::new(1)).unwrap();
    assert!(matches!(two.with_pairs(Pairs::States), Err(SamplerError::Setting { .. })));
}

/// HAMCMC by name is the sampler that the documentation calls exact as its step falls.
#[test]
fn hamcmc_by_name_has_pairs_of_states() {
    let draws = |pairs| {
        let options = SamplerOptions { pairs, ..SamplerOptions::default() };
        let sampler = SamplerKind::Hamcmc.build::<f64>(2, 1, &options, SeedTree::new(1)).unwrap();
        let mut chain = Chain::new(narrow(), sampler, vec![0.1, 0.1]).unwrap();
        chain.run(50, |_| ());
        chain.state().to_vec()
    };
    assert_eq!(draws(None), draws(Some(Pairs::States)));
    assert_ne!(draws(None), draws(Some(Pairs::Moves)));
}

/// A step that suits the narrow direction of a Gaussian is far too short for the wide one, unless `H` adapts to it.
#[test]
fn pairs_help_hamcmc() {
    let (memory, step, gamma) = (3, 0.1, 1e-3);
    let run = |mut sampler: Box<dyn Sampler<f64>>| {
        let mut chain = Chain::new(narrow(), &mut *sampler, vec![0.1, 0.1]).unwrap();
        chain.burn_in(2_000);
        let mut traces = vec![Vec::new(); memory];
        chain.run(60_000, |draw| {
            traces[draw.index % memory].push((draw.theta[0] + draw.theta[1]) / 2.0_f64.sqrt())
        });
        let variance = diagnostics::mean_and_variance(&traces.concat()).1;
        let size = diagnostics::effective_size_mean(&traces);
        (size, variance)
    };
    let plain = run(Box::new(Sgld::new(2, 1, constant(step * gamma), SeedTree::new(1)).unwrap()));
    let initial_scale = InitialScale::Fixed(gamma);
    let settings =
        HamcmcSettings { gradient: constant(step), memory, initial_scale, ..HamcmcSettings::default() };
    for pairs in [Pairs::Moves, Pairs::States] {
        let sampler = Hamcmc::new(2, 1, settings, SeedTree::new(1)).unwrap().with_pairs(pairs).unwrap();
        let (size, variance) = run(Box::new(sampler));
        println!("{pairs:?}: {size:.0} ({variance:.3}); SGLD: {:.0}", plain.0);
        assert!(size > 20.0 * plain.0, "{pairs:?}: {size} against {}", plain.0);
        assert!((variance - 1.0).abs() < 0.2, "{pairs:?}: {variance}");
    }
}

/// Without a metric coordinates are raw: curvatures of any size make pairs.
#[test]
fn a_given_step_finds_pairs_in_raw_coordinates() {
    let step_size = Some(StepSize::Constant(0.1));
    let options = SamplerOptions { step_size, ..SamplerOptions::default() };
    for (deviation, mirror) in [(100.0_f64, false), (1e-3, false), (100.0, true)] {
        let precision = deviation.powi(-2);
        let target = Gaussian::new(vec![0.0; 2], vec![precision, 0.0, 0.0, precision]).unwrap();
        let options = SamplerOptions { mirror, ..options };
        let sampler = SamplerKind::Hamcmc.build::<f64>(2, 1, &options, SeedTree::new(2)).unwrap();
        let mut chain = Chain::new(target, sampler, vec![deviation; 2]).unwrap();
        let mut pairs = None;
        chain.run(20, |draw| pairs = draw.step.pairs);
        assert!(pairs > Some(0), "{deviation} {mirror}");
    }
}

/// The common step starts from that of the narrowest block, whatever its index.
#[test]
fn the_narrowest_block_sets_the_step() {
    let step = |scales: [f64; 2]| {
        let mut target = Widths(scales);
        let options = SamplerOptions { metric: Some(MetricShape::None), ..SamplerOptions::default() };
        let sampler = SamplerKind::Hamcmc.build::<f64>(1, 2, &options, SeedTree::new(3)).unwrap();
        let mut chain = Chain::new(&mut target, sampler, scales.to_vec()).unwrap();
        chain.warm_up(10);
        let mut size = 0.0;
        chain.run(1, |draw| size = draw.step.step_size);
        size
    };
    let steps = [step([1.0, 1e-3]), step([1e-3, 1.0])];
    println!("{steps:?}");
    // First steps are powers of two, found with random momenta.
    assert!(
        steps.iter().all(|step| *step < 1e-5) && (0.05..20.0).contains(&(steps[0] / steps[1])),
        "{steps:?}"
    );
}

/// A normal law of its own deviation in each of two blocks.
struct Widths([f64; 2]);

impl Target<f64> for Widths {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        (0..2).for_each(|k| gradient[k] = theta[k] / self.0[k].powi(2));
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        (0..2).for_each(|k| potential[k] = 0.5 * (theta[k] / self.0[k]).powi(2));
    }
}
