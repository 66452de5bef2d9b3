//! Strongly correlated Gaussians `N(0, 11' + 4 I)`: `quasi-newton-hmc` Figure 1 and Table 1 (100 dimensions) and
//! `quasi-newton-mcmc` Figure 2 (1000 dimensions).

mod shared;

use std::time::Instant;

use alphamf_samplers::diagnostics::{autocorrelation, effective_size_to_lag};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::Gaussian;
use alphamf_samplers::*;
use shared::{Outcome, Report, check_options, plot, row};

/// Draws of `1'theta / sqrt(d)` per chain of the sampler, potentials during burn-in, seconds, acceptance.
struct Run {
    projections: Vec<Vec<f64>>,
    potentials: Vec<f64>,
    seconds: f64,
    acceptance: f64,
}

fn run(
    dimension: usize,
    sampler: &mut dyn Sampler<f64>,
    start: f64,
    burn_in: usize,
    draws: usize,
) -> Result<Run, SamplerError> {
    let mut target = Gaussian::equicorrelated(dimension, 4.0, 1.0);
    let mut projections = vec![Vec::new(); sampler.chains()];
    let chains = projections.len();
    let mut potentials = Vec::new();
    let mut chain = Chain::new(
        &mut target,
        sampler,
        (0..dimension).map(|i| if i % 2 == 0 { start } else { -start }).collect(),
    )?;
    let clock = Instant::now();
    chain.run(burn_in, |draw| potentials.push(draw.step.potential.unwrap_or(f64::NAN)));
    chain.run(draws, |draw| {
        let sum: f64 = draw.theta.iter().sum();
        projections[draw.index % chains].push(sum / (dimension as f64).sqrt());
    });
    Ok(Run {
        projections,
        potentials,
        seconds: clock.elapsed().as_secs_f64(),
        acceptance: chain.statistics().acceptance(),
    })
}

/// Computes the paper's effective size, summed over the chains of an ensemble.
fn effective(run: &Run) -> f64 {
    run.projections.iter().map(|chain| effective_size_to_lag(chain, 500)).sum()
}

fn main() -> Outcome {
    check_options(&[])?;
    let mut report = Report::new("correlated_gaussian", "Correlated Gaussians N(0, 11' + 4 I)");
    let hmc = |step_size, leaps| HmcSettings { step_size, leaps, jitter: 0.0, ..HmcSettings::default() };
    let streams = SeedTree::new(1);
    let d = 100;
    let (burn_in, draws) = (50_000, 50_000);
    let qnhmc = |step, memory| QnhmcSettings {
        hmc: hmc(step, 10),
        memory,
        adapt_after_burn_in: true,
        ..QnhmcSettings::default()
    };
    let bfgs =
        |step| HmcBfgsSettings { hmc: hmc(step, 10), ensemble: 5, initial_scale: InitialScale::Fixed(1.0) };
    let rows: Vec<(&str, Box<dyn Sampler<f64>>, &str)> = vec![
        ("HMC, step 0.01", Box::new(Hmc::new(d, 1, hmc(0.01, 10), streams)?), "253"),
        ("HMC-BFGS, K = 5, step 0.01", Box::new(HmcBfgs::new(d, 1, bfgs(0.01), streams)?), "497"),
        ("QNHMC, memory 7, step 0.01", Box::new(Qnhmc::new(d, 1, qnhmc(0.01, 7), streams)?), "7936"),
        ("QNHMC, memory 30, step 0.01", Box::new(Qnhmc::new(d, 1, qnhmc(0.01, 30), streams)?), "7936"),
        ("HMC, step 0.5", Box::new(Hmc::new(d, 1, hmc(0.5, 10), streams)?), ""),
        ("HMC-BFGS, step 0.5", Box::new(HmcBfgs::new(d, 1, bfgs(0.5), streams)?), ""),
    ];
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for (name, mut sampler, paper) in rows {
        let result = run(d, &mut *sampler, 20.0, burn_in, draws)?;
        let size = effective(&result);
        let pooled = &result.projections[0];
        let sum: f64 = autocorrelation(pooled).iter().skip(1).take(500).sum();
        // Steps until the potential first reaches its stationary mean, d / 2.
        let reached =
            result.potentials.iter().position(|&u| u < 0.5 * d as f64).map_or(f64::NAN, |t| t as f64);
        let mut cells = row(name, &[size, size / result.seconds * 2.0, sum, reached, result.acceptance]);
        cells.push(paper.to_owned());
        table.push(cells);
        if name.contains("0.01") {
            let shown = result.potentials.iter().take(20_000).enumerate().step_by(20);
            curves.push((name.to_owned(), shown.map(|(t, &u)| (t as f64, u.max(1.0).log10())).collect()));
        }
    }
    report.say(&format!(
        "## d = {d}\n\nTen leapfrog steps, {burn_in} steps of burn-in from (20, -20, 20, ...), {draws} draws projected on the \
         direction of the largest eigenvalue; effective size with lags to 500, summed over the chains of an ensemble. \
         QNHMC learns throughout, as in the paper."
    ));
    let head = [
        "sampler",
        "ESS",
        "ESS/s",
        "sum of autocorrelations",
        "steps to reach d/2",
        "acceptance",
        "ESS in the paper",
    ];
    report.table(&head, &table);
    plot("correlated_gaussian_burn_in", "Burn-in, d = 100", ["step", "log10 potential"], &curves)?;

    let d = 1000;
    let mut curves = Vec::new();
    let mut table = Vec::new();
    for step in [0.1, 0.4] {
        let samplers: [(String, Box<dyn Sampler<f64>>); 2] = [
            (format!("HMC, step {step}"), Box::new(Hmc::new(d, 1, hmc(step, 10), streams)?)),
            (format!("HMC-BFGS, K = 5, step {step}"), Box::new(HmcBfgs::new(d, 1, bfgs(step), streams)?)),
        ];
        for (name, mut sampler) in samplers {
            let chains = sampler.chains();
            let result = run(d, &mut *sampler, 2.0, 1000 * chains, 4000 * chains)?;
            let mut correlation = vec![0.0; 201];
            for chain in &result.projections {
                let of_chain = autocorrelation(chain);
                correlation.iter_mut().zip(of_chain).for_each(|(sum, value)| *sum += value / chains as f64);
            }
            table.push(row(
                &name,
                &[correlation[1], correlation[10], correlation[50], result.acceptance, result.seconds],
            ));
            curves.push((
                name,
                correlation.iter().enumerate().map(|(lag, &value)| (lag as f64, value)).collect(),
            ));
        }
    }
    report.say("## d = 1000\n\nAutocorrelation along the direction of the largest eigenvalue, 4000 draws per chain, lags within a chain.");
    report.table(&["sampler", "lag 1", "lag 10", "lag 50", "acceptance", "seconds"], &table);
    plot("correlated_gaussian_acf", "Autocorrelation, d = 1000", ["lag", "autocorrelation"], &curves)?;
    report.save()
}
