//! Settings of a denoiser: those of its stages, and the seed.

use crate::inference::{
    EmSettings, HamcmcMemory, ImpulseMode, LiteralSettings, Positivity, SamplingSettings,
};
use crate::model::{ModelSettings, NoiseModel, Prior};
use crate::range::SettingsError;
use crate::samplers::SamplerKind;
use crate::wiener::GainSettings;
use serde::{Deserialize, Serialize};

/// Settings of a [`Denoiser`](crate::Denoiser): the model, how it is fitted, and what is made of the fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What speech and noise are taken for.
    pub model: ModelSettings,
    /// The expectation maximisation that every block starts with.
    pub em: EmSettings,
    /// The Gibbs sampling that follows. Without it, written `false` in files, the gain is that of the expectation
    /// maximisation, averaged over its last quarter.
    #[serde(with = "sampling_or_false")]
    pub sampling: Option<SamplingSettings>,
    /// From the posterior mean of the gain to the gain that is applied.
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
    /// For those in a hurry: the expectation maximisation alone, cut short.
    #[must_use]
    pub fn fast() -> Self {
        let em = EmSettings { iterations: 12, ..EmSettings::default() };
        Self { em, sampling: None, ..Self::normal() }
    }

    /// A good result in reasonable time.
    #[must_use]
    pub fn normal() -> Self {
        Self::default()
    }

    /// The method of `hamcmc-2016`, section 4.2, as it stands there: both sources are factorised, with the paper's
    /// exponents, five unknown spectra of noise and generalised gamma priors (eq. 14); impulses are drawn by Metropolis
    /// steps with their prior as proposal, activations and noise spectra by HAMCMC (algorithm 1, `M = 5`) with
    /// mirroring and a tenth of the entries per gradient. 2500 draws without warm start, the last 200 of which are
    /// averaged; the mean of the Wiener gain is applied as it is.
    ///
    /// The paper's supplement has the hyper-parameters of the prior and the step size; these were chosen on sentences
    /// that are not in its test set.
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
            em: EmSettings { iterations: 0, ..EmSettings::default() },
            sampling: Some(SamplingSettings {
                iterations: 2500,
                burn_in: 2300,
                sampler: SamplerKind::Hamcmc,
                step_size: Some(8e-4),
                step_decay: 0.0,
                minibatch: 0.1,
                positivity: Positivity::Mirrored,
                impulses: ImpulseMode::Sampled,
                hamcmc: HamcmcMemory { memory: 5, renewal: 1 },
                literal: LiteralSettings::default(),
            }),
            gain: GainSettings { floor_db: -100.0, band_floors: false, ..GainSettings::model_only() },
            seed: 0,
        }
    }

    /// Checks every range, and that no setting would be without effect.
    ///
    /// # Errors
    /// Names the first setting out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let Self { model, em, sampling, gain, .. } = self;
        model.validate()?;
        em.validate(sampling.is_some())?;
        if let Some(sampling) = sampling {
            sampling.validate()?;
            if sampling.literal.prior_start {
                check_prior_start(model, em)?;
            }
        }
        gain.validate()
    }

    /// Gibbs sweeps that are averaged.
    #[must_use]
    pub fn draws(&self) -> usize {
        self.sampling.as_ref().map_or(0, |sampling| sampling.iterations - sampling.burn_in)
    }
}

/// Checks what a start from the priors needs of the other settings.
fn check_prior_start(model: &ModelSettings, em: &EmSettings) -> Result<(), SettingsError> {
    let refuse = |name: &'static str, value: &str, expected: &str| {
        Err(SettingsError {
            name,
            value: value.to_owned(),
            expected: format!("{expected} with a start from the priors"),
        })
    };
    if em.iterations > 0 {
        return refuse("iterations of expectation maximisation", "above 0", "0");
    }
    let drawn = |prior| matches!(prior, Prior::GeneralisedGamma { .. });
    if !(drawn(model.speech_prior) && drawn(model.noise_prior)) {
        return refuse("prior", "of another kind", "generalised gamma laws");
    }
    if !matches!(model.noise, NoiseModel::FixedSpectra { .. }) {
        return refuse("noise", "drifting", "spectra");
    }
    Ok(())
}

/// Settings of a sampling in files, or `false` for none.
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
            formatter.write_str("settings of the sampling, or false for none")
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
    use super::super::LiteralHamcmc;
    use super::*;

    #[test]
    fn settings_are_read_as_they_were_written() {
        for settings in [Settings::fast(), Settings::normal(), Settings::published()] {
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
            assert_eq!(refused(minibatch), Some("minibatch share"), "{sampler}");
            assert_eq!(refused(step_decay), Some("decay of the step size"), "{sampler}");
        }
        let newtonian = SamplingSettings { sampler: SamplerKind::Newtonian, ..plain.clone() };
        let step_size = SamplingSettings { step_size: Some(0.1), ..newtonian.clone() };
        let mirrored = SamplingSettings { positivity: Positivity::Mirrored, ..newtonian };
        assert_eq!(refused(step_size), Some("step size"));
        assert_eq!(refused(mirrored), Some("positivity"));
        let letter = |literal| refused(SamplingSettings { literal, ..plain.clone() });
        let off = LiteralSettings::default();
        assert_eq!(
            letter(LiteralSettings { prior_start: true, ..off.clone() }),
            Some("iterations of expectation maximisation")
        );
        assert_eq!(letter(LiteralSettings { one_unit: true, ..off.clone() }), Some("one unit"));
        assert_eq!(letter(LiteralSettings { sampled_gain: true, ..off.clone() }), Some("sampled gain"));
        assert_eq!(letter(LiteralSettings { unlimited_drift: true, ..off.clone() }), None);
        for hamcmc in [
            LiteralHamcmc { one_memory: true, ..LiteralHamcmc::default() },
            LiteralHamcmc { gamma: Some(0.1), ..LiteralHamcmc::default() },
            LiteralHamcmc { lambda: Some(10.0), shifted_pairs: true, ..LiteralHamcmc::default() },
        ] {
            let literal = LiteralSettings { hamcmc, ..off.clone() };
            assert_eq!(letter(literal.clone()), None);
            let sgld = SamplingSettings { sampler: SamplerKind::Sgld, literal, ..plain.clone() };
            assert_eq!(refused(sgld), Some("the letter of HAMCMC"));
        }
        let hamcmc = LiteralHamcmc { gamma: Some(0.0), ..LiteralHamcmc::default() };
        assert_eq!(letter(LiteralSettings { hamcmc, ..off }), Some("gamma"));
        let nothing = EmSettings { iterations: 0, ..EmSettings::default() };
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
            assert_eq!(refused(sampled(SamplingSettings { step_size, ..Default::default() })), "step size");
        }
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(
                refused(sampled(SamplingSettings { minibatch: value, ..Default::default() })),
                "minibatch share"
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
