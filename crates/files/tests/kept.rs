//! Properties of a recording that are kept in every format: length, channel mask, metadata, and the intact samples of a
//! damaged file.

mod shared;

use alphamf_files::{
    Container, Error, MAX_HELD_BYTES, Metadata, OutputSpec, ReadError, Reader, Writer, encode, read,
};
use alphamf_signal::{InvalidSignal, SampleFormat, Signal};
use shared::ffmpeg;
use std::fs;
use std::io::{self, Cursor, Read};
use tempfile::TempDir;

fn ramp(channels: usize, length: usize) -> Signal {
    let channel = |c: usize| (0..length).map(|n| ((n * 7 + c * 31) % 256) as f32 / 256.0 - 0.5).collect();
    Signal::new(8_000, SampleFormat::Int16, (0..channels).map(channel).collect()).unwrap()
}

fn spec(channels: usize, container: Container, channel_mask: Option<u32>) -> OutputSpec {
    OutputSpec {
        sample_rate: 8_000,
        channels,
        format: SampleFormat::Int16,
        container,
        length: None,
        channel_mask,
        dither: None,
    }
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut chunk = [&name[..], &(body.len() as u32).to_le_bytes(), body].concat();
    chunk.resize(chunk.len().next_multiple_of(2), 0);
    chunk
}

fn riff(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WAVE", &body].concat()
}

/// A `fmt ` chunk: one channel of 16 bits at 8 kHz.
fn format() -> Vec<u8> {
    chunk(b"fmt ", b"\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00")
}

fn from_bytes(bytes: &[u8]) -> Reader {
    Reader::from_seekable("bytes", Cursor::new(bytes.to_vec())).unwrap()
}

fn from_stream(bytes: &[u8]) -> Reader {
    Reader::from_stream("stream", Cursor::new(bytes.to_vec())).unwrap()
}

fn all(mut reader: Reader) -> (Vec<f32>, Reader) {
    let mut samples = Vec::new();
    loop {
        let block = reader.read_block(1_000).unwrap();
        if block[0].is_empty() {
            return (samples, reader);
        }
        samples.extend(&block[0]);
    }
}

#[test]
fn memory_serves_as_a_file() {
    for container in [Container::Wav, Container::Flac] {
        let signal = ramp(2, 5_001);
        let bytes = encode(&signal, container).unwrap();
        let reader = from_bytes(&bytes);
        assert_eq!(reader.length(), Some(5_001), "the header is filled in");
        assert_eq!(reader.read_all().unwrap(), signal);
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(if container == Container::Wav { "a.wav" } else { "a.flac" });
        alphamf_files::write(&path, &signal).unwrap();
        assert!(fs::read(&path).unwrap() == bytes, "the same bytes as in a file");
    }
}

#[test]
fn a_truncated_recording_is_refused_or_salvaged() {
    let bytes = encode(&ramp(2, 1_000), Container::Wav).unwrap();
    let cut = &bytes[..44 + 4 * 600 + 3];
    for open in [from_bytes, from_stream] {
        let refused = open(cut).read_all().unwrap_err();
        assert!(matches!(
            refused,
            Error::Read { reason: ReadError::Truncated { expected: 1_000, found: 600 }, .. }
        ));
        let (samples, reader) = all(open(cut).salvage(true));
        assert_eq!(samples, ramp(2, 1_000).channels()[0][..600]);
        assert_eq!(reader.losses().missing_samples, 400);
        assert_eq!(reader.losses().to_string(), "400 samples missing at the end");
        assert!(!all(open(&bytes).salvage(true)).1.losses().any(), "nothing is missing of the whole");
    }
}

#[test]
fn samples_that_are_not_finite_are_refused_or_counted() {
    let signal = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.25; 50]; 2]).unwrap();
    let mut bytes = encode(&signal, Container::Wav).unwrap();
    let start = bytes.len() - 400;
    bytes[start + 4..start + 8].copy_from_slice(&f32::NAN.to_le_bytes());
    bytes[start + 80..start + 84].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let refused = from_bytes(&bytes).read_all().unwrap_err();
    let Error::Read { reason: ReadError::Signal(invalid), .. } = refused else { panic!("{refused:?}") };
    // The first non-finite sample in time is in the second channel, but channels are checked one by one.
    assert!(matches!(invalid, InvalidSignal::NotFinite { .. }));
    let mut reader = from_bytes(&bytes).salvage(true);
    let block = reader.read_block(100).unwrap();
    assert_eq!((block[1][0], block[0][10], block[0][0]), (0.0, 0.0, 0.25));
    assert_eq!(reader.losses().not_finite, 2);
}

#[test]
fn several_chunks_of_samples_are_one_recording() {
    let first: Vec<u8> = (0..100_u8).collect();
    let second: Vec<u8> = (100..160_u8).collect();
    let bytes = riff(&[
        format(),
        chunk(b"data", &first),
        chunk(b"LIST", b"odd"),
        chunk(b"data", &second),
        chunk(b"data", &[]),
        chunk(b"data", &first),
    ]);
    let expected: Vec<f32> = [&first[..], &second, &first]
        .concat()
        .chunks_exact(2)
        .map(|code| f32::from(i16::from_le_bytes([code[0], code[1]])) / 32_768.0)
        .collect();
    assert_eq!(from_bytes(&bytes).length(), Some(130));
    for open in [from_bytes, from_stream] {
        assert_eq!(all(open(&bytes)).0, expected);
    }
    // Samples cut off the last chunk are reported as missing.
    let cut = &bytes[..bytes.len() - 10];
    let refused = from_bytes(cut).read_all().unwrap_err();
    assert!(matches!(
        refused,
        Error::Read { reason: ReadError::Truncated { expected: 130, found: 125 }, .. }
    ));
}

#[test]
fn samples_after_the_declared_end_are_reported_whatever_they_begin_with() {
    let data = chunk(b"data", &[7; 200]);
    let zeros = [0; 1_000];
    for start in [&b"\0\0\0\0\0\0\0\0"[..], &zeros, b"abcd\x40\x40\x40\x40"] {
        let file = [riff(&[format(), data.clone()]), start.to_vec(), vec![1; 2_000]].concat();
        let (samples, reader) = all(from_bytes(&file));
        assert!(samples.len() == 100 && reader.losses().data_follow);
        let (samples, reader) = all(from_stream(&file));
        assert!(samples.len() == 100 && reader.losses().data_follow);
        let (samples, reader) = all(from_bytes(&file).salvage(true));
        assert_eq!(samples.len(), 100 + (start.len() + 2_000) / 2);
        assert!(reader.losses().data_follow);
    }
    // Padding, a chunk, and a truncated chunk.
    for rest in [&zeros[..], &chunk(b"abcd", &[1; 9]), &chunk(b"LIST", &[1; 9])[..12]] {
        let file = [&riff(&[format(), data.clone()])[..], rest].concat();
        for (samples, reader) in [all(from_bytes(&file).salvage(true)), all(from_stream(&file))] {
            assert!(samples.len() == 100 && !reader.losses().any());
        }
    }
}

#[test]
fn big_endian_wav_and_wav_behind_a_tag_are_read() {
    let rifx = [
        &b"RIFX\x00\x00\x00\x28WAVEfmt \x00\x00\x00\x10\x00\x01\x00\x01\x00\x00\x1f\x40\x00\x00\x3e\x80\x00\x02\x00\x10"
            [..],
        b"data\x00\x00\x00\x04\x40\x00\xc0\x00",
    ]
    .concat();
    let tag = b"ID3\x04\x00\x00\x00\x00\x00\x14TIT2\x00\x00\x00\x0a\x00\x00\x00A title..".to_vec();
    let plain = riff(&[format(), chunk(b"data", &[0, 0x40, 0, 0xc0])]);
    let tagged = [&tag[..], &plain].concat();
    for bytes in [&rifx, &tagged] {
        for open in [from_bytes, from_stream] {
            assert_eq!(all(open(bytes)).0, [0.5, -0.5]);
        }
    }
}

#[test]
fn wide_floats_stay_wide() {
    let signal = Signal::new(8_000, SampleFormat::Float64, vec![vec![0.1, -2.5]]).unwrap();
    let bytes = encode(&signal, Container::Wav).unwrap();
    assert_eq!(&bytes[bytes.len() - 8..], (-2.5_f64).to_le_bytes());
    let again = from_bytes(&bytes).read_all().unwrap();
    assert_eq!((again.format().bits(), again), (64, signal));
}

/// Channel masks, among them 2.1, 4.0, hexagonal, 5.1 with side and with rear loudspeakers, 7.0, a mask of zero, and no
/// mask.
#[test]
fn loudspeakers_stay_where_they_are() {
    for container in [Container::Wav, Container::Flac] {
        for (channels, channel_mask) in [
            (1, 0x4),
            (1, 0x1),
            (2, 0x3),
            (2, 0x600),
            (3, 0xb),
            (3, 0x7),
            (4, 0x107),
            (4, 0x33),
            (6, 0x137),
            (6, 0x60f),
            (6, 0x3f),
            (7, 0x637),
            (8, 0x63f),
            (8, 0),
        ] {
            let signal = ramp(channels, 100);
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("a");
            let mut writer =
                Writer::create(&path, spec(channels, container, Some(channel_mask)), &Metadata::default())
                    .unwrap();
            writer.write_block(signal.channels()).unwrap();
            writer.finish().unwrap();
            let found = Reader::open(&path).unwrap().channel_mask();
            // The standard masks of mono and stereo need not be written.
            let usual = matches!((channels, channel_mask), (1, 0x4) | (2, 0x3));
            assert_eq!(
                found.or(usual.then_some(channel_mask)),
                Some(channel_mask),
                "{container:?} {channels}"
            );
            assert_eq!(read(&path).unwrap(), signal);
        }
    }
    let unsaid = encode(&ramp(6, 10), Container::Wav).unwrap();
    assert_eq!(from_bytes(&unsaid).channel_mask().unwrap_or(0), 0, "nothing is guessed");
}

fn rewritten(reader: Reader, container: Container) -> (Vec<u8>, Metadata) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    let metadata = reader.metadata().clone();
    let signal = reader.read_all().unwrap();
    let spec = spec(signal.channels().len(), container, None);
    let mut writer = Writer::create(&path, spec, &metadata).unwrap();
    writer.write_block(signal.channels()).unwrap();
    writer.finish().unwrap();
    let again = read(&path).unwrap();
    assert!(
        again
            .channels()
            .iter()
            .flatten()
            .zip(signal.channels().iter().flatten())
            .all(|(a, b)| (a - b).abs() < 1e-4)
    );
    assert_eq!(again.len(), signal.len(), "the samples are not touched");
    (fs::read(&path).unwrap(), Reader::open(&path).unwrap().metadata().clone())
}

#[test]
fn what_is_said_of_a_recording_is_kept() {
    let list = [&b"INFO"[..], &chunk(b"INAM", b"A title\0"), &chunk(b"ISFT", b"odd\0")].concat();
    let kept = [
        chunk(b"bext", &[7; 603]),
        chunk(b"iXML", b"<BWFXML/>"),
        chunk(b"LIST", &list),
        chunk(b"cue ", &[1; 28]),
        chunk(b"id3 ", b"ID3\x04\x00\x00\x00\x00\x00\x00"),
    ];
    let [bext, ixml, list, cue, id3] = kept.clone();
    // Chunks before and after the samples.
    let bytes = riff(&[bext, format(), ixml, chunk(b"data", &[1; 60]), list, cue, id3]);
    let (wav, again) = rewritten(from_bytes(&bytes), Container::Wav);
    assert_eq!(again.tags().collect::<Vec<_>>(), [("TITLE", "A title")]);
    let holds_all = |wav: &[u8]| {
        for chunk in &kept {
            assert_eq!(wav.windows(chunk.len()).filter(|window| window == chunk).count(), 1, "{chunk:?}");
        }
    };
    holds_all(&wav);
    let length = u32::from_le_bytes(wav[4..8].try_into().unwrap());
    assert_eq!(length as usize + 8, wav.len(), "the length of the file counts them");
    // Some programs find no samples after a long or malformed chunk.
    let data = wav.windows(4).position(|name| name == b"data").unwrap();
    assert_eq!(data, if wav[12..16] == *b"JUNK" { 72 } else { 36 });

    let (flac, again) = rewritten(from_bytes(&bytes), Container::Flac);
    assert_eq!(again.tags().collect::<Vec<_>>(), [("TITLE", "A title")]);
    assert!(flac.windows(9).any(|window| window == b"<BWFXML/>"));
    let (wav_again, back) = rewritten(from_bytes(&flac), Container::Wav);
    holds_all(&wav_again);
    assert_eq!(back.tags().collect::<Vec<_>>(), [("TITLE", "A title")]);
    let (flac_again, _) = rewritten(from_bytes(&flac), Container::Flac);
    assert!(flac == flac_again, "FLAC keeps all of it");
}

#[test]
fn chunks_that_begin_another_recording_are_not_kept() {
    let name = chunk(b"INAM", b"A title\0");
    let list = chunk(b"LIST", &[&b"INFO"[..], &name].concat());
    let chunks =
        [format(), list, chunk(b"RIFF", b"WAVE"), chunk(b"OggS", b"\0\x02"), chunk(b"data", &[1; 61])];
    let (wav, again) = rewritten(from_bytes(&riff(&chunks)), Container::Wav);
    let (_, reader) = all(from_bytes(&wav));
    assert!(again.tags().count() == 1 && !reader.losses().any(), "{}", reader.losses());
}

#[test]
fn tags_of_other_formats_are_kept() {
    let folder = TempDir::new().unwrap();
    alphamf_files::write(folder.path().join("a.wav"), &ramp(1, 8_000)).unwrap();
    for name in ["a.mp3", "a.ogg", "a.m4a", "a.flac", "a.mka", "tagged.wav"] {
        let tags = ["title=A title", "artist=Ä. Nother", "track=3", "comment=A comment"];
        let tags = tags.map(|tag| ["-metadata", tag]).concat();
        let arguments = [&["-i", "a.wav"], &tags[..], &["-ar", "16000", name]].concat();
        if !ffmpeg(folder.path(), &arguments) {
            return;
        }
        for container in [Container::Wav, Container::Flac] {
            let (_, kept) = rewritten(Reader::open(folder.path().join(name)).unwrap(), container);
            for tag in [
                ("TITLE", "A title"),
                ("ARTIST", "Ä. Nother"),
                ("TRACKNUMBER", "3"),
                ("COMMENT", "A comment"),
            ] {
                if (name, tag.0) == ("tagged.wav", "TRACKNUMBER") {
                    continue; // in a chunk that is kept unchanged
                }
                // In Ogg and FLAC, ffmpeg writes comments as descriptions.
                let is_it = |found| found == tag || tag.0 == "COMMENT" && found == ("DESCRIPTION", tag.1);
                assert!(kept.tags().any(is_it), "{name} {container:?}: {kept:?}");
            }
        }
    }
}

#[test]
fn what_is_said_may_be_nonsense() {
    // Lists whose entries exceed them; below, comments without a value and blocks without an end.
    for body in [&b"INFO"[..], b"INFOINAM", b"INFOINAM\xff\xff\xff\xff", b"INFOINAM\x01\x00\x00\x00"] {
        let bytes = riff(&[format(), chunk(b"LIST", body), chunk(b"data", &[0; 4])]);
        assert_eq!(all(from_bytes(&bytes)).0.len(), 2);
    }
    let flac = encode(&ramp(1, 100), Container::Flac).unwrap();
    for body in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\0\xff\xff\xff\xff", b"\0\0\0\0\x01\0\0\0\x09\0\0\0a"] {
        let block = [&[0x84, 0, 0, body.len() as u8], body].concat();
        let mut bytes = [&flac[..42], &block, &flac[42..]].concat();
        bytes[4] = 0;
        // The FLAC decoder may reject the file, but must not panic.
        let _ = Reader::from_seekable("bytes", Cursor::new(bytes)).and_then(Reader::read_all);
    }
    let huge = riff(&[format(), [&b"LIST\xf0\xff\xff\x7f"[..], b"INFO"].concat()]);
    assert!(Reader::from_seekable("bytes", Cursor::new(huge)).is_err());
}

#[test]
fn tags_of_other_formats_around_flac_change_nothing() {
    let signal = ramp(3, 5_000);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a");
    let mut writer =
        Writer::create(&path, spec(3, Container::Flac, Some(0x103)), &Metadata::default()).unwrap();
    writer.write_block(signal.channels()).unwrap();
    writer.finish().unwrap();
    let flac = fs::read(&path).unwrap();
    let id3 = b"ID3\x04\0\0\0\0\0\x12TIT2\0\0\0\x08\0\0\x03A title".to_vec();
    let id3v1 = [&b"TAG"[..], &[b' '; 125]].concat();
    for file in [
        [&id3[..], &flac].concat(),
        [&id3[..], &flac, &id3v1].concat(),
        [&flac[..], &id3].concat(),
        [&id3[..], &flac, &id3, &flac].concat(),
    ] {
        for reader in [from_bytes(&file), from_stream(&file)] {
            assert_eq!(reader.channel_mask(), Some(0x103));
            let has_title = reader.metadata().tags().any(|tag| tag == ("TITLE", "A title"));
            assert_eq!(has_title, file.starts_with(b"ID3"));
            let (samples, reader) = all(reader);
            assert_eq!(samples.len() % 5_000, 0);
            assert_eq!(samples.len() / 5_000, file.windows(4).filter(|bytes| bytes == b"fLaC").count());
            assert!(
                samples[..5_000] == signal.channels()[0] && !reader.losses().any(),
                "{}",
                reader.losses()
            );
        }
    }
}

#[test]
fn speaker_positions_of_flac_are_kept_in_ogg() {
    let signal = ramp(6, 5_000);
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.flac");
    let mut writer =
        Writer::create(&path, spec(6, Container::Flac, Some(0x60f)), &Metadata::default()).unwrap();
    writer.write_block(signal.channels()).unwrap();
    writer.finish().unwrap();
    // ffmpeg does not copy the tag of the mask, so it is given explicitly.
    let mask = "WAVEFORMATEXTENSIBLE_CHANNEL_MASK=0x060F";
    if !ffmpeg(folder.path(), &["-i", "a.flac", "-c", "copy", "-metadata", mask, "a.oga"]) {
        return;
    }
    let reader = Reader::open(folder.path().join("a.oga")).unwrap();
    assert_eq!(reader.channel_mask(), Some(0x60f));
    assert!(reader.metadata().tags().all(|(name, _)| !name.contains("MASK")));
}

/// Builds a CAF file from chunks.
fn caf(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut bytes = b"caff\0\x01\0\0".to_vec();
    for (name, body) in chunks {
        bytes.extend([&name[..], &(body.len() as u64).to_be_bytes(), body].concat());
    }
    bytes
}

/// Builds the format description of a CAF file.
fn caf_format(rate: f64, kind: &[u8; 4], numbers: [u32; 4]) -> Vec<u8> {
    [&rate.to_be_bytes()[..], kind, &[0; 4], &numbers.map(u32::to_be_bytes).concat()].concat()
}

#[test]
fn positions_of_caf_are_not_guessed() {
    let format = caf_format(8_000.0, b"lpcm", [6, 1, 3, 16]);
    let data = [0; 4 + 60];
    let without = caf(&[(b"desc", &format), (b"data", &data)]);
    assert_eq!(from_bytes(&without).channel_mask(), None);
    for (layout, mask) in [([0, 1, 0, 0, 0, 0, 0, 0xb], Some(0xb)), ([0, 113, 0, 3, 0, 0, 0, 0], Some(0x7))] {
        let chan = [&layout[..], &[0; 4]].concat();
        let file = caf(&[(b"desc", &format), (b"chan", &chan), (b"data", &data)]);
        assert_eq!(from_bytes(&file).channel_mask(), mask);
    }
}

#[test]
fn samples_of_caf_with_a_spare_byte_are_refused_by_name() {
    let format = caf_format(8_000.0, b"lpcm", [8, 1, 2, 24]);
    let bytes = caf(&[(b"desc", &format), (b"data", &[0; 804])]);
    let error = Reader::from_seekable("a.caf", Cursor::new(bytes)).unwrap_err().to_string();
    assert_eq!(
        error,
        "a.caf: cannot be read: 24-bit samples in 4 bytes: expected 3 bytes, or 32-bit samples"
    );
}

#[test]
fn samples_of_caf_may_extend_to_the_end() {
    let format = caf_format(8_000.0, b"lpcm", [2, 1, 1, 16]);
    let mut file = caf(&[(b"desc", &format), (b"data", &[[0; 4].to_vec(), [0x40, 0].repeat(100)].concat())]);
    let size = file.len() - 204 - 8..file.len() - 204;
    for open in [-1_i64, -2, 1 << 62] {
        file[size.clone()].copy_from_slice(&open.to_be_bytes());
        for reader in [from_bytes(&file), from_stream(&file)] {
            let (samples, reader) = all(reader);
            assert!(samples == [0.5; 100] && !reader.losses().any(), "{open}: {}", reader.losses());
        }
    }
    // A tenth of the declared samples is present.
    file[size.clone()].copy_from_slice(&2_004_i64.to_be_bytes());
    assert_eq!(all(from_bytes(&file)).1.losses().missing_samples, 900);
    // A chunk after the samples declares more bytes than any file can hold.
    file[size].copy_from_slice(&204_i64.to_be_bytes());
    file.extend([&b"free"[..], &(1_i64 << 62).to_be_bytes()].concat());
    let losses = all(from_bytes(&file)).1.losses();
    assert!(losses.ends_early && losses.missing_samples == 0, "{losses}");
}

#[test]
fn delay_and_padding_of_aac_in_caf_are_left_out() {
    let folder = TempDir::new().unwrap();
    let chirp = "aevalsrc='0.5*sin(2000*t*t)':sample_rate=44100:duration=1.1";
    if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", chirp, "-ac", "2", "-c:a", "aac", "a.aac"]) {
        return;
    }
    let adts = fs::read(folder.path().join("a.aac")).unwrap();
    let (before, _) = all(from_bytes(&adts));
    let (mut rest, mut lengths, mut packets) = (&adts[..], Vec::new(), vec![0; 4]);
    let mut count = 0_u64;
    while rest.len() > 7 {
        let length = usize::from(rest[3] & 3) << 11 | usize::from(rest[4]) << 3 | usize::from(rest[5] >> 5);
        lengths.extend([0x80 | ((length - 7) >> 7) as u8, (length - 7) as u8 & 0x7f]);
        packets.extend(&rest[7..length]);
        rest = &rest[length..];
        count += 1;
    }
    let config = [0x05, 0x80, 0x80, 0x80, 0x02, 0x12, 0x10];
    let decoder = [&[0x04, 0x80, 0x80, 0x80, 0x14, 0x40, 0x15, 0, 0, 0][..], &[0; 8], &config].concat();
    let cookie =
        [&[0x03, 0x80, 0x80, 0x80, 0x22, 0, 0, 0][..], &decoder, &[0x06, 0x80, 0x80, 0x80, 0x01, 0x02]]
            .concat();
    let header =
        [&count.to_be_bytes()[..], &44_000_u64.to_be_bytes(), &2_112_u32.to_be_bytes(), &[0; 4]].concat();
    let file = caf(&[
        (b"desc", &caf_format(44_100.0, b"aac ", [0, 1_024, 2, 0])),
        (b"kuki", &cookie),
        (b"pakt", &[header, lengths].concat()),
        (b"data", &packets),
    ]);
    for reader in [from_bytes(&file), from_stream(&file)] {
        let (samples, reader) = all(reader);
        assert!(!reader.losses().any(), "{}", reader.losses());
        assert_eq!(samples.len(), 44_000);
        assert!(samples == before[2_112..46_112]);
    }
}

#[test]
fn delay_and_length_of_itunes_count_without_an_edit_list() {
    let folder = TempDir::new().unwrap();
    let chirp = "aevalsrc='0.5*sin(2000*t*t)':sample_rate=44100:duration=1.1";
    if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", chirp, "-c:a", "aac", "a.m4a"]) {
        return;
    }
    let mut bytes = fs::read(folder.path().join("a.m4a")).unwrap();
    let (edited, _) = all(from_bytes(&bytes));
    for name in [b"edts", b"udta"] {
        let at = bytes.windows(4).position(|found| found == name).unwrap();
        bytes[at..at + 4].copy_from_slice(b"free");
    }
    let (whole, _) = all(from_bytes(&bytes));
    assert!(whole[1_024..].starts_with(&edited[..48_000]));
    let boxed = |name: &[u8], body: &[u8]| [&(body.len() as u32 + 8).to_be_bytes()[..], name, body].concat();
    for (samples, expected) in [(48_000, &whole[1_024..49_024]), (60_000, &whole[..])] {
        let numbers = format!(" 00000000 00000400 0000032B {samples:016X} 00000000 00000000");
        let tag = [
            boxed(b"mean", b"\0\0\0\0com.apple.iTunes"),
            boxed(b"name", b"\0\0\0\0iTunSMPB"),
            boxed(b"data", &[b"\0\0\0\x01\0\0\0\0", numbers.as_bytes()].concat()),
        ];
        let hdlr = boxed(b"hdlr", b"\0\0\0\0\0\0\0\0mdirappl\0\0\0\0\0\0\0\0\0");
        let meta = [&[0; 4], &hdlr[..], &boxed(b"ilst", &boxed(b"----", &tag.concat()))].concat();
        let udta = boxed(b"udta", &boxed(b"meta", &meta));
        // The index is the last box.
        let mut file = [&bytes[..], &udta].concat();
        let at = bytes.windows(4).rposition(|found| found == b"moov").unwrap() - 4;
        let size = ((file.len() - at) as u32).to_be_bytes();
        file[at..at + 4].copy_from_slice(&size);
        let (found, reader) = all(from_bytes(&file));
        assert!(found == expected && !reader.losses().any(), "{} samples: {}", found.len(), reader.losses());
    }
}

#[test]
fn tags_behind_mpeg_frames_count_as_no_audio() {
    let folder = TempDir::new().unwrap();
    let tone = "sine=frequency=440:sample_rate=44100:duration=2";
    let size = 30_032_u32.to_le_bytes();
    let part =
        |flag: u8| [&b"APETAGEX\xd0\x07\0\0"[..], &size, &[1, 0, 0, 0, 0, 0, 0, flag], &[0; 8]].concat();
    let ape = [&part(0xa0)[..], &[b'x'; 30_000], &part(0x80)].concat();
    let id3v1 = [&b"TAG"[..], &[b' '; 125]].concat();
    for (name, options) in
        [("a.mp3", ["-write_xing", "0"]), ("b.mp3", ["-write_xing", "1"]), ("a.aac", ["-ac", "1"])]
    {
        if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", tone, options[0], options[1], name]) {
            return;
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let (plain, _) = all(from_bytes(&bytes));
        for tag in [ape.clone(), [&ape[..], &id3v1].concat(), [&[0; 20_000][..], &id3v1].concat()] {
            let tagged = [&bytes[..], &tag].concat();
            for reader in [from_bytes(&tagged), from_stream(&tagged)] {
                let (samples, reader) = all(reader);
                assert!(!reader.losses().any(), "{name}: {}", reader.losses());
                assert_eq!(samples.len(), plain.len(), "{name}");
            }
        }
    }
}

#[test]
fn flac_of_unknown_length_that_is_cut_is_reported() {
    let signal = ramp(2, 20_000);
    let mut whole = encode(&signal, Container::Flac).unwrap();
    // As written to a stream: neither length nor checksum is filled in.
    whole[21] &= 0xf0;
    whole[22..42].fill(0);
    for cut in [0, 1, 2, 100, 1_000] {
        let file = &whole[..whole.len() - cut];
        for reader in [from_bytes(file), from_stream(file)] {
            assert_eq!(reader.length(), None);
            let (samples, reader) = all(reader);
            assert_eq!(samples.len(), if cut > 0 { 16_384 } else { 20_000 });
            assert_eq!(reader.losses().ends_early, cut > 0, "{cut} bytes");
        }
    }
    let joined = [&whole[..], &whole].concat();
    let (samples, reader) = all(from_bytes(&joined));
    assert!(samples.len() == 40_000 && !reader.losses().any(), "{}", reader.losses());
}

#[test]
fn a_few_bytes_behind_flac_are_left_out() {
    let signal = ramp(2, 20_000);
    let whole = encode(&signal, Container::Flac).unwrap();
    let mut of_unknown_length = whole.clone();
    of_unknown_length[21] &= 0xf0;
    of_unknown_length[22..42].fill(0);
    for flac in [&whole, &of_unknown_length] {
        for behind in [&b"\n"[..], b"\r\n", b"0123456789", &[0xaa; 128], &[0; 2_000]] {
            for open in [from_bytes, from_stream] {
                let (samples, reader) = all(open(&[flac, behind].concat()));
                assert!(samples == signal.channels()[0], "{} samples", samples.len());
                assert!(!reader.losses().any(), "{behind:?}: {}", reader.losses());
            }
        }
    }
    // A truncated frame is reported.
    let start = whole.windows(2).position(|bytes| bytes == [0xff, 0xf8]).unwrap();
    for length in [1, 2, 50, 120] {
        let cut = [&of_unknown_length[..], &whole[start..start + length]].concat();
        assert!(all(from_bytes(&cut)).1.losses().ends_early, "{length} bytes");
    }
}

#[test]
fn joined_recordings_are_read_to_the_end() {
    let folder = TempDir::new().unwrap();
    let signal = ramp(2, 20_000);
    let flac = encode(&signal, Container::Flac).unwrap();
    let joined = flac.repeat(3);
    for open in [from_bytes, from_stream] {
        let found = open(&joined).read_all().unwrap();
        assert_eq!(found.len(), 60_000);
        assert_eq!(found.channels()[1], signal.channels()[1].repeat(3));
    }
    let seconds = 3;
    let tone = "sine=frequency=440:sample_rate=44100:duration=3";
    for (name, slack) in [("a.mp3", 4_000), ("a.ogg", 10), ("a.opus", 10), ("a.aac", 4_000)] {
        if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", tone, name]) {
            return;
        }
        let one = fs::read(folder.path().join(name)).unwrap();
        let two = one.repeat(2);
        for open in [from_bytes, from_stream] {
            let reader = open(&two);
            let expected = 2 * seconds * reader.sample_rate() as usize;
            let (samples, reader) = all(reader);
            assert!(samples.len().abs_diff(expected) <= slack, "{name}: {} samples", samples.len());
            assert!(!reader.losses().any(), "{name}: {}", reader.losses());
            let end = &samples[samples.len() - 8_000..samples.len() - 4_000];
            assert!(end.iter().any(|x| x.abs() > 0.05), "{name}: the end is the second recording's");
            let (alone, _) = all(open(&one));
            assert!(alone.len().abs_diff(expected / 2) <= slack / 2, "{name}: {} samples", alone.len());
        }
    }
}

#[test]
fn damage_is_reported_and_what_follows_stays_in_time() {
    let folder = TempDir::new().unwrap();
    // The position of a click at 9 s shows whether the end has moved.
    let click = "aevalsrc='0.1*sin(2000*t)+0.8*between(t,9,9.01)':s=44100:d=10";
    for name in ["a.ogg", "a.opus", "a.flac", "a.mp3", "a.aac"] {
        if !ffmpeg(folder.path(), &["-f", "lavfi", "-i", click, name]) {
            return;
        }
        let mut bytes = fs::read(folder.path().join(name)).unwrap();
        let half = &bytes[..bytes.len() / 2];
        let (samples, reader) = all(from_bytes(half).salvage(true));
        let losses = reader.losses();
        assert!(samples.len() > 2 * 44_100 && losses.any(), "{name}: {losses}");
        assert!(losses.ends_early || losses.missing_samples > 0, "{name}: {losses}");

        let click = |samples: &[f32]| samples.iter().position(|x| x.abs() > 0.5).unwrap();
        let whole = all(from_bytes(&bytes)).0;
        let middle = bytes.len() / 2;
        bytes[middle..middle + 2_000].fill(0);
        let (samples, reader) = all(from_bytes(&bytes).salvage(true));
        let rate = reader.sample_rate() as usize;
        assert!(samples.len().abs_diff(whole.len()) < rate / 50, "{name}: {} samples", samples.len());
        assert!(reader.losses().silent_samples > 0, "{name}: {}", reader.losses());
        let moved = click(&samples).abs_diff(click(&whole));
        assert!(moved < rate / 50, "{name}: the click has moved by {moved}");
    }
}

#[test]
fn damage_does_not_become_hours_of_silence() {
    // AAC frames at 16 kHz that contain only the end element.
    let frame = [0xff, 0xf1, 0x60, 0x40, 0x01, 0x1f, 0xfc, 0xe0];
    let file = |gap: usize| [frame.repeat(40), vec![0; gap], frame.repeat(40)].concat();
    for open in [from_bytes, from_stream] {
        let (samples, reader) = all(open(&file(8 * 1_000)));
        assert_eq!((samples.len(), reader.losses().silent_samples), (1_080 * 1_024, 1_000 * 1_024));
        let refused = open(&file(800_000)).read_all().unwrap_err();
        assert!(matches!(refused, Error::Read { reason: ReadError::Damaged { .. }, .. }), "{refused}");
        let (samples, reader) = all(open(&file(800_000)).salvage(true));
        assert!(samples.len() < 1 << 20 && reader.losses().any(), "{} samples", samples.len());
    }
}

#[test]
fn headers_cost_no_memory_and_streams_are_held_up_to_a_bound() {
    // 65,535 channels of 8 bits, with one sample each.
    let common =
        b"COMM\x00\x00\x00\x12\xff\xff\x00\x00\x00\x01\x00\x08\x40\x0b\xfa\x00\x00\x00\x00\x00\x00\x00";
    let sound = [&b"SSND\x00\x01\x00\x07"[..], &[0; 8 + 65_535]].concat();
    let length = (4 + common.len() + sound.len()) as u32;
    let aiff = [b"FORM", &length.to_be_bytes()[..], b"AIFF", common, &sound].concat();
    let refused = Reader::from_seekable("bytes", Cursor::new(aiff)).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Read { reason: ReadError::Signal(InvalidSignal::TooManyChannels { found: 65_535 }), .. }
        ),
        "{refused:?}"
    );

    /// An endless MP4 stream.
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            assert!(self.0 <= MAX_HELD_BYTES + (1 << 20), "more is read than is held");
            target.fill(0);
            if self.0 == 0 {
                target[4..8].copy_from_slice(b"ftyp");
            }
            self.0 += target.len() as u64;
            Ok(target.len())
        }
    }
    let refused = Reader::from_stream("stream", Endless(0)).unwrap_err();
    assert!(matches!(refused, Error::Read { reason: ReadError::TooLongToHold { .. }, .. }), "{refused:?}");
    assert!(refused.to_string().contains("256 MB"));
}

/// Run time grows linearly with the number of tags; quadratic growth would take hours.
#[test]
fn hundreds_of_thousands_of_tags_are_kept() {
    let count = 300_000;
    let titles: Vec<Vec<u8>> = (0..count).map(|n| chunk(b"INAM", format!("{n}\0").as_bytes())).collect();
    let list = chunk(b"LIST", &[b"INFO".to_vec(), titles.concat()].concat());
    let texts: Vec<u8> = (0..count)
        .flat_map(|n| {
            let body = format!("\x03{n}\0x");
            let size = [21, 14, 7, 0].map(|shift| (body.len() >> shift) as u8 & 0x7f);
            [b"TXXX", &size[..], &[0, 0], body.as_bytes()].concat()
        })
        .collect();
    let size = [21, 14, 7, 0].map(|shift| (texts.len() >> shift) as u8 & 0x7f);
    let id3 = chunk(b"id3 ", &[b"ID3\x04\0\0", &size[..], &texts].concat());
    for kept in [list, id3] {
        let bytes = riff(&[format(), kept, chunk(b"data", &[1; 60])]);
        let (wav, again) = rewritten(from_bytes(&bytes), Container::Wav);
        // No tag is written twice; the header reserves 36 bytes for RF64.
        assert_eq!((wav.len(), again.tags().count()), (bytes.len() + 36, count));
    }
}
