//! Stationary laws on targets that the proofs of `moments.rs` do not use.

use crate::proof::{constant, narrow};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::recipe;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

/// A function of the state.
type Value<'a> = &'a dyn Fn(&[f64]) -> f64;

/// Makes the sampler of one chain.
type Factory = Box<dyn Fn(SeedTree) -> Box<dyn Sampler<f64>>>;

/// Step `t`, counted from one, of every sampler without a test has the size of iteration `t`.
#[test]
fn step_schedules_begin_at_one() {
    let schedule = StepSize::Decreasing { scale: 0.01, power: 0.51 };
    let options = SamplerOptions { step_size: Some(schedule), ..SamplerOptions::default() };
    use SamplerKind::*;
    for kind in [Sgld, Psgld, Sgrld, Hamcmc, Sghmc, Sgnht, Sgrhmc] {
        let sampler = kind.build::<f64>(2, 1, &options, SeedTree::new(1)).unwrap();
        let mut chain = Chain::new(narrow(), sampler, vec![0.0; 2]).unwrap();
        let mut steps = Vec::new();
        chain.run(3, |draw| steps.push(draw.step.step_size));
        let expected = [0.01_f64, 0.005, 0.01 / 3.0].map(|share| share.powf(0.51));
        for (found, expected) in steps.iter().zip(expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{kind}: {steps:?}");
        }
    }
}

/// A multivariate Student-t law of 6 degrees of freedom about the origin, as one site: `U = (6 + n) / 2 log(1 + x'Px / 6)`.
#[derive(Clone)]
struct Student {
    dimension: usize,
    /// `P`, the inverse of the matrix of scales.
    precision: Vec<f64>,
}

const FREEDOM: f64 = 6.0;

impl Student {
    fn line() -> Self {
        Self { dimension: 1, precision: vec![1.0] }
    }

    /// Three correlated coordinates of unlike scales.
    fn space() -> Self {
        Self { dimension: 3, precision: vec![1.0, 0.6, 0.5, 0.6, 1.5, -1.0, 0.5, -1.0, 9.0] }
    }

    fn expansion(&self, x: &[f64]) -> (f64, Vec<f64>, Vec<f64>) {
        let n = self.dimension;
        let force: Vec<f64> =
            (0..n).map(|i| (0..n).map(|j| self.precision[j * n + i] * x[j]).sum()).collect();
        let square: f64 = force.iter().zip(x).map(|(f, x)| f * x).sum();
        let (half, sum) = (0.5 * (FREEDOM + n as f64), FREEDOM + square);
        let gradient = force.iter().map(|f| 2.0 * half * f / sum).collect();
        let hessian = (0..n * n).map(|k| {
            2.0 * half * (self.precision[k] / sum - 2.0 * force[k % n] * force[k / n] / (sum * sum))
        });
        (half * (1.0 + square / FREEDOM).ln(), gradient, hessian.collect())
    }

    /// `1 / (1 + x'Px / 6)`, which has the law Beta(3, n / 2).
    fn height(&self, x: &[f64]) -> f64 {
        (-self.expansion(x).0 / (0.5 * (FREEDOM + self.dimension as f64))).exp()
    }

    fn height_moments(&self) -> (f64, f64) {
        let (a, b) = (0.5 * FREEDOM, 0.5 * self.dimension as f64);
        (a / (a + b), a * b / ((a + b).powi(2) * (a + b + 1.0)))
    }
}

impl Target<f64> for Student {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.copy_from_slice(&self.expansion(theta).1);
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = self.expansion(theta).0;
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Student {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.dimension, support: Support::Real }
    }

    fn expand(&mut self, theta: &[f64], _: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        let (potential, gradient, hessian) = self.expansion(theta);
        u[0] = potential;
        g.copy_from_slice(&gradient);
        h.copy_from_slice(&hessian);
    }
}

/// The mean of each value over the draws of eight chains, and its standard error, as pairs; then the longest stay.
fn run(
    target: &(impl Target<f64> + Clone),
    sampler: impl Fn(SeedTree) -> Box<dyn Sampler<f64>>,
    start: &[f64],
    draws: usize,
    values: &[Value<'_>],
) -> (Vec<(f64, f64)>, usize) {
    let (mut runs, mut longest) = (Vec::new(), 0);
    for seed in 0..8 {
        let mut chain =
            Chain::new(target.clone(), sampler(SeedTree::new(500 + seed)), start.to_vec()).unwrap();
        chain.burn_in(1_000);
        let (mut sums, mut last, mut stay) = (vec![0.0; values.len()], Vec::new(), 0);
        chain.run(draws, |draw| {
            stay = if last == draw.theta { stay + 1 } else { 0 };
            longest = longest.max(stay);
            last.clear();
            last.extend_from_slice(draw.theta);
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum += value(draw.theta) / draws as f64;
            }
        });
        runs.push(sums);
    }
    let summary = |k| {
        let means: Vec<f64> = runs.iter().map(|run: &Vec<f64>| run[k]).collect();
        let (mean, variance) = diagnostics::mean_and_variance(&means);
        (mean, (variance / 8.0).sqrt())
    };
    ((0..values.len()).map(summary).collect(), longest)
}

/// Asserts that estimates are within five standard errors of the truth, and that these errors are below `precision`
/// deviations.
fn assert_true(name: &str, found: &[(f64, f64)], truth: &[(f64, f64)], precision: f64) {
    println!("{name}: {found:.4?} of {truth:.4?}");
    for (&(mean, error), &(true_mean, deviation)) in found.iter().zip(truth) {
        assert!(
            (mean - true_mean).abs() < 5.0 * error.max(1e-3 * deviation),
            "{name}: {found:?} of {truth:?}"
        );
        assert!(error < precision * deviation, "{name}: {found:?} of {truth:?}");
    }
}

fn newtonian(dimension: usize) -> impl Fn(SeedTree) -> Box<dyn Sampler<f64>> {
    move |streams| Box::new(Newtonian::new(dimension, 1, streams).unwrap())
}

/// The published sampler sticks where the curvature of a Student-t law passes through zero; local proposals free it.
#[test]
fn newtonian_does_not_stick_on_heavy_tails() {
    for target in [Student::line(), Student::space()] {
        let (mean, variance) = target.height_moments();
        let n = target.dimension;
        let height = |x: &[f64]| target.height(x);
        let first = |x: &[f64]| x[0].signum();
        let start = vec![0.1; n];
        let published = |streams| -> Box<dyn Sampler<f64>> {
            Box::new(Newtonian::new(n, 1, streams).unwrap().with_local_fraction(0.0).unwrap())
        };
        let longest = run(&target, published, &start, 25_000, &[&height]).1;
        let (found, stay) = run(&target, newtonian(n), &start, 25_000, &[&height, &first]);
        println!("{n} dimensions: longest stay {longest}, with local proposals {stay}");
        assert_true("Student-t", &found, &[(mean, variance.sqrt()), (0.0, 1.0)], 0.02);
        assert!(longest > 1_000 && stay < 400, "{longest} {stay}");
    }
}

/// A Dirichlet law tilted by `exp(-8 x^2 - 5 y z)`: no law that a simplex site proposes fits it.
#[derive(Clone)]
struct Tilted;

impl Tilted {
    const CONCENTRATIONS: [f64; 3] = [3.0, 2.0, 1.5];

    fn value(x: &[f64]) -> f64 {
        let logs = Self::CONCENTRATIONS.iter().zip(x).map(|(a, x)| (1.0 - a) * x.ln());
        logs.sum::<f64>() + 8.0 * x[0] * x[0] + 5.0 * x[1] * x[2]
    }

    /// Means and standard deviations of the coordinates, by the midpoint rule.
    fn moments() -> Vec<(f64, f64)> {
        const CELLS: usize = 1200;
        let (mut norm, mut sums) = (0.0, [[0.0; 2]; 3]);
        for i in 0..CELLS {
            for j in 0..CELLS - i {
                let at = |k: usize| (k as f64 + 1.0 / 3.0) / CELLS as f64;
                let x = [at(i), at(j), 1.0 - at(i) - at(j)];
                let weight = (-Self::value(&x)).exp();
                norm += weight;
                for (sums, x) in sums.iter_mut().zip(x) {
                    sums[0] += weight * x;
                    sums[1] += weight * x * x;
                }
            }
        }
        let moment = |[sum, square]: &[f64; 2]| (sum / norm, (square / norm - (sum / norm).powi(2)).sqrt());
        sums.iter().map(moment).collect()
    }
}

impl Target<f64> for Tilted {
    fn dimension(&self) -> usize {
        3
    }

    fn gradient(&mut self, x: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        let tilt = [16.0 * x[0], 5.0 * x[2], 5.0 * x[1]];
        for (i, gradient) in gradient.iter_mut().enumerate() {
            *gradient = (1.0 - Self::CONCENTRATIONS[i]) / x[i] + tilt[i];
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = Self::value(theta);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<f64>> {
        Some(self)
    }
}

impl Sites<f64> for Tilted {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..3, support: Support::Simplex }
    }

    fn expand(&mut self, x: &[f64], _: usize, u: &mut [f64], g: &mut [f64], h: &mut [f64]) {
        self.potential(x, u);
        self.gradient(x, Minibatch::full(1), g);
        h.copy_from_slice(&[16.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 5.0, 0.0]);
        for i in 0..3 {
            h[4 * i] += (Self::CONCENTRATIONS[i] - 1.0) / (x[i] * x[i]);
        }
    }
}

/// The proposal depends on the current state, so a wrong normaliser would bias the draws.
#[test]
fn newtonian_is_exact_on_a_tilted_simplex() {
    let coordinates: [Value<'_>; 3] = [&|x| x[0], &|x| x[1], &|x| x[2]];
    let truth = Tilted::moments();
    let found = run(&Tilted, newtonian(3), &[0.3, 0.3, 0.4], 25_000, &coordinates).0;
    assert_true("tilted simplex", &found, &truth, 0.02);
}

/// A memory that is updated after burn-in may reach a matrix that does not suit the adapted step, and must leave it
/// again.
#[test]
fn qnhmc_that_keeps_learning_keeps_moving() {
    let variance = narrow().covariance()[0];
    for initial_scale in [InitialScale::Fixed(1.0), InitialScale::Fixed(1e-3), InitialScale::Pairs(1e-3)] {
        let settings = QnhmcSettings { initial_scale, adapt_after_burn_in: true, ..QnhmcSettings::default() };
        let sampler = Qnhmc::new(2, 1, settings, SeedTree::new(1)).unwrap();
        let mut chain = Chain::new(narrow(), sampler, vec![0.1; 2]).unwrap();
        chain.burn_in(2_000);
        let mut square = 0.0;
        chain.run(20_000, |draw| square += draw.theta[0] * draw.theta[0] / 2e4);
        let accepted = chain.statistics().acceptance();
        println!("{initial_scale:?}: acceptance {accepted:.3}, {square:.3} of {variance:.3}");
        assert!(accepted > 0.5, "{initial_scale:?}: {accepted}");
        assert!((square / variance - 1.0).abs() < 0.2, "{initial_scale:?}: {square} of {variance}");
    }
}

/// A target without metric, curvature and sites.
struct Plain;

impl Target<f64> for Plain {
    fn dimension(&self) -> usize {
        1
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient[0] = theta[0];
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = 0.5 * theta[0] * theta[0];
    }
}

/// A step on a target that lacks a needed capability panics, rather than leave the state unchanged.
#[test]
fn a_step_without_what_it_needs_is_an_error() {
    let corrected = PsgldSettings { correction: true, ..PsgldSettings::default() };
    let streams = SeedTree::new(1);
    let riemannian = recipe::RiemannianLangevin;
    let samplers: [Box<dyn Sampler<f64>>; 5] = [
        SamplerKind::Sgrld.build(1, 1, &SamplerOptions::default(), streams).unwrap(),
        SamplerKind::Sgrhmc.build(1, 1, &SamplerOptions::default(), streams).unwrap(),
        SamplerKind::Newtonian.build(1, 1, &SamplerOptions::default(), streams).unwrap(),
        Box::new(Psgld::new(1, 1, corrected, streams).unwrap()),
        Box::new(recipe::RecipeSampler::new(1, riemannian, GradientSettings::default(), streams).unwrap()),
    ];
    for (index, mut sampler) in samplers.into_iter().enumerate() {
        let step = std::panic::AssertUnwindSafe(|| sampler.step(&mut Plain, &mut [1.0]));
        let message = *std::panic::catch_unwind(step).unwrap_err().downcast::<String>().unwrap();
        assert!(message.contains("needs a target with"), "{index}: {message}");
    }
}

/// A normal law of unit variance whose mean moves between steps, as in a Gibbs sweep.
struct Swept {
    mean: f64,
}

impl Target<f64> for Swept {
    fn dimension(&self) -> usize {
        1
    }

    fn gradient(&mut self, theta: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient[0] = theta[0] - self.mean;
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        potential[0] = 0.5 * (theta[0] - self.mean).powi(2);
    }
}

/// Given `x`, the mean is redrawn before every step: `mean ~ N(0, 1)` and `x ~ N(mean, 1)`, so `x` alone has variance
/// 2. Values stored from the last step belong to another target.
#[test]
fn exact_samplers_are_exact_within_a_gibbs_sweep() {
    let streams = SeedTree::new(7);
    let hmc = HmcSettings { step_size: 0.5, leaps: 3, ..HmcSettings::default() };
    let bfgs = HmcBfgsSettings { hmc, ..HmcBfgsSettings::default() };
    let tested =
        Hamcmc::new(1, 1, HamcmcSettings { gradient: constant(0.5), ..HamcmcSettings::default() }, streams);
    let tested = tested.unwrap().with_pairs(Pairs::States).unwrap().with_metropolis().unwrap();
    // A short trajectory: in a long one, its start hardly counts.
    let nuts = NutsSettings { step_size: 1.0, depth: 1, ..NutsSettings::default() };
    let samplers: [(&str, Box<dyn Sampler<f64>>); 6] = [
        ("HMC", Box::new(Hmc::new(1, 1, hmc, streams).unwrap())),
        ("NUTS", Box::new(Nuts::new(1, 1, nuts, streams).unwrap())),
        ("MH-BFGS", Box::new(MhBfgs::new(1, 1, MhBfgsSettings::default(), streams).unwrap())),
        ("HMC-BFGS", Box::new(HmcBfgs::new(1, 1, bfgs, streams).unwrap())),
        (
            "QNHMC",
            Box::new(Qnhmc::new(1, 1, QnhmcSettings { hmc, ..QnhmcSettings::default() }, streams).unwrap()),
        ),
        ("HAMCMC with its test", Box::new(tested)),
    ];
    for (name, mut sampler) in samplers {
        let (mut theta, mut variance) = (vec![1.0], 0.0);
        let (mut stream, steps) = (streams.rng(9), 40_000);
        for _ in 0..steps {
            let start = sampler.next_start(&theta)[0];
            let mean = 0.5 * start + 0.5_f64.sqrt() * f64::normal(&mut stream);
            sampler.step(&mut Swept { mean }, &mut theta);
            variance += theta[0] * theta[0] / f64::from(steps);
        }
        println!("{name}: {variance:.3}");
        assert!((variance - 2.0).abs() < 0.16, "{name}: {variance}");
    }
}

/// Runs every sampler that claims to be exact on one target.
fn exact_on(
    name: &str,
    target: &(impl Target<f64> + Clone),
    start: &[f64],
    scale: f64,
    values: &[Value<'_>],
    truth: &[(f64, f64)],
) {
    let n = start.len();
    let hmc = HmcSettings::default();
    let initial_scale = InitialScale::Fixed(scale);
    let kinds: [(&str, usize, Factory); 4] = [
        ("hmc", 10_000, Box::new(move |s| Box::new(Hmc::new(n, 1, hmc, s).unwrap()))),
        (
            "mh-bfgs",
            15_000,
            Box::new(move |s| {
                let settings = MhBfgsSettings { initial_scale, ..MhBfgsSettings::default() };
                Box::new(MhBfgs::new(n, 1, settings, s).unwrap())
            }),
        ),
        (
            "hmc-bfgs",
            4_000,
            Box::new(move |s| {
                let settings = HmcBfgsSettings { initial_scale, ..HmcBfgsSettings::default() };
                Box::new(HmcBfgs::new(n, 1, settings, s).unwrap())
            }),
        ),
        (
            "qnhmc",
            16_000,
            Box::new(move |s| {
                let settings = QnhmcSettings { initial_scale, ..QnhmcSettings::default() };
                Box::new(Qnhmc::new(n, 1, settings, s).unwrap())
            }),
        ),
    ];
    for (kind, draws, sampler) in kinds {
        let found = run(target, sampler, start, draws, values).0;
        assert_true(&format!("{kind} on {name}"), &found, truth, 0.035);
    }
}

#[test]
fn exact_samplers_are_exact_on_heavy_tails_and_bends() {
    let student = Student::space();
    let (mean, variance) = student.height_moments();
    let height = |x: &[f64]| student.height(x);
    let truth = [(mean, variance.sqrt()), (0.0, 1.0)];
    exact_on("Student-t", &student, &[0.1; 3], 0.3, &[&height, &|x| x[0].signum()], &truth);

    // Rosenbrock's: x about 1 with variance 1/4, y about x^2 with variance 1/25.
    let bend = from_fn(2, |x: &[f64], gradient: &mut [f64]| {
        let (a, b) = (x[0] - 1.0, x[1] - x[0] * x[0]);
        gradient.copy_from_slice(&[4.0 * a - 50.0 * b * x[0], 25.0 * b]);
        2.0 * a * a + 12.5 * b * b
    });
    // Var x^2 = 4 mean^2 v + 2 v^2 for a normal x of variance v.
    let truth = [(1.0, 0.5), (1.25, (1.125_f64 + 0.04).sqrt()), (0.04, 0.04 * 2.0_f64.sqrt())];
    let fold = |x: &[f64]| (x[1] - x[0] * x[0]).powi(2);
    exact_on("Rosenbrock", &bend, &[1.0, 1.0], 0.03, &[&|x| x[0], &|x| x[1], &fold], &truth);
}

#[test]
fn exact_samplers_are_exact_on_two_peaks_and_narrow_laws() {
    // Three tenths about -1.5 and seven about 1.5, of unit variance.
    let mixture = from_fn(1, |x: &[f64], gradient: &mut [f64]| {
        let part = |weight: f64, mean: f64| weight * (-0.5 * (x[0] - mean).powi(2)).exp();
        let (left, right) = (part(0.3, -1.5), part(0.7, 1.5));
        gradient[0] = (left * (x[0] + 1.5) + right * (x[0] - 1.5)) / (left + right);
        -(left + right).ln()
    });
    // The mean is 0.6 and the mean square 1 + 1.5^2.
    let truth = [(0.6, 2.89_f64.sqrt()), (3.25, 3.0)];
    exact_on("mixture", &mixture, &[1.0], 0.5, &[&|x| x[0], &|x| x[0] * x[0]], &truth);

    let truth = [(0.0, 0.5005_f64.sqrt()), (1.0, 2.0_f64.sqrt()), (1e-3, 1e-3 * 2.0_f64.sqrt())];
    let wide = |x: &[f64]| 0.5 * (x[0] + x[1]).powi(2);
    let across = |x: &[f64]| 0.5 * (x[0] - x[1]).powi(2);
    exact_on("condition 1000", &narrow(), &[0.1; 2], 1e-3, &[&|x| x[0], &wide, &across], &truth);
}

#[test]
fn exact_samplers_are_exact_on_positive_unknowns() {
    // Shapes 0.7 and 4: the first density is infinite at zero.
    let gammas = LogMapped::new(Gammas::new(vec![0.7, 4.0], vec![1.0, 2.0]).unwrap());
    let truth = [(0.7, 0.7_f64.sqrt()), (2.0, 1.0)];
    exact_on("log map of Gammas", &gammas, &[-0.5, 0.5], 0.5, &[&|x| x[0].exp(), &|x| x[1].exp()], &truth);

    // A normal law of mean 1/2 and unit variance, cut at zero: mean m + r and variance 1 - m r - r^2, where r is the
    // ratio of density and probability at m = 1/2.
    let (m, r): (f64, f64) = (0.5, 0.352_065_326_764_3 / 0.691_462_461_274_0);
    let truth = [(m + r, (1.0 - m * r - r * r).sqrt())];
    let cut = from_fn(1, |x: &[f64], gradient: &mut [f64]| {
        gradient[0] = x[0] - 0.5;
        0.5 * (x[0] - 0.5).powi(2)
    });
    exact_on(
        "log map of a truncated normal",
        &LogMapped::new(cut.clone()),
        &[0.0],
        0.5,
        &[&|x| x[0].exp()],
        &truth,
    );
    exact_on("mirrored truncated normal", &Mirrored::new(cut), &[0.5], 0.5, &[&|x| x[0].abs()], &truth);
}

/// Separated interleaved chains give the standard error that runs from other seeds show; treated as one chain, they
/// give too small an error.
#[test]
fn standard_errors_of_interleaved_chains_are_those_between_runs() {
    let memory = 5;
    let initial_scale = InitialScale::Fixed(0.3);
    let settings =
        HamcmcSettings { gradient: constant(0.03), memory, initial_scale, ..HamcmcSettings::default() };
    let target = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
    let schedule = Schedule { burn_in: 500, draws: 4_000 };
    let (mut means, mut claimed, mut naive) = (Vec::new(), 0.0, 0.0);
    for seed in 0..40 {
        let hamcmc = |streams| Hamcmc::new(2, 1, settings, streams);
        let sampled = sample(&target, &[vec![1.0, -0.5]], schedule, SeedTree::new(seed), hamcmc).unwrap();
        assert_eq!((sampled.traces(0).len(), sampled.traces(0)[0].len()), (memory, 800));
        assert_eq!(sampled.traces(0)[1][1], sampled.draws(0).nth(memory + 1).unwrap()[0]);
        let one: Vec<f64> = sampled.draws(0).map(|theta| theta[0]).collect();
        means.push(sampled.parameters[0].mean);
        claimed += sampled.parameters[0].standard_error.powi(2) / 40.0;
        naive += diagnostics::standard_error(&[one]).powi(2) / 40.0;
    }
    let between = diagnostics::mean_and_variance(&means).1;
    let (claimed, naive) = ((claimed / between).sqrt(), (naive / between).sqrt());
    println!("of the error between runs: {claimed:.2} told apart, {naive:.2} as one");
    assert!((0.75..1.35).contains(&claimed), "{claimed}");
    assert!(naive < 0.6, "{naive}");
    let few = Schedule { burn_in: 0, draws: 19 };
    let hamcmc = |streams| Hamcmc::new(2, 1, settings, streams);
    let error = sample(&target, &[vec![1.0, -0.5]], few, SeedTree::new(1), hamcmc);
    assert!(matches!(error, Err(SamplerError::Setting { value: 3.0, .. })), "{error:?}");
}

/// Where past gradients are zero, PSGLD moves by 45: far beyond a target whose scale is a thousandth.
#[test]
fn runaways_are_divergences() {
    let narrow = Gaussian::new(vec![0.0; 2], vec![1e6, 0.0, 0.0, 1e6]).unwrap();
    let wide = Gaussian::new(vec![0.0; 2], vec![1e-2, 0.0, 0.0, 1e-2]).unwrap();
    for (target, runs_away) in [(narrow, true), (wide, false)] {
        let psgld = Psgld::new(2, 1, PsgldSettings::default(), SeedTree::new(1)).unwrap();
        let mut chain = Chain::new(target, psgld, vec![0.0; 2]).unwrap();
        chain.run(3, |_| ());
        assert_eq!(chain.statistics().divergences > 0, runs_away);
    }
    // HAMCMC, whose first matrix is a million times too large.
    let narrow = Gaussian::new(vec![0.0; 2], vec![1e6, 0.0, 0.0, 1e6]).unwrap();
    let hamcmc = Hamcmc::new(2, 1, HamcmcSettings::default(), SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(narrow, hamcmc, vec![0.0; 2]).unwrap();
    chain.run(3, |_| ());
    assert!(chain.statistics().divergences > 0);
}
