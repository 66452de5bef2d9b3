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

use super::continuation::Continuation;
use super::marginal::MarginalTable;
use crate::kernels::products::{Columns, accumulate_outer, product, product_with_transpose};
use crate::kernels::vector::{self, dispatch};
use ndarray::NdFloat;
use std::sync::Arc;

/// The factor of one source that does not change over time.
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

/// How the impulse variables of a stretch of frames are treated.
#[derive(Debug, Clone)]
pub enum Impulses<T> {
    /// Integrated out, by a table made for the exponents of the mixture.
    Integrated(Arc<MarginalTable>),
    /// At their sampled values.
    Sampled {
        /// Impulse variables of speech, bins x frames.
        speech: Vec<T>,
        /// Impulse variables of noise, bins x frames.
        noise: Vec<T>,
    },
}

/// Room to evaluate the mixture on some consecutive frames, bins x frames each.
///
/// One serves any number of stretches in turn; it allocates only to grow.
#[derive(Debug, Clone)]
pub struct Workspace<T> {
    bins: usize,
    lambda_speech: Vec<T>,
    lambda_noise: Vec<T>,
    /// `v_s / v` or its expectation.
    gain: Vec<T>,
    /// `|X|^2 v_s / (v^2 lambda_s)`, which pulls the dispersion of speech up.
    raise_speech: Vec<T>,
    /// `v_s / (v lambda_s)`, which pulls it down.
    lower_speech: Vec<T>,
    raise_noise: Vec<T>,
    lower_noise: Vec<T>,
}

impl<T: Scalar> Factor<T> {
    /// Number of components, given the number of frequency bins.
    #[must_use]
    pub fn rank(&self, bins: usize) -> usize {
        self.spectra.len() / bins
    }

    fn columns(&self, bins: usize) -> Columns<'_, T> {
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
    pub(crate) fn exponents(&self) -> (T, T) {
        (constant(2.0 / self.speech.alpha), constant(2.0 / self.noise.alpha))
    }

    /// The rows of `activations` (rank x frames) that belong to noise.
    fn noise_activations<'a>(&self, activations: &'a [T]) -> Columns<'a, T> {
        Columns::new(activations, self.rank()).band(self.speech_rank(), self.noise_rank())
    }

    /// The rows of `activations` (rank x frames) that belong to speech.
    fn speech_activations<'a>(&self, activations: &'a [T]) -> Columns<'a, T> {
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
    /// From single precision.
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

/// Bins that pass through the element-wise stages together.
pub(super) const CHUNK: usize = 64;

struct Chunk<T> {
    len: usize,
    log_power: [T; CHUNK],
    log_speech: [T; CHUNK],
    log_noise: [T; CHUNK],
    gain: [T; CHUNK],
    speech_power: [T; CHUNK],
    noise_power: [T; CHUNK],
}

impl<T: Scalar> Chunk<T> {
    fn new() -> Self {
        let zeros = [T::zero(); CHUNK];
        Self {
            len: 0,
            log_power: zeros,
            log_speech: zeros,
            log_noise: zeros,
            gain: zeros,
            speech_power: zeros,
            noise_power: zeros,
        }
    }

    #[inline(always)]
    fn load(&mut self, (speech, noise): (T, T), power: &[T], lambda_speech: &[T], lambda_noise: &[T]) {
        self.len = power.len();
        for i in 0..self.len {
            self.log_power[i] = power[i].fast_ln();
            self.log_speech[i] = speech * lambda_speech[i].fast_ln();
            self.log_noise[i] = noise * lambda_noise[i].fast_ln();
        }
    }
}

/// Keeps dispersions away from zero; recordings are scaled to a mean power of one.
const SMALLEST_DISPERSION: f64 = 1e-12;
/// The smallest power that a bin may have, 120 dB below the mean of one.
pub const SMALLEST_POWER: f64 = 1e-12;

impl<T: Scalar> Workspace<T> {
    /// An empty workspace for spectra of `bins` bins.
    #[must_use]
    pub fn new(bins: usize) -> Self {
        let empty = Vec::new;
        Self {
            bins,
            lambda_speech: empty(),
            lambda_noise: empty(),
            gain: empty(),
            raise_speech: empty(),
            lower_speech: empty(),
            raise_noise: empty(),
            lower_noise: empty(),
        }
    }

    fn resize(&mut self, frames: usize) {
        for buffer in [
            &mut self.lambda_speech,
            &mut self.lambda_noise,
            &mut self.gain,
            &mut self.raise_speech,
            &mut self.lower_speech,
            &mut self.raise_noise,
            &mut self.lower_noise,
        ] {
            buffer.resize(frames * self.bins, T::zero());
        }
    }

    /// The Wiener gain `v_s / v` (or its expectation) at the last evaluation, bins x frames.
    #[must_use]
    pub fn gain(&self) -> &[T] {
        &self.gain
    }

    /// Dispersions of speech and noise at the last evaluation, bins x frames each.
    #[must_use]
    pub fn dispersions(&self) -> (&[T], &[T]) {
        (&self.lambda_speech, &self.lambda_noise)
    }

    /// `lambda = W H` of both sources, for activations `H` (rank x frames, speech first).
    pub fn disperse(&mut self, mixture: &Mixture<T>, activations: &[T]) {
        self.bins = mixture.bins;
        self.resize(activations.len() / mixture.rank());
        let (speech, noise) =
            (mixture.speech_activations(activations), mixture.noise_activations(activations));
        product(mixture.speech.columns(self.bins), speech, &mut self.lambda_speech);
        product(mixture.noise.columns(self.bins), noise, &mut self.lambda_noise);
        let floor = constant::<T>(SMALLEST_DISPERSION);
        for lambda in [&mut self.lambda_speech, &mut self.lambda_noise] {
            lambda.iter_mut().for_each(|lambda| *lambda += floor);
        }
    }

    /// Multiplies the dispersions of noise by a field that drifts over time (bins x frames; empty for none).
    /// After the evaluation, [`Workspace::modulate_slopes`] is due with the same field.
    pub fn modulate_noise(&mut self, field: &[T]) {
        self.lambda_noise.iter_mut().zip(field).for_each(|(lambda, &factor)| *lambda *= factor);
    }

    /// Turns the slopes for the dispersions of noise into those for what the field multiplies.
    pub fn modulate_slopes(&mut self, field: &[T]) {
        for slopes in [&mut self.raise_noise, &mut self.lower_noise] {
            slopes.iter_mut().zip(field).for_each(|(slope, &factor)| *slope *= factor);
        }
    }

    /// Writes `E[|X|^2 v_n / v^2]` and `E[v_n / v]` of every bin at the last evaluation: a factor of the noise's
    /// dispersion is raised by the one and lowered by the other.
    pub fn noise_shares(&self, power: &mut [T], share: &mut [T]) {
        let slopes = self.raise_noise.iter().zip(&self.lambda_noise);
        power.iter_mut().zip(slopes).for_each(|(power, (&raise, &lambda))| *power = raise * lambda);
        share.iter_mut().zip(&self.gain).for_each(|(share, &gain)| *share = T::one() - gain);
    }

    /// The gain and the slopes of the potential at the dispersions last computed, for powers `|X|^2`
    /// (bins x frames, at least [`SMALLEST_POWER`]).
    pub fn evaluate(&mut self, mixture: &Mixture<T>, impulses: &Impulses<T>, power: &[T]) {
        let exponents = mixture.exponents();
        dispatch(
            #[inline(always)]
            || match impulses {
                Impulses::Integrated(table) => self.evaluate_with(exponents, power, |_, chunk| {
                    let Chunk { log_power, log_speech, log_noise, gain, speech_power, noise_power, .. } =
                        chunk;
                    let narrow = |ratio: T| ratio.to_f32().unwrap_or(0.0);
                    table.for_each::<CHUNK>(
                        #[inline(always)]
                        |i| (narrow(log_power[i] - log_speech[i]), narrow(log_power[i] - log_noise[i])),
                        #[inline(always)]
                        |i, e| {
                            gain[i] = T::convert(e.gain);
                            speech_power[i] = T::convert(e.speech_power);
                            noise_power[i] = T::convert(e.noise_power);
                        },
                    );
                }),
                Impulses::Sampled { speech, noise } => {
                    self.evaluate_with(exponents, power, |first, chunk| {
                        for i in 0..chunk.len {
                            let speech = speech[first + i] * chunk.log_speech[i].fast_exp();
                            let noise = noise[first + i] * chunk.log_noise[i].fast_exp();
                            let variance = speech + noise;
                            let gain = speech / variance;
                            let excess = power[first + i] / variance;
                            chunk.gain[i] = gain;
                            chunk.speech_power[i] = gain * excess;
                            chunk.noise_power[i] = (T::one() - gain) * excess;
                        }
                    })
                }
            },
        );
    }

    #[inline(always)]
    fn evaluate_with(
        &mut self,
        (speech, noise): (T, T),
        power: &[T],
        mut expect: impl FnMut(usize, &mut Chunk<T>),
    ) {
        let mut chunk = Chunk::new();
        for first in (0..power.len()).step_by(CHUNK) {
            let range = first..(first + CHUNK).min(power.len());
            let (lambda_speech, lambda_noise) =
                (&self.lambda_speech[range.clone()], &self.lambda_noise[range.clone()]);
            chunk.load((speech, noise), &power[range.clone()], lambda_speech, lambda_noise);
            expect(first, &mut chunk);
            self.gain[range.clone()].copy_from_slice(&chunk.gain[..chunk.len]);
            let raise_speech = &mut self.raise_speech[range.clone()];
            let lower_speech = &mut self.lower_speech[range.clone()];
            let raise_noise = &mut self.raise_noise[range.clone()];
            let lower_noise = &mut self.lower_noise[range];
            for i in 0..chunk.len {
                raise_speech[i] = chunk.speech_power[i] / lambda_speech[i];
                lower_speech[i] = chunk.gain[i] / lambda_speech[i];
                raise_noise[i] = chunk.noise_power[i] / lambda_noise[i];
                lower_noise[i] = (T::one() - chunk.gain[i]) / lambda_noise[i];
            }
        }
    }

    /// The potential `U = sum log v + |X|^2 / v` of each frame at the dispersions last computed, with
    /// the impulse variables integrated out or given.
    pub fn potential(
        &self,
        mixture: &Mixture<T>,
        impulses: &Impulses<T>,
        power: &[T],
        potential: &mut [f64],
    ) {
        potential.fill(0.0);
        let bins = self.bins;
        self.for_each_term(mixture, impulses, power, |i, term| potential[i / bins] += term);
    }

    /// The same for each bin.
    pub fn bin_potential(
        &self,
        mixture: &Mixture<T>,
        impulses: &Impulses<T>,
        power: &[T],
        potential: &mut [f64],
    ) {
        potential.fill(0.0);
        let bins = self.bins;
        self.for_each_term(mixture, impulses, power, |i, term| potential[i % bins] += term);
    }

    fn for_each_term(
        &self,
        mixture: &Mixture<T>,
        impulses: &Impulses<T>,
        power: &[T],
        mut add: impl FnMut(usize, f64),
    ) {
        let (speech_exponent, noise_exponent) = mixture.exponents();
        for (i, &power) in power.iter().enumerate() {
            let log_speech = speech_exponent * self.lambda_speech[i].fast_ln();
            let log_noise = noise_exponent * self.lambda_noise[i].fast_ln();
            let term = match impulses {
                Impulses::Integrated(table) => {
                    let log_power = power.fast_ln();
                    let ratio = |log_variance: T| (log_power - log_variance).to_f32().unwrap_or(0.0);
                    let e = table.expectations(ratio(log_speech), ratio(log_noise));
                    log_power - T::convert(e.log_evidence)
                }
                Impulses::Sampled { speech, noise } => {
                    let variance = speech[i] * log_speech.fast_exp() + noise[i] * log_noise.fast_exp();
                    variance.fast_ln() + power / variance
                }
            };
            add(i, term.to_f64().unwrap_or(f64::NAN));
        }
    }

    /// `W' raise` and `W' lower` (rank x frames): a multiplicative update of the activations multiplies
    /// them by a power of the ratio of the two.
    pub fn activation_slopes(&self, mixture: &Mixture<T>, raise: &mut [T], lower: &mut [T]) {
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let speech = mixture.speech.columns(self.bins);
        let noise = mixture.noise.columns(self.bins);
        let columns = |data| Columns::new(data, self.bins);
        product_with_transpose(speech, columns(&self.raise_speech), raise, rank, 0);
        product_with_transpose(noise, columns(&self.raise_noise), raise, rank, split);
        product_with_transpose(speech, columns(&self.lower_speech), lower, rank, 0);
        product_with_transpose(noise, columns(&self.lower_noise), lower, rank, split);
    }

    /// The derivatives of the potential with respect to the dispersions, by the slopes of the last evaluation
    /// and in the place of those that raise.
    pub fn differentiate(&mut self, mixture: &Mixture<T>) {
        let (speech, noise) = mixture.exponents();
        let subtract = |raise: &mut [T], lower: &[T], exponent: T| {
            raise.iter_mut().zip(lower).for_each(|(raise, &lower)| *raise = exponent * (lower - *raise));
        };
        subtract(&mut self.raise_speech, &self.lower_speech, speech);
        subtract(&mut self.raise_noise, &self.lower_noise, noise);
    }

    /// Multiplies the derivatives of every bin by its weight (bins).
    pub fn weigh(&mut self, weights: &[T]) {
        for derivatives in [&mut self.raise_speech, &mut self.raise_noise] {
            for column in derivatives.chunks_exact_mut(self.bins) {
                column.iter_mut().zip(weights).for_each(|(derivative, &weight)| *derivative *= weight);
            }
        }
    }

    /// The gradient of the potential with respect to the activations (rank x frames), by the derivatives of
    /// [`Workspace::differentiate`].
    pub fn activation_gradient(&self, mixture: &Mixture<T>, gradient: &mut [T]) {
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        let columns = |data| Columns::new(data, self.bins);
        product_with_transpose(
            mixture.speech.columns(self.bins),
            columns(&self.raise_speech),
            gradient,
            rank,
            0,
        );
        product_with_transpose(
            mixture.noise.columns(self.bins),
            columns(&self.raise_noise),
            gradient,
            rank,
            split,
        );
    }

    /// The expected Fisher information `((2 / alpha) v_s / (v lambda_s))^2` of every bin on the factors of its
    /// dispersions, given the impulse variables, and its derivative with respect to the dispersion; those that are
    /// integrated out count as one. Dispersions of noise are those of `field` (bins x frames; empty for
    /// none) times a factor.
    ///
    /// Takes the place of the derivatives of the potential.
    pub fn inform(&mut self, mixture: &Mixture<T>, impulses: &Impulses<T>, field: &[T]) {
        let (speech_exponent, noise_exponent) = mixture.exponents();
        let two = T::one() + T::one();
        let information = |exponent: T, lambda: T, share: T| {
            let root = exponent * share / lambda;
            (root * root, two * root * root * (exponent * (T::one() - share) - T::one()) / lambda)
        };
        for i in 0..self.lambda_speech.len() {
            let (lambda_speech, lambda_noise) = (self.lambda_speech[i], self.lambda_noise[i]);
            let speech = (speech_exponent * lambda_speech.fast_ln()).fast_exp();
            let noise = (noise_exponent * lambda_noise.fast_ln()).fast_exp();
            let (speech, noise) = match impulses {
                Impulses::Integrated(_) => (speech, noise),
                Impulses::Sampled { speech: phi_speech, noise: phi_noise } => {
                    (phi_speech[i] * speech, phi_noise[i] * noise)
                }
            };
            let share = speech / (speech + noise);
            (self.raise_speech[i], self.lower_speech[i]) = information(speech_exponent, lambda_speech, share);
            let (value, slope) = information(noise_exponent, lambda_noise, T::one() - share);
            let field = field.get(i).copied().unwrap_or_else(T::one);
            (self.raise_noise[i], self.lower_noise[i]) =
                (value * field * field, slope * field * field * field);
        }
    }

    /// The diagonal of the Fisher information of the activations (rank x frames), and of its derivative with
    /// respect to the same activation, by what [`Workspace::inform`] found.
    pub fn activation_information(&self, mixture: &Mixture<T>, information: &mut [T], slope: &mut [T]) {
        let (rank, split) = (mixture.rank(), mixture.speech_rank());
        for (factor, values, slopes, first) in [
            (&mixture.speech, &self.raise_speech, &self.lower_speech, 0),
            (&mixture.noise, &self.raise_noise, &self.lower_noise, split),
        ] {
            let power = |n| factor.spectra.iter().map(|w| w.powi(n)).collect::<Vec<T>>();
            let (squares, cubes) = (power(2), power(3));
            let columns = [&squares, values, &cubes, slopes].map(|data| Columns::new(data, self.bins));
            product_with_transpose(columns[0], columns[1], information, rank, first);
            product_with_transpose(columns[2], columns[3], slope, rank, first);
        }
    }

    /// Adds the same for the noise spectra (bins x noise rank).
    pub fn add_noise_information(
        &self,
        mixture: &Mixture<T>,
        activations: &[T],
        information: &mut [T],
        slope: &mut [T],
    ) {
        let power = |n| activations.iter().map(|h| h.powi(n)).collect::<Vec<T>>();
        let (squares, cubes) = (power(2), power(3));
        accumulate_outer(
            Columns::new(&self.raise_noise, self.bins),
            mixture.noise_activations(&squares),
            information,
        );
        accumulate_outer(
            Columns::new(&self.lower_noise, self.bins),
            mixture.noise_activations(&cubes),
            slope,
        );
    }

    /// The potential of every bin in the place of the gain, and its first two derivatives with respect to the
    /// dispersion of one source, speech or noise, in the place of its slopes. With impulse variables integrated
    /// out the second is a difference of tabulated values.
    fn bend(&mut self, mixture: &Mixture<T>, impulses: &Impulses<T>, power: &[T], of_speech: bool) {
        let exponents = mixture.exponents();
        let two = T::one() + T::one();
        dispatch(
            #[inline(always)]
            || match impulses {
                Impulses::Integrated(table) => self.bend_with(exponents, power, of_speech, |_, chunk| {
                    const WIDTH: f32 = MarginalTable::CELL;
                    for i in 0..chunk.len {
                        let ratio =
                            |log_variance: T| (chunk.log_power[i] - log_variance).to_f32().unwrap_or(0.0);
                        let (speech, noise) = (ratio(chunk.log_speech[i]), ratio(chunk.log_noise[i]));
                        let at = |shift: f32| {
                            let e = if of_speech {
                                table.expectations(speech - shift, noise)
                            } else {
                                table.expectations(speech, noise - shift)
                            };
                            let slope = if of_speech {
                                e.gain - e.speech_power
                            } else {
                                1.0 - e.gain - e.noise_power
                            };
                            (e.log_evidence, slope)
                        };
                        let (log_evidence, slope) = at(0.0);
                        chunk.gain[i] = chunk.log_power[i] - T::convert(log_evidence);
                        chunk.speech_power[i] = T::convert(slope);
                        chunk.noise_power[i] = T::convert((at(WIDTH).1 - at(-WIDTH).1) / (2.0 * WIDTH));
                    }
                }),
                Impulses::Sampled { speech, noise } => {
                    self.bend_with(exponents, power, of_speech, |first, chunk| {
                        for i in 0..chunk.len {
                            let speech = speech[first + i] * chunk.log_speech[i].fast_exp();
                            let noise = noise[first + i] * chunk.log_noise[i].fast_exp();
                            let variance = speech + noise;
                            let share = if of_speech { speech } else { noise } / variance;
                            let excess = power[first + i] / variance;
                            let slope = share * (T::one() - excess);
                            chunk.gain[i] = variance.fast_ln() + excess;
                            chunk.speech_power[i] = slope;
                            chunk.noise_power[i] = slope + share * share * (two * excess - T::one());
                        }
                    })
                }
            },
        );
    }

    /// The same, from the potential and its first two derivatives with respect to the logarithm of the source's
    /// variance, which `derive` puts in the places of the expectations.
    #[inline(always)]
    fn bend_with(
        &mut self,
        exponents: (T, T),
        power: &[T],
        of_speech: bool,
        mut derive: impl FnMut(usize, &mut Chunk<T>),
    ) {
        let exponent = if of_speech { exponents.0 } else { exponents.1 };
        let mut chunk = Chunk::new();
        for first in (0..power.len()).step_by(CHUNK) {
            let range = first..(first + CHUNK).min(power.len());
            let (lambda_speech, lambda_noise) =
                (&self.lambda_speech[range.clone()], &self.lambda_noise[range.clone()]);
            chunk.load(exponents, &power[range.clone()], lambda_speech, lambda_noise);
            derive(first, &mut chunk);
            self.gain[range.clone()].copy_from_slice(&chunk.gain[..chunk.len]);
            let (lambda, slopes, curvatures) = if of_speech {
                (lambda_speech, &mut self.raise_speech, &mut self.lower_speech)
            } else {
                (lambda_noise, &mut self.raise_noise, &mut self.lower_noise)
            };
            let (slopes, curvatures) = (&mut slopes[range.clone()], &mut curvatures[range]);
            for i in 0..chunk.len {
                let (slope, curvature) = (chunk.speech_power[i], chunk.noise_power[i]);
                slopes[i] = exponent * slope / lambda[i];
                curvatures[i] = exponent * (exponent * curvature - slope) / (lambda[i] * lambda[i]);
            }
        }
    }

    /// The potential of every frame and its first two derivatives with respect to activation number `row`, at
    /// the dispersions last computed; `field` as in [`Workspace::inform`].
    pub fn expand_activation(
        &mut self,
        mixture: &Mixture<T>,
        impulses: &Impulses<T>,
        (power, field): (&[T], &[T]),
        row: usize,
        [potential, gradient, hessian]: [&mut [f64]; 3],
    ) {
        let split = mixture.speech_rank();
        let of_speech = row < split;
        self.bend(mixture, impulses, power, of_speech);
        let bins = self.bins;
        let (spectra, slopes, curvatures, column) = if of_speech {
            (&mixture.speech.spectra, &self.raise_speech, &self.lower_speech, row)
        } else {
            self.modulate_bends(field);
            (&mixture.noise.spectra, &self.raise_noise, &self.lower_noise, row - split)
        };
        let spectrum = &spectra[column * bins..][..bins];
        for frame in 0..potential.len() {
            let entries = frame * bins..(frame + 1) * bins;
            let (mut sums, values) = ([T::zero(); 3], [&self.gain, slopes, curvatures]);
            let [terms, slopes, curvatures] = values.map(|values| &values[entries.clone()]);
            for (bin, &w) in spectrum.iter().enumerate() {
                sums[0] += terms[bin];
                sums[1] += slopes[bin] * w;
                sums[2] += curvatures[bin] * w * w;
            }
            let [term, slope, curvature] = sums.map(|sum| sum.to_f64().unwrap_or(f64::NAN));
            (potential[frame], gradient[frame], hessian[frame]) = (term, slope, curvature);
        }
    }

    /// Adds the potential of every bin and its first two derivatives with respect to noise spectrum number
    /// `column`, likewise.
    pub fn add_noise_expansion(
        &mut self,
        mixture: &Mixture<T>,
        impulses: &Impulses<T>,
        (power, field): (&[T], &[T]),
        activations: &[T],
        column: usize,
        [potential, gradient, hessian]: [&mut [f64]; 3],
    ) {
        self.bend(mixture, impulses, power, false);
        self.modulate_bends(field);
        let row = mixture.speech_rank() + column;
        let widen = |value: T| value.to_f64().unwrap_or(f64::NAN);
        for (frame, activations) in activations.chunks_exact(mixture.rank()).enumerate() {
            let activation = activations[row];
            for bin in 0..self.bins {
                let i = frame * self.bins + bin;
                potential[bin] += widen(self.gain[i]);
                gradient[bin] += widen(activation * self.raise_noise[i]);
                hessian[bin] += widen(activation * activation * self.lower_noise[i]);
            }
        }
    }

    /// Turns derivatives for the dispersions of noise into those for what the field multiplies.
    fn modulate_bends(&mut self, field: &[T]) {
        let derivatives = self.raise_noise.iter_mut().zip(&mut self.lower_noise);
        for ((slope, curvature), &factor) in derivatives.zip(field) {
            *slope *= factor;
            *curvature *= factor * factor;
        }
    }

    /// Adds this stretch's gradient with respect to the noise spectra (bins x noise rank), by the derivatives of
    /// [`Workspace::differentiate`].
    pub fn add_noise_gradient(&self, mixture: &Mixture<T>, activations: &[T], gradient: &mut [T]) {
        let noise = mixture.noise_activations(activations);
        accumulate_outer(Columns::new(&self.raise_noise, self.bins), noise, gradient);
    }

    /// Adds this stretch's `raise H'` and `lower H'` (bins x noise rank) to those of the noise spectra.
    pub fn add_noise_slopes(
        &self,
        mixture: &Mixture<T>,
        activations: &[T],
        raise: &mut [T],
        lower: &mut [T],
    ) {
        let noise = mixture.noise_activations(activations);
        accumulate_outer(Columns::new(&self.raise_noise, self.bins), noise, raise);
        accumulate_outer(Columns::new(&self.lower_noise, self.bins), noise, lower);
    }

    /// Adds this stretch's `raise H'` and `lower H'` (bins x speech rank) to those of the dictionary.
    pub fn add_speech_slopes(
        &self,
        mixture: &Mixture<T>,
        activations: &[T],
        raise: &mut [T],
        lower: &mut [T],
    ) {
        let speech = mixture.speech_activations(activations);
        accumulate_outer(Columns::new(&self.raise_speech, self.bins), speech, raise);
        accumulate_outer(Columns::new(&self.lower_speech, self.bins), speech, lower);
    }

    /// Adds this stretch's slopes of the values at the knots (knots x speech rank), for spectra of speech that are
    /// made by `continuation`.
    pub fn add_continuation_slopes(
        &self,
        mixture: &Mixture<T>,
        continuation: &Continuation,
        activations: &[T],
        raise: &mut [T],
        lower: &mut [T],
    ) {
        let speech = mixture.speech_activations(activations);
        continuation.add_slopes(&self.raise_speech, speech, raise);
        continuation.add_slopes(&self.lower_speech, speech, lower);
    }

    /// Adds, per bin, `sum lambda raise` and `sum lambda lower` of speech: the slopes of a channel gain.
    pub fn add_channel_slopes(&self, raise: &mut [T], lower: &mut [T]) {
        for (sum, slopes) in [(raise, &self.raise_speech), (lower, &self.lower_speech)] {
            let columns = slopes.chunks_exact(self.bins).zip(self.lambda_speech.chunks_exact(self.bins));
            for (slopes, lambda) in columns {
                let products = slopes.iter().zip(lambda).map(|(&slope, &lambda)| lambda * slope);
                sum.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
            }
        }
    }
}

fn constant<T: Scalar>(value: f64) -> T {
    T::from(value).unwrap_or_else(T::nan)
}
