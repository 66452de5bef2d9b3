//! Settings of a denoiser: of its stages, and the seed.

use crate::inference::{EmSettings, HamcmcMemory, ImpulseMode, Positivity, SamplingSettings};
use crate::model::{ModelSettings, NoiseModel, Prior};
use crate::range::SettingsError;
use crate::samplers::SamplerKind;
use crate::wiener::GainSettings;
use serde::{Deserialize, Serialize};

/// Settings of a [`Denoiser`](crate::Denoiser): model, inference, Wiener filter and seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Model of speech and noise.
    pub model: ModelSettings,
    /// Expectation maximisation, with which every block starts.
    pub em: EmSettings,
    /// Gibbs sampling, which follows. `None` (`false` in files): the gain is the average of the last quarter of expectation
    /// maximisation.
    #[serde(with = "sampling_or_false")]
    pub sampling: Option<SamplingSettings>,
    /// Wiener filter: from the posterior-mean gain to the gain that is applied.
    pub gain: GainSettings,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            model: ModelSettings::default(),
            em: EmSettings::default(),
            sampling: Some(SamplingSettings::default()),
            gain: GainSettings::default(),
            seed: 0,
        }
    }
}

impl Settings {
    /// Fast settings: the small speech-presence network, fewer sweeps of expectation maximisation ([`EmSettings::fast`]), no
    /// sampling.
    #[must_use]
    pub fn fast() -> Self {
        let em = EmSettings { fast: true, ..EmSettings::default() };
        let gain = GainSettings { small_network: true, ..GainSettings::default() };
        Self { em, gain, sampling: None, ..Self::normal() }
    }

    /// The default settings.
    #[must_use]
    pub fn normal() -> Self {
        Self::default()
    }

    /// The method of `hamcmc-2016`, section 4.2: both sources are factorised with the paper's exponents, five noise spectra
    /// and generalised gamma priors (eq. 14). Impulse variables are drawn by Metropolis steps with their prior as proposal,
    /// activations and noise spectra by HAMCMC (algorithm 1, `M = 5`) with mirroring and minibatches. There are 2500 draws,
    /// of which the last 200 are averaged; the posterior-mean Wiener gain is applied without further processing.
    ///
    /// It departs from the paper as follows:
    /// - hyper-parameters of the prior and the step size are in a supplement that is not available; these were tuned on
    ///   sentences outside the paper's test set, and the prior of the noise is flat;
    /// - a minibatch is a tenth of the bins in 32 frames for activations, and a tenth of the frames for noise spectra, in
    ///   place of a tenth of the entries; impulse variables move in the same bins;
    /// - every frame and every bin of the noise spectra has its own L-BFGS memory, in units of its initial level, and
    ///   the drift of a step is limited to one unit;
    /// - factors start from levels of the recording, not from prior draws, and the step size is constant;
    /// - pairs of non-positive curvature are left out before the trust region applies;
    /// - the gain of a draw is averaged over the impulse variables in closed form: the same mean with less error.
    #[must_use]
    pub fn published() -> Self {
        const ALPHA_SPEECH: f64 = 1.2;
        Self {
            model: ModelSettings {
                alpha_speech: Some(ALPHA_SPEECH),
                alpha_noise: 1.89,
                noise: NoiseModel::FixedSpectra { rank: 5 },
                nonstationary_noise: false,
                speech_prior: Prior::GeneralisedGamma { shape: 0.5, scale: 1e-5, power: -2.0 / ALPHA_SPEECH },
                noise_prior: Prior::Flat,
                channel_response: false,
            },
            em: EmSettings { iterations: Some(0), ..EmSettings::default() },
            sampling: Some(SamplingSettings {
                iterations: 2500,
                burn_in: 2300,
                sampler: SamplerKind::Hamcmc,
                step_size: Some(8e-4),
                step_decay: 0.0,
                minibatch: 0.1,
                positivity: Positivity::Mirrored,
                impulses: ImpulseMode::Sampled,
                hamcmc: HamcmcMemory { size: 5, refresh_interval: 1 },
            }),
            gain: GainSettings { floor_db: -100.0, band_floors: false, ..GainSettings::model_only() },
            seed: 0,
        }
    }

    /// Checks every range, and rejects settings without effect.
    ///
    /// # Errors
    /// [`SettingsError`], with the name of the first invalid setting, its value and the expectation.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let Self { model, em, sampling, gain, .. } = self;
        model.validate()?;
        em.validate(sampling.is_some())?;
        if let Some(sampling) = sampling {
            sampling.validate()?;
        }
        gain.validate()
    }

    /// Number of averaged Gibbs sweeps.
    #[must_use]
    pub fn draws(&self) -> usize {
        self.sampling.as_ref().map_or(0, |sampling| sampling.iterations.saturating_sub(sampling.burn_in))
    }
}

/// Sampling settings in files, or `false` for none.
mod sampling_or_false {
    use super::SamplingSettings;
    use serde::de::value::MapAccessDeserializer;
    use serde::de::{Error, MapAccess, Unexpected, Visitor};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::fmt;

    pub(super) fn serialize<S: Serializer>(
        settings: &Option<SamplingSettings>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match settings {
            Some(settings) => settings.serialize(serializer),
            None => serializer.serialize_bool(false),
        }
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Option<SamplingSettings>, D::Error> {
        deserializer.deserialize_any(SamplingOrFalse)
    }

    struct SamplingOrFalse;

    impl<'a> Visitor<'a> for SamplingOrFalse {
        type Value = Option<SamplingSettings>;

        fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
            formatter.write_str("sampling settings, or false for none")
        }

        fn visit_bool<E: Error>(self, on: bool) -> Result<Self::Value, E> {
            if on { Err(E::invalid_value(Unexpected::Bool(on), &self)) } else { Ok(None) }
        }

        fn visit_map<M: MapAccess<'a>>(self, map: M) -> Result<Self::Value, M::Error> {
            SamplingSettings::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        for settings in [Settings::default(), Settings::fast(), Settings::published()] {
            let text = serde_json::to_string(&settings).unwrap();
            assert_eq!(serde_json::from_str::<Settings>(&text).unwrap(), settings);
        }
        let read = |text| serde_json::from_str::<Settings>(text);
        assert_eq!(read("{}").unwrap(), Settings::default());
        assert_eq!(Settings::default().draws(), 6);
        assert_eq!(read(r#"{"sampling": false}"#).unwrap().sampling, None);
        let shorter = read(r#"{"sampling": {"iterations": 9}}"#).unwrap();
        assert_eq!(shorter.sampling, Some(SamplingSettings { iterations: 9, ..Default::default() }));
        for (text, complaint) in [
            (r#"{"sampling": true}"#, "or false for none"),
            (r#"{"sampling": {"sweeps": 9}}"#, "unknown field `sweeps`"),
            (r#"{"refine": false}"#, "unknown field `refine`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }

    #[test]
    fn settings_without_effect_are_refused() {
        let refused = |sampling| {
            let settings = Settings { sampling: Some(sampling), ..Settings::default() };
            settings.validate().err().map(|error| error.name)
        };
        let plain = SamplingSettings::default();
        for sampler in SamplerKind::ALL {
            assert_eq!(refused(SamplingSettings { sampler, ..plain.clone() }), None, "{sampler}");
        }
        for sampler in [SamplerKind::Hmc, SamplerKind::MhBfgs, SamplerKind::Newtonian] {
            let plain = SamplingSettings { sampler, ..plain.clone() };
            let minibatch = SamplingSettings { minibatch: 0.5, ..plain.clone() };
            let step_decay = SamplingSettings { step_decay: 0.5, ..plain };
            assert_eq!(refused(minibatch), Some("sampling.minibatch"), "{sampler}");
            assert_eq!(refused(step_decay), Some("sampling.step_decay"), "{sampler}");
        }
        let newtonian = SamplingSettings { sampler: SamplerKind::Newtonian, ..plain.clone() };
        let step_size = SamplingSettings { step_size: Some(0.1), ..newtonian.clone() };
        let mirrored = SamplingSettings { positivity: Positivity::Mirrored, ..newtonian };
        assert_eq!(refused(step_size), Some("sampling.step_size"));
        assert_eq!(refused(mirrored), Some("sampling.positivity"));
        let nothing = EmSettings { iterations: Some(0), ..EmSettings::default() };
        assert!(Settings { em: nothing.clone(), ..Settings::fast() }.validate().is_err());
        assert!(Settings { em: nothing, ..Settings::default() }.validate().is_ok());
    }

    #[test]
    fn absurd_values_are_refused_in_few_words() {
        let sampled = |sampling| Settings { sampling: Some(sampling), ..Settings::default() };
        let with_prior = |speech_prior| {
            let model = ModelSettings { speech_prior, ..ModelSettings::default() };
            Settings { model, ..Settings::default() }
        };
        let noise_prior = Prior::Gamma { shape: 1.0, rate: -1.0 };
        let model = ModelSettings { noise_prior, ..ModelSettings::default() };
        assert!(Settings { model, ..Settings::default() }.validate().is_err());
        let refused = |settings: Settings| {
            let error = settings.validate().unwrap_err();
            assert!(error.to_string().len() < 100, "{error}");
            error.name
        };
        for step_size in [0.0, -1.0, f64::NAN, 1e300].map(Some) {
            assert_eq!(
                refused(sampled(SamplingSettings { step_size, ..Default::default() })),
                "sampling.step_size"
            );
        }
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(
                refused(sampled(SamplingSettings { minibatch: value, ..Default::default() })),
                "sampling.minibatch"
            );
            for prior in [
                Prior::Gamma { shape: value, rate: 1.0 },
                Prior::Gamma { shape: 1.0, rate: if value == 0.0 { -1e-9 } else { value } },
                Prior::GeneralisedGamma { shape: value, scale: 1.0, power: -1.0 },
                Prior::GeneralisedGamma { shape: 1.0, scale: value, power: -1.0 },
            ] {
                let name = refused(with_prior(prior));
                assert!(name.ends_with("of the prior"), "{name}");
            }
        }
        for power in [0.0, f64::NAN, f64::NEG_INFINITY, 1e300] {
            let speech_prior = Prior::GeneralisedGamma { shape: 1.0, scale: 1.0, power };
            assert_eq!(refused(with_prior(speech_prior)), "size of the prior's power");
        }
        Settings::default().validate().unwrap();
    }
}
