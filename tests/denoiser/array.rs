//! Several microphones in the whole chain: `ChannelMode::Array`.

use super::shared::{demo, denoiser, voice};
use alphamf::denoiser::{ChannelMode, GainSettings, MicrophoneFault, SessionSettings, Strength};
use alphamf::random::SeedTree;
use alphamf::{DenoiseError, Denoiser, Options, Settings};
use alphamf_eval::metrics;
use rand::RngExt;
use std::ops::ControlFlow;
use std::sync::LazyLock;

static DENOISER: LazyLock<Denoiser> = LazyLock::new(|| denoiser(Settings::fast()));

const RATE: u32 = 16_000;

/// The sum of the samples, delayed by `direct` samples, and an echo of amplitude 0.4, delayed by `echo` samples.
fn delayed(samples: &[f32], direct: usize, echo: usize) -> Vec<f32> {
    let at = |n: usize, delay: usize| n.checked_sub(delay).map_or(0.0, |n| samples[n]);
    (0..samples.len()).map(|n| at(n, direct) + 0.4 * at(n, echo)).collect()
}

/// The demo in a simple room, repeated once: the voice and the noisy recording, in four channels each.
fn room() -> (Vec<Vec<f32>>, Vec<Vec<f32>>) {
    let (clean, noisy) = (voice(), demo("demo-noisy.wav").into_channels().swap_remove(0));
    let noise: Vec<f32> = noisy.iter().zip(&clean).map(|(noisy, clean)| 2.0 * (noisy - clean)).collect();
    let twice = |samples: Vec<f32>| [&samples[..], &samples].concat();
    let voice: Vec<Vec<f32>> = (0..4).map(|i| twice(delayed(&clean, 2 + i, 90 + 7 * i))).collect();
    let noise = (0..4).map(|i| twice(delayed(&noise, 12 - 3 * i, 150 + 11 * i)));
    let sum = |(noise, voice): (Vec<f32>, &Vec<f32>)| noise.iter().zip(voice).map(|(n, v)| n + v).collect();
    let recording = noise.zip(&voice).map(sum).collect();
    (voice, recording)
}

/// Denoises in pushes of `size` samples.
fn denoise(recording: &[Vec<f32>], channels: ChannelMode, size: usize) -> Vec<Vec<f32>> {
    let settings = SessionSettings { channels, ..SessionSettings::default() };
    let mut session = DENOISER.session(RATE, recording.len(), settings).unwrap();
    let mut denoised = vec![Vec::new(); recording.len()];
    let mut append = |speech: Vec<Vec<f32>>| {
        denoised.iter_mut().zip(speech).for_each(|(whole, samples)| whole.extend(samples));
    };
    for start in (0..recording[0].len()).step_by(size) {
        let end = (start + size).min(recording[0].len());
        let block: Vec<&[f32]> = recording.iter().map(|channel| &channel[start..end]).collect();
        append(session.push(&block).unwrap().speech);
    }
    append(session.finish().unwrap().speech);
    denoised
}

#[test]
fn directions_help_in_every_channel() {
    let (voice, recording) = room();
    let [shared, array] =
        [ChannelMode::Shared, ChannelMode::Array].map(|mode| denoise(&recording, mode, 1 << 30));
    for (channel, voice) in voice.iter().enumerate() {
        let [noisy, shared, array] =
            [&recording, &shared, &array].map(|channels| metrics::si_sdr(voice, &channels[channel]).unwrap());
        assert!(array > shared + 3.0, "{channel}: {noisy} dB noisy, {shared} dB shared, {array} dB array");
    }
}

#[test]
fn the_samples_depend_neither_on_pushes_nor_on_threads() {
    let (_, recording) = room();
    let whole = denoise(&recording, ChannelMode::Array, 1 << 30);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let parts = one.install(|| denoise(&recording, ChannelMode::Array, 7_001));
    assert!(whole == parts);
    assert_eq!(whole[0].len(), recording[0].len());
}

#[test]
fn silent_microphones_stay_silent() {
    let (voice, mut recording) = room();
    recording[2].fill(0.0);
    let array = denoise(&recording, ChannelMode::Array, 1 << 30);
    assert!(array[2].iter().all(|y| y.abs() < 1e-4));
    let score = |channels: &[Vec<f32>]| metrics::si_sdr(&voice[0], &channels[0]).unwrap();
    let shared = denoise(&recording, ChannelMode::Shared, 1 << 30);
    assert!(score(&array) > score(&shared) + 2.0, "{} {}", score(&array), score(&shared));
    let settings = SessionSettings { channels: ChannelMode::Array, ..SessionSettings::default() };
    let mut session = DENOISER.session(RATE, 4, settings).unwrap();
    let block: Vec<&[f32]> = recording.iter().map(|channel| &channel[..16_000]).collect();
    session.push(&block).unwrap();
    assert_eq!(session.statistics().microphone_faults, [MicrophoneFault::Silent { channel: 3 }]);
}

#[test]
fn a_microphone_that_dies_is_silent_and_the_others_do_without_it() {
    let (voice, mut recording) = room();
    let end = recording[0].len();
    // Longer than a block, as the estimates of a block use all its samples.
    recording.iter_mut().for_each(|channel| channel.extend_from_within(..));
    let dies = end + RATE as usize / 3;
    recording[2][dies..].fill(0.0);
    let array = denoise(&recording, ChannelMode::Array, 1 << 30);
    let after = dies + RATE as usize / 2;
    assert!(array[2][after..].iter().all(|y| *y == 0.0));
    recording.remove(2);
    let others = denoise(&recording, ChannelMode::Array, 1 << 30);
    let score =
        |channel: &[f32]| metrics::si_sdr(&voice[0][after - end..], &channel[after..2 * end]).unwrap();
    let (with, without) = (score(&array[0]), score(&others[0]));
    assert!(with > without - 0.3, "{with} dB, without the microphone from the start {without} dB");
}

/// Only the other channel modes pass blocks with little noise unchanged.
#[test]
fn for_transcription_an_array_is_mixed_and_no_more() {
    let (_, recording) = room();
    let denoise = |options: &str| {
        let options: Options = serde_json::from_str(options).unwrap();
        let denoiser = denoiser(options.settings().unwrap());
        let settings = SessionSettings { channels: ChannelMode::Array, ..options.session() };
        let mut session = denoiser.session(RATE, 2, settings).unwrap();
        let block: Vec<&[f32]> = recording[..2].iter().map(Vec::as_slice).collect();
        let mut speech = session.push(&block).unwrap().speech;
        let rest = session.finish().unwrap().speech;
        speech.iter_mut().zip(rest).for_each(|(whole, samples)| whole.extend(samples));
        speech
    };
    let transcription = denoise(r#"{"quality": "fast", "purpose": "transcription"}"#);
    assert!(transcription == denoise(r#"{"quality": "fast", "mix": 0.8}"#));
}

/// Denoises in one push, with the settings `gain`.
fn denoise_by(gain: GainSettings, recording: &[Vec<f32>], channels: ChannelMode) -> Vec<Vec<f32>> {
    let settings = Settings { gain, ..Settings::fast() };
    let denoiser = denoiser(settings);
    let mut session =
        denoiser.session(RATE, recording.len(), SessionSettings { channels, ..Default::default() }).unwrap();
    let block: Vec<&[f32]> = recording.iter().map(Vec::as_slice).collect();
    let mut speech = session.push(&block).unwrap().speech;
    let rest = session.finish().unwrap().speech;
    speech.iter_mut().zip(rest).for_each(|(whole, samples)| whole.extend(samples));
    speech
}

/// The level of `one` relative to `other`, dB.
fn level_db(one: &[f32], other: &[f32]) -> f64 {
    let power = |samples: &[f32]| samples.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
    10.0 * (power(one) / power(other)).log10()
}

/// The limit holds for all filters of the chain together.
#[test]
fn no_more_noise_is_removed_than_the_strength_allows() {
    let (voice, mut recording) = room();
    // Noise alone for two seconds.
    let lead = 2 * RATE as usize;
    for (channel, voice) in recording.iter_mut().zip(&voice) {
        let noise: Vec<f32> = channel.iter().zip(voice).map(|(x, v)| x - v).take(lead).collect();
        channel.splice(0..0, noise);
    }
    let gain =
        |strength| GainSettings { small_network: true, ..GainSettings::default().with_strength(strength) };
    let light = GainSettings { floor_db: -6.0, ..gain(Strength::Gentle) };
    for (gain, most) in [(light, 6.0), (gain(Strength::Gentle), 12.0)] {
        let array = denoise_by(gain, &recording, ChannelMode::Array);
        for (before, after) in recording.iter().zip(&array) {
            let removed = -level_db(&after[8_000..lead - 8_000], &before[8_000..lead - 8_000]);
            assert!(removed < most + 0.3 && removed > 0.8 * most, "{removed} dB of {most}");
        }
    }
}

/// Only one of the two passes of an array suppresses late reverberation.
#[test]
fn late_reverberation_is_suppressed_once() {
    let clean = voice();
    let recording: Vec<Vec<f32>> = (0..2)
        .map(|channel| {
            // A room with an RT60 of 0.6 s.
            let mut random = SeedTree::new(channel).rng(0);
            let mut tail: Vec<f32> = (0..RATE / 2)
                .map(|n| 0.05 * random.random_range(-1.0..1.0_f32) * (-6.9 * n as f32 / 9_600.0).exp())
                .collect();
            tail[0] = 1.0;
            let echoes = |n: usize| tail.iter().take(n + 1).enumerate().map(|(k, a)| a * clean[n - k]).sum();
            (0..clean.len()).map(echoes).collect()
        })
        .collect();
    let lowered = |channels| {
        let [without, with] = [0.0, 0.5].map(|dereverb| {
            let gain = GainSettings { dereverb, ..Settings::fast().gain };
            denoise_by(gain, &recording, channels).swap_remove(0)
        });
        // Frames 20 to 40 dB below the loudest, where the voice has ended.
        let frames = || without.chunks_exact(800).zip(with.chunks_exact(800));
        let loudest = frames().map(|(frame, _)| level_db(frame, &[1.0])).fold(f64::MIN, f64::max);
        let soft = |frame: &[f32]| (-40.0..-20.0).contains(&(level_db(frame, &[1.0]) - loudest));
        let (before, after): (Vec<_>, Vec<_>) = frames().filter(|(frame, _)| soft(frame)).unzip();
        level_db(&before.concat(), &after.concat())
    };
    let [shared, array] = [ChannelMode::Shared, ChannelMode::Array].map(lowered);
    assert!(shared > 1.0 && array < 1.4 * shared, "{array} dB of an array, {shared} dB shared");
}

/// The SNR of speech segments refers to the noise after the filters of the array, not to that of one microphone.
#[test]
fn records_are_those_of_the_second_pass() {
    let (_, recording) = room();
    let record = |channels| {
        let settings = SessionSettings {
            channels,
            speech_track: true,
            levels: true,
            gain_std: true,
            ..Default::default()
        };
        let mut session = DENOISER.session(RATE, 4, settings).unwrap();
        let block: Vec<&[f32]> = recording.iter().map(Vec::as_slice).collect();
        session.push(&block).unwrap();
        session.finish().unwrap();
        let cells = session.take_levels()[0].cells.len();
        let track = session.take_speech_track().swap_remove(0);
        let snr_db = track.segments.iter().map(|segment| segment.snr_db).fold(f64::INFINITY, f64::min);
        (snr_db, cells, track.probability.len())
    };
    let [shared, array] = [ChannelMode::Shared, ChannelMode::Array].map(record);
    assert_eq!((shared.1, shared.2), (array.1, array.2));
    assert!(array.0 > shared.0 + 3.0, "{array:?} {shared:?}");
}

#[test]
fn one_microphone_is_no_array() {
    for found in [1, 17] {
        let settings = SessionSettings { channels: ChannelMode::Array, ..SessionSettings::default() };
        let error = DENOISER.session(RATE, found, settings).err().unwrap();
        assert!(matches!(error, DenoiseError::ArrayChannels { found: of } if of == found), "{error}");
    }
}

#[test]
fn samples_are_held_back_no_longer_than_said_and_progress_rises() {
    let (_, recording) = room();
    let rate = 8_000; // takes half the time of 16 kHz
    let settings = SessionSettings { channels: ChannelMode::Array, ..SessionSettings::default() };
    let mut session = DENOISER.session(rate, 2, settings).unwrap();
    let (mut given, mut taken, mut reached) = (0, 0, 0.0);
    let mut rises = true;
    while given < 90 * rate as usize {
        let block: Vec<&[f32]> = recording[..2].iter().map(|channel| &channel[..rate as usize]).collect();
        given += block[0].len();
        let mut progress = |seconds: f64| {
            rises &= seconds >= reached;
            reached = seconds;
            ControlFlow::Continue(())
        };
        taken += session.push_with_progress(&block, &mut progress).unwrap().speech[0].len();
        assert!(given - taken <= session.latency(), "{} samples after {given}", given - taken);
    }
    assert!(taken > 0 && rises && reached < 90.0, "{taken} samples, {reached} s");
    taken += session.finish().unwrap().speech[0].len();
    assert_eq!(taken, given);
}

#[test]
fn the_loudest_samples_are_no_error() {
    let (_, recording) = room();
    for level in [1e-30, 1e15, 1e36] {
        let loud: Vec<Vec<f32>> =
            recording[..2].iter().map(|channel| channel.iter().map(|x| x * level).collect()).collect();
        let array = denoise(&loud, ChannelMode::Array, 1 << 30);
        assert!(array.iter().flatten().all(|y| y.is_finite()), "{level}");
    }
}
