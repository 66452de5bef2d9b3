//! Bayesian logistic regression on five data sets: `quasi-newton-mcmc` Tables 1 and 2.
//!
//! `--data DIR` names the folder that holds `logreg5`; without it, synthetic sets of equal sizes are used.
//! `--only NAME,NAME` selects among the samplers `HMC`, `HMC-BFGS` and `RMHMC`.

mod shared;

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use alphamf_samplers::diagnostics::effective_size_mean;
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::LogisticRegression;
use alphamf_samplers::*;
use shared::{Outcome, Report, check_options, logistic_row, number, option, row};

type Labelled = (Vec<f64>, Vec<bool>);

/// Name, file, number of coefficients and observations.
const SETS: [(&str, &str, usize, usize); 5] = [
    ("Australian", "australian.csv", 15, 690),
    ("German", "german.csv", 25, 1000),
    ("Heart", "heart.csv", 14, 270),
    ("Pima", "pima532.csv", 8, 532),
    ("Ripley", "ripley250_train.csv", 7, 250),
];

/// Reads a data set: a column of ones, then standardised columns. The label is the last column of the file. Ripley's
/// two inputs enter with their squares and cubes, as in Girolami and Calderhead (2011).
fn read_csv(path: &Path, cubes: bool) -> Result<Labelled, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for line in text.lines() {
        let fields: Result<Vec<f64>, _> = line.split(',').map(|field| field.trim().parse()).collect();
        // A line with a field that is not a number is the header.
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

/// Generates a column of ones, standard normal inputs, and labels drawn from the model with `N(0, 1)` coefficients.
fn synthetic(dimension: usize, terms: usize, seed: u64) -> Labelled {
    let mut stream = SeedTree::new(seed).rng(0);
    let truth: Vec<f64> = (0..dimension).map(|_| f64::normal(&mut stream)).collect();
    let (mut regressors, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..terms {
        labels.push(logistic_row(1.0, &truth, &mut regressors, &mut stream));
    }
    (regressors, labels)
}

/// The compared samplers.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Hmc,
    HmcBfgs,
    Rmhmc,
}

impl Method {
    /// Sampler, name, and minimum / mean / maximum effective size in the paper's Table 1.
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Hmc, "HMC", "3312 / 3862 / 4445"),
        (Self::HmcBfgs, "HMC-BFGS", "3643 / 4541 / 4993"),
        (Self::Rmhmc, "RMHMC", "4819 / 4950 / 5000"),
    ];

    /// Returns the numbers of runs, burn-in steps and draws: fewer for RMHMC, whose steps are costly.
    fn lengths(self) -> (u64, usize, usize) {
        if self == Self::Rmhmc { (1, 100, 200) } else { (2, 1000, 5000) }
    }

    fn build(self, dimension: usize, streams: SeedTree) -> Result<Box<dyn Sampler<f64>>, SamplerError> {
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

/// Number of draws to which effective sizes are scaled.
const STATED: usize = 5000;

/// Measures a method on a set: minimum, mean and maximum effective size, and seconds, all per [`STATED`] draws.
fn mixing(method: Method, target: &LogisticRegression, dimension: usize) -> Result<[f64; 4], Box<dyn Error>> {
    let (runs, burn_in, draws) = method.lengths();
    let mut total = [0.0; 4];
    for seed in 0..runs {
        let mut sampler = method.build(dimension, SeedTree::new(seed))?;
        let chains = sampler.chains();
        let mut series = vec![vec![Vec::new(); chains]; dimension];
        let mut chain = Chain::new(target.clone(), &mut *sampler, vec![0.0; dimension])?;
        chain.burn_in(burn_in);
        let clock = Instant::now();
        chain.run(draws, |draw| {
            let row = series.iter_mut().zip(draw.theta);
            row.for_each(|(series, &theta)| series[draw.index % chains].push(theta));
        });
        let seconds = clock.elapsed().as_secs_f64();
        let size =
            |chains: &Vec<Vec<f64>>| chains.iter().map(|chain| effective_size_mean(&[chain])).sum::<f64>();
        let sizes: Vec<f64> = series.iter().map(|chains| size(chains).clamp(0.0, draws as f64)).collect();
        let smallest = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = sizes.iter().copied().fold(0.0, f64::max);
        let mean = sizes.iter().sum::<f64>() / dimension as f64;
        let weight = STATED as f64 / draws as f64 / runs as f64;
        total.iter_mut().zip([smallest, mean, largest, seconds]).for_each(|(t, v)| *t += weight * v);
    }
    Ok(total)
}

fn main() -> Outcome {
    check_options(&["--data", "--only"])?;
    let data = option("--data");
    let only = option("--only").map(|names| names.to_string_lossy().into_owned());
    let is_known = |name: &str| Method::ALL.iter().any(|(_, known, _)| name == *known);
    if let Some(unknown) = only.iter().flat_map(|only| only.split(',')).find(|name| !is_known(name)) {
        return Err(format!("--only {unknown}: expected HMC, HMC-BFGS or RMHMC").into());
    }
    let is_chosen =
        |name: &str| only.as_ref().is_none_or(|only| only.split(',').any(|chosen| chosen == name));
    let methods: Vec<_> = Method::ALL.into_iter().filter(|(_, name, _)| is_chosen(name)).collect();
    let mut table = Vec::new();
    let mut totals = vec![[0.0; 4]; methods.len()];
    for (name, file, dimension, terms) in SETS {
        let (regressors, labels) = match &data {
            Some(folder) => read_csv(&folder.join("logreg5").join(file), name == "Ripley")?,
            None => synthetic(dimension, terms, 7),
        };
        let dimension = regressors.len() / labels.len();
        let target = LogisticRegression::new(regressors, labels, &vec![100.0; dimension])?;
        let mut cells = vec![name.to_owned(), dimension.to_string()];
        for ((method, ..), total) in methods.iter().zip(&mut totals) {
            let found = mixing(*method, &target, dimension)?;
            total.iter_mut().zip(found).for_each(|(total, found)| *total += found / SETS.len() as f64);
            cells.push(number(found[1] / found[3]));
        }
        table.push(cells);
    }
    let mut report = Report::new("logistic_regression", "Bayesian logistic regression");
    if let Some(only) = &only {
        report = report.on(&format!("logistic_regression_{}", only.replace(',', "_").to_lowercase()));
    }
    let source =
        if data.is_some() { "The five sets of the paper" } else { "Synthetic sets of the same sizes" };
    report.say(&format!(
        "{source}, standardised, prior variance 100. {STATED} draws after 1000; HMC with 40 leaps, HMC-BFGS with 20 and \
         D/2 + 2 chains; steps adapted to an acceptance of 0.8; mean of 2 runs. RMHMC with 6 leaps, its step adapted from 0.5, \
         one run of 200 draws after 100, sizes and seconds times 25. Effective sizes per coordinate, capped at the \
         number of draws, summed over the chains of an ensemble."
    ));
    let head = ["", "minimum ESS", "mean ESS", "maximum ESS", "seconds", "paper: min / mean / max ESS"];
    let rows: Vec<Vec<String>> = methods
        .iter()
        .zip(&totals)
        .map(|((_, name, paper), total)| row(name, total).into_iter().chain([(*paper).to_owned()]).collect())
        .collect();
    report.table(&head, &rows);
    let paper =
        ["396 / 818 / 18", "255 / 397 / 3", "1054 / 2009 / 54", "591 / 1383 / 118", "1396 / 2745 / 344"];
    table.iter_mut().zip(paper).for_each(|(row, paper)| row.push(paper.to_owned()));
    let rates: Vec<String> = methods.iter().map(|(_, name, _)| format!("{name}, ESS/s")).collect();
    let mut head = vec!["set", "D"];
    head.extend(rates.iter().map(String::as_str));
    head.push("paper: HMC / HMC-BFGS / RMHMC, ESS/s");
    report.table(&head, &table);
    report.say("Times are of the machine at hand; their ratios travel better.");
    report.save()
}
