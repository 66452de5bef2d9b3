//! Channels that are silent for some time beside others: a flat battery, a loose plug.

use super::microphones::SILENT;
use crate::transform::{Spectrogram, bin_power};
use std::ops::Range;

/// Duration from which on a silent channel has dropped out, s. In shorter gaps it keeps its image of the speech, from the others.
const MIN_DROPOUT_SECONDS: f64 = 1.0;

/// Finds, frame by frame, the channels that have dropped out.
pub(super) struct Dropouts {
    /// Frames from which on a silent channel has dropped out.
    least: usize,
    /// Frames at the end of those seen in which each channel was silent.
    silent: Vec<usize>,
}

/// Frames in which the same channels sound.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The channels that have not dropped out.
    pub channels: Vec<usize>,
    /// The frames, in order.
    pub frames: Vec<usize>,
}

impl Dropouts {
    /// For frames that are `hop_seconds` apart.
    pub(super) fn new(channels: usize, hop_seconds: f64) -> Self {
        Self { least: (MIN_DROPOUT_SECONDS / hop_seconds).ceil() as usize, silent: vec![0; channels] }
    }

    /// Divides the frames `span` of every channel, which follow those of the last call, by the channels that sound: those with the
    /// fewest channels first.
    pub(super) fn parts(&mut self, spectra: &[Spectrogram], span: Range<usize>) -> Vec<Part> {
        let channels = spectra.len();
        let mut sounds = vec![true; span.len() * channels];
        for (index, t) in span.clone().enumerate() {
            let power = |channel: &Spectrogram| channel.frame(t).iter().map(bin_power).sum::<f64>();
            let powers: Vec<f64> = spectra.iter().map(power).collect();
            let loudest = powers.iter().copied().fold(0.0, f64::max);
            for (channel, (&power, silent)) in powers.iter().zip(&mut self.silent).enumerate() {
                // Where all are silent, what was so goes on.
                let is_silent = if loudest > 0.0 { power <= SILENT * loudest } else { *silent > 0 };
                *silent = if is_silent { *silent + 1 } else { 0 };
                if *silent >= self.least {
                    // Once it is known, it is so of the frames before, too.
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

/// A filter for all channels, and one for those that are left while others have dropped out: the last ones only, as with a loose
/// plug the same channels drop out again, and each set of channels would have a filter of its own.
pub(super) struct PerPart<F> {
    all: F,
    left: Option<(Vec<usize>, F)>,
}

impl<F> PerPart<F> {
    pub(super) fn new(all: F) -> Self {
        Self { all, left: None }
    }

    /// The filter for these of `all` channels: that of `part` of the filter for all unless they were the last that were left.
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
        // In two calls: the first cannot know.
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
        // One that had dropped out before stays so.
        let mut lost = voice;
        lost[..12].fill(0.0);
        let expected = [part(&[0], 0..12), part(&[0, 1], 12..16)];
        assert_eq!(Dropouts::new(2, 0.25).parts(&spectra(&[&voice, &lost]), 0..16), expected);
    }
}
