//! Noise profiles: the mean power spectrum of a noise section.

use super::DenoiseError;
use super::front_end::FrontEnd;
use crate::transform::{Stft, bin_power};
use std::fmt;

/// The mean power spectrum of a section of noise alone; made by [`Denoiser::noise_profile`](super::Denoiser::noise_profile)
/// for [`Session::set_noise_profile`](super::Session::set_noise_profile). It does not depend on how the samples are
/// divided into calls of [`push`](Self::push).
#[derive(Clone)]
pub struct NoiseProfile {
    front_end: FrontEnd,
    /// Number of frames still to be skipped, which begin before the first sample.
    lead: usize,
    /// Per channel.
    sums: Vec<Sum>,
    /// Number of frames.
    count: u64,
}

/// Sums of powers per bin over the frames of a channel, without frames of digital silence.
#[derive(Clone)]
struct Sum {
    powers: Vec<f64>,
    count: u64,
}

impl Sum {
    /// The mean power of a bin; 0 if all is silent.
    fn mean(&self, bin: usize) -> f64 {
        self.powers[bin] / self.count.max(1) as f64
    }
}

impl fmt::Debug for NoiseProfile {
    /// Formats the number of frames, without their sums.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("NoiseProfile")
            .field("stft", self.front_end.stft())
            .field("channels", &self.sums.len())
            .field("frames", &self.count)
            .finish_non_exhaustive()
    }
}

impl NoiseProfile {
    pub(super) fn new(window_seconds: f64, sample_rate: u32, channels: usize) -> Result<Self, DenoiseError> {
        let front_end = FrontEnd::new(sample_rate, channels, window_seconds)?;
        let stft = front_end.stft();
        let (lead, bins) = ((stft.window() - 1) / stft.hop(), stft.bins());
        Ok(Self {
            front_end,
            lead,
            sums: vec![Sum { powers: vec![0.0; bins], count: 0 }; channels],
            count: 0,
        })
    }

    /// Checks that sample rate, window and number of channels are those of the recording.
    pub(super) fn check(&self, stft: &Stft, channels: usize) -> Result<(), DenoiseError> {
        let (found, expected) = (self.front_end.stft().sample_rate(), stft.sample_rate());
        if found != expected {
            return Err(DenoiseError::NoiseRate { found, expected });
        }
        let (found, expected) = (self.front_end.stft().window(), stft.window());
        if found != expected {
            return Err(DenoiseError::NoiseWindow { found, expected });
        }
        let (found, expected) = (self.sums.len(), channels);
        if found != expected { Err(DenoiseError::Channels { found, expected }) } else { Ok(()) }
    }

    /// Adds the next samples of every channel; time-domain impulses are removed.
    ///
    /// # Errors
    /// [`DenoiseError::Channels`] or [`DenoiseError::Signal`] if the number of channels is wrong, their lengths differ,
    /// or a sample is not finite.
    pub fn push(&mut self, block: &[&[f32]]) -> Result<(), DenoiseError> {
        self.front_end.push(block)?;
        while self.front_end.next_block() {
            self.add();
        }
        Ok(())
    }

    /// Adds the complete frames.
    fn add(&mut self) {
        drop(self.front_end.take_hum());
        let frames = self.front_end.frames();
        for (channel, sum) in self.front_end.take(frames).iter().zip(&mut self.sums) {
            for frame in self.lead.min(frames)..frames {
                let powers = channel.frame(frame).iter().map(bin_power);
                let mut is_silent = true;
                sum.powers.iter_mut().zip(powers).for_each(|(sum, power)| {
                    is_silent &= power == 0.0;
                    *sum += power;
                });
                sum.count += u64::from(!is_silent);
            }
        }
        self.count += frames.saturating_sub(self.lead) as u64;
        self.lead = self.lead.saturating_sub(frames);
    }

    /// Mean power `|X|^2` per channel and bin, in order of frequency, without digital silence; `None` if the section is shorter
    /// than a window.
    #[must_use]
    pub fn spectra(&self) -> Option<Vec<Vec<f64>>> {
        let whole = self.whole();
        let means = |sum: &Sum| (0..sum.powers.len()).map(|bin| sum.mean(bin)).collect();
        (whole.count > 0).then(|| whole.sums.iter().map(means).collect())
    }

    /// Mean power per bin, summed over each group of `width` successive channels, `None` for silent groups; `None` if
    /// all groups are silent or the section is shorter than a window.
    pub(super) fn powers(&self, width: usize) -> Option<Vec<Option<Vec<f32>>>> {
        let whole = self.whole();
        let mean = |sums: &[Sum]| {
            let bin = |bin: usize| sums.iter().map(|sum| sum.mean(bin)).sum::<f64>();
            // Samples may be so loud that their powers exceed single precision.
            (0..whole.front_end.stft().bins()).map(|k| bin(k).min(f32::MAX.into()) as f32).collect()
        };
        let is_sound = |power: &Vec<f32>| power.iter().any(|&power| power > 0.0);
        let powers: Vec<Option<Vec<f32>>> =
            whole.sums.chunks(width).map(|sums| Some(mean(sums)).filter(is_sound)).collect();
        (whole.count > 0 && powers.iter().any(Option::is_some)).then_some(powers)
    }

    /// A copy of this profile that includes the samples waiting for a complete block.
    fn whole(&self) -> Self {
        let mut whole = self.clone();
        whole.front_end.flush();
        whole.add();
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChannelMode, Denoiser, SessionSettings, Settings};
    use crate::model::Dictionary;
    use crate::random::SeedTree;
    use rand_distr::{Distribution, StandardNormal};

    /// White noise of variance 1.
    fn white(seed: u64, samples: usize) -> Vec<f32> {
        let noise = Distribution::<f64>::sample_iter(StandardNormal, SeedTree::new(seed).rng(0));
        noise.take(samples).map(|x| x as f32).collect()
    }

    /// The profile of samples in pushes of `size`.
    fn profile(denoiser: &Denoiser, samples: &[f32], size: usize) -> Vec<f32> {
        let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
        samples.chunks(size).for_each(|block| profile.push(&[block, block]).unwrap());
        profile.powers(2).unwrap().remove(0).unwrap()
    }

    fn whole_spectra(denoiser: &Denoiser, samples: &[f32]) -> Vec<Vec<f64>> {
        let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
        profile.push(&[samples, samples]).unwrap();
        profile.spectra().unwrap()
    }

    #[test]
    fn the_profile_of_white_noise_is_flat() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let samples: Vec<f32> = white(1, 60 * 16_000).iter().map(|x| 0.1 * x).collect();
        let whole = profile(&denoiser, &samples, samples.len());
        // Two channels of variance 0.01, in a Hann window of 1024 samples with a mean square of 3/8.
        let expected = 2.0 * 0.01 * 1024.0 * 0.375;
        let mean = whole.iter().sum::<f32>() / whole.len() as f32;
        assert!((mean / expected - 1.0).abs() < 0.01, "{mean} {expected}");
        let [left, right] = &whole_spectra(&denoiser, &samples)[..] else { panic!("two channels") };
        assert!(left == right && left.iter().zip(&whole).all(|(one, both)| (2.0 * one) as f32 == *both));
        // About 3,750 frames, equivalent to a third as many independent ones.
        assert!(whole[5..500].iter().all(|x| (x / mean - 1.0).abs() < 0.2));
    }

    #[test]
    fn digital_silence_is_no_part_of_the_noise() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let noise: Vec<f32> = white(3, 10 * 16_000).iter().map(|x| 0.1 * x).collect();
        let mean = |power: Vec<f32>| power.iter().sum::<f32>() / power.len() as f32;
        let expected = mean(profile(&denoiser, &noise, noise.len()));
        let muted = [vec![0.0; 3 * 16_000], noise, vec![0.0; 20 * 16_000]].concat();
        let found = mean(profile(&denoiser, &muted, 5_000));
        assert!((found / expected - 1.0).abs() < 0.02, "{found} {expected}");
    }

    #[test]
    fn the_profile_of_clicks_does_not_depend_on_the_pushes() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let click = |n: usize| if n % 5_003 < 3 { 0.5 } else { 0.0 };
        let noise = white(2, 10 * 16_000);
        let samples: Vec<f32> = noise.iter().enumerate().map(|(n, x)| 0.003 * x + click(n)).collect();
        let whole = profile(&denoiser, &samples, samples.len());
        for size in [1, 4_000, 64_000] {
            assert!(profile(&denoiser, &samples, size) == whole, "in pushes of {size}");
        }
    }

    /// The silent channel is denoised without a profile.
    #[test]
    fn one_silent_channel_of_separate_ones_does_no_harm() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let settings = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
        let samples: Vec<f32> = (0..16_000).map(|n| 0.1 * libm::sinf(0.3 * n as f32)).collect();
        let silence = vec![0.0; samples.len()];
        let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
        profile.push(&[&samples, &silence]).unwrap();
        let powers = profile.powers(1).unwrap();
        assert!(powers[0].is_some() && powers[1].is_none());
        denoiser.session(16_000, 2, settings).unwrap().set_noise_profile(&profile).unwrap();
    }

    #[test]
    fn silence_and_short_sections_have_no_profile() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let tone = |samples: u16| (0..samples).map(|n| 0.1 * libm::sinf(0.3 * f32::from(n))).collect();
        for (samples, known) in [(vec![0.0; 16_000], false), (tone(1_023), false), (tone(1_024), true)] {
            let mut profile = denoiser.noise_profile(16_000, 1).unwrap();
            profile.push(&[&samples]).unwrap();
            assert_eq!(profile.powers(1).is_some(), known);
            let mut session = denoiser.session(16_000, 1, SessionSettings::default()).unwrap();
            let started = session.set_noise_profile(&profile);
            assert_eq!(started.is_ok(), known);
        }
    }
}
