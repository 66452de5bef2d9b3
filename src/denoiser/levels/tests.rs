//! Levels of known signals.

use super::*;
use crate::transform::DEFAULT_WINDOW_SECONDS;
use std::f32::consts::{PI, TAU};

/// The levels of samples with this gain in every bin.
fn levels(samples: &[f32], rate: u32, gain: f32) -> SpeechLevels {
    let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
    let (bins, window) = (stft.bins(), stft.window() as f64);
    let mut meter = LevelMeter::new(&stft, 1, QuantileNet::built_in().unwrap());
    for frame in stft.analyse(samples).as_slice().chunks_exact(bins) {
        let squares: Vec<f64> =
            frame.iter().map(|x| 2.0 * f64::from(x.norm_sqr()) / (0.375 * window * window)).collect();
        let gain = vec![gain; bins];
        meter.push(&LevelFrame { squares: &squares, spectra: &[frame], gain: &gain, model: &gain });
    }
    meter.finish(samples.len() as u64, samples.len() as f64 / f64::from(rate));
    meter.take()
}

/// A tone of amplitude 0.1, faded over 0.4 s at both ends: abrupt ends would have power in all bands.
fn tone(rate: u32, seconds: f32, hertz: f32) -> Vec<f32> {
    let step = TAU * hertz / rate as f32;
    let samples = (seconds * rate as f32) as usize;
    let fade = |n: usize| (n as f32 / (0.4 * rate as f32)).min(1.0);
    let envelope = |n: usize| 0.5 - 0.5 * (PI * fade(n.min(samples - 1 - n))).cos();
    (0..samples).map(|n| 0.1 * envelope(n) * (n as f32 * step).sin()).collect()
}

#[test]
fn a_tone_has_its_level_in_its_band_at_every_rate() {
    for (rate, bands) in [(8_000, 15), (16_000, 18), (44_100, 22), (48_000, 23)] {
        let found = levels(&tone(rate, 2.0, 1000.0), rate, 1.0);
        assert_eq!((found.edges_hertz.len(), found.cells.len()), (bands + 1, 20 * bands), "{rate} Hz");
        assert!((found.edges_hertz[0] - 111.36).abs() < 0.01, "{}", found.edges_hertz[0]);
        for slot in found.cells.chunks_exact(bands).skip(5).take(10) {
            let at = |band: usize| slot[band].unwrap().level_dbfs;
            assert!((at(9) + 23.01).abs() < 0.2, "{rate} Hz: {}", at(9));
            assert!(at(8) < -60.0 && at(10) < -60.0, "{rate} Hz: {} {}", at(8), at(10));
        }
    }
}

#[test]
fn speech_is_hardly_louder_than_the_recording() {
    let tone = tone(16_000, 2.0, 1000.0);
    for gain in [0.999, 0.9, 0.5, 0.1] {
        let SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs } =
            levels(&tone, 16_000, gain).cells[10 * 18 + 9].unwrap();
        assert!(lower_dbfs < level_dbfs && level_dbfs < upper_dbfs);
        assert!(level_dbfs < -22.9 && upper_dbfs < -16.9, "{gain}: {level_dbfs} {upper_dbfs}");
    }
}

/// Powers of two scale all numbers exactly. Peaks are at -66, -126 and -187 dBFS.
#[test]
fn intervals_do_not_depend_on_the_level() {
    let samples = noise(16_000, 48_000);
    let expected = levels(&samples, 16_000, 0.5);
    for power in [-10, -20, -30] {
        let soft: Vec<f32> = samples.iter().map(|x| x * 2_f32.powi(power)).collect();
        let shift_db = 20.0 * f64::from(power) * std::f64::consts::LOG10_2;
        for (found, expected) in levels(&soft, 16_000, 0.5).cells.iter().zip(&expected.cells) {
            let (found, expected) = (found.unwrap(), expected.unwrap());
            let pairs = [
                (found.lower_dbfs, expected.lower_dbfs),
                (found.level_dbfs, expected.level_dbfs),
                (found.upper_dbfs, expected.upper_dbfs),
            ];
            for (found, expected) in pairs {
                assert!(
                    (found - shift_db - expected).abs() < 1e-6,
                    "{found} for {expected} dBFS, {shift_db} dB"
                );
            }
        }
    }
}

#[test]
fn a_codec_widens_intervals_the_lower_its_rate() {
    let plain = levels(&tone(16_000, 2.0, 1000.0), 16_000, 0.999);
    let at = |bit_rate: f64| {
        let mut coded = plain.clone();
        coded.widen_for_codec(bit_rate);
        coded.cells[10 * 18 + 9].unwrap()
    };
    let SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs } = plain.cells[10 * 18 + 9].unwrap();
    // The squares of the widths add up; the error at 16 kbit/s is 10 dB / 16^0.6.
    let error_db = 10.0 / 16_f64.powf(0.6);
    let coded = at(16_000.0);
    assert_eq!(coded.level_dbfs, level_dbfs);
    let squares = |level: SpeechLevel| (level.level_dbfs - level.lower_dbfs).powi(2);
    assert!((squares(coded) - (level_dbfs - lower_dbfs).powi(2) - error_db.powi(2)).abs() < 1e-9);
    let upper = [f64::INFINITY, 256_000.0, 64_000.0, 16_000.0, 4_000.0].map(|rate| at(rate).upper_dbfs);
    assert!((upper[0] - upper_dbfs).abs() < 1e-9 && upper.is_sorted() && upper[4] > upper[3], "{upper:?}");
    // Rates below the minimum count as the minimum.
    assert_eq!(at(0.0), at(4_000.0));
}

#[test]
fn silence_has_no_level_and_ends_have_their_slots() {
    assert!(levels(&[0.0; 8_000], 8_000, 1.0).cells.iter().all(Option::is_none));
    assert!(levels(&tone(8_000, 1.0, 500.0), 8_000, 0.0).cells.iter().all(Option::is_none));
    for (samples, slots) in [(1, 1), (400, 1), (800, 1), (801, 2), (8_000, 10), (8_400, 11)] {
        let found = levels(&vec![0.1; samples], 8_000, 1.0);
        assert_eq!(found.cells.len(), slots * 15, "{samples} samples");
    }
}

/// The mean squares of a signal in bands and slots, by one transform of the zero-padded signal.
fn mean_squares(samples: &[f32], rate: u32, edges: &[f64]) -> Vec<f64> {
    let (rate, length) = (f64::from(rate), 2 * samples.len());
    let (forward, inverse) = (alphamf_fourier::forward::<f32>(length), alphamf_fourier::inverse(length));
    let mut padded = samples.to_vec();
    padded.resize(length, 0.0);
    let mut spectrum = forward.make_output_vec();
    forward.process(&mut padded, &mut spectrum).unwrap();
    let slots = (samples.len() as f64 / rate / SLOT_SECONDS - 1e-9).ceil() as usize;
    let (bands, at) = (edges.len() - 1, |slot: usize| (slot as f64 * SLOT_SECONDS * rate).round() as usize);
    let mut squares = vec![0.0; slots * bands];
    for (band, edges) in edges.windows(2).enumerate() {
        let inside = |bin: usize| (edges[0]..edges[1]).contains(&(bin as f64 * rate / length as f64));
        let mut part: Vec<Complex<f32>> =
            (0..).zip(&spectrum).map(|(bin, x)| if inside(bin) { *x } else { Complex::default() }).collect();
        let mut filtered = inverse.make_output_vec();
        inverse.process(&mut part, &mut filtered).unwrap();
        for slot in 0..slots {
            let filtered = &filtered[at(slot)..at(slot + 1).min(samples.len())];
            let sum: f64 = filtered.iter().map(|x| (f64::from(*x) / length as f64).powi(2)).sum();
            squares[slot * bands + band] = sum / filtered.len() as f64;
        }
    }
    squares
}

/// Noise that swells and ebbs, five times as loud between 1 and 1.4 s.
fn noise(rate: u32, samples: usize) -> Vec<f32> {
    let value = |n: usize| (n as u32).wrapping_mul(2_654_435_761).rotate_left(13).wrapping_mul(2_246_822_519);
    let envelope = |n: usize| {
        let seconds = n as f32 / rate as f32;
        let burst = if (1.0..1.4).contains(&seconds) { 5.0 } else { 1.0 };
        burst * (PI * n as f32 / samples as f32).sin().powi(2)
    };
    (0..samples).map(|n| envelope(n) * ((value(n) >> 8) as f32 / 8_388_608.0 - 1.0) * 0.1).collect()
}

#[test]
fn slots_have_the_mean_squares_of_ideal_filters() {
    for (rate, samples) in [(8_000, 35_500), (11_025, 44_100), (16_000, 88_000), (44_100, 100_000)] {
        let samples = noise(rate, samples);
        let edges: Vec<f64> = (0..14).map(|k| 111.36 * libm::exp2(f64::from(k) / 3.0)).collect();
        let plan = Arc::new(SlotPlan::new(rate, SLOT_SECONDS, &edges));
        let truth = mean_squares(&samples, rate, &edges);
        let found = |size: usize| {
            let mut bank = SlotBank::new(plan.clone());
            samples.chunks(size).for_each(|chunk| bank.push(chunk));
            bank.finish(samples.len() as u64, (truth.len() / 13) as u64);
            bank.rows
        };
        let rows = found(rate as usize);
        assert!(rows == found(997) && rows.len() == truth.len(), "{rate} Hz");
        let loud = truth.iter().copied().fold(0.0, f64::max);
        let errors: Vec<f64> = rows
            .iter()
            .zip(&truth)
            .filter(|(_, truth)| **truth > 1e-3 * loud)
            .map(|(row, truth)| 10.0 * libm::log10(row / truth))
            .collect();
        let mean = (errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64).sqrt();
        assert!(
            errors.len() > truth.len() / 4 && mean < 0.2,
            "{rate} Hz: {} of {}, {mean} dB",
            errors.len(),
            truth.len()
        );
    }
}
