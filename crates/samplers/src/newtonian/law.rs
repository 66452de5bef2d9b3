//! Proposal laws fitted to gradient and curvature.

use rand_distr::{Distribution, Gamma};

use super::Indefinite;
use crate::dense::{cholesky, eigen, log_determinant, solve, solve_lower_transposed};
use crate::random::SeededRng;
use crate::vector::dot;
use crate::{Real, Support};

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) enum Family {
    /// No fit: the derivatives are not finite.
    #[default]
    None,
    Normal,
    Cauchy,
    Gamma,
    Dirichlet,
    /// Four parameters: the two shapes, the lower end and the width of the interval.
    Beta,
}

/// A fitted proposal.
#[derive(Debug, Clone, Default)]
pub(super) struct Law {
    pub(super) family: Family,
    /// Mean or location; Gamma shape and rate; Dirichlet concentrations.
    pub(super) parameters: Vec<f64>,
    /// Cholesky factor of the precision.
    pub(super) factor: Vec<f64>,
    pub(super) scratch: Vec<f64>,
    pub(super) indefinite: Indefinite,
}

impl Law {
    /// Fits the proposal at `x`: matched to the derivatives, or `local`.
    pub(super) fn fit(
        &mut self,
        local: bool,
        support: Support,
        x: &[f64],
        gradient: &[f64],
        hessian: &[f64],
    ) {
        self.family = Family::None;
        self.parameters.clear();
        if !gradient.iter().chain(hessian).all(|value| value.is_finite()) {
            return;
        }
        if local {
            self.fit_locally(support, x, gradient, hessian);
        } else {
            self.fit_newtonian(support, x, gradient, hessian);
        }
    }

    /// Fits the law that matches gradient and curvature at `x`.
    fn fit_newtonian(&mut self, support: Support, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        match support {
            Support::Real => self.fit_real(x, gradient, hessian),
            Support::HalfLine => {
                let (x, g, h) = (x[0], gradient[0], hessian[0]);
                let (shape, rate) = (1.0 + x * x * h, x * h + g);
                let valid = shape > 0.0 && rate > 0.0 && shape.is_finite() && rate.is_finite();
                let fallback = [2.0, 2.0 / x];
                self.parameters.extend(if valid { [shape, rate] } else { fallback });
                self.family = Family::Gamma;
            }
            Support::Simplex => {
                let n = x.len();
                for i in 0..n {
                    let others = (0..n).filter(|&j| j != i).map(|j| hessian[j * n + i]);
                    let concentration =
                        1.0 + x[i] * x[i] * (hessian[i * n + i] - others.fold(f64::INFINITY, f64::min));
                    let valid = concentration > 0.0 && concentration.is_finite();
                    self.parameters.push(if valid { concentration } else { n as f64 * x[i] });
                }
                self.family = Family::Dirichlet;
            }
            Support::Interval { low, high } => {
                let width = high - low;
                let (u, g, h) = ((x[0] - low) / width, width * gradient[0], width * width * hessian[0]);
                let v = 1.0 - u;
                let fitted = [1.0 + u * u * (v * h - g), 1.0 + v * v * (u * h + g)];
                // Rounding would put draws on the ends of the interval if a shape were below 0.5.
                let valid = fitted.iter().all(|p| *p >= 0.5 && p.is_finite());
                self.parameters.extend(if valid { fitted } else { [1.0 + 2.0 * u, 1.0 + 2.0 * v] });
                self.parameters.extend([low, width]);
                self.family = Family::Beta;
            }
            Support::Discrete(_) => (),
        }
    }

    /// Fits a law around `x` whose width is the distance over which, by gradient and curvature, the density is nearly
    /// constant. On the real line it is a Normal of precision `|K| + g g'`, elsewhere a law of mean `x`.
    fn fit_locally(&mut self, support: Support, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        match support {
            Support::Real => {
                self.parameters.extend_from_slice(x);
                if self.factor_absolute(gradient, hessian, 1.0) {
                    self.family = Family::Normal;
                }
            }
            Support::HalfLine => {
                let (g, h) = (x[0] * gradient[0], x[0] * x[0] * hessian[0]);
                let shape = 2.0 + h.abs() + g * g;
                self.parameters.extend([shape, shape / x[0]]);
                self.family = Family::Gamma;
            }
            Support::Simplex => {
                let n = x.len();
                // The sum is fixed, so only differences between slopes matter.
                let mean: f64 = dot(x, gradient);
                let steepest = (0..n).map(|i| x[i] * (gradient[i] - mean).powi(2)).sum::<f64>();
                let most = (0..n).map(|i| x[i] * hessian[i * n + i].abs()).fold(0.0, f64::max);
                let total = n as f64 + steepest + most;
                self.parameters.extend(x.iter().map(|x| total * x));
                self.family = Family::Dirichlet;
            }
            Support::Interval { low, high } => {
                let width = high - low;
                let (u, g, h) = ((x[0] - low) / width, width * gradient[0], width * width * hessian[0]);
                let v = 1.0 - u;
                let total = 2.0 + u * v * (h.abs() + g * g);
                self.parameters.extend([1.0 + total * u, 1.0 + total * v, low, width]);
                self.family = Family::Beta;
            }
            Support::Discrete(_) => (),
        }
    }

    /// Factors the Hessian with the absolute values of its eigenvalues, plus `weight g g'`.
    fn factor_absolute(&mut self, gradient: &[f64], hessian: &[f64], weight: f64) -> bool {
        let n = gradient.len();
        let Self { factor, scratch, .. } = self;
        factor.clear();
        factor.extend_from_slice(hessian);
        eigen(factor, n, scratch);
        let largest = scratch[n * n..].iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let floor = if largest > 0.0 { 1e-3 * largest } else { 1.0 };
        factor.clear();
        factor.extend((0..n * n).map(|k| weight * gradient[k % n] * gradient[k / n]));
        let (vectors, values) = scratch.split_at(n * n);
        for (vector, value) in vectors.chunks_exact(n).zip(values) {
            let value = value.abs().max(floor);
            for j in 0..n {
                for i in 0..n {
                    factor[j * n + i] += value * vector[i] * vector[j];
                }
            }
        }
        cholesky(factor, n)
    }

    fn fit_real(&mut self, x: &[f64], gradient: &[f64], hessian: &[f64]) {
        let n = x.len();
        let Self { family, parameters, factor, scratch, .. } = self;
        let newton_step = |factor: &[f64], parameters: &mut Vec<f64>, scratch: &mut Vec<f64>| {
            scratch.clear();
            scratch.extend_from_slice(gradient);
            solve(factor, scratch);
            parameters.extend(x.iter().zip(scratch.iter()).map(|(x, step)| x - step));
        };
        factor.clear();
        factor.extend_from_slice(hessian);
        if cholesky(factor, n) {
            newton_step(factor, parameters, scratch);
            *family = Family::Normal;
            return;
        }
        if let Indefinite::SmallVariance(small) = self.indefinite {
            self.fit_printed(x, gradient, hessian, small);
            return;
        }
        let exponent = 0.5 * (1 + n) as f64;
        factor.clear();
        factor.extend((0..n * n).map(|k| hessian[k] + gradient[k % n] * gradient[k / n] / exponent));
        if cholesky(factor, n) {
            newton_step(factor, parameters, scratch);
            let share = dot(gradient, scratch) / (2.0 * exponent);
            if share < 1.0 {
                let scale = (1.0 / (1.0 - share) / (2.0 * exponent)).sqrt();
                factor.iter_mut().for_each(|value| *value *= scale);
                *family = Family::Cauchy;
                return;
            }
            parameters.clear();
        }
        self.parameters.extend_from_slice(x);
        if self.factor_absolute(gradient, hessian, 0.0) {
            self.family = Family::Normal;
        }
    }

    /// Fits a Normal at the Newton step from `x`; its covariance is the inverse Hessian with `small` for negative
    /// eigenvalues.
    fn fit_printed(&mut self, x: &[f64], gradient: &[f64], hessian: &[f64], small: f64) {
        let n = x.len();
        let Self { family, parameters, factor, scratch, .. } = self;
        factor.clear();
        factor.extend_from_slice(hessian);
        eigen(factor, n, scratch);
        let (vectors, values) = scratch.split_at(n * n);
        parameters.extend_from_slice(x);
        factor.fill(0.0);
        for (vector, &value) in vectors.chunks_exact(n).zip(values) {
            let share = dot(vector, gradient) / value;
            parameters.iter_mut().zip(vector).for_each(|(mean, v)| *mean -= share * v);
            let precision = if value > 0.0 { value } else { 1.0 / small };
            for j in 0..n {
                for i in 0..n {
                    factor[j * n + i] += precision * vector[i] * vector[j];
                }
            }
        }
        if parameters.iter().all(|mean| mean.is_finite()) && cholesky(factor, n) {
            *family = Family::Normal;
        }
    }

    pub(super) fn draw(&mut self, stream: &mut SeededRng, out: &mut [f64]) {
        let Self { family, parameters, factor, .. } = self;
        match family {
            Family::None => out.fill(f64::NAN),
            Family::Normal | Family::Cauchy => {
                out.iter_mut().for_each(|z| *z = f64::normal(stream));
                let heavy = if *family == Family::Cauchy { f64::normal(stream).abs() } else { 1.0 };
                solve_lower_transposed(factor, out);
                out.iter_mut().zip(parameters).for_each(|(z, mean)| *z = *mean + *z / heavy);
            }
            Family::Gamma => {
                out[0] =
                    Gamma::new(parameters[0], 1.0 / parameters[1]).map_or(f64::NAN, |law| law.sample(stream));
            }
            Family::Dirichlet => {
                for (x, &concentration) in out.iter_mut().zip(parameters.iter()) {
                    *x = Gamma::new(concentration, 1.0).map_or(f64::NAN, |law| law.sample(stream));
                }
                let sum: f64 = out.iter().sum();
                out.iter_mut().for_each(|x| *x /= sum);
            }
            Family::Beta => {
                let mut part =
                    |shape: f64| Gamma::new(shape, 1.0).map_or(f64::NAN, |law| law.sample(&mut *stream));
                let (a, b) = (part(parameters[0]), part(parameters[1]));
                out[0] = parameters[2] + parameters[3] * a / (a + b);
            }
        }
    }

    pub(super) fn log_density(&self, x: &[f64]) -> f64 {
        let n = x.len();
        let p = &self.parameters;
        // The squared distance in the metric of the precision L L'.
        let distance = || -> f64 {
            (0..n)
                .map(|j| {
                    let column = &self.factor[j * n..][..n];
                    (j..n).map(|i| column[i] * (x[i] - p[i])).sum::<f64>().powi(2)
                })
                .sum()
        };
        let half = 0.5 * n as f64;
        match self.family {
            Family::None => f64::NAN,
            Family::Normal => {
                0.5 * log_determinant(&self.factor, n)
                    - half * libm::log(2.0 * std::f64::consts::PI)
                    - 0.5 * distance()
            }
            Family::Cauchy => {
                let exponent = half + 0.5;
                libm::lgamma(exponent) - libm::lgamma(0.5) - half * libm::log(std::f64::consts::PI)
                    + 0.5 * log_determinant(&self.factor, n)
                    - exponent * libm::log1p(distance())
            }
            Family::Gamma => {
                p[0] * libm::log(p[1]) - libm::lgamma(p[0]) + (p[0] - 1.0) * libm::log(x[0]) - p[1] * x[0]
            }
            Family::Dirichlet => {
                let terms = p.iter().zip(x).map(|(p, x)| (p - 1.0) * libm::log(*x) - libm::lgamma(*p));
                libm::lgamma(p.iter().sum()) + terms.sum::<f64>()
            }
            Family::Beta => {
                let u = (x[0] - p[2]) / p[3];
                libm::lgamma(p[0] + p[1]) - libm::lgamma(p[0]) - libm::lgamma(p[1])
                    + (p[0] - 1.0) * libm::log(u)
                    + (p[1] - 1.0) * libm::log1p(-u)
                    - libm::log(p[3])
            }
        }
    }
}
