//! Live: what users of others complain of.

use alphamf::denoiser::{LiveControls, LiveSettings};
use alphamf::random::Streams;
use alphamf::{Denoiser, Dictionary, LiveDenoiser, Settings};
use rand::RngExt;

fn noise(samples: usize, level: f32, seed: u64) -> Vec<f32> {
    let mut random = Streams::new(seed).stream(0);
    (0..samples).map(|_| level * random.random_range(-1.0..1.0_f32)).collect()
}

#[test]
fn steady_noise_goes_down() {
    let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), Settings::fast()).unwrap();
    let began = std::time::Instant::now();
    let mut live: LiveDenoiser = denoiser.live(16_000, 1, LiveSettings::default()).unwrap();
    println!("made in {:?}", began.elapsed());
    let input = noise(16_000 * 10, 0.1, 1);
    let mut output = vec![0.0; input.len()];
    let began = std::time::Instant::now();
    live.process(&input, &mut output);
    println!("{:?} for 10 s", began.elapsed());
    let db = |x: &[f32]| 10.0 * (x.iter().map(|x| x * x).sum::<f32>() / x.len() as f32).log10();
    for (second, part) in output.chunks(8_000).enumerate() {
        println!("{second} {:.1} {:?}", db(part) - db(&input), live.meters());
    }
    let _ = LiveControls::default();
}
