//! What holds the samplers together: drifts that follow the recipe, wrong variants that are caught, errors,
//! independent blocks.

mod proof;

use alphamf_samplers::lbfgs::InverseHessian;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::recipe::{self, Recipe};
use alphamf_samplers::targets::*;
use alphamf_samplers::*;
use proof::targets::{assert_close, gradient_at, logistic, targets};
use proof::{constant, summarise, worst};

/// The move of one noiseless step of 1e-6, divided by the step.
fn measured_drift(
    target: &mut dyn Target<f64>,
    theta: &[f64],
    step: impl FnOnce(&mut dyn Target<f64>, &mut [f64]) -> Vec<f64>,
    auxiliary: &[f64],
) -> Vec<f64> {
    let mut state = theta.to_vec();
    let after = step(target, &mut state);
    let moves = state.iter().zip(theta).chain(after.iter().zip(auxiliary));
    moves.map(|(after, before)| (after - before) / 1e-6).collect()
}

#[test]
fn drifts_follow_the_recipe() {
    let still = GradientSettings { temperature: 0.0, ..constant(1e-6) };
    let streams = SeedTree::new(1);
    for (name, mut target, theta) in targets() {
        let n = theta.len();
        let target = &mut *target;
        let gradient = gradient_at(target, &theta);
        let expected = |recipe: &mut dyn Recipe, target: &mut dyn Target<f64>, auxiliary: &[f64]| {
            let z = [&theta, auxiliary].concat();
            let mut drift = vec![0.0; z.len()];
            recipe::drift(recipe, target, &z, &gradient, &mut drift);
            drift
        };
        let r: Vec<f64> = (0..n).map(|i| 0.8 - 0.5 * i as f64).collect();
        let check = |sampler: &str, measured: &[f64], expected: &[f64]| {
            assert_close(&format!("{sampler} on {name}"), measured, expected, 1e-3);
        };

        let mut sampler = Sgld::new(n, 1, still, streams).unwrap();
        let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
            sampler.step(target, theta);
            Vec::new()
        };
        let measured = measured_drift(target, &theta, run, &[]);
        check("SGLD", &measured, &expected(&mut recipe::Langevin, target, &[]));

        let diffusion: Vec<f64> = (0..n).map(|i| 0.5 + i as f64).collect();
        let matrix = Matrix::Diagonal(diffusion.clone());
        let mut sampler = Sgld::new(n, 1, still, streams).unwrap().with_diffusion(&matrix).unwrap();
        let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
            sampler.step(target, theta);
            Vec::new()
        };
        let measured = measured_drift(target, &theta, run, &[]);
        let by_hand: Vec<f64> = diffusion.iter().zip(&gradient).map(|(d, g)| -d * g).collect();
        check("SGLD with D", &measured, &by_hand);

        let settings = SghmcSettings { gradient: still, friction: 1.7, gradient_noise: 0.0 };
        let mut sampler = Sghmc::new(n, 1, settings, streams).unwrap();
        sampler.set_momentum(0, &r);
        let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
            sampler.step(target, theta);
            sampler.momentum(0).to_vec()
        };
        let measured = measured_drift(target, &theta, run, &r);
        check("SGHMC", &measured, &expected(&mut recipe::Friction(1.7), target, &r));

        let settings = SgnhtSettings { gradient: still, diffusion: 1.3 };
        let mut sampler = Sgnht::new(n, 1, settings, streams).unwrap();
        sampler.set_auxiliary(0, &r, 0.9);
        let auxiliary = [&r[..], &[0.9]].concat();
        let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
            sampler.step(target, theta);
            let (r, thermostat) = sampler.auxiliary(0);
            [r, &[thermostat]].concat()
        };
        let measured = measured_drift(target, &theta, run, &auxiliary);
        check("SGNHT", &measured, &expected(&mut recipe::Thermostat(1.3), target, &auxiliary));

        if target.metric().is_some() {
            let mut sampler = Sgrld::new(n, 1, still, streams).unwrap();
            let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
                sampler.step(target, theta);
                Vec::new()
            };
            let measured = measured_drift(target, &theta, run, &[]);
            check("SGRLD", &measured, &expected(&mut recipe::RiemannianLangevin, target, &[]));

            let mut sampler = Sgrhmc::new(n, 1, still, streams).unwrap();
            sampler.set_momentum(0, &r);
            let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
                sampler.step(target, theta);
                sampler.momentum(0).to_vec()
            };
            let measured = measured_drift(target, &theta, run, &r);
            check("SGRHMC", &measured, &expected(&mut recipe::RiemannianFriction, target, &r));
        }
        if target.curvature().is_some() {
            let settings =
                PsgldSettings { gradient: still, forgetting: 0.6, regularisation: 0.3, correction: true };
            let mut sampler = Psgld::new(n, 1, settings, streams).unwrap();
            let mut first = theta.clone();
            sampler.step(target, &mut first);
            let terms = target.terms() as f64;
            let past = gradient.iter().map(|g| (g / terms).powi(2)).collect();
            let run = |target: &mut dyn Target<f64>, theta: &mut [f64]| {
                sampler.step(target, theta);
                Vec::new()
            };
            let measured = measured_drift(target, &theta, run, &[]);
            let mut recipe = recipe::RootMeanSquare { past, forgetting: 0.6, regularisation: 0.3 };
            check("PSGLD", &measured, &expected(&mut recipe, target, &[]));
        }
    }
}

/// A law that is flat, with a metric that is constant.
struct Flat;

const SCALES: [f64; 2] = [1.5, 0.5];

impl Target<f64> for Flat {
    fn dimension(&self) -> usize {
        2
    }

    fn terms(&self) -> usize {
        4
    }

    fn gradient(&mut self, _: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.fill(0.0);
    }

    fn potential(&mut self, _: &[f64], potential: &mut [f64]) {
        potential.fill(0.0);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

impl Metric<f64> for Flat {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn metric(&mut self, _: &[f64], metric: &mut [f64]) {
        metric.copy_from_slice(&SCALES);
    }
}

/// Without a gradient all that moves is noise, and its variance is known to every digit.
#[test]
fn noise_of_a_step_is_that_of_the_recipe() {
    const STEPS: usize = 100_000;
    let (eps, heat) = (0.1, 0.7);
    let settings = GradientSettings { temperature: heat, ..constant(eps) };
    let (known, streams) = (Matrix::Diagonal(vec![3.0, 2.0]), SeedTree::new(5));
    let check = |name: &str, expected: [f64; 2], step: &mut dyn FnMut(&mut [f64]) -> [f64; 2]| {
        let mut variance = [0.0; 2];
        for _ in 0..STEPS {
            let moved = step(&mut [0.0; 2]);
            variance.iter_mut().zip(moved).for_each(|(sum, moved)| *sum += moved * moved / STEPS as f64);
        }
        // The standard error is 0.0045.
        let holds =
            variance.iter().zip(&expected).all(|(found, expected)| (found / expected - 1.0).abs() < 0.02);
        assert!(holds, "{name}: {variance:?}, expected {expected:?}");
    };
    let state = |theta: &[f64]| [theta[0], theta[1]];
    let both = [3.0, 2.0];

    for is_known in [false, true] {
        let share = f64::from(is_known);
        let mut sampler = Sgld::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let variances = both.map(|v| 2.0 * eps * heat - share * eps * eps * v);
        check("SGLD", variances, &mut |theta| {
            sampler.step(&mut Flat, theta);
            state(theta)
        });
        let (diffusion, d) = (Matrix::Diagonal(vec![0.4, 1.6]), [0.4, 1.6]);
        let mut sampler = Sgld::new(2, 1, settings, streams).unwrap().with_diffusion(&diffusion).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1].map(|i| 2.0 * eps * heat * d[i] - share * eps * eps * d[i] * both[i] * d[i]);
        check("SGLD with D", expected, &mut |theta| {
            sampler.step(&mut Flat, theta);
            state(theta)
        });

        let mut sampler = Sgrld::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1]
            .map(|i| 2.0 * eps * heat / SCALES[i] - share * eps * eps * both[i] / (SCALES[i] * SCALES[i]));
        check("SGRLD", expected, &mut |theta| {
            sampler.step(&mut Flat, theta);
            state(theta)
        });

        let friction = SghmcSettings { gradient: settings, friction: 2.0, gradient_noise: 0.0 };
        let mut sampler = Sghmc::new(2, 1, friction, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let decay = (-2.0 * eps).exp();
        let expected =
            both.map(|v| (1.0 - decay * decay) * heat - share * (0.5 * eps * (1.0 + decay)).powi(2) * v);
        check("SGHMC", expected, &mut |theta| {
            sampler.set_momentum(0, &[0.0; 2]);
            sampler.step(&mut Flat, theta);
            state(sampler.momentum(0))
        });

        let mut sampler = Sgrhmc::new(2, 1, settings, streams).unwrap();
        if is_known {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let expected = [0, 1].map(|i| (2.0 * eps * heat - share * eps * eps * both[i]) / SCALES[i]);
        check("SGRHMC", expected, &mut |theta| {
            sampler.set_momentum(0, &[0.0; 2]);
            sampler.step(&mut Flat, theta);
            state(sampler.momentum(0))
        });
    }

    let floor = PsgldSettings { gradient: settings, regularisation: 0.5, ..PsgldSettings::default() };
    let mut sampler = Psgld::new(2, 1, floor, streams).unwrap();
    check("PSGLD", [2.0 * eps * heat / 0.5; 2], &mut |theta| {
        sampler.step(&mut Flat, theta);
        state(theta)
    });

    // Without any information the step is that of the conditioner.
    let pair = GradientSettings { minibatch: Some(2), ..settings };
    for conditioner in [[1.0, 1.0], [0.4, 2.5]] {
        let matrix = Matrix::Diagonal(conditioner.to_vec());
        let mut sampler = Sgfs::new(2, 1, pair, streams).unwrap().with_conditioner(&matrix).unwrap();
        check("SGFS", conditioner.map(|b| eps * heat / b), &mut |theta| {
            sampler.step(&mut Flat, theta);
            state(theta)
        });
    }

    // Nor is there a pair for HAMCMC.
    let initial_scale = InitialScale::Fixed(0.4);
    let settings_of_hamcmc =
        HamcmcSettings { gradient: settings, initial_scale, ..HamcmcSettings::default() };
    let mut sampler = Hamcmc::new(2, 1, settings_of_hamcmc, streams).unwrap();
    check("HAMCMC", [2.0 * eps * heat * 0.4; 2], &mut |theta| {
        let start: Vec<f64> = sampler.next_start(theta).to_vec();
        sampler.step(&mut Flat, theta);
        [theta[0] - start[0], theta[1] - start[1]]
    });

    // Of a resting momentum half a step cools the thermostat by eps / 2 before the noise comes.
    for (thermostat, share) in [(0.5 * eps, 0.0), (4.0, 0.0), (0.5 * eps, 1.0), (4.0, 1.0)] {
        let diffusion = SgnhtSettings { gradient: settings, diffusion: 1.3 };
        let mut sampler = Sgnht::new(2, 1, diffusion, streams).unwrap();
        if share > 0.0 {
            sampler = sampler.with_gradient_noise(&known).unwrap();
        }
        let rate = eps * (thermostat - 0.5 * eps);
        let spread = if rate == 0.0 { 2.0 } else { (1.0 - (-2.0 * rate).exp()) / rate };
        let kick = 0.5 * eps * (1.0 + (-rate).exp());
        check("SGNHT", both.map(|v| 1.3 * heat * eps * spread - share * kick * kick * v), &mut |theta| {
            sampler.set_auxiliary(0, &[0.0; 2], thermostat);
            sampler.step(&mut Flat, theta);
            state(sampler.auxiliary(0).0)
        });
    }
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
        let (mut theta, mut square, mut count) = (vec![0.5_f64], 0.0, 0.0);
        for _ in 0..100_000 {
            let start = sampler.next_start(&theta)[0];
            sampler.step(&mut target, &mut theta);
            // The first steps have no pairs, a few others none that can be used.
            if sampler.pairs() > Some(0) {
                square += (theta[0] - start).powi(2);
                count += 1.0;
            }
        }
        let found = square / count / (2.0 * eps);
        let expected = 1.0 / (precision + lambda);
        // The standard error is half a percent.
        assert!(
            (found / expected - 1.0).abs() < 0.02 && count > 9e4,
            "{pairs:?}: {found}, {expected}, {count}"
        );
    }
}

/// Where the gradient is nothing, so is the slope of its own size that the correction asks for.
#[test]
fn psgld_with_its_correction_rests_at_a_mode() {
    let gradient = GradientSettings { temperature: 0.0, ..constant(0.1) };
    let settings = PsgldSettings { gradient, correction: true, ..PsgldSettings::default() };
    let mode = vec![1.0, -2.0];
    let target = Gaussian::new(mode.clone(), vec![2.0, 0.0, 0.0, 1.0]).unwrap();
    let sampler = Psgld::new(2, 1, settings, SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(target, sampler, mode.clone()).unwrap();
    chain.run(3, |_| ());
    assert_eq!((chain.state(), chain.statistics().divergences), (&mode[..], 0));
}

/// Mean and variance of the draws of `step` against the problem's truth.
fn run_by_hand(
    problem: &proof::Problem,
    steps: usize,
    mut make: impl FnMut(u64) -> Box<dyn FnMut(&mut [f64])>,
) -> (f64, f64) {
    let runs: Vec<Vec<f64>> = (0..8)
        .map(|run| {
            let mut step = make(run);
            let mut theta = problem.start.clone();
            let mut sums = vec![0.0; problem.quantities.len()];
            for t in 0..steps + 2000 {
                step(&mut theta);
                if t >= 2000 {
                    for (sum, quantity) in sums.iter_mut().zip(&problem.quantities) {
                        *sum += (quantity.value)(&theta) / steps as f64;
                    }
                }
            }
            sums
        })
        .collect();
    let estimates = summarise(&runs);
    worst(problem, &estimates, 0.05)
}

/// hamcmc section 3.1: with curvature taken from the state that it moves, and no correction, the draws are
/// wrong; HAMCMC on the same target with the same pairs is right (`samplers_proof`, "one peak").
#[test]
fn naive_quasi_newton_langevin_is_caught() {
    let law = Quartic::new(0.25, 0.5);
    let (errors, precision) = run_by_hand(&proof::one_peak(), 60_000, |run| {
        let mut stream = SeedTree::new(run).rng(0);
        let law = law.clone();
        let mut previous: Option<(f64, f64)> = None;
        let mut inverse = InverseHessian::new(1, 1);
        Box::new(move |theta| {
            let gradient = law.slopes(theta[0]).0;
            inverse.reset(0.5);
            if let Some((before, slope)) = previous {
                inverse.push(&[theta[0] - before], &[gradient - slope]);
            }
            previous = Some((theta[0], gradient));
            let (mut drift, mut noise) = ([gradient], [f64::normal(&mut stream)]);
            inverse.multiply(&mut drift);
            inverse.multiply_root(&mut noise);
            theta[0] += 0.1_f64.sqrt() * noise[0] - 0.05 * drift[0];
        })
    });
    assert!(errors > 20.0 && precision < 0.05, "{errors} {precision}");
}

/// complete-recipe eq. 16: without Gamma the metric's dependence on the state biases the draws. The same loop
/// with Gamma is right.
#[test]
fn naive_riemannian_hmc_is_caught() {
    let mut errors = [0.0; 2];
    for (weight, error) in [0.0, 1.0].into_iter().zip(&mut errors) {
        (*error, _) = run_by_hand(&proof::one_peak(), 100_000, |run| {
            let mut stream = SeedTree::new(run).rng(0);
            let mut law = Quartic::new(0.25, 0.5);
            let mut r = 0.0;
            Box::new(move |theta| {
                let (mut metric, mut gamma) = ([0.0], [0.0]);
                Metric::<f64>::metric(&mut law, theta, &mut metric);
                Metric::<f64>::divergence(&mut law, theta, false, &mut gamma);
                let inverse = 1.0 / metric[0];
                let drift = inverse.sqrt() * law.slopes(theta[0]).0 + inverse * r - weight * gamma[0];
                r += (0.06 * inverse).sqrt() * f64::normal(&mut stream) - 0.03 * drift;
                theta[0] += 0.03 * inverse.sqrt() * r;
            })
        });
    }
    assert!(errors[0] > 8.0 && errors[1] < 3.0, "{errors:?}");
}

/// quasi-newton-hmc section 3.1: multiplying only the gradient by B leaves another law invariant than the
/// target; multiplying both equations leaves the target invariant, even without a test at small steps.
#[test]
fn half_preconditioned_hmc_is_caught() {
    let mut errors = [0.0; 2];
    for (both, error) in [false, true].into_iter().zip(&mut errors) {
        (*error, _) = run_by_hand(&proof::gaussian(), 20_000, |run| {
            let mut stream = SeedTree::new(run).rng(0);
            let mut law = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
            let b = [1.0, 0.3, 0.3, 0.5];
            let times = move |v: &[f64]| [b[0] * v[0] + b[1] * v[1], b[1] * v[0] + b[3] * v[1]];
            Box::new(move |theta| {
                let mut p = [f64::normal(&mut stream), f64::normal(&mut stream)];
                for _ in 0..8 {
                    let force = times(&gradient_at(&mut law, theta));
                    (0..2).for_each(|i| p[i] -= 0.05 * force[i]);
                    let velocity = if both { times(&p) } else { p };
                    (0..2).for_each(|i| theta[i] += 0.1 * velocity[i]);
                    let force = times(&gradient_at(&mut law, theta));
                    (0..2).for_each(|i| p[i] -= 0.05 * force[i]);
                }
            })
        });
    }
    assert!(errors[0] > 20.0 && errors[1] < 5.0, "{errors:?}");
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

fn largest_curvature(gaussian: &Gaussian) -> f64 {
    let n = gaussian.mean().len();
    let mut v = vec![1.0; n];
    let mut norm = 1.0;
    for _ in 0..200 {
        let w: Vec<f64> = (0..n).map(|i| (0..n).map(|j| gaussian.precision(i, j) * v[j]).sum()).collect();
        norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        v = w.iter().map(|w| w / norm).collect();
    }
    norm
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
    let sgld = |streams| -> Box<dyn Sampler<f64>> {
        let gradient = GradientSettings { mirror: true, ..constant(0.01) };
        Box::new(Sgld::new(2, 1, gradient, streams).unwrap())
    };
    let run = |problem, sampler: &(dyn Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync)| {
        worst(problem, &proof::estimate(problem, sampler, false, (2000, 150_000)), 0.03)
    };
    for step in [0.1, 0.03] {
        let (errors, _) = run(&folded, &hamcmc(true, step, InitialScale::Pairs(0.1)));
        assert!(errors > 6.0, "{errors}");
    }
    let (errors, precision) = run(&mirrored, &hamcmc(false, 0.1, InitialScale::Fixed(0.1)));
    assert!(errors < 5.0 && precision < 0.05, "{errors} {precision}");
    let (errors, precision) = run(&folded, &sgld);
    assert!(errors < 5.0 && precision < 0.05, "{errors} {precision}");
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
        for _ in 0..9 {
            sampler.step(&mut Saddle, &mut theta);
        }
        sampler.pairs()
    };
    assert_eq!(pairs(sampler(1.0)), Some(0));
    assert_eq!(pairs(sampler(1.0).with_shifted_pairs()), Some(2));
    // Too little to make them positive.
    assert_eq!(pairs(sampler(0.4).with_shifted_pairs()), Some(0));
}

#[test]
fn drifts_that_are_cut_are_counted() {
    let limited = |drift_limit| {
        let gradient = GradientSettings { drift_limit, ..constant(0.01) };
        let settings = HamcmcSettings { gradient, ..HamcmcSettings::default() };
        let mut sampler = Hamcmc::new(2, 1, settings, SeedTree::new(1)).unwrap();
        sampler.step(&mut Saddle, &mut [1.0, 100.0]);
        sampler.limited()
    };
    // The drifts are 0.005 and 0.5.
    assert_eq!([0.001, 0.1, 1.0, f64::INFINITY].map(limited), [2, 1, 0, 0].map(Some));
}

#[test]
fn bad_settings_and_starts_are_typed_errors() {
    let streams = SeedTree::new(0);
    let setting = |result: Result<(), SamplerError>| matches!(result, Err(SamplerError::Setting { .. }));
    for step in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(setting(Sgld::<f64>::new(2, 1, constant(step), streams).map(drop)));
        let hmc = HmcSettings { step_size: step, ..HmcSettings::default() };
        assert!(setting(Hmc::<f64>::new(2, 1, hmc, streams).map(drop)));
    }
    assert!(setting(Sgld::<f64>::new(0, 1, constant(0.1), streams).map(drop)));
    assert!(setting(Sgld::<f64>::new(1, 0, constant(0.1), streams).map(drop)));
    let gradient = GradientSettings { minibatch: Some(0), ..constant(0.1) };
    assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    for drift_limit in [0.0, -1.0, f64::NAN] {
        let gradient = GradientSettings { drift_limit, ..constant(0.1) };
        assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    }
    for temperature in [-1.0, f64::NAN, f64::INFINITY] {
        let gradient = GradientSettings { temperature, ..constant(0.1) };
        assert!(setting(Sgld::<f64>::new(1, 1, gradient, streams).map(drop)));
    }
    for (leaps, target_acceptance) in [(0, 0.8), (1, 0.0), (1, 1.0), (1, f64::NAN)] {
        let hmc = HmcSettings { leaps, target_acceptance, ..HmcSettings::default() };
        assert!(setting(Hmc::<f64>::new(2, 1, hmc, streams).map(drop)));
    }
    let memory = HamcmcSettings { memory: 1, ..HamcmcSettings::default() };
    assert!(setting(Hamcmc::<f64>::new(2, 1, memory, streams).map(drop)));
    let refresh_interval = HamcmcSettings { refresh_interval: 0, ..HamcmcSettings::default() };
    assert!(setting(Hamcmc::<f64>::new(2, 1, refresh_interval, streams).map(drop)));
    for gamma in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for initial_scale in [InitialScale::Fixed(gamma), InitialScale::Pairs(gamma)] {
            let scale = HamcmcSettings { initial_scale, ..HamcmcSettings::default() };
            assert!(setting(Hamcmc::<f64>::new(2, 1, scale, streams).map(drop)));
        }
    }
    let ensemble = HmcBfgsSettings { ensemble: 1, ..HmcBfgsSettings::default() };
    assert!(setting(HmcBfgs::<f64>::new(2, 1, ensemble, streams).map(drop)));

    let mut target = Funnel { scale: 3.0 };
    let mut sampler = Hmc::<f64>::new(3, 1, HmcSettings::default(), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 3]).err();
    assert!(matches!(error, Some(SamplerError::Shape { found: 2, expected: 3, .. })));
    let mut sampler = Sgrld::<f64>::new(2, 1, constant(0.1), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 2]).err();
    assert!(matches!(error, Some(SamplerError::Capability { .. })));
    for (correction, dimension) in [(false, 2), (true, 2), (false, 3)] {
        let settings = PsgldSettings { correction, ..PsgldSettings::default() };
        let sampler = Psgld::<f64>::new(dimension, 1, settings, streams).unwrap();
        let law = from_fn(2, |_: &[f64], gradient: &mut [f64]| {
            gradient.fill(0.0);
            0.0
        });
        match Chain::new(law, sampler, vec![0.0; 2]).err() {
            None => assert!(!correction && dimension == 2),
            Some(SamplerError::Capability { .. }) => assert!(correction),
            error => assert!(matches!(error, Some(SamplerError::Shape { found: 2, expected: 3, .. }))),
        }
    }
    let mut sampler = Hmc::<f64>::new(2, 1, HmcSettings::default(), streams).unwrap();
    let error = Chain::new(&mut target, &mut sampler, vec![0.0; 1]).err();
    assert!(matches!(error, Some(SamplerError::Shape { found: 1, expected: 2, .. })));
    let error = Chain::new(&mut target, &mut sampler, vec![0.0, f64::NAN]).err();
    assert!(matches!(error, Some(SamplerError::Start { index: 1, .. })));
    let mut target = Gammas::new(vec![1.0, 1.0], vec![1.0, 1.0]);
    let error = Chain::new(&mut target, &mut sampler, vec![1.0, -1.0]).err();
    assert!(matches!(error, Some(SamplerError::StartPotential { block: 0, .. })));
}

/// Interleaved chains say how many they are and which is next, the others that they are one; nobody speaks of what it has not.
#[test]
fn samplers_say_which_chain_is_next() {
    for kind in SamplerKind::ALL {
        let mut sampler = kind.build::<f64>(2, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
        let expected = match kind {
            SamplerKind::Hamcmc => HamcmcSettings::default().memory,
            SamplerKind::HmcBfgs => HmcBfgsSettings::default().ensemble,
            SamplerKind::MhBfgs => MhBfgsSettings::default().ensemble,
            _ => 1,
        };
        assert_eq!(sampler.chains(), expected, "{kind}");
        let mut target = Gammas::new(vec![3.0, 2.0], vec![2.0, 1.0]);
        let mut theta = [1.0, 1.5];
        for step in 0..2 * expected {
            assert_eq!(sampler.next_chain(), step % expected, "{kind}");
            sampler.step(&mut target, &mut theta);
        }
        assert_eq!(sampler.pairs().is_some(), kind == SamplerKind::Hamcmc, "{kind}");
        assert_eq!(sampler.limited().is_some(), kind == SamplerKind::Hamcmc, "{kind}");
    }
}

/// Symmetric to nine digits of the largest entry, and with eigenvalues that are not below zero but by rounding.
#[test]
fn matrices_are_looked_at() {
    let sgld = |values: [f64; 4]| {
        let sampler = Sgld::<f64>::new(2, 1, constant(0.1), SeedTree::new(1)).unwrap();
        sampler.with_gradient_noise(&Matrix::Dense(values.to_vec())).map(drop)
    };
    for scale in [1e-6, 1.0, 1e6] {
        let of = |values: [f64; 4]| sgld(values.map(|value| scale * value));
        assert_eq!(of([2.0, 1.0, 1.0 + 1e-10, 2.0]), Ok(()));
        let Err(SamplerError::Matrix { value, .. }) = of([2.0, 1.0, 1.001, 2.0]) else { panic!("{scale}") };
        assert!((value.abs() / scale - 1e-3).abs() < 1e-9, "{value}");
        // Singular, and a thousandth below.
        assert_eq!(of([1.0; 4]), Ok(()));
        assert!(matches!(of([1.0, 1.001, 1.001, 1.0]), Err(SamplerError::Matrix { .. })));
    }
    // In whichever place of three it is.
    for (low, high) in [(1, 3), (2, 6), (5, 7)] {
        let mut values = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        (values[low], values[high]) = (0.1, 0.2);
        let sampler = Sgld::<f64>::new(3, 1, constant(0.1), SeedTree::new(1)).unwrap();
        let refused = sampler.with_gradient_noise(&Matrix::Dense(values.to_vec())).err();
        assert!(matches!(refused, Some(SamplerError::Matrix { expected: "symmetric", .. })), "{refused:?}");
    }
    for none in [f64::NAN, f64::INFINITY] {
        assert!(matches!(sgld([1.0, none, none, 1.0]), Err(SamplerError::Matrix { .. })));
        assert!(matches!(sgld([none, 0.0, 0.0, 1.0]), Err(SamplerError::Matrix { .. })));
    }
}

#[test]
fn numbers_and_names_are_what_they_are() {
    assert_eq!(([1.5_f32.widen(), f32::narrow(1.5).into()], 1.5_f64.widen()), ([1.5; 2], 1.5));
    for kind in SamplerKind::ALL {
        assert_eq!(kind.to_string(), kind.name());
    }
}

#[test]
fn folded_states_and_chosen_terms_can_be_looked_at() {
    let mut state = [-1.0, 2.0, -0.0];
    Mirrored::<Gammas, f64>::fold(&mut state);
    assert_eq!(state, [1.0, 2.0, 0.0]);
    assert_eq!(Minibatch::subsample(&[3, 1, 3], 7).indices(), Some(&[3, 1, 3][..]));
    assert_eq!(Minibatch::full(7).indices(), None);
}

#[test]
fn every_name_builds_its_sampler() {
    for kind in SamplerKind::ALL {
        assert_eq!(kind.name().parse::<SamplerKind>().unwrap(), kind);
        kind.build::<f32>(3, 2, &SamplerOptions::default(), SeedTree::new(0)).unwrap();
        let step_size = Some(StepSize::Constant(-1.0));
        let options = SamplerOptions { step_size, ..SamplerOptions::default() };
        // Newtonian Monte Carlo has no step.
        assert_eq!(
            kind.build::<f32>(3, 2, &options, SeedTree::new(0)).is_ok(),
            kind == SamplerKind::Newtonian
        );
    }
    let error = "nuts".parse::<SamplerKind>().unwrap_err();
    assert!(error.to_string().contains("hmc-bfgs"));
}

/// A target whose gradient explodes: every sampler must count divergences and keep its draws finite.
struct Cliff;

impl Target<f64> for Cliff {
    fn dimension(&self) -> usize {
        1
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient[0] = if theta[0].abs() > 1.5 { f64::NAN } else { 1e200 * theta[0].powi(5) };
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = if theta[0].abs() > 1.5 { f64::NAN } else { 1e200 * theta[0].powi(6) / 6.0 };
    }
}

#[test]
fn divergences_are_counted_and_never_reach_the_draws() {
    for kind in SamplerKind::ALL {
        let mut sampler = kind.build::<f64>(1, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
        if sampler.check(&mut Cliff).is_err() {
            continue;
        }
        let mut target = Cliff;
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![1.0]).unwrap();
        // HAMCMC looks at the gradient before it goes anywhere.
        let furthest = if kind == SamplerKind::Hamcmc { 1.5 } else { f64::MAX };
        chain.run(200, |draw| assert!(draw.theta[0].abs() <= furthest, "{kind}"));
        assert!(chain.statistics().divergences > 0, "{kind}");
    }
}

/// A step says of how many blocks it was taken back, and takes these back: one of four leaves the range of numbers here.
#[test]
fn acceptance_is_the_share_of_blocks_that_stay() {
    let (streams, gradient) = (SeedTree::new(1), constant(0.1));
    let sghmc = SghmcSettings { gradient, ..SghmcSettings::default() };
    let sgnht = SgnhtSettings { gradient, ..SgnhtSettings::default() };
    let psgld = PsgldSettings { gradient, ..PsgldSettings::default() };
    let hmc = HmcSettings::default();
    let samplers: [(&str, Box<dyn Sampler<f64>>); 11] = [
        ("SGLD", Box::new(Sgld::new(2, 4, gradient, streams).unwrap())),
        ("PSGLD", Box::new(Psgld::new(2, 4, psgld, streams).unwrap())),
        ("SGRLD", Box::new(Sgrld::new(2, 4, gradient, streams).unwrap())),
        ("SGHMC", Box::new(Sghmc::new(2, 4, sghmc, streams).unwrap())),
        ("SGNHT", Box::new(Sgnht::new(2, 4, sgnht, streams).unwrap())),
        ("SGRHMC", Box::new(Sgrhmc::new(2, 4, gradient, streams).unwrap())),
        ("HMC", Box::new(Hmc::new(2, 4, hmc, streams).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(2, 4, HmcBfgsSettings::default(), streams).unwrap())),
        ("MH-BFGS", Box::new(MhBfgs::new(2, 4, MhBfgsSettings::default(), streams).unwrap())),
        ("RMHMC", Box::new(Rmhmc::new(2, 4, hmc, streams).unwrap())),
        ("NUTS", Box::new(Nuts::new(2, 4, NutsSettings::default(), streams).unwrap())),
    ];
    for (name, mut sampler) in samplers {
        let mut target = Gaussian::equicorrelated(2, 1.0, 0.0).with_blocks(4);
        let mut theta = [0.1, 0.1, 0.2, 0.2, 1e308, 1e307, 0.4, 0.4];
        let step = sampler.step(&mut target, &mut theta);
        assert_eq!((step.divergences, &theta[4..6]), (1, &[1e308, 1e307][..]), "{name}");
        assert!(theta.iter().enumerate().all(|(i, x)| i / 2 == 2 || x.abs() < 10.0), "{name}: {theta:?}");
        assert!(step.energy.is_some() || step.acceptance == 0.75, "{name}: {step:?}");
    }
}

/// A move that is sound itself, to where there is no gradient, is not made.
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

/// Samplers that accept or reject and adapt their step, of two unknowns a block; MH-BFGS proposes at a scale.
fn accept_reject(blocks: usize, hmc: HmcSettings, scale: f64) -> [(&'static str, Box<dyn Sampler<f64>>); 6] {
    let streams = SeedTree::new(1);
    let bfgs = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
    let qnhmc = QnhmcSettings { hmc, ..QnhmcSettings::default() };
    let nuts = NutsSettings { step_size: hmc.step_size, ..NutsSettings::default() };
    let mh_bfgs = MhBfgsSettings { scale, ..MhBfgsSettings::default() };
    [
        ("HMC", Box::new(Hmc::new(2, blocks, hmc, streams).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(2, blocks, bfgs, streams).unwrap())),
        ("QNHMC", Box::new(Qnhmc::new(2, blocks, qnhmc, streams).unwrap())),
        ("RMHMC", Box::new(Rmhmc::new(2, blocks, hmc, streams).unwrap())),
        ("NUTS", Box::new(Nuts::new(2, blocks, nuts, streams).unwrap())),
        ("MH-BFGS", Box::new(MhBfgs::new(2, blocks, mh_bfgs, streams).unwrap())),
    ]
}

/// The mean over the blocks of what accept-reject samplers say of a step.
#[test]
fn accept_reject_samplers_speak_of_the_mean_of_their_blocks() {
    let hmc = HmcSettings { step_size: 0.01, ..HmcSettings::default() };
    let newtonian: Box<dyn Sampler<f64>> = Box::new(Newtonian::new(2, 4, SeedTree::new(1)).unwrap());
    let samplers = accept_reject(4, hmc, MhBfgsSettings::default().scale);
    for (name, mut sampler) in samplers.into_iter().chain([("NMC", newtonian)]) {
        let mut target = Gaussian::equicorrelated(2, 1.0, 0.0).with_blocks(4);
        let step = sampler.step(&mut target, &mut [0.5; 8]);
        // The two without short steps propose from far away, or now and then locally.
        let (acceptance, step_size) = match name {
            "MH-BFGS" => (0.05..=0.99, 1.0..=1.0),
            "NMC" => (0.5..=1.0, 1.0..=1.0),
            _ => (0.99..=1.0, 0.009..=0.01),
        };
        assert!(acceptance.contains(&step.acceptance), "{name}: {step:?}");
        assert!(step_size.contains(&step.step_size), "{name}: {step:?}");
    }
}

/// Steps are found while a chain burns in, and neither before nor after it.
#[test]
fn steps_are_adapted_in_burn_in_only() {
    let hmc = HmcSettings { step_size: 1e-4, jitter: 0.0, ..HmcSettings::default() };
    for (name, sampler) in accept_reject(1, hmc, 1e-4) {
        let mut chain = Chain::new(Gaussian::equicorrelated(2, 1.0, 0.0), sampler, vec![0.5; 2]).unwrap();
        let steps = |chain: &mut Chain<f64, Gaussian, Box<dyn Sampler<f64>>>| {
            let mut steps = Vec::new();
            chain.run(3, |draw| steps.push(draw.step.step_size));
            steps
        };
        assert_eq!(steps(&mut chain), [1e-4; 3], "{name}");
        // Off already.
        chain.adapt(false);
        assert_eq!(steps(&mut chain), [1e-4; 3], "{name}");
        chain.adapt(true);
        chain.run(300, |_| ());
        chain.adapt(false);
        let adapted = steps(&mut chain);
        assert!(adapted[0] > 1e-2 && adapted[1..] == [adapted[0]; 2], "{name}: {adapted:?}");
    }
}

/// Its memory counts from burn-in on, and before only if it keeps learning.
#[test]
fn qnhmc_learns_when_it_should() {
    let run_for = |adapt_after_burn_in, memory, burn_in, learning| {
        let settings = QnhmcSettings { adapt_after_burn_in, memory, learning, ..QnhmcSettings::default() };
        let sampler = Qnhmc::new(3, 1, settings, SeedTree::new(2)).unwrap();
        let mut chain = Chain::new(Gaussian::equicorrelated(3, 4.0, 1.0), sampler, vec![0.5; 3]).unwrap();
        chain.burn_in(burn_in);
        chain.run(20, |_| ());
        chain.state().to_vec()
    };
    let run = |adapt_after_burn_in, memory, burn_in| run_for(adapt_after_burn_in, memory, burn_in, 100);
    assert_eq!(run(false, 1, 0), run(false, 5, 0));
    assert_ne!(run(false, 1, 20), run(false, 5, 20));
    assert_ne!(run(true, 1, 0), run(true, 5, 0));
    // No more than it is told to.
    assert_eq!(run_for(false, 3, 20, 3), run_for(false, 5, 20, 3));
    assert_ne!(run_for(false, 3, 20, 3), run_for(false, 3, 20, 10));
}

/// A block that went too far starts again with a new momentum, and with the thermostat that it began with.
#[test]
fn a_move_that_is_taken_back_ends_its_momentum() {
    let still = GradientSettings { temperature: 0.0, ..constant(0.01) };
    let streams = SeedTree::new(1);
    let sghmc = SghmcSettings { gradient: still, friction: 0.1, gradient_noise: 0.0 };
    let (mut sghmc, mut sgrhmc, mut sgnht) = (
        Sghmc::new(2, 1, sghmc, streams).unwrap(),
        Sgrhmc::new(2, 1, still, streams).unwrap(),
        Sgnht::new(2, 1, SgnhtSettings { gradient: still, diffusion: 1.3 }, streams).unwrap(),
    );
    for (far, is_kept) in [(1.0, true), (1e151, false)] {
        sghmc.set_momentum(0, &[9.0, -9.0]);
        sghmc.step(&mut Flat, &mut [far, 0.0]);
        sgrhmc.set_momentum(0, &[9.0, -9.0]);
        sgrhmc.step(&mut Flat, &mut [far, 0.0]);
        sgnht.set_auxiliary(0, &[9.0, -9.0], 2.0);
        sgnht.step(&mut Flat, &mut [far, 0.0]);
        let (momentum, thermostat) = sgnht.auxiliary(0);
        for momentum in [sghmc.momentum(0), sgrhmc.momentum(0), momentum] {
            assert_eq!(momentum[0] > 6.0 && momentum[1] < -6.0, is_kept, "{momentum:?}");
        }
        assert_eq!(thermostat != 1.3, is_kept);
    }
}

/// A normal law by a closure, and how often that was called.
fn normal_law(calls: &std::cell::Cell<usize>) -> impl Target<f64> {
    from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        calls.set(calls.get() + 1);
        gradient.copy_from_slice(&[2.0 * (theta[0] - 1.0), theta[1]]);
        (theta[0] - 1.0).powi(2) + 0.5 * theta[1].powi(2)
    })
}

#[test]
fn a_closure_is_a_target_and_is_called_once_for_both() {
    let calls = std::cell::Cell::new(0);
    let settings = HmcSettings { leaps: 3, ..HmcSettings::default() };
    let draw = |target: &mut dyn Target<f64>| {
        let sampler = Hmc::new(2, 1, settings, SeedTree::new(3)).unwrap();
        let mut chain = Chain::new(target, sampler, vec![0.0; 2]).unwrap();
        chain.run(5, |_| ());
        chain.state().to_vec()
    };
    let by_closure = draw(&mut normal_law(&calls));
    // The start's potential; then, of every trajectory, its start and its leaps.
    assert_eq!(calls.get(), 1 + 5 * (1 + 3));
    let known = Gaussian::new(vec![1.0, 0.0], vec![2.0, 0.0, 0.0, 1.0]).unwrap();
    assert_close("closure", &by_closure, &draw(&mut known.clone()), 1e-12);
    assert_eq!(draw(&mut Box::new(known.clone())), draw(&mut known.clone()));
}

#[test]
fn a_chain_can_be_kept() {
    struct Study {
        chain: Chain<f64, Gaussian, Box<dyn Sampler<f64>>>,
    }
    let sampler = SamplerKind::Sgld.build(2, 1, &SamplerOptions::default(), SeedTree::new(1)).unwrap();
    let target = Gaussian::equicorrelated(2, 4.0, 1.0);
    let mut study = Study { chain: Chain::new(target, sampler, vec![0.0; 2]).unwrap() };
    study.chain.run(3, |_| ());
    assert_eq!(study.chain.statistics().steps, 3);
    assert_eq!(Target::<f64>::dimension(study.chain.target()), 2);
    fn moves_to_a_thread<T: Send>(_: &T) {}
    moves_to_a_thread(&study.chain);
}

#[test]
fn chains_from_several_starts_tell_whether_they_agree() {
    let starts = [vec![-3.0, 2.0], vec![3.0, 2.0], vec![-3.0, -2.0], vec![3.0, -2.0]];
    let schedule = Schedule { burn_in: 200, draws: 500 };
    let target = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
    let hmc = |chain: usize| Hmc::new(2, 1, HmcSettings::default(), SeedTree::new(5).child(chain as u64));
    let sampled = sample(&target, &starts, schedule, hmc).unwrap();
    assert!(sampled.max_r_hat() < 1.02, "{:?}", sampled.parameters);
    assert!(sampled.min_effective_size() > 400.0, "{:?}", sampled.parameters);
    let covariance = target.covariance();
    for (i, unknown) in sampled.parameters.iter().enumerate() {
        assert!((unknown.mean - target.mean()[i]).abs() < 4.0 * unknown.standard_error, "{unknown:?}");
        assert!((unknown.deviation / covariance[3 * i].sqrt() - 1.0).abs() < 0.1, "{unknown:?}");
        let traces = sampled.traces(i);
        assert_eq!((traces.len(), traces[3].len()), (4, 500));
        assert_eq!(unknown.r_hat, diagnostics::rank_r_hat(&traces));
        assert_eq!(unknown.effective_size, diagnostics::effective_size_bulk(&traces));
        assert!(traces[1].iter().zip(sampled.draws(1)).all(|(trace, draw)| *trace == draw[i]));
    }
    assert!(sampled.statistics.iter().all(|statistics| statistics.steps == 500));
    // Each is the chain that runs alone, on any number of threads.
    let mut alone = Chain::new(target.clone(), hmc(2).unwrap(), starts[2].clone()).unwrap();
    alone.burn_in(200);
    alone.run(500, |_| ());
    assert_eq!(sampled.draws(2).last(), Some(alone.state()));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| sample(&target, &starts, schedule, hmc)), Ok(sampled));
    // Two peaks that no chain leaves.
    let peaks = from_fn(1, |theta: &[f64], gradient: &mut [f64]| {
        let x = theta[0];
        gradient[0] = 40.0 * x * (x * x - 1.0);
        10.0 * (x * x - 1.0).powi(2)
    });
    let hmc = |chain: usize| Hmc::new(1, 1, HmcSettings::default(), SeedTree::new(6).child(chain as u64));
    let apart = sample(&peaks, &[vec![-1.0], vec![1.0]], schedule, hmc).unwrap();
    assert!(apart.max_r_hat() > 1.5 && apart.min_effective_size() < 20.0, "{:?}", apart.parameters);
    // The worst unknown is not the last one; and one that stands still cannot be judged, nor can all.
    let first = from_fn(2, |theta: &[f64], gradient: &mut [f64]| {
        let [x, y] = [theta[0], theta[1]];
        gradient.copy_from_slice(&[40.0 * x * (x * x - 1.0), y]);
        10.0 * (x * x - 1.0).powi(2) + 0.5 * y * y
    });
    let pair = |chain: usize| Hmc::new(2, 1, HmcSettings::default(), SeedTree::new(6).child(chain as u64));
    let mixed = sample(&first, &[vec![-1.0, 0.0], vec![1.0, 0.0]], schedule, pair).unwrap();
    assert_eq!(mixed.max_r_hat(), mixed.parameters[0].r_hat);
    assert!(mixed.parameters[1].r_hat < 1.1, "{:?}", mixed.parameters);
    let mut judged = mixed.clone();
    judged.parameters[0].r_hat = f64::NAN;
    assert!(judged.max_r_hat().is_nan());
    // What cannot be judged is refused.
    let refused = |starts: &[Vec<f64>], draws| {
        sample(&peaks, starts, Schedule { burn_in: 0, draws }, hmc).err().map(|error| error.to_string())
    };
    assert!(refused(&[], 10).is_some_and(|error| error.contains("starts is 0; expected at least 1")));
    assert!(
        refused(&[vec![1.0]], 3)
            .is_some_and(|error| error.contains("draws of each chain is 3; expected at least 4"))
    );
    assert!(refused(&[vec![1.0], vec![f64::NAN]], 10).is_some_and(|error| error.contains("coordinate 0")));
}

/// The single-site view of logarithms, of mirrored unknowns and of other units.
#[test]
fn newtonian_steps_see_through_other_coordinates() {
    let gammas = Gammas::new(vec![3.0, 6.0], vec![2.0, 1.0]);
    let (mean, _) = gammas.moments()[1];
    let units = [2.0, 0.5];
    let starts = [vec![0.5, 0.5], vec![1.5, 1.5]];
    fn draws<G: Target<f64> + Clone + Send + Sync>(target: &G, starts: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let newtonian = |chain: usize| Newtonian::new(2, 1, SeedTree::new(8).child(chain as u64));
        sample(target, starts, Schedule { burn_in: 100, draws: 3000 }, newtonian).unwrap().traces(1)
    }
    for (name, traces, unmap) in [
        ("units", draws(&Scaled::new(gammas.clone(), &units), &starts), (|x| 0.5 * x) as fn(f64) -> f64),
        ("mirrored", draws(&Mirrored::new(gammas.clone()), &starts), f64::abs),
        ("logarithms", draws(&LogMapped::new(gammas), &starts), f64::exp),
    ] {
        let theta: Vec<Vec<f64>> =
            traces.iter().map(|trace| trace.iter().map(|&x| unmap(x)).collect()).collect();
        let (found, error) =
            (diagnostics::mean_and_variance(&theta.concat()).0, diagnostics::standard_error(&theta));
        assert!(
            (found - mean).abs() < 4.0 * error && error < 0.2,
            "{name}: {found} +- {error} against {mean}"
        );
    }
}

/// What a step says of itself: the potential at its end, moved or not, and a step within its jitter.
#[test]
fn steps_report_where_they_end_and_how_far_they_went() {
    let mut target = Gaussian::equicorrelated(3, 4.0, 1.0);
    let hmc = HmcSettings { step_size: 3.0, leaps: 3, jitter: 0.5, ..HmcSettings::default() };
    let bfgs = HmcBfgsSettings { hmc, ensemble: 3, initial_scale: InitialScale::Fixed(0.3) };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 5] = [
        ("HMC", Box::new(Hmc::new(3, 1, hmc, SeedTree::new(3)).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(3, 1, bfgs, SeedTree::new(3)).unwrap())),
        (
            "RMHMC",
            Box::new(Rmhmc::new(3, 1, HmcSettings { step_size: 1.5, ..hmc }, SeedTree::new(3)).unwrap()),
        ),
        ("MH-BFGS", Box::new(MhBfgs::new(3, 1, MhBfgsSettings::default(), SeedTree::new(3)).unwrap())),
        (
            "NUTS",
            Box::new(
                Nuts::new(3, 1, NutsSettings { step_size: 3.0, ..NutsSettings::default() }, SeedTree::new(3))
                    .unwrap(),
            ),
        ),
    ];
    for (name, mut sampler) in samplers {
        let (mut theta, mut moves) = (vec![1.0; 3], 0);
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for _ in 0..200 {
            let start = sampler.next_start(&theta).to_vec();
            let step = sampler.step(&mut target, &mut theta);
            let mut potential = [0.0];
            Target::<f64>::potential(&mut target, &theta, &mut potential);
            assert!((step.energy.unwrap() - potential[0]).abs() < 1e-9, "{name}: {step:?}, {potential:?}");
            moves += usize::from(start != theta);
            (least, most) = (least.min(step.step_size), most.max(step.step_size));
        }
        // Both kinds of step have been seen.
        assert!((10..200).contains(&moves), "{name}: {moves}");
        let jitters = ["HMC", "HMC-BFGS", "RMHMC"].contains(&name);
        let largest = if name == "RMHMC" { 1.5 } else { 3.0 };
        assert!(!jitters || most <= largest && most > 0.95 * largest, "{name}: {most}");
        assert!(!jitters || least >= 0.5 * largest && least < 0.55 * largest, "{name}: {least}");
    }
}

/// An energy error of a thousand nats is a divergence even where nothing has left the range of numbers.
#[test]
fn great_losses_of_energy_are_divergences() {
    for (step, diverges) in [(1.0, false), (1e4, true)] {
        let settings = HmcSettings { step_size: step, leaps: 1, ..HmcSettings::default() };
        let samplers: [Box<dyn Sampler<f64>>; 2] = [
            Box::new(Hmc::new(1, 1, settings, SeedTree::new(1)).unwrap()),
            Box::new(Rmhmc::new(1, 1, settings, SeedTree::new(1)).unwrap()),
        ];
        for sampler in samplers {
            let mut chain = Chain::new(Gaussian::equicorrelated(1, 1.0, 0.0), sampler, vec![0.0]).unwrap();
            chain.run(20, |_| ());
            assert_eq!(chain.statistics().divergences > 0, diverges);
        }
    }
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
    for _ in 0..5 {
        sampler.step(&mut target, &mut theta);
    }
    assert_eq!(Sampler::<f64>::pairs(&sampler), Some(3));
}

/// Far up a slope that grows, Newton steps are right and are rejected, as there is no way back: burning in takes them.
#[test]
fn newtonian_burn_in_takes_great_falls_unasked() {
    let end = |adapts: bool| {
        let mut sampler = Newtonian::new(1, 1, SeedTree::new(4)).unwrap();
        Sampler::<f64>::adapt(&mut sampler, adapts);
        let mut chain = Chain::new(Quartic::new(1.0, 0.0), sampler, vec![100.0]).unwrap();
        chain.run(20, |_| ());
        chain.state()[0]
    };
    assert!(end(true) < 10.0 && end(false) > 50.0, "{} {}", end(true), end(false));
}

/// Nothing below one, and no number beyond.
struct Edge;

impl Edge {
    fn height(x: f64) -> f64 {
        if x < 1.0 { 0.1 * x * x } else { f64::NAN }
    }
}

impl Target<f64> for Edge {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(&[0.2 * theta[0], 0.0]);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = Self::height(theta[0]);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Edge {
    fn count(&self) -> usize {
        2
    }

    /// A number, and a label of which nothing is possible.
    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: [Support::Real, Support::Discrete(2)][index] }
    }

    fn expand(&mut self, theta: &[f64], index: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        if index == 0 {
            (u[0], g[0], h[0]) = (Self::height(theta[0]), 0.2 * theta[0], 0.2);
        } else {
            u[0] = f64::INFINITY;
        }
    }
}

#[test]
fn newtonian_counts_what_is_no_number_and_never_goes_there() {
    let sampler = Newtonian::new(2, 1, SeedTree::new(4)).unwrap();
    let mut chain = Chain::new(Edge, sampler, vec![0.0; 2]).unwrap();
    let mut beyond = 0;
    chain.run(100, |draw| {
        assert!(draw.theta[0] < 1.0 && draw.theta[1] == 0.0);
        assert!(draw.step.acceptance <= 1.0);
        // The label at every step.
        assert!((1..=2).contains(&draw.step.divergences));
        beyond += draw.step.divergences - 1;
    });
    assert!((5..95).contains(&beyond), "{beyond}");
}

/// Only falls that a chain in its target does not see are taken unasked while it burns in.
#[test]
fn newtonian_burn_in_leaves_a_settled_chain_alone() {
    let run = |adapts: bool| {
        let mut sampler = Newtonian::new(3, 1, SeedTree::new(4)).unwrap();
        Sampler::<f64>::adapt(&mut sampler, adapts);
        let mut chain = Chain::new(logistic(), sampler, vec![0.0, 1.0, -1.0]).unwrap();
        chain.run(300, |_| ());
        (chain.state().to_vec(), chain.statistics().acceptance())
    };
    assert_eq!(run(true), run(false));
    assert!(run(true).1 < 0.97, "{}", run(true).1);
}
