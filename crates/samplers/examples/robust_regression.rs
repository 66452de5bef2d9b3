//! Robust regression with Student-t noise, `newtonian` section 4.1 and Table 2: 40 slopes, Newtonian Monte Carlo
//! compared with NUTS.
//!
//! `--rows N` is the number of observations, default 10,000 (the paper holds out half of 20,000). `--draws N` limits
//! the samples to fewer than the paper's 1000, `--passes N` limits the passes of NUTS over the data instead.

#[path = "shared/counted.rs"]
mod counted;
mod shared;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::RobustRegression;
use alphamf_samplers::*;
use counted::Counted;
use shared::{Outcome, Report, check_options, number_option, plot, reached, row, settled};

const SLOPES: usize = 40;
const HELD_OUT: usize = 10_000;

fn main() -> Outcome {
    check_options(&["--rows", "--draws", "--passes"])?;
    let terms = number_option("--rows", 10_000)?;
    let draws = number_option("--draws", 1000)?;
    let passes = number_option("--passes", usize::MAX)?;
    let mut stream = SeedTree::new(5).rng(0);
    let mut normal = || f64::normal(&mut stream);
    let (nu, sigma, alpha) = (4_u32, 1.0, 3.0);
    let slopes: Vec<f64> = (0..SLOPES).map(|_| 2.5 * normal()).collect();
    let (mut regressors, mut observations) = (Vec::new(), Vec::new());
    for _ in 0..terms + HELD_OUT {
        let start = regressors.len();
        regressors.extend((0..SLOPES).map(|_| 10.0 * normal()));
        let mean: f64 = alpha + regressors[start..].iter().zip(&slopes).map(|(x, b)| x * b).sum::<f64>();
        // Student-t: a normal variate divided by the square root of chi-squared / degrees of freedom.
        let chi: f64 = (0..nu).map(|_| normal().powi(2)).sum();
        observations.push(mean + sigma * normal() / (chi / f64::from(nu)).sqrt());
    }
    let split = terms * SLOPES;
    let target = RobustRegression::new(&regressors[..split], observations[..terms].to_vec(), SLOPES);
    let mut target = target?;
    let dimension = SLOPES + 3;
    let mut start = vec![0.0; dimension];
    (start[0], start[1]) = (10.0, 10.0);
    let held_out =
        |theta: &[f64]| RobustRegression::log_likelihood(&regressors[split..], &observations[terms..], theta);
    let logs = |theta: &[f64]| [&[theta[0].exp(), theta[1].exp()], &theta[2..]].concat();

    let streams = SeedTree::new(1);
    let mut runs = Vec::new();
    for is_newtonian in [true, false] {
        let (mut trace, mut last) = (Vec::new(), Vec::new());
        let clock = Instant::now();
        let (name, used) = if is_newtonian {
            let mut sampler = Newtonian::new(dimension, 1, streams)?;
            let mut chain = Chain::new(&mut target, &mut sampler, start.clone())?;
            chain.adapt(true);
            chain.run(draws / 2, |draw| trace.push(held_out(draw.theta)));
            chain.adapt(false);
            chain.run(draws - trace.len(), |draw| trace.push(held_out(draw.theta)));
            last.extend_from_slice(chain.state());
            // Eight passes per sample: four sites are expanded before and after their move.
            ("Newtonian Monte Carlo", 8 * trace.len())
        } else {
            let settings = NutsSettings { step_size: 0.1 / (terms as f64).sqrt(), ..NutsSettings::default() };
            let mut sampler = Nuts::new(dimension, 1, settings, streams)?;
            let mapped = [&[start[0].ln(), start[1].ln()], &start[2..]].concat();
            let count = Rc::new(Cell::new(0));
            let counted = Counted { inner: LogMapped::rows(&mut target, 0..2), count: count.clone() };
            let mut chain = Chain::new(counted, &mut sampler, mapped)?;
            count.set(0);
            let most = if passes == usize::MAX { draws } else { usize::MAX };
            while trace.len() < most && count.get() < passes {
                chain.adapt(trace.len() < most / 2 && count.get() < passes / 2);
                chain.run(1, |draw| trace.push(held_out(&logs(draw.theta))));
            }
            last = logs(chain.state());
            ("NUTS on log nu, log sigma", count.get())
        };
        let seconds = clock.elapsed().as_secs_f64() * 1000.0 / trace.len() as f64;
        runs.push((name, trace, used, seconds, last));
    }
    let best = runs.iter().map(|(_, trace, ..)| settled(trace)).fold(f64::NEG_INFINITY, f64::max);
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for (name, trace, used, seconds, last) in runs {
        let per_sample = used as f64 / trace.len() as f64;
        let mut cells =
            row(name, &[settled(&trace), 0.0, 0.0, per_sample, seconds, last[0], last[1], last[2]]);
        let samples = reached(&trace, best);
        cells[2] = if samples > trace.len() { "none".into() } else { samples.to_string() };
        cells[3] = trace.len().to_string();
        table.push(cells);
        curves.push((name.to_owned(), trace.iter().enumerate().map(|(t, &l)| ((t + 1) as f64, l)).collect()));
    }
    let page = format!("robust_regression_{terms}");
    let mut report =
        Report::new("robust_regression", &format!("Robust regression, {terms} observations")).on(&page);
    report.say(&format!(
        "`--rows {terms} --draws {draws}`{}: nu = {nu}, sigma = {sigma}, alpha = {alpha}; {terms} observations that the \
         posterior is of, {HELD_OUT} others held out, {SLOPES} slopes; from nu = sigma = 10 and zero coefficients. Newtonian \
         Monte Carlo takes every step far downhill, and NUTS adapts its step, in the first half of what it is allowed. Converged: \
         the held-out log-likelihood stays within one percent of the better final value of the two. A pass reads every \
         observation.",
        if passes < usize::MAX { format!(" `--passes {passes}`") } else { String::new() }
    ));
    let head = [
        "sampler",
        "held-out log-likelihood",
        "samples to convergence",
        "samples",
        "passes per sample",
        "seconds per 1000",
        "last nu",
        "last sigma",
        "last alpha",
    ];
    report.table(&head, &table);
    plot(&page, "Held-out log-likelihood", ["sample", "nats per observation"], &curves)?;
    report.save()
}
