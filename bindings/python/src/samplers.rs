//! Samplers on a posterior that is a Python function.

use super::value_error;
use alphamf::random::SeedTree;
use alphamf::samplers::{
    Chain, LogMapped, Metric, MetricShape, Minibatch, RunRecord, SampleResult, Sampler, SamplerKind,
    SamplerOptions, Site, Sites, Step, StepSize, Support, Target,
};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLikeDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Interval between checks for signals, and minimum interval between progress reports.
const INTERVAL: Duration = Duration::from_millis(50);

/// The functions of a posterior, and their first exception. All calls are on the thread that holds the interpreter.
#[derive(Clone)]
struct Posterior<'py> {
    py: Python<'py>,
    dimension: usize,
    /// States per call, as rows; `None` for a single state.
    batch: Option<usize>,
    terms: Option<usize>,
    density: Bound<'py, PyAny>,
    metric: Option<Bound<'py, PyAny>>,
    is_diagonal: bool,
    hessian: Option<Bound<'py, PyAny>>,
    /// Whether the unknowns are positive; each is then a site of its own.
    is_positive: bool,
    raised: Rc<RefCell<Option<PyErr>>>,
}

impl<'py> Posterior<'py> {
    fn states(&self) -> usize {
        self.batch.unwrap_or(1)
    }

    /// A state, or a batch of them, as an array.
    fn array(&self, theta: &[f64]) -> PyResult<Bound<'py, PyAny>> {
        let flat = PyArray1::from_slice(self.py, theta);
        Ok(match self.batch {
            None => flat.into_any(),
            Some(states) => flat.reshape([states, self.dimension])?.into_any(),
        })
    }

    /// Copies the numbers of an array-like object.
    fn write(&self, what: &str, value: &Bound<'py, PyAny>, numbers: &mut [f64]) -> PyResult<()> {
        let array = read(value)?;
        let array = array.as_array();
        if array.len() != numbers.len() {
            let (shape, expected) = (array.shape(), numbers.len());
            return Err(PyValueError::new_err(format!(
                "{what} of shape {shape:?}: expected {expected} numbers"
            )));
        }
        numbers.iter_mut().zip(array.iter()).for_each(|(number, &value)| *number = value);
        Ok(())
    }

    fn density(
        &self,
        theta: &[f64],
        indices: Option<&[usize]>,
        potential: &mut [f64],
        gradient: &mut [f64],
    ) -> PyResult<()> {
        let state = self.array(theta)?;
        let result = match (self.terms, indices) {
            (None, _) => self.density.call1((state,))?,
            (Some(_), None) => self.density.call1((state, self.py.None()))?,
            (Some(_), Some(indices)) => {
                let indices: Vec<i64> = indices.iter().map(|&index| index as i64).collect();
                self.density.call1((state, PyArray1::from_vec(self.py, indices)))?
            }
        };
        let (found, slopes) = pair(&result)?;
        self.write("the potential", &found, potential)?;
        self.write("the gradient", &slopes, gradient)
    }

    /// Keeps the first exception, and fills the numbers with NaN, which ends the step without a draw.
    fn keep(&self, outcome: PyResult<()>, numbers: &mut [f64]) {
        if let Err(error) = outcome {
            self.raised.borrow_mut().get_or_insert(error);
            numbers.fill(f64::NAN);
        }
    }

    /// Whether a function has raised an exception; it is then not called again.
    fn is_over(&self) -> bool {
        self.raised.borrow().is_some()
    }

    fn matrix(&self, what: &str, function: Option<&Bound<'py, PyAny>>, theta: &[f64], matrix: &mut [f64]) {
        let outcome = match function {
            Some(function) if !self.is_over() => {
                let value = self.array(theta).and_then(|state| function.call1((state,)));
                value.and_then(|value| self.write(what, &value, matrix))
            }
            _ => Ok(()),
        };
        self.keep(outcome, matrix);
    }
}

impl Target<f64> for Posterior<'_> {
    fn dimension(&self) -> usize {
        self.dimension
    }

    /// True: samplers may assume that the functions do not change.
    fn is_fixed(&self) -> bool {
        true
    }

    fn blocks(&self) -> usize {
        self.states()
    }

    fn terms(&self) -> usize {
        self.terms.unwrap_or(1)
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        if !self.is_over() {
            let mut potential = vec![0.0; self.states()];
            let outcome = self.density(theta, batch.indices(), &mut potential, gradient);
            self.keep(outcome, gradient);
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        let mut gradient = vec![0.0; theta.len()];
        self.evaluate(theta, potential, &mut gradient);
    }

    fn evaluate(&mut self, theta: &[f64], potential: &mut [f64], gradient: &mut [f64]) {
        if !self.is_over() {
            let outcome = self.density(theta, None, potential, gradient);
            self.keep(outcome, potential);
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        self.metric.is_some().then_some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        self.hessian.is_some().then_some(self)
    }
}

impl Metric<f64> for Posterior<'_> {
    fn is_diagonal(&self) -> bool {
        self.is_diagonal
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        self.matrix("the metric", self.metric.as_ref(), theta, metric);
    }
}

impl Sites<f64> for Posterior<'_> {
    fn count(&self) -> usize {
        if self.is_positive { self.dimension } else { 1 }
    }

    fn site(&self, index: usize) -> Site {
        match self.is_positive {
            true => Site { rows: index..index + 1, support: Support::HalfLine },
            false => Site { rows: 0..self.dimension, support: Support::Real },
        }
    }

    fn expand(
        &mut self,
        theta: &[f64],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (dimension, rows) = (self.dimension, self.site(index).rows);
        let mut slopes = vec![0.0; theta.len()];
        let mut curvature = vec![0.0; theta.len() * dimension];
        self.evaluate(theta, potential, &mut slopes);
        self.matrix("the Hessian", self.hessian.as_ref(), theta, &mut curvature);
        let count = rows.len();
        for (state, slopes) in slopes.chunks_exact(dimension).enumerate() {
            gradient[state * count..][..count].copy_from_slice(&slopes[rows.clone()]);
            let matrix = &curvature[state * dimension * dimension..][..dimension * dimension];
            for (i, row) in rows.clone().enumerate() {
                let row = &matrix[row * dimension..][rows.clone()];
                hessian[(state * count + i) * count..][..count].copy_from_slice(row);
            }
        }
    }
}

/// An array-like object as an array of numbers. The view of a field of packed records is copied, as its numbers are not
/// aligned.
fn read<'py>(value: &Bound<'py, PyAny>) -> PyResult<PyArrayLikeDyn<'py, f64, AllowTypeChange>> {
    let array: PyArrayLikeDyn<'py, f64, AllowTypeChange> = value.extract()?;
    if array.is_aligned() { Ok(array) } else { array.call_method0("copy")?.extract() }
}

/// Both elements of a sequence of two: a tuple, a list, an array.
fn pair<'py>(result: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let length = result.len().ok();
    if length == Some(2) && !result.is_instance_of::<PyDict>() {
        return Ok((result.get_item(0)?, result.get_item(1)?));
    }
    let (name, of) =
        (result.get_type().name()?, length.map_or_else(String::new, |n| format!(" of length {n}")));
    Err(PyTypeError::new_err(format!(
        "the target returned a {name}{of}: expected the potential and its gradient"
    )))
}

/// The names of the samplers.
#[pyfunction]
pub fn names() -> Vec<&'static str> {
    SamplerKind::ALL.map(SamplerKind::name).to_vec()
}

/// Draws from a posterior; `starts` holds a row for each chain.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as many as Python gives")]
pub fn sample<'py>(
    py: Python<'py>,
    density: Bound<'py, PyAny>,
    starts: Bound<'py, PyArray2<f64>>,
    sampler: &str,
    draws: usize,
    burn_in: usize,
    seed: u64,
    step_size: Option<(f64, Option<f64>)>,
    minibatch: Option<usize>,
    terms: Option<usize>,
    vectorized: bool,
    positive: bool,
    metric: Option<Bound<'py, PyAny>>,
    hessian: Option<Bound<'py, PyAny>>,
    preconditioner: Option<&str>,
    target_acceptance: Option<f64>,
    metropolis: bool,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let starts: Vec<Vec<f64>> =
        starts.readonly().as_array().rows().into_iter().map(|row| row.to_vec()).collect();
    let (chains, dimension) = (starts.len(), starts.first().map_or(0, Vec::len));
    let kind: SamplerKind = sampler.parse().map_err(value_error)?;
    let has_metric = matches!(kind, SamplerKind::Sgrld | SamplerKind::Sgrhmc);
    let is_newtonian = kind == SamplerKind::Newtonian;
    // HAMCMC has an optional acceptance test, and does not adapt a given step size.
    let is_tested = kind == SamplerKind::Hamcmc && metropolis && step_size.is_none();
    refuse_unused(
        kind,
        [
            ("step_size", step_size.is_some(), !is_newtonian),
            ("minibatch", minibatch.is_some(), !kind.has_test()),
            ("metric", metric.is_some(), has_metric),
            ("hessian", hessian.is_some(), is_newtonian),
            (
                "preconditioner",
                preconditioner.is_some_and(|shape| shape != "none"),
                !has_metric && !is_newtonian,
            ),
            ("metropolis", metropolis, kind == SamplerKind::Hamcmc),
            ("target_acceptance", target_acceptance.is_some(), kind.has_test() && !is_newtonian || is_tested),
        ],
    )?;
    let missing =
        [("metric", has_metric && metric.is_none()), ("hessian", is_newtonian && hessian.is_none())];
    if let Some((name, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
        return Err(value_error(format!("{name} is missing, but {kind} needs it")));
    }
    let posterior = Posterior {
        py,
        dimension,
        batch: vectorized.then_some(chains),
        terms,
        density,
        is_diagonal: false,
        metric,
        hessian,
        is_positive: positive,
        raised: Rc::default(),
    };
    let posterior = with_shape_of_metric(posterior, &starts)?;
    let options = SamplerOptions {
        step_size: step_size.map(|(step, power)| match power {
            Some(power) => StepSize::Decreasing { scale: step, power },
            None => StepSize::Constant(step),
        }),
        minibatch,
        metric: preconditioner.map(str::parse::<MetricShape>).transpose().map_err(value_error)?,
        metropolis,
        target_acceptance,
        ..SamplerOptions::default()
    };
    let (starts, blocks) = if vectorized { (vec![starts.concat()], chains) } else { (starts, 1) };
    let mut progress = Progress::new(py, progress, starts.len() * (draws + burn_in));
    let mut runs = Vec::new();
    for (run, start) in starts.into_iter().enumerate() {
        let seeds = if vectorized { SeedTree::new(seed) } else { SeedTree::new(seed).child(run as u64) };
        let states = start.len() / dimension.max(1);
        let sampler = build(kind, (dimension, states), &options, seeds, draws)?;
        // Newtonian Monte Carlo samples positive parameters itself.
        let is_mapped = positive && kind != SamplerKind::Newtonian;
        runs.push(record(&posterior, sampler, start, is_mapped, (burn_in, draws), &mut progress)?);
    }
    to_dict(py, &SampleResult::new(runs, blocks), (draws, dimension, blocks))
}

/// Rejects settings that are given but have no effect: name, whether it is given, whether the sampler uses it.
fn refuse_unused(
    kind: SamplerKind,
    settings: impl IntoIterator<Item = (&'static str, bool, bool)>,
) -> PyResult<()> {
    match settings.into_iter().find(|(_, is_given, is_used)| *is_given && !is_used) {
        Some((name, ..)) => {
            Err(PyValueError::new_err(format!("{name} is given, but {kind} does not use it")))
        }
        None => Ok(()),
    }
}

/// Builds a sampler and checks that each of its chains has enough draws.
fn build(
    kind: SamplerKind,
    (dimension, states): (usize, usize),
    options: &SamplerOptions,
    seeds: SeedTree,
    draws: usize,
) -> PyResult<Box<dyn Sampler<f64>>> {
    let sampler = kind.build::<f64>(dimension, states, options, seeds).map_err(value_error)?;
    let in_turn = sampler.chains();
    if draws / in_turn < 4 {
        return Err(PyValueError::new_err(format!(
            "{draws} draws of {kind}, which moves {in_turn} chains in turn: expected at least {}",
            4 * in_turn
        )));
    }
    Ok(sampler)
}

/// Runs a sampler from a start and records its draws; `is_mapped`: whether it samples the logarithms.
fn record(
    posterior: &Posterior<'_>,
    sampler: Box<dyn Sampler<f64>>,
    mut start: Vec<f64>,
    is_mapped: bool,
    schedule: (usize, usize),
    progress: &mut Progress<'_>,
) -> PyResult<RunRecord<f64>> {
    let mut record = RunRecord::new(start.len(), schedule.1, sampler.chains());
    if is_mapped {
        start.iter_mut().for_each(|x| *x = x.ln());
        let unmap = LogMapped::<(), f64>::new(());
        let mut keep = |x: &[f64], step: &Step, start: Option<(&[f64], &[f64])>| {
            let mut theta = x.to_vec();
            unmap.unmap(&mut theta, posterior.dimension);
            record.add(&theta, step, start);
        };
        let chain = Chain::new(LogMapped::new(posterior.clone()), sampler, start);
        go(raised(chain, posterior)?, schedule, posterior, progress, &mut keep)?;
    } else {
        let mut keep =
            |theta: &[f64], step: &Step, start: Option<(&[f64], &[f64])>| record.add(theta, step, start);
        let chain = Chain::new(posterior.clone(), sampler, start);
        go(raised(chain, posterior)?, schedule, posterior, progress, &mut keep)?;
    }
    Ok(record)
}

/// A result as arrays, by name.
fn to_dict<'py>(
    py: Python<'py>,
    result: &SampleResult<f64>,
    (draws, dimension, blocks): (usize, usize, usize),
) -> PyResult<Bound<'py, PyDict>> {
    let chains = result.runs().len() * blocks;
    let mut all = vec![0.0; chains * draws * dimension];
    for run in 0..result.runs().len() {
        for (draw, state) in result.draws(run).enumerate() {
            for (block, theta) in state.chunks_exact(dimension).enumerate() {
                let place = (run * blocks + block) * draws + draw;
                all[place * dimension..][..dimension].copy_from_slice(theta);
            }
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("draws", PyArray1::from_vec(py, all))?;
    let parameters = |value: fn(&alphamf::samplers::ParameterSummary) -> f64| {
        PyArray1::from_iter(py, result.parameters.iter().map(value))
    };
    dict.set_item("mean", parameters(|parameter| parameter.mean))?;
    dict.set_item("deviation", parameters(|parameter| parameter.deviation))?;
    dict.set_item("standard_error", parameters(|parameter| parameter.standard_error))?;
    dict.set_item("r_hat", parameters(|parameter| parameter.r_hat))?;
    dict.set_item("effective_size", parameters(|parameter| parameter.effective_size))?;
    dict.set_item("tail_effective_size", parameters(|parameter| parameter.tail_effective_size))?;
    dict.set_item("chains_in_turn", result.runs().next().map_or(1, RunRecord::chains))?;
    let runs = &result.statistics;
    dict.set_item("acceptance", PyArray1::from_iter(py, runs.iter().map(|run| run.acceptance())))?;
    dict.set_item("divergences", PyArray1::from_iter(py, runs.iter().map(|run| run.divergences as i64)))?;
    dict.set_item("depth_limited", PyArray1::from_iter(py, runs.iter().map(|run| run.depth_limited as i64)))?;
    dict.set_item("energy_fraction", PyArray1::from_vec(py, result.energy_fractions()))?;
    let warnings: Vec<String> = result.warnings().iter().map(ToString::to_string).collect();
    dict.set_item("warnings", warnings)?;
    let steps = |value: fn(&Step) -> f64| {
        PyArray1::from_iter(py, result.runs().flat_map(move |run| run.steps().iter().map(value)))
    };
    let statistics = PyDict::new(py);
    statistics.set_item("acceptance_rate", steps(|step| step.acceptance))?;
    statistics.set_item("diverging", steps(|step| step.divergences as f64))?;
    statistics.set_item("step_size", steps(|step| step.step_size))?;
    statistics.set_item("n_steps", steps(|step| step.leapfrog_steps as f64))?;
    statistics.set_item("lp", steps(|step| step.potential.map_or(f64::NAN, |potential| -potential)))?;
    statistics.set_item("energy", steps(|step| step.energy.unwrap_or(f64::NAN)))?;
    dict.set_item("statistics", statistics)?;
    Ok(dict)
}

/// Determines whether the metric is diagonal.
fn with_shape_of_metric<'py>(mut posterior: Posterior<'py>, starts: &[Vec<f64>]) -> PyResult<Posterior<'py>> {
    if let (Some(metric), Some(first)) = (&posterior.metric, starts.first()) {
        let state = if posterior.batch.is_some() { starts.concat() } else { first.clone() };
        let value = read(&metric.call1((posterior.array(&state)?,))?)?;
        posterior.is_diagonal = value.as_array().len() == state.len();
    }
    Ok(posterior)
}

/// Returns the exception that a function raised, or else the result.
fn raised<T>(outcome: Result<T, impl std::fmt::Display>, posterior: &Posterior<'_>) -> PyResult<T> {
    match posterior.raised.take() {
        Some(error) => Err(error),
        None => outcome.map_err(value_error),
    }
}

/// Checks for signals and reports progress.
struct Progress<'py> {
    py: Python<'py>,
    callback: Option<Bound<'py, PyAny>>,
    last_check: Instant,
    done: usize,
    total: usize,
}

impl<'py> Progress<'py> {
    fn new(py: Python<'py>, callback: Option<Bound<'py, PyAny>>, total: usize) -> Self {
        Self { py, callback, last_check: Instant::now(), done: 0, total }
    }

    fn step(&mut self) -> PyResult<()> {
        self.done += 1;
        if self.last_check.elapsed() >= INTERVAL || self.done == self.total {
            self.last_check = Instant::now();
            self.py.check_signals()?;
            if let Some(callback) = &self.callback {
                callback.call1((self.done as f64 / self.total as f64,))?;
            }
        }
        Ok(())
    }
}

/// Receives a draw, the step that made it, and the state and gradient that the step started from.
type Keep<'a> = dyn FnMut(&[f64], &Step, Option<(&[f64], &[f64])>) + 'a;

/// Runs the burn-in of a chain, and passes its draws to `keep`.
fn go<G: Target<f64>, S: Sampler<f64>>(
    mut chain: Chain<f64, G, S>,
    (burn_in, draws): (usize, usize),
    posterior: &Posterior<'_>,
    progress: &mut Progress<'_>,
    keep: &mut Keep<'_>,
) -> PyResult<()> {
    chain.warm_up(burn_in);
    for step in 0..burn_in + draws {
        let mut taken = Step::default();
        chain.run(1, |draw| taken = draw.step);
        raised(Ok::<_, &str>(()), posterior)?;
        progress.step()?;
        if step >= burn_in {
            keep(chain.state(), &taken, chain.start());
        }
    }
    Ok(())
}
