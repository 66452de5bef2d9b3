//! Robust regression with Student-t noise, `newtonian` section 4.1 and Table 2: 20,000 observations, half of them
//! held out, 40 slopes.

mod shared;

use std::time::Instant;

use alphamf_samplers::random::Streams;
use alphamf_samplers::targets::RobustRegression;
use alphamf_samplers::*;
use shared::{Outcome, Report, convergence, plot, row};

const SLOPES: usize = 40;
const HALF: usize = 10_000;
const DRAWS: usize = 300;
/// Steps in which Newtonian Monte Carlo takes every step downhill.
const BURN_IN: usize = 30;

fn main() -> Outcome {
    let mut stream = Streams::new(5).stream(0);
    let mut normal = || f64::normal(&mut stream);
    let (nu, sigma, alpha) = (4_u32, 1.0, 3.0);
    let slopes: Vec<f64> = (0..SLOPES).map(|_| 2.5 * normal()).collect();
    let (mut regressors, mut observations) = (Vec::new(), Vec::new());
    for _ in 0..2 * HALF {
        let start = regressors.len();
        regressors.extend((0..SLOPES).map(|_| 10.0 * normal()));
        let mean: f64 = alpha + regressors[start..].iter().zip(&slopes).map(|(x, b)| x * b).sum::<f64>();
        // Student-t: a normal over the root of a chi-squared divided by its degrees of freedom.
        let chi: f64 = (0..nu).map(|_| normal().powi(2)).sum();
        observations.push(mean + sigma * normal() / (chi / f64::from(nu)).sqrt());
    }
    let split = HALF * SLOPES;
    let target = RobustRegression::new(&regressors[..split], observations[..HALF].to_vec(), SLOPES);
    let target = target.ok_or("sizes do not fit")?;
    let dimension = SLOPES + 3;
    let mut start = vec![0.0; dimension];
    (start[0], start[1]) = (10.0, 10.0);
    let held_out =
        |theta: &[f64]| RobustRegression::log_likelihood(&regressors[split..], &observations[HALF..], theta);

    let streams = Streams::new(1);
    let hmc = HmcSettings { step_size: 1e-3, leaps: 10, ..HmcSettings::default() };
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for method in 0..2 {
        let (name, paper, draws) = match method {
            0 => ("Newtonian Monte Carlo", "8 samples, 68 s per 1000", DRAWS),
            _ => ("HMC on log nu, log sigma; 10 leaps", "407 samples, 39 s per 1000 (NUTS)", 6 * DRAWS),
        };
        let (mut likelihoods, mut last) = (Vec::new(), Vec::new());
        let clock = Instant::now();
        let acceptance = if method == 0 {
            let (mut target, mut sampler) = (target.clone(), Newtonian::new(dimension, 1, streams)?);
            let mut chain = Chain::new(&mut target, &mut sampler, start.clone())?;
            chain.adapt(true);
            chain.run(BURN_IN, |draw| likelihoods.push(held_out(draw.theta)));
            chain.adapt(false);
            chain.run(draws - BURN_IN, |draw| likelihoods.push(held_out(draw.theta)));
            last.extend_from_slice(chain.state());
            chain.statistics().acceptance()
        } else {
            let (mut target, mut sampler) =
                (LogMapped::rows(target.clone(), 0..2), Hmc::new(dimension, 1, hmc, streams)?);
            let logs = |theta: &[f64]| [&[theta[0].exp(), theta[1].exp()], &theta[2..]].concat();
            let mapped = [&[start[0].ln(), start[1].ln()], &start[2..]].concat();
            let mut chain = Chain::new(&mut target, &mut sampler, mapped)?;
            // A tuned step is what the comparison is about.
            chain.adapt(true);
            chain.run(draws / 2, |draw| likelihoods.push(held_out(&logs(draw.theta))));
            chain.adapt(false);
            chain.run(draws - draws / 2, |draw| likelihoods.push(held_out(&logs(draw.theta))));
            last = logs(chain.state());
            chain.statistics().acceptance()
        };
        let seconds = clock.elapsed().as_secs_f64() * 1000.0 / draws as f64;
        let (settled, converged) = convergence(&likelihoods);
        let cells = [settled, converged as f64, seconds, acceptance, last[0], last[1], last[2]];
        table.push(row(name, &cells).into_iter().chain([paper.to_owned()]).collect());
        let shown = likelihoods.iter().take(DRAWS).enumerate();
        curves.push((name.to_owned(), shown.map(|(t, &value)| (t as f64, value)).collect()));
    }
    let mut report = Report::new("robust_regression", "Robust regression");
    report.say(&format!(
        "nu = {nu}, sigma = {sigma}, alpha = {alpha}; {HALF} observations, as many held out, {SLOPES} slopes; from nu = \
         sigma = 10 and zero coefficients; Newtonian Monte Carlo takes every downhill step among its first {BURN_IN}, HMC \
         adapts its step in its first half. Converged: the held-out log-likelihood stays within one percent of \
         its final value."
    ));
    let head = [
        "sampler",
        "held-out log-likelihood",
        "samples to convergence",
        "seconds per 1000",
        "acceptance",
        "last nu",
        "last sigma",
        "last alpha",
        "paper",
    ];
    report.table(&head, &table);
    plot("robust_regression", "Held-out log-likelihood", ["sample", "nats per observation"], &curves)?;
    report.save()
}
