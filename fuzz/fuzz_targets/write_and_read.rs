//! Writes arbitrary samples in any format and reads them again.
#![no_main]

mod stream;

use alphamf::signal::{SAMPLE_RATE_RANGE, SampleFormat};
use alphamf_files::{Container, Metadata, OutputSpec, Reader, Writer};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use stream::Stream;

fuzz_target!(|input: (u8, u8, u32, Vec<f32>)| {
    let (format, channels, rate, samples) = input;
    let channels = usize::from(channels % 16) + 1;
    let formats = [
        SampleFormat::Int8,
        SampleFormat::Int16,
        SampleFormat::Int24,
        SampleFormat::Int32,
        SampleFormat::Float32,
        SampleFormat::Float64,
    ];
    let layout = OutputSpec {
        sample_rate: SAMPLE_RATE_RANGE.start()
            + rate % (SAMPLE_RATE_RANGE.end() - SAMPLE_RATE_RANGE.start() + 1),
        channels,
        format: formats[usize::from(format) % formats.len()],
        container: if format < 128 { Container::Wav } else { Container::Flac },
        length: None,
        channel_mask: None,
        dither: None,
    };
    let length = samples.len() / channels;
    let signal: Vec<Vec<f32>> =
        (0..channels).map(|c| samples[c * length..(c + 1) * length].to_vec()).collect();
    let stream = Stream::default();
    let Ok(mut writer) = Writer::to_stream("stream", layout, &Metadata::default(), stream.clone()) else {
        assert_eq!(layout.container, Container::Flac);
        return;
    };
    if writer.write_block(&signal).is_err() {
        assert!(signal.iter().flatten().any(|x| !x.is_finite()));
        return;
    }
    writer.finish().unwrap();
    let bytes = stream.bytes();
    if length == 0 {
        return;
    }
    let again = Reader::from_stream("stream", Cursor::new(bytes)).unwrap().read_all().unwrap();
    assert_eq!(again.len(), length);
    let bits = layout.format.bits().min(24);
    let step = (-f32::from(bits - 1)).exp2();
    for (a, b) in signal.iter().flatten().zip(again.channels().iter().flatten()) {
        if !layout.format.is_integer() && layout.container == Container::Wav {
            assert_eq!(a, b);
        } else {
            assert!((a.clamp(-1.0, 1.0) - b).abs() <= 1.001 * step);
        }
    }
});
