//! Common fixtures of the tests: the demo, a denoiser and a denoised channel.

use alphamf::signal::{SampleFormat, Signal};
use alphamf::{Denoiser, Dictionary, Settings};

/// A file of the demo: `demo-clean.wav` or `demo-noisy.wav`.
pub fn demo(name: &str) -> Signal {
    alphamf_files::read(format!("{}/audio/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The samples of the clean demo, 16 kHz.
pub fn voice() -> Vec<f32> {
    demo("demo-clean.wav").into_channels().swap_remove(0)
}

/// A denoiser with the built-in dictionary.
pub fn denoiser(settings: Settings) -> Denoiser {
    Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap()
}

/// Denoises a mono recording.
pub fn denoised(denoiser: &Denoiser, samples: &[f32], rate: u32) -> Vec<f32> {
    let signal = Signal::new(rate, SampleFormat::Float32, vec![samples.to_vec()]).unwrap();
    denoiser.denoise(&signal).unwrap().signal.into_channels().swap_remove(0)
}
