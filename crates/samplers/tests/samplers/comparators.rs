//! NUTS, Riemann manifold HMC, Fisher scoring and the recipe's own sampler: stationary laws against the exact answer.

use crate::proof::targets::WithMetric;
use crate::proof::{self, Problem, constant};
use alphamf_samplers::random::{SeedTree, SeededRng};
use alphamf_samplers::recipe::*;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;

/// Asserts that a sampler finds the known moments, within five standard errors of a bias of so many deviations.
fn assert_moments(
    name: &str,
    problem: &Problem,
    tolerance: f64,
    steps: usize,
    sampler: impl Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync,
) {
    let estimates = proof::estimate(problem, sampler, tolerance == 0.0, (1_000, steps));
    let (errors, precision) = proof::worst(problem, &estimates, tolerance);
    println!("{name} on {}: {errors:.1} standard errors, precision {precision:.3}", problem.name);
    assert!(
        errors < 5.0 && precision < 0.06,
        "{name} on {}: {errors} {precision} {estimates:?}",
        problem.name
    );
}

#[test]
fn nuts_is_exact() {
    let nuts = |n: usize, mass: Option<Matrix>| {
        move |streams| -> Box<dyn Sampler<f64>> {
            let nuts = Nuts::new(n, 1, NutsSettings::default(), streams).unwrap();
            Box::new(match &mass {
                None => nuts,
                Some(mass) => nuts.with_mass(mass).unwrap(),
            })
        }
    };
    assert_moments("NUTS", &proof::gaussian(), 0.0, 3_000, nuts(2, None));
    assert_moments("NUTS", &proof::two_peaks(), 0.0, 6_000, nuts(1, None));
    assert_moments("NUTS", &proof::banana(), 0.0, 4_000, nuts(2, None));
    assert_moments("NUTS", &proof::log_gammas(), 0.0, 3_000, nuts(2, None));
    let mass = Matrix::Dense(vec![1.0, 0.8, 0.8, 2.0]);
    assert_moments("NUTS with a mass", &proof::banana(), 0.0, 4_000, nuts(2, Some(mass)));
    // Trajectories that always end at the maximum depth leave it exact.
    let short = NutsSettings { depth: 2, ..NutsSettings::default() };
    assert_moments("NUTS of 3 leaps", &proof::banana(), 0.0, 10_000, |streams| {
        Box::new(Nuts::new(2, 1, short, streams).unwrap())
    });
}

/// At a step whose energy errors are large, the weights within a trajectory and of its halves decide.
#[test]
fn nuts_is_exact_at_long_steps() {
    let settings = NutsSettings { step_size: 1.8, ..NutsSettings::default() };
    let nuts = Nuts::new(2, 1, settings, SeedTree::new(8)).unwrap();
    let target = Gaussian::new(vec![0.0; 2], vec![1.0, 0.0, 0.0, 0.01]).unwrap();
    let mut chain = Chain::new(target, nuts, vec![0.5; 2]).unwrap();
    let mut squares: Vec<f64> = Vec::new();
    chain.run(100_000, |draw: Draw<'_, f64>| squares.push(draw.theta[0].powi(2)));
    let mean = squares.iter().sum::<f64>() / squares.len() as f64;
    let error = diagnostics::standard_error(&[squares]);
    println!("second moment {mean:.4} +- {error:.4}");
    assert!((mean - 1.0).abs() < 4.0 * error && error < 0.01, "{mean} +- {error}");
}

/// Trajectories follow the scale of the target, and blocks have trees of their own.
#[test]
fn nuts_turns_where_it_should() {
    let target = proof::narrow();
    let nuts = Nuts::new(2, 1, NutsSettings::default(), SeedTree::new(1)).unwrap();
    let mut chain = Chain::new(target, nuts, vec![0.1; 2]).unwrap();
    chain.burn_in(500);
    let mut wide = Vec::new();
    chain.run(2_000, |draw| wide.push(draw.theta[0] + draw.theta[1]));
    let size = diagnostics::effective_size_mean(&[wide]);
    println!("effective size {size:.0} of 2000, acceptance {:.2}", chain.statistics().acceptance());
    assert!(size > 200.0 && (0.7..0.95).contains(&chain.statistics().acceptance()));

    // About a quarter of a turn is pi / 2 in units of the deviation; a turn back needs a half.
    let mut nuts =
        Nuts::new(1, 1, NutsSettings { step_size: 0.1, ..NutsSettings::default() }, SeedTree::new(2))
            .unwrap();
    let mut target = Gaussian::equicorrelated(1, 1.0, 0.0);
    let (mut theta, mut leaps, mut limited) = (vec![0.5], 0, 0);
    for _ in 0..400 {
        limited += nuts.step(&mut target, &mut theta).depth_limited;
        leaps += nuts.leaps().sum::<usize>();
    }
    println!("{} leaps", leaps as f64 / 400.0);
    assert!((15.0..40.0).contains(&(leaps as f64 / 400.0)) && limited == 0);

    // A tree of depth 2 has three leapfrog steps, which the report counts, without divergences.
    let settings = NutsSettings { step_size: 0.01, depth: 2, ..NutsSettings::default() };
    let mut nuts = Nuts::new(1, 1, settings, SeedTree::new(2)).unwrap();
    let step = nuts.step(&mut target, &mut theta);
    let of_step = (step.depth_limited, step.divergences);
    assert_eq!((nuts.leaps().collect::<Vec<_>>(), of_step), (vec![3], (1, 0)));

    let run = |blocks: usize| {
        let mut target = Gaussian::equicorrelated(3, 4.0, 1.0).with_blocks(blocks);
        let mut nuts = Nuts::<f64>::new(3, blocks, NutsSettings::default(), SeedTree::new(4)).unwrap();
        let mut chain = Chain::new(&mut target, &mut nuts, vec![0.5; 3 * blocks]).unwrap();
        chain.burn_in(5);
        chain.run(5, |_| ());
        chain.state().to_vec()
    };
    assert_eq!(run(1), run(4)[..3]);
    let deep = NutsSettings { depth: 0, ..NutsSettings::default() };
    assert!(matches!(Nuts::<f64>::new(1, 1, deep, SeedTree::new(1)), Err(SamplerError::Setting { .. })));
}

/// A metric that is dense and varies: `A + theta theta'`.
#[derive(Clone)]
struct Curved;

impl Metric<f64> for Curved {
    fn is_diagonal(&self) -> bool {
        false
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        let base = [1.0, 0.4, 0.4, 1.5];
        metric.iter_mut().enumerate().for_each(|(k, g)| *g = base[k] + theta[k % 2] * theta[k / 2]);
    }
}

fn curved() -> Problem {
    fn law() -> WithMetric<Gaussian, Curved> {
        let law = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
        WithMetric { law, metric: Curved }
    }
    Problem { name: "Gaussian, curved metric", target: || Box::new(law()), ..proof::gaussian() }
}

#[test]
fn riemann_manifold_hmc_is_exact() {
    let rmhmc = |n: usize, leaps: usize| {
        move |streams| -> Box<dyn Sampler<f64>> {
            let settings = HmcSettings { leaps, step_size: 0.3, ..HmcSettings::default() };
            Box::new(Rmhmc::new(n, 1, settings, streams).unwrap())
        }
    };
    assert_moments("RMHMC", &proof::gaussian(), 0.0, 1_500, rmhmc(2, 4));
    assert_moments("RMHMC", &proof::two_peaks(), 0.0, 6_000, rmhmc(1, 5));
    assert_moments("RMHMC", &proof::banana(), 0.0, 2_000, rmhmc(2, 6));
    assert_moments("RMHMC", &curved(), 0.0, 2_000, rmhmc(2, 4));
    let mut rmhmc = Rmhmc::<f64>::new(2, 1, HmcSettings::default(), SeedTree::new(1)).unwrap();
    let error = Chain::new(Funnel { scale: 3.0 }, &mut rmhmc, vec![0.0; 2]).err();
    assert!(matches!(error, Some(SamplerError::Capability { sampler: "RMHMC", .. })));
}

/// The diagonal of [`Curved`].
#[derive(Clone)]
struct Stretched;

impl Metric<f64> for Stretched {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        metric.iter_mut().zip([1.0, 1.5]).zip(theta).for_each(|((g, base), x)| *g = base + x * x);
    }
}

/// Wrong forces keep the stationary distribution but not the energy; at short steps the energy must be conserved.
#[test]
fn riemann_manifold_hmc_keeps_its_energy() {
    let problem = curved();
    let settings = HmcSettings { leaps: 20, step_size: 0.02, jitter: 0.0, ..HmcSettings::default() };
    let law = Gaussian::new(vec![1.0, -0.5], vec![2.0, 1.2, 1.2, 1.5]).unwrap();
    let stretched: Box<dyn Target<f64>> = Box::new(WithMetric { law, metric: Stretched });
    for target in [(problem.target)(), stretched] {
        let rmhmc = Rmhmc::new(2, 1, settings, SeedTree::new(6)).unwrap();
        let mut chain = Chain::new(target, rmhmc, problem.start.clone()).unwrap();
        chain.run(200, |_| ());
        let acceptance = chain.statistics().acceptance();
        assert!(acceptance > 0.999, "{acceptance}");
    }
}

/// `N` observations of a Gaussian mean, whose empirical covariance equals the true one, as Fisher scoring assumes.
#[derive(Clone)]
struct Means {
    observations: Vec<[f64; 2]>,
}

/// The covariance of an observation and its inverse.
const SCATTER: [f64; 4] = [2.0, 1.2, 1.2, 1.5];

impl Means {
    fn precision() -> [f64; 4] {
        let [a, b, _, c] = SCATTER;
        let determinant = a * c - b * b;
        [c / determinant, -b / determinant, -b / determinant, a / determinant]
    }

    /// Points on a stretched circle: mean zero, covariance exact to rounding.
    fn new(count: usize) -> Self {
        let root = [SCATTER[0].sqrt(), SCATTER[1] / SCATTER[0].sqrt()];
        let rest = (SCATTER[3] - root[1] * root[1]).sqrt();
        let point = |k: usize| {
            let angle = 2.0 * std::f64::consts::PI * k as f64 / count as f64;
            let (x, y) = (2.0_f64.sqrt() * angle.cos(), 2.0_f64.sqrt() * angle.sin());
            [root[0] * x, root[1] * x + rest * y]
        };
        Self { observations: (0..count).map(point).collect() }
    }
}

impl Target<f64> for Means {
    fn dimension(&self) -> usize {
        2
    }

    fn terms(&self) -> usize {
        self.observations.len()
    }

    fn gradient(&mut self, theta: &[f64], batch: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.fill(0.0);
        let precision = Self::precision();
        for term in batch.iter() {
            let away = [0, 1].map(|i| batch.scale() * (theta[i] - self.observations[term][i]));
            (0..2).for_each(|i| gradient[i] += precision[i] * away[0] + precision[2 + i] * away[1]);
        }
    }

    fn potential(&mut self, theta: &[f64], potential: &mut [f64]) {
        let precision = Self::precision();
        let value = |x: &[f64; 2]| {
            let away = [theta[0] - x[0], theta[1] - x[1]];
            0.5 * (precision[0] * away[0] * away[0] + precision[3] * away[1] * away[1])
                + precision[1] * away[0] * away[1]
        };
        potential[0] = self.observations.iter().map(value).sum();
    }
}

/// At a step for which the Langevin sampler is far too hot, Fisher scoring draws the posterior.
#[test]
fn fisher_scoring_is_exact_where_the_posterior_is_its_gaussian() {
    const TERMS: usize = 200;
    let exact = SCATTER.map(|value| value / TERMS as f64);
    let run = |sampler: Box<dyn Sampler<f64>>| {
        let mut chain = Chain::new(Means::new(TERMS), sampler, vec![0.0; 2]).unwrap();
        chain.burn_in(1_000);
        let mut sums = [0.0; 3];
        chain.run(40_000, |draw| {
            let [x, y] = [draw.theta[0], draw.theta[1]];
            [x * x, x * y, y * y].iter().zip(&mut sums).for_each(|(value, sum)| *sum += value / 4e4);
        });
        let away = [sums[0] / exact[0] - 1.0, (sums[1] - exact[1]) / exact[0], sums[2] / exact[3] - 1.0];
        (away, away.iter().fold(0.0, |worst: f64, away| worst.max(away.abs())))
    };
    for (step, size) in [(0.05, 20), (0.01, 20), (0.02, 5)] {
        let gradient = GradientSettings { minibatch: Some(size), ..constant(step) };
        let sgfs = || Sgfs::new(2, 1, gradient, SeedTree::new(2)).unwrap();
        let fisher = run(Box::new(sgfs()));
        let conditioner = Matrix::Dense(Means::precision().map(|value| 3.0 * value).to_vec());
        let conditioned = run(Box::new(sgfs().with_conditioner(&conditioner).unwrap()));
        // The same preconditioner's step, by the rule of Langevin dynamics.
        let langevin = run(Box::new(
            Sgld::new(
                2,
                1,
                GradientSettings { step_size: StepSize::Constant(step / 4.0), ..gradient },
                SeedTree::new(2),
            )
            .unwrap(),
        ));
        println!(
            "step {step}, {size} terms: {:.3?}, with B {:.3?}, SGLD {:.3?}",
            fisher.0, conditioned.0, langevin.0
        );
        assert!(fisher.1 < 0.09 && conditioned.1 < 0.09 && langevin.1 > 0.25);
    }
    // The estimate of the information equals that of the observations.
    let gradient = GradientSettings { minibatch: Some(20), ..constant(0.01) };
    let mut sgfs = Sgfs::new(2, 1, gradient, SeedTree::new(2)).unwrap();
    let (mut target, mut theta) = (Means::new(TERMS), [0.0; 2]);
    for _ in 0..2_000 {
        sgfs.step(&mut target, &mut theta);
    }
    assert_eq!(sgfs.information(0).len(), 4);
    for (found, precision) in sgfs.information(0).iter().zip(Means::precision()) {
        assert!((found / (TERMS as f64 * precision) - 1.0).abs() < 0.1, "{found}, {precision}");
    }
    let none = Sgfs::<f64>::new(2, 1, constant(0.1), SeedTree::new(1));
    assert!(matches!(none, Err(SamplerError::Setting { .. })));
}

/// The same steps, folded and not.
#[test]
fn fisher_scoring_folds_its_draws() {
    let mut signs = [0, 0];
    for seed in 0..10 {
        let [plain, folded] = [false, true].map(|mirror| {
            let gradient = GradientSettings { minibatch: Some(20), mirror, ..constant(0.02) };
            let mut sgfs = Sgfs::new(2, 1, gradient, SeedTree::new(seed)).unwrap();
            let mut theta = [0.01, 0.01];
            sgfs.step(&mut Means::new(200), &mut theta);
            theta
        });
        plain.iter().for_each(|x| signs[usize::from(*x < 0.0)] += 1);
        assert_eq!(folded, plain.map(f64::abs));
    }
    assert!(signs.iter().all(|count| *count > 3), "{signs:?}");
}

fn by_recipe<R: Recipe + Clone + Sync + 'static>(
    recipe: R,
    dimension: usize,
    step: f64,
) -> impl Fn(SeedTree) -> Box<dyn Sampler<f64>> + Sync {
    move |streams| Box::new(RecipeSampler::new(dimension, recipe.clone(), constant(step), streams).unwrap())
}

/// Every recipe leaves its target, by theorem 1, and the sampler that simulates it shows that.
#[test]
fn recipes_leave_their_targets_invariant() {
    let one = proof::one_peak;
    assert_moments("Langevin", &proof::gaussian(), 0.04, 30_000, by_recipe(Langevin, 2, 0.03));
    assert_moments("Langevin", &one(), 0.04, 30_000, by_recipe(Langevin, 1, 0.04));
    assert_moments("Riemannian Langevin", &one(), 0.05, 30_000, by_recipe(RiemannianLangevin, 1, 0.03));
    assert_moments("Riemannian Langevin", &curved(), 0.05, 30_000, by_recipe(RiemannianLangevin, 2, 0.04));
    let squares = RootMeanSquare { past: vec![0.5], forgetting: 0.5, regularisation: 0.5 };
    assert_moments("root mean square", &one(), 0.05, 30_000, by_recipe(squares, 1, 0.02));
    assert_moments("friction", &one(), 0.04, 40_000, by_recipe(Friction(1.5), 1, 0.03));
    assert_moments("friction", &proof::gaussian(), 0.05, 40_000, by_recipe(Friction(2.0), 2, 0.03));
    assert_moments("thermostat", &one(), 0.05, 40_000, by_recipe(Thermostat(1.5), 1, 0.03));
    assert_moments("Riemannian friction", &one(), 0.05, 40_000, by_recipe(RiemannianFriction, 1, 0.03));
    assert_moments("Riemannian friction", &curved(), 0.06, 40_000, by_recipe(RiemannianFriction, 2, 0.03));
}

/// `D + Q` the same everywhere: three unknowns, all of which the noise and the curl join.
#[derive(Clone)]
struct Joined;

impl Joined {
    const DIFFUSION: [f64; 9] = [2.0, 0.5, -0.3, 0.5, 1.0, 0.4, -0.3, 0.4, 1.5];
    const CURL: [f64; 9] = [0.0, 0.7, -0.2, -0.7, 0.0, 0.9, 0.2, -0.9, 0.0];
}

impl Recipe for Joined {
    fn matrix(&mut self, _: &mut dyn Target<f64>, _: &[f64], matrix: &mut [f64]) {
        matrix.iter_mut().enumerate().for_each(|(k, value)| *value = Self::DIFFUSION[k] + Self::CURL[k]);
    }
}

/// From where the gradient is zero a step is `N(0, 2 eps D)`, whatever the curl.
#[test]
fn noise_of_a_recipe_is_its_symmetric_part() {
    let (draws, step) = (40_000, 0.01);
    let mut sampler = RecipeSampler::new(3, Joined, constant(step), SeedTree::new(7)).unwrap();
    let mut target = Gaussian::equicorrelated(3, 1.0, 0.0);
    let mut covariance = [0.0; 9];
    for _ in 0..draws {
        let mut theta = [0.0; 3];
        sampler.step(&mut target, &mut theta);
        for (k, sum) in covariance.iter_mut().enumerate() {
            *sum += theta[k % 3] * theta[k / 3] / (2.0 * step * f64::from(draws));
        }
    }
    for (k, (found, expected)) in covariance.iter().zip(Joined::DIFFUSION).enumerate() {
        // Four standard errors.
        let spread = Joined::DIFFUSION[k % 3 * 4] * Joined::DIFFUSION[k / 3 * 4] + expected * expected;
        assert!((found - expected).abs() < 4.0 * (spread / f64::from(draws)).sqrt(), "{k}: {found}");
    }
}

/// A momentum of five that nothing changes.
#[derive(Clone)]
struct Coasting;

impl Recipe for Coasting {
    fn auxiliary(&self, dimension: usize) -> usize {
        dimension
    }

    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        gradient.copy_from_slice(&z[1..]);
    }

    fn matrix(&mut self, _: &mut dyn Target<f64>, _: &[f64], matrix: &mut [f64]) {
        matrix.copy_from_slice(&[0.0, 1.0, -1.0, 0.0]);
    }

    fn start(&self, auxiliary: &mut [f64], _: &mut SeededRng) {
        auxiliary.fill(5.0);
    }
}

#[test]
fn a_recipe_says_where_it_starts_once() {
    let mut sampler = RecipeSampler::new(1, Coasting, constant(0.01), SeedTree::new(1)).unwrap();
    let mut flat = from_fn(1, |_: &[f64], gradient: &mut [f64]| {
        gradient.fill(0.0);
        0.0
    });
    let mut theta = [0.0];
    for step in 1..=3 {
        sampler.step(&mut flat, &mut theta);
        assert!((theta[0] - 0.05 * f64::from(step)).abs() < 1e-12, "{theta:?}");
    }
}

/// A recipe with rows and columns confused: `D - Q`, with the correction of `D + Q`.
#[derive(Clone)]
struct Transposed<R>(R);

impl<R: Recipe> Recipe for Transposed<R> {
    fn auxiliary(&self, dimension: usize) -> usize {
        self.0.auxiliary(dimension)
    }

    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        self.0.auxiliary_gradient(z, gradient);
    }

    fn matrix(&mut self, target: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        let n = z.len();
        let mut straight = vec![0.0; n * n];
        self.0.matrix(target, z, &mut straight);
        (0..n * n).for_each(|k| matrix[k] = straight[k % n * n + k / n]);
    }

    fn correction(&mut self, target: &mut dyn Target<f64>, z: &[f64], correction: &mut [f64]) -> bool {
        if !self.0.correction(target, z, correction) {
            numerical_correction(&mut self.0, target, z, correction);
        }
        true
    }
}

/// Time reversed, `D - Q` leaves the same law; with the wrong correction it does not, where `Q` varies.
#[test]
fn a_transposed_curl_is_caught() {
    let sampler = by_recipe(Transposed(RiemannianFriction), 1, 0.03);
    let problem = proof::one_peak();
    let estimates = proof::estimate(&problem, sampler, false, (1_000, 30_000));
    let (errors, _) = proof::worst(&problem, &estimates, 0.05);
    println!("{errors:.1} standard errors");
    assert!(errors > 8.0, "{errors}");
    // A single step shows momenta of the wrong sign: r' = -grad U.
    let still = GradientSettings { temperature: 0.0, ..constant(1e-3) };
    let mut theta = [2.0];
    let mut sampler = RecipeSampler::new(1, Friction(0.0), still, SeedTree::new(1)).unwrap();
    let mut target = Gaussian::equicorrelated(1, 0.01, 0.0);
    for _ in 0..150 {
        sampler.step(&mut target, &mut theta);
    }
    assert!(theta[0].abs() < 1.0, "a spring pulls back: {theta:?}");
}

/// The information is estimated in the coordinates of the warm-up alone, not in those before.
#[test]
fn fisher_scoring_begins_again_in_other_coordinates() {
    let target = LinearGaussian::synthetic(1, 1_000, 0.1, 0.0, SeedTree::new(4));
    let precision = target.posterior().precision(0, 0);
    // So near the mode the first scale is far too large.
    let start = vec![target.posterior().mean()[0] + 1e-6 / precision.sqrt()];
    let settings = GradientSettings { minibatch: Some(100), ..constant(0.1) };
    let sgfs = Sgfs::<f64>::new(1, 1, settings, SeedTree::new(5)).unwrap();
    let sampler = Preconditioned::new(sgfs, WarmUpSettings::default(), SeedTree::new(6)).unwrap();
    let mut chain = Chain::new(target, sampler, start).unwrap();
    chain.burn_in(300);
    chain.run(300, |_| ());
    let scale = chain.sampler().scales().next().unwrap();
    let ratio = chain.sampler().inner().information(0)[0] / (scale * scale * precision);
    println!("{ratio:.3} of the information, scale {:.3} deviations", scale * precision.sqrt());
    assert!((ratio - 1.0).abs() < 0.5, "{ratio}");
}
