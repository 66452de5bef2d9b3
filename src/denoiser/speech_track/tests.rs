//! Tests of the speech track.

use super::*;
use crate::transform::DEFAULT_WINDOW_SECONDS;

/// The track of a recording with speech of mean square 0.01 in these sections, and noise of mean square 0.0001
/// throughout.
fn track(rate: u32, seconds: f64, sections: &[(f64, f64)]) -> SpeechTrack {
    let stft = Stft::new(rate, DEFAULT_WINDOW_SECONDS).unwrap();
    let (grid, mut meter) = (stft.grid(), TrackMeter::new(&stft));
    let mut found = SpeechTrack::default();
    let frames = ((seconds + DEFAULT_WINDOW_SECONDS) / grid.frame_seconds).ceil() as usize;
    for t in 0..frames {
        let centre = meter.first_seconds + t as f64 * grid.frame_seconds;
        let speaks = sections.iter().any(|&(start, end)| (start..end).contains(&centre));
        let (speech, noise) = (if speaks { 0.01 } else { 0.0 }, 1e-4);
        let square = (speech + noise) / grid.bins as f64;
        let gain = (speech / (speech + noise)) as f32;
        meter.push(&vec![square; grid.bins], &vec![gain; grid.bins]);
        if t % 40 == 0 {
            let part = meter.take();
            assert_eq!(part.first_slot, found.probability.len() as u64);
            found.probability.extend(part.probability);
            found.segments.extend(part.segments);
        }
    }
    meter.finish(seconds);
    let part = meter.take();
    found.probability.extend(part.probability);
    found.segments.extend(part.segments);
    found
}

#[test]
fn sections_have_their_time_level_and_snr() {
    for rate in [8_000, 16_000, 44_100, 48_000] {
        let SpeechTrack { probability, segments, .. } = track(rate, 10.0, &[(2.0, 4.0), (7.0, 7.5)]);
        assert_eq!(probability.len(), 1_000, "{rate} Hz");
        assert!(probability[230..370].iter().all(|&p| p > 0.8), "{rate} Hz");
        assert!(probability[450..680].iter().all(|&p| p < 0.2), "{rate} Hz: {:?}", &probability[450..680]);
        assert_eq!(segments.len(), 2, "{rate} Hz: {segments:?}");
        for (found, (start, end)) in segments.iter().zip([(2.0, 4.0), (7.0, 7.5)]) {
            assert!((found.start_seconds - start).abs() < 0.04, "{rate} Hz: {found:?}");
            assert!((found.end_seconds - end).abs() < 0.04, "{rate} Hz: {found:?}");
            assert!((found.level_dbfs + 20.0).abs() < 0.5, "{rate} Hz: {found:?}");
            assert!((found.snr_db - 20.0).abs() < 0.5, "{rate} Hz: {found:?}");
        }
    }
}

#[test]
fn short_pauses_are_bridged_and_short_sections_left_out() {
    let count = |sections: &[(f64, f64)]| track(16_000, 6.0, sections).segments.len();
    assert_eq!(count(&[(1.0, 2.0), (2.2, 3.0)]), 1);
    assert_eq!(count(&[(1.0, 2.0), (2.5, 3.0)]), 2);
    assert_eq!(count(&[(1.0, 1.5), (4.0, 4.015)]), 1);
    assert_eq!(count(&[]), 0);
    // A section that reaches the end of the recording ends with it.
    let segments = track(16_000, 6.005, &[(5.0, 7.0)]).segments;
    assert_eq!(segments[0].end_seconds, 6.005);
}

#[test]
fn every_length_has_its_slots() {
    for (seconds, slots) in [(0.0001, 1), (0.01, 1), (0.0101, 2), (0.1, 10), (1.004, 101), (3.0, 300)] {
        let found = track(16_000, seconds, &[]);
        assert_eq!(found.probability.len(), slots, "{seconds} s");
    }
}

#[test]
fn silence_has_no_speech() {
    let stft = Stft::new(16_000, DEFAULT_WINDOW_SECONDS).unwrap();
    let (grid, mut meter) = (stft.grid(), TrackMeter::new(&stft));
    for _ in 0..200 {
        meter.push(&vec![0.0; grid.bins], &vec![0.0; grid.bins]);
    }
    meter.finish(3.0);
    let SpeechTrack { probability, segments, .. } = meter.take();
    assert!(probability.len() == 300 && probability.iter().all(|&p| p == 0.0) && segments.is_empty());
}
