use super::*;
use crate::denoiser::GainSettings;

fn read(text: &str) -> Options {
    serde_json::from_str(text).unwrap()
}

#[test]
fn options_that_are_not_given_leave_the_defaults() {
    assert_eq!(Options::default().settings().unwrap(), Settings::default());
    assert_eq!(Options::default().session(), SessionSettings::default());
    assert_eq!(read(r#"{"quality": "fast"}"#).settings().unwrap(), Settings::fast());
    let alone = read(r#"{"quality": "fast", "no_neural": true}"#);
    let gain = GainSettings { speech_presence: false, ..Settings::fast().gain };
    assert_eq!(alone.settings().unwrap(), Settings { gain, ..Settings::fast() });
    let published = read(r#"{"method": "published", "seed": 3, "mix": 0.5}"#);
    assert_eq!(published.settings().unwrap(), Settings { seed: 3, ..Settings::published() });
    assert_eq!(published.session().mix, 0.5);
}

#[test]
fn the_documented_numbers_of_sweeps_are_those_in_use() {
    let em = |options: &str| read(options).settings().unwrap().em;
    let (normal, fast) = (em("{}"), em(r#"{"quality": "fast"}"#));
    let [with, without] = [true, false].map(|has_net| [&normal, &fast].map(|em| em.sweeps(has_net, false)));
    let least = fast.sweeps(true, true);
    let documented = format!(
        "Default: {} (fast: {}); without the speech-presence network {} (fast: {}). Above 16 kHz at least {least}.",
        with[0], with[1], without[0], without[1],
    );
    let documentation = include_str!("../options.rs").replace("\n    /// ", " ");
    assert!(documentation.contains(&documented), "{documented}");
    // Sampling has no influence: `normal` without draws has the sweeps of `normal`, `fast` with draws those of `fast`.
    assert_eq!(em(r#"{"iterations": 0}"#), normal);
    assert_eq!(em(r#"{"quality": "fast", "iterations": 4}"#), fast);
    for quality in ["normal", "fast"] {
        let given = em(&format!(r#"{{"quality": "{quality}", "em_iterations": 5}}"#));
        let sweeps = [true, false].map(|has_net| [false, true].map(|high| given.sweeps(has_net, high)));
        assert_eq!(sweeps, [[5, least]; 2], "{quality}");
    }
}

#[test]
fn options_are_read_and_written_by_their_names() {
    let all = r#"{
        "strength": "gentle", "sampler": "mh-bfgs", "iterations": 8, "em_iterations": 3, "step_size": 0.5,
        "positivity": "mirrored", "impulses": "sampled", "alpha_speech": 1.5, "alpha_noise": 1.8, "noise_rank": 2,
        "no_neural": true, "dereverb": 0.5, "seed": 9, "channels": "separate", "no_dither": true,
        "declip": true
    }"#;
    let options = read(all);
    let settings = options.settings().unwrap();
    let sampling = settings.sampling.unwrap();
    assert_eq!((sampling.iterations, sampling.burn_in, sampling.sampler), (8, 4, SamplerKind::MhBfgs));
    assert_eq!((settings.gain.floor_db, settings.gain.speech_presence), (-12.0, false));
    assert_eq!(settings.gain.dereverb, 0.5);
    assert_eq!(settings.model.noise, NoiseModel::FixedSpectra { rank: 2 });
    let session = options.session();
    assert_eq!((session.channels, session.dither, session.declip), (ChannelMode::Separate, false, true));
    let written: serde_json::Value = serde_json::from_str(all).unwrap();
    assert_eq!(serde_json::to_value(&options).unwrap(), written);
    assert_eq!(options.given().len(), written.as_object().unwrap().len());
    assert!(Options::default().given().is_empty());
    assert_eq!(Options::names().first(), Some(&"quality"));
    for text in [r#"{"colour": 1}"#, r#"{"quality": "best"}"#] {
        assert!(serde_json::from_str::<Options>(text).is_err(), "{text}");
    }
}

#[test]
fn the_purpose_sets_the_mix_unless_that_is_given() {
    let mix = |text: &str| read(text).session().mix;
    assert_eq!(mix(r#"{"purpose": "transcription"}"#), 0.8);
    assert_eq!(mix(r#"{"purpose": "listening"}"#), 1.0);
    assert_eq!(mix(r#"{"purpose": "transcription", "mix": 0.5}"#), 0.5);
    for (purpose, spare) in [("transcription", true), ("listening", false)] {
        let settings = read(&format!(r#"{{"purpose": "{purpose}"}}"#)).live_settings().unwrap();
        let gain = GainSettings { spare, ..GainSettings::default() };
        assert_eq!(settings, Settings { gain, ..Settings::default() });
    }
    let refused = read(r#"{"purpose": "transcription", "method": "published"}"#).settings();
    assert_eq!(refused.unwrap_err().to_string(), "`purpose` cannot be used with `method`: omit one of them");
}

#[test]
fn options_without_effect_are_refused_by_name() {
    for (text, message) in [
        (
            r#"{"quality": "fast", "sampler": "hmc"}"#,
            "`sampler` has no effect without Gibbs sweeps: set `iterations` above 0",
        ),
        (
            r#"{"iterations": 0, "burn_in": 1}"#,
            "`burn_in` has no effect without Gibbs sweeps: set `iterations` above 0",
        ),
        (
            r#"{"strength": "gentle", "floor_db": -3}"#,
            "`floor_db` cannot be used with `strength`: omit one of them",
        ),
        (
            r#"{"method": "published", "quality": "normal"}"#,
            "`quality` cannot be used with `method`: omit one of them",
        ),
        (r#"{"floor_db": 3}"#, "`floor_db` is 3: expected -100 to 0"),
        (r#"{"mix": 1.5}"#, "`mix` is 1.5: expected 0 to 1"),
    ] {
        assert_eq!(read(text).settings().unwrap_err().to_string(), message, "{text}");
    }
}

/// What a live denoiser does not use, and what it does: every option is one or the other.
#[test]
fn options_without_effect_live_are_refused() {
    let values = [
        r#"{"quality": "normal"}"#,
        r#"{"purpose": "transcription"}"#,
        r#"{"method": "published"}"#,
        r#"{"strength": "gentle"}"#,
        r#"{"floor_db": -20}"#,
        r#"{"dereverb": 0.5}"#,
        r#"{"declip": true}"#,
        r#"{"sampler": "sgld"}"#,
        r#"{"iterations": 10}"#,
        r#"{"burn_in": 1}"#,
        r#"{"em_iterations": 5}"#,
        r#"{"step_size": 0.1}"#,
        r#"{"minibatch": 0.5}"#,
        r#"{"positivity": "mirrored"}"#,
        r#"{"impulses": "sampled"}"#,
        r#"{"alpha_speech": 1.2}"#,
        r#"{"alpha_noise": 1.5}"#,
        r#"{"noise_rank": 2}"#,
        r#"{"no_neural": true}"#,
        r#"{"seed": 1}"#,
        r#"{"mix": 0.5}"#,
        r#"{"channels": "separate"}"#,
        r#"{"no_dither": true}"#,
    ];
    assert_eq!(values.len(), Options::names().len());
    for text in values {
        let options = read(text);
        let name = options.given()[0];
        let message = options.live_settings().err().map(|error| error.to_string());
        let refused = format!("`{name}` has no effect on a live denoiser: omit it");
        assert_eq!(message, (!Options::LIVE.contains(&name)).then_some(refused), "{text}");
    }
}

/// The list of names, as C and npm take them.
#[test]
fn dither_is_no_option_where_samples_stay_floats() {
    let read = |json: &str| Options::default().with_json_for_floats(json).map_err(|error| error.to_string());
    assert_eq!(read(r#"{"mix": 0.5}"#), Ok(Options { mix: Some(0.5), ..Options::default() }));
    let refused = "`no_dither` has no effect on samples that are floats: omit it";
    assert_eq!(read(r#"{"no_dither": true}"#), Err(refused.to_owned()));
    let unknown = read(r#"{"no_dither,": true}"#).unwrap_err();
    assert!(unknown.starts_with("option is no_dither,; expected quality, "), "{unknown}");
    assert!(unknown.contains(", seed, no_neural, ") && unknown.ends_with(", impulses"), "{unknown}");
    assert_eq!(Options::float_names().count() + 1, Options::names().len());
}
