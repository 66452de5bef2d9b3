//! Throughput in samples per second: whole recordings, their transform, and their score.
use alphamf::denoiser::{Denoiser, Settings};
use alphamf::model::Dictionary;
use alphamf::random::SeedTree;
use alphamf::signal::{SampleFormat, Signal};
use alphamf::transform::{DEFAULT_WINDOW_SECONDS, Stft};
use alphamf_eval::metrics;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::RngExt;

const RATE: u32 = 16_000;
const SECONDS: usize = 8;

/// Harmonics with syllables, in white noise.
fn noisy() -> Vec<f32> {
    let mut stream = SeedTree::new(1).rng(0);
    let sample = |n: usize| {
        let t = n as f32 / RATE as f32;
        let voice: f32 = (1..=20_u8).map(|k| (f32::from(k) * 900.0 * t).sin() / f32::from(k)).sum();
        let syllables = (12.0 * t).sin().max(0.0);
        0.1 * syllables * voice + 0.03 * stream.random_range(-1.0..1.0_f32)
    };
    (0..SECONDS * RATE as usize).map(sample).collect()
}

fn transform(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("transform");
    let samples = noisy();
    let stft = Stft::new(RATE, DEFAULT_WINDOW_SECONDS).unwrap();
    group.throughput(Throughput::Elements(samples.len() as u64));
    let spectrogram = stft.analyse(&samples);
    group.bench_function("analyse", |b| b.iter(|| stft.analyse(&samples)));
    group.bench_function("synthesise", |b| b.iter(|| stft.synthesise(&spectrogram, samples.len())));
    group.finish();
}

/// One thread. `fast` has 2 sweeps of expectation maximisation, `normal without draws` 8, and `normal` 8 Gibbs sweeps
/// more: one sweep of maximisation takes a sixth of the first difference, one Gibbs sweep an eighth of the second.
fn denoise(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("denoise");
    let signal = Signal::new(RATE, SampleFormat::Float32, vec![noisy()]).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    group.sample_size(10).throughput(Throughput::Elements(signal.len() as u64));
    let without_draws = Settings { sampling: None, ..Settings::default() };
    for (name, settings) in
        [("fast", Settings::fast()), ("normal without draws", without_draws), ("normal", Settings::default())]
    {
        let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), settings).unwrap();
        group.bench_function(name, |b| {
            b.iter(|| pool.install(|| denoiser.denoise(&signal).unwrap()));
        });
    }
    group.finish();
}

fn score(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("score");
    let estimate: Vec<f64> = noisy().into_iter().map(f64::from).collect();
    let reference: Vec<f64> = estimate.iter().map(|x| x.max(-0.05)).collect();
    group.throughput(Throughput::Elements(estimate.len() as u64));
    group.bench_function("sdr", |b| b.iter(|| metrics::sdr(&reference, &estimate)));
    group.finish();
}

criterion_group!(benches, transform, denoise, score);
criterion_main!(benches);
