//! The refiner within the denoiser.

use alphamf::audio::{self, Signal};
use alphamf::inference::{Denoiser, NoiseModel, Settings};
use alphamf::metrics::si_sdr;
use alphamf::model::{Dictionary, Header};
use alphamf::refiner::Refiner;
use std::ops::ControlFlow;
use std::path::Path;

fn demo(name: &str) -> Signal {
    audio::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("audio").join(name)).unwrap()
}

fn denoise(denoiser: &Denoiser, noisy: &Signal) -> Vec<f32> {
    let denoised = denoiser.denoise(noisy, &mut |_| ControlFlow::Continue(())).unwrap();
    denoised.signal.channels()[0].clone()
}

#[test]
fn the_built_in_refiner_makes_the_demo_better() {
    let (clean, noisy) = (demo("demo-clean.wav"), demo("demo-noisy.wav"));
    let score = |settings: Settings| {
        let wide = |samples: &[f32]| samples.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
        si_sdr(&wide(&clean.channels()[0]), &wide(&denoise(&denoiser, &noisy))).unwrap()
    };
    for settings in [Settings::fast(), Settings::default()] {
        let without = score(Settings { refine: false, ..settings.clone() });
        let with = score(settings);
        assert!(with > without + 0.2, "{with:.2} dB, without the refiner {without:.2} dB");
    }
}

#[test]
fn it_is_used_only_for_what_it_was_learned_for() {
    let shipped = || Dictionary::shipped().unwrap();
    let used = |dictionary, settings| Denoiser::new(dictionary, settings).unwrap().refiner().is_some();
    assert!(used(shipped(), Settings::default()));
    assert!(!used(shipped(), Settings { refine: false, ..Settings::default() }));
    let noise = NoiseModel::Spectra { rank: 2 };
    assert!(!used(shipped(), Settings { noise, ..Settings::default() }));
    // A window of half the length: every second bin.
    let header = Header { window_seconds: 0.032, ..shipped().header().clone() };
    let spectra = shipped().spectra().chunks(513).flat_map(|s| s.iter().step_by(2).copied()).collect();
    assert!(!used(Dictionary::new(header, spectra).unwrap(), Settings::default()));

    let plain = Denoiser::new(shipped(), Settings { refine: false, ..Settings::default() }).unwrap();
    let own = plain.with_refiner(Refiner::shipped().unwrap());
    assert_eq!(own.refiner(), Some(&Refiner::shipped().unwrap()));
}
