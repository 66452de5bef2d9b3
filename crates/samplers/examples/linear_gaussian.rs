//! The linear Gaussian model of `hamcmc-2016` section 4.1 and its Figures 1 and 2: the error of the posterior
//! mean against iterations and time, in 2, 10 and 100 dimensions, with gradients on one percent of the data.

#[path = "shared/curvature.rs"]
mod curvature;
mod shared;

use std::time::Instant;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::LinearGaussian;
use alphamf_samplers::*;
use curvature::largest_curvature;
use shared::{Outcome, Report, check_options, plot, row};

const STEPS: usize = 20 << 10;
const POWER: f64 = 0.51;

#[derive(Clone, Copy)]
enum Method {
    Sgld,
    Psgld,
    Sgrld,
    Hamcmc(usize),
}

impl Method {
    const ALL: [(Self, &str); 5] = [
        (Self::Sgld, "SGLD"),
        (Self::Psgld, "PSGLD"),
        (Self::Sgrld, "SGRLD"),
        (Self::Hamcmc(2), "HAMCMC, M = 2"),
        (Self::Hamcmc(3), "HAMCMC, M = 3"),
    ];

    /// Builds a sampler with step sizes `first * t^-0.51`; `curvature` is the largest eigenvalue of the Hessian.
    fn build(self, model: &LinearGaussian, first: f64, curvature: f64, seed: u64) -> Box<dyn Sampler<f64>> {
        let dimension = Target::<f64>::dimension(model);
        let terms = Target::<f64>::terms(model);
        let scaled = match self {
            Self::Sgld | Self::Psgld => first / curvature,
            _ => first,
        };
        let gradient = GradientSettings {
            step_size: StepSize::Decreasing { scale: scaled.powf(1.0 / POWER), power: POWER },
            minibatch: Some(terms / 100),
            ..GradientSettings::default()
        };
        let streams = SeedTree::new(seed);
        let sampler: Result<Box<dyn Sampler<f64>>, SamplerError> = match self {
            Self::Sgld => Sgld::new(dimension, 1, gradient, streams).map(|s| Box::new(s) as _),
            Self::Psgld => {
                let settings = PsgldSettings { gradient, ..PsgldSettings::default() };
                Psgld::new(dimension, 1, settings, streams).map(|s| Box::new(s) as _)
            }
            Self::Sgrld => Sgrld::new(dimension, 1, gradient, streams).map(|s| Box::new(s) as _),
            Self::Hamcmc(memory) => {
                let settings = HamcmcSettings {
                    gradient,
                    memory,
                    initial_scale: InitialScale::Fixed(1.0 / curvature),
                    refresh_interval: 1,
                    trust_region: 1.0,
                };
                Hamcmc::new(dimension, 1, settings, streams).map(|s| Box::new(s) as _)
            }
        };
        sampler.expect("settings within their ranges")
    }
}

/// Returns the number of steps `20 * 2^k`, the squared error of the step-weighted mean of the second half of the draws,
/// and seconds.
fn errors(model: &LinearGaussian, sampler: &mut dyn Sampler<f64>, steps: usize) -> Vec<(usize, f64, f64)> {
    let exact = model.posterior().mean().to_vec();
    let mut model = model.clone();
    let (mut sums, mut weight) = (vec![0.0; exact.len()], 0.0);
    let mut half = (vec![0.0; exact.len()], 0.0);
    let mut theta = vec![0.0; exact.len()];
    let mut found = Vec::new();
    let (clock, mut next) = (Instant::now(), 20);
    for t in 1..=steps {
        let step = sampler.step(&mut model, &mut theta);
        weight += step.step_size;
        sums.iter_mut().zip(&theta).for_each(|(sum, theta)| *sum += step.step_size * theta);
        if t == next {
            let kept = weight - half.1;
            let mean = sums.iter().zip(&half.0).map(|(sum, half)| (sum - half) / kept);
            let error = mean.zip(&exact).map(|(mean, exact)| (mean - exact).powi(2)).sum();
            found.push((t, error, clock.elapsed().as_secs_f64()));
            half = (sums.clone(), weight);
            next *= 2;
        }
    }
    found
}

fn main() -> Outcome {
    check_options(&[])?;
    let mut report = Report::new("linear_gaussian", "Linear Gaussian model: error of the posterior mean");
    report.say(
        "Model of hamcmc section 4.1: noise variance 10, 1000 observations (2000 in 100 dimensions) with correlated \
         regressors, one percent of them per gradient, steps falling as t^-0.51. The first step of each method is the \
         best of nine (half decades) on a pilot of 2560 steps. Mean of the squared error over five data sets (three in 100 dimensions), of the \
         step-weighted average of the second half of the draws.",
    );
    for dimension in [2, 10, 100] {
        let runs: u64 = if dimension == 100 { 3 } else { 5 };
        let terms = if dimension == 100 { 2000 } else { 1000 };
        let models: Vec<LinearGaussian> = (0..runs)
            .map(|seed| LinearGaussian::synthetic(dimension, terms, 10.0, 1.0, SeedTree::new(seed)))
            .collect();
        let curvatures: Vec<f64> = models.iter().map(|model| largest_curvature(model.posterior())).collect();
        let (mut table, mut by_step, mut by_time) = (Vec::new(), Vec::new(), Vec::new());
        for (method, name) in Method::ALL {
            let average = |first: f64, steps: usize, runs: usize| -> Vec<(usize, f64, f64)> {
                let all: Vec<_> = (0..runs)
                    .map(|run| {
                        let (model, seed) = (&models[run], 100 + run as u64);
                        errors(model, &mut *method.build(model, first, curvatures[run], seed), steps)
                    })
                    .collect();
                let count = runs as f64;
                (0..all[0].len())
                    .map(|k| {
                        let mean = |of: fn(&(usize, f64, f64)) -> f64| {
                            all.iter().map(|run| of(&run[k])).sum::<f64>() / count
                        };
                        (all[0][k].0, mean(|p| p.1), mean(|p| p.2))
                    })
                    .collect()
            };
            let grid: Vec<f64> = (0..9).map(|k| 10.0_f64.powf(-2.5 + 0.5 * f64::from(k))).collect();
            // The sum of the errors after 640 and 2560 steps, so that a step size that diverges at first is not chosen.
            let score = |first: f64| {
                let error: f64 = average(first, 2560, 2).iter().rev().step_by(2).take(2).map(|p| p.1).sum();
                if error.is_nan() { f64::INFINITY } else { error }
            };
            let best = grid.into_iter().map(|first| (score(first), first)).min_by(|a, b| a.0.total_cmp(&b.0));
            let first = best.map_or(0.1, |(_, first)| first);
            let points = average(first, STEPS, models.len());
            let at = |steps: usize| points.iter().find(|p| p.0 == steps).map_or(f64::NAN, |p| p.1);
            let time = points.last().map_or(f64::NAN, |p| p.2);
            table.push(row(name, &[first, at(320), at(2560), at(STEPS), time]));
            by_step.push((
                name.to_owned(),
                points.iter().map(|p| ((p.0 as f64).log10(), p.1.log10())).collect(),
            ));
            by_time.push((name.to_owned(), points.iter().map(|p| (p.2.log10(), p.1.log10())).collect()));
        }
        report.say(&format!("## D = {dimension}"));
        let head = ["method", "first step", "error after 320", "2560", "20480 steps", "seconds for 20480"];
        report.table(&head, &table);
        let title = format!("Linear Gaussian model, D = {dimension}");
        let error = "log10 squared error of the mean";
        plot(&format!("linear_gaussian_{dimension}_steps"), &title, ["log10 steps", error], &by_step)?;
        plot(&format!("linear_gaussian_{dimension}_time"), &title, ["log10 seconds", error], &by_time)?;
    }
    report.save()
}
