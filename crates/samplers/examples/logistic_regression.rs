//! Bayesian logistic regression: `quasi-newton-mcmc` Tables 1 and 2 (five data sets), `quasi-newton-hmc` Table 2
//! (MNIST 7 against 9) and `newtonian` Table 1 (20,000 synthetic observations, 40 coefficients).
//!
//! `--data DIR` names the folder that holds `logreg5` and `mnist7v9`; without it the five sets are synthetic, of
//! the same sizes, and MNIST is left out.

mod shared;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::diagnostics::effective_size_mean;
use alphamf_samplers::random::Streams;
use alphamf_samplers::targets::LogisticRegression;
use alphamf_samplers::*;
use shared::{Outcome, Report, convergence, option, plot, read_gzip, row};

type Labelled = (Vec<f64>, Vec<bool>);

/// Name, file, number of coefficients and observations.
const SETS: [(&str, &str, usize, usize); 5] = [
    ("Australian", "australian.csv", 15, 690),
    ("German", "german.csv", 25, 1000),
    ("Heart", "heart.csv", 14, 270),
    ("Pima", "pima532.csv", 8, 532),
    ("Ripley", "ripley250_train.csv", 7, 250),
];

/// Standardised columns after a column of ones; the label is the last column of the file. Ripley's two inputs
/// enter with their squares and cubes, as in Girolami and Calderhead (2011).
fn read_csv(path: &Path, cubes: bool) -> Result<Labelled, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for line in text.lines() {
        let fields: Result<Vec<f64>, _> = line.split(',').map(|field| field.trim().parse()).collect();
        // A line that is not all numbers is the header.
        if let Ok(fields) = fields {
            rows.push(fields);
        }
    }
    let labels = rows.iter().map(|row| row.last().is_some_and(|label| *label > 0.5)).collect();
    let mut columns: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| {
            let inputs = &row[..row.len() - 1];
            let powers = if cubes { 3 } else { 1 };
            (1..=powers).flat_map(|power| inputs.iter().map(move |x| x.powi(power))).collect()
        })
        .collect();
    for input in 0..columns[0].len() {
        let count = columns.len() as f64;
        let mean = columns.iter().map(|x| x[input]).sum::<f64>() / count;
        let deviation = (columns.iter().map(|x| (x[input] - mean).powi(2)).sum::<f64>() / count).sqrt();
        columns.iter_mut().for_each(|x| x[input] = (x[input] - mean) / deviation);
    }
    let with_ones = columns.iter().flat_map(|x| std::iter::once(1.0).chain(x.iter().copied()));
    Ok((with_ones.collect(), labels))
}

/// Standard normal inputs (times `scale`) after a column of ones, and labels drawn from the model with
/// `N(0, deviation^2)` coefficients.
fn synthetic(dimension: usize, terms: usize, scale: f64, deviation: f64, seed: u64) -> Labelled {
    let mut stream = Streams::new(seed).stream(0);
    let truth: Vec<f64> = (0..dimension).map(|_| deviation * f64::normal(&mut stream)).collect();
    let (mut regressors, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..terms {
        let start = regressors.len();
        regressors.push(1.0);
        regressors.extend((1..dimension).map(|_| scale * f64::normal(&mut stream)));
        let activation: f64 = regressors[start..].iter().zip(&truth).map(|(x, t)| x * t).sum();
        // A logistic variable as the logit of a uniform one, itself from a normal pair.
        let (a, b) = (f64::normal(&mut stream), f64::normal(&mut stream));
        let uniform = 1.0 - (-(a * a + b * b) / 2.0).exp();
        labels.push(activation + (uniform / (1.0 - uniform)).ln() > 0.0);
    }
    (regressors, labels)
}

/// Images scaled to [0, 1] after a one, and whether each is a nine.
fn read_mnist(folder: &Path, part: &str) -> Result<Labelled, Box<dyn Error>> {
    let images = read_gzip(&folder.join(format!("{part}-images.idx3.gz")))?;
    let labels = read_gzip(&folder.join(format!("{part}-labels.idx1.gz")))?;
    let pixels = images[16..].chunks_exact(28 * 28);
    let regressors =
        pixels.flat_map(|image| std::iter::once(1.0).chain(image.iter().map(|&p| f64::from(p) / 255.0)));
    Ok((regressors.collect(), labels[8..].iter().map(|&label| label == 1).collect()))
}

/// The samplers of the five sets.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Hmc,
    HmcBfgs,
    Rmhmc,
}

impl Method {
    /// Name, sampler and what the paper's Table 1 says of it.
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Hmc, "HMC", "3312 / 3862 / 4445"),
        (Self::HmcBfgs, "HMC-BFGS", "3643 / 4541 / 4993"),
        (Self::Rmhmc, "RMHMC", "4819 / 4950 / 5000"),
    ];

    /// Runs, steps of burn-in and draws: those of RMHMC are dear.
    fn lengths(self) -> (u64, usize, usize) {
        if self == Self::Rmhmc { (1, 50, 500) } else { (2, 1000, 5000) }
    }

    fn build(self, dimension: usize, streams: Streams) -> Result<Box<dyn Sampler<f64>>, SamplerError> {
        let hmc = HmcSettings::default();
        Ok(match self {
            Self::Hmc => Box::new(Hmc::new(dimension, 1, HmcSettings { leaps: 40, ..hmc }, streams)?),
            Self::HmcBfgs => {
                let hmc = HmcSettings { leaps: 20, ..hmc };
                let (ensemble, initial_scale) = (dimension / 2 + 2, InitialScale::Pairs(0.01));
                Box::new(HmcBfgs::new(
                    dimension,
                    1,
                    HmcBfgsSettings { hmc, ensemble, initial_scale },
                    streams,
                )?)
            }
            Self::Rmhmc => {
                let hmc = HmcSettings { leaps: 6, step_size: 0.5, jitter: 0.0, ..hmc };
                Box::new(Rmhmc::new(dimension, 1, hmc, streams)?)
            }
        })
    }
}

/// Draws that effective sizes are stated for.
const STATED: usize = 5000;

/// Least, mean and largest effective size per [`STATED`] draws of a method on a set, and seconds for as many.
fn mixing(method: Method, target: &LogisticRegression, dimension: usize) -> Result<[f64; 4], Box<dyn Error>> {
    let (runs, burn_in, draws) = method.lengths();
    let mut total = [0.0; 4];
    for seed in 0..runs {
        let mut sampler = method.build(dimension, Streams::new(seed))?;
        let chains = sampler.chains();
        let mut series = vec![vec![Vec::new(); chains]; dimension];
        let mut chain = Chain::new(target.clone(), &mut *sampler, vec![0.0; dimension])?;
        // The paper's step of RMHMC is fixed.
        if method == Method::Rmhmc {
            chain.run(burn_in, |_| ());
        } else {
            chain.burn_in(burn_in);
        }
        let clock = Instant::now();
        chain.run(draws, |draw| {
            let row = series.iter_mut().zip(draw.theta);
            row.for_each(|(series, &theta)| series[draw.index % chains].push(theta));
        });
        let seconds = clock.elapsed().as_secs_f64();
        let size =
            |chains: &Vec<Vec<f64>>| chains.iter().map(|chain| effective_size_mean(&[chain])).sum::<f64>();
        let sizes: Vec<f64> = series.iter().map(|chains| size(chains).min(draws as f64)).collect();
        let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let mean = sizes.iter().sum::<f64>() / dimension as f64;
        let weight = STATED as f64 / draws as f64 / runs as f64;
        total.iter_mut().zip([smallest, mean, largest, seconds]).for_each(|(t, v)| *t += weight * v);
    }
    Ok(total)
}

fn five_sets(report: &mut Report, data: Option<&Path>) -> Outcome {
    let mut table = Vec::new();
    let mut totals = [[0.0; 4]; 3];
    for (name, file, dimension, terms) in SETS {
        let (regressors, labels) = match data {
            Some(folder) => read_csv(&folder.join("logreg5").join(file), name == "Ripley")?,
            None => synthetic(dimension, terms, 1.0, 1.0, 7),
        };
        let dimension = regressors.len() / labels.len();
        let target =
            LogisticRegression::new(regressors, labels, &vec![100.0; dimension]).ok_or("sizes do not fit")?;
        let mut rates = Vec::new();
        for ((method, ..), total) in Method::ALL.iter().zip(&mut totals) {
            let found = mixing(*method, &target, dimension)?;
            total.iter_mut().zip(found).for_each(|(total, found)| *total += found / SETS.len() as f64);
            rates.push(found[1] / found[3]);
        }
        let mut cells = row(name, &[dimension as f64, rates[0], rates[1], rates[2], rates[1] / rates[0]]);
        cells[1] = dimension.to_string();
        table.push(cells);
    }
    let source =
        if data.is_some() { "The five sets of the paper" } else { "Synthetic sets of the same sizes" };
    report.say(&format!(
        "## Five data sets\n\n{source}, standardised, prior variance 100. {STATED} draws after 1000; HMC with 40 leaps, \
         HMC-BFGS with 20 and D/2 + 2 chains; steps adapted to an acceptance of 0.8; mean of 2 runs. RMHMC with 6 leaps of \
         0.5, one run of 500 draws after 50, sizes and seconds times ten. Effective sizes per coordinate, capped at the \
         number of draws, summed over the chains of an ensemble."
    ));
    let head = ["", "minimum ESS", "mean ESS", "maximum ESS", "seconds", "paper: min / mean / max ESS"];
    let rows: Vec<Vec<String>> = Method::ALL
        .iter()
        .zip(&totals)
        .map(|((_, name, paper), total)| row(name, total).into_iter().chain([(*paper).to_owned()]).collect())
        .collect();
    report.table(&head, &rows);
    let paper =
        ["396 / 818 / 18", "255 / 397 / 3", "1054 / 2009 / 54", "591 / 1383 / 118", "1396 / 2745 / 344"];
    table.iter_mut().zip(paper).for_each(|(row, paper)| row.push(paper.to_owned()));
    let head = [
        "set",
        "D",
        "HMC ESS/s",
        "HMC-BFGS ESS/s",
        "RMHMC ESS/s",
        "HMC-BFGS over HMC",
        "paper: HMC / HMC-BFGS / RMHMC, ESS/s",
    ];
    report.table(&head, &table);
    Ok(())
}

/// The step of gradient descent: below twice the inverse of the largest curvature, which is that at zero.
const DESCENT: f64 = 1e-5;

/// The share of images that are taken for the wrong digit, by the probabilities that each is a nine.
fn error(nines: &[f64], truth: &[bool]) -> f64 {
    let wrong = nines.iter().zip(truth).filter(|(nine, truth)| (**nine > 0.5) != **truth);
    wrong.count() as f64 / truth.len() as f64
}

/// Adds to `nines` the probability that each image of `test` is one, times `weight`.
fn classify(theta: &[f64], test: &[f64], weight: f64, nines: &mut [f64]) {
    for (nine, image) in nines.iter_mut().zip(test.chunks_exact(theta.len())) {
        let activation: f64 = image.iter().zip(theta).map(|(x, t)| x * t).sum();
        *nine += weight / (1.0 + (-activation).exp());
    }
}

fn mnist(report: &mut Report, data: &Path) -> Outcome {
    const DRAWS: usize = 300;
    /// Burn-in ends where so many steps have brought the mean of the potential down by less than [`FLAT`].
    const WINDOW: usize = 50;
    const FLAT: f64 = 5.0;
    const LONGEST: usize = 1500;
    const DESCENTS: usize = 1000;
    let folder = data.join("mnist7v9");
    let (regressors, labels) = read_mnist(&folder, "train")?;
    let (test, truth) = read_mnist(&folder, "test")?;
    let dimension = 28 * 28 + 1;
    let mut target =
        LogisticRegression::new(regressors, labels, &vec![1.0; dimension]).ok_or("sizes do not fit")?;
    let hmc = HmcSettings { step_size: 0.003, leaps: 5, ..HmcSettings::default() };
    let streams = Streams::new(1);
    let bfgs = HmcBfgsSettings { hmc, ensemble: 5, initial_scale: InitialScale::Pairs(1e-5) };
    let initial_scale = InitialScale::Pairs(1.0);
    let qnhmc = QnhmcSettings { hmc, initial_scale, learning: LONGEST, ..QnhmcSettings::default() };
    let samplers: [(&str, Box<dyn Sampler<f64>>, &str); 3] = [
        ("HMC", Box::new(Hmc::new(dimension, 1, hmc, streams)?), "64 s, 0.286, 0.0493"),
        ("HMC-BFGS", Box::new(HmcBfgs::new(dimension, 1, bfgs, streams)?), "36 s, 0.418, 0.0501"),
        ("QNHMC", Box::new(Qnhmc::new(dimension, 1, qnhmc, streams)?), "17 s, 1.30, 0.0496"),
    ];
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for (name, mut sampler, paper) in samplers {
        let chains = sampler.chains();
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.0; dimension])?;
        let (clock, mut energies): (_, Vec<f64>) = (Instant::now(), Vec::new());
        let window = |energies: &[f64], back: usize| -> f64 {
            energies.iter().rev().skip(back * WINDOW).take(WINDOW).sum::<f64>() / WINDOW as f64
        };
        chain.adapt(true);
        let mut is_flat = false;
        while !is_flat && energies.len() < LONGEST {
            chain.run(WINDOW, |draw| energies.push(draw.step.energy.unwrap_or(f64::NAN)));
            is_flat = energies.len() > WINDOW && window(&energies, 1) - window(&energies, 0) < FLAT;
        }
        chain.adapt(false);
        let (burn_in, steps) = (clock.elapsed().as_secs_f64(), energies.len());
        let (mut nines, mut series) = (vec![0.0; truth.len()], vec![vec![Vec::new(); chains]; dimension]);
        let (mut seconds, mut clock, mut accepted) = (0.0, Instant::now(), 0.0);
        chain.run(DRAWS, |draw| {
            seconds += clock.elapsed().as_secs_f64();
            energies.push(draw.step.energy.unwrap_or(f64::NAN));
            accepted += draw.step.acceptance / DRAWS as f64;
            let row = series.iter_mut().zip(draw.theta);
            row.for_each(|(series, &theta)| series[draw.index % chains].push(theta));
            classify(draw.theta, &test, 1.0 / DRAWS as f64, &mut nines);
            clock = Instant::now();
        });
        let size =
            |chains: &Vec<Vec<f64>>| chains.iter().map(|chain| effective_size_mean(&[chain])).sum::<f64>();
        let mean = series.iter().map(size).sum::<f64>() / dimension as f64;
        let cells = [error(&nines, &truth), window(&energies, 0), burn_in, mean / seconds, accepted];
        let flat = if is_flat { steps.to_string() } else { format!("not flat after {steps}") };
        table.push(row(name, &cells).into_iter().chain([flat, paper.to_owned()]).collect::<Vec<String>>());
        curves.push((name.to_owned(), energies.iter().enumerate().map(|(t, &u)| (t as f64, u)).collect()));
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
        "## MNIST, 7 against 9\n\n12,214 images, 784 pixels and a constant, prior variance 1, five leaps, from zero. Burn-in, \
         which adapts the step, goes on until {WINDOW} steps bring the mean of the potential down by less than {FLAT}; then \
         {DRAWS} draws. Effective sizes are the mean over the coefficients."
    ));
    let head = [
        "sampler",
        "test error",
        "mean of the last potentials",
        "seconds of burn-in",
        "ESS per second",
        "acceptance",
        "steps of burn-in",
        "paper: burn-in, ESS per second, error",
    ];
    report.table(&head, &table);
    plot("logistic_regression_mnist", "MNIST 7 against 9", ["step", "potential"], &curves)
}

fn newtonian(report: &mut Report) -> Outcome {
    let (dimension, half) = (41, 10_000);
    let (regressors, labels) = synthetic(dimension, 2 * half, 10.0, 2.5, 3);
    let split = half * dimension;
    let variances: Vec<f64> = (0..dimension).map(|row| if row == 0 { 100.0 } else { 6.25 }).collect();
    let target = LogisticRegression::new(regressors[..split].to_vec(), labels[..half].to_vec(), &variances);
    let target = target.ok_or("sizes do not fit")?;
    let streams = Streams::new(1);
    let hmc = HmcSettings { step_size: 0.01, leaps: 10, ..HmcSettings::default() };
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for exact_curvature in [true, false] {
        let (name, draws, paper) = if exact_curvature {
            ("Newtonian Monte Carlo", 300, "1 sample, 18 s per 1000")
        } else {
            ("HMC, 10 leaps", 1000, "616 samples, 41 s per 1000 (NUTS)")
        };
        let mut sampler: Box<dyn Sampler<f64>> = if exact_curvature {
            Box::new(Newtonian::new(dimension, 1, streams)?)
        } else {
            Box::new(Hmc::new(dimension, 1, hmc, streams)?)
        };
        let mut target = target.clone();
        let mut chain = Chain::new(&mut target, &mut *sampler, vec![0.0; dimension])?;
        let clock = Instant::now();
        let mut losses = Vec::new();
        let mut observe = |draw: Draw<'_, f64>| {
            losses.push(-LogisticRegression::loss(&regressors[split..], &labels[half..], draw.theta));
        };
        // The first half adapts: HMC its step, Newtonian Monte Carlo takes every step downhill.
        chain.adapt(true);
        chain.run(draws / 2, &mut observe);
        chain.adapt(false);
        chain.run(draws / 2, &mut observe);
        let seconds = clock.elapsed().as_secs_f64() * 1000.0 / draws as f64;
        let (settled, converged) = convergence(&losses);
        let cells = [settled, converged as f64, seconds, chain.statistics().acceptance()];
        table.push(row(name, &cells).into_iter().chain([paper.to_owned()]).collect());
        curves.push((
            name.to_owned(),
            losses.iter().take(200).enumerate().map(|(t, &l)| (t as f64, l)).collect(),
        ));
    }
    report.say(
        "## Newtonian Table 1\n\n20,000 synthetic observations, half of them held out, 40 coefficients and a constant; \
         from zero; the first half of the samples adapts. The scales of inputs and coefficients make the labels almost \
         separable, hence the small loss.",
    );
    let head = [
        "sampler",
        "held-out log-likelihood",
        "samples to convergence",
        "seconds per 1000",
        "acceptance",
        "paper",
    ];
    report.table(&head, &table);
    plot(
        "logistic_regression_newtonian",
        "Held-out log-likelihood",
        ["sample", "nats per observation"],
        &curves,
    )
}

fn main() -> Outcome {
    let mut report = Report::new("logistic_regression", "Bayesian logistic regression");
    let data = option("--data");
    five_sets(&mut report, data.as_deref())?;
    if let Some(folder) = &data {
        mnist(&mut report, folder)?;
    }
    newtonian(&mut report)?;
    report.say("Times are of the machine at hand; their ratios travel better.");
    report.save()
}
