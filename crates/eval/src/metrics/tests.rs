//! The measures against values of public packages, recorded by `reference.py`.

use std::f64::consts::PI;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::*;

/// SDR, SI-SDR, SNR, segmental SNR in dB, STOI and ESTOI.
type Row = [f64; 6];

/// Sample rate in Hz, estimate and recorded scores.
const GENERATED: [(u32, &str, Row); 16] = [
    (8000, "noisy", [2.47849, 2.38188, 2.35445, 0.43588, 0.72543, 0.09496]),
    (8000, "filtered", [14.70994, 2.12505, 2.87178, 1.22519, 0.93121, 0.29184]),
    (8000, "bent", [12.72618, 8.61270, 8.77714, 5.53739, 0.94471, 0.21841]),
    (8000, "unrelated", [-19.02365, -37.22813, -1.90940, -4.10078, 0.18947, 0.01656]),
    (10000, "noisy", [2.48518, 2.41995, 2.35598, 0.45622, 0.76325, 0.08801]),
    (10000, "filtered", [14.00175, 2.05182, 2.66300, 1.05660, 0.93651, 0.26911]),
    (10000, "bent", [12.58830, 8.60519, 8.77805, 5.53573, 0.94616, 0.29243]),
    (10000, "unrelated", [-20.98058, -59.15780, -1.96934, -4.15500, 0.18622, -0.01829]),
    (16000, "noisy", [2.39921, 2.36778, 2.36176, 0.46950, 0.80576, 0.10162]),
    (16000, "filtered", [12.56719, 2.40468, 2.35433, 0.77861, 0.94127, 0.28589]),
    (16000, "bent", [12.60474, 8.62479, 8.79422, 5.54290, 0.95132, 0.29106]),
    (16000, "unrelated", [-23.78055, -42.71260, -1.94156, -4.07689, 0.24868, 0.03333]),
    (44100, "noisy", [2.39105, 2.38771, 2.38320, 0.45972, 0.88261, 0.22761]),
    (44100, "filtered", [9.93519, 4.79109, 2.01678, 0.51381, 0.94864, 0.22602]),
    (44100, "bent", [12.31762, 8.62531, 8.79468, 5.54326, 0.94789, 0.24680]),
    (44100, "unrelated", [-31.61306, -66.51994, -1.97199, -4.12275, 0.21791, 0.00313]),
];

/// Files below the data folder and recorded scores.
const REAL: [(&str, &str, Row); 5] = [
    (
        "noizeus/clean/sp21.wav",
        "noizeus/noisy/babble_5dB/sp21_babble_sn5.wav",
        [4.40022, 4.28898, 4.32617, -1.68366, 0.78562, 0.52629],
    ),
    (
        "noizeus/clean/sp30.wav",
        "noizeus/noisy/car_0dB/sp30_car_sn0.wav",
        [-0.24285, -0.45303, -0.38036, -4.40607, 0.59811, 0.36199],
    ),
    (
        "noizeus/clean/sp11.wav",
        "noizeus/noisy/train_15dB/sp11_train_sn15.wav",
        [14.49698, 14.37751, 14.40648, 6.89472, 0.89732, 0.82681],
    ),
    (
        "voicebank_p232/clean/p232_001.wav",
        "voicebank_p232/noisy/p232_001.wav",
        [15.47865, 15.47046, 15.47386, 6.30632, 0.89648, 0.82909],
    ),
    (
        "voicebank_p232/clean/p232_414.wav",
        "voicebank_p232/noisy/p232_414.wav",
        [0.64887, 0.55953, 0.48064, -2.85703, 0.85770, 0.69793],
    ),
];

fn noise(length: usize, seed: u32) -> Vec<f64> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) / 2.0_f64.powi(31) - 1.0
        })
        .collect()
}

/// Three seconds of a vowel of wavering pitch, in two swells.
fn reference(sample_rate: u32) -> Vec<f64> {
    (0..3 * sample_rate)
        .map(|n| {
            let t = f64::from(n) / f64::from(sample_rate);
            let phase = 2.0 * PI * 130.0 * t + 3.0 * (2.0 * PI * 0.9 * t).sin();
            let voice: f64 = (1..26).map(f64::from).map(|k| (k * phase).sin() / k).sum();
            0.2 * (2.0 * PI * 0.7 * t).sin().max(0.0).powi(2) * voice
        })
        .collect()
}

fn estimate(name: &str, reference: &[f64]) -> Vec<f64> {
    let with_noise = |gain: f64, seed: u32, x: &dyn Fn(usize) -> f64| {
        noise(reference.len(), seed).iter().enumerate().map(|(n, z)| x(n) + gain * z).collect()
    };
    match name {
        "noisy" => with_noise(0.1, 1, &|n| reference[n]),
        "filtered" => {
            with_noise(0.01, 2, &|n| 0.5 * reference[n] - if n < 5 { 0.0 } else { 0.3 * reference[n - 5] })
        }
        "bent" => reference.iter().map(|x| x.abs() * x / 0.2).collect(),
        "unrelated" => with_noise(0.1, 3, &|_| 0.0),
        _ => panic!("no estimate is called {name}"),
    }
}

fn scores(reference: &[f64], estimate: &[f64], sample_rate: u32) -> Row {
    [
        sdr(reference, estimate).unwrap(),
        si_sdr(reference, estimate).unwrap(),
        snr(reference, estimate).unwrap(),
        segmental_snr(reference, estimate, sample_rate).unwrap(),
        stoi(reference, estimate, sample_rate).unwrap(),
        estoi(reference, estimate, sample_rate).unwrap(),
    ]
}

#[track_caller]
fn assert_close(what: &str, found: Row, recorded: Row) {
    for (i, (f, r)) in found.iter().zip(recorded).enumerate() {
        let tolerance = if i < 4 { 2e-3 } else { 2e-4 };
        assert!((f - r).abs() < tolerance, "{what}, score {i}: {f}, recorded {r}");
    }
}

#[test]
fn generated_signals_score_as_in_public_packages() {
    for (rate, name, recorded) in GENERATED {
        let reference = reference(rate);
        assert_close(
            &format!("{name} at {rate} Hz"),
            scores(&reference, &estimate(name, &reference), rate),
            recorded,
        );
    }
}

#[test]
fn fricatives_are_the_frames_that_are_loudest() {
    // Noise of 2 s, 20 dB louder for a quarter of a second, in which the estimate is halved.
    let burst = 40_000..52_000;
    let reference: Vec<f64> = noise(96_000, 4)
        .iter()
        .enumerate()
        .map(|(n, x)| x * if burst.contains(&n) { 1.0 } else { 0.1 })
        .collect();
    let halved = |(n, x): (usize, &f64)| if burst.contains(&n) { 0.5 * x } else { *x };
    let estimate: Vec<f64> = reference.iter().enumerate().map(halved).collect();
    let band = 8_000.0..=20_000.0;
    let SpectralDistances { all, loudest } = spectral_distances(&reference, &estimate, 48_000, band).unwrap();
    assert!((loudest - 6.02).abs() < 0.1 && all < 1.2, "{loudest} and {all} dB");
}

/// Recorded by `reference.py`, from NumPy's transforms.
#[test]
fn distances_of_spectra_are_those_recorded() {
    for (rate, name, recorded) in [
        (44_100, "noisy", [39.306_88, 43.303_31]),
        (44_100, "filtered", [21.430_40, 23.589_19]),
        (48_000, "noisy", [38.989_44, 42.932_74]),
        (48_000, "filtered", [21.139_07, 23.222_47]),
    ] {
        let reference = reference(rate);
        let estimate = estimate(name, &reference);
        for (band, recorded) in [100.0..=8_000.0, 8_000.0..=20_000.0].into_iter().zip(recorded) {
            let found = log_spectral_distance(&reference, &estimate, rate, band).unwrap();
            assert!((found - recorded).abs() < 1e-4, "{name} at {rate} Hz: {found}, recorded {recorded}");
            assert_eq!(log_spectral_distance(&reference, &reference, rate, 100.0..=200.0), Ok(0.0));
        }
    }
    let sound = noise(2000, 9);
    let short = log_spectral_distance(&sound[..100], &sound[..100], 8_000, 100.0..=200.0);
    assert!(matches!(short, Err(MetricError::TooShort { .. })), "{short:?}");
    let above = log_spectral_distance(&sound, &sound, 8_000, 8_000.0..=20_000.0);
    assert!(matches!(above, Err(MetricError::SampleRate { rate: 8_000, .. })), "{above:?}");
}

#[test]
fn real_files_score_as_in_public_packages() {
    let Some(data) = shared_data() else { return };
    for (clean, noisy, recorded) in REAL {
        let (mut reference, rate) = read(&data.join(clean));
        let (mut estimate, _) = read(&data.join(noisy));
        let length = reference.len().min(estimate.len());
        reference.truncate(length);
        estimate.truncate(length);
        assert_close(noisy, scores(&reference, &estimate, rate), recorded);
    }
}

/// The folder of corpora, or a line that the test is skipped.
fn shared_data() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = root.ancestors().skip(1).map(|folder| folder.join("shared/data")).find(|data| data.is_dir());
    if data.is_none() {
        std::io::stderr().write_all(b"SKIPPED: no folder shared/data beside the checkout\n").unwrap();
    }
    data
}

fn read(path: &Path) -> (Vec<f64>, u32) {
    let mut reader = hound::WavReader::open(path).unwrap();
    let samples = reader.samples::<i16>().map(|x| f64::from(x.unwrap()) / 32_768.0).collect();
    (samples, reader.spec().sample_rate)
}

/// Compares the recursion and the blocks with the coherence by a dense solve.
#[test]
fn sdr_equals_a_dense_least_squares_fit() {
    let length = 20_000; // more than one block
    let (reference, hiss) = (noise(length, 5), noise(length, 6));
    let estimate: Vec<f64> = (0..length).map(|n| reference[n.saturating_sub(511)] + 0.3 * hiss[n]).collect();
    let lagged = |samples: &[f64], lag: usize| -> f64 {
        reference.iter().zip(&samples[lag..]).map(|(a, b)| a * b).sum()
    };
    let auto: Vec<f64> = (0..FILTER_TAPS).map(|lag| lagged(&reference, lag)).collect();
    let cross: Vec<f64> = (0..FILTER_TAPS).map(|lag| lagged(&estimate, lag)).collect();
    // Cholesky R = L L' and forward substitution: c' R^-1 c = |L^-1 c|^2.
    let mut factor = vec![vec![0.0; FILTER_TAPS]; FILTER_TAPS];
    let mut solved = vec![0.0; FILTER_TAPS];
    for i in 0..FILTER_TAPS {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| factor[i][k] * factor[j][k]).sum();
            factor[i][j] = if i == j { (auto[0] - sum).sqrt() } else { (auto[i - j] - sum) / factor[j][j] };
        }
        let sum: f64 = (0..i).map(|k| factor[i][k] * solved[k]).sum();
        solved[i] = (cross[i] - sum) / factor[i][i];
    }
    let coherence = energy(solved) / energy(estimate.iter().copied());
    let expected = 10.0 * (coherence / (1.0 - coherence)).log10();
    let found = sdr(&reference, &estimate).unwrap();
    assert!((found - expected).abs() < 1e-6, "{found}, dense solve {expected}");
}

#[test]
fn sdr_forgives_level_delay_and_filter_but_not_a_delay_beyond_the_filter() {
    let mut reference = noise(16_000, 7);
    reference[12_000..].fill(0.0);
    let delayed = |delay: usize| -> Vec<f64> {
        (0..reference.len()).map(|n| if n < delay { 0.0 } else { 0.01 * reference[n - delay] }).collect()
    };
    assert_eq!(sdr(&reference, &delayed(0)).unwrap(), f64::INFINITY);
    assert_eq!(sdr(&reference, &delayed(511)).unwrap(), f64::INFINITY);
    assert!(sdr(&reference, &delayed(512)).unwrap() < 0.0);
}

#[test]
fn sdr_of_pure_tones_is_finite_and_right() {
    // Shifts of a tone span two dimensions: the system is singular to rounding.
    let tone =
        |cycles: f64| -> Vec<f64> { (0..16_000).map(|n| (2.0 * PI * cycles * f64::from(n)).sin()).collect() };
    let estimate: Vec<f64> = tone(0.05).iter().zip(tone(0.125)).map(|(a, b)| a + 0.1 * b).collect();
    let found = sdr(&tone(0.05), &estimate).unwrap();
    assert!((found - 20.0).abs() < 0.2, "{found}");
}

#[test]
fn edges_have_the_documented_results() {
    let reference = reference(8000);
    let silence = vec![0.0; reference.len()];
    let (inf, rate) = (f64::INFINITY, 8000);
    let same = scores(&reference, &reference, rate);
    assert_eq!(same[..4], [inf, inf, inf, 35.0]);
    assert!((same[4] - 1.0).abs() < 1e-9 && (same[5] - 1.0).abs() < 1e-9, "{same:?}");
    assert_eq!(scores(&reference, &silence, rate), [-inf, -inf, 0.0, 0.0, 0.0, 0.0]);
    for tiny in [1e-200, 1e-30, 1e30, 1e120] {
        let scaled: Vec<f64> = estimate("noisy", &reference).iter().map(|x| tiny * x).collect();
        assert!((sdr(&reference, &scaled).unwrap() - GENERATED[0].2[0]).abs() < 2e-3, "at level {tiny}");
    }
}

#[test]
fn bad_input_is_refused_by_every_measure() {
    type Measure = fn(&[f64], &[f64]) -> Result<f64, MetricError>;
    let measures: [Measure; 7] = [
        sdr,
        si_sdr,
        snr,
        |r, e| segmental_snr(r, e, 8000),
        |r, e| stoi(r, e, 8000),
        |r, e| estoi(r, e, 8000),
        |r, e| log_spectral_distance(r, e, 8000, 100.0..=4000.0),
    ];
    let sound = noise(8000, 8);
    let mut broken = sound.clone();
    broken[17] = f64::NAN;
    for measure in measures {
        assert_eq!(
            measure(&sound, &sound[1..]),
            Err(MetricError::LengthMismatch { reference: 8000, estimate: 7999 })
        );
        assert_eq!(measure(&[0.0; 8000], &sound), Err(MetricError::SilentReference));
        assert_eq!(measure(&[], &[]), Err(MetricError::SilentReference));
        assert_eq!(measure(&sound, &broken), Err(MetricError::NotFinite { signal: "estimate", index: 17 }));
        assert_eq!(measure(&broken, &sound), Err(MetricError::NotFinite { signal: "reference", index: 17 }));
    }
}

/// Single precision is widened, which is exact; the two signals may be of different types.
#[test]
fn every_measure_takes_both_kinds_of_sample() {
    let narrow = |samples: Vec<f64>| -> Vec<f32> { samples.iter().map(|&x| x as f32).collect() };
    let widen = |samples: &[f32]| -> Vec<f64> { samples.iter().map(|&x| f64::from(x)).collect() };
    let (clean, other) = (narrow(noise(8000, 10)), narrow(noise(8000, 11)));
    let noisy: Vec<f32> = clean.iter().zip(&other).map(|(x, y)| x + 0.3 * y).collect();
    let (wide_clean, wide_noisy) = (widen(&clean), widen(&noisy));
    let expected = sdr(&wide_clean, &wide_noisy);
    assert!(expected.as_ref().is_ok_and(|score| (5.0..15.0).contains(score)), "{expected:?}");
    assert_eq!(sdr(&clean, &noisy), expected);
    assert_eq!(sdr(&wide_clean, &noisy), expected);
    assert_eq!(si_sdr(&clean, &noisy), si_sdr(&wide_clean, &wide_noisy));
    assert_eq!(snr(&clean, &wide_noisy), snr(&wide_clean, &wide_noisy));
    assert_eq!(segmental_snr(&clean, &noisy, 8000), segmental_snr(&wide_clean, &wide_noisy, 8000));
    let both = intelligibility(&wide_clean, &wide_noisy, 8000).unwrap();
    assert_eq!(stoi(&clean, &noisy, 8000), Ok(both.stoi));
    assert_eq!(estoi(&clean, &wide_noisy, 8000), Ok(both.estoi));
}

#[test]
fn short_signals_are_refused_where_frames_are_needed() {
    let sound = noise(2000, 9);
    assert!(matches!(stoi(&sound, &sound, 8000), Err(MetricError::TooShort { metric: "STOI", .. })));
    assert!(matches!(stoi(&sound[..1], &sound[..1], 8000), Err(MetricError::TooShort { .. })));
    for outside in [0, 7_999, 192_001, u32::MAX] {
        let found = stoi(&sound, &sound, outside);
        assert!(matches!(found, Err(MetricError::SampleRate { rate, .. }) if rate == outside), "{found:?}");
    }
    for (length, rate) in [(239, 8000), (1, 8000), (2000, 0), (2000, 30)] {
        let found = segmental_snr(&sound[..length], &sound[..length], rate);
        assert!(matches!(found, Err(MetricError::TooShort { .. })), "{length} samples at {rate} Hz");
    }
    assert_eq!(segmental_snr(&sound[..240], &sound[..240], 8000), Ok(35.0));
    assert_eq!(sdr(&sound[..1], &sound[..1]), Ok(f64::INFINITY));
}

#[cfg(feature = "pesq")]
#[test]
fn wide_band_pesq_equals_the_package_for_python() {
    let Some(data) = shared_data() else { return };
    let score = |clean: &str, noisy: &str| {
        let ((r, rate), (e, _)) = (read(&data.join(clean)), read(&data.join(noisy)));
        wide_band_pesq(&r, &e, rate)
    };
    for (name, recorded) in [("p232_001", 2.92870), ("p232_414", 1.42104)] {
        let found =
            score(&format!("voicebank_p232/clean/{name}.wav"), &format!("voicebank_p232/noisy/{name}.wav"))
                .unwrap();
        assert!((found - recorded).abs() < 1e-3, "{name}: {found}, recorded {recorded}");
    }
    let narrow = score("noizeus/clean/sp21.wav", "noizeus/clean/sp21.wav");
    assert!(matches!(narrow, Err(MetricError::SampleRate { rate: 8000, .. })));
}

/// Recorded by the package `pesq` 0.0.4 for Python; narrow-band scores at 8 kHz, of signals resampled by `scipy.signal.resample`.
#[cfg(feature = "pesq")]
#[test]
fn pesq_of_the_demo_is_that_of_the_package_at_any_level() {
    let audio = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../audio");
    let [(clean, rate), (noisy, _)] =
        ["demo-clean.wav", "demo-noisy.wav"].map(|name| read(&audio.join(name)));
    let less: Vec<f64> = clean.iter().zip(&noisy).map(|(clean, noisy)| 0.7 * clean + 0.3 * noisy).collect();
    for (estimate, wide, narrow) in [(&noisy, 1.068_76, 1.412_06), (&less, 1.478_84, 1.978_83)] {
        for level in [1.0, 1e-3, 40.0] {
            let [clean, estimate] =
                [&clean, estimate].map(|samples| samples.iter().map(|x| level * x).collect::<Vec<_>>());
            let found = wide_band_pesq(&clean, &estimate, rate).unwrap();
            assert!((found - wide).abs() < 0.015, "wide band at level {level}: {found}, recorded {wide}");
            let found = narrow_band_pesq(&clean, &estimate, rate).unwrap();
            assert!(
                (found - narrow).abs() < 0.03,
                "narrow band at level {level}: {found}, recorded {narrow}"
            );
        }
    }
}

/// The clean-room crate departs from the reference in the narrow band; see the documentation of the metrics.
#[cfg(feature = "pesq")]
#[test]
fn narrow_band_pesq_is_near_the_package_for_python() {
    let Some(data) = shared_data() else { return };
    for (clean, noisy, recorded) in
        [("sp21", "babble_5dB/sp21_babble_sn5", 2.37799), ("sp22", "car_5dB/sp22_car_sn5", 1.48234)]
    {
        let read = |path: String| read(&data.join("noizeus").join(path));
        let ((r, rate), (e, _)) = (read(format!("clean/{clean}.wav")), read(format!("noisy/{noisy}.wav")));
        let found = narrow_band_pesq(&r, &e, rate).unwrap();
        assert!((found - recorded).abs() < 0.1, "{noisy}: {found}, recorded {recorded}");
    }
    let (sound, silent) = (noise(8_000, 3), vec![0.0; 8_000]);
    let found = narrow_band_pesq(&sound, &silent, 11_025);
    assert!(matches!(found, Err(MetricError::SampleRate { rate: 11_025, .. })));
    let found = narrow_band_pesq(&sound, &silent, 8_000);
    assert!(matches!(found, Err(MetricError::TooShort { found, .. }) if found == "silence"));
}
