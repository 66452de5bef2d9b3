//! Second-order expansions of the potential in one factor at a time, for Newtonian Monte Carlo.

use super::super::marginal::MarginalTable;
use super::super::mixture::{ImpulseVariables, Scalar};
use super::super::workspace::{CHUNK, Chunk, Dispersions, Workspace};
use crate::kernels::vector::dispatch;

/// The potential of each bin, and its first two derivatives with respect to the dispersion of one source (before the
/// field).
struct Expansion<'a, T> {
    potentials: &'a [T],
    slopes: &'a [T],
    curvatures: &'a [T],
}

impl<T: Scalar> Dispersions<'_, T> {
    /// The potential of every frame and its first two derivatives with respect to activation number `row`.
    ///
    /// With impulse variables integrated out, the second derivative is a difference of tabulated values.
    pub fn expand_activation(
        &mut self,
        impulses: ImpulseVariables<T>,
        power: &[T],
        row: usize,
        [potential, gradient, hessian]: [&mut [f64]; 3],
    ) {
        let (mixture, bins, split) = (self.mixture, self.mixture.bins, self.mixture.speech_rank());
        let of_speech = row < split;
        let Expansion { potentials, slopes, curvatures } = self.expand(impulses, power, of_speech);
        let (spectra, column) =
            if of_speech { (&mixture.speech.spectra, row) } else { (&mixture.noise.spectra, row - split) };
        let spectrum = &spectra[column * bins..][..bins];
        for frame in 0..potential.len() {
            let entries = frame * bins..(frame + 1) * bins;
            let mut sums = [T::zero(); 3];
            let [terms, slopes, curvatures] =
                [potentials, slopes, curvatures].map(|values| &values[entries.clone()]);
            for (bin, &w) in spectrum.iter().enumerate() {
                sums[0] += terms[bin];
                sums[1] += slopes[bin] * w;
                sums[2] += curvatures[bin] * w * w;
            }
            let [term, slope, curvature] = sums.map(|sum| sum.to_f64().unwrap_or(f64::NAN));
            (potential[frame], gradient[frame], hessian[frame]) = (term, slope, curvature);
        }
    }

    /// Adds the potential of every bin and its first two derivatives with respect to noise spectrum number `column`.
    pub fn add_noise_expansion(
        &mut self,
        impulses: ImpulseVariables<T>,
        power: &[T],
        column: usize,
        [potential, gradient, hessian]: [&mut [f64]; 3],
    ) {
        let (mixture, activations, bins) = (self.mixture, self.activations, self.mixture.bins);
        let Expansion { potentials, slopes, curvatures } = self.expand(impulses, power, false);
        let row = mixture.speech_rank() + column;
        let widen = |value: T| value.to_f64().unwrap_or(f64::NAN);
        for (frame, activations) in activations.chunks_exact(mixture.rank()).enumerate() {
            let activation = activations[row];
            for bin in 0..bins {
                let i = frame * bins + bin;
                potential[bin] += widen(potentials[i]);
                gradient[bin] += widen(activation * slopes[i]);
                hessian[bin] += widen(activation * activation * curvatures[i]);
            }
        }
    }

    /// Expands the potential of every bin in the dispersion of speech or of noise.
    fn expand(&mut self, impulses: ImpulseVariables<T>, power: &[T], of_speech: bool) -> Expansion<'_, T> {
        let exponents = self.mixture.variance_exponents();
        let workspace = &mut *self.workspace;
        dispatch(
            #[inline(always)]
            || match impulses {
                ImpulseVariables::Integrated(table) => {
                    workspace.expand_with(exponents, power, of_speech, |_, chunk| {
                        expand_tabulated(table, of_speech, chunk);
                    })
                }
                ImpulseVariables::Sampled(values) => {
                    workspace.expand_with(exponents, power, of_speech, |first, chunk| {
                        values.expand(first, power, of_speech, chunk);
                    })
                }
            },
        );
        let [slopes, curvatures] = if of_speech { &mut workspace.speech } else { &mut workspace.noise };
        if !of_speech {
            for ((slope, curvature), &factor) in slopes.iter_mut().zip(&mut *curvatures).zip(self.field) {
                *slope *= factor;
                *curvature *= factor * factor;
            }
        }
        Expansion { potentials: &workspace.joint, slopes, curvatures }
    }
}

impl<T: Scalar> Workspace<T> {
    /// Computes the expansion of each bin. For each chunk, `derive` writes the potential and its first two derivatives
    /// with respect to the log variance of the source.
    #[inline(always)]
    fn expand_with(
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
            let [potentials, of_slope, of_curvature] = &chunk.found;
            self.joint[range.clone()].copy_from_slice(&potentials[..chunk.len]);
            let (lambda, [slopes, curvatures]) =
                if of_speech { (lambda_speech, &mut self.speech) } else { (lambda_noise, &mut self.noise) };
            let (slopes, curvatures) = (&mut slopes[range.clone()], &mut curvatures[range]);
            for i in 0..chunk.len {
                let (slope, curvature) = (of_slope[i], of_curvature[i]);
                slopes[i] = exponent * slope / lambda[i];
                curvatures[i] = exponent * (exponent * curvature - slope) / (lambda[i] * lambda[i]);
            }
        }
    }
}

/// Writes the potential of a chunk of bins with impulse variables integrated out, and its first two derivatives with respect
/// to the log variance of one source.
#[inline(always)]
fn expand_tabulated<T: Scalar>(table: &MarginalTable, of_speech: bool, chunk: &mut Chunk<T>) {
    const WIDTH: f32 = MarginalTable::CELL;
    for i in 0..chunk.len {
        let ratio = |log_variance: T| (chunk.log_power[i] - log_variance).to_f32().unwrap_or(0.0);
        let (speech, noise) = (ratio(chunk.log_speech[i]), ratio(chunk.log_noise[i]));
        let at = |shift: f32| {
            let e = if of_speech {
                table.expectations(speech - shift, noise)
            } else {
                table.expectations(speech, noise - shift)
            };
            let slope = if of_speech { e.gain - e.speech_power } else { 1.0 - e.gain - e.noise_power };
            (e.log_evidence, slope)
        };
        let (log_evidence, slope) = at(0.0);
        let [potentials, slopes, curvatures] = &mut chunk.found;
        potentials[i] = chunk.log_power[i] - T::convert(log_evidence);
        slopes[i] = T::convert(slope);
        curvatures[i] = T::convert((at(WIDTH).1 - at(-WIDTH).1) / (2.0 * WIDTH));
    }
}
