//! Results of the library, pinned bit for bit: any change of these values is a change of behaviour.
//!
//! To update the values, run `cargo test --test denoiser golden -- --nocapture` and copy its output.

use super::shared::{demo, denoiser};
use alphamf::denoiser::{GainSettings, Settings};
use alphamf::learning::{Corpus, TrainingSettings};
use alphamf::random::{SeedTree, SeededRng};
use alphamf::signal::Signal;
use alphamf::stable::{ComplexStable, GeneralisedGamma, PositiveStable};
use rand_distr::Distribution;
use sha2::{Digest, Sha256};
use std::io::Write;

/// Names of results and the first 16 digits of their SHA-256 checksums on x86-64 with AVX2 and FMA, with or without
/// AVX-512. Other CPUs use other kernels for matrix products.
const GOLDEN: [(&str, &str); 5] = [
    ("normal", "394212b8e341b9b6"),
    ("fast", "5cc6657086245313"),
    ("model alone", "52fca4805a99e779"),
    ("published", "588f47e302622b9a"),
    ("dictionary", "3a8d45b80388ac54"),
];

fn is_pinned_here() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Compares the checksum of `bytes` with the pinned one, on CPUs for which it is valid.
#[expect(clippy::explicit_write, reason = "the harness shows nothing of what passes")]
fn check(name: &str, bytes: &[u8]) {
    let sum: String = Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    println!("{name}: {sum}");
    let (_, pinned) = GOLDEN.iter().find(|(pinned, _)| *pinned == name).unwrap();
    if is_pinned_here() {
        assert_eq!(sum, *pinned, "{name}");
    } else {
        // Bypasses the test harness, which hides the output of passing tests.
        writeln!(std::io::stderr(), "SKIPPED: {name} is not pinned for this kind of CPU").unwrap();
    }
}

/// Denoises the demo clip and checks the written file, with samples of 16 bits.
fn check_denoised(name: &str, settings: Settings) {
    check_signal(name, settings, &demo("demo-noisy.wav"));
}

/// Denoises a recording and checks the written file.
fn check_signal(name: &str, settings: Settings, noisy: &Signal) {
    let denoiser = denoiser(settings);
    let denoised = denoiser.denoise(noisy).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("voice.wav");
    alphamf_files::write(&path, &denoised.signal).unwrap();
    check(name, &std::fs::read(path).unwrap());
}

#[test]
fn the_demo_at_normal_quality() {
    check_denoised("normal", Settings::default());
}

#[test]
fn the_demo_at_fast_quality() {
    check_denoised("fast", Settings::fast());
}

#[test]
fn the_demo_by_the_model_alone() {
    let gain = GainSettings { speech_presence: false, ..GainSettings::default() };
    check_denoised("model alone", Settings { gain, ..Settings::default() });
}

/// A piece of a word, as the method is slow.
#[test]
fn a_piece_of_the_demo_by_the_published_method() {
    let demo = demo("demo-noisy.wav");
    let piece = demo.channels().iter().map(|channel| channel[16_000..20_000].to_vec()).collect();
    check_signal("published", Settings::published(), &demo.with_channels(piece).unwrap());
}

#[test]
fn one_step_of_a_dictionary() {
    let settings = TrainingSettings { rank: 8, iterations: 1, ..TrainingSettings::default() };
    let mut corpus = Corpus::new(16_000, settings).unwrap();
    corpus.add(&demo("demo-clean.wav")).unwrap();
    let dictionary = corpus.train().unwrap();
    check("dictionary", &dictionary.to_bytes().unwrap());
}

/// The first two draws from a distribution, with a fixed seed.
fn draws<T>(law: impl Distribution<T>) -> [T; 2] {
    let stream: &mut SeededRng = &mut SeedTree::new(5).rng(0);
    std::array::from_fn(|_| law.sample(stream))
}

/// The draws are identical on all CPUs.
#[test]
fn first_draws_of_every_stable_law() {
    for (alpha_half, wide, narrow, filled) in [
        (0.4, [1.4662292898844413, 31.641061321687904], [1.4662292, 31.641068], [1.4267492, 3.9045167]),
        (0.5, [1.0257806410582033, 9.554645047874985], [1.0257803, 9.554646], [1.0542372, 2.1172273]),
        (0.95, [0.8814125039612081, 1.0435182044723594], [0.8814125, 1.0435183], [0.892916, 0.93272936]),
        (1.0, [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]),
    ] {
        let law = PositiveStable::new(alpha_half).unwrap();
        let mut many = [0.0; 2];
        law.fill(&mut SeedTree::new(5).rng(0), &mut many);
        assert_eq!((draws::<f64>(law), draws::<f32>(law), many), (wide, narrow, filled), "{alpha_half}");
    }
    let [a, b] = draws(ComplexStable::new(1.2, 0.5).unwrap());
    assert_eq!(
        [a.re, a.im, b.re, b.im],
        [-0.2305210682683043, 0.8434255359249312, 0.5059222495925076, 0.28667407395667327]
    );
    assert_eq!(
        draws(GeneralisedGamma::new(1.3, 0.7, -1.6).unwrap()),
        [0.3459959270060239, 0.9077966510426697]
    );
}
