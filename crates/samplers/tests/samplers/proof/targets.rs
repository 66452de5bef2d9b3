//! A state of every example target, as it is and in other coordinates.

#[path = "../../../examples/shared/with_metric.rs"]
mod with_metric;

use alphamf_samplers::random::SeedTree;
use alphamf_samplers::targets::*;
use alphamf_samplers::*;
pub use with_metric::WithMetric;

/// A flat law of two coordinates with a constant metric: diagonal (2 numbers), or dense (4).
pub struct Flat<const N: usize> {
    pub blocks: usize,
    pub terms: usize,
    pub metric: [f64; N],
}

impl<const N: usize> Target<f64> for Flat<N> {
    fn dimension(&self) -> usize {
        2
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn terms(&self) -> usize {
        self.terms
    }

    fn gradient(&mut self, _: &[f64], _: Minibatch<'_>, gradient: &mut [f64]) {
        gradient.fill(0.0);
    }

    fn potential(&mut self, _: &[f64], potential: &mut [f64]) {
        potential.fill(0.0);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<f64>> {
        Some(self)
    }
}

impl<const N: usize> Metric<f64> for Flat<N> {
    fn is_diagonal(&self) -> bool {
        N == 2
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn metric(&mut self, _: &[f64], metric: &mut [f64]) {
        metric.chunks_exact_mut(N).for_each(|values| values.copy_from_slice(&self.metric));
    }
}

/// Correlated logistic regression: a dense metric that depends on the state.
pub fn logistic() -> LogisticRegression {
    let mut stream = SeedTree::new(11).rng(0);
    let regressors: Vec<f64> =
        (0..3 * 40).map(|k| if k % 3 == 0 { 1.0 } else { f64::normal(&mut stream) }).collect();
    let labels =
        (0..40).map(|n| regressors[3 * n + 1] - regressors[3 * n + 2] + f64::normal(&mut stream) > 0.3);
    LogisticRegression::new(regressors.clone(), labels.collect(), &[4.0, 1.0, 1.0]).unwrap()
}

pub fn robust() -> RobustRegression {
    let mut stream = SeedTree::new(12).rng(0);
    let regressors: Vec<f64> = (0..2 * 30).map(|_| f64::normal(&mut stream)).collect();
    let observations =
        regressors.chunks(2).map(|x| 1.0 + x[0] - 0.5 * x[1] + f64::normal(&mut stream).powi(3));
    RobustRegression::new(&regressors, observations.collect(), 2).unwrap()
}

/// The metric of Gamma laws, which does not say what its divergence is.
pub struct NoDivergence(Gammas);

impl Metric<f64> for NoDivergence {
    fn is_diagonal(&self) -> bool {
        Metric::<f64>::is_diagonal(&self.0)
    }

    fn metric(&mut self, theta: &[f64], metric: &mut [f64]) {
        Metric::metric(&mut self.0, theta, metric);
    }
}

pub fn gammas() -> Gammas {
    Gammas::new(vec![3.0, 0.5], vec![2.0, 1.0]).unwrap()
}

/// A target, its name and a state inside its support.
pub type Named = (&'static str, Box<dyn Target<f64>>, Vec<f64>);

pub fn targets() -> Vec<Named> {
    vec![
        (
            "Gaussian",
            Box::new(Gaussian::new(vec![1.0, 2.0], vec![2.0, 0.5, 0.5, 1.0]).unwrap()),
            vec![0.3, -1.0],
        ),
        ("equicorrelated", Box::new(Gaussian::equicorrelated(4, 4.0, 1.0)), vec![0.3, -1.0, 2.0, 0.1]),
        (
            "linear",
            Box::new(LinearGaussian::synthetic(3, 20, 2.0, 1.0, SeedTree::new(1))),
            vec![0.3, -1.0, 0.6],
        ),
        ("quartic", Box::new(Quartic::new(1.0, -2.0)), vec![0.7]),
        ("one peak", Box::new(Quartic::new(0.0, 0.5)), vec![0.7]),
        ("low peaks", Box::new(Quartic::new(0.3, -1.0)), vec![-1.3]),
        ("banana", Box::new(Banana), vec![0.7, -0.4]),
        ("funnel", Box::new(Funnel { scale: 3.0 }), vec![-0.7, 0.4]),
        ("Gammas", Box::new(gammas()), vec![0.7, 0.4]),
        ("mirrored", Box::new(Mirrored::new(gammas())), vec![-0.7, 0.4]),
        ("log map", Box::new(LogMapped::new(gammas())), vec![-0.7, 0.4]),
        ("half log map", Box::new(LogMapped::rows(gammas(), 1..2)), vec![0.7, -0.4]),
        ("units", Box::new(Scaled::new(gammas(), &[0.5, 3.0])), vec![0.7, 0.4]),
        (
            "no closed divergence",
            Box::new(WithMetric { law: gammas(), metric: NoDivergence(gammas()) }),
            vec![0.7, 0.4],
        ),
        ("Dirichlet", Box::new(Dirichlet::new(vec![3.0, 0.5, 1.0])), vec![0.5, 0.2, 0.3]),
        ("logistic", Box::new(logistic()), vec![0.5, 0.2, -0.3]),
        ("part log map", Box::new(LogMapped::rows(robust(), 0..2)), vec![1.2, -0.3, 0.3, 0.4, -0.2]),
        ("robust", Box::new(robust()), vec![3.5, 0.8, 0.3, 0.4, -0.2]),
    ]
}

pub fn gradient_at(target: &mut dyn Target<f64>, theta: &[f64]) -> Vec<f64> {
    let terms = target.terms();
    gradient_on(target, theta, Minibatch::full(terms))
}

/// The estimate of the gradient on some data terms.
pub fn gradient_on(target: &mut dyn Target<f64>, theta: &[f64], batch: Minibatch<'_>) -> Vec<f64> {
    let mut gradient = vec![f64::NAN; theta.len()];
    target.gradient(theta, batch, &mut gradient);
    gradient
}

pub fn assert_close(what: &str, a: &[f64], b: &[f64], tolerance: f64) {
    assert_eq!(a.len(), b.len());
    let scale = b.iter().fold(1.0_f64, |scale, b| scale.max(b.abs()));
    for (a, b) in a.iter().zip(b) {
        assert!((a - b).abs() < tolerance * scale, "{what}: {a} against {b}");
    }
}
