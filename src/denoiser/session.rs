//! A recording from its samples to all that is wanted of it.

use super::front_end::check_block;
use super::{
    DenoiseError, DenoiseStream, Denoiser, MonteCarloAccumulator, NoiseProfile, SamplerCounters,
    SpeechLevels, Summary,
};
use crate::random::SeedTree;
use crate::range::within;
use crate::repair::Clipping;
use crate::signal::progress::ProgressCallback;
use crate::signal::{SampleFormat, check_recording};
use serde::{Deserialize, Serialize};

/// What a [`Session`] makes of a recording, beside the settings of its denoiser.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// How much of the result is the denoised recording, 0 to 1; the rest is the recording as it was.
    pub mix: f32,
    /// How channels are treated.
    pub channels: ChannelMode,
    /// Whether what is stored as integers is dithered: pauses may otherwise become digital silence, and faint noise
    /// gates.
    pub dither: bool,
    /// Whether what was taken out is given, too.
    pub residual: bool,
    /// Whether the spread of the gains is kept, for [`Session::take_gain_std`].
    pub deviation: bool,
    /// Whether the levels of the voice are gathered, for [`Session::take_levels`].
    pub levels: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            mix: 1.0,
            channels: ChannelMode::default(),
            dither: true,
            residual: false,
            deviation: false,
            levels: false,
        }
    }
}

/// How the channels of a recording are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelMode {
    /// All share one gain, so that the stereo image stays.
    #[default]
    Shared,
    /// Each is denoised by itself.
    Separate,
}

/// Samples of a recording that are done, channel by channel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionOutput {
    /// The result.
    pub speech: Vec<Vec<f32>>,
    /// The recording minus the result; without channels if it was not asked for.
    pub residual: Vec<Vec<f32>>,
}

/// What was found of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statistics {
    /// Sample rate, Hz.
    pub sample_rate: u32,
    /// Number of channels.
    pub channels: usize,
    /// Samples per channel that are done.
    pub samples: u64,
    /// Their duration, s.
    pub duration_seconds: f64,
    /// Estimated ratio of speech to noise before, dB; none for silence.
    pub snr_before_db: Option<f64>,
    /// Estimated ratio after, dB; none for silence, and if something of the recording is mixed in.
    pub snr_after_db: Option<f64>,
    /// The ratio of the speech to what the result is expected to differ from it, dB; see [`Summary`]. None for silence, and if
    /// something of the recording is mixed in.
    pub expected_sdr_db: Option<f64>,
    /// Level in the pauses of the voice, dBFS (mean square); none for silence.
    pub noise_before_dbfs: Option<f64>,
    /// The same in the result.
    pub noise_after_dbfs: Option<f64>,
    /// Reverberation time (60 dB) of every octave from 125 Hz to 8 kHz, s, by the channel that was heard first; none where
    /// too little of a voice's ends was heard.
    pub reverberation_seconds: [Option<f64>; 6],
    /// Samples that came clipped (three times and more, at least four in a row at the highest or lowest of their channel), all
    /// channels together.
    pub clipped_input_samples: u64,
    /// Clicks in time that were cut out, all channels together.
    pub clicks: usize,
    /// Blocks of a channel in which a noise with heavy tails was suppressed in time.
    pub heavy_tailed_blocks: usize,
    /// Sampler moves that were rejected because they were not finite.
    pub divergences: usize,
    /// How exact the posterior mean of the gain is; none if too little is drawn to say.
    pub monte_carlo: Option<MonteCarloError>,
    /// What the samplers did in the sweeps that are averaged; none without sampling.
    pub moves: Option<SamplerStatistics>,
}

/// What the samplers did in the sweeps that are averaged; see [`SamplerCounters`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplerStatistics {
    /// Mean step size of the samplers of activations and noise spectra.
    pub step_size: f64,
    /// Mean number of pairs in the metric of HAMCMC; none for other samplers.
    pub usable_pairs: Option<f64>,
    /// Share of the unknowns' moves that were mirrored at zero; none without mirroring.
    pub mirrored_fraction: Option<f64>,
    /// Share of the unknowns' moves whose drift was cut to its limit; none for samplers that do not count.
    pub clipped_drift_fraction: Option<f64>,
    /// Share of the proposals for impulse variables that were accepted; none if they are integrated out.
    pub impulse_acceptance: Option<f64>,
}

/// How exact the posterior mean of the gain is; see [`MonteCarloAccumulator`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MonteCarloError {
    /// Draws of a block.
    pub draws: usize,
    /// Gains that were followed.
    pub monitored_gains: u64,
    /// Root mean square of their standard errors.
    pub gain_standard_error: f64,
    /// Independent draws that would give the same error; none if no gain varied.
    pub effective_draws: Option<f64>,
}

/// A recording of any length on its way through a denoiser, in memory that does not grow: mixed with what it was,
/// with the residual and statistics if wanted, its channels together or one by one; made by [`Denoiser::session`].
///
/// ```
/// use alphamf::{Denoiser, Dictionary, Settings};
/// use alphamf::denoiser::{ChannelMode, SessionSettings};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::fast())?;
/// let settings = SessionSettings { mix: 0.8, channels: ChannelMode::Separate, ..SessionSettings::default() };
/// let mut session = denoiser.session(8_000, 2, settings)?;
/// let hum: Vec<f32> = (0..4_000).map(|n| 0.1 * (n as f32 * 0.04).sin()).collect();
/// let mut left = session.push(&[&hum, &hum])?.speech.remove(0);
/// left.extend(&session.finish()?.speech[0]);
/// assert_eq!((left.len(), session.statistics().channels), (4_000, 2));
/// # Ok(())
/// # }
/// ```
pub struct Session {
    settings: SessionSettings,
    sample_rate: u32,
    seed: u64,
    /// Draws of a block.
    draws: usize,
    /// One for all channels, or one each.
    streams: Vec<DenoiseStream>,
    /// Samples of every channel whose result is not there yet.
    waiting: Vec<Vec<f32>>,
    input_energy: Vec<f64>,
    /// Of every channel.
    clipping: Vec<Clipping>,
    /// Samples per channel that are done.
    samples: u64,
}

impl Session {
    pub(super) fn new(
        denoiser: &Denoiser,
        sample_rate: u32,
        channels: usize,
        settings: SessionSettings,
    ) -> Result<Self, DenoiseError> {
        within("mix", settings.mix, 0.0..=1.0)?;
        check_recording(sample_rate, channels)?;
        let (count, width) = match settings.channels {
            ChannelMode::Shared => (1, channels),
            ChannelMode::Separate => (channels, 1),
        };
        let stream = |_| {
            let mut stream = denoiser.stream(sample_rate, width)?;
            if settings.deviation {
                stream.record_gain_std();
            }
            if settings.levels {
                stream.record_levels();
            }
            Ok(stream)
        };
        Ok(Self {
            streams: (0..count).map(stream).collect::<Result<_, DenoiseError>>()?,
            settings,
            sample_rate,
            seed: denoiser.settings().seed,
            draws: denoiser.settings().draws(),
            waiting: vec![Vec::new(); channels],
            input_energy: vec![0.0; channels],
            clipping: vec![Clipping::default(); channels],
            samples: 0,
        })
    }

    /// Samples per channel that are worked on together, a good size for [`push`](Self::push).
    #[must_use]
    pub fn block_samples(&self) -> usize {
        self.streams.first().map_or(1, DenoiseStream::block_samples)
    }

    /// The most samples per channel that may have gone in and not come out yet after a [`push`](Self::push).
    #[must_use]
    pub fn latency(&self) -> usize {
        self.streams.first().map_or(0, DenoiseStream::latency)
    }

    /// Lets the noise start from what a stretch of the recording, with all of its channels, says of it.
    ///
    /// # Errors
    /// As [`DenoiseStream::set_noise_profile`].
    pub fn set_noise_profile(&mut self, noise: &NoiseProfile) -> Result<(), DenoiseError> {
        let width = self.width();
        noise.check(self.sample_rate, self.waiting.len())?;
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let power = noise.power(index * width..(index + 1) * width);
            stream.use_noise_power(power.ok_or(DenoiseError::NoNoise)?);
        }
        Ok(())
    }

    /// Takes the next samples of every channel and returns those that are done, fewer or more.
    ///
    /// # Errors
    /// As [`DenoiseStream::push`].
    pub fn push(&mut self, block: &[&[f32]]) -> Result<SessionOutput, DenoiseError> {
        self.push_with_progress(block, &mut ())
    }

    /// The same; `watch` is told how much of the recording is done, s.
    ///
    /// # Errors
    /// As [`push`](Self::push), and [`DenoiseError::Cancelled`] if `watch` ended it.
    pub fn push_with_progress(
        &mut self,
        block: &[&[f32]],
        watch: &mut dyn ProgressCallback,
    ) -> Result<SessionOutput, DenoiseError> {
        check_block(block, self.waiting.len())?;
        for (waiting, samples) in self.waiting.iter_mut().zip(block) {
            waiting.extend_from_slice(samples);
        }
        self.clipping.iter_mut().zip(block).for_each(|(clipping, samples)| clipping.count(samples));
        let width = self.width();
        self.advance(watch, |stream, index, watch| {
            stream.push_with_progress(&block[index * width..(index + 1) * width], watch)
        })
    }

    /// Ends the recording: the samples still to come.
    ///
    /// # Errors
    /// As [`DenoiseStream::finish`].
    pub fn finish(&mut self) -> Result<SessionOutput, DenoiseError> {
        self.finish_with_progress(&mut ())
    }

    /// The same; `watch` is told how much of the recording is done, s.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and [`DenoiseError::Cancelled`] if `watch` ended it.
    pub fn finish_with_progress(
        &mut self,
        watch: &mut dyn ProgressCallback,
    ) -> Result<SessionOutput, DenoiseError> {
        self.advance(watch, |stream, _, watch| stream.finish_with_progress(watch))
    }

    /// The standard deviation of the expected gain over the posterior draws (bins x frames, 0 to 0.5) of the frames
    /// that were done since it was last asked for: for all channels, or for each.
    pub fn take_gain_std(&mut self) -> Vec<Vec<f32>> {
        self.streams.iter_mut().map(DenoiseStream::take_gain_std).collect()
    }

    /// The levels of the voice, with their intervals, in the slots that were done since they were last asked for: for
    /// all channels, or for each. They are those of the voice before anything of the recording is mixed in.
    pub fn take_levels(&mut self) -> Vec<SpeechLevels> {
        self.streams.iter_mut().map(DenoiseStream::take_levels).collect()
    }

    /// What was found so far.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let summaries: Vec<Summary> = self.streams.iter().map(DenoiseStream::summary).collect();
        let energies: Vec<f64> =
            self.input_energy.chunks(self.width()).map(|channels| channels.iter().sum()).collect();
        let mut found = MonteCarloAccumulator::default();
        summaries.iter().for_each(|summary| found.add(&summary.monte_carlo));
        let mix = f64::from(self.settings.mix);
        let noise_before = mean_power(&summaries, |summary| summary.noise_before_dbfs);
        let noise_after = mean_power(&summaries, |summary| summary.noise_after_dbfs)
            .zip(noise_before)
            .map(|(after, before)| before * (mix * (after / before).sqrt() + 1.0 - mix).powi(2));
        let mut moves = SamplerCounters::default();
        summaries.iter().for_each(|summary| moves.add(&summary.moves));
        let sum = |count: fn(&Summary) -> usize| summaries.iter().map(count).sum();
        Statistics {
            sample_rate: self.sample_rate,
            channels: self.waiting.len(),
            samples: self.samples,
            duration_seconds: self.seconds(self.samples),
            snr_before_db: estimated_snr(&summaries, &energies, |summary| summary.snr_before_db),
            snr_after_db: estimated_snr(&summaries, &energies, |summary| summary.snr_after_db)
                .filter(|_| mix == 1.0),
            expected_sdr_db: expected_sdr(&summaries, &energies).filter(|_| mix == 1.0),
            noise_before_dbfs: noise_before.and_then(decibels),
            noise_after_dbfs: noise_after.and_then(decibels),
            reverberation_seconds: summaries
                .first()
                .map_or([None; 6], |summary| summary.reverberation_seconds),
            clipped_input_samples: self.clipping.iter().map(Clipping::samples).sum(),
            clicks: sum(|summary| summary.clicks),
            heavy_tailed_blocks: sum(|summary| summary.heavy_tailed_blocks),
            divergences: sum(|summary| summary.divergences),
            monte_carlo: (found.gains > 0).then(|| MonteCarloError {
                draws: self.draws,
                monitored_gains: found.gains,
                gain_standard_error: found.standard_error(),
                effective_draws: Some(found.effective_draws()).filter(|draws| draws.is_finite()),
            }),
            moves: moves.step_size().map(|step_size| SamplerStatistics {
                step_size,
                usable_pairs: moves.usable_pairs(),
                mirrored_fraction: moves.mirrored_fraction(),
                clipped_drift_fraction: moves.clipped_drift_fraction(),
                impulse_acceptance: moves.impulse_acceptance(),
            }),
        }
    }

    /// The random numbers of the dither that a result needs when it is stored in `to` and the recording came in `from`;
    /// none if it is not wanted, or the samples keep their codes. No block of the recording has the same.
    #[must_use]
    pub fn dither(&self, from: SampleFormat, to: SampleFormat) -> Option<SeedTree> {
        // What is neither filtered nor made shallower keeps its codes.
        let changed = self.settings.mix > 0.0 || to.bits() < from.bits();
        (self.settings.dither && changed && to.is_integer()).then(|| SeedTree::new(self.seed).child(u64::MAX))
    }

    /// Channels of a stream.
    fn width(&self) -> usize {
        self.waiting.len() / self.streams.len()
    }

    fn seconds(&self, samples: u64) -> f64 {
        samples as f64 / f64::from(self.sample_rate)
    }

    /// Lets every stream work, one after the other.
    fn advance(
        &mut self,
        watch: &mut dyn ProgressCallback,
        mut work: impl FnMut(
            &mut DenoiseStream,
            usize,
            &mut dyn ProgressCallback,
        ) -> Result<Vec<Vec<f32>>, DenoiseError>,
    ) -> Result<SessionOutput, DenoiseError> {
        let received = self.samples + self.waiting.first().map_or(0, |waiting| waiting.len() as u64);
        let before = self.seconds(self.samples);
        let span = self.seconds(received) - before;
        let share = 1.0 / self.streams.len() as f64;
        let mut voice = Vec::with_capacity(self.waiting.len());
        for (index, stream) in self.streams.iter_mut().enumerate() {
            let mut watch = |seconds: f64| {
                let done = index as f64 * span + (seconds - before).clamp(0.0, span);
                watch.report(before + share * done)
            };
            voice.extend(work(stream, index, &mut watch)?);
        }
        Ok(self.mixed(voice))
    }

    /// Mixes denoised samples with what they were.
    fn mixed(&mut self, mut voice: Vec<Vec<f32>>) -> SessionOutput {
        let energy = |samples: &[f32]| samples.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let mix = self.settings.mix;
        let mut residual = Vec::new();
        self.samples += voice.first().map_or(0, |samples| samples.len() as u64);
        for ((waiting, sum), result) in self.waiting.iter_mut().zip(&mut self.input_energy).zip(&mut voice) {
            let before: Vec<f32> = waiting.drain(..result.len()).collect();
            for (after, before) in result.iter_mut().zip(&before) {
                *after = mix * *after + (1.0 - mix) * before;
            }
            *sum += energy(&before);
            if self.settings.residual {
                residual.push(before.iter().zip(&*result).map(|(before, after)| before - after).collect());
            }
        }
        SessionOutput { speech: voice, residual }
    }
}

/// The ratio of speech to noise of all streams, dB, from what each found and its energy.
fn estimated_snr(summaries: &[Summary], energies: &[f64], snr_db: fn(&Summary) -> f64) -> Option<f64> {
    let speech: f64 =
        summaries.iter().zip(energies).map(|(summary, &energy)| speech(energy, snr_db(summary))).sum();
    decibels(speech / (energies.iter().sum::<f64>() - speech))
}

/// The expected ratio of speech to error of all streams together, by their energies, dB.
fn expected_sdr(summaries: &[Summary], energies: &[f64]) -> Option<f64> {
    let of_stream = |(summary, &energy): (&Summary, &f64)| {
        let speech = speech(energy, summary.snr_before_db);
        let error = speech * libm::pow(10.0, -summary.expected_sdr_db / 10.0);
        if speech > 0.0 { (speech, error) } else { (0.0, 0.0) }
    };
    let sums = summaries.iter().zip(energies).map(of_stream);
    let (speech, error) = sums.fold((0.0, 0.0), |sum, stream| (sum.0 + stream.0, sum.1 + stream.1));
    decibels(speech / error)
}

/// The energy of the speech in a recording.
fn speech(energy: f64, snr_db: f64) -> f64 {
    if energy > 0.0 { energy / (1.0 + libm::pow(10.0, -snr_db / 10.0)) } else { 0.0 }
}

/// The mean of the powers that these levels of all streams stand for; those of silent ones are NaN.
fn mean_power(summaries: &[Summary], level_db: fn(&Summary) -> f64) -> Option<f64> {
    let powers: Vec<f64> = summaries
        .iter()
        .map(level_db)
        .filter(|level| !level.is_nan())
        .map(|level| libm::pow(10.0, level / 10.0))
        .collect();
    (!powers.is_empty()).then(|| powers.iter().sum::<f64>() / powers.len() as f64)
}

fn decibels(ratio: f64) -> Option<f64> {
    Some(10.0 * libm::log10(ratio)).filter(|level| level.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::{EmSettings, Settings};
    use super::*;
    use crate::model::Dictionary;
    use rand::RngExt;

    fn denoiser() -> Denoiser {
        let em = EmSettings { iterations: 2, ..EmSettings::default() };
        Denoiser::new(Dictionary::built_in().unwrap(), Settings { em, ..Settings::fast() }).unwrap()
    }

    fn recording() -> [Vec<f32>; 2] {
        let mut stream = SeedTree::new(1).rng(0);
        [0.2, 0.02].map(|level| (0..20_000).map(|_| level * stream.random_range(-1.0..1.0_f32)).collect())
    }

    /// All that a session makes of the recording, in pushes of `size`.
    fn run(settings: SessionSettings, size: usize) -> (SessionOutput, Statistics) {
        let [left, right] = recording();
        let mut session = denoiser().session(8_000, 2, settings).unwrap();
        let mut whole = SessionOutput { speech: vec![Vec::new(); 2], residual: vec![Vec::new(); 2] };
        let mut add = |portion: SessionOutput| {
            whole.speech.iter_mut().zip(portion.speech).for_each(|(all, new)| all.extend(new));
            whole.residual.iter_mut().zip(portion.residual).for_each(|(all, new)| all.extend(new));
        };
        for (left, right) in left.chunks(size).zip(right.chunks(size)) {
            add(session.push(&[left, right]).unwrap());
        }
        add(session.finish().unwrap());
        (whole, session.statistics())
    }

    #[test]
    fn the_result_and_the_residual_are_the_recording() {
        let settings = SessionSettings { mix: 0.75, residual: true, ..SessionSettings::default() };
        let (whole, statistics) = run(settings.clone(), 20_000);
        for ((recorded, voice), residual) in recording().iter().zip(&whole.speech).zip(&whole.residual) {
            assert_eq!((voice.len(), residual.len()), (20_000, 20_000));
            let sums = voice.iter().zip(residual).map(|(voice, residual)| voice + residual);
            assert!(sums.zip(recorded).all(|(sum, x)| (sum - x).abs() < 1e-6));
        }
        // A quarter of its amplitude stays at least: 12.04 dB below.
        let lowered = statistics.noise_before_dbfs.unwrap() - statistics.noise_after_dbfs.unwrap();
        assert!((6.0..12.1).contains(&lowered), "{statistics:?}");
        assert_eq!((statistics.samples, statistics.duration_seconds), (20_000, 2.5));
        let (divided, same) = run(settings, 777);
        assert!(divided == whole && same == statistics);
        let json = serde_json::to_value(&statistics).unwrap();
        assert_eq!((&json["channels"], &json["monte_carlo"]), (&2.into(), &serde_json::Value::Null));
    }

    #[test]
    fn separate_channels_are_those_of_two_recordings() {
        let settings = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
        let (both, _) = run(settings, 5_000);
        for (samples, voice) in recording().iter().zip(&both.speech) {
            let mut alone = denoiser().session(8_000, 1, SessionSettings::default()).unwrap();
            alone.push(&[samples]).unwrap();
            assert!(&alone.finish().unwrap().speech[0] == voice);
        }
        let (shared, _) = run(SessionSettings::default(), 5_000);
        assert!(shared.speech != both.speech);
    }

    #[test]
    fn a_session_refuses_what_does_not_fit_and_dithers_what_is_reduced() {
        let denoiser = denoiser();
        let settings = SessionSettings { mix: 1.5, ..SessionSettings::default() };
        let error = denoiser.session(8_000, 1, settings).err().unwrap();
        assert_eq!(error.to_string(), "mix is 1.5; expected 0 to 1");
        let separate = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
        assert!(matches!(denoiser.session(8_000, 0, separate.clone()), Err(DenoiseError::Signal(_))));
        let mut session = denoiser.session(8_000, 2, separate).unwrap();
        assert!(matches!(session.push(&[&[0.0]]), Err(DenoiseError::Channels { found: 1, expected: 2 })));
        assert!(matches!(session.push(&[&[0.0], &[]]), Err(DenoiseError::Signal(_))));
        let mut noise = denoiser.noise_profile(8_000, 1).unwrap();
        noise.push(&[&[0.1; 8_000]]).unwrap();
        assert!(matches!(
            session.set_noise_profile(&noise),
            Err(DenoiseError::Channels { found: 1, expected: 2 })
        ));

        use SampleFormat::{Float32, Int16, Int24};
        let dithered = |mix, dither| {
            let settings = SessionSettings { mix, dither, ..SessionSettings::default() };
            let session = denoiser.session(8_000, 1, settings).unwrap();
            [(Int24, Int16), (Int16, Int16), (Int16, Int24), (Int24, Float32)]
                .map(|(from, to)| session.dither(from, to).is_some())
        };
        assert_eq!(dithered(1.0, true), [true, true, true, false]);
        assert_eq!(dithered(0.0, true), [true, false, false, false]);
        assert_eq!(dithered(1.0, false), [false; 4]);
    }
}
