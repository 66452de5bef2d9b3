//! Gradient noise of known covariance, masses, diffusions and momenta drawn anew: stationary laws against the exact
//! answer.

use crate::proof::targets::Flat;
use crate::proof::{constant, narrow};
use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_samplers::recipe::{Friction, RecipeSampler, RiemannianLangevin};
use alphamf_samplers::targets::{Banana, Gaussian};
use alphamf_samplers::*;

/// How the metric of [`Noisy`] looks.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Diagonal,
    Dense,
}

/// A Gaussian whose gradient is noisy: `P theta + L z`, in as many blocks as are asked for.
#[derive(Clone)]
struct Noisy {
    blocks: usize,
    stream: SeededRng,
    shape: Shape,
    loud: f64,
}

const PRECISION: [f64; 4] = [2.0, 1.2, 1.2, 1.5];
/// The noise at loudness 1: its root `L` and its covariance `L L'`.
const ROOT: [f64; 4] = [1.0, -0.6, 0.0, 0.3];
const COVARIANCE: [f64; 4] = [1.0, -0.6, -0.6, 0.45];
const METRIC: [f64; 4] = [1.5, 0.5, 0.5, 1.0];

impl Target<f64> for Noisy {
    fn dimension(&self) -> usize {
        2
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        for (x, gradient) in theta.chunks_exact(2).zip(gradient.chunks_exact_mut(2)) {
            let z = [f64::normal(&mut self.stream), f64::normal(&mut self.stream)];
            for i in 0..2 {
                gradient[i] = PRECISION[i] * x[0]
                    + PRECISION[2 + i] * x[1]
                    + self.loud.sqrt() * (ROOT[i] * z[0] + ROOT[2 + i] * z[1]);
            }
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        for (x, potential) in theta.chunks_exact(2).zip(potential) {
            *potential =
                0.5 * (PRECISION[0] * x[0] * x[0] + PRECISION[3] * x[1] * x[1]) + PRECISION[1] * x[0] * x[1];
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

impl Metric<f64> for Noisy {
    fn is_diagonal(&self) -> bool {
        self.shape == Shape::Diagonal
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn metric(&mut self, _: &[f64], metric: &mut [f64]) {
        match self.shape {
            Shape::Diagonal => metric.chunks_exact_mut(2).for_each(|g| g.copy_from_slice(&[1.5, 1.0])),
            Shape::Dense => metric.chunks_exact_mut(4).for_each(|g| g.copy_from_slice(&METRIC)),
        }
    }
}

const BLOCKS: usize = 100;

fn noise(loud: f64) -> Matrix {
    Matrix::Dense(COVARIANCE.map(|value| loud * value).to_vec())
}

/// `P^1/2 C P^1/2 - I` in its Frobenius norm, where `C` is the covariance of the draws.
fn error(sampler: impl Sampler<f64>, shape: Shape, loud: f64, steps: usize) -> f64 {
    let (_, blocks) = sampler.shape();
    let target = Noisy { blocks, stream: SeedTree::new(77).rng(0), shape, loud };
    let mut chain = Chain::new(target, sampler, vec![0.0; 2 * blocks]).unwrap();
    chain.burn_in(steps / 10);
    let (mut sums, mut count) = ([0.0; 3], 0.0);
    chain.run(steps, |draw| {
        for x in draw.theta.chunks_exact(2) {
            count += 1.0;
            [x[0] * x[0], x[0] * x[1], x[1] * x[1]].iter().zip(&mut sums).for_each(|(x, sum)| *sum += x);
        }
    });
    assert_eq!(chain.statistics().divergences, 0);
    let [a, b, c] = sums.map(|sum| sum / count);
    // The eigenvalues of P C are those of P^1/2 C P^1/2.
    let product = [
        PRECISION[0] * a + PRECISION[2] * b,
        PRECISION[1] * a + PRECISION[3] * b,
        PRECISION[0] * b + PRECISION[2] * c,
        PRECISION[1] * b + PRECISION[3] * c,
    ];
    let trace = product[0] + product[3];
    let square = product[0].powi(2) + product[3].powi(2) + 2.0 * product[1] * product[2];
    (square - 2.0 * trace + 2.0).sqrt()
}

/// Each sampler with its noise known and unknown: the law is right with the one and wrong with the other.
#[test]
fn known_gradient_noise_is_taken_off() {
    let streams = SeedTree::new(1);
    let mut failures = Vec::new();
    let mut check = |name: &str, known: f64, unknown: f64, bound: f64| {
        println!("{name}: {known:.3} with V, {unknown:.3} without");
        if !(known < bound && unknown > 2.5 * bound) {
            failures.push(name.to_owned());
        }
    };
    for shape in [Shape::Diagonal, Shape::Dense] {
        let sgrld = || Sgrld::new(2, BLOCKS, constant(0.02), streams).unwrap();
        let known = error(sgrld().with_gradient_noise(&noise(40.0)).unwrap(), shape, 40.0, 4_000);
        check("SGRLD", known, error(sgrld(), shape, 40.0, 4_000), 0.05);
        let sgrhmc = || Sgrhmc::new(2, BLOCKS, constant(0.01), streams).unwrap();
        let known = error(sgrhmc().with_gradient_noise(&noise(60.0)).unwrap(), shape, 60.0, 8_000);
        check("SGRHMC", known, error(sgrhmc(), shape, 60.0, 8_000), 0.06);
    }
    // A metric and a noise that are both diagonal.
    let diagonal = Matrix::Diagonal(vec![20.0, 9.0]);
    let sgrld =
        Sgrld::new(2, BLOCKS, constant(0.04), streams).unwrap().with_gradient_noise(&diagonal).unwrap();
    let wrong = error(sgrld, Shape::Diagonal, 20.0, 3_000);
    println!("without the correlation of the noise: {wrong:.3}");
    assert!(wrong > 0.1, "{wrong}");

    let sgld = || Sgld::new(2, BLOCKS, constant(0.03), streams).unwrap();
    let known = error(sgld().with_gradient_noise(&noise(20.0)).unwrap(), Shape::Dense, 20.0, 3_000);
    check("SGLD", known, error(sgld(), Shape::Dense, 20.0, 3_000), 0.08);
    let diffusion = Matrix::Dense(vec![1.0, -0.7, -0.7, 1.2]);
    let sgld = || sgld().with_diffusion(&diffusion).unwrap();
    let known = error(sgld().with_gradient_noise(&noise(8.0)).unwrap(), Shape::Dense, 8.0, 3_000);
    check("SGLD with D", known, error(sgld(), Shape::Dense, 8.0, 3_000), 0.06);

    let settings = SghmcSettings { gradient: constant(0.1), friction: 1.5 };
    let sghmc = || Sghmc::new(2, BLOCKS, settings, streams).unwrap();
    let known = error(sghmc().with_gradient_noise(&noise(15.0)).unwrap(), Shape::Dense, 15.0, 3_000);
    check("SGHMC", known, error(sghmc(), Shape::Dense, 15.0, 3_000), 0.04);
    // The thermostat adapts to the mean noise by itself, but not to its direction.
    let settings = SgnhtSettings { gradient: constant(0.1), diffusion: 1.5 };
    let sgnht = || Sgnht::new(2, BLOCKS, settings, streams).unwrap();
    let known = error(sgnht().with_gradient_noise(&noise(15.0)).unwrap(), Shape::Dense, 15.0, 6_000);
    check("SGNHT", known, error(sgnht(), Shape::Dense, 15.0, 6_000), 0.05);

    let recipe = || RecipeSampler::new(2, Friction(1.5), constant(0.02), streams).unwrap();
    let known = error(recipe().with_gradient_noise(&noise(50.0)).unwrap(), Shape::Dense, 50.0, 300_000);
    check("recipe", known, error(recipe(), Shape::Dense, 50.0, 300_000), 0.14);
    assert!(failures.is_empty(), "{failures:?}");
}

/// A scalar, a diagonal and a dense multiple of the identity have equal effect as gradient noise.
#[test]
fn multiples_of_the_identity_are_one_gradient_noise() {
    let settings = SghmcSettings { gradient: constant(0.1), friction: 1.5 };
    let run = |sampler: Sghmc<f64>| {
        let target = Gaussian::new(vec![0.0; 2], PRECISION.to_vec()).unwrap();
        let mut chain = Chain::new(target, sampler, vec![0.5; 2]).unwrap();
        chain.run(20, |_| ());
        chain.state().to_vec()
    };
    let sghmc = || Sghmc::new(2, 1, settings, SeedTree::new(2)).unwrap();
    let by = |matrix: &Matrix| run(sghmc().with_gradient_noise(matrix).unwrap());
    let by_number = by(&Matrix::Scalar(3.0));
    for matrix in [Matrix::Diagonal(vec![3.0; 2]), Matrix::Dense(vec![3.0, 0.0, 0.0, 3.0])] {
        for (a, b) in by(&matrix).iter().zip(&by_number) {
            assert!((a - b).abs() < 1e-12, "{matrix:?}");
        }
    }
    assert!(run(sghmc()).iter().zip(&by_number).all(|(a, b)| (a - b).abs() > 1e-3));
}

/// Redrawn momenta are new, and do not change the stationary distribution.
#[test]
fn momenta_may_be_redrawn() {
    let streams = SeedTree::new(3);
    let gradient = constant(0.1);
    let sghmc = SghmcSettings { gradient, friction: 0.05 };
    let sghmc = || Sghmc::new(2, BLOCKS, sghmc, streams).unwrap();
    let sghmc_error = error(sghmc().with_resampling(20).unwrap(), Shape::Dense, 0.0, 2_000);
    let sgnht = SgnhtSettings { gradient, diffusion: 1.0 };
    let sgnht = Sgnht::new(2, BLOCKS, sgnht, streams).unwrap().with_resampling(20).unwrap();
    let sgnht_error = error(sgnht, Shape::Dense, 0.0, 4_000);
    let sgrhmc = Sgrhmc::new(2, BLOCKS, constant(0.01), streams).unwrap().with_resampling(50).unwrap();
    let sgrhmc_error = error(sgrhmc, Shape::Dense, 0.0, 8_000);
    println!("SGHMC {sghmc_error:.3}, SGNHT {sgnht_error:.3}, SGRHMC {sgrhmc_error:.3}");
    assert!(sghmc_error < 0.05 && sgnht_error < 0.05 && sgrhmc_error < 0.1);
    let mut sampler = sghmc().with_resampling(3).unwrap();
    let mut target = Noisy { blocks: BLOCKS, stream: streams.rng(9), shape: Shape::Dense, loud: 0.0 };
    let (mut theta, mut last) = (vec![0.0; 2 * BLOCKS], vec![0.0; BLOCKS]);
    for step in 0..10 {
        sampler.step(&mut target, &mut theta);
        let momenta: Vec<f64> = (0..BLOCKS).map(|block| sampler.momentum(block)[0]).collect();
        let change: f64 = momenta.iter().zip(&last).map(|(now, last)| (now - last).abs()).sum();
        // With little friction momenta change little from step to step.
        assert_eq!(change > 0.6 * BLOCKS as f64, step % 3 == 0, "{step}: {change}");
        last = momenta;
    }
    // A momentum that was set is kept until it is redrawn, also through the first step.
    let mut sampler = sghmc().with_resampling(3).unwrap();
    sampler.set_momentum(0, &[50.0, -50.0]);
    sampler.step(&mut target, &mut vec![0.0; 2 * BLOCKS]);
    assert!(sampler.momentum(0)[0] > 40.0 && sampler.momentum(0)[1] < -40.0);
    assert!(matches!(sghmc().with_resampling(0), Err(SamplerError::Setting { .. })));
}

/// `N(0, 1)` in every coordinate, with a metric that varies, `1 + x^2`.
#[derive(Clone)]
struct Bent {
    blocks: usize,
}

impl Target<f64> for Bent {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(theta);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential.iter_mut().zip(theta).for_each(|(potential, x)| *potential = 0.5 * x * x);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

impl Metric<f64> for Bent {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        metric.iter_mut().zip(theta).for_each(|(metric, x)| *metric = 1.0 + x * x);
    }
}

/// Under `exp(-U / temperature)` the variance of a standard normal law is the temperature, also with momenta that are redrawn.
#[test]
fn draws_follow_the_temperature() {
    let (streams, mut failures) = (SeedTree::new(6), Vec::new());
    for temperature in [0.25, 2.0] {
        let at = |step| GradientSettings { temperature, ..constant(step) };
        let sghmc = SghmcSettings { gradient: at(0.1), friction: 0.5 };
        let sghmc = || Sghmc::new(1, BLOCKS, sghmc, streams).unwrap();
        let sgnht = SgnhtSettings { gradient: at(0.1), diffusion: 1.0 };
        let sgnht = || Sgnht::new(1, BLOCKS, sgnht, streams).unwrap();
        // A long memory of squared gradients makes a metric that hardly depends on the state.
        let psgld = PsgldSettings {
            gradient: at(0.02),
            forgetting: 0.9999,
            regularisation: 1.0,
            ..PsgldSettings::default()
        };
        let hamcmc = HamcmcSettings { gradient: at(0.05), ..HamcmcSettings::default() };
        let samplers: [(&str, Box<dyn Sampler<f64>>, usize); 9] = [
            ("PSGLD", Box::new(Psgld::new(1, BLOCKS, psgld, streams).unwrap()), 20_000),
            ("HAMCMC", Box::new(Hamcmc::new(1, BLOCKS, hamcmc, streams).unwrap()), 10_000),
            ("SGLD", Box::new(Sgld::new(1, BLOCKS, at(0.02), streams).unwrap()), 10_000),
            ("SGHMC", Box::new(sghmc()), 10_000),
            ("SGHMC, redrawn", Box::new(sghmc().with_resampling(5).unwrap()), 10_000),
            ("SGNHT", Box::new(sgnht()), 10_000),
            ("SGNHT, redrawn", Box::new(sgnht().with_resampling(5).unwrap()), 10_000),
            ("SGRLD", Box::new(Sgrld::new(1, BLOCKS, at(0.02), streams).unwrap()), 20_000),
            ("SGRHMC", Box::new(Sgrhmc::new(1, BLOCKS, at(0.02), streams).unwrap()), 20_000),
        ];
        for (name, sampler, steps) in samplers {
            let mut chain = Chain::new(Bent { blocks: BLOCKS }, sampler, vec![0.1; BLOCKS]).unwrap();
            chain.run(steps / 5, |_| ());
            let mut square = 0.0;
            chain.run(steps, |draw| square += draw.theta.iter().map(|x| x * x).sum::<f64>());
            let ratio = square / (steps * BLOCKS) as f64 / temperature;
            println!("{name} at {temperature}: {ratio:.4}");
            if (ratio - 1.0).abs() > 0.04 {
                failures.push((name, temperature, ratio));
            }
        }
        // By the recipe, in a block of its own.
        let recipe = RecipeSampler::new(1, RiemannianLangevin, at(0.02), streams).unwrap();
        let mut chain = Chain::new(Bent { blocks: 1 }, recipe, vec![0.1]).unwrap();
        let mut square = 0.0;
        chain.run(400_000, |draw| square += draw.theta[0].powi(2) / 4e5 / temperature);
        println!("recipe at {temperature}: {square:.4}");
        if (square - 1.0).abs() > 0.1 {
            failures.push(("recipe", temperature, square));
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}

/// If the density is even, folded draws are distributed as the absolute values of unfolded draws, also near zero.
#[test]
fn folded_draws_have_the_law_of_sizes() {
    const MANY: usize = 100;
    let streams = SeedTree::new(12);
    let fold = |step| GradientSettings { mirror: true, ..constant(step) };
    let sgld = || Sgld::new(1, MANY, fold(0.05), streams).unwrap();
    let psgld = PsgldSettings {
        gradient: fold(0.05),
        forgetting: 0.9999,
        regularisation: 1.0,
        ..PsgldSettings::default()
    };
    let hamcmc = HamcmcSettings { gradient: fold(0.05), ..HamcmcSettings::default() };
    let sghmc = SghmcSettings { gradient: fold(0.2), friction: 0.5 };
    let sgnht = SgnhtSettings { gradient: fold(0.2), diffusion: 1.0 };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 7] = [
        ("SGLD", Box::new(sgld())),
        ("SGLD with D", Box::new(sgld().with_diffusion(&Matrix::Scalar(1.0)).unwrap())),
        ("PSGLD", Box::new(Psgld::new(1, MANY, psgld, streams).unwrap())),
        ("SGRLD", Box::new(Sgrld::new(1, MANY, fold(0.05), streams).unwrap())),
        ("HAMCMC", Box::new(Hamcmc::new(1, MANY, hamcmc, streams).unwrap())),
        ("SGHMC", Box::new(Sghmc::new(1, MANY, sghmc, streams).unwrap())),
        ("SGNHT", Box::new(Sgnht::new(1, MANY, sgnht, streams).unwrap())),
    ];
    for (name, sampler) in samplers {
        let mut chain = Chain::new(Bent { blocks: MANY }, sampler, vec![0.8; MANY]).unwrap();
        chain.run(500, |_| ());
        let (mut mean, mut near) = (0.0, 0.0);
        let steps = 4_000;
        let share = 1.0 / (steps * MANY) as f64;
        chain.run(steps, |draw| {
            for &x in draw.theta {
                assert!(x >= 0.0, "{name}: {x}");
                mean += share * x;
                near += share * f64::from(x < 0.05);
            }
        });
        println!("{name}: mean {mean:.4}, {near:.4} near zero");
        // Of |x|, x standard normal: sqrt(2 / pi) and erf(0.05 / sqrt 2).
        assert!((mean - 0.7979).abs() < 0.03 && (near - 0.0399).abs() < 0.004, "{name}: {mean} {near}");
    }
}

/// Returns the effective size of the wide direction, its variance, and 1000 times the variance of the narrow direction.
fn widths(sampler: impl Sampler<f64>, steps: usize) -> (f64, [f64; 2]) {
    let mut chain = Chain::new(narrow(), sampler, vec![0.1; 2]).unwrap();
    chain.burn_in(1_000);
    let (mut wide, mut thin) = (Vec::new(), 0.0);
    chain.run(steps, |draw| {
        wide.push((draw.theta[0] + draw.theta[1]) / 2.0_f64.sqrt());
        thin += 500.0 * (draw.theta[0] - draw.theta[1]).powi(2) / steps as f64;
    });
    let variance = diagnostics::mean_and_variance(&wide).1;
    (diagnostics::effective_size_mean(&[wide]), [variance, thin])
}

/// A mass or diffusion near the posterior's makes a target of condition number 1000 isotropic, and keeps the sampler
/// exact.
#[test]
fn masses_and_diffusions_help_and_change_nothing() {
    let streams = SeedTree::new(4);
    let precision = Matrix::Dense(vec![500.5, -499.5, -499.5, 500.5]);
    let covariance = Matrix::Dense(narrow().covariance());
    let hmc = HmcSettings { leaps: 3, jitter: 0.6, ..HmcSettings::default() };
    let plain = widths(Hmc::new(2, 1, hmc, streams).unwrap(), 5_000);
    let massive = widths(Hmc::new(2, 1, hmc, streams).unwrap().with_mass(&precision).unwrap(), 5_000);
    println!("HMC: {plain:.3?}, with a mass {massive:.3?}");
    assert!(massive.0 > 20.0 * plain.0 && massive.0 > 1_000.0);
    let nuts = Nuts::new(2, 1, NutsSettings::default(), streams).unwrap().with_mass(&precision).unwrap();
    let nuts = widths(nuts, 3_000);
    println!("NUTS with a mass: {nuts:.3?}");
    // The trajectories of a round law of variance one are a few leaps long.
    assert!(nuts.0 > 1_000.0);
    let sgld = Sgld::new(2, 1, constant(0.03), streams).unwrap().with_diffusion(&covariance).unwrap();
    let sgld = widths(sgld, 60_000);
    println!("SGLD with D: {sgld:.3?}");
    for (_, [wide, thin]) in [massive, nuts, sgld] {
        assert!((wide - 1.0).abs() < 0.1 && (thin - 1.0).abs() < 0.1);
    }
    // On a bent law, with masses of either kind that do not suit it.
    let [_, mean, square, _] = Banana::moments();
    let masses = [Matrix::Diagonal(vec![0.5, 4.0]), Matrix::Dense(vec![1.0, 0.8, 0.8, 2.0])];
    for mass in &masses {
        for quasi in [false, true] {
            let mut runs = [Vec::new(), Vec::new()];
            for seed in 0..8 {
                let streams = SeedTree::new(20 + seed);
                let sampler: Box<dyn Sampler<f64>> = match quasi {
                    false => Box::new(
                        Hmc::new(2, 1, HmcSettings::default(), streams).unwrap().with_mass(mass).unwrap(),
                    ),
                    true => Box::new(
                        Qnhmc::new(2, 1, QnhmcSettings::default(), streams).unwrap().with_mass(mass).unwrap(),
                    ),
                };
                let mut chain = Chain::new(Banana, sampler, vec![0.0, -1.2]).unwrap();
                chain.burn_in(500);
                let mut sums = [0.0; 2];
                chain.run(4_000, |draw| {
                    sums[0] += draw.theta[1] / 4e3;
                    sums[1] += draw.theta[0].powi(2) / 4e3;
                });
                runs.iter_mut().zip(sums).for_each(|(run, sum)| run.push(sum));
            }
            for (run, truth) in runs.iter().zip([mean, square]) {
                let (found, variance) = diagnostics::mean_and_variance(run);
                let error = (variance / 8.0).sqrt();
                println!("{mass:?}, {quasi}: {found:.3} +- {error:.3} of {truth:.3}");
                // QNHMC is slow where its mass does not suit it.
                let precision = if quasi { 0.15 } else { 0.03 };
                assert!((found - truth).abs() < 4.5 * error && error < precision, "{found} {error} {truth}");
            }
        }
    }
    let other = Matrix::Diagonal(vec![1.0; 3]);
    let refused = Hmc::<f64>::new(2, 1, hmc, streams).unwrap().with_mass(&other);
    assert!(matches!(refused, Err(SamplerError::Shape { found: 3, expected: 2, .. })));
    let refused =
        Sgld::<f64>::new(2, 1, constant(0.1), streams).unwrap().with_diffusion(&Matrix::Scalar(0.0));
    assert!(matches!(refused, Err(SamplerError::Matrix { .. })));
}

const FLAT_BLOCKS: usize = 40_000;

/// Gradient noise above what a step injects leaves no injected noise along its direction, and all of it across.
#[test]
fn excess_gradient_noise_is_clipped_to_zero() {
    const EPS: f64 = 0.01;
    for excess in [0.5, 1.9, 1.999] {
        // Of 2 eps I - eps^2 V the eigenvalue along (1, 1) is 2 eps, along (1, -1) it is 2 eps (1 - excess).
        let v = excess / EPS;
        let noise = Matrix::Dense(vec![v, -v, -v, v]);
        let left = 2.0 * f64::max(1.0 - excess, 0.0);
        let expected = [0.5 * (2.0 + left), 0.5 * (2.0 - left)];
        let sgrld = Sgrld::new(2, FLAT_BLOCKS, constant(EPS), SeedTree::new(2)).unwrap();
        let mut theta = vec![0.0; 2 * FLAT_BLOCKS];
        let mut flat = Flat { blocks: FLAT_BLOCKS, terms: 1, metric: [1.0, 0.0, 0.0, 1.0] };
        sgrld.with_gradient_noise(&noise).unwrap().step(&mut flat, &mut theta);
        let mean = |i: usize, j: usize| {
            theta.chunks_exact(2).map(|x| x[i] * x[j]).sum::<f64>() / (EPS * FLAT_BLOCKS as f64)
        };
        let found = [mean(0, 0), mean(1, 1), mean(0, 1)];
        println!("{excess}: {found:.3?} of {expected:.3?}");
        for (found, expected) in found.iter().zip([expected[0], expected[0], expected[1]]) {
            assert!((found - expected).abs() < 0.05, "{excess}: {found:?} of {expected:?}");
        }
    }
}
