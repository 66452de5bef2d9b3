//! Settings by the names that the program gives them.

use crate::denoiser::{
    ChannelMode, ImpulseMode, NoiseModel, Positivity, SamplingSettings, SessionSettings, Settings,
    SettingsError, Strength,
};
use crate::samplers::SamplerKind;
use serde::Deserialize;

/// The options of the program that say how a recording is denoised, by their names: what programs and bindings offer
/// that do not want to know of [`Settings`]. What is not given stays at its default.
///
/// ```
/// use alphamf::denoiser::{Options, Settings};
/// let options: Options = serde_json::from_str(r#"{"quality": "fast", "floor_db": -20, "seed": 7}"#)?;
/// let settings = options.settings()?;
/// assert_eq!((settings.sampling, settings.gain.floor_db, settings.seed), (None, -20.0, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// How much time to spend.
    pub quality: Option<Quality>,
    /// A method as it was published, in place of all but the seed and what becomes of the result.
    pub method: Option<Method>,
    /// How much of the noise to take out.
    pub strength: Option<Strength>,
    /// The least gain of any part of the spectrum, dB, -100 to 0; in place of `strength`.
    pub floor_db: Option<f64>,
    /// The share of what rings on of the voice in a room that is taken out, too, 0 to 1.
    pub dereverb: Option<f64>,
    /// The sampler of activations and noise spectra.
    pub sampler: Option<SamplerKind>,
    /// Gibbs sweeps, 0 (nothing is drawn) to 1,000,000.
    pub iterations: Option<usize>,
    /// How many of them are left out of the average; half of them if only they are given.
    pub burn_in: Option<usize>,
    /// Sweeps of expectation maximisation to start from, 0 to 10,000.
    pub em_iterations: Option<usize>,
    /// Step size of the sampler, above 0.
    pub step_size: Option<f64>,
    /// Share of the bins that each gradient of the sampler looks at, in (0, 1].
    pub minibatch: Option<f64>,
    /// How the sampler keeps factors positive.
    pub positivity: Option<Positivity>,
    /// Whether impulse variables are integrated out or sampled.
    pub impulses: Option<ImpulseMode>,
    /// Characteristic exponent of speech, 0.2 to 2; the dictionary's if not given.
    pub alpha_speech: Option<f64>,
    /// Characteristic exponent of noise, 0.2 to 2.
    pub alpha_noise: Option<f64>,
    /// Makes the noise of so many constant spectra, 1 to 64, in place of one that drifts.
    pub noise_rank: Option<usize>,
    /// Whether the network that has learned from real noise is not asked.
    pub no_neural: bool,
    /// Seed of all random numbers.
    pub seed: Option<u64>,
    /// How much of the result is the denoised recording, 0 to 1.
    pub mix: Option<f32>,
    /// How channels are treated.
    pub channels: ChannelMode,
    /// Whether integers are rounded without dither.
    pub no_dither: bool,
}

/// How much time to spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// [`Settings::fast`].
    Fast,
    /// [`Settings::normal`].
    Normal,
}

/// A method as it was published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// [`Settings::published`].
    Published,
}

/// Changes a setting if an option was given.
fn set<T: Copy>(setting: &mut T, option: Option<T>) {
    if let Some(value) = option {
        *setting = value;
    }
}

/// An option that does not go with the others.
fn refuse<T>(name: &'static str, value: &str, expected: &str) -> Result<T, SettingsError> {
    Err(SettingsError { name, value: value.to_owned(), expected: expected.to_owned() })
}

impl Options {
    /// The settings of a denoiser.
    ///
    /// # Errors
    /// If an option is out of its range, has no effect, or does not go with another.
    pub fn settings(&self) -> Result<Settings, SettingsError> {
        if let Some(Method::Published) = self.method {
            return self.published();
        }
        let mut settings = match self.quality {
            Some(Quality::Fast) => Settings::fast(),
            Some(Quality::Normal) | None => Settings::normal(),
        };
        let Settings { model, em, gain, .. } = &mut settings;
        set(&mut em.iterations, self.em_iterations);
        set(&mut model.alpha_noise, self.alpha_noise);
        model.alpha_speech = self.alpha_speech;
        if let Some(rank) = self.noise_rank {
            model.noise = NoiseModel::FixedSpectra { rank };
        }
        match (self.strength, self.floor_db) {
            (Some(_), Some(_)) => return refuse("floor_db", "beside strength", "one of the two"),
            (Some(strength), None) => *gain = gain.clone().with_strength(strength),
            (None, Some(floor)) => (gain.floor_db, gain.band_floors) = (floor, false),
            (None, None) => {}
        }
        set(&mut gain.dereverb, self.dereverb);
        gain.speech_presence = !self.no_neural;
        settings.sampling = self.sampling(settings.sampling)?;
        set(&mut settings.seed, self.seed);
        settings.validate()?;
        Ok(settings)
    }

    /// The settings of the published method, which fixes all but the seed.
    fn published(&self) -> Result<Settings, SettingsError> {
        let Self { method, seed, mix, channels, no_dither, .. } = *self;
        if *self != (Self { method, seed, mix, channels, no_dither, ..Self::default() }) {
            return refuse(
                "method",
                "beside an option that it fixes",
                "the seed alone of model and inference",
            );
        }
        let mut settings = Settings::published();
        set(&mut settings.seed, seed);
        Ok(settings)
    }

    /// What a session makes of the result; residual and deviation are not asked for.
    #[must_use]
    pub fn session(&self) -> SessionSettings {
        let mut settings = SessionSettings { channels: self.channels, ..SessionSettings::default() };
        set(&mut settings.mix, self.mix);
        settings.dither = !self.no_dither;
        settings
    }

    /// The settings of the sampling, given those of the quality.
    fn sampling(
        &self,
        of_quality: Option<SamplingSettings>,
    ) -> Result<Option<SamplingSettings>, SettingsError> {
        let sampling = match self.iterations {
            Some(0) => None,
            Some(iterations) => Some(SamplingSettings {
                iterations,
                burn_in: iterations / 2,
                ..of_quality.unwrap_or_default()
            }),
            None => of_quality,
        };
        let Some(mut sampling) = sampling else {
            let given = [
                ("burn_in", self.burn_in.is_some()),
                ("sampler", self.sampler.is_some()),
                ("step_size", self.step_size.is_some()),
                ("minibatch", self.minibatch.is_some()),
                ("positivity", self.positivity.is_some()),
                ("impulses", self.impulses.is_some()),
            ];
            return match given.into_iter().find(|(_, given)| *given) {
                Some((name, _)) => refuse(name, "without effect", "sweeps: iterations, or another quality"),
                None => Ok(None),
            };
        };
        set(&mut sampling.burn_in, self.burn_in);
        set(&mut sampling.sampler, self.sampler);
        set(&mut sampling.minibatch, self.minibatch);
        set(&mut sampling.positivity, self.positivity);
        set(&mut sampling.impulses, self.impulses);
        sampling.step_size = self.step_size;
        Ok(Some(sampling))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Options {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn options_that_are_not_given_leave_the_defaults() {
        assert_eq!(Options::default().settings().unwrap(), Settings::default());
        assert_eq!(Options::default().session(), SessionSettings::default());
        assert_eq!(read(r#"{"quality": "fast"}"#).settings().unwrap(), Settings::fast());
        let published = read(r#"{"method": "published", "seed": 3, "mix": 0.5}"#);
        assert_eq!(published.settings().unwrap(), Settings { seed: 3, ..Settings::published() });
        assert_eq!(published.session().mix, 0.5);
    }

    #[test]
    fn options_are_read_by_their_names() {
        let all = r#"{
            "strength": "gentle", "sampler": "mh-bfgs", "iterations": 8, "em_iterations": 3, "step_size": 0.5,
            "positivity": "mirrored", "impulses": "sampled", "alpha_speech": 1.5, "alpha_noise": 1.8, "noise_rank": 2,
            "no_neural": true, "dereverb": 0.5, "seed": 9, "channels": "separate", "no_dither": true
        }"#;
        let options = read(all);
        let settings = options.settings().unwrap();
        let sampling = settings.sampling.unwrap();
        assert_eq!((sampling.iterations, sampling.burn_in, sampling.sampler), (8, 4, SamplerKind::MhBfgs));
        assert_eq!((settings.gain.floor_db, settings.gain.speech_presence), (-12.0, false));
        assert_eq!(settings.gain.dereverb, 0.5);
        assert_eq!(settings.model.noise, NoiseModel::FixedSpectra { rank: 2 });
        let session = options.session();
        assert_eq!((session.channels, session.dither), (ChannelMode::Separate, false));
        for text in [r#"{"colour": 1}"#, r#"{"quality": "best"}"#] {
            assert!(serde_json::from_str::<Options>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_has_no_effect_is_refused() {
        for (text, name) in [
            (r#"{"quality": "fast", "sampler": "hmc"}"#, "sampler"),
            (r#"{"iterations": 0, "burn_in": 1}"#, "burn_in"),
            (r#"{"strength": "gentle", "floor_db": -3}"#, "floor_db"),
            (r#"{"method": "published", "quality": "normal"}"#, "method"),
            (r#"{"floor_db": 3}"#, "gain floor in dB"),
        ] {
            assert_eq!(read(text).settings().unwrap_err().name, name, "{text}");
        }
    }
}
