//! `ChannelMode::Auto`: channels share one gain until they hold different sounds.

use super::live::noise;
use super::shared::{denoiser, voice};
use alphamf::Settings;
use alphamf::denoiser::{ChannelMode, SessionSettings};

const RATE: u32 = 16_000;
/// Crosstalk between the microphones of two speakers: -15 dB.
const CROSSTALK: f32 = 0.18;

/// The clean demo, and another voice: the demo from its middle on, played faster by a quarter.
fn voices() -> [Vec<f32>; 2] {
    let one = voice();
    let other = (0..one.len()).map(|n| one[(one.len() / 2 + n * 5 / 4) % one.len()]).collect();
    [one, other]
}

fn sum(parts: &[(f32, &[f32])]) -> Vec<f32> {
    (0..parts[0].1.len()).map(|n| parts.iter().map(|(factor, samples)| factor * samples[n]).sum()).collect()
}

/// Denoises with fast settings, in pushes of `size` samples.
fn denoise(recording: &[Vec<f32>], channels: ChannelMode, size: usize) -> Vec<Vec<f32>> {
    let denoiser = denoiser(Settings::fast());
    let settings = SessionSettings { channels, ..SessionSettings::default() };
    let mut session = denoiser.session(RATE, recording.len(), settings).unwrap();
    let mut output = vec![Vec::new(); recording.len()];
    let mut add = |speech: Vec<Vec<f32>>| {
        output.iter_mut().zip(speech).for_each(|(all, new)| all.extend(new));
    };
    for start in (0..recording[0].len()).step_by(size) {
        let part: Vec<&[f32]> =
            recording.iter().map(|samples| &samples[start..samples.len().min(start + size)]).collect();
        add(session.push(&part).unwrap().speech);
    }
    add(session.finish().unwrap().speech);
    output
}

/// Ratio of the voice to the output's difference from it, dB.
fn ratio_db(voice: &[f32], output: &[f32]) -> f32 {
    let power = |of: &dyn Fn(usize) -> f32| -> f32 { (0..voice.len()).map(|n| of(n).powi(2)).sum() };
    10.0 * (power(&|n| voice[n]) / power(&|n| output[n] - voice[n])).log10()
}

#[test]
fn two_speakers_with_a_microphone_each_have_a_gain_each() {
    let [one, other] = voices();
    let at = [sum(&[(1.0, &one), (CROSSTALK, &other)]), sum(&[(1.0, &other), (CROSSTALK, &one)])];
    let noises = [noise(one.len(), 0.02, 1), noise(one.len(), 0.02, 2)];
    let recording = [0, 1].map(|k| sum(&[(1.0, &at[k]), (1.0, &noises[k])]));
    let [auto, separate, shared] = [ChannelMode::Auto, ChannelMode::Separate, ChannelMode::Shared]
        .map(|channels| denoise(&recording, channels, 1 << 30));
    assert!(auto == separate);
    for k in 0..2 {
        let (alone, together) = (ratio_db(&at[k], &auto[k]), ratio_db(&at[k], &shared[k]));
        assert!(alone > together + 1.0, "channel {k}: {alone} dB, {together} dB with one gain");
    }
}

#[test]
fn ordinary_stereo_shares_a_gain() {
    let [voice, _] = voices();
    let noises = [noise(voice.len(), 0.02, 1), noise(voice.len(), 0.02, 2)];
    let recording = [sum(&[(1.0, &voice), (1.0, &noises[0])]), sum(&[(0.5, &voice), (1.0, &noises[1])])];
    let [auto, shared] =
        [ChannelMode::Auto, ChannelMode::Shared].map(|channels| denoise(&recording, channels, 1 << 30));
    assert!(auto == shared);
}

#[test]
fn a_speaker_who_joins_later_divides_the_channels_from_there_on() {
    let [one, other] = voices().map(|voice| voice.repeat(2));
    let (turn, pause) = (10 * RATE as usize, vec![0.0; 10 * RATE as usize]);
    let [one, other] = [[&one[..turn], &pause].concat(), [&pause, &other[..turn]].concat()];
    let noises = [noise(2 * turn, 0.002, 1), noise(2 * turn, 0.002, 2)];
    let recording = [
        sum(&[(1.0, &one), (CROSSTALK, &other), (1.0, &noises[0])]),
        sum(&[(1.0, &other), (CROSSTALK, &one), (1.0, &noises[1])]),
    ];
    let [auto, shared] =
        [ChannelMode::Auto, ChannelMode::Shared].map(|channels| denoise(&recording, channels, 1 << 30));
    // The first block completes 7.68 s of output.
    let first_block = 7 * RATE as usize;
    for k in 0..2 {
        assert!(auto[k][..first_block] == shared[k][..first_block]);
        assert!(auto[k][turn..] != shared[k][turn..]);
    }
    assert!(denoise(&recording, ChannelMode::Auto, 7_001) == auto, "in pushes");
}
