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
mod dropouts;
mod hermitian;
mod linear;
mod microphones;
#[cfg(test)]
mod tests;

use crate::parallel::*;
use crate::transform::{FrameGrid, Spectrogram};
use bin::{BinFilter, Frame};
use dropouts::{Dropouts, Part, PerPart};
use hermitian::Value;
pub(crate) use linear::LinearFilter;
pub use microphones::MicrophoneFault;
pub(crate) use microphones::Microphones;
use num_complex::Complex;
use std::ops::{Range, RangeInclusive};

/// Numbers of channels that a [`SpatialFilter`] takes: the work grows with their square.
pub(crate) const ARRAY_CHANNELS: RangeInclusive<usize> = 2..=16;

/// Filters the channels of one microphone array, block by block, with covariances carried over.
///
/// A channel that has dropped out has no part in the others: the gain alone filters it.
pub(crate) struct SpatialFilter {
    channels: usize,
    bins: PerPart<Vec<BinFilter>>,
    dropouts: Dropouts,
}

impl SpatialFilter {
    /// For `channels` microphones and frames of this grid.
    pub(crate) fn new(channels: usize, grid: FrameGrid) -> Self {
        Self {
            channels,
            bins: PerPart::new(vec![BinFilter::new(channels); grid.bins]),
            dropouts: Dropouts::new(channels, grid.frame_seconds),
        }
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
        let frames = spectra.first().map_or(0, Spectrogram::frames);
        for Part { frames, channels } in self.dropouts.parts(spectra, 0..frames) {
            let bins = spectra[0].bins();
            let range = frames.start * bins..frames.end * bins;
            for channel in (0..self.channels).filter(|channel| !channels.contains(channel)) {
                let values = spectra[channel].as_mut_slice()[range.clone()].iter_mut();
                values.zip(&applied[range.clone()]).for_each(|(value, &gain)| *value *= gain);
            }
            if channels.is_empty() {
                continue;
            }
            let part = |all: &Vec<BinFilter>| all.iter().map(|bin| bin.part(&channels)).collect();
            let filters = self.bins.of(&channels, self.channels, part);
            let inputs = &*spectra;
            let of_bins: Vec<Vec<Complex<f32>>> = filters
                .par_iter_mut()
                .enumerate()
                .map(|(bin, filter)| {
                    let known: Vec<Frame> = frames
                        .clone()
                        .map(|t| {
                            let (gain, applied) = (gain[t * bins + bin], applied[t * bins + bin]);
                            Frame::new(gain, if applied > gain { applied } else { 0.0 })
                        })
                        .collect();
                    filter.filter(&column(inputs, &channels, frames.clone(), bin), known, overlap)
                })
                .collect();
            place(&of_bins, spectra, &channels, frames.start);
        }
    }
}

/// One bin of some channels: frames x channels.
fn column(spectra: &[Spectrogram], channels: &[usize], frames: Range<usize>, bin: usize) -> Vec<Value> {
    let frame = |t: usize| channels.iter().map(move |&channel| spectra[channel].frame(t)[bin]);
    frames.flat_map(frame).map(|x| Complex::new(x.re.into(), x.im.into())).collect()
}

/// Puts all bins (frames x channels each) into the spectrograms of these channels, from frame `first` on.
fn place(of_bins: &[Vec<Complex<f32>>], spectra: &mut [Spectrogram], channels: &[usize], first: usize) {
    let bins = of_bins.len();
    for (index, &channel) in channels.iter().enumerate() {
        let frames = spectra[channel].as_mut_slice().chunks_exact_mut(bins).skip(first);
        let values = of_bins.first().map_or(0, Vec::len) / channels.len();
        for (t, frame) in frames.take(values).enumerate() {
            for (value, of_bin) in frame.iter_mut().zip(of_bins) {
                *value = of_bin[t * channels.len() + index];
            }
        }
    }
}
