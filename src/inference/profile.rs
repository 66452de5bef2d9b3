//! What is known of the noise beforehand.

use super::denoiser::{DenoiseError, Denoiser};
use super::impulses;
use crate::audio::{Analyser, Spectrogram, Stft};

/// The mean power spectrum of a stretch that holds noise alone; made by [`Denoiser::noise_profile`] for
/// [`DenoiseStream::start_from`](super::DenoiseStream::start_from).
pub struct NoiseProfile {
    sample_rate: u32,
    analysers: Vec<Analyser>,
    frames: Spectrogram,
    /// Frames still to be left out, which hold silence before the stretch.
    lead: usize,
    /// Sum of powers over frames and channels, per bin.
    sum: Vec<f64>,
    count: u64,
}

impl NoiseProfile {
    pub(super) fn new(denoiser: &Denoiser, sample_rate: u32, channels: usize) -> Result<Self, DenoiseError> {
        let stft = Stft::new(sample_rate, denoiser.dictionary().header().window_seconds)?;
        Ok(Self {
            sample_rate,
            analysers: (0..channels).map(|_| stft.analyser()).collect(),
            frames: Spectrogram::new(stft.bins(), 0),
            lead: (stft.window() - 1) / stft.hop(),
            sum: vec![0.0; stft.bins()],
            count: 0,
        })
    }

    /// Takes the next samples of every channel, without the impulses in time that are found in them.
    ///
    /// # Panics
    /// If there are more or fewer channels than announced, or of unequal length.
    pub fn push(&mut self, block: &[&[f32]]) {
        assert_eq!(block.len(), self.analysers.len(), "channels of the block and of the profile");
        let mut completed = 0;
        for (channel, (analyser, samples)) in self.analysers.iter_mut().zip(block).enumerate() {
            let (repaired, _) = impulses::repair(samples, self.sample_rate);
            analyser.push(&repaired, &mut self.frames);
            let frames = self.frames.frames();
            assert!(channel == 0 || frames == completed, "channels of equal length");
            completed = frames;
            for frame in self.lead.min(frames)..frames {
                let powers = self.frames.frame(frame).iter().map(|x| f64::from(x.norm_sqr()));
                self.sum.iter_mut().zip(powers).for_each(|(sum, power)| *sum += power);
            }
            self.frames = Spectrogram::new(self.sum.len(), 0);
        }
        self.count += completed.saturating_sub(self.lead) as u64;
        self.lead = self.lead.saturating_sub(completed);
    }

    /// The mean power of every bin, all channels together; `None` if it is silent or shorter than a window.
    pub(super) fn power(&self) -> Option<Vec<f32>> {
        let mean = |&sum: &f64| (sum / self.count as f64) as f32;
        let sounds = self.count > 0 && self.sum.iter().any(|&sum| sum > 0.0);
        sounds.then(|| self.sum.iter().map(mean).collect())
    }
}
