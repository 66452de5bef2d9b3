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

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;
    use crate::model::Dictionary;
    use crate::random::Streams;
    use rand_distr::{Distribution, StandardNormal};

    #[test]
    fn the_profile_of_white_noise_is_flat_whatever_the_blocks() {
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), Settings::fast()).unwrap();
        let mut stream = Streams::new(1).stream(0);
        let samples: Vec<f32> = (0..60 * 16_000)
            .map(|_| {
                let x: f64 = StandardNormal.sample(&mut stream);
                0.1 * x as f32
            })
            .collect();
        let power = |blocks: &[usize]| {
            let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
            let mut rest = &samples[..];
            for &block in blocks {
                let (block, after) = rest.split_at(block);
                profile.push(&[block, block]);
                rest = after;
            }
            profile.push(&[rest, rest]);
            profile.power().unwrap()
        };
        let whole = power(&[]);
        // Two channels of variance 0.01, in a Hann window of 1024 samples with a mean square of 3/8.
        let expected = 2.0 * 0.01 * 1024.0 * 0.375;
        let mean = whole.iter().sum::<f32>() / whole.len() as f32;
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} {expected}");
        // Of about 3,750 frames, a third as many independent.
        assert!(whole[5..500].iter().all(|x| (x / mean - 1.0).abs() < 0.2));
        let divided = power(&[1, 10_000, 255, 0, 300_000]);
        assert!(divided.iter().zip(&whole).all(|(a, b)| (a / b - 1.0).abs() < 1e-5));
    }

    #[test]
    fn what_holds_no_noise_has_no_profile() {
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), Settings::fast()).unwrap();
        for (samples, known) in
            [(vec![0.0; 16_000], false), (vec![0.1; 1_023], false), (vec![0.1; 1_024], true)]
        {
            let mut profile = denoiser.noise_profile(16_000, 1).unwrap();
            profile.push(&[&samples]);
            assert_eq!(profile.power().is_some(), known);
            let started = denoiser.stream(16_000, 1).unwrap().start_from(&profile);
            assert_eq!(started.is_ok(), known);
        }
    }
}
