//! From a noisy recording to the voice.

pub(crate) mod block;
mod front_end;
mod levels;
mod live;
mod profile;
mod session;
mod settings;
mod stream;

pub use crate::inference::{
    EmSettings, HamcmcMemory, ImpulseMode, LiteralHamcmc, LiteralSettings, MonteCarloAccumulator, Positivity,
    SamplerCounters, SamplingSettings,
};
pub use crate::model::{ModelSettings, NoiseDrift, NoiseModel};
pub use crate::options::{Method, Options, OptionsError, Quality};
pub use crate::range::SettingsError;
pub use crate::stable::ALPHA_RANGE;
pub use crate::wiener::{GainSettings, Strength};
pub use levels::{SpeechLevel, SpeechLevels};
pub use live::{LATENCY_RANGE_SECONDS, LiveControls, LiveDenoiser, LiveMeters, LiveSettings};
pub use profile::NoiseProfile;
pub use session::{
    ChannelMode, MonteCarloError, SamplerStatistics, Session, SessionOutput, SessionSettings, Statistics,
};
pub use settings::Settings;
pub use stream::DenoiseStream;

use crate::model::Dictionary;
use crate::presence::{HighBandPresenceNet, PresenceNet, PresenceNetError};
use crate::samplers::SamplerError;
use crate::signal::progress::{Cancelled, ProgressCallback};
use crate::signal::{ErrorKind, InvalidSignal, Signal};
use crate::transform::InvalidWindow;
use block::{SeparationError, Separator};
use std::sync::Arc;

/// Separates speech from noise. A clone shares the dictionary and the tables of the original.
///
/// ```no_run
/// use alphamf::{Denoiser, Dictionary, Settings};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let denoiser = Denoiser::new(Dictionary::built_in()?, Settings::default())?;
/// let noisy = alphamf_files::read("noisy.wav")?;
/// let denoised = denoiser.denoise(&noisy)?;
/// alphamf_files::write("clean.wav", &denoised.signal)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Denoiser {
    separator: Arc<Separator>,
}

/// A denoised recording.
#[derive(Debug, Clone)]
pub struct Denoised {
    /// The voice, in the format of the input.
    pub signal: Signal,
    /// What was found.
    pub summary: Summary,
}

/// What the separation found out about a recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Estimated ratio of speech to noise before, dB; NaN for silence.
    pub snr_before_db: f64,
    /// Estimated ratio of speech to noise after, dB; NaN for silence.
    pub snr_after_db: f64,
    /// The ratio of the speech to what the result is expected to differ from it, by the posterior, dB; NaN for silence. On
    /// mixtures for development it is 0.9 dB above the true one, give or take 2.4 dB, unless the noise is another voice,
    /// which nothing here can tell.
    pub expected_sdr_db: f64,
    /// Level in the pauses of the voice, dB: mean square against full scale ±1. Pauses are the fifth of the frames of
    /// every block with the least speech, digital silence left out; NaN if there are none.
    pub noise_before_dbfs: f64,
    /// The same in the result.
    pub noise_after_dbfs: f64,
    /// How exact the posterior mean of the gain is, given the number of draws.
    pub monte_carlo: MonteCarloAccumulator,
    /// Sampler moves that were rejected because they were not finite.
    pub divergences: usize,
    /// What the samplers did in the sweeps that are averaged.
    pub moves: SamplerCounters,
    /// Reverberation time (60 dB) of every octave from 125 Hz to 8 kHz, s; none where too little of a voice's ends was heard.
    pub reverberation_seconds: [Option<f64>; 6],
    /// Clicks in time that were cut out, all channels together.
    pub clicks: usize,
    /// Blocks of a channel in which a noise with heavy tails was suppressed in time.
    pub heavy_tailed_blocks: usize,
}

/// Why a recording could not be denoised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting is out of its range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The listener that is built in is damaged.
    #[error(transparent)]
    PresenceNet(#[from] PresenceNetError),
    /// The sampler refused its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// The dictionary's window is of no use at this sample rate.
    #[error(transparent)]
    Window(#[from] InvalidWindow),
    /// Samples, or what is said of them, do not make a signal.
    #[error(transparent)]
    Signal(#[from] InvalidSignal),
    /// A block, or a stretch of noise, has more or fewer channels than were announced.
    #[error("{found} channels: expected {expected}")]
    Channels {
        /// Its channels.
        found: usize,
        /// Channels that were announced.
        expected: usize,
    },
    /// The recording has ended.
    #[error("the recording has ended: nothing can follow")]
    Finished,
    /// The stretch that the noise is to be learned from holds no noise.
    #[error("the stretch that should hold the noise is silent or shorter than a window")]
    NoNoise,
    /// The stretch that the noise is to be learned from is that of another recording.
    #[error("a stretch of noise at {found} Hz: expected the {expected} Hz of the recording")]
    NoiseRate {
        /// Sample rate of the stretch, Hz.
        found: u32,
        /// Sample rate of the recording, Hz.
        expected: u32,
    },
    /// The watch ended it.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl DenoiseError {
    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::PresenceNet(_) => ErrorKind::Model,
            Self::Settings(_) | Self::Sampler(_) | Self::NoNoise => ErrorKind::Setting,
            Self::Signal(_) | Self::Channels { .. } | Self::NoiseRate { .. } => ErrorKind::Input,
            Self::Cancelled(_) => ErrorKind::Cancelled,
            Self::Window(_) | Self::Finished => ErrorKind::Other,
        }
    }
}

impl From<SeparationError> for DenoiseError {
    fn from(error: SeparationError) -> Self {
        match error {
            SeparationError::Sampler(error) => Self::Sampler(error),
            SeparationError::Cancelled(error) => Self::Cancelled(error),
        }
    }
}

/// Shown the number of Gibbs sweeps so far and the recording as denoised by then.
pub type Observer<'a> = dyn FnMut(usize, &Signal) + 'a;

impl Denoiser {
    /// Builds a denoiser from a dictionary of speech. The built-in speech-presence network is used unless the settings
    /// disable it, the dictionary has another window than 64 ms, or the noise has fixed spectra.
    ///
    /// # Errors
    /// [`DenoiseError::Settings`] if a setting is out of its range, and [`DenoiseError::PresenceNet`] if a built-in network is
    /// damaged.
    pub fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, DenoiseError> {
        settings.validate()?;
        let mut separator = Separator::new(dictionary, settings);
        if separator.settings.gain.speech_presence {
            let listener = PresenceNet::built_in()?;
            if separator.fits(listener.header().window_seconds) {
                separator.listener = Some(listener);
                separator.high_band_net = Some(HighBandPresenceNet::built_in()?);
            }
        }
        Ok(Self { separator: Arc::new(separator) })
    }

    /// The dictionary in use.
    #[must_use]
    pub fn dictionary(&self) -> &Dictionary {
        &self.separator.dictionary
    }

    /// The settings in use.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.separator.settings
    }

    /// Denoises a recording. All channels get the same gain, so that the stereo image stays.
    ///
    /// # Errors
    /// Only if the settings do not fit the recording.
    pub fn denoise(&self, noisy: &Signal) -> Result<Denoised, DenoiseError> {
        self.denoise_with_progress(noisy, &mut ())
    }

    /// The same; `watch` is told the share that is done, 0 to 1.
    ///
    /// # Errors
    /// As [`Denoiser::denoise`], and [`DenoiseError::Cancelled`] if `watch` ended it.
    pub fn denoise_with_progress(
        &self,
        noisy: &Signal,
        watch: &mut dyn ProgressCallback,
    ) -> Result<Denoised, DenoiseError> {
        self.denoise_with_snapshots(noisy, 0, &mut |_, _| (), watch)
    }

    /// Denoises a recording, with the same result, and shows how it develops: every `every` Gibbs sweeps
    /// (0 for never) `observer` is given the result by the mean gain of the last 20 of them or, once the
    /// burn-in is over, of all since. Only recordings of a single block (8 s) are shown.
    ///
    /// # Errors
    /// As [`Denoiser::denoise_with_progress`].
    pub fn denoise_with_snapshots(
        &self,
        noisy: &Signal,
        every: usize,
        observer: &mut Observer,
        watch: &mut dyn ProgressCallback,
    ) -> Result<Denoised, DenoiseError> {
        let mut stream = self.stream(noisy.sample_rate(), noisy.channels().len())?;
        let length = noisy.len();
        let mut channels = vec![Vec::with_capacity(length); noisy.channels().len()];
        let step = stream.block_samples();
        let duration = noisy.duration();
        let watch: &mut dyn ProgressCallback =
            &mut |seconds: f64| watch.report((seconds / duration).min(1.0));
        for start in (0..length).step_by(step) {
            let end = (start + step).min(length);
            let block: Vec<&[f32]> = noisy.channels().iter().map(|samples| &samples[start..end]).collect();
            append(&mut channels, stream.push_with_progress(&block, watch)?);
        }
        let mut show = |sweep: usize, channels: Vec<Vec<f32>>| {
            // What does not make a signal here is reported at the end.
            if let Ok(signal) = noisy.with_channels(channels) {
                observer(sweep, &signal);
            }
        };
        append(&mut channels, stream.finish_observed(every, &mut show, watch)?);
        Ok(Denoised { signal: noisy.with_channels(channels)?, summary: stream.summary() })
    }

    /// Denoises a recording of any length that comes in blocks, in memory that does not grow. `sample_rate` in Hz.
    ///
    /// # Errors
    /// If the sample rate or the number of channels is not one of a [`Signal`], or both together are more than
    /// [`MAX_SAMPLES_PER_SECOND`](crate::signal::MAX_SAMPLES_PER_SECOND).
    pub fn stream(&self, sample_rate: u32, channels: usize) -> Result<DenoiseStream, DenoiseError> {
        DenoiseStream::new(Arc::clone(&self.separator), sample_rate, channels)
    }

    /// Denoises a recording of any length that comes in blocks, with all that `settings` ask for. `sample_rate` in Hz.
    ///
    /// # Errors
    /// As for [`Denoiser::stream`], and if a setting is out of its range.
    pub fn session(
        &self,
        sample_rate: u32,
        channels: usize,
        settings: SessionSettings,
    ) -> Result<Session, DenoiseError> {
        Session::new(self, sample_rate, channels, settings)
    }

    /// Denoises sound as it comes, sample for sample. `sample_rate` in Hz. It goes by the dictionary and the
    /// characteristic exponents of this denoiser and, if this one listens, by a listener that has learned to band_log_odds the past
    /// alone; nothing is refined or drawn.
    ///
    /// # Errors
    /// As for [`Denoiser::stream`], and if a setting is out of its range.
    pub fn live(
        &self,
        sample_rate: u32,
        channels: usize,
        settings: LiveSettings,
    ) -> Result<LiveDenoiser, DenoiseError> {
        LiveDenoiser::new(&self.separator, sample_rate, channels, settings)
    }

    /// Learns the noise's spectrum from a stretch that holds noise alone.
    ///
    /// # Errors
    /// As for [`Denoiser::stream`].
    pub fn noise_profile(&self, sample_rate: u32, channels: usize) -> Result<NoiseProfile, DenoiseError> {
        let window_seconds = self.dictionary().header().window_seconds;
        NoiseProfile::new(window_seconds, sample_rate, channels)
    }
}

fn append(channels: &mut [Vec<f32>], block: Vec<Vec<f32>>) {
    channels.iter_mut().zip(block).for_each(|(channel, samples)| channel.extend(samples));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denoisers_are_shared_and_streams_are_sent_between_threads() {
        fn shared<T: Clone + Send + Sync + 'static>() {}
        fn sent<T: Send + 'static>() {}
        shared::<Denoiser>();
        sent::<DenoiseStream>();
        sent::<NoiseProfile>();
        sent::<Session>();
    }

    #[test]
    fn what_makes_no_stream_is_refused() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let error = |rate, channels| denoiser.stream(rate, channels).err().map(|error| error.to_string());
        assert_eq!(error(1, 1).unwrap(), "sample rate of 1 Hz: expected 8000 to 192000 Hz");
        assert_eq!(error(16_000, 0).unwrap(), "no channels: expected at least one");
        assert_eq!(error(16_000, 257).unwrap(), "257 channels: expected 256 at most");
        assert_eq!(
            error(192_000, 17).unwrap(),
            "17 channels at 192000 Hz: expected 16 at most at this rate, in a file of their own"
        );
        assert_eq!((error(192_000, 16), error(48_000, 64), error(12_000, 256)), (None, None, None));
        let separate = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
        assert!(denoiser.session(48_000, 65, separate).is_err());
        assert!(denoiser.noise_profile(1, 1).is_err() && denoiser.noise_profile(16_000, 0).is_err());

        let mut stream = denoiser.stream(16_000, 2).unwrap();
        let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
        let (none, one, two): (&[f32], &[f32], &[f32]) = (&[], &[0.5], &[0.5, 0.25]);
        for (block, expected) in [
            (vec![one], "1 channels: expected 2"),
            (vec![one, one, one], "3 channels: expected 2"),
            (vec![two, one], "channel 1 has 1 samples: expected 2, as in channel 0"),
            (vec![none, one], "channel 1 has 1 samples: expected 0, as in channel 0"),
            (vec![one, &[f32::NAN]], "sample 0 of channel 1 is NaN: expected a finite value"),
        ] {
            assert_eq!(stream.push(&block).unwrap_err().to_string(), expected);
            assert_eq!(profile.push(&block).unwrap_err().to_string(), expected);
        }
        // What was refused left nothing behind.
        stream.push(&[two, two]).unwrap();
        assert_eq!(stream.finish().unwrap()[1].len(), 2);
        assert!(matches!(stream.push(&[one, one]), Err(DenoiseError::Finished)));
        assert!(matches!(stream.finish(), Err(DenoiseError::Finished)));

        let mut other = denoiser.noise_profile(8_000, 1).unwrap();
        other.push(&[&[0.1; 8_000]]).unwrap();
        let error = denoiser.stream(16_000, 1).unwrap().set_noise_profile(&other).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a stretch of noise at 8000 Hz: expected the 16000 Hz of the recording"
        );
    }
}
