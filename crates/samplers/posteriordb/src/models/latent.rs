//! Hidden states, mixtures, hierarchies and Gaussian processes.

use super::{Data, Model, log_cauchy, log_normal, log_sum, logistic};
use crate::dual::Scalar;

/// The log likelihood of a hidden Markov chain of two states that are equally likely at first: `emissions` gives the
/// log likelihoods of each observation, `stay` the transitions from either state to the first and the second.
fn forward<S: Scalar>(emissions: impl Iterator<Item = [S; 2]>, transitions: [[S; 2]; 2]) -> S {
    let log = transitions.map(|row| row.map(|p| p.ln()));
    let mut state: Option<[S; 2]> = None;
    for emission in emissions {
        state = Some(match state {
            None => emission,
            Some(from) => {
                let to = |k: usize| log_sum(from[0] + log[0][k], from[1] + log[1][k]) + emission[k];
                [to(0), to(1)]
            }
        });
    }
    state.map_or(S::constant(0.0), |[a, b]| log_sum(a, b))
}

/// Two transition probabilities and pairs of ordered positive numbers.
fn unpack_chain<S: Scalar>(phi: &[S]) -> (Vec<S>, S) {
    let mut parameters = Vec::new();
    let mut jacobian = S::constant(0.0);
    for &x in &phi[..2] {
        let (p, slope) = logistic(x);
        parameters.extend([p, S::constant(1.0) - p]);
        jacobian = jacobian + slope;
    }
    for pair in phi[2..].chunks_exact(2) {
        let low = pair[0].exp();
        parameters.extend([low, low + pair[1].exp()]);
        jacobian = jacobian + pair[0] + pair[1];
    }
    (parameters, jacobian)
}

/// Two states with normal observations of deviation one.
pub struct TwoMeans(pub Vec<f64>);

impl Model for TwoMeans {
    fn dimension(&self) -> usize {
        4
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        unpack_chain(phi)
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let one = S::constant(1.0);
        let emissions =
            self.0.iter().map(|&y| [p[4], p[5]].map(|mean| log_normal(S::constant(y), mean, one)));
        log_normal(p[4], S::constant(3.0), one)
            + log_normal(p[5], S::constant(10.0), one)
            + forward(emissions, [[p[0], p[1]], [p[2], p[3]]])
    }
}

/// Two states with two exponential observations.
pub struct Drive {
    u: Vec<f64>,
    v: Vec<f64>,
    prior: Vec<Vec<f64>>,
}

impl Drive {
    pub fn new(data: &Data<'_>) -> Self {
        Self { u: data.vector("u"), v: data.vector("v"), prior: data.rows("alpha") }
    }
}

impl Model for Drive {
    fn dimension(&self) -> usize {
        6
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        unpack_chain(phi)
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let one = S::constant(1.0);
        let mut density = S::constant(0.0);
        for k in 0..2 {
            for j in 0..2 {
                density = density + p[2 * k + j].ln().scale(self.prior[k][j] - 1.0);
            }
            let mean = S::constant([0.0, 3.0][k]);
            density = density + log_normal(p[4 + k], mean, one) + log_normal(p[6 + k], mean, one);
        }
        let log = [4, 5, 6, 7].map(|k| p[k].ln());
        let emissions = self
            .u
            .iter()
            .zip(&self.v)
            .map(|(&u, &v)| [0, 1].map(|k| log[k] + log[2 + k] - p[4 + k].scale(u) - p[6 + k].scale(v)));
        density + forward(emissions, [[p[0], p[1]], [p[2], p[3]]])
    }
}

/// Two normal components.
pub struct Mixture(pub Vec<f64>);

impl Model for Mixture {
    fn dimension(&self) -> usize {
        5
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let (share, slope) = logistic(phi[4]);
        let means = [phi[0], phi[0] + phi[1].exp()];
        (vec![means[0], means[1], phi[2].exp(), phi[3].exp(), share], phi[1] + phi[2] + phi[3] + slope)
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let (zero, two) = (S::constant(0.0), S::constant(2.0));
        let (log, log_rest) = (p[4].ln(), (S::constant(1.0) - p[4]).ln());
        let mut density = (log + log_rest).scale(4.0);
        for &x in &p[..4] {
            density = density + log_normal(x, zero, two);
        }
        let precisions = [p[2], p[3]].map(|deviation| S::constant(-0.5) / deviation.square());
        let starts = [log - p[2].ln(), log_rest - p[3].ln()];
        for &y in &self.0 {
            let part = |k: usize| starts[k] + (S::constant(y) - p[k]).square() * precisions[k];
            density = density + log_sum(part(0), part(1));
        }
        density
    }
}

/// Eight schools, non-centred.
pub struct Schools {
    y: Vec<f64>,
    errors: Vec<f64>,
}

impl Schools {
    pub fn new(data: &Data<'_>) -> Self {
        Self { y: data.vector("y"), errors: data.vector("sigma") }
    }
}

impl Model for Schools {
    fn dimension(&self) -> usize {
        self.y.len() + 2
    }

    /// The state holds mean, log deviation and standardised effects.
    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let deviation = phi[1].exp();
        let mut parameters = vec![phi[0], deviation];
        parameters.extend(phi[2..].iter().map(|&z| phi[0] + deviation * z));
        (parameters, phi[1])
    }

    fn log_density<S: Scalar>(&self, phi: &[S], p: &[S]) -> S {
        let zero = S::constant(0.0);
        let mut density = log_normal(p[0], zero, S::constant(5.0)) + log_cauchy(p[1], 5.0);
        for k in 0..self.y.len() {
            density = density + log_normal(phi[2 + k], zero, S::constant(1.0));
            density = density + log_normal(p[2 + k], S::constant(self.y[k]), S::constant(self.errors[k]));
        }
        density
    }
}

/// Regression by a Gaussian process, its length scale and amplitude unknown.
pub struct GaussianProcess {
    x: Vec<f64>,
    y: Vec<f64>,
}

impl GaussianProcess {
    pub fn new(data: &Data<'_>, observations: &str) -> Self {
        Self { x: data.vector("x"), y: data.vector(observations) }
    }

    /// The Cholesky factor of the covariance, with `nugget` on its diagonal, by rows.
    fn factor<S: Scalar>(&self, length: S, amplitude: S, nugget: S) -> Vec<Vec<S>> {
        let n = self.x.len();
        let weight = S::constant(-0.5) / length.square();
        let variance = amplitude.square();
        let mut factor: Vec<Vec<S>> = Vec::new();
        for i in 0..n {
            let mut row: Vec<S> = Vec::new();
            for j in 0..=i {
                let away = self.x[i] - self.x[j];
                let mut sum = variance * weight.scale(away * away).exp();
                if i == j {
                    sum = sum + nugget;
                }
                let other = if i == j { &row[..] } else { &factor[j][..] };
                for k in 0..j {
                    sum = sum - row[k] * other[k];
                }
                row.push(if i == j { sum.sqrt() } else { sum / factor[j][j] });
            }
            factor.push(row);
        }
        factor
    }

    fn log_prior<S: Scalar>(length: S, amplitude: S) -> S {
        length.ln().scale(24.0) - length.scale(4.0)
            + log_normal(amplitude, S::constant(0.0), S::constant(2.0))
    }
}

impl Model for GaussianProcess {
    fn dimension(&self) -> usize {
        3
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        (phi.iter().map(|x| x.exp()).collect(), phi[0] + phi[1] + phi[2])
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let factor = self.factor(p[0], p[1], p[2]);
        let mut density = Self::log_prior(p[0], p[1]) + log_normal(p[2], S::constant(0.0), S::constant(1.0));
        let mut whitened: Vec<S> = Vec::new();
        for (row, &y) in factor.iter().zip(&self.y) {
            let mut rest = S::constant(y);
            for (&l, &w) in row.iter().zip(&whitened) {
                rest = rest - l * w;
            }
            let pivot = row[whitened.len()];
            let w = rest / pivot;
            density = density - w.square().scale(0.5) - pivot.ln();
            whitened.push(w);
        }
        density
    }
}

/// Counts whose log rate is a Gaussian process.
pub struct PoissonProcess(pub GaussianProcess);

impl Model for PoissonProcess {
    fn dimension(&self) -> usize {
        self.0.x.len() + 2
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let mut parameters = vec![phi[0].exp(), phi[1].exp()];
        let factor = self.0.factor(parameters[0], parameters[1], S::constant(1e-10));
        for row in &factor {
            parameters.push(row.iter().zip(&phi[2..]).fold(S::constant(0.0), |sum, (&l, &z)| sum + l * z));
        }
        (parameters, phi[0] + phi[1])
    }

    fn log_density<S: Scalar>(&self, phi: &[S], p: &[S]) -> S {
        let mut density = GaussianProcess::log_prior(p[0], p[1]);
        for ((&z, &f), &count) in phi[2..].iter().zip(&p[2..]).zip(&self.0.y) {
            density = density - z.square().scale(0.5) + f.scale(count) - f.exp();
        }
        density
    }
}
