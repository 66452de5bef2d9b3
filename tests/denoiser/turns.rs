//! A softer voice in turn with a louder one: it is no noise.

use super::live::noise;
use alphamf::denoiser::LiveSettings;
use alphamf::signal::{SampleFormat, Signal};
use alphamf::{Denoiser, Dictionary, Settings};

const RATE: u32 = 16_000;
const TURN: usize = 4 * RATE as usize;
/// -24 dB.
const SOFTER: f32 = 0.063;

/// The clean demo in turn with a softer voice, the demo played faster by a quarter; with faint white noise.
fn turns() -> Vec<f32> {
    let file = format!("{}/audio/demo-clean.wav", env!("CARGO_MANIFEST_DIR"));
    let louder = alphamf_files::read(file).unwrap().channels()[0].clone();
    let faster = |n: usize| {
        let (at, share) = (n * 5 / 4, (n * 5 % 4) as f32 / 4.0);
        SOFTER * (louder[at] + share * (louder[at + 1] - louder[at]))
    };
    let pair: Vec<f32> = louder[..TURN].iter().copied().chain((0..TURN).map(faster)).collect();
    pair.repeat(3).iter().zip(noise(6 * TURN, 2e-4, 1)).map(|(x, noise)| x + noise).collect()
}

/// Level of the softer turns relative to the input, dB.
fn softer_level(input: &[f32], output: &[f32]) -> f32 {
    let power =
        |samples: &[f32]| -> f32 { samples.chunks(TURN).skip(1).step_by(2).flatten().map(|x| x * x).sum() };
    10.0 * (power(output) / power(input)).log10()
}

#[test]
fn offline_it_is_kept() {
    let input = turns();
    for settings in [Settings::fast(), Settings::default()] {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        let signal = Signal::new(RATE, SampleFormat::Float32, vec![input.clone()]).unwrap();
        let output = denoiser.denoise(&signal).unwrap();
        let level = softer_level(&input, &output.signal.channels()[0]);
        assert!(level > -1.0, "{level} dB");
    }
}

#[test]
fn live_it_is_kept() {
    let input = turns();
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
    let mut live = denoiser.live(RATE, 1, LiveSettings::default()).unwrap();
    let mut output = vec![0.0; input.len()];
    live.process(&input, &mut output);
    let level = softer_level(&input, &output[live.latency()..]);
    assert!(level > -1.0, "{level} dB");
}
