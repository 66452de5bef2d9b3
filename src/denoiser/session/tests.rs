//! Sessions: mix, residual, channel modes, statistics and dither.

use super::*;
use crate::denoiser::{EmSettings, GainSettings, Settings};
use crate::learning::{Corpus, TrainingSettings};
use crate::model::Dictionary;
use crate::signal::Signal;
use rand::RngExt;
use std::ops::ControlFlow;

fn denoiser() -> Denoiser {
    denoiser_with(GainSettings::default())
}

fn denoiser_with(gain: GainSettings) -> Denoiser {
    let em = EmSettings { iterations: Some(2), ..EmSettings::default() };
    Denoiser::new(Dictionary::built_in().unwrap(), Settings { gain, em, ..Settings::fast() }).unwrap()
}

fn recording() -> [Vec<f32>; 2] {
    let mut stream = SeedTree::new(1).rng(0);
    [0.2, 0.02].map(|level| (0..20_000).map(|_| level * stream.random_range(-1.0..1.0_f32)).collect())
}

/// The whole output of a session, in pushes of `size`.
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

/// The output and statistics of a session of one channel.
fn whole(
    denoiser: &Denoiser,
    declip: bool,
    noise: Option<&[f32]>,
    samples: &[f32],
) -> (SessionOutput, Statistics) {
    let settings = SessionSettings { declip, residual: true, ..SessionSettings::default() };
    let mut session = denoiser.session(8_000, 1, settings).unwrap();
    if let Some(noise) = noise {
        let mut profile = denoiser.noise_profile(8_000, 1).unwrap();
        profile.push(&[noise]).unwrap();
        session.set_noise_profile(&profile).unwrap();
    }
    let mut whole = session.push(&[samples]).unwrap();
    let rest = session.finish().unwrap();
    whole.speech[0].extend(&rest.speech[0]);
    whole.residual[0].extend(&rest.residual[0]);
    (whole, session.statistics())
}

#[test]
fn clipped_samples_are_restored_at_half_the_level() {
    // With a minimum gain of 0 dB the output is the repaired input; tones that glide are no hum.
    let gain = GainSettings { floor_db: 0.0, band_floors: false, ..GainSettings::default() };
    let denoiser = denoiser_with(gain);
    let loud: Vec<f32> = (0..20_000)
        .map(f64::from)
        .map(|n| (0.6 * (0.1 * n + 60.0 * (0.0005 * n).sin()).sin() + 0.3 * (0.23 * n).sin()) as f32)
        .collect();
    let clipped: Vec<f32> = loud.iter().map(|x| x.clamp(-0.6, 0.7)).collect();
    let error = |found: &[f32]| -> f32 {
        found.iter().zip(&loud).map(|(found, truth)| (2.0 * found - truth).powi(2)).sum()
    };
    let (restored, statistics) = whole(&denoiser, true, None, &clipped);
    let (before, after) =
        (error(&clipped.iter().map(|x| 0.5 * x).collect::<Vec<_>>()), error(&restored.speech[0]));
    assert!(after < 0.1 * before, "{after} of {before}");
    assert!(statistics.restored_samples as u64 >= statistics.clipped_input_samples);
    assert!(statistics.clipped_input_samples > 100, "{statistics:?}");
    let sums = restored.speech[0].iter().zip(&restored.residual[0]).map(|(voice, residual)| voice + residual);
    assert!(sums.zip(&clipped).all(|(sum, x)| (sum - 0.5 * x).abs() < 1e-6));
    let (kept, statistics) = whole(&denoiser, false, None, &clipped);
    assert!(statistics.restored_samples == 0 && kept.speech[0].iter().all(|x| x.abs() < 0.75));
}

#[test]
fn without_clipped_samples_declip_halves_the_output() {
    let denoiser = denoiser();
    let [noisy, _] = recording();
    let noise: Vec<f32> = noisy[..8_000].iter().map(|x| 0.3 * x).collect();
    for noise in [None, Some(&noise[..])] {
        let (plain, _) = whole(&denoiser, false, noise, &noisy);
        let (softer, statistics) = whole(&denoiser, true, noise, &noisy);
        assert_eq!(statistics.restored_samples, 0);
        let levels = plain.speech[0].iter().map(|x| x.abs()).fold(0.0, f32::max);
        let mut pairs = plain.speech[0].iter().zip(&softer.speech[0]);
        assert!(pairs.all(|(a, b)| (0.5 * a - b).abs() < 1e-3 * levels), "{levels}");
    }
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
    // At least a quarter of the amplitude is kept: -12.04 dB.
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
    // The network removes all white noise in either case, so the model alone is used.
    let model = |channels| {
        let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
        let settings = SessionSettings { channels, ..SessionSettings::default() };
        let mut session = denoiser_with(gain).session(8_000, 2, settings).unwrap();
        let [left, right] = recording();
        session.push(&[&left, &right]).unwrap();
        session.finish().unwrap().speech
    };
    assert!(model(ChannelMode::Shared) != model(ChannelMode::Separate));
}

/// Divided channels have one gain and one noise profile each.
#[test]
fn a_noise_profile_is_that_of_each_channel_once_they_are_divided() {
    // The sounds take turns, with noise of different levels.
    let [mut left, mut right] = recording();
    for n in 0..left.len() {
        let quiet = if n / 4_000 % 2 == 0 { &mut right } else { &mut left };
        quiet[n] *= 0.01;
    }
    let noise = [[0.05, 0.0005], [0.0005, 0.0005]]
        .map(|levels| [0, 1].map(|k| recording()[k].iter().map(|x| levels[k] * x).collect::<Vec<f32>>()));
    let denoised = |channels, noise: &[Vec<f32>; 2]| {
        let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
        let denoiser = denoiser_with(gain);
        let mut profile = denoiser.noise_profile(8_000, 2).unwrap();
        profile.push(&[&noise[0], &noise[1]]).unwrap();
        let settings = SessionSettings { channels, ..SessionSettings::default() };
        let mut session = denoiser.session(8_000, 2, settings).unwrap();
        session.set_noise_profile(&profile).unwrap();
        session.push(&[&left, &right]).unwrap();
        session.finish().unwrap().speech
    };
    let outputs = noise.each_ref().map(|noise| {
        let auto = denoised(ChannelMode::Auto, noise);
        assert!(auto == denoised(ChannelMode::Separate, noise));
        assert!(auto != denoised(ChannelMode::Shared, noise));
        auto
    });
    assert!(outputs[0][0] != outputs[1][0] && outputs[0][1] == outputs[1][1]);
}

/// Reports of divided channels cover all channels together.
#[test]
fn channels_that_are_divided_have_one_report() {
    let [mut left, mut right] = recording();
    for n in 0..left.len() {
        let quiet = if n / 4_000 % 2 == 0 { &mut right } else { &mut left };
        quiet[n] *= 0.001;
    }
    let mut session = denoiser()
        .session(8_000, 2, SessionSettings { levels: true, speech_track: true, ..SessionSettings::default() })
        .unwrap();
    session.push(&[&left, &right]).unwrap();
    session.finish().unwrap();
    let (levels, tracks) = (session.take_levels(), session.take_speech_track());
    assert_eq!((levels.len(), tracks.len()), (1, 1));
    assert_eq!(
        (levels[0].cells.len() / (levels[0].edges_hertz.len() - 1), tracks[0].probability.len()),
        (25, 250)
    );
}

#[test]
fn a_channel_of_a_constant_does_not_count_in_the_ratio_of_all() {
    let [voice, _] = recording();
    let settings = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
    let snr_db = |other: &[&[f32]]| {
        let channels = [&[&voice[..]], other].concat();
        let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
        let mut session = denoiser_with(gain).session(8_000, channels.len(), settings.clone()).unwrap();
        session.push(&channels).unwrap();
        session.finish().unwrap();
        session.statistics().snr_before_db
    };
    let alone = snr_db(&[]);
    assert!(alone.is_some());
    assert_eq!(snr_db(&[&vec![0.1; voice.len()]]), alone);
}

/// The ratios of several streams are weighted by the energies of their inputs, without offset and outliers.
#[test]
fn an_offset_or_an_outlier_in_one_channel_leaves_the_ratios_of_all() {
    let settings = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
    let snr_db = |change: fn(&mut [f32])| {
        let [left, mut right] = recording();
        change(&mut right);
        let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
        let mut session = denoiser_with(gain).session(8_000, 2, settings.clone()).unwrap();
        session.push(&[&left, &right]).unwrap();
        session.finish().unwrap();
        session.statistics().snr_before_db.unwrap()
    };
    let expected = snr_db(|_| {});
    let raised = snr_db(|samples| samples.iter_mut().for_each(|x| *x += 0.5));
    assert!((raised - expected).abs() < 0.1, "{raised} dB, {expected} dB without an offset");
    let broken = snr_db(|samples| samples[9_000] = 1e9);
    assert!((broken - expected).abs() < 0.1, "{broken} dB, {expected} dB without an outlier");
}

#[test]
fn a_noise_profile_comes_before_the_first_samples() {
    let denoiser = denoiser();
    let [left, _] = recording();
    let mut noise = denoiser.noise_profile(8_000, 1).unwrap();
    noise.push(&[&left]).unwrap();
    let mut session = denoiser.session(8_000, 1, SessionSettings::default()).unwrap();
    session.push(&[&[]]).unwrap();
    session.set_noise_profile(&noise).unwrap();
    session.push(&[&left]).unwrap();
    assert!(matches!(session.set_noise_profile(&noise), Err(DenoiseError::Started)));
    let mut ended = denoiser.session(8_000, 1, SessionSettings::default()).unwrap();
    ended.finish().unwrap();
    assert!(matches!(ended.set_noise_profile(&noise), Err(DenoiseError::Started)));
}

/// A profile of another window has other frequencies, and more or fewer bins.
#[test]
fn a_noise_profile_of_another_window_is_refused() {
    let [samples, _] = recording();
    let wide = denoiser();
    let training =
        TrainingSettings { rank: 2, iterations: 1, window_seconds: 0.032, ..TrainingSettings::default() };
    let mut corpus = Corpus::new(8_000, training).unwrap();
    corpus.add(&Signal::new(8_000, SampleFormat::Float32, vec![samples.clone()]).unwrap()).unwrap();
    let narrow = Denoiser::new(corpus.train().unwrap(), Settings::fast()).unwrap();
    for (of, to, found, expected) in [(&wide, &narrow, 512, 256), (&narrow, &wide, 256, 512)] {
        let mut noise = of.noise_profile(8_000, 1).unwrap();
        noise.push(&[&samples]).unwrap();
        let mut session = to.session(8_000, 1, SessionSettings::default()).unwrap();
        let error = session.set_noise_profile(&noise).unwrap_err();
        assert!(
            matches!(error, DenoiseError::NoiseWindow { found: f, expected: e } if (f, e) == (found, expected)),
            "{error}"
        );
    }
}

#[test]
fn a_cancelled_session_has_ended() {
    for channels in [ChannelMode::Auto, ChannelMode::Shared, ChannelMode::Separate] {
        let settings = SessionSettings { channels, ..SessionSettings::default() };
        let mut session = denoiser().session(8_000, 2, settings).unwrap();
        let [left, right] = recording().map(|samples| samples.repeat(5));
        // In the second of two separate channels.
        let mut calls = 0;
        let cancelled = session.push_with_progress(&[&left, &right], &mut |seconds: f64| {
            calls += 1;
            if seconds > 4.5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert!(matches!(cancelled, Err(DenoiseError::Cancelled(_))) && calls > 0, "{channels:?}");
        let before = session.statistics();
        assert!(matches!(session.push(&[&left, &right]), Err(DenoiseError::Finished)));
        assert!(matches!(session.finish(), Err(DenoiseError::Finished)));
        assert_eq!(session.statistics(), before);
    }
}

#[test]
fn a_session_refuses_invalid_input_and_dithers_integers() {
    let denoiser = denoiser();
    let settings = SessionSettings { mix: 1.5, ..SessionSettings::default() };
    let error = denoiser.session(8_000, 1, settings).err().unwrap();
    assert_eq!(error.to_string(), "mix is 1.5; expected 0 to 1");
    let separate = SessionSettings { channels: ChannelMode::Separate, ..SessionSettings::default() };
    assert!(matches!(denoiser.session(8_000, 0, separate.clone()), Err(DenoiseError::Signal(_))));
    let mut session = denoiser.session(8_000, 2, separate).unwrap();
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
