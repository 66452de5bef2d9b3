//! What is written is read again; streams, dither, errors.

use super::*;
use crate::spec::Dither;
use crate::{Reader, read};
use alphamf_samplers::random::SeedTree;
use std::fs;
use tempfile::TempDir;

const FORMATS: [SampleFormat; 6] = [
    SampleFormat::Int8,
    SampleFormat::Int16,
    SampleFormat::Int24,
    SampleFormat::Int32,
    SampleFormat::Float32,
    SampleFormat::Float64,
];

/// Channels of distinct samples that every format can hold, the extremes included.
fn channels(count: usize, length: usize) -> Vec<Vec<f32>> {
    (0..count).map(|c| (0..length).map(|n| ((n * 7 + c * 31) % 256) as f32 / 128.0 - 1.0).collect()).collect()
}

fn spec(sample_rate: u32, channels: usize, format: SampleFormat, container: Container) -> OutputSpec {
    OutputSpec { sample_rate, channels, format, container, length: None, channel_mask: None, dither: None }
}

/// A stream whose bytes can be inspected.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = TempDir::new().unwrap();
    for name in ["a.wav", "a.flac"] {
        let path = folder.path().join(name);
        for format in FORMATS {
            for (rate, count, length) in
                [(8_000, 1, 1), (11_025, 2, 255), (44_100, 6, 5_000), (96_000, 8, 4_096)]
            {
                let signal = Signal::new(rate, format, channels(count, length)).unwrap();
                assert_eq!(write(&path, &signal).unwrap(), 0);
                let again = read(&path).unwrap();
                if name == "a.wav" {
                    assert_eq!(again, signal);
                } else {
                    // FLAC has no +1 and at most 24 bits.
                    assert_eq!(again.channels(), signal.channels());
                    assert_eq!(again.sample_rate(), rate);
                    assert_eq!(again.format().bits(), format.bits().min(24));
                }
            }
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file stays");
}

#[test]
fn another_library_reads_our_files_and_we_its() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    // `hound` does not support floats of 64 bits.
    for format in FORMATS.into_iter().filter(|format| format.bits() <= 32) {
        for count in [1, 2, 3] {
            let signal = Signal::new(16_000, format, channels(count, 301)).unwrap();
            write(&path, &signal).unwrap();
            let mut reader = hound::WavReader::open(&path).unwrap();
            let spec = reader.spec();
            assert_eq!((spec.sample_rate, spec.channels), (16_000, count as u16));
            assert_eq!(spec.bits_per_sample, format.bits());
            let samples: Vec<f32> = if format.is_integer() {
                let scale = 2_f64.powi(1 - i32::from(format.bits()));
                let value = |code: hound::Result<i32>| (f64::from(code.unwrap()) * scale) as f32;
                reader.samples().map(value).collect()
            } else {
                reader.samples().map(Result::unwrap).collect()
            };
            let interleaved: Vec<f32> = (0..signal.len())
                .flat_map(|n| signal.channels().iter().map(move |channel| channel[n]))
                .collect();
            assert_eq!(samples, interleaved);

            let mut writer = hound::WavWriter::create(&path, spec).unwrap();
            for &x in &samples {
                if format.is_integer() {
                    let code = f64::from(x) * 2_f64.powi(i32::from(format.bits()) - 1);
                    writer.write_sample(code as i32).unwrap();
                } else {
                    writer.write_sample(x).unwrap();
                }
            }
            writer.finalize().unwrap();
            assert_eq!(read(&path).unwrap(), signal);
        }
    }
}

#[test]
fn integer_samples_survive_bit_for_bit() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    for (format, step) in [(SampleFormat::Int8, 1), (SampleFormat::Int16, 1), (SampleFormat::Int24, 61)] {
        let bits = format.bits();
        let top = (1 << (bits - 1)) - 1;
        let codes: Vec<i32> = (-top - 1..=top).step_by(step).chain([top]).collect();
        let scale = (top + 1) as f32;
        let samples = codes.iter().map(|&code| code as f32 / scale).collect();
        let signal = Signal::new(8_000, format, vec![samples]).unwrap();
        assert_eq!(write(&path, &signal).unwrap(), 0);
        let mut reader = hound::WavReader::open(&path).unwrap();
        assert!(reader.samples::<i32>().map(Result::unwrap).eq(codes));
        assert!(read(&path).unwrap() == signal);
    }
}

#[test]
fn samples_are_rounded_and_clipping_is_counted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let step = 1.0 / 32_768.0;
    let samples = vec![1.0, -1.0, 1.1, -1.1, 1e30, 0.4 * step, 0.6 * step, -0.6 * step];
    let signal = Signal::new(8_000, SampleFormat::Int16, vec![samples]).unwrap();
    assert_eq!(write(&path, &signal).unwrap(), 3);
    let top = 1.0 - step;
    assert_eq!(read(&path).unwrap().channels()[0], [top, -1.0, top, -1.0, top, 0.0, step, -step]);
    assert_eq!(write(&path, &signal.with_format(SampleFormat::Float32)).unwrap(), 0);
    assert_eq!(read(&path).unwrap().channels()[0][4], 1e30);
}

/// Triangular dither of ±1 step makes the mean and the power of the error (a quarter of a
/// squared step) independent of the signal; plain rounding gives 0.25 and 0.0625 here.
#[test]
fn dither_decouples_the_error_from_the_signal() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let step = 1.0 / 128.0;
    let value = 10.25 * step;
    let samples = vec![vec![value; 100_000]; 2];
    let spec = OutputSpec {
        dither: Some(Dither::new(SeedTree::new(1))),
        ..spec(8_000, 2, SampleFormat::Int8, Container::Wav)
    };
    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    for block in [0..17, 17..40_000, 40_000..100_000] {
        let block: Vec<Vec<f32>> = samples.iter().map(|c| c[block.clone()].to_vec()).collect();
        writer.write_block(&block).unwrap();
    }
    writer.finish().unwrap();
    let dithered = read(&path).unwrap();
    for channel in dithered.channels() {
        let errors: Vec<f64> = channel.iter().map(|x| f64::from((x - value) / step)).collect();
        let mean = errors.iter().sum::<f64>() / errors.len() as f64;
        let power = errors.iter().map(|e| e * e).sum::<f64>() / errors.len() as f64;
        // Standard errors: 0.0016 and about 0.002.
        assert!(mean.abs() < 0.008 && (power - 0.25).abs() < 0.01, "{mean} {power}");
    }
    assert_ne!(dithered.channels()[0], dithered.channels()[1]);

    let whole = folder.path().join("b.wav");
    let mut writer = Writer::create(&whole, spec, &Metadata::default()).unwrap();
    writer.write_block(&samples).unwrap();
    writer.finish().unwrap();
    assert!(fs::read(&path).unwrap() == fs::read(&whole).unwrap(), "blocks change nothing");

    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    writer.write_block(&vec![vec![0.0; 1_000]; 2]).unwrap();
    writer.finish().unwrap();
    assert!(read(&path).unwrap().channels()[0].iter().all(|&x| x == 0.0), "silence stays silent");
}

/// Speech and residual of a recording of integers add up to it: the dither of one is the negated dither of the other. With
/// equal dither 58 % of these samples differ.
#[test]
fn parts_with_opposite_dither_add_up_to_the_whole() {
    let folder = TempDir::new().unwrap();
    let step = 1.0 / 32_768.0;
    let whole: Vec<f32> = (0..10_000).map(|n| ((n * 7919 % 2_001) - 1_000) as f32 * step).collect();
    let part: Vec<f32> = whole.iter().enumerate().map(|(n, x)| x * (n % 97) as f32 / 97.0).collect();
    let rest = whole.iter().zip(&part).map(|(whole, part)| whole - part).collect();
    let dither = Dither::new(SeedTree::new(1));
    let [part, rest] = [(part, dither), (rest, dither.negated())].map(|(samples, dither)| {
        let path = folder.path().join("a.wav");
        let spec = OutputSpec { dither: Some(dither), ..spec(8_000, 1, SampleFormat::Int16, Container::Wav) };
        let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
        writer.write_block(&[samples]).unwrap();
        writer.finish().unwrap();
        read(&path).unwrap().channels()[0].clone()
    });
    // A part that is silent has no dither, and the other one keeps its own.
    let differing = (0..whole.len()).filter(|&n| n % 97 != 0 && part[n] + rest[n] != whole[n]).count();
    assert_eq!(differing, 0);
}

#[test]
fn streams_are_read_again_though_their_length_is_open() {
    for container in [Container::Wav, Container::Flac] {
        for format in [SampleFormat::Int8, SampleFormat::Int16, SampleFormat::Int24] {
            // An odd number of bytes at 8 bits.
            let samples = channels(3, 9_001);
            let stream = Shared::default();
            let spec = spec(16_000, 3, format, container);
            let mut writer = Writer::to_stream("stdout", spec, &Metadata::default(), stream.clone()).unwrap();
            for block in [0..0, 0..5_000, 5_000..9_001] {
                let block: Vec<Vec<f32>> = samples.iter().map(|c| c[block.clone()].to_vec()).collect();
                writer.write_block(&block).unwrap();
            }
            assert_eq!(writer.finish().unwrap(), 0);
            let bytes = stream.0.lock().unwrap().clone();
            let reader = Reader::from_stream("stdin", io::Cursor::new(bytes)).unwrap();
            assert_eq!(reader.length(), None);
            let again = reader.read_all().unwrap();
            assert_eq!(again.format(), format);
            assert!(again.channels() == samples);
        }
    }
}

#[test]
fn a_closed_pipe_is_an_error_and_no_panic() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let spec = spec(16_000, 1, SampleFormat::Int16, Container::Wav);
    let error = Writer::to_stream("stdout", spec, &Metadata::default(), Closed).unwrap_err();
    assert!(matches!(error, Error::Write { reason: WriteError::Io(_), .. }));
    assert_eq!(error.to_string(), "stdout: cannot be written: broken pipe");
}

#[test]
fn a_file_appears_when_it_is_finished() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.wav");
    let spec = spec(8_000, 1, SampleFormat::Int16, Container::Wav);
    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    writer.write_block(&[vec![0.5; 100_000]]).unwrap();
    assert!(!path.exists());
    drop(writer);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    writer.write_block(&[vec![2.0, 0.5]]).unwrap();
    let (clipped, file) = writer.complete().unwrap();
    let file = file.unwrap();
    let content = fs::read(file.temporary_path()).unwrap();
    assert!(clipped == 1 && !path.exists());
    file.persist().unwrap();
    assert!(fs::read(&path).unwrap() == content && read(&path).unwrap().len() == 2);

    fs::write(&path, b"before").unwrap();
    let mut writer = Writer::create(&path, spec, &Metadata::default()).unwrap();
    let error = writer.write_block(&[vec![0.0, f32::NAN]]).unwrap_err();
    assert!(error.to_string().ends_with("sample 2 of channel 1 is NaN: expected a finite value"));
    drop(writer);
    assert_eq!(fs::read(&path).unwrap(), b"before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_failed_write_leaves_everything_as_it_was() {
    let folder = TempDir::new().unwrap();
    let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.0]; 9]).unwrap();
    let inner = folder.path().join("missing").join("a.wav");
    let fast = Signal::new(192_000, SampleFormat::Int16, vec![vec![0.0]]).unwrap();
    let flac = folder.path().join("a.flac");
    for (path, signal) in [(folder.path(), &signal), (&inner, &signal), (&flac, &signal), (&flac, &fast)] {
        assert!(matches!(write(path, signal), Err(Error::Write { path: p, .. }) if p == path));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
#[cfg(unix)]
fn output_may_be_a_link_but_not_the_input() {
    let folder = TempDir::new().unwrap();
    let [input, soft, hard, other, link] =
        ["in.wav", "soft.wav", "hard.wav", "other.wav", "link.wav"].map(|n| folder.path().join(n));
    let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.0]]).unwrap();
    write(&input, &signal).unwrap();
    std::os::unix::fs::symlink(&input, &soft).unwrap();
    fs::hard_link(&input, &hard).unwrap();
    for output in [&input, &soft, &hard, &folder.path().join(".").join("in.wav")] {
        assert!(matches!(
            check_distinct(&input, output),
            Err(Error::Write { reason: WriteError::SameAsInput(_), .. })
        ));
    }
    assert!(check_distinct(&input, &other).is_ok());

    write(&other, &signal).unwrap();
    std::os::unix::fs::symlink(&other, &link).unwrap();
    let longer = signal.with_channels(vec![vec![0.5; 2]]).unwrap();
    write(&link, &longer).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(read(&other).unwrap(), longer);
}
