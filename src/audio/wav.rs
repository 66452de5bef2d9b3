use super::error::{Error, ReadError, WriteError};
use super::signal::{SampleFormat, Signal, check_sample_rate};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Reads a WAV file of 8, 16, 24 or 32-bit integers or 32-bit floats.
///
/// # Errors
/// [`Error::Read`] with the reason: missing, empty, truncated, not audio, an unsupported encoding,
/// or samples that do not make a [`Signal`].
pub fn read(path: impl AsRef<Path>) -> Result<Signal, Error> {
    let path = path.as_ref();
    read_wav(path).map_err(|reason| Error::Read { path: path.to_owned(), reason })
}

/// Writes a WAV file in the signal's format and returns how many samples were clipped.
///
/// The file appears under its name when it is complete; on failure whatever was there before
/// remains. In integer formats, samples are rounded to the nearest code and those beyond ±1 are
/// clipped.
///
/// # Errors
/// [`Error::Write`] with the reason.
pub fn write(path: impl AsRef<Path>, signal: &Signal) -> Result<u64, Error> {
    let path = path.as_ref();
    write_wav(path, signal).map_err(|reason| Error::Write { path: path.to_owned(), reason })
}

/// Refuses an output that would overwrite the input, under whatever name or link.
///
/// # Errors
/// [`Error::Write`] with [`WriteError::SameAsInput`] if both are one file.
pub fn check_distinct(input: impl AsRef<Path>, output: impl AsRef<Path>) -> Result<(), Error> {
    let (input, output) = (input.as_ref(), output.as_ref());
    // Files that cannot be opened are not the same; reading or writing them says what is wrong.
    match same_file::is_same_file(input, output) {
        Ok(true) => {
            Err(Error::Write { path: output.to_owned(), reason: WriteError::SameAsInput(input.to_owned()) })
        }
        _ => Ok(()),
    }
}

fn read_wav(path: &Path) -> Result<Signal, ReadError> {
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing,
        _ => ReadError::Io(error),
    })?;
    let mut bytes = BufReader::new(file);
    if io::BufRead::fill_buf(&mut bytes).map_err(ReadError::Io)?.is_empty() {
        return Err(ReadError::Empty);
    }
    let mut reader = hound::WavReader::new(bytes).map_err(in_header)?;
    let spec = reader.spec();
    check_sample_rate(spec.sample_rate)?;
    let format = match (spec.sample_format, spec.bits_per_sample) {
        (hound::SampleFormat::Int, 8) => SampleFormat::Int8,
        (hound::SampleFormat::Int, 16) => SampleFormat::Int16,
        (hound::SampleFormat::Int, 24) => SampleFormat::Int24,
        (hound::SampleFormat::Int, 32) => SampleFormat::Int32,
        (hound::SampleFormat::Float, 32) => SampleFormat::Float32,
        (_, bits) => return Err(ReadError::Unsupported(format!("{bits} bits a sample"))),
    };
    let channels = if format.is_integer() {
        let scale = 2_f64.powi(1 - i32::from(format.bits()));
        deinterleave(&mut reader, |code: i32| (f64::from(code) * scale) as f32)?
    } else {
        deinterleave(&mut reader, |sample: f32| sample)?
    };
    Ok(Signal::new(spec.sample_rate, format, channels)?)
}

fn deinterleave<S: hound::Sample>(
    reader: &mut hound::WavReader<impl Read>,
    value: impl Fn(S) -> f32,
) -> Result<Vec<Vec<f32>>, ReadError> {
    let channel_count = usize::from(reader.spec().channels);
    let expected = u64::from(reader.len());
    let mut channels = vec![Vec::new(); channel_count];
    for (found, sample) in reader.samples::<S>().enumerate() {
        let sample = sample.map_err(|error| match error {
            // Hound reports a premature end by an error of this kind.
            hound::Error::IoError(error) if error.kind() == io::ErrorKind::Other => {
                ReadError::Truncated { expected, found: found as u64 }
            }
            error => in_header(error),
        })?;
        channels[found % channel_count].push(value(sample));
    }
    Ok(channels)
}

fn in_header(error: hound::Error) -> ReadError {
    match error {
        hound::Error::IoError(error) if error.kind() == io::ErrorKind::Other => {
            ReadError::NotAudio("it ends within its header".into())
        }
        hound::Error::IoError(error) => ReadError::Io(error),
        hound::Error::FormatError(reason) => ReadError::NotAudio(reason.into()),
        error => ReadError::Unsupported(error.to_string()),
    }
}

fn write_wav(path: &Path, signal: &Signal) -> Result<u64, WriteError> {
    let format = signal.format();
    let channels = signal.channels();
    let spec = hound::WavSpec {
        channels: u16::try_from(channels.len()).map_err(|_| WriteError::TooManyChannels(channels.len()))?,
        sample_rate: signal.sample_rate(),
        bits_per_sample: format.bits(),
        sample_format: if format.is_integer() {
            hound::SampleFormat::Int
        } else {
            hound::SampleFormat::Float
        },
    };
    const HEADER: u64 = 128; // more than any header takes
    let samples = channels.len() as u64 * signal.len() as u64;
    if samples.saturating_mul(u64::from(format.bits() / 8)) > u64::from(u32::MAX) - HEADER {
        return Err(WriteError::TooLong { samples, format });
    }
    let mut output = Output::create(path)?;
    let mut writer = hound::WavWriter::new(BufWriter::new(&mut output.file), spec).map_err(in_output)?;
    let mut clipped = 0;
    let full_scale = 2_f64.powi(i32::from(format.bits()) - 1);
    for n in 0..signal.len() {
        for samples in channels {
            if format.is_integer() {
                let code = (f64::from(samples[n]) * full_scale).round();
                // +1 is full scale, though its code is one more than there is.
                clipped += u64::from(code.abs() > full_scale);
                let code = code.clamp(-full_scale, full_scale - 1.0);
                writer.write_sample(code as i32).map_err(in_output)?;
            } else {
                writer.write_sample(samples[n]).map_err(in_output)?;
            }
        }
    }
    writer.finalize().map_err(in_output)?;
    output.finish()?;
    Ok(clipped)
}

fn in_output(error: hound::Error) -> WriteError {
    WriteError::Io(match error {
        hound::Error::IoError(error) => error,
        error => io::Error::other(error),
    })
}

/// A file that appears under its name when it is complete, and not at all before.
struct Output {
    file: tempfile::NamedTempFile,
    path: PathBuf,
}

impl Output {
    fn create(path: &Path) -> Result<Self, WriteError> {
        // A link is followed, so that it is its target that is replaced.
        let path = match fs::canonicalize(path) {
            Ok(path) if path.is_file() => path,
            Ok(_) => return Err(WriteError::NotAFile),
            Err(_) => path.to_owned(),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".alphamf-").suffix(".part");
        #[cfg(unix)]
        {
            // As for any new file: what the umask leaves.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder).map_err(WriteError::Io)?;
        Ok(Self { file, path })
    }

    fn finish(mut self) -> Result<(), WriteError> {
        self.file.flush().map_err(WriteError::Io)?;
        self.file.persist(&self.path).map_err(|error| WriteError::Io(error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::InvalidSignal;
    use tempfile::TempDir;

    const FORMATS: [SampleFormat; 5] = [
        SampleFormat::Int8,
        SampleFormat::Int16,
        SampleFormat::Int24,
        SampleFormat::Int32,
        SampleFormat::Float32,
    ];

    /// Every code of 8 bits in the top byte of a sample, the extremes included.
    fn codes() -> Vec<f32> {
        (-128..128).map(|k| k as f32 / 128.0).collect()
    }

    #[test]
    fn writing_and_reading_returns_rate_channels_format_and_samples() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        for format in FORMATS {
            for (sample_rate, count) in [(8_000, 1), (11_025, 2), (44_100, 6), (192_000, 3)] {
                let channels = (0..count).map(|c| codes()[c..].to_vec()).map(|mut c| {
                    c.truncate(250);
                    c
                });
                let signal = Signal::new(sample_rate, format, channels.collect()).unwrap();
                assert_eq!(write(&path, &signal).unwrap(), 0);
                assert_eq!(read(&path).unwrap(), signal);
            }
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    #[test]
    fn integer_samples_survive_bit_for_bit() {
        let folder = TempDir::new().unwrap();
        let (first, second) = (folder.path().join("a.wav"), folder.path().join("b.wav"));
        for (bits, step) in [(8, 1), (16, 1), (24, 997)] {
            let spec = hound::WavSpec {
                channels: 1,
                sample_rate: 16_000,
                bits_per_sample: bits,
                sample_format: hound::SampleFormat::Int,
            };
            let mut writer = hound::WavWriter::create(&first, spec).unwrap();
            let top = (1 << (bits - 1)) - 1;
            for code in (-top - 1..=top).step_by(step).chain([top]) {
                writer.write_sample(code).unwrap();
            }
            writer.finalize().unwrap();
            assert_eq!(write(&second, &read(&first).unwrap()).unwrap(), 0);
            assert!(fs::read(&first).unwrap() == fs::read(&second).unwrap(), "{bits} bits");
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

    fn reason(path: &Path) -> ReadError {
        match read(path) {
            Err(Error::Read { path: named, reason }) => {
                assert_eq!(named, path);
                reason
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn bad_input_is_named() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.wav");
        assert!(matches!(reason(&path), ReadError::Missing));
        assert_eq!(read(&path).unwrap_err().to_string(), format!("{}: no such file", path.display()));
        assert!(matches!(reason(folder.path()), ReadError::Io(_)));
        fs::write(&path, []).unwrap();
        assert!(matches!(reason(&path), ReadError::Empty));
        fs::write(&path, b"This is not audio, just text that is long enough.").unwrap();
        assert!(matches!(reason(&path), ReadError::NotAudio(_)));

        let signal = Signal::new(8_000, SampleFormat::Float32, vec![vec![0.5; 100]; 2]).unwrap();
        write(&path, &signal).unwrap();
        let bytes = fs::read(&path).unwrap();
        let header = bytes.len() - 800;
        for length in 1..bytes.len() {
            fs::write(&path, &bytes[..length]).unwrap();
            match reason(&path) {
                ReadError::NotAudio(_) => assert!(length < header),
                ReadError::Truncated { expected: 200, found } => {
                    assert_eq!(found, (length - header) as u64 / 4);
                }
                other => panic!("{length} bytes: {other:?}"),
            }
        }

        let mut bad = bytes.clone();
        bad[header + 12..header + 16].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        assert!(matches!(
            reason(&path),
            ReadError::Signal(InvalidSignal::NotFinite { channel: 1, sample: 1, .. })
        ));

        let rate = bytes.windows(4).position(|w| w == 8_000_u32.to_le_bytes()).unwrap();
        let mut bad = bytes;
        bad[rate..rate + 4].copy_from_slice(&4_000_u32.to_le_bytes());
        bad[rate + 4..rate + 8].copy_from_slice(&32_000_u32.to_le_bytes());
        fs::write(&path, &bad).unwrap();
        assert!(matches!(reason(&path), ReadError::Signal(InvalidSignal::SampleRate { found: 4_000 })));
    }

    #[test]
    fn a_failed_write_leaves_everything_as_it_was() {
        let folder = TempDir::new().unwrap();
        let signal = Signal::new(8_000, SampleFormat::Int16, vec![vec![0.0]]).unwrap();
        for path in [folder.path().to_owned(), folder.path().join("missing").join("a.wav")] {
            assert!(matches!(write(&path, &signal), Err(Error::Write { path: p, .. }) if p == path));
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
}
