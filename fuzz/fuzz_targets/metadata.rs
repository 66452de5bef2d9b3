//! Reads arbitrary bytes as the metadata of a recording: chunks of a WAV file around its samples, or blocks of a FLAC
//! stream before them. The metadata that were read are written and read again.
#![no_main]

mod stream;

use alphamf::signal::{SampleFormat, Signal};
use alphamf_files::{Container, OutputSpec, Reader, Writer, encode};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use stream::Stream;

fuzz_target!(|input: (bool, Vec<u8>, Vec<u8>)| {
    let (is_wav, before, behind) = input;
    let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.25; 64]]).unwrap();
    let container = if is_wav { Container::Wav } else { Container::Flac };
    let plain = encode(&signal, container).unwrap();
    // After the format chunk of WAV, or the stream information of FLAC.
    let place = if is_wav { 36 } else { 42 };
    let mut bytes = [&plain[..place], &before, &plain[place..], &behind].concat();
    if !is_wav {
        bytes[4] = 0;
    }
    let Ok(reader) = Reader::from_seekable("bytes", Cursor::new(bytes)) else { return };
    let metadata = reader.metadata().clone();
    for container in [Container::Wav, Container::Flac] {
        let layout = OutputSpec {
            sample_rate: 8_000,
            channels: 1,
            format: SampleFormat::Int16,
            container,
            length: None,
            channel_mask: reader.channel_mask(),
            dither: None,
        };
        let stream = Stream::default();
        let mut writer = Writer::to_stream("stream", layout, &metadata, stream.clone()).unwrap();
        writer.write_block(signal.channels()).unwrap();
        writer.finish().unwrap();
        let bytes = stream.bytes();
        let again = Reader::from_seekable("bytes", Cursor::new(bytes)).unwrap();
        assert!(again.metadata().tags().count() <= metadata.tags().count());
        assert_eq!(again.read_all().unwrap(), signal);
    }
});
