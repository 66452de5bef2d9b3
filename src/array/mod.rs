//! Several microphones: the posterior-mean multichannel Wiener filter.
//!
//! In every bin, speech and noise are complex Gaussian with a power per frame and a spatial covariance (Duong, Vincent and
//! Gribonval 2010, "Under-determined reverberant audio source separation using a full-rank spatial covariance model"). The
//! two covariances are diagonalised jointly, and exactly so, as there are two; expectation maximisation in that basis is that
//! of FastMNMF (Sekiguchi et al. 2020) with two sources. The gain that the denoiser finds for all channels together is the
//! prior of which part of a bin is speech, so that no permutation has to be resolved.
//!
//! What this finds is the target of a [`LinearFilter`], whose output is denoised once more.

mod bin;
mod hermitian;
mod linear;
mod microphones;
#[cfg(test)]
mod tests;

use crate::parallel::*;
use crate::transform::Spectrogram;
use bin::{BinFilter, Frame};
use hermitian::Value;
pub(crate) use linear::LinearFilter;
pub use microphones::MicrophoneFault;
pub(crate) use microphones::Microphones;
use num_complex::Complex;
use std::ops::RangeInclusive;

/// Numbers of channels that a [`SpatialFilter`] takes: the work grows with their square.
pub(crate) const ARRAY_CHANNELS: RangeInclusive<usize> = 2..=16;

/// Filters the channels of one microphone array, block by block, with covariances carried over.
pub(crate) struct SpatialFilter {
    bins: Vec<BinFilter>,
}

impl SpatialFilter {
    /// For `channels` microphones and frames of `bins` bins.
    pub(crate) fn new(channels: usize, bins: usize) -> Self {
        Self { bins: vec![BinFilter::new(channels); bins] }
    }

    /// Replaces the frames of every channel by its image of the speech. `gain` is the prior, `applied` the same with the minimum
    /// gain that remains (bins x frames each, 0 to 1). The first `overlap` frames fade from the filter of the last block.
    pub(crate) fn filter(
        &mut self,
        spectra: &mut [Spectrogram],
        gain: &[f32],
        applied: &[f32],
        overlap: usize,
    ) {
        let bins = self.bins.len();
        let frames = gain.len() / bins;
        let inputs = &*spectra;
        let of_bins: Vec<Vec<Complex<f32>>> = self
            .bins
            .par_iter_mut()
            .enumerate()
            .map(|(bin, filter)| {
                let frames: Vec<Frame> = (0..frames)
                    .map(|t| {
                        let (gain, applied) = (gain[t * bins + bin], applied[t * bins + bin]);
                        Frame::new(gain, if applied > gain { applied } else { 0.0 })
                    })
                    .collect();
                filter.filter(&column(inputs, bin), frames, overlap)
            })
            .collect();
        place(&of_bins, spectra);
    }
}

/// One bin of some channels: frames x channels.
fn column(spectra: &[Spectrogram], bin: usize) -> Vec<Value> {
    let frames = 0..spectra.first().map_or(0, Spectrogram::frames);
    let frame = |t: usize| spectra.iter().map(move |channel| channel.frame(t)[bin]);
    frames.flat_map(frame).map(|x| Complex::new(x.re.into(), x.im.into())).collect()
}

/// Puts all bins (frames x channels each) into the spectrograms of the channels.
fn place(of_bins: &[Vec<Complex<f32>>], spectra: &mut [Spectrogram]) {
    let (bins, channels) = (of_bins.len(), spectra.len());
    for (channel, spectrogram) in spectra.iter_mut().enumerate() {
        for (t, frame) in spectrogram.as_mut_slice().chunks_exact_mut(bins).enumerate() {
            for (value, of_bin) in frame.iter_mut().zip(of_bins) {
                *value = of_bin[t * channels + channel];
            }
        }
    }
}
