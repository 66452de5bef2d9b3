//! Dropouts: channels that are silent for a time while others are not, as with a flat battery or a loose plug.

use super::microphones::SILENT;
use crate::transform::{Spectrogram, bin_power};
use std::ops::Range;

/// Minimum duration of a dropout, s. In shorter gaps, a channel keeps its image of the speech, estimated from the
/// others.
const MIN_DROPOUT_SECONDS: f64 = 1.0;

/// Detects, frame by frame, the channels that have dropped out.
pub(super) struct Dropouts {
    /// Minimum number of frames of a dropout.
    least: usize,
    /// Number of successive silent frames of each channel, up to the last frame.
    silent: Vec<usize>,
}

/// Frames with an equal set of channels that have not dropped out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The channels that have not dropped out.
    pub channels: Vec<usize>,
    /// The frames, in order.
    pub frames: Vec<usize>,
}

impl Dropouts {
    /// Creates a detector for frames `hop_seconds` apart.
    pub(super) fn new(channels: usize, hop_seconds: f64) -> Self {
        Self { least: (MIN_DROPOUT_SECONDS / hop_seconds).ceil() as usize, silent: vec![0; channels] }
    }

    /// Groups the frames `span`, which follow those of the last call, by the channels that have not dropped out. The
    /// parts with the fewest channels are first.
    pub(super) fn parts(&mut self, spectra: &[Spectrogram], span: Range<usize>) -> Vec<Part> {
        let channels = spectra.len();
        let mut sounds = vec![true; span.len() * channels];
        for (index, t) in span.clone().enumerate() {
            let power = |channel: &Spectrogram| channel.frame(t).iter().map(bin_power).sum::<f64>();
            let powers: Vec<f64> = spectra.iter().map(power).collect();
            let loudest = powers.iter().copied().fold(0.0, f64::max);
            for (channel, (&power, silent)) in powers.iter().zip(&mut self.silent).enumerate() {
                // While all channels are silent, the silence of a channel continues, and none begins.
                let is_silent = if loudest > 0.0 { power <= SILENT * loudest } else { *silent > 0 };
                *silent = if is_silent { *silent + 1 } else { 0 };
                if *silent >= self.least {
                    // A detected dropout includes its earlier frames in this call.
                    let known = if *silent == self.least { self.least } else { 1 };
                    let first = (index + 1).saturating_sub(known);
                    (first..=index).for_each(|frame| sounds[frame * channels + channel] = false);
                }
            }
        }
        let mut parts: Vec<Part> = Vec::new();
        for (frame, sounds) in span.zip(sounds.chunks_exact(channels)) {
            let sounding = || (0..channels).filter(|&channel| sounds[channel]);
            match parts.iter_mut().find(|part| sounding().eq(part.channels.iter().copied())) {
                Some(part) => part.frames.push(frame),
                None => parts.push(Part { channels: sounding().collect(), frames: vec![frame] }),
            }
        }
        parts.sort_by_key(|part| part.channels.len());
        parts
    }
}

/// A filter for all channels, and one for the remaining channels of the last dropout. Other sets of channels have no
/// stored filter, as a loose plug drops the same channels again.
pub(super) struct PerPart<F> {
    all: F,
    left: Option<(Vec<usize>, F)>,
}

impl<F> PerPart<F> {
    pub(super) fn new(all: F) -> Self {
        Self { all, left: None }
    }

    /// Returns the filter for `channels`, out of `all` channels. `part` creates it from the filter for all channels,
    /// unless the last set was equal.
    pub(super) fn of(&mut self, channels: &[usize], all: usize, part: impl FnOnce(&F) -> F) -> &mut F {
        if channels.len() == all {
            return &mut self.all;
        }
        let kept = self.left.take().filter(|(left, _)| left == channels);
        &mut self.left.insert(kept.unwrap_or_else(|| (channels.to_vec(), part(&self.all)))).1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex;

    /// Channels of one bin, from their amplitudes.
    fn spectra(channels: &[&[f32]]) -> Vec<Spectrogram> {
        let channel = |values: &&[f32]| {
            let mut frames = Spectrogram::new(1, values.len());
            frames.as_mut_slice().iter_mut().zip(*values).for_each(|(x, &y)| *x = Complex::new(y, 0.0));
            frames
        };
        channels.iter().map(channel).collect()
    }

    fn part(channels: &[usize], frames: impl IntoIterator<Item = usize>) -> Part {
        Part { channels: channels.to_vec(), frames: frames.into_iter().collect() }
    }

    #[test]
    fn channels_drop_out_and_come_back() {
        // Four frames a second.
        let voice = [0.5f32; 16];
        let mut lost = voice;
        lost[3..6].fill(0.0);
        // 61 dB below the other.
        lost[8..13].fill(4.4e-4);
        let channels = spectra(&[&voice, &lost]);
        let mut dropouts = Dropouts::new(2, 0.25);
        let expected = [part(&[0], 8..13), part(&[0, 1], (0..8).chain(13..16))];
        assert_eq!(dropouts.parts(&channels, 0..16), expected);
        // In two calls, the dropout is too short to be detected in the first.
        let mut dropouts = Dropouts::new(2, 0.25);
        assert_eq!(dropouts.parts(&channels, 0..10), [part(&[0, 1], 0..10)]);
        assert_eq!(dropouts.parts(&channels, 10..16), [part(&[0], 10..13), part(&[0, 1], 13..16)]);
    }

    #[test]
    fn silence_of_all_is_no_dropout() {
        let mut voice = [0.5f32; 16];
        voice[4..12].fill(0.0);
        let mut dropouts = Dropouts::new(2, 0.25);
        assert_eq!(dropouts.parts(&spectra(&[&voice, &voice]), 0..16), [part(&[0, 1], 0..16)]);
        // A channel that dropped out before the silence stays dropped out.
        let mut lost = voice;
        lost[..12].fill(0.0);
        let expected = [part(&[0], 0..12), part(&[0, 1], 12..16)];
        assert_eq!(Dropouts::new(2, 0.25).parts(&spectra(&[&voice, &lost]), 0..16), expected);
    }
}
