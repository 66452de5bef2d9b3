//! Every invariant of a signal is checked, and its violation named.

use alphamf_signal::{InvalidSignal, SampleFormat, Signal};

fn signal(sample_rate: u32, channels: &[&[f32]]) -> Result<Signal, InvalidSignal> {
    Signal::new(sample_rate, SampleFormat::Int16, channels.iter().map(|c| c.to_vec()).collect())
}

#[test]
fn every_invariant_is_checked_and_named() {
    assert_eq!(signal(7_999, &[&[0.0]]), Err(InvalidSignal::SampleRate { found: 7_999 }));
    assert_eq!(signal(192_001, &[&[0.0]]), Err(InvalidSignal::SampleRate { found: 192_001 }));
    assert_eq!(signal(8_000, &[]), Err(InvalidSignal::NoChannels));
    assert_eq!(signal(8_000, &[&[0.0][..]; 257]), Err(InvalidSignal::TooManyChannels { found: 257 }));
    assert!(signal(8_000, &[&[0.0][..]; 256]).is_ok());
    assert_eq!(signal(8_000, &[&[], &[]]), Err(InvalidSignal::NoSamples));
    assert_eq!(
        signal(8_000, &[&[0.0, 0.0], &[0.0]]),
        Err(InvalidSignal::UnequalChannels { channel: 1, found: 1, expected: 2 })
    );
    let unequal = signal(8_000, &[&[0.0, 0.0], &[0.0]]).unwrap_err();
    assert_eq!(unequal.to_string(), "channel 2 has 1 sample: expected 2, as in channel 1");
    let infinite = signal(8_000, &[&[0.0, 0.0], &[0.0, f32::NEG_INFINITY]]).unwrap_err();
    assert_eq!(infinite.to_string(), "sample 2 of channel 2 is -inf: expected a finite value");
    assert!(signal(8_000, &[&[f32::NAN]]).is_err());

    let signal = signal(192_000, &[&[0.0; 48_000], &[0.5; 48_000]]).unwrap();
    assert_eq!((signal.len(), signal.channels().len(), signal.duration()), (48_000, 2, 0.25));
}
