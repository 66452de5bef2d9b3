//! Several microphones: the posterior-mean multichannel Wiener filter.
//!
//! In every bin, speech and noise are complex Gaussian with a power per frame and a spatial covariance (Duong, Vincent
//! and Gribonval 2010, "Under-determined reverberant audio source separation using a full-rank spatial covariance
//! model"). As there are only two covariances, their joint diagonalisation is exact. Expectation maximisation in that
//! basis is that of FastMNMF (Sekiguchi et al. 2020) with two sources. The gain of the denoiser for all channels
//! together is the prior for the fraction of speech in a bin, so that no permutation has to be resolved.
//!
//! The output is the target of a [`LinearFilter`], whose output is denoised once more.

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
use std::ops::RangeInclusive;

/// Numbers of channels that a [`SpatialFilter`] supports: the work grows with their square.
pub(crate) const ARRAY_CHANNELS: RangeInclusive<usize> = 2..=16;

/// Filters the channels of one microphone array, block by block, with covariances carried over.
///
/// A channel that has dropped out does not contribute to the others: the gain alone filters it. The filters of the
/// others are estimated from all frames of the block.
pub(crate) struct SpatialFilter {
    channels: usize,
    bins: PerPart<Vec<BinFilter>>,
    dropouts: Dropouts,
}

impl SpatialFilter {
    /// Creates a filter for `channels` microphones and frames of this grid.
    pub(crate) fn new(channels: usize, grid: FrameGrid) -> Self {
        Self {
            channels,
            bins: PerPart::new(vec![BinFilter::new(channels); grid.bins]),
            dropouts: Dropouts::new(channels, grid.frame_seconds),
        }
    }

    /// Replaces the frames of every channel by its image of the speech. `gain` is the prior; `applied` is the prior
    /// with the minimum gain applied (bins x frames each, 0 to 1). Over the first `overlap` frames, the output fades
    /// from the filter of the last block.
    pub(crate) fn filter(
        &mut self,
        spectra: &mut [Spectrogram],
        gain: &[f32],
        applied: &[f32],
        overlap: usize,
    ) {
        let (all, bins) = (0..spectra[0].frames(), spectra[0].bins());
        let mut filtered = Vec::new();
        for part in self.dropouts.parts(spectra, all.clone()) {
            let channels = &part.channels;
            let of_part = |all: &Vec<BinFilter>| all.iter().map(|bin| bin.part(channels)).collect();
            let filters = self.bins.of(channels, self.channels, of_part);
            let inputs = &*spectra;
            let of_bins: Vec<Vec<Complex<f32>>> = filters
                .par_iter_mut()
                .enumerate()
                .map(|(bin, filter)| {
                    let known = |t: usize| {
                        let (gain, applied) = (gain[t * bins + bin], applied[t * bins + bin]);
                        Frame::new(gain, if applied > gain { applied } else { 0.0 })
                    };
                    filter.filter(&column(inputs, channels, bin), all.clone().map(known).collect(), overlap)
                })
                .collect();
            filtered.push((part, of_bins));
        }
        // Written only now, as the filter of every part reads the whole block.
        for (part, of_bins) in &filtered {
            place(of_bins, spectra, part, 0);
            for channel in (0..self.channels).filter(|channel| !part.channels.contains(channel)) {
                for range in part.frames.iter().map(|t| t * bins..(t + 1) * bins) {
                    let values = spectra[channel].as_mut_slice()[range.clone()].iter_mut();
                    values.zip(&applied[range]).for_each(|(value, &gain)| *value *= gain);
                }
            }
        }
    }
}

/// Returns the values of one bin in `channels`: frames x channels.
fn column(spectra: &[Spectrogram], channels: &[usize], bin: usize) -> Vec<Value> {
    let frame = |t: usize| channels.iter().map(move |&channel| spectra[channel].frame(t)[bin]);
    (0..spectra[0].frames()).flat_map(frame).map(|x| Complex::new(x.re.into(), x.im.into())).collect()
}

/// Writes the frames of a part to the spectrograms of its channels. `of_bins` holds the values of each bin, frames x
/// channels, from frame `first` on.
fn place(of_bins: &[Vec<Complex<f32>>], spectra: &mut [Spectrogram], part: &Part, first: usize) {
    let bins = of_bins.len();
    for (index, &channel) in part.channels.iter().enumerate() {
        for t in part.frames.iter().map(|frame| frame - first) {
            let values = &mut spectra[channel].as_mut_slice()[t * bins..(t + 1) * bins];
            for (value, of_bin) in values.iter_mut().zip(of_bins) {
                *value = of_bin[t * part.channels.len() + index];
            }
        }
    }
}
