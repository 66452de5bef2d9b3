//! Posteriors of posteriordb, in unconstrained coordinates.

mod latent;
mod regression;
mod series;

use crate::dual::{Dual, Scalar};
use serde_json::Value;

/// A log density and what is reported of a state.
pub trait Density: Send + Sync {
    fn dimension(&self) -> usize;
    /// The log density and, into `gradient`, its gradient.
    fn evaluate(&self, phi: &[f64], gradient: &mut [f64]) -> f64;
    /// The parameters in the order of the reference.
    fn report(&self, phi: &[f64]) -> Vec<f64>;
}

/// A model that is differentiated automatically.
pub trait Model: Send + Sync {
    fn dimension(&self) -> usize;
    /// The reported parameters, and the log Jacobian of all constrained ones.
    fn unpack<S: Scalar>(&self, phi: &[S]) -> (Vec<S>, S);
    /// The log density of parameters, given the unconstrained state, too.
    fn log_density<S: Scalar>(&self, phi: &[S], parameters: &[S]) -> S;
}

/// A [`Model`] of at most `N` dimensions.
struct Differentiated<M, const N: usize>(M);

impl<M: Model, const N: usize> Density for Differentiated<M, N> {
    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn evaluate(&self, phi: &[f64], gradient: &mut [f64]) -> f64 {
        let phi: Vec<Dual<N>> = phi.iter().enumerate().map(|(i, &x)| Dual::coordinate(x, i)).collect();
        let (parameters, jacobian) = self.0.unpack(&phi);
        let density = self.0.log_density(&phi, &parameters) + jacobian;
        gradient.copy_from_slice(&density.slope()[..gradient.len()]);
        density.value()
    }

    fn report(&self, phi: &[f64]) -> Vec<f64> {
        self.0.unpack(phi).0
    }
}

/// Numbers of a data set by name.
pub struct Data<'a>(pub &'a Value);

impl Data<'_> {
    pub fn number(&self, name: &str) -> f64 {
        self.0[name].as_f64().unwrap_or_else(|| panic!("{name}: not a number"))
    }

    pub fn vector(&self, name: &str) -> Vec<f64> {
        let all = self.0[name].as_array().unwrap_or_else(|| panic!("{name}: not a vector"));
        all.iter().map(|x| x.as_f64().unwrap_or_else(|| panic!("{name}: not numbers"))).collect()
    }

    /// A matrix by rows.
    pub fn rows(&self, name: &str) -> Vec<Vec<f64>> {
        let all = self.0[name].as_array().unwrap_or_else(|| panic!("{name}: not a matrix"));
        all.iter().map(|row| Data(&serde_json::json!({ "row": row })).vector("row")).collect()
    }
}

pub fn log_normal<S: Scalar>(x: S, mean: S, deviation: S) -> S {
    ((x - mean) / deviation).square().scale(-0.5) - deviation.ln()
}

/// Of a Cauchy law around zero.
pub fn log_cauchy<S: Scalar>(x: S, scale: f64) -> S {
    -(x.scale(1.0 / scale).square() + S::constant(1.0)).ln()
}

pub fn log_sum<S: Scalar>(a: S, b: S) -> S {
    if a.value() > b.value() { a + (b - a).softplus() } else { b + (a - b).softplus() }
}

/// The logistic function and the logarithm of its derivative.
pub fn logistic<S: Scalar>(x: S) -> (S, S) {
    let (log, log_rest) = (-(-x).softplus(), -x.softplus());
    (log.exp(), log + log_rest)
}

/// The posterior of a name.
pub fn posterior(name: &str, data: &Value) -> Box<dyn Density> {
    let data = Data(data);
    match name {
        "arK-arK" => Box::new(Differentiated::<_, 8>(series::Autoregression::new(&data))),
        "arma-arma11" => Box::new(Differentiated::<_, 4>(series::Arma(data.vector("y")))),
        "garch-garch11" => Box::new(Differentiated::<_, 4>(series::Garch::new(&data))),
        "hudson_lynx_hare-lotka_volterra" => {
            Box::new(Differentiated::<_, 8>(series::LotkaVolterra::new(&data)))
        }
        "hmm_example-hmm_example" => Box::new(Differentiated::<_, 4>(latent::TwoMeans(data.vector("y")))),
        "bball_drive_event_0-hmm_drive_0" => Box::new(Differentiated::<_, 8>(latent::Drive::new(&data))),
        "low_dim_gauss_mix-low_dim_gauss_mix" => {
            Box::new(Differentiated::<_, 8>(latent::Mixture(data.vector("y"))))
        }
        "eight_schools-eight_schools_noncentered" => {
            Box::new(Differentiated::<_, 10>(latent::Schools::new(&data)))
        }
        "gp_pois_regr-gp_regr" => Box::new(Differentiated::<_, 4>(latent::GaussianProcess::new(&data, "y"))),
        "gp_pois_regr-gp_pois_regr" => Box::new(Differentiated::<_, 16>(latent::PoissonProcess(
            latent::GaussianProcess::new(&data, "k"),
        ))),
        _ => Box::new(regression::posterior(name, &data)),
    }
}
