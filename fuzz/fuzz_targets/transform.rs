//! Transforms arbitrary samples and back, in blocks of arbitrary length.
#![no_main]

use alphamf::signal::SAMPLE_RATE_RANGE;
use alphamf::transform::{Spectrogram, Stft, WINDOW_RANGE_SECONDS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, f64, Vec<i16>, Vec<u8>)| {
    let (rate, seconds, samples, blocks) = input;
    let span = SAMPLE_RATE_RANGE.end() - SAMPLE_RATE_RANGE.start() + 1;
    let rate = SAMPLE_RATE_RANGE.start() + rate % span;
    let Ok(stft) = Stft::new(rate, seconds) else {
        assert!(!WINDOW_RANGE_SECONDS.contains(&seconds));
        return;
    };
    let samples: Vec<f32> = samples.iter().map(|&x| f32::from(x) / 32_768.0).collect();
    let (mut analyser, mut synthesiser) = (stft.analyser(), stft.synthesiser());
    let mut again = Vec::new();
    let mut rest = &samples[..];
    let mut blocks = blocks.iter().map(|&b| usize::from(b)).chain(std::iter::repeat(1_000));
    while !rest.is_empty() {
        let (block, others) = rest.split_at(blocks.next().unwrap_or(1).min(rest.len()));
        let mut frames = Spectrogram::new(stft.bins(), 0);
        analyser.push(block, &mut frames);
        synthesiser.push(&frames, &mut again);
        rest = others;
    }
    let mut frames = Spectrogram::new(stft.bins(), 0);
    analyser.finish(&mut frames);
    synthesiser.push(&frames, &mut again);
    synthesiser.finish(samples.len() as u64, &mut again);
    assert_eq!(again.len(), samples.len());
    assert!(samples.iter().zip(&again).all(|(a, b)| (a - b).abs() < 2e-6));
});
