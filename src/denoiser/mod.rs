//! Denoisers: whole recordings, streams of blocks, sessions, and real-time audio.

pub(crate) mod block;
mod front_end;
mod levels;
mod live;
mod profile;
mod session;
mod settings;
mod speech_track;
mod stream;
mod voice_activity;

pub use crate::array::MicrophoneFault;
pub use crate::inference::SamplerStatistics;
pub use crate::inference::{EmSettings, HamcmcMemory, ImpulseMode, Positivity, SamplingSettings};
pub use crate::model::{ModelSettings, NoiseDrift, NoiseModel};
pub use crate::presence::PresenceNetError;
pub use crate::range::SettingsError;
pub use crate::stable::ALPHA_RANGE;
pub use crate::tensor_file::TensorFileError;
pub use crate::wiener::{GainSettings, Strength};
pub use levels::{SpeechLevel, SpeechLevels};
pub use live::{
    DEFAULT_LATENCY_MS, LATENCY_RANGE_SECONDS, LiveControls, LiveDenoiser, LiveMeters, LiveSettings,
};
pub use profile::NoiseProfile;
pub use session::{ChannelMode, MonteCarloError, Session, SessionOutput, SessionSettings, Statistics};
pub use settings::Settings;
pub use speech_track::{SpeechSegment, SpeechTrack};
pub use voice_activity::{VoiceActivity, VoiceEvent, VoiceEvents};

use crate::array::ARRAY_CHANNELS;
use crate::model::Dictionary;
use crate::samplers::SamplerError;
use crate::signal::progress::{Cancelled, ProgressCallback};
use crate::signal::{ErrorKind, InvalidSignal, Signal, check_sample_rate, counted};
use crate::transform::{FrameGrid, Stft};
use block::{Separator, Snapshots};
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Separates speech from noise. Clones share the dictionary and the tables of the original.
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
#[derive(Clone)]
pub struct Denoiser {
    separator: Arc<Separator>,
}

impl fmt::Debug for Denoiser {
    /// Formats the settings alone: dictionary and networks hold hundreds of thousands of numbers.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Denoiser").field("settings", self.settings()).finish_non_exhaustive()
    }
}

/// A denoised recording.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Denoised {
    /// The denoised signal, with sample rate, channels, length and sample format of the input.
    pub signal: Signal,
    /// Statistics of the recording.
    pub statistics: Statistics,
}

/// Reason why a recording could not be denoised.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DenoiseError {
    /// A setting is out of range.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A built-in speech-presence network is damaged.
    #[error(transparent)]
    PresenceNet(#[from] PresenceNetError),
    /// The built-in network of speech levels is damaged.
    #[error("speech-level network: {0}")]
    LevelNet(#[from] TensorFileError),
    /// The sampler rejected its settings.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Samples, sample rate or number of channels do not form a signal.
    #[error(transparent)]
    Signal(#[from] InvalidSignal),
    /// A block, or a noise section, has the wrong number of channels.
    #[error("{}; expected {expected}", counted(*found as u64, "channel"))]
    Channels {
        /// Channels of the block.
        found: usize,
        /// Channels of the stream.
        expected: usize,
    },
    /// A recording has too few or too many channels for [`ChannelMode::Array`].
    #[error(
        "an array needs {} to {} channels; found {found}", ARRAY_CHANNELS.start(), ARRAY_CHANNELS.end()
    )]
    ArrayChannels {
        /// Channels of the recording.
        found: usize,
    },
    /// The recording has ended.
    #[error("the recording has ended")]
    Finished,
    /// The noise section holds no noise.
    #[error("noise section is silent or shorter than one analysis window")]
    NoNoise,
    /// The noise section came after the first samples of the recording.
    #[error("noise section after the first samples; expected before them")]
    Started,
    /// The noise section has another sample rate.
    #[error("noise section has {found} Hz; expected {expected} Hz")]
    NoiseRate {
        /// Sample rate of the section, Hz.
        found: u32,
        /// Sample rate of the recording, Hz.
        expected: u32,
    },
    /// The noise profile was made by a denoiser whose dictionary has another window.
    #[error(
        "noise profile has a window of {found} samples; expected {expected}, that of the denoiser in use"
    )]
    NoiseWindow {
        /// Window of the profile, samples.
        found: usize,
        /// Window of the session, samples.
        expected: usize,
    },
    /// Learned noise has the bins of another sample rate.
    #[error("learned noise has {found} bins; expected {expected}, those of the sample rate in use")]
    NoiseBins {
        /// Bins of the noise.
        found: usize,
        /// Bins of the denoiser.
        expected: usize,
    },
    /// The progress callback cancelled the denoising.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl DenoiseError {
    /// The kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::PresenceNet(_) | Self::LevelNet(_) => ErrorKind::Model,
            Self::Settings(_) | Self::Sampler(_) | Self::NoNoise => ErrorKind::Setting,
            Self::Signal(_)
            | Self::Channels { .. }
            | Self::ArrayChannels { .. }
            | Self::NoiseRate { .. }
            | Self::NoiseWindow { .. }
            | Self::NoiseBins { .. }
            | Self::Started
            | Self::Finished => ErrorKind::Input,
            Self::Cancelled(_) => ErrorKind::Cancelled,
        }
    }
}

/// Callback of intermediate results: the number of completed Gibbs sweeps, and the recording denoised by a mean gain.
/// The mean is over at most the last 20 sweeps during the burn-in, and over all sweeps since the burn-in afterwards.
pub type SnapshotCallback<'a> = dyn FnMut(usize, &Signal) + 'a;

impl Denoiser {
    /// Builds a denoiser from a dictionary of speech. The built-in speech-presence network is used unless the settings
    /// disable it, the dictionary has another window than 64 ms, or the noise has fixed spectra.
    ///
    /// # Errors
    /// [`DenoiseError::Settings`] if a setting is out of range or has no effect; [`DenoiseError::PresenceNet`] if the crate was
    /// built with a damaged network.
    pub fn new(dictionary: Dictionary, settings: Settings) -> Result<Self, DenoiseError> {
        settings.validate()?;
        Ok(Self { separator: Arc::new(Separator::new(dictionary, settings)?) })
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

    /// Denoises a recording in [`ChannelMode::Auto`].
    ///
    /// # Errors
    /// As [`session`](Self::session), and [`DenoiseError::Sampler`] if a sampler rejects its settings.
    pub fn denoise(&self, noisy: &Signal) -> Result<Denoised, DenoiseError> {
        self.denoise_with_progress(noisy, &mut ())
    }

    /// Like [`denoise`](Self::denoise); `progress` receives the completed fraction, 0 to 1.
    ///
    /// # Errors
    /// As [`denoise`](Self::denoise), and [`DenoiseError::Cancelled`] if `progress` cancels it.
    pub fn denoise_with_progress(
        &self,
        noisy: &Signal,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Denoised, DenoiseError> {
        self.denoise_whole(noisy, progress, None)
    }

    /// Like [`denoise_with_progress`](Self::denoise_with_progress); `on_snapshot` receives an intermediate result after
    /// each `every` Gibbs sweeps. Snapshots do not change the result. Recordings of more than one block (8 s), or whose
    /// channels do not share one gain, have no snapshots.
    ///
    /// # Errors
    /// As [`denoise_with_progress`](Self::denoise_with_progress).
    pub fn denoise_with_snapshots(
        &self,
        noisy: &Signal,
        every: NonZeroUsize,
        on_snapshot: &mut SnapshotCallback,
        progress: &mut dyn ProgressCallback,
    ) -> Result<Denoised, DenoiseError> {
        let show = &mut |sweeps: usize, channels: Vec<Vec<f32>>| {
            // Samples that do not form a signal are reported at the end.
            if let Ok(signal) = noisy.with_channels(channels) {
                on_snapshot(sweeps, &signal);
            }
        };
        self.denoise_whole(noisy, progress, Some(Snapshots { every, show }))
    }

    fn denoise_whole(
        &self,
        noisy: &Signal,
        progress: &mut dyn ProgressCallback,
        snapshots: Option<Snapshots<Vec<Vec<f32>>>>,
    ) -> Result<Denoised, DenoiseError> {
        let mut session =
            self.session(noisy.sample_rate(), noisy.channels().len(), SessionSettings::default())?;
        let duration = noisy.duration();
        let progress: &mut dyn ProgressCallback =
            &mut |seconds: f64| progress.report((seconds / duration).min(1.0));
        let whole: Vec<&[f32]> = noisy.channels().iter().map(Vec::as_slice).collect();
        let mut channels = session.push_with_progress(&whole, progress)?.speech;
        append(&mut channels, session.finish_with_snapshots(progress, snapshots)?.speech);
        Ok(Denoised { signal: noisy.with_channels(channels)?, statistics: session.statistics() })
    }

    /// The frame grid of recordings at this sample rate, Hz.
    ///
    /// # Errors
    /// [`DenoiseError::Signal`] if the sample rate is out of range.
    pub fn grid(&self, sample_rate: u32) -> Result<FrameGrid, DenoiseError> {
        check_sample_rate(sample_rate)?;
        Ok(Stft::new(sample_rate, self.dictionary().header().window_seconds)?.grid())
    }

    /// A session that denoises a recording of any length block by block, in bounded memory. `sample_rate` in Hz.
    ///
    /// # Errors
    /// [`DenoiseError::Settings`] if a setting is out of range; [`DenoiseError::Signal`] if the sample rate or the
    /// number of channels is out of range, or their product exceeds
    /// [`MAX_SAMPLES_PER_SECOND`](crate::signal::MAX_SAMPLES_PER_SECOND); [`DenoiseError::ArrayChannels`] unless an
    /// array has 2 to 16 channels; [`DenoiseError::LevelNet`] if the settings request levels and the crate was built
    /// with a damaged network of levels.
    pub fn session(
        &self,
        sample_rate: u32,
        channels: usize,
        settings: SessionSettings,
    ) -> Result<Session, DenoiseError> {
        Session::new(self, sample_rate, channels, settings)
    }

    /// A causal low-latency denoiser for real-time audio. `sample_rate` in Hz. It uses the dictionary and the
    /// characteristic exponents of this denoiser, and a causal network if this one uses a network. It does not sample.
    ///
    /// # Errors
    /// [`DenoiseError::Settings`] if a setting is out of range; [`DenoiseError::Signal`] as [`session`](Self::session).
    pub fn live(
        &self,
        sample_rate: u32,
        channels: usize,
        settings: LiveSettings,
    ) -> Result<LiveDenoiser, DenoiseError> {
        LiveDenoiser::new(&self.separator, sample_rate, channels, settings)
    }

    /// First controls of a live denoiser: the minimum gain of this denoiser's settings, and `mix`, the fraction of the denoised
    /// signal in the output, 0 to 1.
    #[must_use]
    pub fn live_controls(&self, mix: f32) -> LiveControls {
        let floor_db = self.settings().gain.floor_db as f32;
        LiveControls { floor_db, mix, ..LiveControls::default() }
    }

    /// An empty noise profile, to be filled from a section of noise alone. `sample_rate` in Hz.
    ///
    /// # Errors
    /// As [`session`](Self::session).
    pub fn noise_profile(&self, sample_rate: u32, channels: usize) -> Result<NoiseProfile, DenoiseError> {
        let window_seconds = self.dictionary().header().window_seconds;
        NoiseProfile::new(window_seconds, sample_rate, channels)
    }
}

/// Appends the samples of a block to those of every channel.
fn append(channels: &mut [Vec<f32>], block: Vec<Vec<f32>>) {
    channels.iter_mut().zip(block).for_each(|(channel, samples)| channel.extend(samples));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denoisers_are_shared_and_sessions_are_sent_between_threads() {
        fn shared<T: Clone + Send + Sync + 'static>() {}
        fn sent<T: Send + 'static>() {}
        shared::<Denoiser>();
        sent::<NoiseProfile>();
        sent::<Session>();
        sent::<LiveDenoiser>();
    }

    #[test]
    fn what_is_reported_is_compared_and_serialised() {
        fn reported<T: Clone + PartialEq + fmt::Debug + serde::Serialize>() {}
        reported::<Statistics>();
        reported::<SpeechLevels>();
        reported::<SpeechTrack>();
        reported::<LiveMeters>();
        reported::<VoiceActivity>();
        reported::<VoiceEvent>();
    }

    #[test]
    fn invalid_sessions_and_blocks_are_refused() {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
        let session = |rate, channels| denoiser.session(rate, channels, SessionSettings::default());
        let error = |rate, channels| session(rate, channels).err().map(|error| error.to_string());
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

        let mut session_of_two = session(16_000, 2).unwrap();
        let mut profile = denoiser.noise_profile(16_000, 2).unwrap();
        let (none, one, two): (&[f32], &[f32], &[f32]) = (&[], &[0.5], &[0.5, 0.25]);
        for (block, expected) in [
            (vec![one], "1 channel; expected 2"),
            (vec![one, one, one], "3 channels; expected 2"),
            (vec![two, one], "channel 2 has 1 sample: expected 2, as in channel 1"),
            (vec![none, one], "channel 2 has 1 sample: expected 0, as in channel 1"),
            (vec![one, &[f32::NAN]], "sample 1 of channel 2 is NaN: expected a finite value"),
        ] {
            assert_eq!(session_of_two.push(&block).unwrap_err().to_string(), expected);
            assert_eq!(profile.push(&block).unwrap_err().to_string(), expected);
        }
        // Refused blocks leave no samples behind.
        session_of_two.push(&[two, two]).unwrap();
        assert_eq!(session_of_two.finish().unwrap().speech[1].len(), 2);
        assert!(matches!(session_of_two.push(&[one, one]), Err(DenoiseError::Finished)));
        assert!(matches!(session_of_two.finish(), Err(DenoiseError::Finished)));

        let mut other = denoiser.noise_profile(8_000, 1).unwrap();
        other.push(&[&[0.1; 8_000]]).unwrap();
        let error = session(16_000, 1).unwrap().set_noise_profile(&other).unwrap_err();
        assert_eq!(error.to_string(), "noise section has 8000 Hz; expected 16000 Hz");
    }
}
