//! Samplers are proved by their stationary distributions; variants known to be wrong fail the same bounds.

use alphamf::random::{Stream, Streams};
use alphamf::samplers::lbfgs::InverseHessian;
use alphamf::samplers::targets::{Gaussian, LinearGaussian};
use alphamf::samplers::*;

/// Means of the draws and of their products after `burn_in` steps, over `steps` steps.
fn moments(
    target: &mut dyn Target<f64>,
    sampler: &mut dyn Sampler<f64>,
    start: Vec<f64>,
    (burn_in, steps): (usize, usize),
) -> (Vec<f64>, Vec<f64>) {
    let n = start.len();
    let mut chain = Chain::new(target, sampler, start).unwrap();
    chain.burn_in(burn_in);
    let (mut mean, mut square) = (vec![0.0; n], vec![0.0; n * n]);
    chain.run(steps, |draw| {
        for j in 0..n {
            mean[j] += draw.theta[j] / steps as f64;
            for i in 0..n {
                square[j * n + i] += draw.theta[i] * draw.theta[j] / steps as f64;
            }
        }
    });
    assert_eq!(chain.statistics().divergences, 0);
    for j in 0..n {
        for i in 0..n {
            square[j * n + i] -= mean[i] * mean[j];
        }
    }
    (mean, square)
}

/// The largest error of the mean in posterior standard deviations, and the distance of the covariance from the
/// exact one: `|A^1/2 C A^1/2 - I|` in the Frobenius norm, per dimension.
fn errors(exact: &Gaussian, mean: &[f64], covariance: &[f64]) -> (f64, f64) {
    let n = mean.len();
    let truth = exact.covariance();
    let worst =
        (0..n).map(|i| (mean[i] - exact.mean()[i]).abs() / truth[i * n + i].sqrt()).fold(0.0, f64::max);
    // tr((A C - I)^2) is the squared norm of the symmetric A^1/2 C A^1/2 - I.
    let product = |i: usize, j: usize| -> f64 {
        (0..n).map(|k| exact.precision(i, k) * covariance[j * n + k]).sum::<f64>() - f64::from(i == j)
    };
    let mut trace = 0.0;
    for i in 0..n {
        for j in 0..n {
            trace += product(i, j) * product(j, i);
        }
    }
    (worst, (trace / n as f64).sqrt())
}

/// The linear Gaussian model of hamcmc section 4.1: ten observations per unknown, noise variance 10.
fn linear_gaussian(dimension: usize) -> LinearGaussian {
    LinearGaussian::synthetic(dimension, 10 * dimension, 10.0, 1.0, Streams::new(3))
}

fn largest_curvature(gaussian: &Gaussian) -> f64 {
    // Power iteration.
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

const STEPS: (usize, usize) = (2_000, 200_000);
/// In posterior standard deviations.
const MEAN_BOUND: f64 = 0.12;
const COVARIANCE_BOUND: f64 = 0.15;

fn constant(step: f64) -> GradientSettings {
    GradientSettings { step_size: StepSize::Constant(step), ..GradientSettings::default() }
}

#[test]
fn hamcmc_samples_the_linear_gaussian_posterior_and_the_printed_root_does_not() {
    for (dimension, memory) in [(2, 2), (10, 3)] {
        let model = linear_gaussian(dimension);
        let exact = model.posterior().clone();
        let gamma = 1.0 / largest_curvature(&exact);
        let settings = HamcmcSettings {
            gradient: constant(0.1),
            memory,
            initial_scale: InitialScale::Fixed(gamma),
            ..HamcmcSettings::default()
        };
        let mut sampler = Hamcmc::new(dimension, 1, settings, Streams::new(1)).unwrap();
        let (mean, covariance) = moments(&mut model.clone(), &mut sampler, vec![0.0; dimension], STEPS);
        let (mean_error, covariance_error) = errors(&exact, &mean, &covariance);
        assert!(
            mean_error < MEAN_BOUND && covariance_error < COVARIANCE_BOUND,
            "{mean_error} {covariance_error}"
        );

        let (mean, covariance) = wrong(&mut model.clone(), Variant::PrintedRoot, memory, gamma, 0.1, STEPS);
        let (_, covariance_error) = errors(&exact, &mean, &covariance);
        assert!(covariance_error > 3.0 * COVARIANCE_BOUND, "{covariance_error}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Naive,
    PrintedRoot,
}

/// Quasi-Newton Langevin dynamics done wrong: with a memory that contains the state it moves and no
/// correction (hamcmc section 3.1), or in HAMCMC's order with the printed square root of eq. 11.
fn wrong(
    model: &mut LinearGaussian,
    variant: Variant,
    memory: usize,
    gamma: f64,
    eps: f64,
    (burn_in, steps): (usize, usize),
) -> (Vec<f64>, Vec<f64>) {
    let n = Target::<f64>::dimension(model);
    let mut stream = Streams::new(5).stream(0);
    let mut gradient_at = |theta: &[f64]| {
        let mut gradient = vec![0.0; n];
        let terms = Target::<f64>::terms(model);
        model.gradient(theta, Minibatch::full(terms), &mut gradient);
        gradient
    };
    let mut inverse = InverseHessian::new(n, memory);
    let lag = if variant == Variant::Naive { 1 } else { memory };
    let mut states = vec![vec![0.0; n]; lag];
    let mut pairs: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    let (mut mean, mut square) = (vec![0.0; n], vec![0.0; n * n]);
    for t in 0..burn_in + steps {
        inverse.reset(gamma);
        let window = memory - 1;
        let first = pairs.len().saturating_sub(window);
        let used: Vec<_> = pairs[first..].iter().filter(|(s, y)| inverse.push(s, y)).cloned().collect();
        let start = states[states.len() - lag].clone();
        let gradient = gradient_at(&start);
        let mut drift = gradient.clone();
        inverse.multiply(&mut drift);
        let mut noise: Vec<f64> = (0..n).map(|_| f64::normal(&mut stream)).collect();
        if variant == Variant::Naive {
            inverse.multiply_root(&mut noise);
        } else {
            printed_root(&used, gamma, &mut noise);
        }
        let theta: Vec<f64> =
            (0..n).map(|i| start[i] - eps * drift[i] + (2.0 * eps).sqrt() * noise[i]).collect();
        let after = gradient_at(&theta);
        let difference = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>();
        pairs.push((difference(&theta, &start), difference(&after, &gradient)));
        if pairs.len() > 64 {
            pairs.drain(..32);
        }
        if t >= burn_in {
            for j in 0..n {
                mean[j] += theta[j] / steps as f64;
                for i in 0..n {
                    square[j * n + i] += theta[i] * theta[j] / steps as f64;
                }
            }
        }
        states.push(theta);
        if states.len() > 64 {
            states.drain(..32);
        }
    }
    for j in 0..n {
        for i in 0..n {
            square[j * n + i] -= mean[i] * mean[j];
        }
    }
    (mean, square)
}

/// `v <- S v` with eq. 11 of `hamcmc-2016` as printed.
fn printed_root(pairs: &[(Vec<f64>, Vec<f64>)], gamma: f64, v: &mut [f64]) {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    v.iter_mut().for_each(|v| *v *= gamma.sqrt());
    let mut hessian: Vec<(Vec<f64>, Vec<f64>)> = Vec::new();
    for (s, y) in pairs {
        let apply = |x: &[f64]| -> Vec<f64> {
            let mut bx: Vec<f64> = x.iter().map(|x| x / gamma).collect();
            for ((s, y), (_, bs)) in pairs.iter().zip(&hessian) {
                let (p, q) = (dot(y, x) / dot(s, y), dot(bs, x) / dot(s, bs));
                bx.iter_mut().zip(y).zip(bs).for_each(|((bx, y), bs)| *bx += p * y - q * bs);
            }
            bx
        };
        let bs = apply(s);
        let sby = dot(s, &apply(y));
        let root = (dot(s, y) / sby).abs().sqrt();
        let q: Vec<f64> = bs.iter().zip(y).map(|(bs, y)| root * bs - y).collect();
        let c = dot(&q, v) / dot(s, y);
        v.iter_mut().zip(s).for_each(|(v, s)| *v -= c * s);
        hessian.push((s.clone(), bs));
    }
}
