//! Training on simple signals.

use super::*;
use crate::signal::SampleFormat;
use rand_distr::{Distribution, StandardNormal};

#[test]
fn rumble_is_ignored() {
    const RATE: u32 = 8_000;
    let mut stream = SeedTree::new(3).rng(0);
    let samples = (0..2 * RATE).map(|n| {
        let noise: f32 = StandardNormal.sample(&mut stream);
        let rumble = libm::sinf(2.0 * std::f32::consts::PI * 30.0 * n as f32 / RATE as f32);
        0.1 * noise + 0.5 * rumble
    });
    let speech = Signal::new(RATE, SampleFormat::Float32, vec![samples.collect()]).unwrap();
    let settings = TrainingSettings { rank: 2, iterations: 20, ..TrainingSettings::default() };
    let mut corpus = Corpus::new(RATE, settings).unwrap();
    corpus.add(&speech).unwrap();
    let dictionary = corpus.train().unwrap();
    for spectrum in dictionary.rows(257).chunks_exact(257) {
        let flat = spectrum[10..].iter().sum::<f32>() / 247.0;
        assert!(spectrum[..5].iter().all(|&x| x < 1e-3 * flat), "{:?}", &spectrum[..6]);
        assert!(spectrum[5..].iter().all(|&x| x > 0.1 * flat && x < 10.0 * flat));
    }
}
