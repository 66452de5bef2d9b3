//! The mixture of two alpha-stable matrix factorisations.
//!
//! With `lambda = W H` (dispersion to the power alpha, bins x frames) for each source and impulse
//! variables `phi`, `X ~ ComplexNormal(0, v_s + v_n)` where `v = phi lambda^(2/alpha)`
//! (`hamcmc-2016`, eq. 15, with one factorisation per source).
//!
//! **Scale.** `phi` is positive stable with Laplace transform `exp(-s^(alpha/2))`. Then
//! `sqrt(phi lambda^(2/alpha))` times a complex normal of variance 4 is the complex isotropic
//! stable variable with characteristic function `exp(-lambda |t|^alpha)`; the model here uses
//! variance 1, so its spectra are those of `X / 2` in that convention.

use super::marginal::MarginalTable;
use super::published::SampledVariables;
use crate::kernels::products::Columns;
use crate::kernels::vector;
use ndarray::NdFloat;

/// The time-invariant factor of one source.
#[derive(Debug, Clone)]
pub struct Factor<T> {
    /// Characteristic exponent, in (0, 2].
    pub alpha: f64,
    /// Dispersion spectra `W`, bins x rank, column-major, positive.
    pub spectra: Vec<T>,
}

/// Speech and noise factors of a recording.
#[derive(Debug, Clone)]
pub struct Mixture<T> {
    /// Number of frequency bins.
    pub bins: usize,
    /// The speech dictionary.
    pub speech: Factor<T>,
    /// The noise spectra.
    pub noise: Factor<T>,
}

/// Treatment of the impulse variables of a tile.
#[derive(Debug, Clone, Copy)]
pub enum ImpulseVariables<'a, T> {
    /// Integrated out, by a table for the exponents of the mixture.
    Integrated(&'a MarginalTable),
    /// At sampled values, as in the paper.
    Sampled(&'a SampledVariables<T>),
}

impl<T: Scalar> Factor<T> {
    /// Number of components, given the number of frequency bins.
    #[must_use]
    pub fn rank(&self, bins: usize) -> usize {
        self.spectra.len() / bins
    }

    pub(super) fn columns(&self, bins: usize) -> Columns<'_, T> {
        Columns::new(&self.spectra, bins)
    }
}

impl<T: Scalar> Mixture<T> {
    /// Number of speech components.
    #[must_use]
    pub fn speech_rank(&self) -> usize {
        self.speech.rank(self.bins)
    }

    /// Number of noise components.
    #[must_use]
    pub fn noise_rank(&self) -> usize {
        self.noise.rank(self.bins)
    }

    /// `2 / alpha` of speech and of noise.
    pub(crate) fn variance_exponents(&self) -> (T, T) {
        (constant(2.0 / self.speech.alpha), constant(2.0 / self.noise.alpha))
    }

    /// The rows of `activations` (rank x frames) that belong to noise.
    pub(super) fn noise_activations<'a>(&self, activations: &'a [T]) -> Columns<'a, T> {
        Columns::new(activations, self.rank()).band(self.speech_rank(), self.noise_rank())
    }

    /// The rows of `activations` (rank x frames) that belong to speech.
    pub(super) fn speech_activations<'a>(&self, activations: &'a [T]) -> Columns<'a, T> {
        Columns::new(activations, self.rank()).band(0, self.speech_rank())
    }

    /// Number of activations per frame: those of speech, then those of noise.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.speech_rank() + self.noise_rank()
    }
}

/// A floating-point type with elementary functions that vectorise and are the same on every CPU.
pub trait Scalar: NdFloat {
    /// Natural logarithm of a positive number.
    fn fast_ln(self) -> Self;
    /// Exponential, saturating at the ends of the range.
    fn fast_exp(self) -> Self;
    /// Converts from single precision.
    fn convert(value: f32) -> Self;
}

impl Scalar for f32 {
    #[inline(always)]
    fn fast_ln(self) -> Self {
        vector::ln(self)
    }
    #[inline(always)]
    fn fast_exp(self) -> Self {
        vector::exp(self)
    }
    #[inline(always)]
    fn convert(value: f32) -> Self {
        value
    }
}

impl Scalar for f64 {
    fn fast_ln(self) -> Self {
        libm::log(self)
    }
    fn fast_exp(self) -> Self {
        libm::exp(self)
    }
    fn convert(value: f32) -> Self {
        value.into()
    }
}

/// Minimum power of a bin, 120 dB below the mean of one.
pub(crate) const MIN_POWER: f64 = 1e-12;

/// Converts a constant to the precision of the matrices.
pub(super) fn constant<T: Scalar>(value: f64) -> T {
    T::from(value).unwrap_or_else(T::nan)
}
