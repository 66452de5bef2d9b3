//! Bookkeeping of a stream: energies, pauses, diagnostics of the draws, levels, speech track and standard deviations.

use super::memory::{BlockMemory, FrameGains, of_channel, together};
use super::removed_hum::RemovedHum;
use crate::decibels::{decibels, power};
use crate::denoiser::block::ChainResult;
use crate::denoiser::front_end::FrontEnd;
use crate::denoiser::levels::{LevelFrame, LevelMeter};
use crate::denoiser::speech_track::TrackMeter;
use crate::transform::{Spectrogram, Stft, bin_power};

/// Statistics of a stream, and its levels, speech track and standard deviations if they are recorded.
#[derive(Default)]
pub(super) struct Record {
    energy: Energy,
    /// Number of finished frames.
    pub frames: u64,
    pauses: Pauses,
    pub chain: ChainResult,
    /// Standard deviation of the gain (bins x frames) of finished frames that has not been returned, if recorded.
    pub gain_std: Option<Vec<f32>>,
    /// Levels of speech, if recorded.
    pub levels: Option<LevelMeter>,
    /// Probability and sections of speech, if recorded.
    pub speech: Option<TrackMeter>,
}

/// Statistics of a stream; levels and ratios are NaN for silence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::denoiser) struct Summary {
    /// Energy of the input over all bins, without offset, clicks and outliers, in the common unit of all streams.
    pub input_energy: f64,
    /// Estimated signal-to-noise ratio of the input, dB.
    pub snr_before_db: f64,
    /// Estimated signal-to-noise ratio of the output, dB.
    pub snr_after_db: f64,
    /// Ratio of speech to the expected error of the output under the posterior, dB.
    pub expected_sdr_db: f64,
    /// Level of the input in pauses of speech, dBFS.
    pub noise_before_dbfs: f64,
    /// Level of the output in the same frames, dBFS; for an array, in the pauses of its second pass.
    pub noise_after_dbfs: f64,
    /// Level of the hum that was removed, dBFS.
    pub hum_dbfs: f64,
    pub chain: ChainResult,
    /// RT60 per octave, 125 Hz to 8 kHz, s; `None` where too few decays were found.
    pub reverberation_seconds: [Option<f64>; 6],
    /// Restored samples, summed over channels.
    pub restored_samples: usize,
    /// Removed clicks, summed over channels.
    pub clicks: usize,
    /// Blocks, summed over channels, in which heavy-tailed noise was suppressed in time.
    pub heavy_tailed_blocks: usize,
}

/// Sums over all bins.
#[derive(Default)]
struct Energy {
    input: f64,
    speech: f64,
    /// Energy of speech in the output.
    speech_left: f64,
    /// Energy of noise in the output.
    noise_left: f64,
    /// Expected square of the difference between output and speech.
    error: f64,
    /// Energy of the removed hum.
    hum: f64,
}

/// Mean squares of the samples in the pauses of speech: of the input, of the output, and of the removed hum.
#[derive(Default)]
struct Pauses {
    sums: [f64; 3],
    frames: usize,
}

/// Powers of one frame: of the estimated speech; and of the input, the output and the removed hum.
#[derive(Clone, Copy, Default)]
struct FrameLevel {
    speech: f64,
    powers: [f64; 3],
}

impl Pauses {
    /// One frame in this number of frames counts as a pause.
    const ONE_IN: usize = 5;

    /// Adds the pauses among some frames.
    fn add(&mut self, frames: &[FrameLevel]) {
        let mut sounding: Vec<&FrameLevel> = frames.iter().filter(|frame| frame.powers[0] > 0.0).collect();
        sounding.sort_by(|a, b| a.speech.total_cmp(&b.speech));
        let count = sounding.len().div_ceil(Self::ONE_IN);
        for frame in &sounding[..count] {
            self.sums.iter_mut().zip(frame.powers).for_each(|(sum, power)| *sum += power);
        }
        self.frames += count;
    }

    fn levels(&self) -> [f64; 3] {
        self.sums.map(|sum| sum / self.frames as f64)
    }
}

/// Factors from the power of a bin to the mean square of the samples of a Hann window.
struct MeanSquare {
    bins: usize,
    scale: f64,
}

impl MeanSquare {
    fn new(stft: &Stft, channels: usize) -> Self {
        let scale = 1.0 / (stft.white_power() * stft.window() as f64 * channels as f64);
        Self { bins: stft.bins(), scale }
    }

    /// The factor of a bin. All but the first and the last bin represent their negative frequency too.
    fn factor(&self, bin: usize) -> f64 {
        let sides = if bin == 0 || bin == self.bins - 1 { 1.0 } else { 2.0 };
        sides * self.scale
    }
}

impl Record {
    /// Adds the standard deviations, levels and speech track of the finished frames, which are the first waiting ones.
    pub(super) fn add_gains(&mut self, front_end: &FrontEnd, gains: &[FrameGains], last: bool) {
        let has_meters = self.levels.is_some() || self.speech.is_some();
        if self.gain_std.is_none() && !has_meters {
            return;
        }
        let gains = together(gains, front_end);
        if let Some(gain_std) = &mut self.gain_std {
            gain_std.extend_from_slice(&gains.gain_std);
        }
        if has_meters {
            self.add_levels(front_end, &gains, last);
        }
    }

    fn add_levels(&mut self, front_end: &FrontEnd, gains: &FrameGains, last: bool) {
        let Self { levels, speech, .. } = self;
        let stft = front_end.stft();
        let mean_square = MeanSquare::new(stft, front_end.spectrograms().count());
        let bins = stft.bins();
        for (t, gain) in gains.gain.chunks_exact(bins).enumerate() {
            let square = |bin: usize| -> f64 {
                let powers = front_end.spectrograms().map(|waiting| bin_power(&waiting.frame(t)[bin]));
                mean_square.factor(bin) * powers.sum::<f64>()
            };
            let squares: Vec<f64> = (0..bins).map(square).collect();
            if let Some(meter) = levels {
                let spectra: Vec<_> = front_end.spectrograms().map(|waiting| waiting.frame(t)).collect();
                let model = &gains.model_gain[t * bins..(t + 1) * bins];
                meter.push(&LevelFrame { squares: &squares, spectra: &spectra, gain, model });
            }
            if let Some(meter) = speech {
                meter.push(&squares, gain);
            }
        }
        if last {
            let samples = front_end.samples();
            let seconds = samples as f64 / f64::from(stft.sample_rate());
            levels.iter_mut().for_each(|meter| meter.finish(samples, seconds));
            speech.iter_mut().for_each(|meter| meter.finish(seconds));
        }
    }

    /// Adds the energies and pauses of finished frames of every channel, before they are filtered.
    pub(super) fn add_frames(
        &mut self,
        stft: &Stft,
        spectra: &[Spectrogram],
        gains: &[FrameGains],
        hum: &RemovedHum,
        last: bool,
    ) {
        let (bins, mean_square) = (stft.bins(), MeanSquare::new(stft, spectra.len()));
        let done = gains[0].gain.len() / bins;
        let mut levels = vec![FrameLevel::default(); done];
        for (channel, frames) in spectra.iter().enumerate() {
            let gains = of_channel(gains, channel);
            let values = frames.as_slice().iter().zip(&gains.gain).zip(&gains.applied);
            for (i, ((value, &gain), &applied)) in values.enumerate() {
                let (power, left) = (bin_power(value), bin_power(&(value * applied)));
                let gain = f64::from(gain);
                self.energy.add(power, left, gain, f64::from(applied));
                let (level, factor) = (&mut levels[i / bins], mean_square.factor(i % bins));
                level.speech += gain * power;
                level.powers[0] += factor * power;
                level.powers[1] += factor * left;
            }
        }
        for (level, frame) in levels.iter_mut().zip(self.frames + 1..) {
            let square = hum.mean_square(stft.window(), frame * stft.hop() as u64);
            level.powers[2] = square;
            self.energy.hum += square / mean_square.factor(1);
        }
        // Frames that extend beyond the ends of the recording do not count as pauses.
        let edge = (stft.window() - 1) / stft.hop();
        let start = if self.frames == 0 { edge.min(done) } else { 0 };
        let end = if last { done.saturating_sub(edge).max(start) } else { done };
        self.frames += done as u64;
        self.pauses.add(&levels[start..end]);
    }

    /// The summary so far, with results of front end and memory. The output has the fraction `hum_left` of the hum's
    /// power.
    pub(super) fn summary(&self, front_end: &FrontEnd, memory: &BlockMemory, hum_left: f64) -> Summary {
        let Energy { input, speech, speech_left, noise_left, error, hum } = self.energy;
        let [before, after, hum_in_pauses] = self.pauses.levels();
        let mean_square = MeanSquare::new(front_end.stft(), front_end.spectrograms().count());
        let correction = power(-snr_correction_db(decibels(speech / (input - speech))));
        Summary {
            input_energy: input + hum,
            snr_before_db: decibels(speech / (correction * (input - speech) + hum)),
            snr_after_db: decibels(speech_left / (correction * noise_left + hum_left * hum)),
            expected_sdr_db: decibels(speech / (error + hum_left * hum)),
            noise_before_dbfs: decibels(before + hum_in_pauses),
            noise_after_dbfs: decibels(after + hum_left * hum_in_pauses),
            hum_dbfs: decibels(hum * mean_square.factor(1) / self.frames as f64),
            chain: self.chain,
            reverberation_seconds: memory.reverberation_seconds(),
            restored_samples: front_end.restored(),
            clicks: front_end.clicks,
            heavy_tailed_blocks: front_end.heavy_tailed_blocks,
        }
    }
}

impl Energy {
    /// Adds a bin with the input power `power` and the output power `left`, after the gain `applied`.
    fn add(&mut self, power: f64, left: f64, gain: f64, applied: f64) {
        self.input += power;
        self.speech += gain * power;
        self.speech_left += gain * left;
        self.noise_left += (1.0 - gain) * left;
        // The posterior of a bin has the mean `gain` and the variance `gain (1 - gain)`, in units of its power.
        let off = applied - gain;
        self.error += (off * off + gain * (1.0 - gain)) * power;
    }
}

/// Median difference between the SNR and its estimate `snr_db` from the gains, dB. A little of the speech counts as
/// noise, which matters at high SNR. Fitted to the mixtures of training/make_levels.py with one or two noises (least
/// absolute deviations).
fn snr_correction_db(snr_db: f64) -> f64 {
    0.2 + 0.145 * (snr_db.clamp(7.0, 22.0) - 7.0)
}
