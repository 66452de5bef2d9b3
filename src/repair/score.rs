//! The score of alpha-stable noise plus an uncertain signal.

use crate::stable::impulse_quadrature;

/// Grid of the log residual, in units of the noise's scale.
const RESIDUAL: Grid = Grid { low: -2.0, step: 0.1, points: 101 };
/// Grid of the log standard deviation of the uncertainty, in these units.
const UNCERTAINTY: Grid = Grid { low: -3.5, step: 0.25, points: 29 };

struct Grid {
    low: f64,
    step: f64,
    points: usize,
}

impl Grid {
    fn value(&self, i: usize) -> f64 {
        libm::exp(self.low + i as f64 * self.step)
    }

    /// Returns the cell of a value, and the position within the cell, 0 to 1. Values outside of the grid are clamped.
    fn place(&self, value: f64) -> (usize, f64) {
        let x = (libm::log(value.max(f64::MIN_POSITIVE)) - self.low) / self.step;
        let x = x.clamp(0.0, (self.points - 1) as f64 - 1e-9);
        (x as usize, x.fract())
    }
}

/// The score `-p'/p` of `sqrt(2 A) z + tau z'`, with A positive stable and z, z' standard normal:
/// symmetric alpha-stable noise of unit scale and a normal uncertainty of variance `tau^2`.
///
/// The density is a mixture of normals over A, so is tabulated without cancellation.
pub(crate) struct Score {
    /// Logarithm of score over residual, residuals contiguous.
    weights: Vec<f64>,
    /// Logarithm of the Fisher information for each uncertainty.
    information: Vec<f64>,
}

impl Score {
    /// The table for a characteristic exponent in (0, 2].
    pub(crate) fn new(alpha: f64) -> Self {
        let impulses = impulse_quadrature(alpha, 96);
        let mut weights = Vec::with_capacity(RESIDUAL.points * UNCERTAINTY.points);
        let mut information = Vec::with_capacity(UNCERTAINTY.points);
        for i in 0..UNCERTAINTY.points {
            let tau = UNCERTAINTY.value(i);
            // E[score^2], by the trapezoidal rule in the residual's logarithm; the part below the
            // grid, where score and density are linear and constant, in closed form.
            let mut mean_square = 0.0;
            for j in 0..RESIDUAL.points {
                let r = RESIDUAL.value(j);
                let (mut density, mut slope) = (0.0, 0.0);
                for &(a, probability) in &impulses {
                    let v = 2.0 * a + tau * tau;
                    let p =
                        probability * libm::exp(-0.5 * r * r / v) / (2.0 * std::f64::consts::PI * v).sqrt();
                    density += p;
                    slope += p / v;
                }
                // Beyond the reach of the last node the density underflows: the score is that of the power law.
                let weight = if density > 1e-280 { slope / density } else { (1.0 + alpha) / (r * r) };
                weights.push(libm::log(weight));
                let term = 2.0 * (weight * r).powi(2) * density * r;
                mean_square +=
                    if j == 0 { term * (0.5 * RESIDUAL.step + 1.0 / 3.0) } else { term * RESIDUAL.step };
            }
            information.push(libm::log(mean_square));
        }
        Self { weights, information }
    }

    /// Score over residual, and the Fisher information, for a residual and an uncertainty's
    /// standard deviation in units of the noise's scale.
    pub(crate) fn at(&self, residual: f64, tau: f64) -> (f64, f64) {
        let (row, dy) = UNCERTAINTY.place(tau);
        let (column, dx) = RESIDUAL.place(residual.abs());
        let along = |row: usize| {
            let at = row * RESIDUAL.points + column;
            (1.0 - dx) * self.weights[at] + dx * self.weights[at + 1]
        };
        let weight = libm::exp((1.0 - dy) * along(row) + dy * along(row + 1));
        let last = RESIDUAL.value(RESIDUAL.points - 1);
        let beyond = (last / residual.abs().max(last)).powi(2);
        let information = (1.0 - dy) * self.information[row] + dy * self.information[row + 1];
        (weight * beyond, libm::exp(information))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_linear_for_normal_noise() {
        let score = Score::new(2.0);
        for tau in [0.1, 1.0, 7.0] {
            for r in [0.0, 0.1, 3.0] {
                let (weight, information) = score.at(r, tau);
                let exact = 1.0 / (2.0 + tau * tau);
                assert!((weight / exact - 1.0).abs() < 0.02, "tau {tau}: {weight} {exact}");
                assert!((information / exact - 1.0).abs() < 0.02, "tau {tau}: {information} {exact}");
            }
        }
    }

    #[test]
    fn follows_cauchys_law_without_uncertainty() {
        // Score 2r / (1 + r^2), information 1/2.
        let score = Score::new(1.0);
        for r in [0.2, 0.7, 1.0, 5.0, 50.0, 1e3, 1e6] {
            let (weight, information) = score.at(r, 0.0);
            let exact = 2.0 / (1.0 + r * r);
            assert!((weight / exact - 1.0).abs() < 0.05, "r {r}: {weight:e} {exact:e}");
            assert!((information - 0.5).abs() < 0.02, "{information}");
        }
    }

    #[test]
    fn falls_off_with_the_power_law() {
        for alpha in [0.8, 1.2, 1.5, 1.9] {
            let r = 300.0;
            let weight = Score::new(alpha).at(r, 0.5).0;
            assert!((weight * r * r / (1.0 + alpha) - 1.0).abs() < 0.05, "alpha {alpha}: {weight:e}");
        }
    }
}
