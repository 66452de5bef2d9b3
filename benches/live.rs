//! Cost of a live denoiser: seconds per second of audio on one thread, and the time per block.

use alphamf::denoiser::LiveSettings;
use alphamf::random::SeedTree;
use alphamf::{Denoiser, Dictionary, Settings};
use rand::RngExt;
use std::time::Instant;

const SECONDS: usize = 30;
/// Number of samples per block of a host.
const QUANTUM: usize = 64;

fn main() {
    // `cargo test --benches` only checks that it runs.
    let seconds = if std::env::args().any(|argument| argument == "--bench") { SECONDS } else { 1 };
    let began = Instant::now();
    let denoiser = Denoiser::new(Dictionary::built_in().unwrap(), Settings::fast()).unwrap();
    println!("denoiser made in {:.0} ms", 1e3 * began.elapsed().as_secs_f64());
    println!("blocks of {QUANTUM} samples; times in us");
    println!("   Hz  ch  late/ms  made/ms   s per s   mean   99.9 %     max   of a block  of a hop");
    for (rate, channels, latency_seconds) in [
        (16_000, 1, 0.016),
        (48_000, 1, 0.016),
        (48_000, 2, 0.016),
        (48_000, 1, 0.008),
        (48_000, 1, 0.004),
        (48_000, 1, 0.032),
    ] {
        let began = Instant::now();
        let settings = LiveSettings { latency_seconds, ..LiveSettings::default() };
        let mut live = denoiser.live(rate, channels, settings).unwrap();
        let made = began.elapsed().as_secs_f64();
        let mut random = SeedTree::new(1).rng(0);
        let pulse = |n: usize| {
            if n.is_multiple_of(rate as usize / 120) && (n / rate as usize).is_multiple_of(2) {
                0.5
            } else {
                0.0
            }
        };
        let input: Vec<f32> = (0..seconds * rate as usize)
            .flat_map(|n| std::iter::repeat_n(pulse(n) + 0.03 * random.random_range(-1.0..1.0_f32), channels))
            .collect();
        let mut output = vec![0.0; QUANTUM * channels];
        let mut times: Vec<f64> = input
            .chunks_exact(QUANTUM * channels)
            .map(|block| {
                let began = Instant::now();
                live.process(block, &mut output);
                began.elapsed().as_secs_f64()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let total: f64 = times.iter().sum();
        let (rare, most) = (times[(times.len() - 1) * 999 / 1_000], times[times.len() - 1]);
        let block = QUANTUM as f64 / f64::from(rate);
        println!(
            "{rate:>6} {channels:>2} {:>8.0} {:>8.1} {:>9.4} {:>6.1} {:>8.1} {:>7.1} {:>11.2} {:>9.3}",
            1e3 * latency_seconds,
            1e3 * made,
            total / seconds as f64,
            1e6 * total / times.len() as f64,
            1e6 * rare,
            1e6 * most,
            rare / block,
            rare / (latency_seconds / 2.0),
        );
    }
}
