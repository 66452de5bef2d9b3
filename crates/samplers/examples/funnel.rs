//! Neal's funnel, `newtonian` section 4.1 and its Figures 1 and 2: the marginal of `z` after 10,000 samples.

mod shared;

use alphamf_samplers::diagnostics::{Histogram, effective_size_bulk};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::Funnel;
use alphamf_samplers::*;
use shared::{Outcome, Report, check_options, plot, row};

const DRAWS: usize = 10_000;

fn main() -> Outcome {
    check_options(&[])?;
    let mut report = Report::new("funnel", "Neal's funnel");
    report.say(&format!(
        "z ~ N(0, 3^2), x | z ~ N(0, exp(z)); {DRAWS} draws after 1000 of burn-in, seed 1. KL of the histogram of z \
         (40 cells on [-10, 10]) from its law."
    ));
    let streams = SeedTree::new(1);
    let hmc = HmcSettings { leaps: 20, ..HmcSettings::default() };
    let bfgs = HmcBfgsSettings { hmc, initial_scale: InitialScale::Fixed(0.3), ..HmcBfgsSettings::default() };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 3] = [
        ("Newtonian Monte Carlo", Box::new(Newtonian::new(2, 1, streams)?)),
        ("HMC, 20 leaps", Box::new(Hmc::new(2, 1, hmc, streams)?)),
        ("HMC-BFGS, 20 leaps", Box::new(HmcBfgs::new(2, 1, bfgs, streams)?)),
    ];
    let exact = |z: f64| (-z * z / 18.0).exp() / (18.0 * std::f64::consts::PI).sqrt();
    let grid = || (0..40).map(|k| -9.75 + 0.5 * f64::from(k));
    let mut curves = vec![("exact".to_owned(), grid().map(|z| (z, exact(z))).collect::<Vec<_>>())];
    let mut table = Vec::new();
    for (name, mut sampler) in samplers {
        let mut target = Funnel { scale: 3.0 };
        let chains = sampler.chains();
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.0, 1.0])?;
        chain.burn_in(1000);
        let mut draws = Vec::new();
        let mut histogram = Histogram::new(-10.0, 10.0, 40);
        chain.run(DRAWS, |draw| {
            draws.push(draw.theta[0]);
            histogram.add(draw.theta[0]);
        });
        let mean = draws.iter().sum::<f64>() / DRAWS as f64;
        let deviation = (draws.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / DRAWS as f64).sqrt();
        let below = draws.iter().filter(|z| **z < -3.0).count() as f64 / DRAWS as f64;
        // Draws of an ensemble come from its chains in turn.
        let of_chain = |chain: usize| draws.iter().skip(chain).step_by(chains).copied().collect::<Vec<f64>>();
        let size = effective_size_bulk(&(0..chains).map(of_chain).collect::<Vec<_>>());
        let divergence = histogram.divergence(|z| z * z / 18.0);
        table.push(row(name, &[mean, deviation, below, divergence, size, chain.statistics().acceptance()]));
        let share = |z: f64| {
            draws.iter().filter(|draw| (**draw - z).abs() < 0.25).count() as f64 / DRAWS as f64 / 0.5
        };
        curves.push((name.to_owned(), grid().map(|z| (z, share(z))).collect()));
    }
    table.push(row("exact", &[0.0, 3.0, 0.1587, 0.0]));
    let head = ["sampler", "mean of z", "deviation of z", "P(z < -3)", "KL", "bulk ESS of z", "acceptance"];
    for row in &mut table {
        row.resize(head.len(), String::new());
    }
    report.table(&head, &table);
    plot("funnel", "Neal's funnel: marginal of z", ["z", "density"], &curves)?;
    report.save()
}
