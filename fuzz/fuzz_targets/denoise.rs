//! Denoises arbitrary short recordings with few iterations.
#![no_main]

use alphamf::denoiser::{Denoiser, EmSettings, SamplingSettings, Settings};
use alphamf::model::Dictionary;
use alphamf::signal::{SampleFormat, Signal};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

fuzz_target!(|input: (u8, bool, Vec<f32>)| {
    static DENOISER: OnceLock<Denoiser> = OnceLock::new();
    let denoiser = DENOISER.get_or_init(|| {
        let em = EmSettings { iterations: Some(3), ..EmSettings::default() };
        let sampling = SamplingSettings { iterations: 4, burn_in: 2, ..SamplingSettings::default() };
        let settings = Settings { em, sampling: Some(sampling), ..Settings::default() };
        Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap()
    });
    let (rate, stereo, mut samples) = input;
    let rate = [8_000, 11_025, 16_000, 48_000][usize::from(rate) % 4];
    samples.truncate(4_000);
    for x in &mut samples {
        *x = if x.is_finite() { x.clamp(-1.0, 1.0) } else { 0.0 };
    }
    let half = samples.len() / 2;
    let channels =
        if stereo { vec![samples[..half].to_vec(), samples[half..2 * half].to_vec()] } else { vec![samples] };
    let Ok(noisy) = Signal::new(rate, SampleFormat::Float32, channels) else { return };
    let denoised = denoiser.denoise(&noisy).unwrap().signal;
    assert_eq!((denoised.len(), denoised.channels().len()), (noisy.len(), noisy.channels().len()));
    let power =
        |signal: &Signal| -> f64 { signal.channels().iter().flatten().map(|&x| f64::from(x).powi(2)).sum() };
    assert!(denoised.channels().iter().flatten().all(|x| x.is_finite()));
    // The power increases by at most 1 dB, and silence remains silent.
    assert!(power(&denoised) <= 1.26 * power(&noisy));
});
