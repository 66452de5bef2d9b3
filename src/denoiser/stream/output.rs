//! Output of a stream: from filtered frames to samples.

use crate::transform::{Spectrogram, Stft, Synthesiser};

/// The channels of the output.
pub(super) struct Output(Vec<OutputChannel>);

struct OutputChannel {
    synthesiser: Synthesiser,
    /// Samples that have not been returned.
    samples: Vec<f32>,
}

impl Output {
    pub(super) fn new(stft: &Stft, channels: usize) -> Self {
        let channel = |_| OutputChannel { synthesiser: stft.synthesiser(), samples: Vec::new() };
        Self((0..channels).map(channel).collect())
    }

    /// Number of channels.
    pub(super) fn channels(&self) -> usize {
        self.0.len()
    }

    /// Synthesises the next frames of every channel.
    pub(super) fn push(&mut self, spectra: &[Spectrogram]) {
        for (channel, frames) in self.0.iter_mut().zip(spectra) {
            channel.synthesiser.push(frames, &mut channel.samples);
        }
    }

    /// Ends every channel after `samples` samples.
    pub(super) fn finish(&mut self, stft: &Stft, samples: u64) {
        for channel in &mut self.0 {
            let synthesiser = std::mem::replace(&mut channel.synthesiser, stft.synthesiser());
            synthesiser.finish(samples, &mut channel.samples);
        }
    }

    /// Removes and returns the finished samples of every channel.
    pub(super) fn take(&mut self) -> Vec<Vec<f32>> {
        self.0.iter_mut().map(|channel| std::mem::take(&mut channel.samples)).collect()
    }
}
