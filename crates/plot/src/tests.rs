//! Tests of pictures and charts.

use super::axis::{time_label, time_ticks};
use super::canvas::{CHARACTERS, FONT, in_font};
use super::columns::ROWS;
use super::tracks::{Envelope, Means};
use super::*;

#[test]
fn axes_have_round_ends_around_the_values() {
    for (values, low, high, step) in [
        (vec![0.3, 9.1], 0.0, 10.0, 2.0),
        (vec![-4.2, 17.0], -5.0, 20.0, 5.0),
        (vec![0.58, 0.91], 0.5, 1.0, 0.1),
        (vec![3.0], 2.4, 3.6, 0.2),
    ] {
        let axis = Axis::over(values.iter().copied());
        assert!((axis.low - low).abs() < 1e-9 && (axis.high - high).abs() < 1e-9, "{axis:?}");
        assert!((axis.step - step).abs() < 1e-9, "{axis:?}");
    }
    let nothing = Axis::over(std::iter::empty());
    assert_eq!((nothing.low, nothing.high), (0.0, 1.0));
    let labels: Vec<_> = {
        let axis = Axis::over([-1.0, 1.0].into_iter());
        axis.ticks().map(|t| axis.label(t)).collect()
    };
    assert_eq!(labels, ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]);
    let tenths = Axis { low: 0.0, high: 0.2, step: 0.05 };
    assert_eq!(tenths.label(0.15), "0.15");
}

#[test]
fn times_are_minutes_and_seconds() {
    for (seconds, step, count) in [
        (2.0, 0.2, 11),
        (60.0, 5.0, 13),
        (0.5, 0.05, 11),
        (3_600.0, 300.0, 13),
        (7.3, 1.0, 8),
        (0.008, 0.001, 9),
    ] {
        let (ticks, found) = time_ticks(seconds);
        assert_eq!((found, ticks.len()), (step, count), "{seconds}");
    }
    for (seconds, step, hours, label) in [
        (0.4, 0.2, false, "0:00.4"),
        (0.003, 0.001, false, "0:00.003"),
        (65.0, 5.0, false, "1:05"),
        (59.999, 0.01, false, "1:00.00"),
        (3_725.0, 300.0, true, "1:02:05"),
    ] {
        assert_eq!(time_label(seconds, step, hours), label);
    }
}

#[test]
fn scales_invert_and_label_round_frequencies() {
    for scale in [FrequencyScale::Linear, FrequencyScale::Mel, FrequencyScale::Log] {
        for highest in [4_000.0, 8_000.0, 24_000.0] {
            for fraction in [0.0, 0.3, 1.0] {
                let back = scale.fraction(scale.hertz(fraction, highest), highest);
                assert!((back - fraction).abs() < 1e-9, "{scale:?}");
            }
            let places: Vec<f64> =
                scale.ticks(highest, 8).iter().map(|k| scale.fraction(1000.0 * k, highest)).collect();
            assert!((4..=8).contains(&places.len()), "{scale:?} {highest}: {places:?}");
            assert!(
                places.windows(2).all(|pair| pair[1] - pair[0] >= 0.1),
                "{scale:?} {highest}: {places:?}"
            );
            assert!(places.iter().all(|place| (0.0..=1.0 + 1e-9).contains(place)));
        }
    }
    let linear = |highest| FrequencyScale::Linear.ticks(highest, 8);
    assert_eq!(linear(4_000.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(linear(8_000.0), [0.0, 2.0, 4.0, 6.0, 8.0]);
    assert_eq!(linear(24_000.0), [0.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0]);
}

#[test]
fn long_recordings_keep_means_in_few_columns() {
    let mut columns = Columns::new(3_000, FrequencyScale::Linear, 24_000.0);
    for frame in 0..5_000 {
        let values: Vec<f32> =
            (0..3_000).map(|bin| if (frame, bin) == (4_321, 1_234) { 40.0 } else { 0.0 }).collect();
        columns.push(&values);
    }
    // Four frames to a column, and ten bins to a row.
    assert_eq!((columns.frames(), columns.largest()), (5_000, 1.0));
    let shades = columns.shades(1_250, 5_000.0, |value| value);
    let brightest = (0..shades.len()).max_by_key(|&i| shades[i]).unwrap();
    assert_eq!((brightest / 1_250, brightest % 1_250), (ROWS - 1 - 123, 4_321 / 4));
    assert!(columns.png(100, |x| x, 0.0, 1.0).is_some());
    assert!(Columns::new(5, FrequencyScale::Mel, 8_000.0).png(100, |x| x, 0.0, 1.0).is_none());
}

#[test]
fn envelopes_and_means_stay_small_and_true() {
    let mut envelope = Envelope::new();
    let mut samples = vec![0.1_f32; 300_000];
    (samples[7], samples[250_000]) = (-0.5, 0.75);
    for block in samples.chunks(777) {
        envelope.push(&[block]);
    }
    let columns: Vec<_> = envelope.columns().collect();
    assert!(columns.len() <= 4_096 && columns.len() > 2_000, "{}", columns.len());
    assert_eq!((columns[0].2, columns[0].3, envelope.peak()), (-0.5, 0.1, 0.75));
    assert_eq!(columns.last().unwrap().1, 1.0);
    let loud = columns.iter().find(|column| column.3 == 0.75).unwrap();
    let place = 250_000.0 / 300_000.0;
    assert!((loud.0..loud.1).contains(&place), "{loud:?}");

    let mut means = Means::new();
    for slot in 0..10_000 {
        means.push([f64::from(slot), 1.0]);
    }
    let columns: Vec<_> = means.columns().collect();
    assert_eq!(columns.len(), 2_500);
    assert_eq!(columns[1], (6.0, [5.5, 1.0]));
    assert_eq!(means.smoothed(12)[1].1, [(1.5 + 5.5 + 9.5) / 3.0, 1.0]);
}

/// For lines wider than a pixel, plotters would draw spikes at narrow angles.
#[test]
fn a_dense_line_stays_within_its_values() {
    let (width, height) = (300.0, 200.0);
    let value = |i: u32| f64::from(i.wrapping_mul(2_654_435_761) >> 24) / 256.0;
    let noise: Vec<(f64, f64)> =
        (0..800).map(|i| (20.0 + 0.25 * f64::from(i), 75.0 + 50.0 * value(i))).collect();
    let png = canvas::bitmap((width, height), |canvas| {
        canvas.line(&noise, canvas::opaque(canvas::PALETTE[1]), 1.5)
    });
    let mut reader = png::Decoder::new(std::io::Cursor::new(png.unwrap())).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut pixels).unwrap();
    let row = 3 * 2 * width as usize;
    let inked = |y: usize| pixels[y * row..(y + 1) * row].iter().any(|&value| value != 255);
    let rows: Vec<usize> = (0..2 * height as usize).filter(|&y| inked(y)).collect();
    let [first, last] = [rows[0], rows[rows.len() - 1]];
    assert!((148..=152).contains(&first) && (248..=252).contains(&last), "rows {first} to {last}");
}

#[test]
fn characters_that_the_font_lacks_are_question_marks_in_a_bitmap() {
    for (name, shown) in [
        ("Interview, \u{dc}bung 1.wav", "Interview, \u{dc}bung 1.wav"),
        ("\u{65e5}\u{672c}\u{8a9e}.wav", "???.wav"),
        ("Re\u{301}union.wav", "Reunion.wav"),
    ] {
        assert_eq!(in_font(name.chars()).collect::<String>(), shown);
    }
    // The font's table of segments, which ends with the segment of 0xffff.
    let number = |at: usize| u16::from_be_bytes([FONT[at], FONT[at + 1]]);
    let offset = |at: usize| usize::from(number(at)) << 16 | usize::from(number(at + 2));
    let record =
        (0..usize::from(number(4))).map(|n| 12 + 16 * n).find(|&at| &FONT[at..at + 4] == b"cmap").unwrap();
    let table = offset(record + 8);
    let table = table + offset(table + 8);
    assert_eq!(number(table), 4, "format of the table");
    let length = usize::from(number(table + 6));
    let found: Vec<_> = (0..length / 2 - 1)
        .map(|n| u32::from(number(table + 16 + length + 2 * n))..=u32::from(number(table + 14 + 2 * n)))
        .collect();
    assert_eq!(found, CHARACTERS.map(|range| u32::from(*range.start())..=u32::from(*range.end())));
}
