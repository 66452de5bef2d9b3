//! Logistic regression on many synthetic observations, `newtonian` section 4.1 and Table 1: 40 coefficients in one site
//! and a constant in another, as in the paper, compared with NUTS.
//!
//! `--rows N` is the number of observations, default 10,000 (the paper holds out half of 20,000); above [`HELD`] they
//! are generated again in every pass. `--draws N` limits the samples to fewer than the paper's 1000, `--passes N`
//! limits the passes of NUTS over the data instead.

#[path = "shared/counted.rs"]
mod counted;
mod shared;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::LogisticRegression;
use alphamf_samplers::*;
use counted::Counted;
use shared::{Outcome, Report, check_options, convergence, halves, logistic_row, number_option, plot, row};

const DIMENSION: usize = 41;
const HELD_OUT: usize = 10_000;
/// Limit on the observations in memory.
const HELD: usize = 1_000_000;
/// Observations per chunk.
const CHUNK: usize = 2_000;
/// Limit below which weights do not change a sum.
const NEGLIGIBLE: f64 = 1e-17;

/// The posterior given observations in chunks.
struct Chunked {
    truth: Vec<f64>,
    terms: usize,
    streams: SeedTree,
    kept: Vec<Chunk>,
}

/// Inputs, `DIMENSION x rows`, and labels.
type Chunk = (Vec<f64>, Vec<bool>);

impl Chunked {
    fn new(terms: usize, truth: Vec<f64>, streams: SeedTree) -> Self {
        let mut target = Self { truth, terms, streams, kept: Vec::new() };
        if terms <= HELD {
            target.kept = (0..target.chunks()).map(|index| target.make(index)).collect();
        }
        target
    }

    fn chunks(&self) -> usize {
        self.terms.div_ceil(CHUNK)
    }

    fn make(&self, index: usize) -> Chunk {
        let mut stream = self.streams.rng(index as u64);
        let mut inputs = Vec::with_capacity(CHUNK * DIMENSION);
        let rows = CHUNK.min(self.terms - index * CHUNK);
        let labels = (0..rows).map(|_| logistic_row(10.0, &self.truth, &mut inputs, &mut stream)).collect();
        (inputs, labels)
    }

    /// Runs one pass and returns the potential. `each` receives the inputs of an observation, and the slope and the
    /// curvature of its term along the activation.
    fn pass(&self, theta: &[f64], mut each: impl FnMut(&[f64], f64, f64)) -> f64 {
        let mut potential: f64 = (0..DIMENSION).map(|row| 0.5 * precision(row) * theta[row].powi(2)).sum();
        for index in 0..self.chunks() {
            let made;
            let (inputs, labels) = match self.kept.get(index) {
                Some(chunk) => chunk,
                None => {
                    made = self.make(index);
                    &made
                }
            };
            for (x, &label) in inputs.chunks_exact(DIMENSION).zip(labels) {
                let mut lanes = [0.0; 8];
                for (x, theta) in x.chunks(8).zip(theta.chunks(8)) {
                    lanes.iter_mut().zip(x).zip(theta).for_each(|((lane, x), theta)| *lane += x * theta);
                }
                // Activation of the label that was not drawn.
                let sum = lanes.iter().sum::<f64>();
                let activation = if label { -sum } else { sum };
                let small = (-activation.abs()).exp();
                let wrong = if activation > 0.0 { 1.0 } else { small } / (1.0 + small);
                potential += activation.max(0.0) + small.ln_1p();
                if wrong > NEGLIGIBLE {
                    each(x, if label { -wrong } else { wrong }, small / (1.0 + small).powi(2));
                }
            }
        }
        potential
    }
}

/// Returns the prior precision of a coefficient.
fn precision(row: usize) -> f64 {
    if row == 0 { 0.01 } else { 0.16 }
}

impl Target<f64> for Chunked {
    fn dimension(&self) -> usize {
        DIMENSION
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        self.evaluate(theta, &mut [0.0], gradient);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = self.pass(theta, |_, _, _| ());
    }

    fn evaluate(&mut self, theta: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        gradient.iter_mut().enumerate().for_each(|(row, gradient)| *gradient = precision(row) * theta[row]);
        potential[0] = self.pass(theta, |x, slope, _| {
            gradient.iter_mut().zip(x).for_each(|(gradient, x)| *gradient += slope * x);
        });
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Chunked {
    fn count(&self) -> usize {
        2
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: if index == 0 { 0..1 } else { 1..DIMENSION }, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[f64],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let rows = self.site(index).rows;
        let size = rows.len();
        hessian.fill(0.0);
        for (k, row) in rows.clone().enumerate() {
            gradient[k] = precision(row) * theta[row];
            hessian[k * size + k] = precision(row);
        }
        potential[0] = self.pass(theta, |x, slope, curvature| {
            let x = &x[rows.clone()];
            for (j, column) in hessian.chunks_exact_mut(size).enumerate() {
                gradient[j] += slope * x[j];
                if curvature > NEGLIGIBLE {
                    let weight = curvature * x[j];
                    column[j..].iter_mut().zip(&x[j..]).for_each(|(h, x)| *h += weight * x);
                }
            }
        });
        for j in 0..size {
            (0..j).for_each(|i| hessian[j * size + i] = hessian[i * size + j]);
        }
    }
}

fn main() -> Outcome {
    check_options(&["--rows", "--draws", "--passes"])?;
    let terms = number_option("--rows", 10_000)?;
    let draws = number_option("--draws", 1000)?;
    let passes = number_option("--passes", usize::MAX)?;
    let streams = SeedTree::new(3);
    let mut noise = streams.rng(0);
    let truth: Vec<f64> = (0..DIMENSION).map(|row| f64::normal(&mut noise) / precision(row).sqrt()).collect();
    let mut target = Chunked::new(terms, truth.clone(), streams.child(1));
    let (inputs, labels): (Vec<_>, Vec<_>) =
        Chunked::new(HELD_OUT, truth, streams.child(2)).kept.into_iter().unzip();
    let (inputs, labels) = (inputs.concat(), labels.concat());
    let (mut table, mut curves) = (Vec::new(), Vec::new());
    for is_newtonian in [true, false] {
        let streams = SeedTree::new(1);
        let name = if is_newtonian { "Newtonian Monte Carlo" } else { "NUTS" };
        let mut sampler: Box<dyn Sampler<f64>> = if is_newtonian {
            Box::new(Newtonian::new(DIMENSION, 1, streams)?)
        } else {
            let settings = NutsSettings { step_size: 0.1 / (terms as f64).sqrt(), ..NutsSettings::default() };
            Box::new(Nuts::new(DIMENSION, 1, settings, streams)?)
        };
        let count = Rc::new(Cell::new(0));
        let counted = Counted { inner: &mut target, count: count.clone() };
        let mut chain = Chain::new(counted, &mut *sampler, vec![0.0; DIMENSION])?;
        count.set(0);
        let (clock, mut trace) = (Instant::now(), Vec::new());
        let mut learning = 0;
        // The first half is burn-in: NUTS adapts its step size, and Newtonian Monte Carlo accepts every proposal that
        // lowers the potential considerably.
        let most = if is_newtonian || passes == usize::MAX { draws } else { usize::MAX };
        while trace.len() < most && count.get() < passes {
            let adapts = trace.len() < most / 2 && count.get() < passes / 2;
            learning += usize::from(adapts);
            chain.adapt(adapts);
            chain.run(1, |draw| trace.push(-LogisticRegression::loss(&inputs, &labels, draw.theta)));
        }
        let seconds = clock.elapsed().as_secs_f64() * 1000.0 / trace.len() as f64;
        let (settled, alone) = convergence(&trace);
        let converged = convergence(&halves(&trace)).1;
        let used: usize = if is_newtonian { 4 * trace.len() } else { count.get() };
        let per_sample = used as f64 / trace.len() as f64;
        let mut cells = row(name, &[settled, 0.0, 0.0, 0.0, per_sample, seconds]);
        cells[2] = converged.to_string();
        cells[3] = alone.to_string();
        cells[4] = format!("{} ({learning})", trace.len());
        table.push(cells);
        curves.push((name.to_owned(), trace.iter().enumerate().map(|(t, &l)| ((t + 1) as f64, l)).collect()));
    }
    let mut report = Report::new("newtonian_logistic", &format!("Logistic regression, {terms} observations"))
        .on(&format!("newtonian_logistic_{terms}"));
    report.say(&format!(
        "`--rows {terms} --draws {draws}`{}: {terms} synthetic observations that the posterior is of and {HELD_OUT} others held \
         out, {} coefficients, of one site, and a constant; from zero. Scales of inputs and coefficients as in the paper make \
         the labels almost separable, hence the small loss. Converged: the mean over the latter half of the samples so far stays \
         within one percent of its final value. A pass reads every observation once.",
        if passes < usize::MAX { format!(" `--passes {passes}`") } else { String::new() },
        DIMENSION - 1
    ));
    let head = [
        "sampler",
        "held-out log-likelihood",
        "samples to convergence",
        "of each sample alone",
        "samples (adapting)",
        "passes per sample",
        "seconds per 1000",
    ];
    report.table(&head, &table);
    plot(
        &format!("newtonian_logistic_{terms}"),
        "Held-out log-likelihood",
        ["sample", "nats per observation"],
        &curves,
    )?;
    report.save()
}
