//! Evaluation of the mixture on a tile of frames, in reusable buffers.
//!
//! Types that borrow the buffers state their contents: [`Workspace::disperse`] returns [`Dispersions`],
//! [`evaluate`](Dispersions::evaluate) [`SourceShares`], [`update_terms`](SourceShares::update_terms) [`UpdateTerms`],
//! and [`differentiate`](UpdateTerms::differentiate) [`Derivatives`].
//!
//! ```
//! # use alphamf::internals::{Factor, ImpulseVariables, MarginalTable, Mixture, Workspace};
//! # let factor = |alpha| Factor { alpha, spectra: vec![1.0_f32; 4] };
//! # let mixture = Mixture { bins: 4, speech: factor(0.8), noise: factor(1.9) };
//! # let (table, power) = (MarginalTable::new(0.8, 1.9), [1.0; 12]);
//! # let (impulses, activations) = (ImpulseVariables::Integrated(&table), [1.0; 6]);
//! let mut workspace = Workspace::default();
//! let mut dispersed = workspace.disperse(&mixture, &activations);
//! let terms = dispersed.evaluate(impulses, &power).update_terms();
//! let (mut numerator, mut denominator) = ([0.0; 6], [0.0; 6]);
//! terms.activations(&mut numerator, &mut denominator);
//! ```
//!
//! Update terms cannot be read after the next tile has overwritten them:
//!
//! ```compile_fail,E0499
//! # use alphamf::internals::{Factor, ImpulseVariables, MarginalTable, Mixture, Workspace};
//! # let factor = |alpha| Factor { alpha, spectra: vec![1.0_f32; 4] };
//! # let mixture = Mixture { bins: 4, speech: factor(0.8), noise: factor(1.9) };
//! # let (table, power) = (MarginalTable::new(0.8, 1.9), [1.0; 12]);
//! # let (impulses, activations) = (ImpulseVariables::Integrated(&table), [1.0; 6]);
//! let mut workspace = Workspace::default();
//! let mut dispersed = workspace.disperse(&mixture, &activations);
//! let terms = dispersed.evaluate(impulses, &power).update_terms();
//! let (mut numerator, mut denominator) = ([0.0; 6], [0.0; 6]);
//! workspace.disperse(&mixture, &activations);
//! terms.activations(&mut numerator, &mut denominator);
//! ```

use super::continuation::Continuation;
use super::mixture::{ImpulseVariables, Mixture, Scalar, constant};
use crate::kernels::products::{Columns, accumulate_outer, product, product_with_transpose};
use crate::kernels::vector::dispatch;

/// Buffers to evaluate the mixture on a tile of frames; they allocate only to grow.
#[derive(Debug, Clone)]
pub struct Workspace<T> {
    /// Dispersions, bins x frames.
    pub(super) lambda_speech: Vec<T>,
    pub(super) lambda_noise: Vec<T>,
    /// One value per bin and frame; `speech` and `noise` hold two for each source.
    pub(super) joint: Vec<T>,
    pub(super) speech: [Vec<T>; 2],
    pub(super) noise: [Vec<T>; 2],
}

/// The dispersions of both sources on a tile of frames, bins x frames each.
#[derive(Debug)]
pub struct Dispersions<'a, T> {
    pub(super) mixture: &'a Mixture<T>,
    /// Rank x frames, speech first.
    pub(super) activations: &'a [T],
    /// Field that multiplies the dispersions of noise, bins x frames; empty for none.
    pub(super) field: &'a [T],
    pub(super) workspace: &'a mut Workspace<T>,
}

/// The fractions of the sources in each bin, given its power.
#[derive(Debug)]
pub struct SourceShares<'a, T>(Dispersions<'a, T>);

/// Numerator and denominator of the multiplicative update of the dispersions: `|X|^2 v_s / (v^2 lambda_s)` and
/// `v_s / (v lambda_s)` or their expectations; for noise, with `v_n` and `lambda_n`.
///
/// The terms of noise refer to its dispersion before the field. A multiplicative update multiplies a factor by a power of
/// the ratio of its two sums.
#[derive(Debug)]
pub struct UpdateTerms<'a, T>(Dispersions<'a, T>);

/// The derivatives of the potential with respect to the dispersions.
#[derive(Debug)]
pub struct Derivatives<'a, T>(pub(super) Dispersions<'a, T>);

/// Bins per chunk of the element-wise stages.
pub(super) const CHUNK: usize = 64;

/// A chunk of bins: logarithms, and results.
pub(super) struct Chunk<T> {
    pub(super) len: usize,
    pub(super) log_power: [T; CHUNK],
    /// Log variances for impulse variables of one.
    pub(super) log_speech: [T; CHUNK],
    pub(super) log_noise: [T; CHUNK],
    /// Three results per bin.
    pub(super) found: [[T; CHUNK]; 3],
}

impl<T: Scalar> Chunk<T> {
    pub(super) fn new() -> Self {
        let zeros = [T::zero(); CHUNK];
        Self { len: 0, log_power: zeros, log_speech: zeros, log_noise: zeros, found: [zeros; 3] }
    }

    #[inline(always)]
    pub(super) fn load(
        &mut self,
        (speech, noise): (T, T),
        power: &[T],
        lambda_speech: &[T],
        lambda_noise: &[T],
    ) {
        self.len = power.len();
        for i in 0..self.len {
            self.log_power[i] = power[i].fast_ln();
            self.log_speech[i] = speech * lambda_speech[i].fast_ln();
            self.log_noise[i] = noise * lambda_noise[i].fast_ln();
        }
    }
}

/// Minimum dispersion; recordings are scaled to a mean power of one.
const MIN_DISPERSION: f64 = 1e-12;

impl<T> Default for Workspace<T> {
    /// An empty workspace.
    fn default() -> Self {
        let empty = Vec::new;
        Self {
            lambda_speech: empty(),
            lambda_noise: empty(),
            joint: empty(),
            speech: [empty(), empty()],
            noise: [empty(), empty()],
        }
    }
}

impl<T: Scalar> Workspace<T> {
    fn resize(&mut self, count: usize) {
        let Self { lambda_speech, lambda_noise, joint, speech, noise } = self;
        for buffer in [lambda_speech, lambda_noise, joint].into_iter().chain(speech).chain(noise) {
            buffer.resize(count, T::zero());
        }
    }

    /// Computes `lambda = W H` of both sources from activations `H` (rank x frames, speech first).
    pub fn disperse<'a>(&'a mut self, mixture: &'a Mixture<T>, activations: &'a [T]) -> Dispersions<'a, T> {
        let bins = mixture.bins;
        self.resize(activations.len() / mixture.rank() * bins);
        let (speech, noise) =
            (mixture.speech_activations(activations), mixture.noise_activations(activations));
        product(mixture.speech.columns(bins), speech, &mut self.lambda_speech);
        product(mixture.noise.columns(bins), noise, &mut self.lambda_noise);
        let floor = constant::<T>(MIN_DISPERSION);
        for lambda in [&mut self.lambda_speech, &mut self.lambda_noise] {
            lambda.iter_mut().for_each(|lambda| *lambda += floor);
        }
        Dispersions { mixture, activations, field: &[], workspace: self }
    }
}

impl<'a, T: Scalar> Dispersions<'a, T> {
    /// Multiplies the dispersions of noise by a field that drifts over time (bins x frames; empty for none).
    #[must_use]
    pub fn modulated(self, field: &'a [T]) -> Self {
        self.workspace.lambda_noise.iter_mut().zip(field).for_each(|(lambda, &factor)| *lambda *= factor);
        Self { field, ..self }
    }

    /// The mixture of the dispersions.
    #[must_use]
    pub fn mixture(&self) -> &'a Mixture<T> {
        self.mixture
    }

    /// The dispersions of speech and of noise, bins x frames each.
    #[must_use]
    pub fn dispersions(&self) -> (&[T], &[T]) {
        (&self.workspace.lambda_speech, &self.workspace.lambda_noise)
    }

    /// Computes the fractions of the sources from powers `|X|^2` (bins x frames, at least `MIN_POWER`).
    pub fn evaluate(&mut self, impulses: ImpulseVariables<T>, power: &[T]) -> SourceShares<'_, T> {
        let exponents = self.mixture.variance_exponents();
        let workspace = &mut *self.workspace;
        dispatch(
            #[inline(always)]
            || match impulses {
                ImpulseVariables::Integrated(table) => workspace.share_with(exponents, power, |_, chunk| {
                    let Chunk { log_power, log_speech, log_noise, found, .. } = chunk;
                    let [gain, speech_power, noise_power] = found;
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
                ImpulseVariables::Sampled(values) => {
                    workspace.share_with(exponents, power, |first, chunk| values.share(first, power, chunk))
                }
            },
        );
        SourceShares(self.reborrow())
    }

    /// Writes the potential `U = sum log v + |X|^2 / v` of each frame, with the impulse variables integrated out or given.
    pub fn potential(&self, impulses: ImpulseVariables<T>, power: &[T], potential: &mut [f64]) {
        potential.fill(0.0);
        let bins = self.mixture.bins;
        self.for_each_term(impulses, power, |i, term| potential[i / bins] += term);
    }

    /// Writes the potential of each bin, summed over frames.
    pub fn bin_potential(&self, impulses: ImpulseVariables<T>, power: &[T], potential: &mut [f64]) {
        potential.fill(0.0);
        let bins = self.mixture.bins;
        self.for_each_term(impulses, power, |i, term| potential[i % bins] += term);
    }

    fn for_each_term(&self, impulses: ImpulseVariables<T>, power: &[T], mut add: impl FnMut(usize, f64)) {
        let (speech_exponent, noise_exponent) = self.mixture.variance_exponents();
        let (lambda_speech, lambda_noise) = self.dispersions();
        for (i, &power) in power.iter().enumerate() {
            let log_speech = speech_exponent * lambda_speech[i].fast_ln();
            let log_noise = noise_exponent * lambda_noise[i].fast_ln();
            let term = match impulses {
                ImpulseVariables::Integrated(table) => {
                    let log_power = power.fast_ln();
                    let ratio = |log_variance: T| (log_power - log_variance).to_f32().unwrap_or(0.0);
                    let e = table.expectations(ratio(log_speech), ratio(log_noise));
                    log_power - T::convert(e.log_evidence)
                }
                ImpulseVariables::Sampled(values) => {
                    let [speech, noise] = values.variances(i, log_speech, log_noise);
                    let variance = speech + noise;
                    variance.fast_ln() + power / variance
                }
            };
            add(i, term.to_f64().unwrap_or(f64::NAN));
        }
    }

    pub(super) fn reborrow(&mut self) -> Dispersions<'_, T> {
        let Self { mixture, activations, field, workspace } = self;
        Dispersions { mixture, activations, field, workspace }
    }

    /// Writes the products of the transposed spectra with values of speech and of noise (bins x frames each): one per
    /// activation (rank x frames).
    fn over_bins(&self, speech: &[T], noise: &[T], sums: &mut [T]) {
        let Self { mixture, .. } = self;
        let (bins, rank, split) = (mixture.bins, mixture.rank(), mixture.speech_rank());
        product_with_transpose(mixture.speech.columns(bins), Columns::new(speech, bins), sums, rank, 0);
        product_with_transpose(mixture.noise.columns(bins), Columns::new(noise, bins), sums, rank, split);
    }
}

impl<T: Scalar> Workspace<T> {
    /// Iterates over the dispersions in chunks. For each, `expect` receives the index of the first bin, and writes the gain,
    /// `E[|X|^2 v_s / v^2]` and `E[|X|^2 v_n / v^2]`.
    #[inline(always)]
    fn share_with(&mut self, exponents: (T, T), power: &[T], mut expect: impl FnMut(usize, &mut Chunk<T>)) {
        let mut chunk = Chunk::new();
        let ([speech_numerator, speech_denominator], [noise_numerator, noise_denominator]) =
            (&mut self.speech, &mut self.noise);
        for first in (0..power.len()).step_by(CHUNK) {
            let range = first..(first + CHUNK).min(power.len());
            let (lambda_speech, lambda_noise) =
                (&self.lambda_speech[range.clone()], &self.lambda_noise[range.clone()]);
            chunk.load(exponents, &power[range.clone()], lambda_speech, lambda_noise);
            expect(first, &mut chunk);
            let [gain, speech_power, noise_power] = &chunk.found;
            self.joint[range.clone()].copy_from_slice(&gain[..chunk.len]);
            let speech_numerator = &mut speech_numerator[range.clone()];
            let speech_denominator = &mut speech_denominator[range.clone()];
            let noise_numerator = &mut noise_numerator[range.clone()];
            let noise_denominator = &mut noise_denominator[range];
            for i in 0..chunk.len {
                speech_numerator[i] = speech_power[i] / lambda_speech[i];
                speech_denominator[i] = gain[i] / lambda_speech[i];
                noise_numerator[i] = noise_power[i] / lambda_noise[i];
                noise_denominator[i] = (T::one() - gain[i]) / lambda_noise[i];
            }
        }
    }
}

impl<'a, T: Scalar> SourceShares<'a, T> {
    /// The Wiener gain `v_s / v` or its expectation, bins x frames.
    #[must_use]
    pub fn gain(&self) -> &[T] {
        &self.0.workspace.joint
    }

    /// Writes `E[|X|^2 v_n / v^2]` and `E[v_n / v]` of each bin: numerator and denominator of the update of a factor of the
    /// noise's dispersion.
    pub fn of_noise(&self, power: &mut [T], share: &mut [T]) {
        let Workspace { lambda_noise, joint, noise: [numerator, _], .. } = &*self.0.workspace;
        let slopes = numerator.iter().zip(lambda_noise);
        power.iter_mut().zip(slopes).for_each(|(power, (&numerator, &lambda))| *power = numerator * lambda);
        share.iter_mut().zip(joint).for_each(|(share, &gain)| *share = T::one() - gain);
    }

    /// The terms of multiplicative updates.
    #[must_use]
    pub fn update_terms(self) -> UpdateTerms<'a, T> {
        let Self(dispersed) = self;
        for terms in &mut dispersed.workspace.noise {
            terms.iter_mut().zip(dispersed.field).for_each(|(term, &factor)| *term *= factor);
        }
        UpdateTerms(dispersed)
    }
}

impl<'a, T: Scalar> UpdateTerms<'a, T> {
    /// Writes the sums for the activations, rank x frames.
    pub fn activations(&self, numerator: &mut [T], denominator: &mut [T]) {
        let Workspace { speech, noise, .. } = &*self.0.workspace;
        self.0.over_bins(&speech[0], &noise[0], numerator);
        self.0.over_bins(&speech[1], &noise[1], denominator);
    }

    /// Adds the sums for the noise spectra, bins x noise rank.
    pub fn add_noise(&self, numerator: &mut [T], denominator: &mut [T]) {
        let Dispersions { mixture, activations, workspace, .. } = &self.0;
        let noise = mixture.noise_activations(activations);
        for (terms, sums) in workspace.noise.iter().zip([numerator, denominator]) {
            accumulate_outer(Columns::new(terms, mixture.bins), noise, sums);
        }
    }

    /// Adds the sums for the dictionary, bins x speech rank.
    pub fn add_speech(&self, numerator: &mut [T], denominator: &mut [T]) {
        let Dispersions { mixture, activations, workspace, .. } = &self.0;
        let speech = mixture.speech_activations(activations);
        for (terms, sums) in workspace.speech.iter().zip([numerator, denominator]) {
            accumulate_outer(Columns::new(terms, mixture.bins), speech, sums);
        }
    }

    /// Adds the sums for the values at the knots (knots x speech rank) of spectra of speech that `continuation` interpolates.
    pub fn add_continuation(&self, continuation: &Continuation, numerator: &mut [T], denominator: &mut [T]) {
        let Dispersions { mixture, activations, workspace, .. } = &self.0;
        let speech = mixture.speech_activations(activations);
        for (terms, sums) in workspace.speech.iter().zip([numerator, denominator]) {
            continuation.add_terms(terms, speech, sums);
        }
    }

    /// Adds, per bin, the sums for a gain that multiplies the dispersions of speech.
    pub fn add_gain(&self, numerator: &mut [T], denominator: &mut [T]) {
        let Dispersions { mixture, workspace, .. } = &self.0;
        let bins = mixture.bins;
        for (sum, terms) in [numerator, denominator].into_iter().zip(&workspace.speech) {
            let columns = terms.chunks_exact(bins).zip(workspace.lambda_speech.chunks_exact(bins));
            for (terms, lambda) in columns {
                let products = terms.iter().zip(lambda).map(|(&term, &lambda)| lambda * term);
                sum.iter_mut().zip(products).for_each(|(sum, product)| *sum += product);
            }
        }
    }

    /// The derivatives of the potential.
    #[must_use]
    pub fn differentiate(self) -> Derivatives<'a, T> {
        let Self(dispersed) = self;
        let (speech, noise) = dispersed.mixture.variance_exponents();
        let subtract = |[numerator, denominator]: &mut [Vec<T>; 2], exponent: T| {
            numerator
                .iter_mut()
                .zip(denominator)
                .for_each(|(numerator, &mut denominator)| *numerator = exponent * (denominator - *numerator));
        };
        subtract(&mut dispersed.workspace.speech, speech);
        subtract(&mut dispersed.workspace.noise, noise);
        Derivatives(dispersed)
    }
}

impl<T: Scalar> Derivatives<'_, T> {
    /// Writes the gradient of the potential with respect to the activations, rank x frames.
    pub fn activations(&self, gradient: &mut [T]) {
        let Workspace { speech: [speech, _], noise: [noise, _], .. } = &*self.0.workspace;
        self.0.over_bins(speech, noise, gradient);
    }

    /// Adds the gradient with respect to the noise spectra, bins x noise rank.
    pub fn add_noise(&self, gradient: &mut [T]) {
        self.add_noise_at(self.0.activations, gradient);
    }

    /// Adds the gradient with respect to the noise spectra, for activations other than those of the dispersions.
    pub(super) fn add_noise_at(&self, activations: &[T], gradient: &mut [T]) {
        let Dispersions { mixture, workspace, .. } = &self.0;
        let noise = mixture.noise_activations(activations);
        accumulate_outer(Columns::new(&workspace.noise[0], mixture.bins), noise, gradient);
    }
}
