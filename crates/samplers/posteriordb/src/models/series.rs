//! Time series and a differential equation.

use super::{Data, Model, log_cauchy, log_normal, logistic};
use crate::dual::Scalar;

pub struct Autoregression {
    order: usize,
    y: Vec<f64>,
}

impl Autoregression {
    pub fn new(data: &Data<'_>) -> Self {
        Self { order: data.number("K") as usize, y: data.vector("y") }
    }
}

impl Model for Autoregression {
    fn dimension(&self) -> usize {
        self.order + 2
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let mut parameters = phi.to_vec();
        parameters[self.order + 1] = phi[self.order + 1].exp();
        (parameters, phi[self.order + 1])
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let zero = S::constant(0.0);
        let deviation = p[self.order + 1];
        let mut density = log_cauchy(deviation, 2.5);
        for &coefficient in &p[..=self.order] {
            density = density + log_normal(coefficient, zero, S::constant(10.0));
        }
        let mut squares = zero;
        for t in self.order..self.y.len() {
            let mut mean = p[0];
            for k in 1..=self.order {
                mean = mean + p[k].scale(self.y[t - k]);
            }
            squares = squares + (S::constant(self.y[t]) - mean).square();
        }
        let count = (self.y.len() - self.order) as f64;
        density - squares.scale(0.5) / deviation.square() - deviation.ln().scale(count)
    }
}

pub struct Arma(pub Vec<f64>);

impl Model for Arma {
    fn dimension(&self) -> usize {
        4
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        (vec![phi[0], phi[1], phi[2], phi[3].exp()], phi[3])
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let (mean, ar, ma, deviation, y) = (p[0], p[1], p[2], p[3], &self.0);
        let zero = S::constant(0.0);
        let mut error = S::constant(y[0]) - mean - ar * mean;
        let mut squares = error.square();
        for t in 1..y.len() {
            error = S::constant(y[t]) - mean - ar.scale(y[t - 1]) - ma * error;
            squares = squares + error.square();
        }
        log_normal(mean, zero, S::constant(10.0))
            + log_normal(ar, zero, S::constant(2.0))
            + log_normal(ma, zero, S::constant(2.0))
            + log_cauchy(deviation, 2.5)
            - squares.scale(0.5) / deviation.square()
            - deviation.ln().scale(y.len() as f64)
    }
}

pub struct Garch {
    y: Vec<f64>,
    first: f64,
}

impl Garch {
    pub fn new(data: &Data<'_>) -> Self {
        Self { y: data.vector("y"), first: data.number("sigma1") }
    }
}

impl Model for Garch {
    fn dimension(&self) -> usize {
        4
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let (alpha, slope) = logistic(phi[2]);
        let (share, share_slope) = logistic(phi[3]);
        let rest = S::constant(1.0) - alpha;
        (vec![phi[0], phi[1].exp(), alpha, rest * share], phi[1] + slope + share_slope + rest.ln())
    }

    fn log_density<S: Scalar>(&self, _: &[S], p: &[S]) -> S {
        let mut variance = S::constant(self.first * self.first);
        let mut density = S::constant(0.0);
        for (t, &y) in self.y.iter().enumerate() {
            if t > 0 {
                variance = p[1] + p[2] * (S::constant(self.y[t - 1]) - p[0]).square() + p[3] * variance;
            }
            density = density - ((S::constant(y) - p[0]).square() / variance + variance.ln()).scale(0.5);
        }
        density
    }
}

/// Hares and lynxes; the equation by Runge and Kutta's fourth order, with steps of 1/20 year.
pub struct LotkaVolterra {
    times: Vec<f64>,
    first: Vec<f64>,
    y: Vec<Vec<f64>>,
}

impl LotkaVolterra {
    pub fn new(data: &Data<'_>) -> Self {
        Self { times: data.vector("ts"), first: data.vector("y_init"), y: data.rows("y") }
    }
}

impl Model for LotkaVolterra {
    fn dimension(&self) -> usize {
        8
    }

    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S) {
        let jacobian = phi.iter().fold(S::constant(0.0), |sum, &x| sum + x);
        (phi.iter().map(|x| x.exp()).collect(), jacobian)
    }

    fn log_density<S: Scalar>(&self, phi: &[S], p: &[S]) -> S {
        const STEP: f64 = 0.05;
        let constant = S::constant;
        let log_law = |log: f64, mean: S, deviation: S| log_normal(constant(log), mean, deviation);
        let mut density = log_normal(p[0], constant(1.0), constant(0.5))
            + log_normal(p[2], constant(1.0), constant(0.5))
            + log_normal(p[1], constant(0.05), constant(0.05))
            + log_normal(p[3], constant(0.05), constant(0.05));
        for k in 0..2 {
            // Lognormal laws of the parameters, less their Jacobian, which is counted with that of the map.
            density = density + log_normal(phi[6 + k], constant(-1.0), constant(1.0)) - phi[6 + k];
            density = density + log_normal(phi[4 + k], constant(10.0_f64.ln()), constant(1.0)) - phi[4 + k];
            density = density + log_law(self.first[k].ln(), phi[4 + k], p[6 + k]);
        }
        let slope = |[u, v]: [S; 2]| [(p[0] - p[1] * v) * u, (p[3] * u - p[2]) * v];
        let along = |z: [S; 2], d: [S; 2], h: f64| [z[0] + d[0].scale(h), z[1] + d[1].scale(h)];
        let (mut z, mut time) = ([p[4], p[5]], 0.0);
        for (&until, y) in self.times.iter().zip(&self.y) {
            let steps = ((until - time) / STEP).round().max(1.0);
            let h = (until - time) / steps;
            for _ in 0..steps as usize {
                let a = slope(z);
                let b = slope(along(z, a, 0.5 * h));
                let c = slope(along(z, b, 0.5 * h));
                let d = slope(along(z, c, h));
                for k in 0..2 {
                    z[k] = z[k] + (a[k] + d[k] + (b[k] + c[k]).scale(2.0)).scale(h / 6.0);
                }
            }
            time = until;
            if !(z[0].value() > 0.0 && z[1].value() > 0.0) {
                return constant(f64::NEG_INFINITY);
            }
            for k in 0..2 {
                density = density + log_law(y[k].ln(), z[k].ln(), p[6 + k]);
            }
        }
        density
    }
}
