//! A live denoiser never allocates after construction, as checked by a counting allocator.

use super::shared::denoiser;
use crate::counting::allocations;
use alphamf::Settings;
use alphamf::denoiser::{LiveControls, LiveSettings};

#[test]
fn nothing_is_allocated_while_it_runs() {
    for listen in [true, false] {
        let mut settings = Settings::fast();
        settings.gain.speech_presence = listen;
        let denoiser = denoiser(settings);
        for (rate, latency_seconds) in [(8_000, 0.032), (44_100, 0.016), (48_000, 0.004), (16_000, 0.064)] {
            let settings = LiveSettings { latency_seconds, ..LiveSettings::default() };
            let mut live = denoiser.live(rate, 2, settings).unwrap();
            let input: Vec<f32> = (0..16_000).map(|n| (n as f32 * n as f32 * 1e-4).sin()).collect();
            let mut output = vec![0.0; input.len()];
            let before = allocations();
            for (n, (x, y)) in input.chunks(126).zip(output.chunks_mut(126)).enumerate() {
                live.process(x, y);
                match n {
                    30 => live.set_controls(LiveControls { mix: 0.5, ..LiveControls::default() }),
                    50 => live.learn_noise(0.1),
                    90 => live.reset(),
                    93 => live.set_learned_noise(None).unwrap(),
                    95 => live.reset_to_learned_noise(),
                    _ => {}
                }
                assert!(live.meters().noise_dbfs.is_finite());
            }
            assert_eq!(allocations() - before, 0, "{rate} Hz, {latency_seconds} s, network {listen}");
        }
    }
    // Clicks are repaired, eight a second.
    let denoiser = denoiser(Settings::fast());
    let mut live = denoiser.live(16_000, 1, LiveSettings::default()).unwrap();
    let click = |n: usize| if n % 2_000 < 20 { 1.0 } else { 1e-3 };
    let input: Vec<f32> = (0..64_000).map(|n| click(n) * (n as f32 * n as f32 * 1e-4).sin()).collect();
    let mut output = vec![0.0; input.len()];
    for live in [&mut live.clone(), &mut live] {
        let before = allocations();
        live.process(&input, &mut output);
        assert_eq!(allocations() - before, 0);
    }
    // Hum is removed.
    let mut live = denoiser.live(16_000, 1, LiveSettings::default()).unwrap();
    let input: Vec<f32> = (0..64_000).map(|n| 0.1 * (n as f32 * 0.04).sin()).collect();
    let before = allocations();
    live.process(&input, &mut output);
    assert_eq!(allocations() - before, 0);
    assert!(output[48_000..].iter().all(|y| y.abs() < 0.01));
    // The allocator counts an allocation and a deallocation.
    let before = allocations();
    drop(std::hint::black_box(vec![1.0_f32; 9]));
    assert_eq!(allocations() - before, 2);
}
