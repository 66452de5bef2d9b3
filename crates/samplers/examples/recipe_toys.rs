//! The synthetic experiments of `complete-recipe` section 4.1 (Figure 2): Kullback-Leibler divergence of SGLD,
//! SGHMC and naive and correct gSGRHMC on one and two peaks, and of three of them on a banana against the
//! number of steps.

mod shared;
#[path = "shared/with_metric.rs"]
mod with_metric;

use alphamf_samplers::diagnostics::{Histogram, mean_and_variance};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::{Banana, Quartic};
use alphamf_samplers::*;
use shared::{Outcome, Report, check_options, plot, row};
use with_metric::WithMetric;

const RUNS: u64 = 5;
const STEPS: usize = 200_000;

fn constant(step: f64) -> GradientSettings {
    GradientSettings { step_size: StepSize::Constant(step), ..GradientSettings::default() }
}

fn sampler(name: &str, dimension: usize, seed: u64) -> Result<Box<dyn Sampler<f64>>, SamplerError> {
    let streams = SeedTree::new(seed);
    Ok(match (name, dimension) {
        ("SGLD", 1) => Box::new(Sgld::new(1, 1, constant(0.02), streams)?),
        ("SGLD", _) => Box::new(Sgld::new(2, 1, constant(0.01), streams)?),
        ("SGHMC", _) => {
            let settings = SghmcSettings { gradient: constant(0.1), ..SghmcSettings::default() };
            Box::new(Sghmc::new(dimension, 1, settings, streams)?)
        }
        (_, 1) => Box::new(Sgrhmc::new(1, 1, constant(0.03), streams)?),
        _ => Box::new(Sgrhmc::new(2, 1, constant(0.03), streams)?),
    })
}

/// The metric of the quartic without its divergence: the naive version, eq. 16.
struct Naive(Quartic);

impl Metric<f64> for Naive {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        Metric::metric(&mut self.0, theta, metric);
    }

    fn divergence(&mut self, _: &[f64], _: bool, divergence: &mut [f64]) -> bool {
        divergence.fill(0.0);
        true
    }
}

/// Computes the mean over runs and its standard error.
fn mean_and_error(values: &[f64]) -> [f64; 2] {
    let (mean, variance) = mean_and_variance(values);
    [mean, (variance / values.len() as f64).sqrt()]
}

/// Measures the KL divergence on a 2-D grid at the given numbers of steps.
fn banana(name: &str, checkpoints: &[usize], seed: u64) -> Result<Vec<f64>, SamplerError> {
    const CELLS: usize = 30;
    let cell = |x: f64, low: f64, high: f64| {
        let position = (x - low) / (high - low) * CELLS as f64;
        (position >= 0.0 && position < CELLS as f64).then_some(position as usize)
    };
    let ((x_low, x_high), (y_low, y_high)) = ((-4.0, 4.0), (-2.5, 3.0));
    // The exact mass of each cell by a 9 x 9 midpoint rule.
    let mut mass = vec![0.0; CELLS * CELLS];
    for i in 0..9 * CELLS {
        for j in 0..9 * CELLS {
            let at =
                |k: usize, low: f64, high: f64| low + (high - low) * (k as f64 + 0.5) / (9 * CELLS) as f64;
            let mut potential = [0.0];
            Banana.potential(&[at(i, x_low, x_high), at(j, y_low, y_high)], &mut potential);
            mass[i / 9 * CELLS + j / 9] += (-potential[0]).exp();
        }
    }
    let total: f64 = mass.iter().sum();
    let mut sampler = sampler(name, 2, seed)?;
    let (mut target, mut counts, mut found) = (Banana, vec![0.0; CELLS * CELLS], Vec::new());
    let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.0, -1.0])?;
    let mut next = checkpoints.iter().copied().peekable();
    let last = checkpoints.last().copied().unwrap_or(0);
    chain.run(last, |draw| {
        if let (Some(i), Some(j)) = (cell(draw.theta[0], x_low, x_high), cell(draw.theta[1], y_low, y_high)) {
            counts[i * CELLS + j] += 1.0;
        }
        if next.peek() == Some(&(draw.index + 1)) {
            next.next();
            let draws = (draw.index + 1) as f64;
            let cells = counts.iter().zip(&mass).filter(|(count, _)| **count > 0.0);
            found.push(cells.map(|(count, mass)| count / draws * (count / draws * total / mass).ln()).sum());
        }
    });
    Ok(found)
}

fn main() -> Outcome {
    check_options(&[])?;
    let mut report = Report::new("recipe_toys", "Toys of the complete recipe");
    report.say(&format!(
        "KL(draws || target) in nats on [-3, 3] in 60 cells after {STEPS} steps; mean and standard error of {RUNS} runs. \
         Exact gradients; G^-1 = 1.5 sqrt(U - min U + 1/2)."
    ));
    let peaks =
        [("one peak, x^2/2", Quartic::new(0.0, 0.5)), ("two peaks, x^4 - 2 x^2", Quartic::new(1.0, -2.0))];
    let mut table = Vec::new();
    for name in ["SGLD", "SGHMC", "naive gSGRHMC", "gSGRHMC"] {
        let mut cells = Vec::new();
        for (_, law) in &peaks {
            let mut divergences = Vec::new();
            for seed in 0..RUNS {
                let mut sampler = sampler(name, 1, seed)?;
                let mut target: Box<dyn Target<f64>> = match name {
                    "naive gSGRHMC" => Box::new(WithMetric { law: law.clone(), metric: Naive(law.clone()) }),
                    _ => Box::new(law.clone()),
                };
                let mut chain = Chain::new(&mut *target, &mut *sampler, vec![0.5])?;
                chain.burn_in(1000);
                let mut histogram = Histogram::new(-3.0, 3.0, 60);
                chain.run(STEPS, |draw| histogram.add(draw.theta[0]));
                divergences.push(histogram.divergence(|x| law.value(x)));
            }
            cells.extend(mean_and_error(&divergences));
        }
        table.push(row(name, &cells));
    }
    report.table(&["sampler", peaks[0].0, "+-", peaks[1].0, "+-"], &table);

    let checkpoints: Vec<usize> = (0..9).map(|k| 200 * 3_usize.pow(k)).filter(|&t| t <= 500_000).collect();
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for name in ["SGLD", "SGHMC", "gSGRHMC"] {
        let runs: Vec<Vec<f64>> =
            (0..RUNS).map(|seed| banana(name, &checkpoints, seed)).collect::<Result<_, _>>()?;
        let means: Vec<f64> = (0..checkpoints.len())
            .map(|k| runs.iter().map(|run| run[k]).sum::<f64>() / RUNS as f64)
            .collect();
        table.push(row(name, &means));
        let points = checkpoints.iter().zip(&means).map(|(&t, &kl)| ((t as f64).log10(), kl)).collect();
        curves.push((name.to_owned(), points));
    }
    report.say("## Banana\n\nKL on a grid of 30 x 30 cells against the number of steps, mean of the runs.");
    let head: Vec<String> = checkpoints.iter().map(|t| format!("{t} steps")).collect();
    let head: Vec<&str> = std::iter::once("sampler").chain(head.iter().map(String::as_str)).collect();
    report.table(&head, &table);
    plot("recipe_toys_banana", "Banana", ["log10 steps", "KL divergence (nats)"], &curves)?;
    report.save()
}
