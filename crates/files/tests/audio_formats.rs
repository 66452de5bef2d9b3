//! Every input format at several sample rates and numbers of channels, compared with its source or with the output of
//! ffmpeg.
//!
//! Needs ffmpeg; without it, the tests print a notice and pass.

use alphamf_files::{RawFormat, Reader, read};
use alphamf_signal::{SampleFormat, Signal};
use rayon::prelude::*;
use std::f32::consts::TAU;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Permitted difference between decoded samples and their reference.
#[derive(Clone, Copy)]
enum Tolerance {
    /// None; the reference is the encoded signal.
    Lossless,
    /// None; the reference is the output of ffmpeg.
    Exact,
    /// Rounding of a floating-point decoder; the reference is the output of ffmpeg.
    Rounding,
    /// Loss of the codec; the reference is the encoded signal, including its length and time. ffmpeg removes or adds
    /// samples at both ends.
    Source,
    /// A thousandth of the power; the reference is the output of ffmpeg, at the encoded length. Opus decoders need not
    /// be bit-exact.
    Decoder,
    /// As [`Self::Decoder`], with up to one block more at the end: padding that the container does not declare.
    Padded,
}
use Tolerance::{Decoder, Exact, Lossless, Padded, Rounding, Source};

/// A test case: file name, options of ffmpeg, expected sample format, and tolerance.
type Format = (&'static str, &'static [&'static str], SampleFormat, Tolerance);

const ANY_RATE: &[Format] = &[
    ("u8.wav", &["-c:a", "pcm_u8"], SampleFormat::Int8, Exact),
    ("s16.wav", &["-c:a", "pcm_s16le"], SampleFormat::Int16, Lossless),
    ("s24.wav", &["-c:a", "pcm_s24le"], SampleFormat::Int24, Lossless),
    ("s32.wav", &["-c:a", "pcm_s32le"], SampleFormat::Int32, Lossless),
    ("f32.wav", &["-c:a", "pcm_f32le"], SampleFormat::Float32, Lossless),
    ("f64.wav", &["-c:a", "pcm_f64le"], SampleFormat::Float64, Lossless),
    ("s16.w64", &["-c:a", "pcm_s16le"], SampleFormat::Int16, Exact),
    ("s24.w64", &["-c:a", "pcm_s24le"], SampleFormat::Int24, Exact),
    ("s16.au", &["-c:a", "pcm_s16be"], SampleFormat::Int16, Lossless),
    ("mulaw.au", &["-c:a", "pcm_mulaw"], SampleFormat::Int16, Exact),
    ("s16.caf", &["-c:a", "pcm_s16be"], SampleFormat::Int16, Lossless),
    ("flac.mka", &["-c:a", "flac", "-sample_fmt", "s16"], SampleFormat::Int16, Lossless),
    ("alaw.wav", &["-c:a", "pcm_alaw"], SampleFormat::Int16, Exact),
    ("mulaw.wav", &["-c:a", "pcm_mulaw"], SampleFormat::Int16, Exact),
    ("rf64.wav", &["-rf64", "always"], SampleFormat::Int16, Lossless),
    ("tagged.wav", &["-metadata", "title=A title", "-write_bext", "1"], SampleFormat::Int16, Lossless),
    ("s16.flac", &["-sample_fmt", "s16"], SampleFormat::Int16, Lossless),
    ("s24.flac", &["-sample_fmt", "s32", "-bits_per_raw_sample", "24"], SampleFormat::Int24, Lossless),
    ("s8.aiff", &["-c:a", "pcm_s8"], SampleFormat::Int8, Exact),
    ("s16.aiff", &["-c:a", "pcm_s16be"], SampleFormat::Int16, Lossless),
    ("s24.aiff", &["-c:a", "pcm_s24be"], SampleFormat::Int24, Lossless),
    ("s32.aiff", &["-c:a", "pcm_s32be"], SampleFormat::Int32, Lossless),
    ("alac.m4a", &["-c:a", "alac", "-sample_fmt", "s16p"], SampleFormat::Int16, Lossless),
    ("alac.caf", &["-c:a", "alac", "-sample_fmt", "s16p"], SampleFormat::Int16, Lossless),
    ("vorbis.ogg", &["-c:a", "libvorbis", "-q:a", "8"], SampleFormat::Int16, Source),
];

/// Formats of MP3 and AAC, which support certain sample rates only.
const COMMON_RATE: &[Format] = &[
    ("cbr.mp3", &["-c:a", "libmp3lame", "-b:a", "96k"], SampleFormat::Int16, Rounding),
    ("vbr.mp3", &["-c:a", "libmp3lame", "-q:a", "4"], SampleFormat::Int16, Rounding),
    ("aac.m4a", &["-c:a", "aac", "-b:a", "96k"], SampleFormat::Int16, Source),
    ("fast.m4a", &["-c:a", "aac", "-b:a", "96k", "-movflags", "+faststart"], SampleFormat::Int16, Source),
    ("aac.aac", &["-c:a", "aac", "-b:a", "96k", "-f", "adts"], SampleFormat::Int16, Rounding),
];

/// Formats tested at 48 kHz only, the sample rate of Opus.
const AT_48_KILOHERTZ: &[Format] = &[
    ("opus.ogg", &["-c:a", "libopus", "-b:a", "160k"], SampleFormat::Int16, Decoder),
    (
        "speech.opus",
        &["-c:a", "libopus", "-b:a", "64k", "-application", "voip"],
        SampleFormat::Int16,
        Decoder,
    ),
    ("silk.opus", &["-c:a", "libopus", "-b:a", "12k", "-application", "voip"], SampleFormat::Int16, Decoder),
    (
        "hybrid.opus",
        &["-c:a", "libopus", "-b:a", "28k", "-application", "voip"],
        SampleFormat::Int16,
        Decoder,
    ),
    (
        "frames.opus",
        &["-c:a", "libopus", "-b:a", "64k", "-frame_duration", "60"],
        SampleFormat::Int16,
        Decoder,
    ),
    ("opus.webm", &["-c:a", "libopus", "-b:a", "96k"], SampleFormat::Int16, Padded),
    ("opus.mka", &["-c:a", "libopus", "-b:a", "96k"], SampleFormat::Int16, Padded),
    ("opus.mp4", &["-c:a", "libopus", "-b:a", "96k", "-strict", "-2"], SampleFormat::Int16, Padded),
    ("vorbis.mka", &["-c:a", "libvorbis", "-q:a", "8"], SampleFormat::Int16, Padded),
    ("adpcm.wav", &["-c:a", "adpcm_ms"], SampleFormat::Int16, Padded),
    ("ima.wav", &["-c:a", "adpcm_ima_wav"], SampleFormat::Int16, Padded),
    ("ima.caf", &["-c:a", "adpcm_ima_qt"], SampleFormat::Int16, Padded),
];

fn ffmpeg_is_missing() -> bool {
    let missing = Command::new("ffmpeg").arg("-version").output().is_err();
    if missing {
        std::io::stderr()
            .write_all(b"SKIPPED: ffmpeg is not installed, so that no input format was compared with it\n")
            .unwrap();
    }
    missing
}

fn ffmpeg(arguments: &[&str]) -> Command {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-hide_banner", "-loglevel", "error", "-y"]).args(arguments);
    command
}

/// Writes `source.wav`, a 16-bit signal with a different chirp in each channel, and returns the signal.
fn source(folder: &Path, sample_rate: u32, channels: usize, length: usize) -> Signal {
    let tone = |channel: usize| {
        (0..length).map(move |n| {
            let t = n as f32 / sample_rate as f32;
            // The fourth of six channels carries low-frequency effects.
            let frequency = if channel == 3 { 50.0 } else { 200.0 + 150.0 * channel as f32 + 300.0 * t };
            ((TAU * frequency * t).sin() * 12_000.0).round() / 32_768.0
        })
    };
    let signal = Signal::new(
        sample_rate,
        SampleFormat::Int16,
        (0..channels).map(|channel| tone(channel).collect()).collect(),
    )
    .unwrap();
    alphamf_files::write(folder.join("source.wav"), &signal).unwrap();
    signal
}

/// Decodes files with ffmpeg and returns the channels of each. One run decodes all files, as the start of ffmpeg takes
/// longest.
fn decoded_by_ffmpeg(folder: &Path, names: &[&str], channels: usize) -> Vec<Vec<Vec<f32>>> {
    let mut command = ffmpeg(&[]);
    for name in names {
        // The native Opus decoder of ffmpeg resamples SILK frames differently from libopus.
        let is_opus =
            ["opus", "speech", "silk", "hybrid", "frames"].contains(&name.split('.').next().unwrap());
        command.args(if is_opus { &["-c:a", "libopus"][..] } else { &[] }).args(["-i", name]);
    }
    let raw = |number: usize| format!("{number}.f32");
    for number in 0..names.len() {
        let map = format!("{number}:a");
        command.args(["-map", &map, "-f", "f32le", "-c:a", "pcm_f32le", &raw(number)]);
    }
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read = |number: usize| {
        let mut decoded = vec![Vec::new(); channels];
        for (n, sample) in fs::read(folder.join(raw(number))).unwrap().chunks_exact(4).enumerate() {
            decoded[n % channels].push(f32::from_le_bytes(sample.try_into().unwrap()));
        }
        decoded
    };
    (0..names.len()).map(read).collect()
}

/// Reads a file and compares it with its reference: `theirs`, the output of ffmpeg, or `source`. The error describes
/// the first mismatch.
fn check(
    folder: &Path,
    source: &Signal,
    (name, _, format, tolerance): Format,
    theirs: &[Vec<f32>],
) -> Result<(), String> {
    let path = folder.join(name);
    let reference = if let Lossless | Source = tolerance { source.channels() } else { theirs };
    let padding = if let Padded = tolerance { 6_000 } else { 0 };
    let length = if let Decoder | Padded = tolerance { source.len() } else { reference[0].len() };

    let mut reader = Reader::open(&path).map_err(|error| error.to_string())?;
    let found = (reader.sample_rate(), reader.channels(), reader.format());
    if found != (source.sample_rate(), source.channels().len(), format) {
        return Err(format!("{found:?}"));
    }
    let first = reader.read_block(100).map_err(|error| error.to_string())?;
    let signal = read(&path).map_err(|error| error.to_string())?;
    if first[0] != signal.channels()[0][..100] {
        return Err("a block is not the start of the whole".into());
    }
    if !(length..=length + padding).contains(&signal.len()) {
        return Err(format!("{} samples instead of {length}", signal.len()));
    }
    if reader.length().is_some_and(|length| length.abs_diff(signal.len() as u64) > padding as u64) {
        return Err(format!("{:?} samples announced, {} found", reader.length(), signal.len()));
    }
    for (channel, (ours, theirs)) in signal.channels().iter().zip(reference).enumerate() {
        let worst = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let error: f32 = ours.iter().zip(theirs).map(|(a, b)| (a - b).powi(2)).sum();
        let power: f32 = theirs.iter().map(|x| x.powi(2)).sum();
        let passes = match tolerance {
            Lossless | Exact => worst == 0.0,
            Rounding => worst < 3e-5,
            Source => error < 0.03 * power,
            Decoder | Padded => error < 1e-3 * power,
        };
        if !passes {
            return Err(format!("a difference of up to {worst} in channel {channel}"));
        }
    }
    let piped = Reader::from_stream("standard input", File::open(&path).unwrap())
        .and_then(Reader::read_all)
        .map_err(|error| error.to_string())?;
    if piped.channels() == signal.channels() { Ok(()) } else { Err("another signal from a pipe".into()) }
}

#[test]
fn every_format_is_decoded_as_by_ffmpeg() {
    if ffmpeg_is_missing() {
        return;
    }
    let layouts = [
        (8_000, 1),
        (11_025, 2),
        (16_000, 1),
        (44_100, 2),
        (48_000, 1),
        (48_000, 2),
        (48_000, 6),
        (96_000, 1),
        (192_000, 2),
    ];
    let check_layout = |(sample_rate, channels)| {
        let folder = TempDir::new().unwrap();
        let source = source(folder.path(), sample_rate, channels, sample_rate as usize / 4 + 77);
        let mp3_exists = sample_rate <= 48_000 && channels <= 2;
        // The AAC decoder supports mono and stereo only.
        let aac_exists = sample_rate <= 96_000 && channels <= 2;
        let of_this_rate = if sample_rate == 48_000 { AT_48_KILOHERTZ } else { &[] };
        // At 48 kHz, the other formats are checked with six channels only.
        let of_any_rate =
            if sample_rate == 48_000 && channels < 6 { &[][..] } else { &[ANY_RATE, COMMON_RATE] };
        let exists = |format: &Format| match Path::new(format.0).extension().and_then(|e| e.to_str()) {
            Some("mp3") => mp3_exists,
            Some("m4a" | "aac") => aac_exists || format.0.starts_with("alac"),
            // Vorbis with more channels is rejected, as tested below.
            Some(_) if format.0.starts_with("vorbis") => channels <= 2,
            Some("wav" | "caf") if format.0.starts_with("adpcm") || format.0.starts_with("ima") => {
                channels <= 2
            }
            _ => true,
        };
        let all = of_any_rate.iter().copied().flatten().chain(of_this_rate);
        let formats: Vec<Format> = all.copied().filter(exists).collect();
        let mut encode = ffmpeg(&["-i", "source.wav"]);
        for (name, options, ..) in &formats {
            encode.args(*options).arg(name);
        }
        assert!(encode.current_dir(folder.path()).status().unwrap().success());
        let names: Vec<&str> = formats.iter().map(|format| format.0).collect();
        let decoded = decoded_by_ffmpeg(folder.path(), &names, channels);
        let failures = formats.iter().zip(&decoded).filter_map(|(&format, theirs)| {
            let reason = check(folder.path(), &source, format, theirs).err()?;
            Some(format!("{} at {sample_rate} Hz, {channels} channels: {reason}", format.0))
        });
        (formats.len(), failures.collect())
    };
    let (checked, failures): (Vec<usize>, Vec<Vec<String>>) =
        layouts.into_par_iter().map(check_layout).unzip();
    println!("{} files compared", checked.iter().sum::<usize>());
    let failures = failures.concat();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// Returns the error of opening a file, or the reader as text if there is no error.
fn refusal(path: &Path) -> String {
    Reader::open(path).map_or_else(|error| error.to_string(), |reader| format!("{reader:?}"))
}

#[test]
fn vorbis_of_many_channels_is_refused() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for channels in [3, 6] {
        source(folder.path(), 48_000, channels, 12_000);
        for name in ["a.ogg", "a.mka", "a.webm"] {
            // At low quality, Vorbis couples the channels.
            let arguments = ["-i", "source.wav", "-c:a", "libvorbis", "-q:a", "3", name];
            assert!(ffmpeg(&arguments).current_dir(folder.path()).status().unwrap().success(), "{name}");
            let refused = refusal(&folder.path().join(name));
            assert!(
                refused.ends_with("unsupported encoding: Vorbis with more than two channels"),
                "{refused}"
            );
        }
    }
}

#[test]
fn seven_and_eight_channels_of_alac_stay_where_they_are() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for (channels, layout, mask) in [(7, "6.1(back)", 0x13f), (8, "7.1(wide)", 0xff)] {
        let source = source(folder.path(), 48_000, channels, 12_000);
        let map = format!("channelmap=channel_layout={layout}");
        for name in ["a.m4a", "a.mka", "a.caf"] {
            let arguments = ["-i", "source.wav", "-af", &map, "-c:a", "alac", name];
            assert!(ffmpeg(&arguments).current_dir(folder.path()).status().unwrap().success(), "{name}");
            let reader = Reader::open(folder.path().join(name)).unwrap();
            assert!(reader.channel_mask().is_none_or(|found| found == mask), "{name}");
            let signal = reader.read_all().unwrap();
            assert!(signal.channels() == source.channels(), "{channels} channels in {name}");
        }
    }
}

/// Adds a fill element with spectral band replication (SBR) to every AAC packet of an ADTS stream.
fn with_sbr(adts: &[u8]) -> Vec<u8> {
    let (mut rest, mut result) = (adts, Vec::new());
    while rest.len() > 7 {
        let length = usize::from(rest[3] & 3) << 11 | usize::from(rest[4]) << 3 | usize::from(rest[5] >> 5);
        let bits = rest[7..length].iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1 == 1));
        let mut bits: Vec<bool> = bits.collect();
        let end = bits.iter().rposition(|bit| *bit).unwrap() - 2;
        // Fill element, length in bytes, extension type, zeros, and end element.
        bits.splice(end.., format!("110{:04b}{:04b}{:020b}111", 3, 0xd, 0).chars().map(|bit| bit == '1'));
        bits.resize(bits.len().next_multiple_of(8), false);
        let mut header: [u8; 7] = rest[..7].try_into().unwrap();
        let new = 7 + bits.len() / 8;
        header[3] = header[3] & 0xfc | (new >> 11) as u8;
        header[4] = (new >> 3) as u8;
        header[5] = (new << 5) as u8 | header[5] & 0x1f;
        result.extend(header);
        result.extend(bits.chunks(8).map(|byte| byte.iter().fold(0, |byte, &bit| byte << 1 | u8::from(bit))));
        rest = &rest[length..];
    }
    result
}

#[test]
fn undeclared_band_replication_is_refused() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    source(folder.path(), 24_000, 1, 24_000);
    let run = |arguments: &[&str]| {
        assert!(ffmpeg(arguments).current_dir(folder.path()).status().unwrap().success(), "{arguments:?}");
    };
    run(&["-i", "source.wav", "-c:a", "aac", "-b:a", "48k", "-f", "adts", "low.aac"]);
    let bytes = with_sbr(&fs::read(folder.path().join("low.aac")).unwrap());
    fs::write(folder.path().join("high.aac"), &bytes).unwrap();
    for extension in ["m4a", "mka"] {
        run(&["-i", "low.aac", "-c", "copy", &format!("low.{extension}")]);
        run(&["-i", "high.aac", "-c", "copy", &format!("high.{extension}")]);
    }
    for extension in ["aac", "m4a", "mka"] {
        let [low, high] =
            ["low", "high"].map(|name| refusal(&folder.path().join(format!("{name}.{extension}"))));
        assert!(low.contains("sample_rate: 24000"), "{extension}: {low}");
        assert!(high.contains("unsupported encoding"), "{extension}: {high}");
    }
    let refused = Reader::from_stream("stream", std::io::Cursor::new(bytes)).unwrap_err().to_string();
    assert!(refused.ends_with("unsupported encoding: HE-AAC"), "{refused}");
}

#[test]
fn big_endian_samples_in_quicktime_are_refused() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let source = source(folder.path(), 48_000, 2, 12_000);
    for codec in ["pcm_s24", "pcm_s32", "pcm_f32", "pcm_f64"] {
        for order in ["be", "le"] {
            let arguments = ["-i", "source.wav", "-c:a", &format!("{codec}{order}"), "a.mov"];
            assert!(ffmpeg(&arguments).current_dir(folder.path()).status().unwrap().success(), "{codec}");
            match Reader::open(folder.path().join("a.mov")) {
                Ok(reader) => {
                    assert!(reader.read_all().unwrap().channels() == source.channels(), "{codec}{order}");
                }
                Err(error) => {
                    let refused = error.to_string();
                    assert!(
                        order == "be" && refused.ends_with("big-endian samples in QuickTime"),
                        "{refused}"
                    );
                }
            }
        }
    }
}

#[test]
fn lossy_recordings_have_their_bit_rate() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let tone = source(folder.path(), 48_000, 2, 96_000);
    for (name, codec, bit_rate) in [
        ("a.opus", "libopus", Some(16_000.0)),
        ("a.mp3", "libmp3lame", Some(64_000.0)),
        ("a.m4a", "aac", Some(48_000.0)),
        ("a.ogg", "libvorbis", Some(48_000.0)),
        ("a.flac", "flac", None),
        ("a.wav", "pcm_s16le", None),
        ("alac.m4a", "alac", None),
    ] {
        let total = bit_rate.map_or("0".into(), |rate: f64| format!("{}", 2.0 * rate));
        let arguments = ["-i", "source.wav", "-c:a", codec, "-b:a", &total, name];
        assert!(ffmpeg(&arguments).current_dir(folder.path()).status().unwrap().success(), "{name}");
        let mut reader = Reader::open(folder.path().join(name)).unwrap();
        assert!(reader.read_block(2 * tone.len()).unwrap()[0].len().abs_diff(tone.len()) < 3_000, "{name}");
        let found = reader.lossy_bit_rate();
        // Tones need fewer bits than a variable rate allows, and a codec may start above the requested rate.
        let is_near = |expected: f64| found.is_some_and(|found| (0.3..1.5).contains(&(found / expected)));
        assert!(bit_rate.map_or(found.is_none(), is_near), "{name}: {found:?}");
    }
}

#[test]
fn piped_and_raw_output_of_ffmpeg_is_read() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let source = source(folder.path(), 22_050, 2, 30_001);
    // WAV from a pipe, so that ffmpeg cannot fill in the length.
    let mut child = ffmpeg(&["-i", "source.wav", "-f", "wav", "-"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let reader = Reader::from_stream("standard input", child.stdout.take().unwrap()).unwrap();
    assert_eq!(reader.length(), None);
    assert_eq!(reader.read_all().unwrap(), source);
    assert!(child.wait().unwrap().success());

    for (ours, theirs) in [
        ("s8", "s8"),
        ("u8", "u8"),
        ("s16", "s16le"),
        ("s16be", "s16be"),
        ("s24le", "s24le"),
        ("s24be", "s24be"),
        ("s32be", "s32be"),
        ("f32", "f32le"),
        ("f64be", "f64be"),
        ("alaw", "alaw"),
        ("mulaw", "mulaw"),
    ] {
        let path = folder.path().join("source.raw");
        let status = ffmpeg(&["-i", "source.wav", "-f", theirs, "source.raw"])
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(status.success());
        let raw: RawFormat = format!("22050:2:{ours}").parse().unwrap();
        let signal = Reader::open_raw(&path, raw).unwrap().read_all().unwrap();
        let options = ["-f", theirs, "-ar", "22050", "-ac", "2", "-i", path.to_str().unwrap()];
        let reference = ffmpeg(&options).args(["-f", "f32le", "-"]).output().unwrap();
        assert!(reference.status.success());
        let interleaved: Vec<u8> = (0..signal.len())
            .flat_map(|n| signal.channels().iter().flat_map(move |c| c[n].to_le_bytes()))
            .collect();
        assert!(interleaved == reference.stdout, "{ours}");
    }
}

#[test]
fn ffmpeg_reads_what_we_write() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    for (sample_rate, channels, length) in [(8_000, 1, 1), (44_100, 2, 30_001), (96_000, 8, 4_096)] {
        let source = source(folder.path(), sample_rate, channels, length);
        let formats = [
            SampleFormat::Int8,
            SampleFormat::Int16,
            SampleFormat::Int24,
            SampleFormat::Int32,
            SampleFormat::Float32,
        ];
        let named = |format: SampleFormat| ["wav", "flac"].map(|kind| (format, format!("{format:?}.{kind}")));
        let written: Vec<(SampleFormat, String)> = formats.into_iter().flat_map(named).collect();
        for (format, name) in &written {
            alphamf_files::write(folder.path().join(name), &source.clone().with_format(*format)).unwrap();
        }
        let names: Vec<&str> = written.iter().map(|(_, name)| name.as_str()).collect();
        let decoded = decoded_by_ffmpeg(folder.path(), &names, channels);
        for ((format, name), theirs) in written.iter().zip(decoded) {
            let ours = read(folder.path().join(name)).unwrap();
            assert!(theirs == ours.channels(), "{name}");
            if *format != SampleFormat::Int8 {
                assert!(ours.channels() == source.channels(), "{name}");
            }
        }
    }
}

/// Truncated and damaged files give an error or a finite signal, never a panic.
#[test]
fn damaged_files_of_every_format_do_no_harm() {
    if ffmpeg_is_missing() {
        return;
    }
    let folder = TempDir::new().unwrap();
    source(folder.path(), 44_100, 2, 6_000);
    let damage = |&(name, options, ..): &Format| {
        let mut failures = Vec::new();
        let path = folder.path().join(name);
        let mut arguments = vec!["-i", "source.wav"];
        arguments.extend(options);
        arguments.push(name);
        assert!(ffmpeg(&arguments).current_dir(folder.path()).status().unwrap().success());
        let bytes = fs::read(&path).unwrap();
        let damaged = folder.path().join(format!("damaged-{name}"));
        let mut state = 1_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        for trial in 0..60 {
            let mut bad = bytes.clone();
            if trial % 3 == 0 {
                bad.truncate(random(if trial % 2 == 0 { 1_000 } else { bytes.len() }).max(1));
            } else {
                for _ in 0..=random(20) {
                    // Headers are at the start, or at the end of an MP4 file.
                    let within = if trial % 3 == 1 { 600 } else { bytes.len() }.min(bytes.len());
                    let at = random(within);
                    let at = if trial % 2 == 0 { at } else { bytes.len() - 1 - at };
                    bad[at] = random(256) as u8;
                }
            }
            fs::write(&damaged, &bad).unwrap();
            match std::panic::catch_unwind(|| read(&damaged)) {
                Ok(Ok(signal)) => assert!(signal.channels().iter().flatten().all(|x| x.is_finite())),
                Ok(Err(_)) => {}
                Err(_) => failures.push(format!("{name}, trial {trial}")),
            }
        }
        failures
    };
    let formats = ANY_RATE.par_iter().chain(COMMON_RATE).chain(AT_48_KILOHERTZ);
    let failures: Vec<String> = formats.flat_map_iter(damage).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
