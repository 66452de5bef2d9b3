//! The refiner within the denoiser.

use alphamf::denoiser::{Denoiser, GainSettings, ModelSettings, NoiseModel, Settings};
use alphamf::model::{Dictionary, DictionaryHeader};
use alphamf::refiner::Refiner;
use alphamf::signal::Signal;
use alphamf_eval::metrics::si_sdr;
use alphamf_files as audio;
use std::path::Path;

/// Gains as they are, without a refiner or a listener.
fn plain() -> GainSettings {
    GainSettings { refine: false, listen: false, ..GainSettings::default() }
}

fn demo(name: &str) -> Signal {
    audio::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("audio").join(name)).unwrap()
}

fn denoise(denoiser: &Denoiser, noisy: &Signal) -> Vec<f32> {
    let denoised = denoiser.denoise(noisy).unwrap();
    denoised.signal.channels()[0].clone()
}

#[test]
fn the_built_in_refiner_makes_the_demo_better() {
    let (clean, noisy) = (demo("demo-clean.wav"), demo("demo-noisy.wav"));
    let score = |settings: Settings| {
        let denoiser = Denoiser::new(Dictionary::shipped().unwrap(), settings).unwrap();
        si_sdr(&clean.channels()[0], &denoise(&denoiser, &noisy)).unwrap()
    };
    for settings in [Settings::fast(), Settings::default()] {
        let without = score(Settings { gain: plain(), ..settings.clone() });
        let with = score(Settings { gain: GainSettings { refine: true, ..plain() }, ..settings });
        assert!(with > without + 0.2, "{with:.2} dB, without the refiner {without:.2} dB");
    }
}

#[test]
fn it_is_used_only_for_what_it_was_learned_for() {
    let shipped = || Dictionary::shipped().unwrap();
    let used = |dictionary, settings| Denoiser::new(dictionary, settings).unwrap().refiner().is_some();
    let deaf =
        Settings { gain: GainSettings { listen: false, ..GainSettings::default() }, ..Settings::default() };
    assert!(used(shipped(), deaf.clone()));
    // What a listener is pooled with is not refined.
    assert!(!used(shipped(), Settings::default()));
    assert!(!used(shipped(), Settings { gain: plain(), ..Settings::default() }));
    let model = ModelSettings { noise: NoiseModel::Spectra { rank: 2 }, ..ModelSettings::default() };
    assert!(!used(shipped(), Settings { model: model.clone(), ..deaf.clone() }));
    // A window of half the length: every second bin.
    let header = DictionaryHeader { window_seconds: 0.032, ..shipped().header().clone() };
    let spectra = shipped().spectra().chunks(513).flat_map(|s| s.iter().step_by(2).copied()).collect();
    let narrow = Dictionary::new(header, spectra).unwrap();
    assert!(!used(narrow.clone(), deaf));

    let with_own = |dictionary, settings| {
        Denoiser::new(dictionary, settings).unwrap().with_refiner(Refiner::shipped().unwrap())
    };
    let own = with_own(shipped(), Settings::default()).unwrap();
    assert_eq!(own.refiner(), Some(&Refiner::shipped().unwrap()));
    let refused = |dictionary, settings| with_own(dictionary, settings).unwrap_err().to_string();
    assert!(refused(shipped(), Settings { gain: plain(), ..Settings::default() }).contains("settings"));
    assert!(
        refused(shipped(), Settings { model: model.clone(), ..Settings::default() })
            .contains("constant spectra")
    );
    assert!(refused(narrow, Settings::default()).contains("window"));
}
