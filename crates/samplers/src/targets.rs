//! Posteriors with known answers, for tests and examples.

use super::dense::{cholesky, solve};
use super::vector::dot;
use super::{Curvature, Metric, Minibatch, Real, Site, Sites, Support, Target};
use crate::random::SeedTree;

/// A Gaussian with known mean and covariance, the same in each of any number of independent blocks.
#[derive(Debug, Clone)]
pub struct Gaussian {
    mean: Vec<f64>,
    precision: Precision,
    blocks: usize,
}

#[derive(Debug, Clone)]
enum Precision {
    /// Column-major `dimension x dimension`.
    Dense(Vec<f64>),
    /// `diagonal I + shared 11'`: products in linear time.
    Equicorrelated { diagonal: f64, shared: f64 },
}

impl Gaussian {
    /// `N(mean, precision^-1)`; `precision` is symmetric, `dimension^2` numbers. `None` if it is not positive
    /// definite or sizes differ.
    #[must_use]
    pub fn new(mean: Vec<f64>, precision: Vec<f64>) -> Option<Self> {
        let fits = precision.len() == mean.len() * mean.len();
        let valid = fits && cholesky(&mut precision.clone(), mean.len());
        valid.then_some(Self { mean, precision: Precision::Dense(precision), blocks: 1 })
    }

    /// `N(0, variance I + covariance 11')`: `quasi-newton-mcmc` and `quasi-newton-hmc` use 4 and 1.
    #[must_use]
    pub fn equicorrelated(dimension: usize, variance: f64, covariance: f64) -> Self {
        let diagonal = 1.0 / variance;
        let shared = -diagonal * covariance / (variance + covariance * dimension as f64);
        Self {
            mean: vec![0.0; dimension],
            precision: Precision::Equicorrelated { diagonal, shared },
            blocks: 1,
        }
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// The mean of one block.
    #[must_use]
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// Entry `(i, j)` of the precision matrix.
    #[must_use]
    pub fn precision(&self, i: usize, j: usize) -> f64 {
        match &self.precision {
            Precision::Dense(matrix) => matrix[j * self.mean.len() + i],
            Precision::Equicorrelated { diagonal, shared } => shared + if i == j { *diagonal } else { 0.0 },
        }
    }

    /// Column-major covariance of one block.
    #[must_use]
    pub fn covariance(&self) -> Vec<f64> {
        let n = self.mean.len();
        let mut factor: Vec<f64> = (0..n * n).map(|k| self.precision(k % n, k / n)).collect();
        cholesky(&mut factor, n);
        let mut covariance = vec![0.0; n * n];
        for (j, column) in covariance.chunks_exact_mut(n).enumerate() {
            column[j] = 1.0;
            solve(&factor, column);
        }
        covariance
    }

    /// Entry `i` of `precision * (theta - mean)` for each `i` in turn.
    fn force<'a, T: Real>(&'a self, theta: &'a [T]) -> impl Iterator<Item = f64> + 'a {
        let n = self.mean.len();
        let centred = move |i: usize| theta[i].widen() - self.mean[i];
        let sum = match self.precision {
            Precision::Equicorrelated { .. } => (0..n).map(centred).sum(),
            Precision::Dense(_) => 0.0,
        };
        (0..n).map(move |i| match &self.precision {
            Precision::Dense(matrix) => {
                matrix[i * n..][..n].iter().enumerate().map(|(j, value)| value * centred(j)).sum()
            }
            Precision::Equicorrelated { diagonal, shared } => diagonal * centred(i) + shared * sum,
        })
    }
}

impl<T: Real> Target<T> for Gaussian {
    fn dimension(&self) -> usize {
        self.mean.len()
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        let n = self.mean.len();
        for (theta, gradient) in theta.chunks_exact(n).zip(gradient.chunks_exact_mut(n)) {
            for (gradient, force) in gradient.iter_mut().zip(self.force(theta)) {
                *gradient = T::narrow(force);
            }
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        for (theta, potential) in theta.chunks_exact(self.mean.len()).zip(potential) {
            let centred = theta.iter().zip(&self.mean).map(|(theta, mean)| theta.widen() - mean);
            *potential = 0.5 * self.force(theta).zip(centred).map(|(force, x)| force * x).sum::<f64>();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Gaussian {
    fn is_diagonal(&self) -> bool {
        false
    }

    fn metric(&mut self, _: &[T], metric: &mut [T]) {
        let n = self.mean.len();
        for metric in metric.chunks_exact_mut(n * n) {
            metric.iter_mut().enumerate().for_each(|(k, m)| *m = T::narrow(self.precision(k % n, k / n)));
        }
    }

    fn is_constant(&self) -> bool {
        true
    }
}

impl<T: Real> Curvature<T> for Gaussian {
    fn hessian_diagonal(&mut self, _: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        let n = self.mean.len();
        diagonal.iter_mut().enumerate().for_each(|(i, d)| *d = T::narrow(self.precision(i % n, i % n)));
    }
}

/// Bayesian linear regression with known noise: `theta ~ N(0, I)`, `x_n ~ N(a_n' theta, variance)`
/// (`hamcmc-2016` section 4.1, eq. 13). The posterior is Gaussian and known.
#[derive(Debug, Clone)]
pub struct LinearGaussian {
    dimension: usize,
    /// `dimension x terms`, one regressor a column.
    regressors: Vec<f64>,
    observations: Vec<f64>,
    variance: f64,
    posterior: Gaussian,
}

impl LinearGaussian {
    /// Draws `terms` regressors, a true `theta` and observations. Each regressor is a standard normal vector
    /// plus `coupling` times a normal number common to all its coordinates: the larger, the more correlated
    /// the posterior.
    #[must_use]
    pub fn synthetic(
        dimension: usize,
        terms: usize,
        variance: f64,
        coupling: f64,
        streams: SeedTree,
    ) -> Self {
        let mut stream = streams.rng(0);
        let mut normal = || f64::normal(&mut stream);
        let truth: Vec<f64> = (0..dimension).map(|_| normal()).collect();
        let mut regressors = Vec::with_capacity(dimension * terms);
        let mut observations = Vec::with_capacity(terms);
        for _ in 0..terms {
            let common = coupling * normal();
            let start = regressors.len();
            regressors.extend((0..dimension).map(|_| common + normal()));
            let mean: f64 = regressors[start..].iter().zip(&truth).map(|(a, t)| a * t).sum();
            observations.push(mean + variance.sqrt() * normal());
        }
        let mut precision: Vec<f64> =
            (0..dimension * dimension).map(|k| f64::from(k % (dimension + 1) == 0)).collect();
        let mut mean = vec![0.0; dimension];
        for (a, x) in regressors.chunks_exact(dimension).zip(&observations) {
            for (j, &a_j) in a.iter().enumerate() {
                mean[j] += a_j * x / variance;
                for (i, &a_i) in a.iter().enumerate() {
                    precision[j * dimension + i] += a_i * a_j / variance;
                }
            }
        }
        let mut factor = precision.clone();
        cholesky(&mut factor, dimension);
        solve(&factor, &mut mean);
        let posterior = Gaussian { mean, precision: Precision::Dense(precision), blocks: 1 };
        Self { dimension, regressors, observations, variance, posterior }
    }

    /// The exact posterior.
    #[must_use]
    pub fn posterior(&self) -> &Gaussian {
        &self.posterior
    }
}

impl<T: Real> Target<T> for LinearGaussian {
    fn dimension(&self) -> usize {
        self.dimension
    }

    fn terms(&self) -> usize {
        self.observations.len()
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        gradient.copy_from_slice(theta);
        let scale = batch.scale() / self.variance;
        for n in batch.iter() {
            let a = &self.regressors[n * self.dimension..][..self.dimension];
            let mean: f64 = a.iter().zip(theta).map(|(a, theta)| a * theta.widen()).sum();
            let residual = scale * (mean - self.observations[n]);
            for (gradient, a) in gradient.iter_mut().zip(a) {
                *gradient += T::narrow(residual * a);
            }
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        Target::<T>::potential(&mut self.posterior, theta, potential);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(&mut self.posterior)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(&mut self.posterior)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(&mut self.posterior)
    }
}

impl<T: Real> Sites<T> for Gaussian {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.mean.len(), support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let n = self.mean.len();
        Target::<T>::potential(self, theta, potential);
        for (theta, gradient) in theta.chunks_exact(n).zip(gradient.chunks_exact_mut(n)) {
            gradient.iter_mut().zip(self.force(theta)).for_each(|(gradient, force)| *gradient = force);
        }
        for hessian in hessian.chunks_exact_mut(n * n) {
            hessian.iter_mut().enumerate().for_each(|(k, h)| *h = self.precision(k % n, k / n));
        }
    }
}

/// `U = quartic x^4 + quadratic x^2` on the line: the one-peak (`0, 1/2`) and two-peak (`1, -2`) targets of
/// `complete-recipe` section 4.1, the same in each block.
///
/// Its metric is that of the paper's supplement, `G^-1 = 1.5 sqrt(U - min U + 1/2)`, with the minimum of `U`
/// subtracted so that it stays positive on two peaks too.
#[derive(Debug, Clone)]
pub struct Quartic {
    quartic: f64,
    quadratic: f64,
    blocks: usize,
}

impl Quartic {
    /// `quartic > 0`, or `quartic = 0` and `quadratic > 0`.
    #[must_use]
    pub fn new(quartic: f64, quadratic: f64) -> Self {
        Self { quartic, quadratic, blocks: 1 }
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// `U(x)`.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        (self.quartic * x * x + self.quadratic) * x * x
    }

    /// `U'(x)` and `U''(x)`.
    #[must_use]
    pub fn slopes(&self, x: f64) -> (f64, f64) {
        let (a, b) = (self.quartic, self.quadratic);
        ((4.0 * a * x * x + 2.0 * b) * x, 12.0 * a * x * x + 2.0 * b)
    }

    /// The expectation of `f`, by the trapezoidal rule on [-12, 12]: exact to rounding for what is smooth and vanishes
    /// at both ends.
    #[must_use]
    pub fn expectation(&self, f: impl Fn(f64) -> f64) -> f64 {
        const CELLS: usize = 24_000;
        let (mut sum, mut norm) = (0.0, 0.0);
        for k in 0..=CELLS {
            let x = -12.0 + 24.0 * k as f64 / CELLS as f64;
            let weight = libm::exp(-self.value(x));
            sum += weight * f(x);
            norm += weight;
        }
        sum / norm
    }

    /// `U - min U + 1/2`.
    fn height(&self, x: f64) -> f64 {
        let floor = if self.quadratic < 0.0 { -self.quadratic.powi(2) / (4.0 * self.quartic) } else { 0.0 };
        self.value(x) - floor + 0.5
    }
}

impl<T: Real> Target<T> for Quartic {
    fn dimension(&self) -> usize {
        1
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        gradient.iter_mut().zip(theta).for_each(|(g, x)| *g = T::narrow(self.slopes(x.widen()).0));
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        potential.iter_mut().zip(theta).for_each(|(u, x)| *u = self.value(x.widen()));
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Quartic {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        let inverse = |x: f64| 1.5 * self.height(x).sqrt();
        metric.iter_mut().zip(theta).for_each(|(g, x)| *g = T::narrow(1.0 / inverse(x.widen())));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        for (divergence, x) in divergence.iter_mut().zip(theta) {
            let (x, height) = (x.widen(), self.height(x.widen()));
            let slope = 0.75 * self.slopes(x).0 / height.sqrt();
            let root = (1.5 * height.sqrt()).sqrt();
            *divergence = T::narrow(if inverse { slope } else { 0.5 * slope / root });
        }
        true
    }
}

impl<T: Real> Curvature<T> for Quartic {
    fn hessian_diagonal(&mut self, theta: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        diagonal.iter_mut().zip(theta).for_each(|(d, x)| *d = T::narrow(self.slopes(x.widen()).1));
    }
}

impl<T: Real> Sites<T> for Quartic {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..1, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        for (block, x) in theta.iter().enumerate() {
            potential[block] = self.value(x.widen());
            (gradient[block], hessian[block]) = self.slopes(x.widen());
        }
    }
}

/// The banana of `complete-recipe` Figure 2: `U = x^4 / 10 + (4 (y + 1.2) - x^2)^2 / 2`, with the metric of its
/// supplement, `G^-1 = 1.5 sqrt(U + 1/2) I`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Banana;

impl Banana {
    /// `E x = 0`, `E y`, `Var x` and `Var y`.
    #[must_use]
    pub fn moments() -> [f64; 4] {
        // x has density exp(-x^4 / 10), and 4 (y + 1.2) - x^2 is standard normal.
        let square = 10.0_f64.sqrt() * libm::tgamma(0.75) / libm::tgamma(0.25);
        [0.0, square / 4.0 - 1.2, square, (2.5 - square * square + 1.0) / 16.0]
    }

    fn parts(theta: &[impl Real]) -> (f64, f64) {
        let (x, y) = (theta[0].widen(), theta[1].widen());
        (x, 4.0 * (y + 1.2) - x * x)
    }

    fn value(theta: &[impl Real]) -> f64 {
        let (x, fold) = Self::parts(theta);
        x.powi(4) / 10.0 + 0.5 * fold * fold
    }

    fn slope(theta: &[impl Real]) -> [f64; 2] {
        let (x, fold) = Self::parts(theta);
        [0.4 * x.powi(3) - 2.0 * x * fold, 4.0 * fold]
    }
}

impl<T: Real> Target<T> for Banana {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        gradient.iter_mut().zip(Self::slope(theta)).for_each(|(g, slope)| *g = T::narrow(slope));
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        potential[0] = Self::value(theta);
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Banana {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        metric.fill(T::narrow(1.0 / (1.5 * (Self::value(theta) + 0.5).sqrt())));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        let root = (Self::value(theta) + 0.5).sqrt();
        for (divergence, slope) in divergence.iter_mut().zip(Self::slope(theta)) {
            let slope = 0.75 * slope / root;
            *divergence = T::narrow(if inverse { slope } else { 0.5 * slope / (1.5 * root).sqrt() });
        }
        true
    }
}

impl<T: Real> Sites<T> for Banana {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..2, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (x, fold) = Self::parts(theta);
        potential[0] = Self::value(theta);
        gradient.copy_from_slice(&Self::slope(theta));
        hessian.copy_from_slice(&[1.2 * x * x - 2.0 * fold + 4.0 * x * x, -8.0 * x, -8.0 * x, 16.0]);
    }
}

/// Neal's funnel: `z ~ N(0, scale^2)`, `x | z ~ N(0, exp(z))`, the state being `(z, x)` (`newtonian` section 4.1
/// with scale 3). Two sites of one row each.
#[derive(Debug, Clone, Copy)]
pub struct Funnel {
    /// Standard deviation of `z`.
    pub scale: f64,
}

impl<T: Real> Target<T> for Funnel {
    fn dimension(&self) -> usize {
        2
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        let precision = libm::exp(-z);
        gradient[0] = T::narrow(z / self.scale.powi(2) + 0.5 - 0.5 * x * x * precision);
        gradient[1] = T::narrow(x * precision);
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        potential[0] = 0.5 * (z / self.scale).powi(2) + 0.5 * z + 0.5 * x * x * libm::exp(-z);
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for Funnel {
    fn count(&self) -> usize {
        2
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (z, x) = (theta[0].widen(), theta[1].widen());
        let precision = libm::exp(-z);
        Target::<T>::potential(self, theta, potential);
        if index == 0 {
            let square = 0.5 * x * x * precision;
            gradient[0] = z / self.scale.powi(2) + 0.5 - square;
            hessian[0] = 1.0 / self.scale.powi(2) + square;
        } else {
            gradient[0] = x * precision;
            hessian[0] = precision;
        }
    }
}

/// Independent Gamma variables on the half line, the same law in each block: the simplest positive target.
/// Its metric is the Fisher information of the logarithm's scale, `shape / theta^2`.
#[derive(Debug, Clone)]
pub struct Gammas {
    shapes: Vec<f64>,
    rates: Vec<f64>,
    blocks: usize,
}

impl Gammas {
    /// One variable per shape and rate, all above 0.
    #[must_use]
    pub fn new(shapes: Vec<f64>, rates: Vec<f64>) -> Self {
        Self { shapes, rates, blocks: 1 }
    }

    /// The same law in `blocks` independent blocks.
    #[must_use]
    pub fn with_blocks(self, blocks: usize) -> Self {
        Self { blocks, ..self }
    }

    /// Mean and variance of each variable.
    #[must_use]
    pub fn moments(&self) -> Vec<(f64, f64)> {
        self.shapes
            .iter()
            .zip(&self.rates)
            .map(|(shape, rate)| (shape / rate, shape / (rate * rate)))
            .collect()
    }

    fn laws(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.shapes.iter().copied().zip(self.rates.iter().copied()).cycle()
    }
}

impl<T: Real> Target<T> for Gammas {
    fn dimension(&self) -> usize {
        self.shapes.len()
    }

    fn blocks(&self) -> usize {
        self.blocks
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        for ((gradient, x), (shape, rate)) in gradient.iter_mut().zip(theta).zip(self.laws()) {
            *gradient = T::narrow(rate - (shape - 1.0) / x.widen());
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        for (potential, theta) in potential.iter_mut().zip(theta.chunks_exact(self.shapes.len())) {
            let term = |(x, (shape, rate)): (&T, (f64, f64))| {
                let x = x.widen();
                if x > 0.0 { rate * x - (shape - 1.0) * libm::log(x) } else { f64::INFINITY }
            };
            *potential = theta.iter().zip(self.laws()).map(term).sum();
        }
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn curvature(&mut self) -> Option<&mut dyn Curvature<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for Gammas {
    fn is_diagonal(&self) -> bool {
        true
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        for ((metric, x), (shape, _)) in metric.iter_mut().zip(theta).zip(self.laws()) {
            *metric = T::narrow(shape / x.widen().powi(2));
        }
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        for ((divergence, x), (shape, _)) in divergence.iter_mut().zip(theta).zip(self.laws()) {
            *divergence = T::narrow(if inverse { 2.0 * x.widen() / shape } else { 1.0 / shape.sqrt() });
        }
        true
    }
}

impl<T: Real> Curvature<T> for Gammas {
    fn hessian_diagonal(&mut self, theta: &[T], _: Minibatch<'_>, diagonal: &mut [T]) {
        for ((diagonal, x), (shape, _)) in diagonal.iter_mut().zip(theta).zip(self.laws()) {
            *diagonal = T::narrow((shape - 1.0) / x.widen().powi(2));
        }
    }
}

impl<T: Real> Sites<T> for Gammas {
    fn count(&self) -> usize {
        self.shapes.len()
    }

    fn site(&self, index: usize) -> Site {
        Site { rows: index..index + 1, support: Support::HalfLine }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let (shape, rate) = (self.shapes[index], self.rates[index]);
        for (block, theta) in theta.chunks_exact(self.shapes.len()).enumerate() {
            let x = theta[index].widen();
            potential[block] = rate * x - (shape - 1.0) * libm::log(x);
            gradient[block] = rate - (shape - 1.0) / x;
            hessian[block] = (shape - 1.0) / (x * x);
        }
    }
}

/// Multinomial counts with a Dirichlet prior over their probabilities: the posterior is
/// `Dirichlet(concentrations)`. One site, the simplex.
#[derive(Debug, Clone)]
pub struct Dirichlet {
    concentrations: Vec<f64>,
}

impl Dirichlet {
    /// Prior concentrations plus counts, all above 0.
    #[must_use]
    pub fn new(concentrations: Vec<f64>) -> Self {
        Self { concentrations }
    }

    /// Mean and variance of each probability.
    #[must_use]
    pub fn moments(&self) -> Vec<(f64, f64)> {
        let sum: f64 = self.concentrations.iter().sum();
        let variance = |mean: f64| mean * (1.0 - mean) / (sum + 1.0);
        self.concentrations.iter().map(|c| (c / sum, variance(c / sum))).collect()
    }
}

impl<T: Real> Target<T> for Dirichlet {
    fn dimension(&self) -> usize {
        self.concentrations.len()
    }

    fn gradient(&mut self, theta: &[T], _: Minibatch<'_>, gradient: &mut [T]) {
        for ((gradient, x), c) in gradient.iter_mut().zip(theta).zip(&self.concentrations) {
            *gradient = T::narrow((1.0 - c) / x.widen());
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let terms = theta.iter().zip(&self.concentrations);
        potential[0] = terms.map(|(x, c)| (1.0 - c) * libm::log(x.widen())).sum();
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for Dirichlet {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.concentrations.len(), support: Support::Simplex }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        Target::<T>::potential(self, theta, potential);
        hessian.fill(0.0);
        let n = theta.len();
        for (i, (x, c)) in theta.iter().zip(&self.concentrations).enumerate() {
            gradient[i] = (1.0 - c) / x.widen();
            hessian[i * n + i] = (c - 1.0) / x.widen().powi(2);
        }
    }
}

/// Bayesian logistic regression: `y_n ~ Bernoulli(logistic(x_n' theta))`, `theta_i ~ N(0, variance_i)`.
/// Its metric is the expected Fisher information plus the prior precision; one site, all coefficients.
#[derive(Debug, Clone)]
pub struct LogisticRegression {
    /// `dimension x terms`.
    regressors: Vec<f64>,
    labels: Vec<f64>,
    precisions: Vec<f64>,
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

fn widened<T: Real>(theta: &[T]) -> Vec<f64> {
    theta.iter().map(|theta| theta.widen()).collect()
}

/// `log(1 + exp(x))` without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + libm::log1p(libm::exp(-x.abs()))
}

impl LogisticRegression {
    /// `regressors` is `dimension x terms`, one column per label; `variances` has one entry per coefficient.
    /// `None` if the sizes do not fit.
    #[must_use]
    pub fn new(regressors: Vec<f64>, labels: Vec<bool>, variances: &[f64]) -> Option<Self> {
        let fits = !variances.is_empty() && regressors.len() == labels.len() * variances.len();
        let labels = labels.into_iter().map(f64::from).collect();
        fits.then(|| Self { regressors, labels, precisions: variances.iter().map(|v| 1.0 / v).collect() })
    }

    /// Minus the mean log probability of `labels` given `regressors` (of the same form) at `theta`.
    #[must_use]
    pub fn loss(regressors: &[f64], labels: &[bool], theta: &[f64]) -> f64 {
        let columns = regressors.chunks_exact(theta.len()).zip(labels);
        let terms = columns.map(|(x, &label)| {
            let activation: f64 = x.iter().zip(theta).map(|(x, t)| x * t).sum();
            softplus(if label { -activation } else { activation })
        });
        terms.sum::<f64>() / labels.len() as f64
    }

    fn column(&self, n: usize) -> &[f64] {
        &self.regressors[n * self.precisions.len()..][..self.precisions.len()]
    }

    fn activation(&self, n: usize, theta: &[f64]) -> f64 {
        dot(self.column(n), theta)
    }

    /// Minus the log prior and its gradient.
    fn prior<T: Real>(&self, theta: &[T], gradient: &mut [T]) -> f64 {
        let mut sum = 0.0;
        for ((gradient, theta), precision) in gradient.iter_mut().zip(theta).zip(&self.precisions) {
            *gradient = T::narrow(precision * theta.widen());
            sum += 0.5 * precision * theta.widen().powi(2);
        }
        sum
    }

    /// The Hessian of the potential, which is also the metric.
    fn hessian(&self, theta: &[f64], hessian: &mut [f64]) {
        let d = self.precisions.len();
        hessian.fill(0.0);
        for n in 0..self.labels.len() {
            let p = logistic(self.activation(n, theta));
            let x = self.column(n);
            for j in 0..d {
                let weight = p * (1.0 - p) * x[j];
                hessian[j * d + j..(j + 1) * d].iter_mut().zip(&x[j..]).for_each(|(h, x)| *h += weight * x);
            }
        }
        for j in 0..d {
            hessian[j * d + j] += self.precisions[j];
            for i in 0..j {
                hessian[j * d + i] = hessian[i * d + j];
            }
        }
    }
}

impl<T: Real> Target<T> for LogisticRegression {
    fn dimension(&self) -> usize {
        self.precisions.len()
    }

    fn terms(&self) -> usize {
        self.labels.len()
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        self.prior(theta, gradient);
        let theta = widened(theta);
        for n in batch.iter() {
            let residual = batch.scale() * (logistic(self.activation(n, &theta)) - self.labels[n]);
            gradient.iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(residual * x));
        }
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let prior = theta.iter().zip(&self.precisions).map(|(theta, p)| 0.5 * p * theta.widen().powi(2));
        let wide = widened(theta);
        let terms = (0..self.labels.len()).map(|n| {
            let activation = self.activation(n, &wide);
            softplus(activation) - self.labels[n] * activation
        });
        potential[0] = prior.sum::<f64>() + terms.sum::<f64>();
    }

    fn evaluate(&mut self, theta: &[T], potential: &mut [f64], gradient: &mut [T]) {
        let prior = self.prior(theta, gradient);
        let theta = widened(theta);
        let mut terms = 0.0;
        for n in 0..self.labels.len() {
            let activation = self.activation(n, &theta);
            terms += softplus(activation) - self.labels[n] * activation;
            let residual = logistic(activation) - self.labels[n];
            gradient.iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(residual * x));
        }
        potential[0] = prior + terms;
    }

    fn metric(&mut self) -> Option<&mut dyn Metric<T>> {
        Some(self)
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Metric<T> for LogisticRegression {
    fn is_diagonal(&self) -> bool {
        false
    }

    fn metric(&mut self, theta: &[T], metric: &mut [T]) {
        let mut hessian = vec![0.0; metric.len()];
        self.hessian(&widened(theta), &mut hessian);
        metric.iter_mut().zip(hessian).for_each(|(metric, h)| *metric = T::narrow(h));
    }

    fn divergence(&mut self, theta: &[T], inverse: bool, divergence: &mut [T]) -> bool {
        if !inverse {
            return false;
        }
        // Gamma = -sum_n w'_n (G^-1 x_n) (x_n' G^-1 x_n), w' the derivative of p (1 - p).
        let d = self.precisions.len();
        let mut factor = vec![0.0; d * d];
        let theta = widened(theta);
        self.hessian(&theta, &mut factor);
        if !cholesky(&mut factor, d) {
            return false;
        }
        let mut column = vec![0.0; d];
        divergence.fill(T::zero());
        for n in 0..self.labels.len() {
            let p = logistic(self.activation(n, &theta));
            column.copy_from_slice(self.column(n));
            solve(&factor, &mut column);
            let leverage: f64 = self.column(n).iter().zip(&column).map(|(x, c)| x * c).sum();
            let weight = -p * (1.0 - p) * (1.0 - 2.0 * p) * leverage;
            divergence
                .iter_mut()
                .zip(&column)
                .for_each(|(divergence, c)| *divergence += T::narrow(weight * c));
        }
        true
    }
}

impl<T: Real> Sites<T> for LogisticRegression {
    fn count(&self) -> usize {
        1
    }

    fn site(&self, _: usize) -> Site {
        Site { rows: 0..self.precisions.len(), support: Support::Real }
    }

    fn expand(
        &mut self,
        theta: &[T],
        _: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        let wide = widened(theta);
        Target::<f64>::evaluate(self, &wide, potential, gradient);
        self.hessian(&wide, hessian);
    }
}

/// Robust regression (`newtonian` section 4.1): `y_n ~ Student-t(nu, alpha + beta' x_n, sigma)` with
/// `nu ~ Gamma(2, 0.1)`, `sigma ~ Exponential(1)`, `alpha ~ N(0, 10^2)`, `beta_i ~ N(0, 2.5^2)`.
///
/// The state is `(nu, sigma, alpha, beta)`; the first two are positive and sites of their own, `alpha` and
/// `beta` are a site each.
#[derive(Debug, Clone)]
pub struct RobustRegression {
    /// `(slopes + 1) x terms`, the first row all ones.
    regressors: Vec<f64>,
    observations: Vec<f64>,
    slopes: usize,
}

/// The first two derivatives of `log Gamma` at `x > 0`: recurrence up to 6, then the asymptotic series.
fn digamma_and_trigamma(mut x: f64) -> (f64, f64) {
    let (mut first, mut second) = (0.0, 0.0);
    while x < 6.0 {
        first -= 1.0 / x;
        second += 1.0 / (x * x);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r * (1.0 / 240.0 - r / 132.0))));
    first += libm::log(x) - 0.5 / x - series;
    let series = r * (1.0 / 6.0 - r * (1.0 / 30.0 - r * (1.0 / 42.0 - r * (1.0 / 30.0 - r * 5.0 / 66.0))));
    second += 1.0 / x + 0.5 * r + series / x;
    (first, second)
}

impl RobustRegression {
    /// Rate of the prior of `nu`, and variances of the priors of `alpha` and `beta`.
    const NU_RATE: f64 = 0.1;
    const VARIANCES: [f64; 2] = [100.0, 6.25];

    /// `regressors` is `slopes x terms`. `None` if the sizes do not fit.
    #[must_use]
    pub fn new(regressors: &[f64], observations: Vec<f64>, slopes: usize) -> Option<Self> {
        if slopes == 0 || regressors.len() != slopes * observations.len() {
            return None;
        }
        let with_ones =
            regressors.chunks_exact(slopes).flat_map(|x| std::iter::once(1.0).chain(x.iter().copied()));
        Some(Self { regressors: with_ones.collect(), observations, slopes })
    }

    /// Mean log probability of `observations` given `regressors` (`slopes x terms`) at `theta`.
    #[must_use]
    pub fn log_likelihood(regressors: &[f64], observations: &[f64], theta: &[f64]) -> f64 {
        let (nu, sigma) = (theta[0], theta[1]);
        let columns = regressors.chunks_exact(theta.len() - 3).zip(observations);
        let terms = columns.map(|(x, y)| {
            let mean = theta[2] + x.iter().zip(&theta[3..]).map(|(x, b)| x * b).sum::<f64>();
            -0.5 * (nu + 1.0) * libm::log1p(((y - mean) / sigma).powi(2) / nu)
        });
        libm::lgamma(0.5 * (nu + 1.0))
            - libm::lgamma(0.5 * nu)
            - 0.5 * libm::log(nu * std::f64::consts::PI)
            - libm::log(sigma)
            + terms.sum::<f64>() / observations.len() as f64
    }

    fn column(&self, n: usize) -> &[f64] {
        &self.regressors[n * (self.slopes + 1)..][..self.slopes + 1]
    }

    fn residual(&self, n: usize, theta: &[f64]) -> f64 {
        self.observations[n] - dot(self.column(n), &theta[2..])
    }

    fn variance(row: usize) -> f64 {
        Self::VARIANCES[usize::from(row > 2)]
    }
}

impl<T: Real> Target<T> for RobustRegression {
    fn dimension(&self) -> usize {
        self.slopes + 3
    }

    fn terms(&self) -> usize {
        self.observations.len()
    }

    fn gradient(&mut self, theta: &[T], batch: Minibatch<'_>, gradient: &mut [T]) {
        let (nu, sigma) = (theta[0].widen(), theta[1].widen());
        let mut sums = (0.0, 0.0);
        for (row, gradient) in gradient.iter_mut().enumerate().skip(2) {
            *gradient = T::narrow(theta[row].widen() / Self::variance(row));
        }
        let theta = widened(theta);
        for n in batch.iter() {
            let r = self.residual(n, &theta);
            let square = r * r;
            let q = square / (nu * sigma * sigma);
            sums.0 += 0.5 * libm::log1p(q) - 0.5 * (nu + 1.0) * q / (nu * (1.0 + q));
            sums.1 += 1.0 / sigma - (nu + 1.0) * q / (sigma * (1.0 + q));
            let pull = -batch.scale() * (nu + 1.0) * r / (nu * sigma * sigma + square);
            gradient[2..].iter_mut().zip(self.column(n)).for_each(|(g, x)| *g += T::narrow(pull * x));
        }
        let terms = self.observations.len() as f64;
        let law = 0.5 * digamma_and_trigamma(0.5 * nu).0 - 0.5 * digamma_and_trigamma(0.5 * (nu + 1.0)).0
            + 0.5 / nu;
        gradient[0] = T::narrow(Self::NU_RATE - 1.0 / nu + terms * law + batch.scale() * sums.0);
        gradient[1] = T::narrow(1.0 + batch.scale() * sums.1);
    }

    fn potential(&mut self, theta: &[T], potential: &mut [f64]) {
        let (nu, sigma) = (theta[0].widen(), theta[1].widen());
        if !(nu > 0.0 && sigma > 0.0) {
            potential[0] = f64::INFINITY;
            return;
        }
        let (terms, theta) = (self.observations.len(), widened(theta));
        let law =
            libm::lgamma(0.5 * nu) - libm::lgamma(0.5 * (nu + 1.0)) + 0.5 * libm::log(nu) + libm::log(sigma);
        let data: f64 = (0..terms)
            .map(|n| 0.5 * (nu + 1.0) * libm::log1p((self.residual(n, &theta) / sigma).powi(2) / nu))
            .sum();
        let coefficients = theta.iter().enumerate().skip(2);
        let prior: f64 = coefficients.map(|(row, c)| 0.5 * c.powi(2) / Self::variance(row)).sum();
        potential[0] = Self::NU_RATE * nu - libm::log(nu) + sigma + prior + terms as f64 * law + data;
    }

    fn sites(&mut self) -> Option<&mut dyn Sites<T>> {
        Some(self)
    }
}

impl<T: Real> Sites<T> for RobustRegression {
    fn count(&self) -> usize {
        4
    }

    fn site(&self, index: usize) -> Site {
        let support = if index < 2 { Support::HalfLine } else { Support::Real };
        let rows = if index < 3 { index..index + 1 } else { 3..self.slopes + 3 };
        Site { rows, support }
    }

    fn expand(
        &mut self,
        theta: &[T],
        index: usize,
        potential: &mut [f64],
        gradient: &mut [f64],
        hessian: &mut [f64],
    ) {
        Target::<T>::potential(self, theta, potential);
        let terms = self.observations.len();
        let wide = widened(theta);
        let mut whole = vec![0.0; wide.len()];
        Target::<f64>::gradient(self, &wide, Minibatch::full(terms), &mut whole);
        let rows = Sites::<T>::site(self, index).rows;
        gradient.copy_from_slice(&whole[rows.clone()]);
        let (nu, sigma) = (wide[0], wide[1]);
        let squares = |n: usize| self.residual(n, &wide).powi(2) / (nu * sigma * sigma);
        match index {
            0 => {
                let law = 0.25 * digamma_and_trigamma(0.5 * nu).1
                    - 0.25 * digamma_and_trigamma(0.5 * (nu + 1.0)).1
                    - 0.5 / (nu * nu);
                // The derivative of log(1 + q) / 2 - (nu + 1) q / (2 nu (1 + q)), where q' = -q / nu.
                let data: f64 = (0..terms)
                    .map(|n| {
                        let q = squares(n);
                        let share = q / (1.0 + q);
                        share * ((nu + 1.0) * (1.0 + 1.0 / (1.0 + q)) / (2.0 * nu * nu) - 1.0 / nu)
                    })
                    .sum();
                hessian[0] = 1.0 / (nu * nu) + terms as f64 * law + data;
            }
            1 => {
                let data: f64 = (0..terms)
                    .map(|n| {
                        let share = squares(n) / (1.0 + squares(n));
                        ((nu + 1.0) * share * (1.0 + 2.0 * (1.0 - share)) - 1.0) / (sigma * sigma)
                    })
                    .sum();
                hessian[0] = data;
            }
            _ => {
                let size = rows.len();
                hessian.fill(0.0);
                for n in 0..terms {
                    let (r, scale) = (self.residual(n, &wide), nu * sigma * sigma);
                    let weight = (nu + 1.0) * (scale - r * r) / (scale + r * r).powi(2);
                    let x = &self.column(n)[rows.start - 2..rows.end - 2];
                    for (j, column) in hessian.chunks_exact_mut(size).enumerate() {
                        column.iter_mut().zip(x).for_each(|(h, x_i)| *h += weight * x[j] * x_i);
                    }
                }
                for (k, row) in rows.enumerate() {
                    hessian[k * size + k] += 1.0 / Self::variance(row);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{LN_2, PI};

    use super::*;

    /// `digamma(1) = -0.577...`, `digamma(1/2) = digamma(1) - 2 log 2`, `trigamma(1) = pi^2 / 6`, `trigamma(1/2) = pi^2 / 2`
    /// and the recurrence; at 6 and just above, the series is on its own, and as far from the truth as it gets: 1e-11.
    #[test]
    fn derivatives_of_log_gamma_are_the_known_ones() {
        const EULER: f64 = 0.577_215_664_901_532_9;
        let starts = [(1.0, -EULER, PI * PI / 6.0), (0.5, -EULER - 2.0 * LN_2, PI * PI / 2.0)];
        for (mut x, mut first, mut second) in starts {
            for _ in 0..30 {
                let found = digamma_and_trigamma(x);
                assert!((found.0 - first).abs() < 3e-11 * (1.0 + first.abs()), "{x}: {} {first}", found.0);
                assert!((found.1 - second).abs() < 3e-11 * second.max(1.0), "{x}: {} {second}", found.1);
                first += 1.0 / x;
                second -= 1.0 / (x * x);
                x += 1.0;
            }
        }
    }
}
