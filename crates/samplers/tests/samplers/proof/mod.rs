//! Estimates of known expectations with their standard errors, for tests and the table of samplers.

#![allow(dead_code)] // The table of samplers takes a part.

mod cases;
pub mod targets;

pub use cases::*;

use std::sync::OnceLock;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::{Banana, Dirichlet, Funnel, Gammas, Gaussian, LinearGaussian, Quartic};
use alphamf_samplers::*;
use rayon::prelude::*;

/// A function of the state with a known mean, and its standard deviation under the target.
pub struct Quantity {
    pub name: &'static str,
    pub value: fn(&[f64]) -> f64,
    pub mean: f64,
    pub deviation: f64,
}

/// A target with known answers.
pub struct Problem {
    pub name: &'static str,
    pub target: fn() -> Box<dyn Target<f64>>,
    pub start: Vec<f64>,
    pub quantities: Vec<Quantity>,
}

/// What the chains found for one quantity.
#[derive(Debug, Clone, Copy)]
pub struct Estimate {
    pub mean: f64,
    /// From the spread between independent chains.
    pub error: f64,
}

/// Independent chains per estimate.
const CHAINS: usize = 8;

/// Runs independent chains and averages every quantity over the kept steps.
pub fn estimate(
    problem: &Problem,
    sampler: impl Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync,
    exact: bool,
    (burn_in, steps): (usize, usize),
) -> Vec<Estimate> {
    let runs: Vec<Vec<f64>> = (0..CHAINS)
        .into_par_iter()
        .map(|run| {
            let mut target = (problem.target)();
            let mut sampler = sampler(SeedTree::new(1000 + run as u64));
            let mut chain = Chain::new(&mut *target, &mut *sampler, problem.start.clone()).unwrap();
            chain.burn_in(burn_in);
            let mut sums = vec![0.0; problem.quantities.len()];
            chain.run(steps, |draw| {
                for (sum, quantity) in sums.iter_mut().zip(&problem.quantities) {
                    *sum += (quantity.value)(draw.theta) / steps as f64;
                }
            });
            // A sampler with a test may reject wild proposals; one without must never need to.
            let failed = !exact && chain.statistics().divergences > 0;
            if failed { vec![f64::NAN; sums.len()] } else { sums }
        })
        .collect();
    summarise(&runs)
}

/// Means over runs and their standard errors.
pub fn summarise(runs: &[Vec<f64>]) -> Vec<Estimate> {
    let count = runs.len() as f64;
    (0..runs[0].len())
        .map(|k| {
            let mean = runs.iter().map(|run| run[k]).sum::<f64>() / count;
            let spread = runs.iter().map(|run| (run[k] - mean).powi(2)).sum::<f64>() / (count - 1.0);
            Estimate { mean, error: (spread / count).sqrt() }
        })
        .collect()
}

/// Largest distance from the truth in standard errors, after forgiving a bias of `tolerance` deviations, and
/// the largest standard error in deviations (so that a bound can tell whether it had power).
pub fn worst(problem: &Problem, estimates: &[Estimate], tolerance: f64) -> (f64, f64) {
    let mut worst = (0.0_f64, 0.0_f64);
    for (quantity, estimate) in problem.quantities.iter().zip(estimates) {
        let distance = (estimate.mean - quantity.mean).abs() - tolerance * quantity.deviation;
        let errors = if distance.is_nan() { f64::INFINITY } else { distance.max(0.0) / estimate.error };
        worst = (worst.0.max(errors), worst.1.max(estimate.error / quantity.deviation));
    }
    worst
}

pub fn gaussian() -> Problem {
    fn law() -> Gaussian {
        Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap()
    }
    let covariance = law().covariance();
    let (a, b, c) = (covariance[0], covariance[1], covariance[3]);
    let square = |name, value, variance: f64| Quantity {
        name,
        value,
        mean: variance,
        deviation: 2.0_f64.sqrt() * variance,
    };
    Problem {
        name: "Gaussian",
        target: || Box::new(law()),
        start: vec![0.0, 0.0],
        quantities: vec![
            Quantity { name: "x", value: |t| t[0], mean: 1.0, deviation: a.sqrt() },
            Quantity { name: "y", value: |t| t[1], mean: -0.5, deviation: c.sqrt() },
            square("(x-1)^2", |t| (t[0] - 1.0).powi(2), a),
            square("(y+1/2)^2", |t| (t[1] + 0.5).powi(2), c),
            Quantity {
                name: "(x-1)(y+1/2)",
                value: |t| (t[0] - 1.0) * (t[1] + 0.5),
                mean: b,
                deviation: (a * c + b * b).sqrt(),
            },
        ],
    }
}

fn quartic(name: &'static str, target: fn() -> Box<dyn Target<f64>>, law: &Quartic, start: f64) -> Problem {
    let deviation =
        |f: fn(f64) -> f64| (law.expectation(|x| f(x).powi(2)) - law.expectation(f).powi(2)).sqrt();
    Problem {
        name,
        target,
        start: vec![start],
        quantities: vec![
            Quantity { name: "x", value: |t| t[0], mean: 0.0, deviation: deviation(|x| x) },
            Quantity {
                name: "x^2",
                value: |t| t[0] * t[0],
                mean: law.expectation(|x| x * x),
                deviation: deviation(|x| x * x),
            },
            Quantity {
                name: "|x|",
                value: |t| t[0].abs(),
                mean: law.expectation(f64::abs),
                deviation: deviation(f64::abs),
            },
        ],
    }
}

pub fn one_peak() -> Problem {
    quartic("one peak", || Box::new(Quartic::new(0.25, 0.5)), &Quartic::new(0.25, 0.5), 0.5)
}

pub fn two_peaks() -> Problem {
    quartic("two peaks", || Box::new(Quartic::new(1.0, -2.0)), &Quartic::new(1.0, -2.0), 1.0)
}

pub fn banana() -> Problem {
    let [_, mean, square, variance] = Banana::moments();
    Problem {
        name: "banana",
        target: || Box::new(Banana),
        start: vec![0.0, -1.2],
        quantities: vec![
            Quantity { name: "x", value: |t| t[0], mean: 0.0, deviation: square.sqrt() },
            Quantity { name: "y", value: |t| t[1], mean, deviation: variance.sqrt() },
            Quantity {
                name: "x^2",
                value: |t| t[0] * t[0],
                mean: square,
                deviation: (2.5 - square * square).sqrt(),
            },
        ],
    }
}

pub fn gammas() -> Problem {
    fn law() -> Gammas {
        Gammas::new(vec![3.0, 6.0], vec![2.0, 1.0]).unwrap()
    }
    let moments = law().moments();
    Problem {
        name: "Gammas",
        target: || Box::new(law()),
        start: vec![1.0, 5.0],
        quantities: vec![
            Quantity { name: "x", value: |t| t[0], mean: moments[0].0, deviation: moments[0].1.sqrt() },
            Quantity { name: "y", value: |t| t[1], mean: moments[1].0, deviation: moments[1].1.sqrt() },
            // E log x = digamma(3) - log 2, Var log x = trigamma(3).
            Quantity {
                name: "log x",
                value: |t| t[0].ln(),
                mean: 0.922_784_335_098_467_1 - 2.0_f64.ln(),
                deviation: 0.394_934_066_848_226_4_f64.sqrt(),
            },
        ],
    }
}

/// The Gammas in the coordinates of the log map.
pub fn log_gammas() -> Problem {
    let mut problem = gammas();
    problem.name = "Gammas, log map";
    problem.target = || Box::new(LogMapped::new(Gammas::new(vec![3.0, 6.0], vec![2.0, 1.0]).unwrap()));
    problem.start = vec![0.0, 1.6];
    problem.quantities[0].value = |t| t[0].exp();
    problem.quantities[1].value = |t| t[1].exp();
    problem.quantities[2].value = |t| t[0];
    problem
}

/// The Gammas mirrored to all signs.
pub fn mirrored_gammas() -> Problem {
    let mut problem = gammas();
    problem.name = "Gammas, mirrored";
    problem.target = || Box::new(Mirrored::new(Gammas::new(vec![3.0, 6.0], vec![2.0, 1.0]).unwrap()));
    problem.quantities[0].value = |t| t[0].abs();
    problem.quantities[1].value = |t| t[1].abs();
    problem.quantities[2].value = |t| t[0].abs().ln();
    problem
}

pub fn funnel() -> Problem {
    Problem {
        name: "funnel",
        target: || Box::new(Funnel { scale: 1.0 }),
        start: vec![0.0, 0.5],
        quantities: vec![
            Quantity { name: "z", value: |t| t[0], mean: 0.0, deviation: 1.0 },
            Quantity { name: "z^2", value: |t| t[0] * t[0], mean: 1.0, deviation: 2.0_f64.sqrt() },
            // |x| exp(-z/2) is half normal.
            Quantity {
                name: "|x| exp(-z/2)",
                value: |t| t[1].abs() * (-0.5 * t[0]).exp(),
                mean: (2.0 / std::f64::consts::PI).sqrt(),
                deviation: (1.0 - 2.0 / std::f64::consts::PI).sqrt(),
            },
        ],
    }
}

pub fn dirichlet() -> Problem {
    fn law() -> Dirichlet {
        Dirichlet::new(vec![4.0, 1.5, 0.8])
    }
    let moments = law().moments();
    Problem {
        name: "Dirichlet",
        target: || Box::new(law()),
        start: vec![0.4, 0.3, 0.3],
        quantities: vec![
            Quantity { name: "x", value: |t| t[0], mean: moments[0].0, deviation: moments[0].1.sqrt() },
            Quantity { name: "y", value: |t| t[1], mean: moments[1].0, deviation: moments[1].1.sqrt() },
            Quantity { name: "z", value: |t| t[2], mean: moments[2].0, deviation: moments[2].1.sqrt() },
        ],
    }
}

/// Linear regression in two dimensions with 200 observations, for minibatches.
pub fn regression() -> Problem {
    fn law() -> &'static LinearGaussian {
        static LAW: OnceLock<LinearGaussian> = OnceLock::new();
        LAW.get_or_init(|| LinearGaussian::synthetic(2, 200, 10.0, 1.0, SeedTree::new(3)))
    }
    fn centred(theta: &[f64], row: usize) -> f64 {
        theta[row] - law().posterior().mean()[row]
    }
    let covariance = law().posterior().covariance();
    let quantity = |name, value, mean, deviation| Quantity { name, value, mean, deviation };
    let (a, c) = (covariance[0], covariance[3]);
    Problem {
        name: "regression",
        target: || Box::new(law().clone()),
        start: vec![0.0, 0.0],
        quantities: vec![
            quantity("x", |t| centred(t, 0), 0.0, a.sqrt()),
            quantity("y", |t| centred(t, 1), 0.0, c.sqrt()),
            quantity("var x", |t| centred(t, 0).powi(2), a, 2.0_f64.sqrt() * a),
            quantity("var y", |t| centred(t, 1).powi(2), c, 2.0_f64.sqrt() * c),
        ],
    }
}

/// A sampler by its trait.
pub fn boxed<S: Sampler<f64> + 'static>(sampler: Result<S, SamplerError>) -> Box<dyn Sampler<f64>> {
    Box::new(sampler.unwrap())
}

pub fn constant(step: f64) -> GradientSettings {
    GradientSettings { step_size: StepSize::Constant(step), ..GradientSettings::default() }
}

/// Variances 1 and 1/1000 along axes turned by half a right angle.
pub fn narrow() -> Gaussian {
    Gaussian::new(vec![0.0; 2], vec![500.5, -499.5, -499.5, 500.5]).unwrap()
}
