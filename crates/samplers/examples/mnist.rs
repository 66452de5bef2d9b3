//! Bayesian logistic regression on MNIST, 7 against 9: `quasi-newton-hmc` Table 2.
//!
//! `--data DIR` names the folder that holds `mnist7v9`.

mod shared;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::diagnostics::effective_size_mean;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::LogisticRegression;
use alphamf_samplers::*;
use shared::{Outcome, Report, check_options, option, plot, read_gzip, row};

type Labelled = (Vec<f64>, Vec<bool>);

/// Reads images, scaled to [0, 1] after a one, and labels: whether each is a nine.
fn read_mnist(folder: &Path, part: &str) -> Result<Labelled, Box<dyn Error>> {
    let images = read_gzip(&folder.join(format!("{part}-images.idx3.gz")))?;
    let labels = read_gzip(&folder.join(format!("{part}-labels.idx1.gz")))?;
    let pixels = images[16..].chunks_exact(28 * 28);
    let regressors =
        pixels.flat_map(|image| std::iter::once(1.0).chain(image.iter().map(|&p| f64::from(p) / 255.0)));
    Ok((regressors.collect(), labels[8..].iter().map(|&label| label == 1).collect()))
}

/// Step size of gradient descent, below twice the inverse of the largest curvature, which occurs at zero.
const DESCENT: f64 = 1e-5;

/// Computes the fraction of misclassified images from the probabilities that each is a nine.
fn error(nines: &[f64], truth: &[bool]) -> f64 {
    let wrong = nines.iter().zip(truth).filter(|(nine, truth)| (**nine > 0.5) != **truth);
    wrong.count() as f64 / truth.len() as f64
}

/// Adds the probability that each image of `test` is a nine, times `weight`, to `nines`.
fn classify(theta: &[f64], test: &[f64], weight: f64, nines: &mut [f64]) {
    for (nine, image) in nines.iter_mut().zip(test.chunks_exact(theta.len())) {
        let activation: f64 = image.iter().zip(theta).map(|(x, t)| x * t).sum();
        *nine += weight / (1.0 + (-activation).exp());
    }
}

fn main() -> Outcome {
    check_options(&["--data"])?;
    const DRAWS: usize = 100;
    /// Steps between checks for the end of burn-in. It ends when the mean of the potential over the last quarter is
    /// less than [`FLAT`] below the mean over the quarter before.
    const WINDOW: usize = 50;
    const FLAT: f64 = 5.0;
    const MAX_TRACE: usize = 5000;
    const DESCENTS: usize = 1000;
    let folder = option("--data").ok_or("--data must name the folder that holds mnist7v9")?.join("mnist7v9");
    let mut report = Report::new("mnist", "Bayesian logistic regression on MNIST, 7 against 9");
    let (regressors, labels) = read_mnist(&folder, "train")?;
    let (test, truth) = read_mnist(&folder, "test")?;
    let dimension = 28 * 28 + 1;
    let mut target = LogisticRegression::new(regressors, labels, &vec![1.0; dimension])?;
    let hmc = HmcSettings { step_size: 0.003, leaps: 5, ..HmcSettings::default() };
    let streams = SeedTree::new(1);
    let bfgs = HmcBfgsSettings { hmc, ensemble: 5, initial_scale: InitialScale::Pairs(1e-5) };
    let initial_scale = InitialScale::Pairs(1.0);
    let qnhmc = QnhmcSettings { hmc, initial_scale, updates: MAX_TRACE, ..QnhmcSettings::default() };
    let samplers: [(&str, Box<dyn Sampler<f64>>, &str); 3] = [
        ("HMC", Box::new(Hmc::new(dimension, 1, hmc, streams)?), "64 s, 0.286, 0.0493"),
        ("HMC-BFGS", Box::new(HmcBfgs::new(dimension, 1, bfgs, streams)?), "36 s, 0.418, 0.0501"),
        ("QNHMC", Box::new(Qnhmc::new(dimension, 1, qnhmc, streams)?), "17 s, 1.30, 0.0496"),
    ];
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for (name, mut sampler, paper) in samplers {
        let chains = sampler.chains();
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.0; dimension])?;
        let (clock, mut potentials): (_, Vec<f64>) = (Instant::now(), Vec::new());
        let mean = |potentials: &[f64]| potentials.iter().sum::<f64>() / potentials.len() as f64;
        chain.adapt(true);
        let mut is_flat = false;
        while !is_flat && potentials.len() < MAX_TRACE {
            chain.run(WINDOW, |draw| potentials.push(draw.step.potential.unwrap_or(f64::NAN)));
            let quarters: Vec<f64> = potentials.chunks_exact(potentials.len() / 4).map(mean).collect();
            is_flat = potentials.len() >= 4 * WINDOW && quarters[2] - quarters[3] < FLAT;
        }
        chain.adapt(false);
        let (burn_in, steps) = (clock.elapsed().as_secs_f64(), potentials.len());
        let (mut nines, mut series) = (vec![0.0; truth.len()], vec![vec![Vec::new(); chains]; dimension]);
        let (mut seconds, mut clock, mut accepted) = (0.0, Instant::now(), 0.0);
        chain.run(DRAWS, |draw| {
            seconds += clock.elapsed().as_secs_f64();
            potentials.push(draw.step.potential.unwrap_or(f64::NAN));
            accepted += draw.step.acceptance / DRAWS as f64;
            let row = series.iter_mut().zip(draw.theta);
            row.for_each(|(series, &theta)| series[draw.index % chains].push(theta));
            classify(draw.theta, &test, 1.0 / DRAWS as f64, &mut nines);
            clock = Instant::now();
        });
        let size =
            |chains: &Vec<Vec<f64>>| chains.iter().map(|chain| effective_size_mean(&[chain])).sum::<f64>();
        let effective = series.iter().map(size).sum::<f64>() / dimension as f64;
        let cells =
            [error(&nines, &truth), mean(&potentials[steps..]), burn_in, effective / seconds, accepted];
        let flat = if is_flat { steps.to_string() } else { format!("not flat after {steps}") };
        table.push(row(name, &cells).into_iter().chain([flat, paper.to_owned()]).collect::<Vec<String>>());
        curves.push((name.to_owned(), potentials.iter().enumerate().map(|(t, &u)| (t as f64, u)).collect()));
    }
    // The baseline: descent towards the mode from the same start.
    let (mut theta, mut gradient, mut potential) = (vec![0.0; dimension], vec![0.0; dimension], [0.0]);
    let clock = Instant::now();
    for _ in 0..DESCENTS {
        target.evaluate(&theta, &mut potential, &mut gradient);
        theta.iter_mut().zip(&gradient).for_each(|(theta, g)| *theta -= DESCENT * g);
    }
    let seconds = clock.elapsed().as_secs_f64();
    let mut nines = vec![0.0; truth.len()];
    classify(&theta, &test, 1.0, &mut nines);
    let mut cells = row("gradient descent", &[error(&nines, &truth), potential[0], seconds]);
    cells.extend(["", "", "", "0.0578"].map(str::to_owned));
    cells[6] = format!("{DESCENTS}");
    table.push(cells);
    report.say(&format!(
        "12,214 images, 784 pixels and a constant, prior variance 1, five leaps, from zero. Burn-in, \
         which adapts the step, goes on until the mean of the potential over its last quarter is less than {FLAT} below that over \
         the one before; then {DRAWS} draws. Effective sizes are the mean over the coefficients."
    ));
    let head = [
        "sampler",
        "test error",
        "mean potential of the draws",
        "seconds of burn-in",
        "ESS per second",
        "acceptance",
        "steps of burn-in",
        "paper: burn-in, ESS per second, error",
    ];
    report.table(&head, &table);
    report.say("Times are of the machine at hand; their ratios travel better.");
    plot("mnist", "MNIST 7 against 9", ["step", "potential"], &curves)?;
    report.save()
}
