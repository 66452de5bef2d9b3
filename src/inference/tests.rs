//! Tests of the factors' conditional posteriors as targets of samplers: derivatives against differences, the metric
//! against Monte Carlo, and stationary distributions against quadrature.

use super::factor_target::{ActivationTarget, NoiseTarget};
use super::published::Redraw;
use super::state::{Separation, Start, TILE_FRAMES, Tile, UpdateMask};
use crate::model::{
    Factor, ImpulseStep, ImpulseVariables, MarginalTable, Mixture, NoiseModel, Prior, SampledVariables,
    Workspace,
};
use crate::random::{SeedTree, SeededRng};
use crate::samplers::{
    GradientSettings, Hamcmc, HamcmcSettings, InitialScale, Minibatch, Mirrored, Newtonian, Sampler, Scaled,
    Sgld, Sgrld, Site, Sites, StepSize, Target,
};
use rand::RngExt;
use rand_distr::{Distribution, Exp1};
use std::sync::Arc;

/// Characteristic exponents of speech and of noise.
pub(super) const ALPHA: (f64, f64) = (1.2, 1.89);

/// The inputs of a separation, with one prior for all factors.
pub(super) fn start(bins: usize, speech_spectra: &[f32], noise: NoiseModel, prior: Prior) -> Start<'_> {
    Start {
        bins,
        speech_spectra,
        alpha_speech: ALPHA.0,
        alpha_noise: ALPHA.1,
        noise,
        frame_seconds: 0.016,
        bin_hertz: 15.625,
        speech_prior: prior,
        noise_prior: prior,
        previous: None,
        noise_profile: None,
        gain_std: false,
    }
}

/// A mixture, the powers of some frames, and the other data that a target borrows.
struct Problem {
    mixture: Mixture<f32>,
    table: Arc<MarginalTable>,
    /// `None` if impulse variables are integrated out.
    sampled: Option<SampledVariables<f32>>,
    power: Vec<f32>,
    field: Vec<f32>,
    /// Priors of speech and of noise.
    priors: [Prior; 2],
    workspace: Workspace<f32>,
    /// rank x frames.
    activations: Vec<f32>,
}

impl Problem {
    fn new(bins: usize, frames: usize, ranks: (usize, usize), sampled: bool, seed: u64) -> Self {
        let mut stream = SeedTree::new(seed).rng(0);
        let mut positive =
            |count: usize| -> Vec<f32> { (0..count).map(|_| 0.2 + stream.random::<f32>()).collect() };
        let mixture = Mixture {
            bins,
            speech: Factor { alpha: ALPHA.0, spectra: positive(bins * ranks.0) },
            noise: Factor { alpha: ALPHA.1, spectra: positive(bins * ranks.1) },
        };
        let activations = positive((ranks.0 + ranks.1) * frames);
        let (power, field) = (positive(bins * frames), positive(bins * frames));
        let table = Arc::new(MarginalTable::new(ALPHA.0, ALPHA.1));
        let sampled =
            sampled.then(|| ImpulseStep::new(ALPHA.0, ALPHA.1).unwrap().draw(bins * frames, &mut stream));
        let priors = [Prior::Gamma { shape: 0.9, rate: 0.5 }, Prior::Gamma { shape: 1.2, rate: 1.5 }];
        let workspace = Workspace::default();
        Self { mixture, table, sampled, power, field, priors, workspace, activations }
    }

    fn target(&mut self) -> ActivationTarget<'_> {
        let Self { mixture, table, sampled, power, field, priors, workspace, .. } = self;
        let sampled = sampled.as_mut().map(|values| Redraw { values, due: None });
        ActivationTarget { mixture, table, sampled, power, field, priors: *priors, workspace }
    }

    /// A separation of the same frames, for the noise.
    fn separation(&self) -> Separation {
        let noise = NoiseModel::FixedSpectra { rank: self.mixture.noise_rank() };
        let [speech_prior, noise_prior] = self.priors;
        let start = start(self.mixture.bins, &self.mixture.speech.spectra, noise, noise_prior);
        let start = Start { speech_prior, ..start };
        let mut separation = Separation::new(&start, &self.power, &self.table, SeedTree::new(5));
        let (mut first, rank) = (0, self.mixture.rank());
        for Tile { power, field, activations, .. } in &mut separation.tiles {
            let entries = first..first + power.len();
            *field = self.field[entries].to_vec();
            let columns = first / self.mixture.bins * rank;
            let count = activations.len();
            activations.copy_from_slice(&self.activations[columns..][..count]);
            first += power.len();
        }
        separation
    }

    /// The sampled impulse variables of every tile of the separation, if there are any.
    fn by_tile(&self) -> Option<Vec<SampledVariables<f32>>> {
        let SampledVariables { speech, noise } = self.sampled.as_ref()?;
        let cut = |values: &[f32]| -> Vec<Vec<f32>> {
            values.chunks(TILE_FRAMES * self.mixture.bins).map(<[f32]>::to_vec).collect()
        };
        let tiles = cut(speech).into_iter().zip(cut(noise));
        Some(tiles.map(|(speech, noise)| SampledVariables { speech, noise }).collect())
    }
}

fn noise_target<'a>(
    separation: &'a mut Separation,
    sampled: Option<&'a [SampledVariables<f32>]>,
) -> NoiseTarget<'a> {
    let Separation { mixture, tiles, pool, table, noise_prior: prior, .. } = separation;
    let impulses = match sampled {
        None => vec![ImpulseVariables::Integrated(table); tiles.len()],
        Some(sampled) => sampled.iter().map(ImpulseVariables::Sampled).collect(),
    };
    NoiseTarget { mixture, tiles, impulses, prior: *prior, pool }
}

fn total(target: &mut dyn Target<f32>, theta: &[f32]) -> f64 {
    let mut potential = vec![f64::NAN; target.blocks()];
    target.potential(theta, &mut potential);
    potential.iter().sum()
}

fn gradient(target: &mut dyn Target<f32>, theta: &[f32], batch: Minibatch<'_>) -> Vec<f32> {
    let mut gradient = vec![f32::NAN; theta.len()];
    target.gradient(theta, batch, &mut gradient);
    gradient
}

/// Derivatives of `at` along each coordinate's logarithm, over a step that is wide enough for single precision.
fn log_differences(theta: &[f32], step: f64, mut at: impl FnMut(&[f32], usize) -> f64) -> Vec<f64> {
    let mut moved = |k: usize, step: f64| {
        let mut theta = theta.to_vec();
        theta[k] = (f64::from(theta[k]) * step.exp()) as f32;
        at(&theta, k)
    };
    (0..theta.len()).map(|k| (moved(k, step) - moved(k, -step)) / (2.0 * step)).collect()
}

fn close(what: &str, a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() < tolerance * (1.0 + b.abs()), "{what}: {a} against {b}");
}

/// Gradient, metric, its divergence, and the expansion of every site, all against differences.
fn check_derivatives(target: &mut dyn Target<f32>, theta: &[f32], integrated: bool) {
    let n = target.dimension();
    let full = Minibatch::full(target.terms());
    let slopes = gradient(target, theta, full);
    let (step, tolerance) = if integrated { (0.2, 0.06) } else { (0.02, 0.01) };
    let differences = log_differences(theta, step, |theta, _| total(target, theta));
    for k in 0..theta.len() {
        close("gradient", f64::from(slopes[k] * theta[k]), differences[k], tolerance);
    }
    // A batch of all terms gives the full gradient; batches of one term give it on average.
    let all: Vec<usize> = (0..target.terms()).rev().collect();
    let whole = gradient(target, theta, Minibatch::subsample(&all, all.len()));
    let mut mean = vec![0.0; theta.len()];
    for &term in &all {
        let pair = [term, all[all.len() / 2], term];
        let single = gradient(target, theta, Minibatch::subsample(&pair[..1], all.len()));
        let twice = gradient(target, theta, Minibatch::subsample(&pair, all.len()));
        let other = gradient(target, theta, Minibatch::subsample(&pair[1..2], all.len()));
        for k in 0..theta.len() {
            mean[k] += f64::from(single[k]) / all.len() as f64;
            close("repeats", f64::from(3.0 * twice[k]), f64::from(2.0 * single[k] + other[k]), 1e-3);
        }
    }
    for k in 0..theta.len() {
        close("batch of all", f64::from(whole[k]), f64::from(slopes[k]), 1e-4);
        close("mean of batches", mean[k], f64::from(slopes[k]), 1e-3);
    }

    let metric = target.metric().unwrap();
    assert!(metric.is_diagonal());
    for inverse in [true, false] {
        let mut divergence = vec![f32::NAN; theta.len()];
        assert!(metric.divergence(theta, inverse, &mut divergence));
        let mut values = vec![f32::NAN; theta.len()];
        let differences = log_differences(theta, 0.02, |theta, k| {
            metric.metric(theta, &mut values);
            let inverse_metric = 1.0 / f64::from(values[k]);
            if inverse { inverse_metric } else { inverse_metric.sqrt() }
        });
        for k in 0..theta.len() {
            close("divergence", f64::from(divergence[k] * theta[k]), differences[k], 5e-3);
        }
    }

    let blocks = target.blocks();
    let sites = target.sites().unwrap();
    assert_eq!(sites.count(), n);
    let mut expand = |theta: &[f32], k: usize| {
        let [mut potential, mut gradient, mut hessian] = [(); 3].map(|()| vec![f64::NAN; blocks]);
        sites.expand(theta, k % n, &mut potential, &mut gradient, &mut hessian);
        (potential[k / n], gradient[k / n], hessian[k / n])
    };
    let at: Vec<_> = (0..theta.len()).map(|k| expand(theta, k)).collect();
    let slopes = log_differences(theta, step, |theta, k| expand(theta, k).0);
    let bends = log_differences(theta, step, |theta, k| expand(theta, k).1);
    // Terms of both signs cancel: the error is relative to the terms.
    let tolerance = if integrated { 0.25 } else { 0.01 };
    for k in 0..theta.len() {
        let x = f64::from(theta[k]);
        close("slope of a site", at[k].1 * x, slopes[k], tolerance);
        close("curvature of a site", at[k].2 * x * x, bends[k] * x, tolerance);
    }
}

#[test]
fn the_targets_derivatives_are_differences() {
    for sampled in [true, false] {
        let mut problem = Problem::new(12, 40, (3, 2), sampled, 1);
        let theta = problem.activations.clone();
        check_derivatives(&mut problem.target(), &theta, !sampled);
        let (mut separation, by_tile) = (problem.separation(), problem.by_tile());
        let theta: Vec<f32> = problem.activations[..12 * 2].to_vec();
        check_derivatives(&mut noise_target(&mut separation, by_tile.as_deref()), &theta, !sampled);
    }
}

/// Multiplicative updates converge to a zero of the gradient. Their terms lack the factor `2 / alpha` of the potential,
/// so a prior counts `2 / alpha` times.
#[test]
fn expectation_maximisation_ends_where_the_gradient_is_zero() {
    let mut problem = Problem::new(12, 20, (3, 2), false, 7);
    let rates = [0.2, 0.5];
    problem.priors = rates.map(|rate| Prior::Gamma { shape: 1.0, rate });
    let mut separation = problem.separation();
    for _ in 0..3_000 {
        separation.em_step(1.0, UpdateMask { noise: true, response: false });
    }
    let counted = [2.0 / ALPHA.0 * rates[0], 2.0 / ALPHA.1 * rates[1]];
    let Separation { mixture, tiles, table, .. } = &separation;
    let tile = &tiles[0];
    let slopes = |rates: [f64; 2]| {
        let priors = rates.map(|rate| Prior::Gamma { shape: 1.0, rate });
        let (power, field, workspace) = (&tile.power, &tile.field, &mut Workspace::default());
        let mut target = ActivationTarget { mixture, table, sampled: None, power, field, priors, workspace };
        let slopes = gradient(&mut target, &tile.activations, Minibatch::full(12));
        slopes.iter().zip(&tile.activations).map(|(slope, x)| f64::from(slope * x)).collect::<Vec<_>>()
    };
    let (found, likelihood) = (slopes(counted), slopes([0.0; 2]));
    let largest = likelihood.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    assert!(largest > 0.3 && found.iter().all(|slope| slope.abs() < 0.02 * largest), "{largest}: {found:?}");
}

/// The mean square of the gradient over data drawn given the impulse variables.
#[test]
fn the_metric_is_the_expected_fisher_information() {
    let mut problem = Problem::new(5, 4, (3, 2), true, 2);
    problem.priors = [Prior::Flat; 2];
    let theta = problem.activations.clone();
    let mut spectra = vec![0.0; 5 * 2];
    let (mixture, field) = (problem.mixture.clone(), problem.field.clone());
    super::factor_target::transpose(&mixture.noise.spectra, 5, &mut spectra);
    let dispersed = problem.workspace.disperse(&mixture, &theta).modulated(&field);
    let (lambda_speech, lambda_noise) = dispersed.dispersions();
    let SampledVariables { speech, noise } = problem.sampled.as_ref().unwrap();
    let variances: Vec<f32> = (0..field.len())
        .map(|i| {
            let (s, n) = (lambda_speech[i].powf(2.0 / 1.2), lambda_noise[i].powf(2.0 / 1.89));
            speech[i] * s + noise[i] * n
        })
        .collect();
    let mut stream = SeedTree::new(3).rng(0);
    let draws = 20_000;
    let (mut squares, mut noise_squares) = (vec![0.0; theta.len()], vec![0.0; spectra.len()]);
    let (mut separation, by_tile) = (problem.separation(), problem.by_tile());
    let by_tile = by_tile.as_deref();
    for _ in 0..draws {
        for (power, variance) in problem.power.iter_mut().zip(&variances) {
            let excess: f32 = Exp1.sample(&mut stream);
            *power = excess * variance;
        }
        separation.tiles[0].power.copy_from_slice(&problem.power);
        let g = gradient(&mut problem.target(), &theta, Minibatch::full(5));
        squares.iter_mut().zip(g).for_each(|(sum, g)| *sum += f64::from(g * g));
        let g = gradient(&mut noise_target(&mut separation, by_tile), &spectra, Minibatch::full(4));
        noise_squares.iter_mut().zip(g).for_each(|(sum, g)| *sum += f64::from(g * g));
    }
    let check = |target: &mut dyn Target<f32>, theta: &[f32], squares: &[f64]| {
        let mut values = vec![f32::NAN; theta.len()];
        target.metric().unwrap().metric(theta, &mut values);
        for ((value, x), square) in values.iter().zip(theta).zip(squares) {
            let fisher = f64::from(*value) - f64::from(1.0 / (x * x));
            let estimate = square / f64::from(draws);
            // Fourth moments of exponential variables: the error is below 3 / sqrt(draws) of the value.
            assert!((fisher / estimate - 1.0).abs() < 0.08, "{fisher} against {estimate}");
        }
    };
    check(&mut problem.target(), &theta, &squares);
    check(&mut noise_target(&mut separation, by_tile), &spectra, &noise_squares);
}

/// One frame with one spectrum each of speech and noise, as `blocks` independent chains.
fn two_unknowns(blocks: usize, sampled: bool) -> Problem {
    let mut problem = Problem::new(24, 1, (1, 1), sampled, 4);
    problem.power = [0.9, 0.1, 2.0, 0.3, 0.05, 0.7, 4.0, 0.4].repeat(3 * blocks);
    problem.field = Vec::new();
    problem.priors = [Prior::Gamma { shape: 1.5, rate: 0.5 }; 2];
    problem.activations = [1.0, 0.5].repeat(blocks);
    if sampled {
        let mut stream = SeedTree::new(6).rng(0);
        let mut step = ImpulseStep::new(ALPHA.0, ALPHA.1).unwrap();
        problem.sampled = Some(step.draw(problem.power.len(), &mut stream));
    }
    problem
}

/// The compared statistic, bounded so that neither tail dominates.
fn statistic(activation: f64) -> f64 {
    activation / (1.0 + activation)
}

/// Means and standard deviations of the two statistics by quadrature, impulse variables integrated out.
fn exact() -> [f64; 4] {
    const POINTS: usize = 240;
    let mut problem = two_unknowns(POINTS, false);
    let at = |i: usize| -9.0 + 15.0 * i as f64 / POINTS as f64;
    let (mut mass, mut sums) = (0.0, [0.0; 4]);
    for i in 0..POINTS {
        let theta: Vec<f32> = (0..POINTS).flat_map(|j| [at(i).exp() as f32, at(j).exp() as f32]).collect();
        let mut potential = vec![f64::NAN; POINTS];
        problem.target().potential(&theta, &mut potential);
        for (j, potential) in potential.iter().enumerate() {
            let (x, y) = (at(i), at(j));
            // The Jacobian of the logarithms.
            let weight = (x + y - potential).exp();
            let (x, y) = (statistic(x.exp()), statistic(y.exp()));
            mass += weight;
            for (sum, value) in sums.iter_mut().zip([x, y, x * x, y * y]) {
                *sum += weight * value;
            }
        }
    }
    moments(sums.map(|sum| sum / mass))
}

fn moments([x, y, xx, yy]: [f64; 4]) -> [f64; 4] {
    [x, y, (xx - x * x).sqrt(), (yy - y * y).sqrt()]
}

/// The moments of the two statistics over the draws of `step`, which moves all chains.
fn sampled_moments(
    blocks: usize,
    burn_in: usize,
    steps: usize,
    mut step: impl FnMut(&mut Vec<f32>),
) -> [f64; 4] {
    let mut theta = [1.0_f32, 0.5].repeat(blocks);
    let mut sums = [0.0; 4];
    for index in 0..burn_in + steps {
        step(&mut theta);
        if index >= burn_in {
            for pair in theta.chunks_exact(2) {
                let (x, y) = (statistic(pair[0].into()), statistic(pair[1].into()));
                sums.iter_mut().zip([x, y, x * x, y * y]).for_each(|(sum, value)| *sum += value);
            }
        }
    }
    moments(sums.map(|sum| sum / (steps * blocks) as f64))
}

fn largest_error(found: [f64; 4], exact: [f64; 4]) -> f64 {
    found.iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A target whose sites report a potential of zero, so the potential rejects no proposal.
struct WithoutPotential<'a>(ActivationTarget<'a>);

impl Target<f32> for WithoutPotential<'_> {
    fn dimension(&self) -> usize {
        self.0.dimension()
    }
    fn blocks(&self) -> usize {
        self.0.blocks()
    }
    fn gradient(&mut self, theta: &[f32], batch: Minibatch<'_>, gradient: &mut [f32]) {
        self.0.gradient(theta, batch, gradient);
    }
    fn potential(&mut self, theta: &[f32], potential: &mut [f64]) {
        self.0.potential(theta, potential);
    }
    fn sites(&mut self) -> Option<&mut dyn Sites<f32>> {
        Some(self)
    }
}

impl Sites<f32> for WithoutPotential<'_> {
    fn count(&self) -> usize {
        self.0.count()
    }
    fn site(&self, index: usize) -> Site {
        self.0.site(index)
    }
    fn expand(
        &mut self,
        theta: &[f32],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        self.0.expand(theta, index, potential, gradient, hessian);
        potential.fill(0.0);
    }
}

const BLOCKS: usize = 50;

#[test]
fn newtonian_monte_carlo_on_activations_is_exact() {
    let exact = exact();
    let run = |careless: bool| {
        let mut problem = two_unknowns(BLOCKS, false);
        let mut sampler = Newtonian::new(2, BLOCKS, SeedTree::new(7)).unwrap();
        sampled_moments(BLOCKS, 50, 400, |theta| {
            let target = problem.target();
            if careless {
                sampler.step(&mut WithoutPotential(target), theta);
            } else {
                let mut target = target;
                sampler.step(&mut target, theta);
            }
        })
    };
    let error = largest_error(run(false), exact);
    let careless = largest_error(run(true), exact);
    assert!(error < 0.01, "{error}");
    assert!(careless > 0.1, "{careless}");
}

/// Mirrored factors in separate units, with impulse variables integrated out or redrawn at each step.
///
/// Given impulse variables, the posterior is stiff: only samplers that use its curvature take large steps.
#[test]
fn mirrored_samplers_find_the_marginal_posterior() {
    let exact = exact();
    let settings = |step: f64, minibatch| GradientSettings {
        step_size: StepSize::Constant(step),
        minibatch,
        ..GradientSettings::default()
    };
    let units = [0.8_f32, 0.4].repeat(BLOCKS);
    let run = |mut sampler: Box<dyn Sampler<f32>>, sampled: bool, redraws: bool, steps: usize| {
        let mut problem = two_unknowns(BLOCKS, sampled);
        let mut impulses = ImpulseStep::new(ALPHA.0, ALPHA.1).unwrap();
        let mut stream: SeededRng = SeedTree::new(8).rng(0);
        let mut chains = vec![problem.sampled.clone(); sampler.chains()];
        let mut signed = vec![1.25_f32; 2 * BLOCKS];
        let found = sampled_moments(BLOCKS, steps / 4, steps, |theta| {
            let chain = sampler.next_chain();
            std::mem::swap(&mut problem.sampled, &mut chains[chain]);
            let mut target = problem.target();
            if let Some(sampled) = &mut target.sampled {
                sampled.due = redraws.then_some((&mut impulses, &mut stream));
            }
            sampler.step(&mut Mirrored::new(Scaled::new(target, &units)), &mut signed);
            std::mem::swap(&mut problem.sampled, &mut chains[chain]);
            theta.iter_mut().zip(signed.iter().zip(&units)).for_each(|(x, (s, unit))| *x = s.abs() * unit);
        });
        largest_error(found, exact)
    };
    let gradient = settings(0.05, None);
    let (initial_scale, trust_region) = (InitialScale::Pairs(1.0), 1.0);
    let hamcmc = HamcmcSettings { gradient, memory: 5, initial_scale, refresh_interval: 1, trust_region };
    let hamcmc = Box::new(Hamcmc::new(2, BLOCKS, hamcmc, SeedTree::new(9)).unwrap());
    let sgld =
        |minibatch| Box::new(Sgld::new(2, BLOCKS, settings(0.003, minibatch), SeedTree::new(9)).unwrap());
    let sgrld = || Box::new(Sgrld::new(2, BLOCKS, settings(0.1, None), SeedTree::new(9)).unwrap());
    // Redrawn impulse variables without a mirror: exact.
    let newtonian = {
        let mut problem = two_unknowns(BLOCKS, true);
        let mut impulses = ImpulseStep::new(ALPHA.0, ALPHA.1).unwrap();
        let mut stream: SeededRng = SeedTree::new(8).rng(0);
        let mut sampler = Newtonian::new(2, BLOCKS, SeedTree::new(7)).unwrap();
        let found = sampled_moments(BLOCKS, 100, 1500, |theta| {
            let mut target = problem.target();
            target.sampled.as_mut().unwrap().due = Some((&mut impulses, &mut stream));
            sampler.step(&mut target, theta);
        });
        largest_error(found, exact)
    };
    // SGLD moves slowly in fixed units, and the bias of HAMCMC is of first order in its step.
    let errors = [
        ("NMC, sampled impulses", newtonian, 0.02),
        ("SGRLD, sampled impulses", run(sgrld(), true, true, 2500), 0.02),
        ("SGRLD", run(sgrld(), false, false, 2500), 0.05),
        ("SGLD", run(sgld(None), false, false, 2000), 0.05),
        ("SGLD, half of the bins", run(sgld(Some(12)), false, false, 4000), 0.05),
        ("HAMCMC", run(hamcmc, false, false, 4000), 0.05),
    ];
    let frozen = run(sgrld(), true, false, 2500);
    for (name, error, bound) in errors {
        assert!(error < bound, "{name}: {error}");
    }
    assert!(frozen > 0.1, "impulse variables that stay at their start: {frozen}");
}
