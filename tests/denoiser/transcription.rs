//! For transcription, speech with little noise stays unchanged and speech in noise is denoised.

use super::shared::{demo, denoiser};
use alphamf::Options;
use alphamf::denoiser::SessionSettings;
use std::f64::consts::TAU;

/// The demo voice twice, after 1 s of silence.
fn voice() -> (u32, Vec<f32>) {
    let voice = demo("demo-clean.wav");
    let mut samples = vec![0.0; voice.sample_rate() as usize];
    samples.extend(voice.channels()[0].repeat(2));
    (voice.sample_rate(), samples)
}

/// A hum of two tones, 20 dB below full scale.
fn hum(rate: u32, samples: usize) -> Vec<f32> {
    let tone = |hertz: f64, n: usize| libm::sin(TAU * hertz * n as f64 / f64::from(rate));
    (0..samples).map(|n| (0.07 * (tone(217.0, n) + tone(1_303.0, n))) as f32).collect()
}

/// Ratio of a recording to its change by denoising, dB.
fn input_to_change_db(purpose: &str, samples: &[f32], rate: u32) -> f64 {
    let text = format!(r#"{{"purpose": "{purpose}", "mix": 1, "quality": "fast"}}"#);
    let options: Options = serde_json::from_str(&text).unwrap();
    let denoiser = denoiser(options.settings().unwrap());
    let mut session = denoiser.session(rate, 1, SessionSettings::default()).unwrap();
    let mut denoised = session.push(&[samples]).unwrap().speech.remove(0);
    denoised.extend(&session.finish().unwrap().speech[0]);
    let energy = |values: &mut dyn Iterator<Item = f32>| values.map(|x| f64::from(x * x)).sum::<f64>();
    let change = energy(&mut samples.iter().zip(&denoised).map(|(x, y)| x - y));
    10.0 * libm::log10(energy(&mut samples.iter().copied()) / change)
}

#[test]
fn a_voice_with_little_noise_is_left_as_it_is() {
    let (rate, voice) = voice();
    let (spared, whole) =
        (input_to_change_db("transcription", &voice, rate), input_to_change_db("listening", &voice, rate));
    assert!(spared > 60.0 && whole < 45.0, "{spared} dB, {whole} dB in all");
}

#[test]
fn a_voice_in_noise_is_denoised() {
    let (rate, mut noisy) = voice();
    let hum = hum(rate, noisy.len());
    noisy.iter_mut().zip(hum).for_each(|(x, hum)| *x += hum);
    let (spared, whole) =
        (input_to_change_db("transcription", &noisy, rate), input_to_change_db("listening", &noisy, rate));
    assert!(spared < 10.0 && (spared - whole).abs() < 0.1, "{spared} dB, {whole} dB in all");
}
