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

/// Log odds of speech, bins x frames.
fn log_odds(net: &PresenceNet, power: &[f32], bins: usize) -> Vec<f32> {
    net.band_log_odds(power, bins, f64::INFINITY).on_bins(bins)
}

/// Compares log odds with the rows for `bins` bins in a table of `training/export.py`; returns the number of rows
/// compared.
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
    let large = (PresenceNet::built_in().unwrap(), include_str!("reference.csv"));
    let small = (PresenceNet::built_in_small().unwrap(), include_str!("reference-small.csv"));
    for (net, table) in [large, small] {
        let mut compared = 0;
        for bins in [513, 257] {
            let odds = log_odds(&net, &spectrum(bins), bins);
            compared += compare_with(table, bins, |frame, bin| odds[frame * bins + bin]);
        }
        assert!(compared > 50);
    }
}

#[test]
fn the_unit_of_power_and_an_odd_last_frame_do_not_matter() {
    let net = PresenceNet::built_in().unwrap();
    let power = spectrum(257);
    let odds = log_odds(&net, &power, 257);
    let louder: Vec<f32> = power.iter().map(|x| x * 1e6).collect();
    let difference = odds.iter().zip(log_odds(&net, &louder, 257)).map(|(a, b)| (a - b).abs());
    assert!(difference.fold(0.0, f32::max) < 1e-2);
    assert_eq!(log_odds(&net, &power[257..], 257).len(), 47 * 257);
}

#[test]
fn a_second_estimate_raises_the_odds_of_soft_passages_alone() {
    let net = PresenceNet::built_in().unwrap();
    // 3 s, and the same 20 dB softer.
    let loud = spectrum(513).repeat(4);
    let power: Vec<f32> = loud.iter().copied().chain(loud.iter().map(|x| x * 0.01)).collect();
    let [once, twice] = [f64::INFINITY, 1.0].map(|variation| net.band_log_odds(&power, 513, variation).odds);
    let loud_odds = 160 * BANDS;
    assert_eq!(once[..loud_odds], twice[..loud_odds]);
    let raised = twice.iter().zip(&once).map(|(twice, once)| twice - once);
    let (least, most) = raised.fold((f32::MAX, f32::MIN), |(least, most), x| (least.min(x), most.max(x)));
    assert!(least == 0.0 && most > 1.0, "{least} to {most}");
}

#[test]
fn silence_and_a_single_frame_have_odds() {
    let net = PresenceNet::built_in().unwrap();
    for (frames, power) in [(1, 1.0_f32), (3, 0.0), (2, f32::MAX / 1e4)] {
        let odds = log_odds(&net, &vec![power; frames * 40], 40);
        assert!(odds.len() == frames * 40 && odds.iter().all(|odds| odds.is_finite()));
    }
    assert!(log_odds(&net, &[], 257).is_empty());
}

#[test]
fn damaged_files_are_refused() {
    let whole = &include_bytes!("../../models/presence-16k.safetensors")[..];
    let causal = &include_bytes!("../../models/presence-live-16k.safetensors")[..];
    for (good, kind, other) in [(whole, Kind::WHOLE, Kind::CAUSAL), (causal, Kind::CAUSAL, Kind::WHOLE)] {
        assert!(Network::read(good, &kind).is_ok());
        let read = |bytes: &[u8]| Network::read(bytes, &kind).unwrap_err();
        let half = &good[..good.len() / 2];
        assert!(matches!(read(half), PresenceNetError::File(TensorFileError::Bytes(_))));
        let swapped = Network::read(good, &other).unwrap_err();
        assert!(matches!(swapped, PresenceNetError::File(TensorFileError::Format { .. })), "{swapped}");
        // The replacement has the same number of bytes, so that all offsets in the file stay valid.
        let with = |name: &str, value: &str| {
            let key = format!(r#"\"{name}\":"#);
            let at = good.windows(key.len()).position(|window| window == key.as_bytes()).unwrap() + key.len();
            let length = good[at..].iter().position(|&byte| byte == b',').unwrap();
            let mut bytes = good.to_vec();
            bytes[at..at + length].copy_from_slice(format!("{value:>length$}").as_bytes());
            read(&bytes)
        };
        assert!(matches!(with("channels", "1"), PresenceNetError::Size { .. }));
        let huge = with("over_frames", "9e9");
        assert!(
            matches!(huge, PresenceNetError::File(TensorFileError::Header(reason)) if reason.contains("9e9") || reason.contains("float"))
        );
        for name in ["channels", "over_bands", "over_frames", "turns"] {
            let none = with(name, "0");
            assert!(matches!(none, PresenceNetError::Range { name: of, value: 0, .. } if of == name));
        }
        assert!(matches!(with("turns", "99"), PresenceNetError::Range { name: "turns", value: 99, .. }));
        for name in ["near", "after"] {
            let none = with(name, "[0]");
            assert!(matches!(none, PresenceNetError::Range { name: of, value: 0, .. } if of == name));
        }
        let brief = with("window_seconds", "1e-09");
        assert!(
            matches!(brief, PresenceNetError::File(TensorFileError::Header(reason)) if reason.contains("window_seconds"))
        );
        // Scales, biases and weights follow the header, ordered by the size of their element types: scales are first.
        let length = usize::try_from(u64::from_le_bytes(*good.first_chunk().unwrap())).unwrap();
        let mut infinite = good.to_vec();
        infinite[8 + length..][..4].copy_from_slice(&f32::INFINITY.to_le_bytes());
        assert!(matches!(read(&infinite), PresenceNetError::Value { name: "scales", index: 0, .. }));
    }
}
