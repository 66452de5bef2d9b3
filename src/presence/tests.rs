//! The network against the training framework, and damaged files.

use super::*;
use crate::tensor_file::TensorFileError;

/// The spectrum of `training/export.py`: frames x bins.
pub(super) fn spectrum(bins: usize) -> Vec<f32> {
    let power = |t: usize, bin: usize| {
        let (t, b) = (t as f64, bin as f64);
        (4.0 * (0.05 * t * (1.0 + b % 7.0)).sin() - b / 100.0 + 2.0 * (0.4 * b).cos()).exp() as f32
    };
    (0..48).flat_map(|t| (0..bins).map(move |bin| power(t, bin))).collect()
}

/// Compares with the rows of a table of `training/export.py` for so many bins, and counts them.
pub(super) fn compare_with(table: &str, bins: usize, odds: impl Fn(usize, usize) -> f32) -> usize {
    let mut compared = 0;
    for line in table.lines().skip(1) {
        let fields: Vec<f32> = line.split(',').map(|field| field.parse().unwrap()).collect();
        if fields[0] as usize == bins {
            let found = odds(fields[1] as usize, fields[2] as usize);
            assert!((found - fields[3]).abs() < 0.02, "{line}: {found}");
            compared += 1;
        }
    }
    compared
}

#[test]
fn the_odds_are_those_of_the_training_framework() {
    let net = PresenceNet::built_in().unwrap();
    let mut compared = 0;
    for bins in [513, 257] {
        let odds = net.log_odds(&spectrum(bins), bins);
        compared += compare_with(include_str!("reference.csv"), bins, |frame, bin| odds[frame * bins + bin]);
    }
    assert!(compared > 50);
}

#[test]
fn the_unit_of_power_and_an_odd_last_frame_do_not_matter() {
    let net = PresenceNet::built_in().unwrap();
    let power = spectrum(257);
    let odds = net.log_odds(&power, 257);
    let louder: Vec<f32> = power.iter().map(|x| x * 1e6).collect();
    let difference = odds.iter().zip(net.log_odds(&louder, 257)).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f32::max) < 1e-2);
    assert_eq!(net.log_odds(&power[257..], 257).len(), 47 * 257);
}

#[test]
fn silence_and_a_single_frame_have_odds() {
    let net = PresenceNet::built_in().unwrap();
    for (frames, power) in [(1, 1.0_f32), (3, 0.0), (2, f32::MAX / 1e4)] {
        let odds = net.log_odds(&vec![power; frames * 40], 40);
        assert!(odds.len() == frames * 40 && odds.iter().all(|odds| odds.is_finite()));
    }
    assert!(net.log_odds(&[], 257).is_empty());
}

#[test]
fn damaged_files_are_refused() {
    let good = include_bytes!("../../models/presence-16k.safetensors");
    let read = |bytes: &[u8]| PresenceNet::from_bytes(bytes).unwrap_err();
    assert!(matches!(read(&good[..good.len() / 2]), PresenceNetError::File(TensorFileError::Bytes(_))));
    let text = String::from_utf8_lossy(&good[8..600]).into_owned();
    // The same number of bytes each, so that the rest of the file keeps its place.
    let with = |from: &str, to: &str| {
        assert!(from.len() == to.len() && text.contains(from), "{text}");
        let at = good.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = good.to_vec();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let channels = with(r#"\"channels\": 64"#, r#"\"channels\": 63"#);
    assert!(matches!(read(&channels), PresenceNetError::Size { .. }));
    let huge = with(r#"\"over_frames\": 64"#, r#"\"over_frames\":9e9"#);
    assert!(matches!(read(&huge), PresenceNetError::File(TensorFileError::Metadata("header"))));
    let none = with(r#"\"over_bands\": 40"#, r#"\"over_bands\":  0"#);
    assert!(matches!(read(&none), PresenceNetError::Range { name: "over_bands", value: 0, .. }));
    let many = with(r#"\"turns\": 3,"#, r#"\"turns\":99,"#);
    assert!(matches!(read(&many), PresenceNetError::Range { name: "turns", value: 99, .. }));
    let brief = with(r#"\"window_seconds\": 0.064"#, r#"\"window_seconds\": 1e-09"#);
    assert!(matches!(read(&brief), PresenceNetError::File(TensorFileError::Metadata("window_seconds"))));
    // Biases, scales and weights follow the header in the order of their sizes' types: the last values are weights.
    let length = usize::try_from(u64::from_le_bytes(*good.first_chunk().unwrap())).unwrap();
    let mut infinite = good.to_vec();
    infinite[8 + length..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
    assert!(matches!(read(&infinite), PresenceNetError::Value { name: "scales", index: 0, .. }));
}
