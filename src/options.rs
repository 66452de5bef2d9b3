//! What a user can set, by name.

mod error;
#[cfg(feature = "clap")]
mod names;
#[cfg(test)]
mod tests;

use crate::denoiser::{
    ChannelMode, ImpulseMode, NoiseModel, Positivity, SamplingSettings, SessionSettings, Settings, Strength,
};
use crate::fields;
use crate::range::within;
use crate::samplers::SamplerKind;
pub use error::OptionsError;
use error::{by_name, by_option};
#[cfg(feature = "clap")]
use names::words;

/// Reads a seed, as the option does.
#[cfg(feature = "clap")]
#[doc(hidden)]
pub use names::seed as parse_seed;
use serde::{Deserialize, Serialize};

/// Options of a denoiser, by name; what is `None` keeps its default.
///
/// This is the one description of what a user can set. With the feature `clap` its fields are the arguments of the
/// program and their documentation is the help; with serde they are the names that Python, C and the web page take.
/// A first sentence says what an option does; `Range` and `Default` begin with these words, and tests hold them to
/// the settings. `--name` stands for another option.
///
/// ```
/// use alphamf::{Options, Settings};
/// let options = Options::from_json(r#"{"quality": "fast", "floor_db": -20, "seed": 7}"#)?;
/// let settings = options.settings()?;
/// assert_eq!((settings.sampling, settings.gain.floor_db, settings.seed), (None, -20.0, 7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
pub struct Options {
    /// Choose between quality and speed.
    ///
    /// Default: normal. fast takes about a third of the time at sample rates up to 16 kHz, two thirds at higher rates: a smaller
    /// speech-presence network, fewer sweeps of expectation maximisation, no Gibbs sweeps. The seed then affects the dither
    /// alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<Quality>()))]
    pub quality: Option<Quality>,

    /// Set the use of the output.
    ///
    /// Default: listening. transcription sets --mix to 0.8, unless that is given. Except in live denoising and with
    /// --channels array, it leaves speech with little noise unchanged. Recognisers then make fewer errors than on the input up
    /// to 10 dB of SNR, and as many above 20 dB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "USE"))]
    #[cfg_attr(feature = "clap", arg(visible_alias = "for", value_parser = words::<Purpose>()))]
    pub purpose: Option<Purpose>,

    /// Set the noise reduction.
    ///
    /// Default: normal. gentle removes 12 dB at most, normal 45 dB, strong 70 dB. With --no-neural, normal removes about
    /// 26 dB, more where noise is louder than speech and less where it is barely audible. Excludes --floor-db.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<Strength>()))]
    pub strength: Option<Strength>,

    /// Set the minimum gain of any frequency, in dB.
    ///
    /// Range: -100 to 0. Default: that of --strength, which it replaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "DB"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub floor_db: Option<f64>,

    /// Set the fraction of denoised signal in the output.
    ///
    /// Range: 0 to 1. Default: 1. The rest is the input; 0 returns the input, exactly up to 24 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "FRACTION"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub mix: Option<f32>,

    /// Reduce late reverberation, 0 (off) to 1 (full).
    ///
    /// Range: 0 to 1. Default: 0. Start with 0.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "FRACTION"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true))]
    pub dereverb: Option<f64>,

    /// Restore clipped samples; the output is 6 dB softer.
    ///
    /// Peaks that were cut off are estimated from the samples around them, up to twice as high. The lower level leaves room for
    /// them.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", hide_short_help = true))]
    pub declip: bool,

    /// Couple or separate channels, or join microphones.
    ///
    /// Default: auto. auto applies one gain to all channels, and denoises each channel alone from where they hold different
    /// sounds, as with a microphone for each speaker; shared applies one gain throughout, which keeps the stereo image;
    /// separate denoises each channel alone throughout; array treats the 2 to 16 channels as microphones in one scene: it also
    /// uses the direction of sounds, and returns the voice in each channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<ChannelMode>(), hide_short_help = true))]
    pub channels: Option<ChannelMode>,

    /// Seed the random numbers.
    ///
    /// Range: 0 to 18446744073709551615. Default: 0. The same seed gives the same output, on any number of threads.
    /// It drives sampling and dither; with --quality fast, dither alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", value_name = "N"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    #[cfg_attr(feature = "clap", arg(value_parser = names::seed))]
    pub seed: Option<u64>,

    /// Round to integers without dither.
    ///
    /// Pauses may then become digital silence and faint noise may be gated. Floating-point output has no dither.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Denoising", hide_short_help = true))]
    pub no_dither: bool,

    /// Disable the speech-presence network.
    ///
    /// The gain is then the posterior-mean Wiener gain alone, with slowly varying noise.
    #[serde(skip_serializing_if = "is_false")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model"))]
    pub no_neural: bool,

    /// Run a published method with its own settings.
    ///
    /// published is Simsekli et al. (2016), section 4.2: 2500 Gibbs sweeps, slow. It departs from the paper: factors
    /// start at the level of the recording, a minibatch is a tenth of the bins across frames, each frame has an L-BFGS
    /// memory of its own, the drift of a step is limited, the gain is averaged over the impulse variables, and priors
    /// and step size were chosen here. It expects a dictionary trained with alpha 1.2. Of the options of the denoiser it
    /// takes only --model, --noise-from, --seed, --threads, --mix, --channels and --no-dither.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model", value_name = "NAME"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<Method>(), hide_short_help = true))]
    pub method: Option<Method>,

    /// Set the characteristic exponent of speech.
    ///
    /// Range: 0.2 to 2. Default: that of the dictionary, whose spectra were trained with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model", value_name = "ALPHA"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub alpha_speech: Option<f64>,

    /// Set the characteristic exponent of noise.
    ///
    /// Range: 0.2 to 2. Default: 1.9.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model", value_name = "ALPHA"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub alpha_noise: Option<f64>,

    /// Model noise with N fixed spectra.
    ///
    /// Range: 1 to 64. Default: one drifting spectrum, which it replaces. Disables the speech-presence network.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Model", value_name = "N"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub noise_rank: Option<usize>,

    /// Choose the sampler of activations and noise spectra.
    ///
    /// Default: hamcmc. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "NAME"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<SamplerKind>(), hide_short_help = true))]
    pub sampler: Option<SamplerKind>,

    /// Set the number of Gibbs sweeps.
    ///
    /// Range: 0 to 1000000. Default: 8; with --quality fast, 0. Without sweeps nothing is sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "N"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub iterations: Option<usize>,

    /// Discard the first N Gibbs sweeps.
    ///
    /// Range: 0 to one less than --iterations. Default: 2; with --iterations, half of them. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "N"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub burn_in: Option<usize>,

    /// Set the number of expectation-maximisation sweeps.
    ///
    /// Range: 0 to 10000. Default: 8 (fast: 2); without the speech-presence network 18 (fast: 12). Above 16 kHz at
    /// least 12. They precede the Gibbs sweeps; without those, 1 is the least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "N"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub em_iterations: Option<usize>,

    /// Set the step size of the sampler.
    ///
    /// Range: above 0 to 1000000. Default: the sampler's own. The sampler nmc has none. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "STEP"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub step_size: Option<f64>,

    /// Set the fraction of bins in each gradient.
    ///
    /// Range: above 0 to 1. Default: 1. Samplers that accept or reject take 1 alone: hmc, mh-bfgs, hmc-bfgs, qnhmc,
    /// nuts, nmc. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "FRACTION"))]
    #[cfg_attr(feature = "clap", arg(allow_negative_numbers = true, hide_short_help = true))]
    pub minibatch: Option<f64>,

    /// Choose how the sampler keeps factors positive.
    ///
    /// Default: log. log samples their logarithms; mirrored reflects draws at zero, as in the paper. The sampler nmc
    /// takes log alone. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<Positivity>(), hide_short_help = true))]
    pub positivity: Option<Positivity>,

    /// Choose how impulse variables are treated.
    ///
    /// Default: integrated. integrated averages over them exactly; sampled draws them by Metropolis steps, as in the
    /// paper. Needs Gibbs sweeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "clap", arg(long, help_heading = "Sampling", value_name = "HOW"))]
    #[cfg_attr(feature = "clap", arg(value_parser = words::<ImpulseMode>(), hide_short_help = true))]
    pub impulses: Option<ImpulseMode>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// A balance of quality and speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Quality {
    /// [`Settings::normal`].
    Normal,
    /// [`Settings::fast`].
    Fast,
}

/// The use of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// The denoised signal alone.
    Listening,
    /// Four parts of denoised signal, one of input; the input alone where there is little noise. Recognisers make fewer word errors
    /// than on either (eval/results).
    Transcription,
}

impl Purpose {
    /// Fraction of the denoised signal in the output.
    fn mix(self) -> f32 {
        match self {
            Self::Listening => 1.0,
            Self::Transcription => 0.8,
        }
    }
}

/// A published method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// Options that a published method leaves free.
const WITH_METHOD: [&str; 5] = ["method", "seed", "mix", "channels", "no_dither"];

/// Options that have no effect where samples stay floats.
const WITHOUT_EFFECT_ON_FLOATS: [&str; 1] = ["no_dither"];

impl Options {
    /// Options that a live denoiser uses; seed and dither affect files that it is written to.
    pub const LIVE: &[&str] = &[
        "purpose",
        "strength",
        "floor_db",
        "mix",
        "seed",
        "no_dither",
        "no_neural",
        "alpha_speech",
        "alpha_noise",
    ];

    /// Options of a JSON object.
    ///
    /// # Errors
    /// If an option has another name or type; [`settings`](Self::settings) checks ranges.
    pub fn from_json(json: &str) -> Result<Self, OptionsError> {
        Self::default().with_json(json)
    }

    /// These options, those of a JSON object in their places.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_json(&self, json: &str) -> Result<Self, OptionsError> {
        fields::with_json(self, "option", &[], json).map_err(by_name)
    }

    /// Names of all options, in order of declaration.
    #[must_use]
    pub fn names() -> &'static [&'static str] {
        fields::names::<Self>()
    }

    /// Names of the options that have an effect where samples stay floats: all but `no_dither`.
    pub fn float_names() -> impl Iterator<Item = &'static str> {
        Self::names().iter().copied().filter(|name| !WITHOUT_EFFECT_ON_FLOATS.contains(name))
    }

    /// Like [`with_json`](Self::with_json), where samples stay floats: an unknown option is answered with
    /// [`float_names`](Self::float_names).
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json), and for an option that is not among these.
    pub fn with_json_for_floats(&self, json: &str) -> Result<Self, OptionsError> {
        let options = fields::with_json(self, "option", &WITHOUT_EFFECT_ON_FLOATS, json).map_err(by_name)?;
        options.only(&Self::float_names().collect::<Vec<_>>(), "on samples that are floats")?;
        Ok(options)
    }

    /// Names of the options that were given, in order of declaration.
    #[must_use]
    pub fn given(&self) -> Vec<&'static str> {
        // What is not given is not written.
        let written = serde_json::to_value(self).unwrap_or_default();
        Self::names().iter().copied().filter(|name| written.get(name).is_some()).collect()
    }

    /// Refuses given options that are not among `used`; `context` follows "has no effect" in the message.
    ///
    /// # Errors
    /// [`OptionsError::NoEffect`], for the first of them.
    pub fn only(&self, used: &[&str], context: &'static str) -> Result<(), OptionsError> {
        match self.given().into_iter().find(|name| !used.contains(name)) {
            Some(name) => Err(OptionsError::NoEffect { name, context, remedy: "omit it" }),
            None => Ok(()),
        }
    }

    /// Settings of a denoiser.
    ///
    /// # Errors
    /// If an option is out of its range, has no effect, or excludes another.
    pub fn settings(&self) -> Result<Settings, OptionsError> {
        within("mix", self.mix.unwrap_or(1.0), 0.0..=1.0).map_err(by_option)?;
        if let Some(Method::Published) = self.method {
            return self.published();
        }
        let mut settings = match self.quality {
            Some(Quality::Fast) => Settings::fast(),
            Some(Quality::Normal) | None => Settings::normal(),
        };
        let Settings { model, em, gain, .. } = &mut settings;
        em.iterations = self.em_iterations;
        set(&mut model.alpha_noise, self.alpha_noise);
        model.alpha_speech = self.alpha_speech;
        if let Some(rank) = self.noise_rank {
            model.noise = NoiseModel::FixedSpectra { rank };
        }
        match (self.strength, self.floor_db) {
            (Some(_), Some(_)) => {
                return Err(OptionsError::Conflict { name: "floor_db", other: "strength" });
            }
            (Some(strength), None) => *gain = gain.clone().with_strength(strength),
            (None, Some(floor)) => (gain.floor_db, gain.band_floors) = (floor, false),
            (None, None) => {}
        }
        set(&mut gain.dereverb, self.dereverb);
        gain.spare = self.purpose == Some(Purpose::Transcription);
        gain.speech_presence = !self.no_neural;
        settings.sampling = self.sampling(settings.sampling)?;
        set(&mut settings.seed, self.seed);
        settings.validate().map_err(by_option)?;
        Ok(settings)
    }

    /// Settings of a live denoiser, which uses fewer options.
    ///
    /// # Errors
    /// As [`settings`](Self::settings), and for an option that is not among [`LIVE`](Self::LIVE).
    pub fn live_settings(&self) -> Result<Settings, OptionsError> {
        self.only(Self::LIVE, "on a live denoiser")?;
        self.settings()
    }

    /// Settings of the published method.
    fn published(&self) -> Result<Settings, OptionsError> {
        if let Some(name) = self.given().into_iter().find(|name| !WITH_METHOD.contains(name)) {
            return Err(OptionsError::Conflict { name, other: "method" });
        }
        let mut settings = Settings::published();
        set(&mut settings.seed, self.seed);
        Ok(settings)
    }

    /// Settings of a session; it returns no residual, standard deviation of the gain, levels or speech track.
    #[must_use]
    pub fn session(&self) -> SessionSettings {
        let Self { declip, no_dither, .. } = *self;
        let mut settings = SessionSettings { declip, dither: !no_dither, ..SessionSettings::default() };
        set(&mut settings.mix, self.mix.or(self.purpose.map(Purpose::mix)));
        set(&mut settings.channels, self.channels);
        settings
    }

    /// Settings of the sampling, from those of the quality.
    fn sampling(
        &self,
        of_quality: Option<SamplingSettings>,
    ) -> Result<Option<SamplingSettings>, OptionsError> {
        const NEED_SWEEPS: [&str; 6] =
            ["sampler", "burn_in", "step_size", "minibatch", "positivity", "impulses"];
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
            return match self.given().into_iter().find(|name| NEED_SWEEPS.contains(name)) {
                Some(name) => Err(OptionsError::NoEffect {
                    name,
                    context: "without Gibbs sweeps",
                    remedy: "set `iterations` above 0",
                }),
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
