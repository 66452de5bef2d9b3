//! The complete recipe: any continuous sampler from a diffusion matrix `D` and a curl matrix `Q`.
//!
//! With `z = (theta, auxiliary)` and `H(z) = U(theta) + g(z)`, the dynamics
//!
//! ```text
//! dz = (-(D + Q) grad H + Gamma) dt + sqrt(2 D) dW,   Gamma_i = sum_j d/dz_j (D_ij + Q_ij)
//! ```
//!
//! leave `exp(-H)` invariant for every positive semidefinite `D(z)` and skew-symmetric `Q(z)`, and every continuous
//! Markov process that does so has this form (`complete-recipe` theorems 1 and 2; Gamma with the sign of its eq. 3).
//!
//! [`RecipeSampler`] simulates any [`Recipe`] by Euler's method, with a bias of first order in the step:
//! `examples/own_sampler.rs` is a sampler in ten lines. The recipes of this library's samplers are here too; tests compare
//! each sampler's drift with its recipe's. Matrices are dense, column-major.
//! **Do not use where** dimensions are many or curvature is unbounded: matrices are dense, and Euler steps diverge.

use super::checks::check_combination;
use super::dense::{cholesky, semidefinite_root, solve, solve_lower};
use super::gradient::Engine;
use super::matrix::{Matrix, Spectrum};
use super::vector::is_sound;
use super::{GradientSettings, Real, Sampler, SamplerError, Start, Step, Target};
use crate::random::{SeedTree, SeededRng};

/// A sampler's dynamics. `z` has the unknowns first and the auxiliary variables after them.
pub trait Recipe: Send {
    /// Number of auxiliary variables for `dimension` unknowns.
    fn auxiliary(&self, dimension: usize) -> usize {
        let _ = dimension;
        0
    }

    /// Writes the gradient of `H` with respect to the auxiliary variables (the rest is the gradient of `U`).
    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        let _ = (z, gradient);
    }

    /// Writes `D(z) + Q(z)`: the symmetric part is `D`, the skew-symmetric part `Q`.
    fn matrix(&mut self, target: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]);

    /// Writes `Gamma(z)` and returns true, or returns false to request central differences of the matrix.
    fn correction(&mut self, target: &mut dyn Target<f64>, z: &[f64], correction: &mut [f64]) -> bool {
        let _ = (target, z, correction);
        false
    }

    /// Draws the initial auxiliary variables. Standard normal unless overridden.
    fn start(&self, auxiliary: &mut [f64], stream: &mut SeededRng) {
        auxiliary.iter_mut().for_each(|r| *r = f64::normal(stream));
    }
}

/// Computes the divergence of a recipe's matrix at `z` by central differences.
pub fn numerical_correction<R: Recipe + ?Sized>(
    recipe: &mut R,
    target: &mut dyn Target<f64>,
    z: &[f64],
    correction: &mut [f64],
) {
    let n = z.len();
    let mut shifted = z.to_vec();
    let mut matrix = vec![0.0; n * n];
    correction.fill(0.0);
    for j in 0..n {
        let width = libm::cbrt(f64::EPSILON) * (1.0 + z[j].abs());
        for sign in [1.0, -1.0] {
            shifted[j] = z[j] + sign * width;
            recipe.matrix(target, &shifted, &mut matrix);
            for (correction, value) in correction.iter_mut().zip(&matrix[j * n..][..n]) {
                *correction += sign * value / (2.0 * width);
            }
        }
        shifted[j] = z[j];
    }
}

/// Computes the drift `-(D + Q) grad H + Gamma` of a recipe at `z`, given the gradient of `U` there.
pub fn drift<R: Recipe + ?Sized>(
    recipe: &mut R,
    target: &mut dyn Target<f64>,
    z: &[f64],
    gradient: &[f64],
    drift: &mut [f64],
) {
    drift_at(recipe, target, z, (gradient, 1.0), drift);
}

/// Like [`drift`], under `exp(-H / temperature)`: the temperature multiplies Gamma, and elsewhere the noise.
fn drift_at<R: Recipe + ?Sized>(
    recipe: &mut R,
    target: &mut dyn Target<f64>,
    z: &[f64],
    (gradient, temperature): (&[f64], f64),
    drift: &mut [f64],
) {
    let n = z.len();
    let mut energy = gradient.to_vec();
    energy.resize(n, 0.0);
    recipe.auxiliary_gradient(z, &mut energy[gradient.len()..]);
    let mut matrix = vec![0.0; n * n];
    if !recipe.correction(target, z, drift) {
        numerical_correction(recipe, target, z, drift);
    }
    drift.iter_mut().for_each(|gamma| *gamma *= temperature);
    recipe.matrix(target, z, &mut matrix);
    for (column, energy) in matrix.chunks_exact(n).zip(&energy) {
        drift.iter_mut().zip(column).for_each(|(drift, value)| *drift -= value * energy);
    }
}

/// Euler's method for any [`Recipe`], on one block in double precision. Costs `O(n^3)` a step, plus `2 n`
/// matrices where the recipe has no closed correction: for trying dynamics out, not for large targets.
#[derive(Debug, Clone)]
pub struct RecipeSampler<R> {
    recipe: R,
    engine: Engine<f64>,
    z: Vec<f64>,
    next: Vec<f64>,
    root: Vec<f64>,
    stream: SeededRng,
    started: bool,
    /// The covariance `V` of the stochastic gradient, and `(D + Q) V (D + Q)'`.
    gradient_noise: Option<(Spectrum<f64>, Vec<f64>)>,
}

impl<R: Recipe> RecipeSampler<R> {
    /// Creates a sampler for a target of `dimension` unknowns.
    ///
    /// # Errors
    /// If a setting is out of range, or the settings mirror.
    pub fn new(
        dimension: usize,
        recipe: R,
        settings: GradientSettings,
        streams: SeedTree,
    ) -> Result<Self, SamplerError> {
        check_combination("mirror", "a recipe", !settings.mirror)?;
        let engine = Engine::new(dimension, 1, settings, streams)?;
        let size = dimension + recipe.auxiliary(dimension);
        let stream = streams.child(0).rng(0);
        Ok(Self {
            recipe,
            engine,
            z: vec![0.0; size],
            next: vec![0.0; size],
            root: vec![0.0; size * size],
            stream,
            started: false,
            gradient_noise: None,
        })
    }

    /// Sets the covariance `V` of the stochastic gradient, which is subtracted from the injected noise
    /// (`complete-recipe` eq. 9, with `B = (D + Q) V (D + Q)'`, the rows of the unknowns). Negative eigenvalues of the
    /// difference count as zero: the excess of `B` remains as a bias.
    ///
    /// # Errors
    /// If the matrix has another size or is not symmetric and positive semidefinite.
    pub fn with_gradient_noise(mut self, covariance: &Matrix) -> Result<Self, SamplerError> {
        let covariance = covariance.decompose("the gradient noise", self.engine.dimension, false)?;
        self.gradient_noise = Some((covariance, vec![0.0; self.root.len()]));
        Ok(self)
    }
}

impl<R: Recipe> Sampler<f64> for RecipeSampler<R> {
    fn step(&mut self, target: &mut dyn Target<f64>, theta: &mut [f64]) -> Step {
        let (n, dimension) = (self.z.len(), theta.len());
        if !self.started {
            self.started = true;
            self.recipe.start(&mut self.z[dimension..], &mut self.stream);
        }
        self.z[..dimension].copy_from_slice(theta);
        let step_size = self.engine.begin(target);
        self.engine.evaluate_and_check_divergence(target, theta, 0.0);
        let gradient = (&self.engine.gradient[..], self.engine.settings.temperature);
        drift_at(&mut self.recipe, target, &self.z, gradient, &mut self.next);
        self.recipe.matrix(target, &self.z, &mut self.root);
        let noise = (2.0 * step_size * self.engine.settings.temperature).sqrt();
        if let Some((covariance, made)) = &mut self.gradient_noise {
            let gradients = &self.root[..n * dimension];
            made.fill(0.0);
            let (mut row, mut scratch) = (vec![0.0; dimension], vec![0.0; dimension]);
            for i in 0..n {
                (0..dimension).for_each(|k| row[k] = gradients[k * n + i]);
                covariance.apply(&mut row, &mut scratch);
                for (value, column) in row.iter().zip(gradients.chunks_exact(n)) {
                    (0..n).for_each(|j| made[i * n + j] += column[j] * value);
                }
            }
        }
        for j in 0..n {
            for i in 0..j {
                let symmetric = 0.5 * (self.root[j * n + i] + self.root[i * n + j]);
                self.root[j * n + i] = symmetric;
                self.root[i * n + j] = symmetric;
            }
        }
        let noise = match &self.gradient_noise {
            None => noise,
            Some((_, made)) => {
                let (variance, share) = (noise * noise, step_size * step_size);
                self.root
                    .iter_mut()
                    .zip(made)
                    .for_each(|(root, made)| *root = variance * *root - share * made);
                1.0
            }
        };
        semidefinite_root(&mut self.root, n);
        let limit = self.engine.limit();
        self.next.iter_mut().zip(&self.z).for_each(|(next, z)| *next = z + limit(step_size * *next));
        for column in self.root.chunks_exact(n) {
            let z = noise * f64::normal(&mut self.stream);
            self.next.iter_mut().zip(column).for_each(|(next, root)| *next += root * z);
        }
        let sound = is_sound(&self.next);
        if sound {
            self.z.copy_from_slice(&self.next);
            theta.copy_from_slice(&self.z[..dimension]);
        }
        self.engine.step(step_size, std::iter::once(!sound))
    }

    fn forget(&mut self) {
        self.engine.forget();
    }

    fn start(&self) -> Option<Start<'_, f64>> {
        self.engine.start()
    }

    fn shape(&self) -> (usize, usize) {
        (self.engine.dimension, 1)
    }
}

fn set(matrix: &mut [f64], n: usize, i: usize, j: usize, value: f64) {
    matrix[j * n + i] = value;
}

/// [`Sgld`](super::Sgld): `D = I`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Langevin;

impl Recipe for Langevin {
    fn matrix(&mut self, _: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        matrix.fill(0.0);
        (0..z.len()).for_each(|i| set(matrix, z.len(), i, i, 1.0));
    }
}

/// [`Sgrld`](super::Sgrld): `D = G^-1` of the target's metric; a step on a target without one panics.
#[derive(Debug, Clone, Copy, Default)]
pub struct RiemannianLangevin;

impl Recipe for RiemannianLangevin {
    fn matrix(&mut self, target: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        inverse_metric(target, z, matrix, false);
    }
}

/// Writes `G^-1` or the root `R`, `R R' = G^-1`, of the target's metric.
fn inverse_metric(target: &mut dyn Target<f64>, theta: &[f64], into: &mut [f64], root: bool) {
    let n = theta.len();
    into.fill(0.0);
    let metric = super::offered(target.metric(), "a recipe", "a metric");
    let mut factor = vec![0.0; n * n];
    if metric.is_diagonal() {
        metric.metric(theta, &mut factor[..n]);
        (0..n).for_each(|i| set(into, n, i, i, if root { 1.0 / factor[i].sqrt() } else { 1.0 / factor[i] }));
        return;
    }
    metric.metric(theta, &mut factor);
    if !cholesky(&mut factor, n) {
        into.fill(f64::NAN);
        return;
    }
    let mut column = vec![0.0; n];
    for j in 0..n {
        column.fill(0.0);
        column[j] = 1.0;
        if root {
            // Column j of L^-1 is row j of R = L^-T.
            solve_lower(&factor, &mut column);
            (0..n).for_each(|i| set(into, n, j, i, column[i]));
        } else {
            solve(&factor, &mut column);
            (0..n).for_each(|i| set(into, n, i, j, column[i]));
        }
    }
}

/// [`Psgld`](super::Psgld) with its correction: `D = 1 / (lambda + sqrt(v))` on the diagonal, where `v` mixes a given
/// past with the square of the current gradient.
#[derive(Debug, Clone)]
pub struct RootMeanSquare {
    /// The past `v`, one number per unknown.
    pub past: Vec<f64>,
    /// Its weight `a`, in [0, 1).
    pub forgetting: f64,
    /// The floor `lambda`.
    pub regularisation: f64,
}

impl Recipe for RootMeanSquare {
    fn matrix(&mut self, target: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        let mut gradient = vec![0.0; z.len()];
        let terms = target.terms();
        target.gradient(z, super::Minibatch::full(terms), &mut gradient);
        matrix.fill(0.0);
        for (i, gradient) in gradient.iter().enumerate() {
            let mean = gradient / terms.max(1) as f64;
            let v = self.forgetting * self.past[i] + (1.0 - self.forgetting) * mean * mean;
            set(matrix, z.len(), i, i, 1.0 / (self.regularisation + v.sqrt()));
        }
    }
}

/// [`Sghmc`](super::Sghmc): `z = (theta, r)`, friction `D = diag(0, C)`, `Q = [0 -I; I 0]`. With no friction, the
/// equations of motion of HMC.
#[derive(Debug, Clone, Copy)]
pub struct Friction(
    /// The friction `C`.
    pub f64,
);

impl Recipe for Friction {
    fn auxiliary(&self, dimension: usize) -> usize {
        dimension
    }

    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        gradient.copy_from_slice(&z[z.len() / 2..]);
    }

    fn matrix(&mut self, _: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        let (n, d) = (z.len(), z.len() / 2);
        matrix.fill(0.0);
        for i in 0..d {
            set(matrix, n, i, d + i, -1.0);
            set(matrix, n, d + i, i, 1.0);
            set(matrix, n, d + i, d + i, self.0);
        }
    }
}

/// [`Sgnht`](super::Sgnht): `z = (theta, r, xi)`, `H = U + r'r / 2 + d (xi - A)^2 / 2`.
#[derive(Debug, Clone, Copy)]
pub struct Thermostat(
    /// The diffusion `A`.
    pub f64,
);

impl Recipe for Thermostat {
    fn auxiliary(&self, dimension: usize) -> usize {
        dimension + 1
    }

    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        let d = z.len() / 2;
        gradient[..d].copy_from_slice(&z[d..2 * d]);
        gradient[d] = d as f64 * (z[2 * d] - self.0);
    }

    fn matrix(&mut self, _: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        let (n, d) = (z.len(), z.len() / 2);
        matrix.fill(0.0);
        for i in 0..d {
            let share = z[d + i] / d as f64;
            set(matrix, n, i, d + i, -1.0);
            set(matrix, n, d + i, i, 1.0);
            set(matrix, n, d + i, d + i, self.0);
            set(matrix, n, d + i, 2 * d, share);
            set(matrix, n, 2 * d, d + i, -share);
        }
    }

    fn start(&self, auxiliary: &mut [f64], stream: &mut SeededRng) {
        auxiliary.iter_mut().for_each(|r| *r = f64::normal(stream));
        if let Some(thermostat) = auxiliary.last_mut() {
            *thermostat = self.0;
        }
    }
}

/// [`Sgrhmc`](super::Sgrhmc): `z = (theta, r)`, `D = diag(0, G^-1)`, `Q = [0 -R; R' 0]` with `R R' = G^-1`.
#[derive(Debug, Clone, Copy, Default)]
pub struct RiemannianFriction;

impl Recipe for RiemannianFriction {
    fn auxiliary(&self, dimension: usize) -> usize {
        dimension
    }

    fn auxiliary_gradient(&self, z: &[f64], gradient: &mut [f64]) {
        gradient.copy_from_slice(&z[z.len() / 2..]);
    }

    fn matrix(&mut self, target: &mut dyn Target<f64>, z: &[f64], matrix: &mut [f64]) {
        let (n, d) = (z.len(), z.len() / 2);
        let mut small = vec![0.0; d * d];
        matrix.fill(0.0);
        inverse_metric(target, &z[..d], &mut small, true);
        for j in 0..d {
            for i in 0..d {
                set(matrix, n, i, d + j, -small[j * d + i]);
                set(matrix, n, d + j, i, small[j * d + i]);
            }
        }
        inverse_metric(target, &z[..d], &mut small, false);
        for j in 0..d {
            for i in 0..d {
                set(matrix, n, d + i, d + j, small[j * d + i]);
            }
        }
    }
}
