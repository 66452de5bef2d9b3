//! Headers written, read, left open, and refused.

use super::*;

fn fmt(tag: u16, channels: u16, rate: u32, bits: u16, bytes: u16) -> Vec<u8> {
    let frame = channels * bytes;
    let mut fmt = Vec::new();
    fmt.extend(tag.to_le_bytes());
    fmt.extend(channels.to_le_bytes());
    fmt.extend(rate.to_le_bytes());
    fmt.extend((rate * u32::from(frame)).to_le_bytes());
    fmt.extend(frame.to_le_bytes());
    fmt.extend(bits.to_le_bytes());
    fmt
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut chunk = [&name[..], &(body.len() as u32).to_le_bytes(), body].concat();
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

fn riff(name: &[u8; 4], length: u32, chunks: &[Vec<u8>]) -> Vec<u8> {
    [&name[..], &length.to_le_bytes(), b"WAVE", &chunks.concat()].concat()
}

fn data(length: u32) -> Vec<u8> {
    [&b"data"[..], &length.to_le_bytes()].concat()
}

fn spec(sample_rate: u32, channels: u16, format: SampleFormat) -> OutputSpec {
    OutputSpec {
        sample_rate,
        channels: channels.into(),
        format,
        container: crate::Container::Wav,
        length: None,
        channel_mask: None,
        dither: None,
    }
}

fn header_of(bytes: &[u8]) -> Result<WavHeader, ReadError> {
    read_header(&mut &bytes[..])
}

#[test]
fn a_header_written_is_read_again() {
    for format in [SampleFormat::Int8, SampleFormat::Int16, SampleFormat::Int24, SampleFormat::Float32] {
        for channels in [1, 2, 3, 9] {
            for reserve in [false, true] {
                // 3 G samples need RF64, which needs the reserve.
                for samples in [Some(1), Some(5), Some(3 << 30), None] {
                    if !reserve && samples.is_some_and(|n| !fits(n, channels, format, 0)) {
                        continue;
                    }
                    let spec = spec(48_000, channels, format);
                    let bytes = header(&spec, samples, reserve, &[], 0);
                    let read = header_of(&bytes).unwrap();
                    assert_eq!(read.sample_rate, 48_000);
                    assert_eq!((read.channels, read.encoding.format()), (channels.into(), format));
                    assert_eq!(read.length, samples);
                    assert_eq!(bytes.len() % 2, 0);
                    let empty = header(&spec, None, reserve, &[], 0);
                    assert_eq!(bytes.len(), empty.len(), "it can be filled in later");
                }
            }
        }
    }
    let plain = header(&spec(16_000, 1, SampleFormat::Int16), Some(0), false, &[], 0);
    assert_eq!(plain.len(), 44, "the canonical header");
}

#[test]
fn lengths_left_open_reach_to_the_end() {
    let format = chunk(b"fmt ", &fmt(1, 1, 8_000, 16, 2));
    let read = |riff_length, data_length| {
        header_of(&riff(b"RIFF", riff_length, &[format.clone(), data(data_length)])).unwrap().length
    };
    for length in [0, u32::MAX] {
        assert_eq!(read(length, 0), None);
        assert_eq!(read(length, u32::MAX), None);
    }
    assert_eq!(read(36, 0), None, "a recorder that was interrupted");
    assert_eq!(read(100, 0), Some(0), "an empty recording before another chunk");
    assert_eq!(read(0x7fff_f024, 0x7fff_f000), None, "sox to a pipe");
    assert_eq!(read(0x8000_0024, 0x8000_0000), None, "arecord to a pipe");
    assert_eq!(read(136, 100), Some(50));
    assert_eq!(read(5, 101), Some(50), "half a sample does not count, nor the length of all");
}

#[test]
fn chunks_may_come_in_any_number_and_the_format_may_be_extended() {
    let mut extensible = fmt(EXTENSIBLE, 2, 96_000, 32, 4);
    extensible.extend([22, 0, 24, 0, 3, 0, 0, 0, 3, 0]);
    extensible.extend(GUID_TAIL);
    let read = header_of(&riff(
        b"RIFF",
        0,
        &[chunk(b"LIST", &[1; 5]), chunk(b"fmt ", &extensible), chunk(b"odd ", &[0; 7]), data(80)],
    ))
    .unwrap();
    assert_eq!(
        read,
        WavHeader {
            sample_rate: 96_000,
            channels: 2,
            encoding: Encoding { kind: Kind::Float32, big_endian: false },
            length: Some(10),
            channel_mask: Some(3),
            metadata: read.metadata.clone(),
            rest: Some(Rest { skip: 0, is_odd: false, big_endian: false }),
            placeholder_bytes: None,
        }
    );
    for (tag, bits, bytes, kind) in [
        (A_LAW, 8, 1, Kind::ALaw),
        (MU_LAW, 8, 1, Kind::MuLaw),
        (IEEE_FLOAT, 64, 8, Kind::Float64),
        (PCM, 12, 2, Kind::Signed16),
        (PCM, 20, 3, Kind::Signed24),
        (PCM, 24, 4, Kind::Signed24In32),
        (PCM, 32, 4, Kind::Signed32),
    ] {
        let read = header_of(&riff(b"RIFF", 0, &[chunk(b"fmt ", &fmt(tag, 1, 8_000, bits, bytes)), data(8)]))
            .unwrap();
        assert_eq!(read.encoding.kind, kind);
    }
}

#[test]
fn bad_headers_are_refused() {
    let refused = |format: Vec<u8>| header_of(&riff(b"RIFF", 0, &[chunk(b"fmt ", &format), data(8)]));
    for (format, unsupported) in [
        (fmt(PCM, 0, 8_000, 16, 2), false),
        (fmt(PCM, 1, 8_000, 16, 2)[..14].to_vec(), false),
        (fmt(PCM, 1, 8_000, 16, 0), true),
        (fmt(PCM, 1, 8_000, 64, 8), true),
        (fmt(PCM, 1, 8_000, 0, 2), true),
        (fmt(IEEE_FLOAT, 1, 8_000, 16, 2), true),
        (fmt(0x0055, 1, 8_000, 16, 2), true),
    ] {
        match refused(format.clone()) {
            Err(ReadError::NotAudio(_)) => assert!(!unsupported, "{format:?}"),
            Err(ReadError::Unsupported(_)) => assert!(unsupported, "{format:?}"),
            other => panic!("{other:?}"),
        }
    }
    assert!(matches!(refused(fmt(PCM, 1, 7_999, 16, 2)), Err(ReadError::Signal(_))));
    let no_format = riff(b"RIFF", 0, &[data(8)]);
    assert!(matches!(header_of(&no_format), Err(ReadError::NotAudio(_))));
    let huge = riff(b"RIFF", 0, &[[&b"LIST"[..], &u32::MAX.to_le_bytes()].concat()]);
    assert!(matches!(header_of(&huge), Err(ReadError::NotAudio(_))));
}

#[test]
fn a_length_like_a_placeholder_is_believed_if_the_file_is_that_long() {
    let format = chunk(b"fmt ", &fmt(PCM, 1, 8_000, 16, 2));
    let length_of = |data_bytes: u32, file_bytes: u64, rest: &[u8]| {
        let start = riff(b"RIFF", 36 + data_bytes, &[format.clone(), data(data_bytes)]);
        let mut header = header_of(&start).unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(start.len() as u64 + file_bytes).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        io::Write::write_all(&mut file, rest).unwrap();
        file.seek(SeekFrom::Start(start.len() as u64)).unwrap();
        confirm_length(&mut file, &mut header).unwrap();
        assert_eq!(file.stream_position().unwrap(), start.len() as u64);
        assert_eq!(header.length.is_some(), header.rest.is_some());
        header.length
    };
    for bytes in [0x7fff_f000, 0x7fff_f800, 0x8000_0000] {
        let whole = Some(u64::from(bytes) / 2);
        assert_eq!(length_of(bytes, bytes.into(), &[]), whole);
        assert_eq!(length_of(bytes, bytes.into(), b"LIST\0\0\0\0"), whole);
        assert_eq!(length_of(bytes, bytes.into(), &[1; 8]), None, "samples that go on");
        assert_eq!(length_of(bytes, u64::from(bytes) - 2, &[]), None, "a recording that ended before");
    }
}
