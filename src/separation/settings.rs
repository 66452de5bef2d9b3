//! What a user can set, with ranges.

use super::noise_drift::NoiseDrift;
use crate::model::Prior;
use crate::samplers::SamplerKind;
pub use crate::stable::ALPHAS;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::RangeInclusive;

/// How activations and noise spectra are kept positive while they are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Positivity {
    /// The sampler moves their logarithms.
    #[default]
    Log,
    /// Draws are mirrored at zero, as in the paper (`hamcmc-2016`, section 4.2).
    Mirrored,
}

/// How the impulse variables are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImpulseMode {
    /// Integrated out by a table: exact, and faster than drawing them.
    #[default]
    Integrated,
    /// Drawn by Metropolis steps with their prior as proposal, as in the paper.
    Sampled,
}

/// What the noise is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseModel {
    /// One spectrum that drifts, times a level per frame.
    Drifting(NoiseDrift),
    /// Constant spectra with activations, as in the paper.
    Spectra {
        /// Number of spectra, 1 to 64.
        rank: usize,
    },
}

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

/// What speech and noise are taken for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Characteristic exponent of speech, in [`ALPHAS`]; `None` takes the dictionary's.
    pub alpha_speech: Option<f64>,
    /// Characteristic exponent of noise, in [`ALPHAS`].
    pub alpha_noise: f64,
    /// What the noise is made of.
    pub noise: NoiseModel,
    /// Whether noise that drifts starts where a [`Listener`](crate::listener::Listener) takes it to be, if there is one, so
    /// that it moves as fast as is heard; up to 8 kHz.
    pub moving_noise: bool,
    /// Prior of the activations of speech.
    pub speech_prior: Prior,
    /// Prior of the activations and the constant spectra of noise.
    pub noise_prior: Prior,
    /// Whether the gain of the recording channel is learned, for every bin.
    pub channel: bool,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            alpha_speech: None,
            alpha_noise: 1.9,
            noise: NoiseModel::Drifting(NoiseDrift { seconds: 0.8, hertz: 31.25 }),
            moving_noise: true,
            speech_prior: Prior::Gamma { shape: 0.95, rate: 0.0 },
            noise_prior: Prior::Flat,
            channel: true,
        }
    }
}

/// The expectation maximisation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EmSettings {
    /// Sweeps over a block, 0 to 10,000; at least one where nothing is sampled.
    pub iterations: usize,
    /// Exponent of the multiplicative updates, 0.01 to 1.
    pub exponent: f64,
}

impl Default for EmSettings {
    fn default() -> Self {
        Self { iterations: 18, exponent: 1.0 }
    }
}

/// The Gibbs sampling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingSettings {
    /// Gibbs sweeps, 1 to 1,000,000.
    pub iterations: usize,
    /// How many of them are left out of the average; fewer than `iterations`.
    pub burn_in: usize,
    /// The sampler of activations and noise spectra.
    pub sampler: SamplerKind,
    /// Its step size; `None` takes its default in the denoiser. [`SamplerKind::Newtonian`] has none.
    pub step_size: Option<f64>,
    /// The power by which the step size falls with the number of sweeps, 0 (not at all) to 1. Only 0 for samplers
    /// that accept or reject.
    pub step_decay: f64,
    /// The share of the bins that each gradient looks at, in (0, 1]. Only 1 for samplers that accept or reject.
    pub minibatch: f64,
    /// How the factors are kept positive. [`SamplerKind::Newtonian`] knows the half line, and takes
    /// [`Positivity::Log`] alone.
    pub positivity: Positivity,
    /// Whether impulse variables are integrated out or drawn.
    pub impulses: ImpulseMode,
    /// What [`SamplerKind::Hamcmc`] remembers, where it is the sampler.
    pub hamcmc: HamcmcMemory,
    /// Where the sampling keeps to the letter of the paper.
    pub literal: LiteralSettings,
}

/// The letter of `hamcmc-2016`, section 4.2, where [`Settings::published`] departs from it because it does better: each
/// for itself, to be measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiteralSettings {
    /// Whether all factors start from draws of their priors, which must be [`Prior::GeneralisedGamma`], in place of the
    /// levels of the recording.
    pub prior_start: bool,
    /// Whether mirrored unknowns are measured as they are, in place of the level of their frame or bin at the start.
    pub one_unit: bool,
    /// Whether the drift may move an unknown by any length, in place of one unit at most.
    pub unlimited_drift: bool,
    /// Whether the gain is that at the impulse variables as they were drawn, in place of its mean over them.
    pub sampled_gain: bool,
    /// Whether a minibatch is of single entries of the spectrogram, in place of bins in all frames that are worked on
    /// together, and of whole frames for the noise spectra. It saves no time: all entries are computed, and all impulse
    /// variables move.
    pub single_entries: bool,
    /// HAMCMC itself, where it is the sampler.
    pub hamcmc: LiteralHamcmc,
}

/// The letter of algorithm 1 of `hamcmc-2016`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LiteralHamcmc {
    /// Whether the activations of all frames have one memory, and all noise spectra another, in place of one for every
    /// frame and every bin.
    pub one_memory: bool,
    /// The scale `gamma` that the recursion starts from, above 0; `None` takes it from the pairs.
    pub gamma: Option<f64>,
    /// The trust region `lambda`, from 0; `None` takes 1.
    pub lambda: Option<f64>,
    /// Whether every pair counts that `lambda` makes positive, in place of those that are positive without.
    pub shifted_pairs: bool,
}

/// The curvature that HAMCMC goes by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HamcmcMemory {
    /// The memory `M`, 2 to 100: so many chains take turns, each moved by the curvature that the others have met.
    pub memory: usize,
    /// Every chain measures it anew at every so many of its steps, at least 1, each time at the price of a second
    /// gradient.
    pub renewal: u64,
}

impl Default for HamcmcMemory {
    fn default() -> Self {
        Self { memory: 3, renewal: 8 }
    }
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self {
            iterations: 8,
            burn_in: 2,
            sampler: SamplerKind::Hamcmc,
            step_size: None,
            step_decay: 0.0,
            minibatch: 1.0,
            positivity: Positivity::default(),
            impulses: ImpulseMode::default(),
            hamcmc: HamcmcMemory::default(),
            literal: LiteralSettings::default(),
        }
    }
}

/// The least gain by default, dB. On mixtures for development, the ratings of listeners that DNSMOS predicts rise from
/// 2.65 at -26 dB by band over 2.74 at -40 to 2.77 at -60; PESQ at 8 kHz is best at -40.
pub(crate) const NORMAL_FLOOR_DB: f64 = -45.0;

/// From the posterior mean of the gain to the gain that is applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GainSettings {
    /// Whether a small network corrects the gain ([`Refiner`](crate::Refiner)): one that is given or, where nothing listens
    /// and it fits, the one that is built in.
    pub refine: bool,
    /// Whether the gain is pooled with what the [`Listener`](crate::listener::Listener) says, where the windows are
    /// those that it has learned with and the noise is not made of constant spectra.
    pub listen: bool,
    /// Whether the gain of a frame is averaged with its neighbours', against musical noise in noisy bands.
    pub smooth: bool,
    /// The least gain of any bin, dB, -100 to 0: what is left of the noise.
    pub floor_db: f64,
    /// Whether, where nothing listens, the least gain of a band is about -26 dB and follows its noise in place of
    /// `floor_db`: what is left is to be 20 to 32 dB below the speech there, and the least gain -40 to -17 dB.
    pub floor_by_band: bool,
    /// The share of what rings on of the voice in a room that counts as noise, 0 to 1.
    pub dry: f64,
}

impl Default for GainSettings {
    fn default() -> Self {
        Self {
            refine: true,
            listen: true,
            smooth: true,
            floor_db: NORMAL_FLOOR_DB,
            floor_by_band: true,
            dry: 0.0,
        }
    }
}

impl GainSettings {
    /// The gain of the model alone: what it says is neither refined, nor pooled, nor smoothed.
    #[must_use]
    pub fn unlearned() -> Self {
        Self { refine: false, listen: false, smooth: false, ..Self::default() }
    }

    /// The same, with as much of the noise taken out as `strength` says.
    #[must_use]
    pub fn with_strength(self, strength: Strength) -> Self {
        let (floor_db, floor_by_band) = match strength {
            Strength::Gentle => (-12.0, false),
            Strength::Normal => (NORMAL_FLOOR_DB, true),
            Strength::Strong => (-70.0, false),
        };
        Self { floor_db, floor_by_band, ..self }
    }
}

/// How much of the noise is taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strength {
    /// 12 dB at most.
    Gentle,
    /// 45 dB at most; where nothing listens, about 26 dB, more where it is louder than speech and less where it is
    /// hardly heard.
    #[default]
    Normal,
    /// 70 dB at most.
    Strong,
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

/// A setting out of its range.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{name} is {value}; expected {expected}")]
pub struct SettingsError {
    /// Name of the setting.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: String,
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
                noise: NoiseModel::Spectra { rank: 5 },
                moving_noise: false,
                speech_prior: Prior::GeneralisedGamma { shape: 0.5, scale: 1e-5, power: -2.0 / ALPHA_SPEECH },
                noise_prior: Prior::Flat,
                channel: false,
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
            gain: GainSettings { floor_db: -100.0, floor_by_band: false, ..GainSettings::unlearned() },
            seed: 0,
        }
    }

    /// Checks every range, and that no setting would be without effect.
    ///
    /// # Errors
    /// Names the first setting out of its range.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let Self { model, em, sampling, gain, .. } = self;
        if let Some(alpha) = model.alpha_speech {
            within("alpha of speech", alpha, ALPHAS)?;
        }
        within("alpha of noise", model.alpha_noise, ALPHAS)?;
        match model.noise {
            NoiseModel::Spectra { rank } => within("noise rank", rank, 1..=64)?,
            NoiseModel::Drifting(drift) => {
                within("seconds of drift", drift.seconds, 0.0..=1e6)?;
                within("hertz of drift", drift.hertz, 0.0..=1e5)?;
            }
        }
        for prior in [model.speech_prior, model.noise_prior] {
            match prior {
                Prior::Flat => {}
                Prior::Gamma { shape, rate } => {
                    positive("shape of the prior", shape, MOST_OF_PRIOR)?;
                    within("rate of the prior", rate, 0.0..=MOST_OF_PRIOR)?;
                }
                Prior::GeneralisedGamma { shape, scale, power } => {
                    positive("shape of the prior", shape, MOST_OF_PRIOR)?;
                    positive("scale of the prior", scale, MOST_OF_PRIOR)?;
                    // Its inverse is of the order of alpha.
                    positive("size of the prior's power", power.abs(), 100.0)?;
                }
            }
        }
        within("exponent of updates", em.exponent, 0.01..=1.0)?;
        let least = usize::from(sampling.is_none());
        within("iterations of expectation maximisation", em.iterations, least..=10_000)?;
        if let Some(sampling) = sampling {
            sampling.validate()?;
            if sampling.literal.prior_start {
                let literal = |name: &'static str, value: &str, expected: &str| SettingsError {
                    name,
                    value: value.to_owned(),
                    expected: format!("{expected} with a start from the priors"),
                };
                if em.iterations > 0 {
                    return Err(literal("iterations of expectation maximisation", "above 0", "0"));
                }
                let drawn = |prior| matches!(prior, Prior::GeneralisedGamma { .. });
                if !(drawn(model.speech_prior) && drawn(model.noise_prior)) {
                    return Err(literal("prior", "of another kind", "generalised gamma laws"));
                }
                if !matches!(model.noise, NoiseModel::Spectra { .. }) {
                    return Err(literal("noise", "drifting", "spectra"));
                }
            }
        }
        within("dry", gain.dry, 0.0..=1.0)?;
        within("gain floor in dB", gain.floor_db, -100.0..=0.0)
    }

    /// Gibbs sweeps that are averaged.
    #[must_use]
    pub fn draws(&self) -> usize {
        self.sampling.as_ref().map_or(0, |sampling| sampling.iterations - sampling.burn_in)
    }
}

impl SamplingSettings {
    fn validate(&self) -> Result<(), SettingsError> {
        within("iterations of sampling", self.iterations, 1..=1_000_000)?;
        within("burn-in", self.burn_in, 0..=self.iterations - 1)?;
        if let Some(step) = self.step_size {
            positive("step size", step, 1e6)?;
        }
        within("memory", self.hamcmc.memory, 2..=100)?;
        within("renewal", self.hamcmc.renewal, 1..=1_000_000)?;
        within("decay of the step size", self.step_decay, 0.0..=1.0)?;
        positive("minibatch share", self.minibatch, 1.0)?;
        let sampler = self.sampler;
        let rejects = matches!(
            sampler,
            SamplerKind::Hmc
                | SamplerKind::MhBfgs
                | SamplerKind::HmcBfgs
                | SamplerKind::Qnhmc
                | SamplerKind::Newtonian
        );
        let refuse = |name, value: String, expected: &str| {
            Err(SettingsError { name, value, expected: format!("{expected} with the sampler {sampler}") })
        };
        if rejects && self.minibatch != 1.0 {
            return refuse("minibatch share", self.minibatch.to_string(), "1");
        }
        if rejects && self.step_decay != 0.0 {
            return refuse("decay of the step size", self.step_decay.to_string(), "0");
        }
        let LiteralSettings { one_unit, unlimited_drift, sampled_gain, hamcmc, .. } = &self.literal;
        if *one_unit && self.positivity != Positivity::Mirrored {
            return refuse("one unit", "on".to_owned(), "mirrored factors");
        }
        if *unlimited_drift && rejects {
            return refuse("unlimited drift", "on".to_owned(), "off");
        }
        if *sampled_gain && self.impulses != ImpulseMode::Sampled {
            return refuse("sampled gain", "on".to_owned(), "sampled impulses");
        }
        if *hamcmc != LiteralHamcmc::default() && sampler != SamplerKind::Hamcmc {
            return refuse("the letter of HAMCMC", "on".to_owned(), "off");
        }
        if let Some(gamma) = hamcmc.gamma {
            positive("gamma", gamma, 1e6)?;
        }
        if let Some(lambda) = hamcmc.lambda {
            within("lambda", lambda, 0.0..=1e9)?;
        }
        if sampler == SamplerKind::Newtonian {
            if let Some(step) = self.step_size {
                return refuse("step size", step.to_string(), "none");
            }
            if self.positivity != Positivity::Log {
                return refuse("positivity", "mirrored".to_owned(), "log");
            }
        }
        Ok(())
    }
}

/// The largest parameter of a prior that makes sense: activations have a mean of about one.
const MOST_OF_PRIOR: f64 = 1e6;

/// Checks that a value is above 0 and at most so large.
fn positive(name: &'static str, value: f64, most: f64) -> Result<(), SettingsError> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    Err(SettingsError { name, value: short(value), expected: format!("more than 0, and {most} at most") })
}

/// A number as it is written by hand: not with hundreds of digits.
fn short<T: fmt::Display + fmt::LowerExp>(value: T) -> String {
    const DIGITS: usize = 20;
    let text = value.to_string();
    if text.len() > DIGITS { format!("{value:e}") } else { text }
}

/// Checks that a value lies in its range; a NaN does not.
pub(crate) fn within<T: PartialOrd + fmt::Display + fmt::LowerExp>(
    name: &'static str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<(), SettingsError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(SettingsError { name, value: short(value), expected })
}

#[cfg(test)]
mod tests {
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
