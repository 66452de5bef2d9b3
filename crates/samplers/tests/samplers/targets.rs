//! The example targets in their own and in other coordinates: slopes by differences, values by independent
//! computations, data by their distribution.

use std::f64::consts::PI;

use crate::proof::targets::{
    Named, WithMetric, assert_close, gammas, gradient_at, gradient_on, logistic, targets,
};
use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;
use rand::RngExt;

/// How `f` changes with coordinate `row` of `theta`: central differences.
fn difference(theta: &[f64], row: usize, mut f: impl FnMut(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let step = 1e-5 * (1.0 + theta[row].abs());
    let mut at = |by: f64| {
        let mut theta = theta.to_vec();
        theta[row] += by;
        f(&theta)
    };
    at(step).iter().zip(at(-step)).map(|(after, before)| (after - before) / (2.0 * step)).collect()
}

fn potential_at(target: &mut dyn Target<f64>, theta: &[f64]) -> Vec<f64> {
    let mut potential = vec![f64::NAN; target.blocks()];
    target.potential(theta, &mut potential);
    potential
}

/// The gradient of every block, its estimates from one data term each, and the gradient that comes with the potential.
fn check_gradient(name: &str, target: &mut dyn Target<f64>, theta: &[f64]) {
    let (n, terms) = (target.dimension(), target.terms());
    let gradient = gradient_at(target, theta);
    for row in 0..theta.len() {
        let mut slopes = vec![0.0; target.blocks()];
        slopes[row / n] = gradient[row];
        assert_close(name, &difference(theta, row, |theta| potential_at(target, theta)), &slopes, 1e-6);
    }
    let (mut potential, mut with) = (vec![f64::NAN; target.blocks()], vec![f64::NAN; theta.len()]);
    target.evaluate(theta, &mut potential, &mut with);
    assert_eq!((potential, &with), (potential_at(target, theta), &gradient), "{name}");
    let mut mean = vec![0.0; theta.len()];
    for term in 0..terms {
        let estimate = gradient_on(target, theta, Minibatch::subsample(&[term], terms));
        mean.iter_mut().zip(estimate).for_each(|(mean, slope)| *mean += slope / terms as f64);
    }
    assert_close(name, &mean, &gradient, 1e-9);
}

/// `D` of [`Metric::divergence`] in one block, column-major.
fn diffusion(metric: &mut dyn Metric<f64>, theta: &[f64], inverse: bool) -> Vec<f64> {
    let n = theta.len();
    if !metric.is_diagonal() {
        assert!(inverse);
        let mut g = vec![f64::NAN; n * n];
        metric.metric(theta, &mut g);
        return Gaussian::new(vec![0.0; n], g).unwrap().covariance();
    }
    let (mut g, mut d) = (vec![f64::NAN; n], vec![0.0; n * n]);
    metric.metric(theta, &mut g);
    for (i, g) in g.iter().enumerate() {
        d[i * n + i] = if inverse { 1.0 / g } else { 1.0 / g.sqrt() };
    }
    d
}

/// Checks the divergence that the metric reports, if any.
fn check_divergence(name: &str, (n, metric): (usize, &mut dyn Metric<f64>), theta: &[f64]) {
    for inverse in [true, false] {
        let mut divergence = vec![f64::NAN; theta.len()];
        if metric.is_constant() || !metric.divergence(theta, inverse, &mut divergence) {
            continue;
        }
        for (divergence, theta) in divergence.chunks_exact(n).zip(theta.chunks_exact(n)) {
            let mut expected = vec![0.0; n];
            for row in 0..n {
                let slopes = difference(theta, row, |theta| diffusion(metric, theta, inverse));
                expected.iter_mut().zip(&slopes[row * n..]).for_each(|(sum, slope)| *sum += slope);
            }
            assert_close(name, divergence, &expected, 1e-6);
        }
    }
}

fn check_curvature(name: &str, target: &mut dyn Target<f64>, theta: &[f64]) {
    let Some(curvature) = target.curvature() else { return };
    let mut diagonal = vec![f64::NAN; theta.len()];
    curvature.hessian_diagonal(theta, Minibatch::full(1), &mut diagonal);
    let slope = |row| difference(theta, row, |theta| gradient_at(target, theta))[row];
    let expected: Vec<f64> = (0..theta.len()).map(slope).collect();
    assert_close(name, &diagonal, &expected, 1e-6);
}

/// Potential, gradient and Hessian of every site in every block. A site's potential may leave out what does not depend on it.
fn check_sites(name: &str, target: &mut dyn Target<f64>, theta: &[f64]) {
    let (n, blocks, gradient) = (target.dimension(), target.blocks(), gradient_at(target, theta));
    let Some(sites) = target.sites() else { return };
    for index in 0..sites.count() {
        let rows = sites.site(index).rows;
        let size = rows.len();
        let mut expand = |theta: &[f64]| {
            let [mut u, mut g] = [1, size].map(|size| vec![f64::NAN; size * blocks]);
            let mut h = vec![f64::NAN; size * size * blocks];
            sites.expand(theta, index, &mut u, &mut g, &mut h);
            (u, g, h)
        };
        let (_, g, h) = expand(theta);
        for block in 0..blocks {
            let own = block * n + rows.start..block * n + rows.end;
            let places = block * size..(block + 1) * size;
            assert_close(name, &g[places.clone()], &gradient[own.clone()], 1e-12);
            for (row, column) in own.zip(h[size * places.start..].chunks_exact(size)) {
                let mut slopes = vec![0.0; blocks];
                slopes[block] = gradient[row];
                assert_close(name, &difference(theta, row, |theta| expand(theta).0), &slopes, 1e-6);
                let bends = difference(theta, row, |theta| expand(theta).1);
                assert_close(name, column, &bends[places.clone()], 1e-6);
            }
        }
    }
}

/// Targets of several blocks, or of more shapes than [`targets`] has.
fn more_targets() -> Vec<Named> {
    let gaussian = || Gaussian::new(vec![1.0, 2.0], vec![2.0, 0.5, 0.5, 1.0]).unwrap().with_blocks(2);
    let four = vec![0.3, -1.0, 0.8, 0.4];
    vec![
        ("Gaussians", Box::new(gaussian()), four.clone()),
        ("their logarithms", Box::new(LogMapped::new(gaussian())), four.clone()),
        ("half their logarithms", Box::new(LogMapped::rows(gaussian(), 1..2)), four.clone()),
        ("mirrored Gaussians", Box::new(Mirrored::new(gaussian())), four),
        ("quartics", Box::new(Quartic::new(1.0, -2.0).with_blocks(3)), vec![-1.3, 0.2, 0.9]),
        ("blocks of Gammas", Box::new(gammas().with_blocks(2)), vec![0.8, 1.6, 0.2, 4.0]),
    ]
}

#[test]
fn derivatives_of_the_targets_match_differences() {
    for (name, mut target, theta) in targets().into_iter().chain(more_targets()) {
        let n = target.dimension();
        assert_eq!(n * target.blocks(), theta.len(), "{name}");
        check_gradient(name, &mut *target, &theta);
        if let Some(metric) = target.metric() {
            check_divergence(name, (n, metric), &theta);
        }
        check_curvature(name, &mut *target, &theta);
        check_sites(name, &mut *target, &theta);
    }
}

/// What a target offers.
struct Offer {
    /// Whether the metric is diagonal, and for which of `[G^-1, its root]` it offers the divergence.
    metric: Option<(bool, [bool; 2])>,
    curvature: bool,
    /// First row, number of rows and support of each site.
    sites: Option<Vec<(usize, usize, Support)>>,
}

fn check_offer(name: &str, target: &mut dyn Target<f64>, theta: &[f64], offer: Offer) {
    let metric = target.metric().map(|metric| {
        let mut divergence = vec![f64::NAN; theta.len()];
        let knows = [true, false].map(|inverse| metric.divergence(theta, inverse, &mut divergence));
        (metric.is_diagonal(), knows)
    });
    assert_eq!(metric, offer.metric, "{name}");
    assert_eq!(target.curvature().is_some(), offer.curvature, "{name}");
    let sites = target.sites().map(|sites| {
        let site = |index| {
            let Site { rows, support } = sites.site(index);
            (rows.start, rows.len(), support)
        };
        (0..sites.count()).map(site).collect()
    });
    assert_eq!(sites, offer.sites, "{name}");
}

#[test]
fn targets_offer_what_they_have() {
    use Support::{HalfLine, Real, Simplex};
    let (dense, diagonal, inverse) = (Some((false, [false; 2])), Some((true, [true; 2])), [true, false]);
    for (name, mut target, theta) in targets() {
        let n = theta.len();
        let (metric, curvature, sites) = match name {
            "Gaussian" | "equicorrelated" | "linear" => (dense, true, vec![(0, n, Real)]),
            "quartic" | "one peak" | "low peaks" => (diagonal, true, vec![(0, 1, Real)]),
            "banana" => (diagonal, false, vec![(0, 2, Real)]),
            "funnel" => (None, false, vec![(0, 1, Real), (1, 1, Real)]),
            "Gammas" | "units" => (diagonal, true, vec![(0, 1, HalfLine), (1, 1, HalfLine)]),
            "mirrored" | "log map" => (diagonal, true, vec![(0, 1, Real), (1, 1, Real)]),
            "half log map" => (diagonal, true, vec![(0, 1, HalfLine), (1, 1, Real)]),
            "no closed divergence" => (Some((true, [false; 2])), false, vec![]),
            "Dirichlet" => (None, false, vec![(0, 3, Simplex)]),
            "logistic" => (Some((false, inverse)), false, vec![(0, 3, Real)]),
            "part log map" => (None, false, vec![(0, 1, Real), (1, 1, Real), (2, 1, Real), (3, 2, Real)]),
            "robust" => (None, false, vec![(0, 1, HalfLine), (1, 1, HalfLine), (2, 1, Real), (3, 2, Real)]),
            _ => panic!("{name}"),
        };
        let sites = (!sites.is_empty()).then_some(sites);
        check_offer(name, &mut *target, &theta, Offer { metric, curvature, sites });
    }
    // A simplex is no simplex in other coordinates, unless none of its rows is mapped.
    let simplex = || Dirichlet::new(vec![3.0, 0.5, 1.0]);
    let units = [0.5, 3.0, 1.0];
    let mapped: [(Box<dyn Target<f64>>, _); 4] = [
        (Box::new(Mirrored::new(simplex())), None),
        (Box::new(Scaled::new(simplex(), &units)), None),
        (Box::new(LogMapped::new(simplex())), None),
        (Box::new(LogMapped::rows(simplex(), 3..4)), Some(vec![(0, 3, Simplex)])),
    ];
    let offer = |sites| Offer { metric: None, curvature: false, sites };
    for (mut target, sites) in mapped {
        check_offer("simplex", &mut *target, &[0.5, 0.2, 0.3], offer(sites));
    }
    let mut nothing = LogMapped::new(from_fn(2, |_: &[f64], _: &mut [f64]| 0.0));
    check_offer("closure", &mut nothing, &[0.0; 2], offer(None));
}

/// A target that stays the same between steps does so in other coordinates.
#[test]
fn fixed_targets_are_fixed_in_other_coordinates() {
    let fixed = || from_fn(2, |_: &[f64], _: &mut [f64]| 0.0);
    let units = [0.5, 3.0];
    let is_fixed = |target: &dyn Target<f64>| target.is_fixed();
    assert!(is_fixed(&Mirrored::new(fixed())) && is_fixed(&LogMapped::new(fixed())));
    assert!(is_fixed(&Scaled::new(fixed(), &units)));
    // The targets of this library are fixed; a target with any custom metric is not.
    let gaussian = || Gaussian::equicorrelated(2, 4.0, 1.0);
    assert!(is_fixed(&gaussian()) && !is_fixed(&Mirrored::new(WithMetric { law: gaussian(), metric: Flat })));
    assert!(is_fixed(&gammas()) && is_fixed(&Quartic::new(0.0, 1.0)) && is_fixed(&Funnel { scale: 3.0 }));
    assert!(is_fixed(&logistic()) && is_fixed(&Dirichlet::new(vec![1.0; 2])));
}

/// The same metric everywhere, diagonal.
struct Flat;

impl Metric<f64> for Flat {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, _: &[f64], metric: &mut [f64]) {
        metric.fill(3.0);
    }

    fn is_constant(&self) -> bool {
        true
    }
}

/// A constant metric stays constant in fixed units, and not in logarithms; where signs change, if it is diagonal.
#[test]
fn constant_metrics_are_known_in_other_coordinates() {
    let dense = || Gaussian::equicorrelated(2, 4.0, 1.0);
    let flat = || WithMetric { law: dense(), metric: Flat };
    let constant = |target: &mut dyn Target<f64>| target.metric().unwrap().is_constant();
    let units = [0.5, 3.0];
    assert!(constant(&mut dense()) && constant(&mut flat()));
    assert!(constant(&mut Scaled::new(dense(), &units)) && constant(&mut Scaled::new(flat(), &units)));
    assert!(!constant(&mut LogMapped::new(dense())) && !constant(&mut LogMapped::new(flat())));
    assert!(!constant(&mut Mirrored::new(dense())) && constant(&mut Mirrored::new(flat())));
    assert!(!constant(&mut Mirrored::new(gammas())));
}

/// A map `theta(x)` with Jacobian `J` turns a dense metric `G` into `J' G J`.
#[test]
fn dense_metrics_follow_the_map() {
    let metric = |target: &mut dyn Target<f64>, x: &[f64]| {
        let metric = target.metric().unwrap();
        assert!(!metric.is_diagonal());
        let mut values = vec![f64::NAN; x.len() * x.len()];
        metric.metric(x, &mut values);
        values
    };
    let theta = [0.5, 0.2, 1.3];
    let inner = metric(&mut logistic(), &theta);
    let units = [0.5, 3.0, 2.0];
    let logarithms = theta.map(f64::ln);
    let signed = [0.5, -0.2, -1.3];
    let scaled = [1.0, 0.2 / 3.0, 0.65];
    for (mapped, jacobian) in [
        (metric(&mut LogMapped::new(logistic()), &logarithms), theta),
        (metric(&mut Mirrored::new(logistic()), &signed), signed.map(f64::signum)),
        (metric(&mut Scaled::new(logistic(), &units), &scaled), units),
    ] {
        let expected: Vec<f64> = (0..9).map(|k| inner[k] * jacobian[k % 3] * jacobian[k / 3]).collect();
        assert_close("metric", &mapped, &expected, 1e-9);
    }
}

/// In other coordinates, a target of several blocks gives for each block the values of that block alone.
#[test]
fn other_coordinates_are_those_of_every_block() {
    const BLOCKS: usize = 3;
    let gaussian = || Gaussian::new(vec![1.0, 2.0], vec![2.0, 0.5, 0.5, 1.0]).unwrap();
    fn of(target: &mut dyn Target<f64>, x: &[f64]) -> [Vec<f64>; 6] {
        let blocks = x.len() / 2;
        let [mut potential, mut u] = [vec![0.0; blocks], vec![0.0; blocks]];
        let [mut gradient, mut g] = [vec![0.0; 2 * blocks], vec![0.0; 2 * blocks]];
        let [mut metric, mut h] = [vec![0.0; 4 * blocks], vec![0.0; 4 * blocks]];
        target.evaluate(x, &mut potential, &mut gradient);
        target.metric().unwrap().metric(x, &mut metric);
        target.sites().unwrap().expand(x, 0, &mut u, &mut g, &mut h);
        [potential, gradient, metric, u, g, h]
    }
    let units = [0.5, 3.0].repeat(BLOCKS);
    type Make<'a> = Box<dyn Fn(usize) -> Box<dyn Target<f64> + 'a> + 'a>;
    let targets: [(&str, Make<'_>); 3] = [
        (
            "units",
            Box::new(|blocks| Box::new(Scaled::new(gaussian().with_blocks(blocks), &units[..2 * blocks]))),
        ),
        ("logarithms", Box::new(|blocks| Box::new(LogMapped::new(gaussian().with_blocks(blocks))))),
        ("mirrored", Box::new(|blocks| Box::new(Mirrored::new(gaussian().with_blocks(blocks))))),
    ];
    let x = [0.3, -0.7, 1.1, 0.2, -0.4, 0.9];
    for (name, target) in targets {
        let together = of(&mut *target(BLOCKS), &x);
        let mut alone: [Vec<f64>; 6] = Default::default();
        for x in x.chunks_exact(2) {
            alone.iter_mut().zip(of(&mut *target(1), x)).for_each(|(all, one)| all.extend(one));
        }
        for (together, alone) in together.iter().zip(&alone) {
            assert_close(name, together, alone, 1e-12);
        }
    }
}

/// The closed moments of the targets, and the likelihoods of what is held out, against sums over a grid.
#[test]
fn what_targets_say_in_closed_form_is_what_their_densities_say() {
    let grid = |low: f64, high: f64| (0..4000).map(move |k| low + (high - low) * (k as f64 + 0.5) / 4000.0);
    let moments = |density: &dyn Fn(f64) -> f64, low: f64, high: f64| {
        let sum = |power: i32| grid(low, high).map(|x| x.powi(power) * density(x)).sum::<f64>();
        let mean = sum(1) / sum(0);
        (mean, sum(2) / sum(0) - mean * mean)
    };
    let (_, square) = moments(&|x| (-x.powi(4) / 10.0).exp(), -5.0, 5.0);
    let (_, fourth) = moments(&|x| 0.5 * x.powf(-0.5) * (-x * x / 10.0).exp(), 0.0, 25.0);
    // Of y = (x^2 + z) / 4 - 1.2, where x^2 has the second law and z is standard normal.
    let expected = [0.0, square / 4.0 - 1.2, square, (fourth + 1.0) / 16.0];
    assert_close("banana", &Banana::moments(), &expected, 5e-3);
    let gamma = |x: f64| x * x * (-2.0 * x).exp();
    let (mean, variance) = moments(&gamma, 0.0, 30.0);
    assert_close("gamma", &[gammas().moments()[0].0, gammas().moments()[0].1], &[mean, variance], 1e-4);
    assert_eq!(gammas().moments()[1], (0.5, 0.5));
    let gaussian = Gaussian::equicorrelated(3, 4.0, 1.0);
    let expected: Vec<f64> = (0..9).map(|k| if k % 4 == 0 { 5.0 } else { 1.0 }).collect();
    assert_close("equicorrelated", &gaussian.covariance(), &expected, 1e-12);
    // The likelihood of one observation is a density, whose scale is that of a t law: nu / (nu - 2).
    let theta = [5.0, 0.7, 0.4, -1.5, 2.0];
    let density = |y: f64| RobustRegression::log_likelihood(&[0.5, 1.0], &[y], &theta).exp();
    let total = grid(-60.0, 60.0).map(density).sum::<f64>() * 120.0 / 4000.0;
    let (mean, variance) = moments(&density, -60.0, 60.0);
    let expected = [1.0, 0.4 - 0.75 + 2.0, 0.49 * 5.0 / 3.0];
    assert_close("robust", &[total, mean, variance], &expected, 2e-3);
    let two = RobustRegression::log_likelihood(&[0.5, 1.0, 0.0, 0.0], &[1.0, 2.0], &theta);
    let each = [density(1.0).ln(), RobustRegression::log_likelihood(&[0.0; 2], &[2.0], &theta)];
    assert!((two - 0.5 * (each[0] + each[1])).abs() < 1e-12);
    let loss = LogisticRegression::loss(&[1.0, 2.0, 1.0, -1.0], &[true, false], &[0.3, 0.5]);
    let expected = 0.5 * ((1.0 + (-1.3_f64).exp()).ln() + (1.0 + (-0.2_f64).exp()).ln());
    assert!((loss - expected).abs() < 1e-12, "{loss}");
}

/// Eight points of so many regressors.
fn regressors(slopes: usize) -> Vec<f64> {
    let mut stream = SeedTree::new(1).rng(0);
    (0..8 * slopes).map(|_| stream.random_range(-1.5..2.0)).collect()
}

fn close(found: f64, expected: f64, what: &str) {
    assert_close(what, &[found], &[expected], 1e-9);
}

#[test]
fn potentials_are_infinite_where_nothing_lies() {
    let mut gamma = Gammas::new(vec![0.5], vec![1.0]).unwrap();
    for x in [0.0, -1.0] {
        assert_eq!(potential_at(&mut gamma, &[x]), [f64::INFINITY]);
    }
    let mut robust = RobustRegression::new(&regressors(1), regressors(1), 1).unwrap();
    for [nu, sigma] in [[0.0, 1.0], [1.0, 0.0], [-1.0, 1.0], [1.0, -1.0]] {
        assert_eq!(potential_at(&mut robust, &[nu, sigma, 0.0, 0.0]), [f64::INFINITY], "{nu} {sigma}");
    }
}

/// `G^-1 = 1.5 sqrt(U - min U + 1/2)`, the minimum found on a grid.
#[test]
fn the_metric_of_a_quartic_grows_from_its_minimum() {
    for (quartic, quadratic) in [(0.0, 0.5), (1.0, -2.0), (0.3, -1.0)] {
        let mut target = Quartic::new(quartic, quadratic);
        let grid = (-30_000..=30_000).map(|k| f64::from(k) * 1e-4);
        let least = grid.map(|x| target.value(x)).fold(f64::INFINITY, f64::min);
        for x in [-1.3, 0.2, 0.9] {
            let expected = 1.5 * (target.value(x) - least + 0.5).sqrt();
            close(diffusion(&mut target, &[x], true)[0], expected, "metric");
        }
    }
}

/// Means under `exp(-x^2 / 2)`, and under a sum over a fine grid for two peaks.
#[test]
fn expectations_are_those_of_the_law() {
    let normal = Quartic::new(0.0, 0.5);
    close(normal.expectation(|x| x * x), 1.0, "x^2");
    close(normal.expectation(|x| x.powi(4)), 3.0, "x^4");
    close(normal.expectation(|x| x), 0.0, "x");
    let peaks = Quartic::new(1.0, -2.0);
    let weighted = |f: fn(f64) -> f64| -> f64 {
        (-5_000..5_000).map(|k| (f64::from(k) + 0.5) * 1e-3).map(|x| f(x) * (-peaks.value(x)).exp()).sum()
    };
    close(peaks.expectation(|x| x * x), weighted(|x| x * x) / weighted(|_| 1.0), "x^2 on two peaks");
}

#[test]
fn moments_of_a_dirichlet_are_its_textbook_ones() {
    let moments = Dirichlet::new(vec![2.0, 3.0, 5.0]).moments();
    let expected = [(0.2, 0.16 / 11.0), (0.3, 0.21 / 11.0), (0.5, 0.25 / 11.0)];
    for (found, expected) in moments.into_iter().zip(expected) {
        close(found.0, expected.0, "mean");
        close(found.1, expected.1, "variance");
    }
}

/// The prior's potential and the likelihood's, both written out.
#[test]
fn potentials_of_regressions_are_prior_and_likelihood() {
    let labels = vec![true, false, false, true, true, false, true, true];
    let (x, y) = (regressors(2), regressors(1));
    let theta = [0.3, -2.0];
    let mut logistic = LogisticRegression::new(x.clone(), labels.clone(), &[1.0, 4.0]).unwrap();
    let expected = 8.0 * LogisticRegression::loss(&x, &labels, &theta) + 0.045 + 0.5;
    close(potential_at(&mut logistic, &theta)[0], expected, "logistic");
    let theta = [3.0_f64, 0.7, 0.4, -1.0, 0.6];
    let prior = 0.3 - 3.0_f64.ln() + 0.7 + 0.16 / 200.0 + (1.0 + 0.36) / 12.5;
    let mut robust = RobustRegression::new(&x, y.clone(), 2).unwrap();
    // All but the constant of Student's law.
    let likelihood = 8.0 * (RobustRegression::log_likelihood(&x, &y, &theta) + 0.5 * PI.ln());
    close(potential_at(&mut robust, &theta)[0], prior - likelihood, "robust");
    let mut nothing = RobustRegression::new(&[], vec![], 2).unwrap();
    close(potential_at(&mut nothing, &theta)[0], prior, "prior alone");
}

/// The regressor of a data term, and its observation.
type Term = (Vec<f64>, f64);

/// The data of a linear regression, up to the sign of each term: its gradient at zero is `-a x / variance` for a single
/// term, and along a unit vector `a a' / variance` more.
fn data(target: &mut LinearGaussian, dimension: usize, terms: usize, variance: f64) -> Vec<Term> {
    let scale = variance / terms as f64;
    let mut of = |n: usize| {
        let batch = [n];
        let mut at = |theta: &[f64]| gradient_on(target, theta, Minibatch::subsample(&batch, terms));
        let origin = at(&vec![0.0; dimension]);
        let mut unit = vec![0.0; dimension];
        unit[0] = 1.0;
        let along = at(&unit);
        let products: Vec<f64> = (0..dimension).map(|i| scale * (along[i] - origin[i] - unit[i])).collect();
        let first = products[0].sqrt();
        (products.iter().map(|product| product / first).collect(), -scale * origin[0] / first)
    };
    (0..terms).map(&mut of).collect()
}

/// Regressors have covariance `I + coupling^2 11'`, the noise its variance, and coefficients are standard normal.
#[test]
fn synthetic_regressions_have_the_law_of_their_page() {
    let (dimension, terms, variance, coupling) = (3, 4_000, 4.0, 2.0);
    let mut target = LinearGaussian::synthetic(dimension, terms, variance, coupling, SeedTree::new(5));
    let data = data(&mut target, dimension, terms, variance);
    let mean = |f: &dyn Fn(&Term) -> f64| data.iter().map(f).sum::<f64>() / terms as f64;
    // Standard errors: 0.11, 0.1 and 0.09.
    assert!((mean(&|(a, _)| a[0] * a[0]) - 5.0).abs() < 0.4);
    assert!((mean(&|(a, _)| a[1] * a[2]) - 4.0).abs() < 0.4);
    let theta = target.posterior().mean().to_vec();
    let residual = |(a, x): &Term| x - a.iter().zip(&theta).map(|(a, t)| a * t).sum::<f64>();
    assert!((mean(&|term| residual(term).powi(2)) - variance).abs() < 0.3);
    let squares = (0..400).map(|seed| {
        let target = LinearGaussian::synthetic(2, 200, 0.01, 0.5, SeedTree::new(seed));
        target.posterior().mean()[1].powi(2)
    });
    let square = squares.sum::<f64>() / 400.0;
    assert!((square - 1.0).abs() < 0.25, "{square}");
}

#[test]
fn sizes_and_values_of_targets_are_checked() {
    let shape = |error: Option<SamplerError>| matches!(error, Some(SamplerError::Shape { .. }));
    let setting = |error: Option<SamplerError>| matches!(error, Some(SamplerError::Setting { .. }));
    assert!(shape(Gaussian::new(vec![0.0; 2], vec![1.0; 3]).err()));
    let indefinite = Gaussian::new(vec![0.0; 2], vec![1.0, 2.0, 2.0, 1.0]).err();
    assert!(matches!(indefinite, Some(SamplerError::Matrix { value, .. }) if (value + 1.0).abs() < 1e-9));
    assert!(shape(Gammas::new(vec![1.0, 2.0], vec![1.0]).err()) && shape(Gammas::new(vec![], vec![]).err()));
    assert!(setting(Gammas::new(vec![1.0, 0.0], vec![1.0; 2]).err()));
    assert!(setting(Gammas::new(vec![1.0], vec![f64::NAN]).err()));
    assert!(shape(LogisticRegression::new(vec![1.0; 3], vec![true, false], &[1.0; 2]).err()));
    assert!(setting(LogisticRegression::new(vec![1.0; 2], vec![true], &[1.0, -1.0]).err()));
    assert!(shape(RobustRegression::new(&[1.0; 3], vec![0.0; 2], 1).err()));
    assert!(shape(RobustRegression::new(&[], vec![], 0).err()));
    assert!(shape(LogisticRegression::new(vec![], vec![], &[1.0; 2]).err()));
}

/// Constructors panic for distributions that do not exist.
#[test]
fn laws_that_do_not_exist_are_not_made() {
    let stops = |make: fn()| std::panic::catch_unwind(make).is_err();
    assert!(stops(|| drop(Gaussian::equicorrelated(2, 1.0, -0.9))));
    assert!(stops(|| drop(Gaussian::equicorrelated(0, 1.0, 0.5))));
    assert!(!stops(|| drop(Gaussian::equicorrelated(2, 1.0, -0.4))));
    assert!(stops(|| drop(Dirichlet::new(vec![]))) && stops(|| drop(Dirichlet::new(vec![1.0, 0.0]))));
    assert!(stops(|| drop(Quartic::new(0.0, 0.0))) && stops(|| drop(Quartic::new(-1.0, 1.0))));
    let linear = |dimension, variance| {
        std::panic::catch_unwind(|| LinearGaussian::synthetic(dimension, 5, variance, 0.5, SeedTree::new(1)))
    };
    assert!(linear(0, 1.0).is_err() && linear(2, 0.0).is_err() && linear(2, 1.0).is_ok());
}

/// Where there are no data terms, a minibatch has none either, and the gradient is that of the prior.
#[test]
fn minibatches_of_no_terms_are_the_prior() {
    use SamplerKind::*;
    for kind in [Sgld, Psgld, Sgrld, Hamcmc, Sghmc, Sgnht, Sgrhmc] {
        let end = |minibatch| {
            let step_size = Some(StepSize::Constant(0.01));
            let options = SamplerOptions { minibatch, step_size, ..SamplerOptions::default() };
            let target = LinearGaussian::synthetic(2, 0, 1.0, 0.0, SeedTree::new(1));
            let sampler = kind.build::<f64>(2, 1, &options, SeedTree::new(2)).unwrap();
            let mut chain = Chain::new(target, sampler, vec![0.5, -0.5]).unwrap();
            chain.run(20, |_| ());
            chain.state().to_vec()
        };
        assert_eq!(end(Some(3)), end(None), "{kind}");
        assert!(end(None) != [0.5, -0.5], "{kind}");
    }
    let gradient = GradientSettings { minibatch: Some(3), ..GradientSettings::default() };
    let target = LinearGaussian::synthetic(2, 0, 1.0, 0.0, SeedTree::new(1));
    let sgfs = Sgfs::<f64>::new(2, 1, gradient, SeedTree::new(2)).unwrap();
    assert!(matches!(Chain::new(target, sgfs, vec![0.0; 2]), Err(SamplerError::Capability { .. })));
    for settings in
        [GradientSettings { temperature: 2.0, ..gradient }, GradientSettings { drift_limit: 1.0, ..gradient }]
    {
        let sgfs = Sgfs::<f64>::new(2, 1, settings, SeedTree::new(2));
        assert!(matches!(sgfs, Err(SamplerError::Setting { .. })), "{settings:?}");
    }
}

/// The target of a log map is never evaluated at zero; NaN stays NaN.
#[test]
fn logarithms_have_positive_states() {
    fn theta<T: Real>(x: f64) -> f64 {
        let mut theta = [T::narrow(x)];
        LogMapped::<(), T>::new(()).unmap(&mut theta, 1);
        theta[0].widen()
    }
    for x in [-1e4, -800.0, -200.0, 1e4] {
        for theta in [theta::<f32>(x), theta::<f64>(x)] {
            assert!(theta > 0.0 && theta.is_infinite() == (x > 0.0), "{x}: {theta}");
        }
    }
    assert_eq!(theta::<f64>(-200.0), libm::exp(-200.0));
    assert!(theta::<f64>(f64::NAN).is_nan());
}

#[test]
#[should_panic(expected = "a unit of Some(0.0)")]
fn units_are_above_zero() {
    let _ = Scaled::new(Gaussian::equicorrelated(2, 1.0, 0.0), &[1.0, 0.0]);
}
