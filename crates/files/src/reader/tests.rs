//! Reading of good, damaged and misleading files.

use super::*;
use crate::wav;
use crate::{Container, OutputSpec, Writer, write};
use alphamf_signal::MAX_CHANNELS;
use std::fs;
use std::io;
use tempfile::TempDir;

fn reason<T: std::fmt::Debug>(path: &Path, result: Result<T, Error>) -> ReadError {
    match result {
        Err(Error::Read { path: named, reason }) => {
            assert_eq!(named, path);
            reason
        }
        other => panic!("{other:?}"),
    }
}

fn spec(channels: usize, format: SampleFormat) -> OutputSpec {
    OutputSpec {
        sample_rate: 8_000,
        channels,
        format,
        container: Container::Wav,
        length: None,
        channel_mask: None,
        dither: None,
    }
}

#[test]
fn bad_input_is_named() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let read_error = || reason(&path, read(&path));
    assert!(matches!(read_error(), ReadError::Missing));
    assert_eq!(read(&path).unwrap_err().to_string(), format!("{}: no such file", path.display()));
    assert!(matches!(reason(folder.path(), read(folder.path())), ReadError::Io(_)));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("none.wav", &path).unwrap();
        let ReadError::Io(error) = read_error() else { panic!() };
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(error.to_string(), "it is a link to a file that does not exist");
        fs::remove_file(&path).unwrap();
    }
    fs::write(&path, []).unwrap();
    assert!(matches!(read_error(), ReadError::Empty));
    fs::write(&path, "This is not audio, just text. ".repeat(1_000)).unwrap();
    assert!(matches!(read_error(), ReadError::NotAudio(_)));

    let signal = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.5; 100]; 2]).unwrap();
    write(&path, &signal).unwrap();
    let bytes = fs::read(&path).unwrap();
    let header = bytes.len() - 800;
    let mut bad = bytes.clone();
    bad[header + 12..header + 16].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, &bad).unwrap();
    assert!(matches!(
        read_error(),
        ReadError::Signal(InvalidSignal::NotFinite { channel: 1, sample: 1, .. })
    ));

    let mut bad = bytes.clone();
    bad[24..28].copy_from_slice(&4_000_u32.to_le_bytes());
    fs::write(&path, &bad).unwrap();
    assert!(matches!(read_error(), ReadError::Signal(InvalidSignal::SampleRate { found: 4_000 })));

    let mut empty = bytes[..header].to_vec();
    empty[4..8].copy_from_slice(&1_000_u32.to_le_bytes());
    empty[header - 4..].copy_from_slice(&[0; 4]);
    fs::write(&path, &empty).unwrap();
    assert!(matches!(read_error(), ReadError::Signal(InvalidSignal::NoSamples)));
}

#[test]
fn truncation_at_every_byte_is_noticed() {
    let folder = TempDir::new().unwrap();
    for name in ["a.wav", "a.flac"] {
        let path = folder.path().join(name);
        let samples = (0..300).map(|n| (n as f32 * 0.3).sin() * 0.5).collect();
        let signal = Signal::new(8_000, SampleFormat::Int16, vec![samples; 2]).unwrap();
        write(&path, &signal).unwrap();
        let bytes = fs::read(&path).unwrap();
        for length in 1..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            match reason(&path, read(&path)) {
                ReadError::NotAudio(_) => assert!(name == "a.flac" || length < 44),
                ReadError::Truncated { expected: 300, found } => {
                    let expected = if name == "a.wav" { (length as u64 - 44) / 4 } else { 0 };
                    assert_eq!(found, expected);
                }
                other => panic!("{name}, {length} bytes: {other:?}"),
            }
        }
    }
}

/// Allocations depend on the bytes that are present, not on the lengths that a header declares.
#[test]
fn huge_announcements_cost_nothing() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    for channels in [1, MAX_CHANNELS as u16] {
        let spec = spec(channels.into(), SampleFormat::Int8);
        let mut bytes = wav::header(&spec, Some(10_000), false, &[], 0);
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&0xf000_0000_u32.to_le_bytes());
        bytes.extend(vec![0; usize::from(channels)]);
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(reason(&path, read(&path)), ReadError::Truncated { found: 1, .. }));
    }
    let spec = spec(u16::MAX.into(), SampleFormat::Int8);
    fs::write(&path, wav::header(&spec, Some(1), false, &[], 0)).unwrap();
    assert!(matches!(
        reason(&path, read(&path)),
        ReadError::Signal(InvalidSignal::TooManyChannels { found: 65_535 })
    ));
}

#[test]
fn blocks_make_up_the_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.flac");
    let samples: Vec<f32> = (0..70_000).map(|n| (n % 1_000) as f32 / 1_024.0).collect();
    let signal = Signal::new(44_100, SampleFormat::Int16, vec![samples.clone(), samples]).unwrap();
    write(&path, &signal).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.length(), Some(70_000));
    let mut position = 0;
    for samples in [0, 1, 4_095, 30_000, 40_000, 5] {
        let block = reader.read_block(samples).unwrap();
        let end = (position + samples).min(70_000);
        assert_eq!(block[1], signal.channels()[1][position..end]);
        position = end;
    }
    assert_eq!(reader.read_block(5).unwrap(), vec![Vec::<f32>::new(); 2]);
}

#[test]
fn a_live_stream_is_read_in_real_time() {
    /// Returns three bytes at a time, and fails if asked for more than is needed.
    struct Trickle(Vec<u8>, usize);
    impl Read for Trickle {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            let count = bytes.len().min(3).min(self.0.len() - self.1);
            if count == 0 && !bytes.is_empty() {
                return Err(io::Error::other("nothing yet"));
            }
            bytes[..count].copy_from_slice(&self.0[self.1..self.1 + count]);
            self.1 += count;
            Ok(count)
        }
    }
    let raw: RawFormat = "8000:2:s16".parse().unwrap();
    let bytes = (0..80).collect();
    let mut reader = Reader::from_raw_stream("stdin", Trickle(bytes, 0), raw);
    assert_eq!(reader.read_block(20).unwrap()[0].len(), 20);
    assert!(matches!(reason(Path::new("stdin"), reader.read_block(1)), ReadError::Io(_)));

    // Available samples are returned, whether or not the header declares a length.
    for length in [None, Some(1_000)] {
        let mut bytes = wav::header(&spec(2, SampleFormat::Int16), length, false, &[], 0);
        bytes.extend([1; 80]);
        let mut reader = Reader::from_stream("stdin", Trickle(bytes, 0)).unwrap();
        let mut found = 0;
        while found < 20 {
            let block = reader.read_available(2).unwrap();
            assert!((1..=2).contains(&block[0].len()), "{length:?}, at {found}");
            found += block[0].len();
        }
        assert!(matches!(reason(Path::new("stdin"), reader.read_available(2)), ReadError::Io(_)));
    }
}

#[test]
fn raw_samples_must_be_whole() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.raw");
    let raw: RawFormat = "8000:2:s16be".parse().unwrap();
    fs::write(&path, [0x40, 0, 0xc0, 0, 0, 1, 0, 0]).unwrap();
    let signal = Reader::open_raw(&path, raw).unwrap().read_all().unwrap();
    assert_eq!(signal.channels(), [[0.5, 1.0 / 32_768.0], [-0.5, 0.0]]);
    fs::write(&path, [0; 7]).unwrap();
    assert!(matches!(
        reason(&path, Reader::open_raw(&path, raw).unwrap().read_all()),
        ReadError::PartialSample { found: 3, expected: 4 }
    ));
    for (bytes, found) in [(5, "1 trailing byte;"), (7, "3 trailing bytes;")] {
        fs::write(&path, vec![0; bytes]).unwrap();
        let error = reason(&path, Reader::open_raw(&path, raw).unwrap().read_all());
        assert_eq!(error.to_string(), format!("{found} a frame has 4: check the raw format"));
    }
    fs::write(&path, []).unwrap();
    assert!(matches!(
        reason(&path, Reader::open_raw(&path, raw).unwrap().read_all()),
        ReadError::Signal(InvalidSignal::NoSamples)
    ));
}

/// The samples beyond 4 GiB of an RF64 file; the file has holes and takes no space.
#[test]
#[cfg(target_os = "linux")]
fn recordings_beyond_4_gib_keep_their_length() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("long.wav");
    let length = 3_u64 << 30;
    let header = wav::header(&spec(1, SampleFormat::Int16), Some(length), true, &[], 0);
    fs::write(&path, &header).unwrap();
    let file = fs::File::options().append(true).open(&path).unwrap();
    file.set_len(header.len() as u64 + 2 * length).unwrap();
    assert_eq!(Reader::open(&path).unwrap().length(), Some(length));
}

#[test]
fn a_length_announced_too_short_is_no_harm() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let spec = OutputSpec { length: Some(1), ..spec(1, SampleFormat::Int8) };
    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    writer.write_block(&[vec![0.5; 7]]).unwrap();
    writer.finish().unwrap();
    assert_eq!(read(&path).unwrap().channels(), [[0.5; 7]]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 44 + 8);
}

/// Frames of MPEG-1 layer III, 128 kbit/s at 44.1 kHz, that decode to silence.
fn silent_mp3(frames: usize) -> Vec<u8> {
    let mut frame = vec![0; 417];
    frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0xc0]);
    frame.repeat(frames)
}

/// Video data contain bytes that resemble headers of MPEG audio.
#[test]
fn stray_frame_headers_are_no_recording() {
    let frame = silent_mp3(1);
    let stray: Vec<u8> = (0..2_000_u32)
        .flat_map(|n| {
            let data = n
                .wrapping_mul(2_654_435_761)
                .to_le_bytes()
                .map(|byte| byte & 0x7f)
                .repeat(n as usize % 9 + 1);
            [&frame[..4], &data].concat()
        })
        .collect();
    let transport = |before: usize| -> Vec<u8> {
        let packet = |bytes: &[u8]| [&vec![0; before][..], &[0x47, 0x40, 0x11, 0x10], bytes].concat();
        stray.chunks_exact(184).flat_map(packet).collect()
    };
    let containers: [(&str, Vec<u8>); 9] = [
        ("transport", transport(0)),
        ("transport", transport(4)),
        ("program", [b"\0\0\x01\xba", &stray[..]].concat()),
        ("ASF", [b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", &stray[..]].concat()),
        ("Flash", [b"FLV\x01", &stray[..]].concat()),
        ("AVI", [b"RIFF\0\0\0\0AVI LIST", &stray[..]].concat()),
        ("MXF", [b"\x06\x0e\x2b\x34\x02\x05\x01\x01", &stray[..]].concat()),
        ("RealMedia", [b".RMF", &stray[..]].concat()),
        ("NUT", [b"nut/multimedia container\0", &stray[..]].concat()),
    ];
    for (name, bytes) in containers {
        for result in [
            Reader::from_seekable("a", io::Cursor::new(bytes.clone())),
            Reader::from_stream("a", io::Cursor::new(bytes)),
        ] {
            let reason = reason(Path::new("a"), result);
            assert!(
                matches!(&reason, ReadError::Unsupported(what) if what.contains(name)),
                "{name}: {reason:?}"
            );
        }
    }
    for start in [&b"unknown"[..], b"\x1a\x45\xdf\xa3", b"OggS"] {
        let bytes = [start, &stray].concat();
        for result in [
            Reader::from_seekable("a", io::Cursor::new(bytes.clone())),
            Reader::from_stream("a", io::Cursor::new(bytes)),
        ] {
            assert!(matches!(reason(Path::new("a"), result), ReadError::NotAudio(_)), "{start:?}");
        }
    }
}

#[test]
fn frames_behind_other_bytes_are_read() {
    let rubbish = |count: usize| vec![0x55; count];
    for before in [vec![], rubbish(7), rubbish(100_000), b"ID3\x03\0\0\0\0\0\x0a0123456789".to_vec()] {
        let bytes = [&before[..], &silent_mp3(40)].concat();
        for reader in [
            Reader::from_seekable("a", io::Cursor::new(bytes.clone())),
            Reader::from_stream("a", io::Cursor::new(bytes)),
        ] {
            let length = reader.unwrap().read_all().unwrap().len();
            assert!((38 * 1152..=40 * 1152).contains(&length), "{} bytes before: {length}", before.len());
        }
    }
}

/// A frame of two channels in FLAC of 32 bits, of which the second is their difference, of 33 bits.
#[test]
fn wide_differences_in_flac_are_refused() {
    let information =
        [&[0, 16, 0, 16][..], &[0; 6], &[0x0a, 0xc4, 0x43, 0xf0, 0, 0, 0, 16], &[0; 16]].concat();
    let frame = |channels: u8| {
        let header = [0xff, 0xf8, 0x69, channels << 4 | 0xe, 0, 15];
        let sum = header.iter().fold(0_u8, |sum, byte| {
            (0..8).fold(sum ^ byte, |sum, _| sum << 1 ^ if sum & 0x80 != 0 { 7 } else { 0 })
        });
        // Constant subframes; the last one takes a bit more where it is a difference.
        let samples = if channels == 8 {
            vec![0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        } else {
            vec![0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0]
        };
        let frame = [&header[..], &[sum], &samples].concat();
        let sum = frame.iter().fold(0_u16, |sum, byte| {
            (0..8).fold(sum ^ u16::from(*byte) << 8, |sum, _| {
                sum << 1 ^ if sum >> 15 == 1 { 0x8005 } else { 0 }
            })
        });
        [&frame[..], &sum.to_be_bytes()].concat()
    };
    let file = |channels: u8| [b"fLaC\x80\0\0\x22", &information[..], &frame(channels)].concat();
    let read =
        |channels: u8| Reader::from_seekable("a.flac", io::Cursor::new(file(channels))).map(Reader::read_all);
    let independent = read(1).unwrap().unwrap();
    assert_eq!(
        (independent.channels()[0][0], independent.len(), independent.format()),
        (0.5, 16, SampleFormat::Int32)
    );
    assert!(matches!(reason(Path::new("a.flac"), read(8)), ReadError::Unsupported(_)));
}

/// Files of interrupted recorders.
#[test]
fn au_without_a_length_is_read_to_its_end() {
    for length in [0, u32::MAX] {
        let header = [24, length, 3, 8_000, 1].map(u32::to_be_bytes).concat();
        let bytes = [b".snd", &header[..], &[0x40, 0, 0xc0, 0]].concat();
        let signal = Reader::from_seekable("a.au", io::Cursor::new(bytes)).unwrap().read_all().unwrap();
        assert_eq!(signal.channels(), [vec![0.5, -0.5]], "{length}");
    }
}

/// Samples of Apple's programs and of libsndfile. ffmpeg reads them as samples of 16 bits.
#[test]
fn little_endian_samples_of_aiff_c_are_read() {
    let rate = [0x40, 0x0b, 0xfa, 0, 0, 0, 0, 0, 0, 0];
    for (name, bits, samples) in [
        (b"sowt", 16, &b"\0\x40\0\xc0"[..]),
        (b"sowt", 24, &b"\0\0\x40\0\0\xc0"[..]),
        (b"42n1", 24, &b"\0\0\x40\0\0\xc0"[..]),
        (b"sowt", 32, &b"\0\0\0\x40\0\0\0\xc0"[..]),
        (b"23ni", 32, &b"\0\0\0\x40\0\0\0\xc0"[..]),
    ] {
        let common = [&b"COMM\0\0\0\x18\0\x01\0\0\0\x02\0"[..], &[bits], &rate, name, &[0; 2]].concat();
        let sound = [&b"SSND"[..], &(8 + samples.len() as u32).to_be_bytes(), &[0; 8], samples].concat();
        // A chunk of an odd length before it.
        let chunks = [&b"AIFCFVER\0\0\0\x04\xa2\x80\x51\x40ANNO\0\0\0\x01x\0"[..], &common, &sound].concat();
        let bytes = [&b"FORM"[..], &(chunks.len() as u32).to_be_bytes(), &chunks].concat();
        for reader in [
            Reader::from_seekable("a.aifc", io::Cursor::new(bytes.clone())),
            Reader::from_stream("a.aifc", io::Cursor::new(bytes)),
        ] {
            let signal = reader.unwrap_or_else(|error| panic!("{bits} bits: {error}")).read_all().unwrap();
            assert_eq!(signal.channels(), [vec![0.5, -0.5]], "{bits} bits");
            assert_eq!(signal.format().bits(), u16::from(bits));
        }
    }
}

/// A file that SoX wrote to a pipe.
#[test]
fn aiff_of_open_length_is_read_to_its_end() {
    let rate = [0x40, 0x0b, 0xfa, 0, 0, 0, 0, 0, 0, 0];
    let common = [&b"COMM\0\0\0\x12\0\x01\x3f\x80\0\0\0\x10"[..], &rate].concat();
    let samples = b"SSND\x7f\0\0\x08\0\0\0\0\0\0\0\0\x40\0\xc0\0";
    let bytes = [b"FORM\x7f\0\0\x2eAIFF", &common[..], samples].concat();
    let readers = [
        Reader::from_seekable("a.aiff", io::Cursor::new(bytes.clone())),
        Reader::from_stream("a.aiff", io::Cursor::new(bytes)),
    ];
    for mut reader in readers.map(Result::unwrap) {
        assert_eq!(reader.read_block(10).unwrap(), [vec![0.5, -0.5]]);
        let end = reader.read_block(10).unwrap();
        assert!(end[0].is_empty() && !reader.losses().any(), "{}", reader.losses());
    }
}
