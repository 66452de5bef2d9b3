//! Inputs: files that this program or ffmpeg decodes, and streams.

use super::found::Incomplete;
use crate::ffmpeg::{DecodeReport, Decoded, Ffmpeg, NO_AUDIO};
use crate::interrupts::{interruptible, receive};
use crate::streams::{is_standard, name};
use crate::terminal::printable;
use alphamf::signal::{InvalidSignal, SampleFormat, Signal};
use alphamf_files::{Error, Losses, RawFormat, ReadError, Reader};
use anyhow::Context;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;

/// Number of samples per channel to read.
#[derive(Clone, Copy)]
pub(super) enum Count {
    /// Exactly this number; fewer only at the end.
    Exact(usize),
    /// Those available, at most this number.
    Available(usize),
}

/// A recording that is being read.
pub struct Source {
    reader: Reader,
    /// Sample format of the recording, or 16-bit integers if it is lossy.
    format: SampleFormat,
    /// Report of ffmpeg, if it decodes the recording.
    report: Option<DecodeReport>,
    /// Reason that the recording is not read without ffmpeg.
    refusal: Option<ReadError>,
    /// Started for the first block that may block the caller.
    thread: Option<ReadThread>,
}

impl From<Reader> for Source {
    fn from(reader: Reader) -> Self {
        Self { format: reader.format(), reader, report: None, refusal: None, thread: None }
    }
}

/// Samples of every channel.
type Block = Vec<Vec<f32>>;

/// A thread that reads blocks, so that Ctrl-C interrupts the wait for them. It ends when this value is dropped.
struct ReadThread {
    orders: SyncSender<(Reader, Count)>,
    blocks: Receiver<(Reader, Result<Block, Error>)>,
}

impl ReadThread {
    fn start() -> anyhow::Result<Self> {
        let (orders, ordered) = mpsc::sync_channel::<(Reader, Count)>(1);
        let (finished, blocks) = mpsc::sync_channel(1);
        let work = move || {
            for (mut reader, count) in ordered {
                let block = match count {
                    Count::Exact(samples) => reader.read_block(samples),
                    Count::Available(most) => reader.read_available(most),
                };
                if finished.send((reader, block)).is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().spawn(work).context("cannot start a thread")?;
        Ok(Self { orders, blocks })
    }
}

const WITHOUT_FFMPEG: &str = " (ffmpeg, which reads more formats, is not on the PATH)";
const PIPED: &str = " (ffmpeg is not used for pipes: name the file)";

/// Adds the reason that ffmpeg was not used, if a format is not read without it.
fn with_hint(error: Error, hint: &str) -> Error {
    let Error::Read { path, reason } = error else { return error };
    let reason = match reason {
        ReadError::Unsupported(what) => ReadError::Unsupported(what + hint),
        ReadError::NotAudio(what) => ReadError::NotAudio(what + hint),
        other => other,
    };
    Error::Read { path, reason }
}

/// Opens a file, with ffmpeg where needed; see [`Ffmpeg::decode`] for `in_time`.
fn open_any(input: &Path, in_time: bool) -> Result<Source, Error> {
    let decode = |ffmpeg: Ffmpeg| {
        let Decoded { reader, format, report } = ffmpeg.decode(input, in_time)?;
        Ok(Source { format, report: Some(report), ..reader.into() })
    };
    if in_time && let Some(ffmpeg) = Ffmpeg::find() {
        return decode(ffmpeg);
    }
    let (path, reason) = match Reader::open(input) {
        Err(Error::Read { path, reason: reason @ (ReadError::Unsupported(_) | ReadError::NotAudio(_)) }) => {
            (path, reason)
        }
        other => return other.map(Source::from),
    };
    let Some(ffmpeg) = Ffmpeg::find() else {
        return Err(with_hint(Error::Read { path, reason }, WITHOUT_FFMPEG));
    };
    if !input.is_file() {
        return Err(Error::Read { path, reason });
    }
    match decode(ffmpeg) {
        Err(Error::Read { reason: ReadError::NotAudio(what), .. }) if what == NO_AUDIO => {
            Err(Error::Read { path, reason: ReadError::NotAudio(what) })
        }
        Ok(source) => Ok(Source { refusal: Some(reason), ..source }),
        Err(_) => Err(Error::Read { path, reason }),
    }
}

/// Reason to refuse a WAV file that declares no samples but contains further data.
const NONE_DECLARED: &str = "its header declares no samples: --salvage reads the data that follow";

/// Explains an input without samples. ffmpeg may find no sample and report success: then `refusal`, the error without
/// ffmpeg, is the reason.
fn explained(error: Error, refusal: &mut Option<ReadError>, losses: Losses) -> Error {
    match error {
        Error::Read { path, reason: ReadError::Signal(InvalidSignal::NoSamples) } if losses.data_follow => {
            Error::Read { path, reason: ReadError::Io(io::Error::other(NONE_DECLARED)) }
        }
        Error::Read { path, reason: reason @ ReadError::Signal(InvalidSignal::NoSamples) } => {
            Error::Read { path, reason: refusal.take().unwrap_or(reason) }
        }
        error => error,
    }
}

/// Reads a whole recording. Missing and damaged parts are logged, or refused if `strict`.
pub fn read_whole(path: &Path, strict: bool) -> anyhow::Result<Signal> {
    let (signal, losses) = alphamf_files::read_with_losses(path)?;
    let name = path.display().to_string();
    if losses.any() {
        if strict {
            return Err(Incomplete { name, losses }.into());
        }
        tracing::warn!("{}", printable(&format!("{name}: {losses}")));
    }
    Ok(signal)
}

impl Source {
    /// Opens a file, or standard input if it is `-`. Ctrl-C interrupts waiting for a pipe.
    pub fn open(input: &Path, raw: Option<RawFormat>, salvage: bool, in_time: bool) -> anyhow::Result<Self> {
        let input = input.to_owned();
        let open = move || {
            let standard = name(&input, "standard input");
            let Self { reader, format, report, refusal, .. } = match (is_standard(&input), raw) {
                (true, None) => {
                    let reader = Reader::from_stream(standard, io::stdin());
                    reader.map_err(|error| with_hint(error, PIPED))?.into()
                }
                (true, Some(raw)) => Reader::from_raw_stream(standard, io::stdin(), raw).into(),
                (false, None) => open_any(&input, in_time)?,
                (false, Some(raw)) => Reader::open_raw(&input, raw)?.into(),
            };
            Ok::<_, Error>(Self { format, report, refusal, ..reader.salvage(salvage).into() })
        };
        Ok(interruptible(open)??)
    }

    /// The reader, before the first block.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Sample format of the recording, or 16-bit integers if it is lossy.
    pub fn format(&self) -> SampleFormat {
        self.format
    }

    /// Reads the next samples of every channel, of a file that does not block.
    pub fn read_block(&mut self, samples: usize) -> Result<Block, Error> {
        let block = self.reader.read_block(samples);
        block.map_err(|error| explained(error, &mut self.refusal, self.reader.losses()))
    }

    /// Reads the next samples of every channel. Also returns the source, for the remaining samples. Ctrl-C interrupts
    /// the wait.
    pub(super) fn read(self, count: Count) -> anyhow::Result<(Self, Block)> {
        let Self { reader, format, report, mut refusal, thread } = self;
        let thread = thread.map_or_else(ReadThread::start, Ok)?;
        thread.orders.send((reader, count)).ok().context("a thread failed")?;
        let (reader, block) = receive(&thread.blocks)?;
        let block = block.map_err(|error| explained(error, &mut refusal, reader.losses()))?;
        Ok((Self { reader, format, report, refusal, thread: Some(thread) }, block))
    }

    /// Missing and damaged parts of the input, of which `samples` per channel were read.
    pub fn losses(&self, samples: u64) -> Losses {
        let mut losses = self.reader.losses();
        if let Some(report) = &self.report {
            let rate = self.reader.sample_rate();
            report.add_to(&mut losses, samples as f64 / f64::from(rate), rate);
        }
        losses
    }

    /// Audio tracks besides the one that was read.
    pub(super) fn other_tracks(&self) -> usize {
        self.report.as_ref().map_or_else(|| self.reader.other_tracks(), DecodeReport::other_tracks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::{Arc, Mutex};
    use std::thread::ThreadId;

    /// Silence, and the threads that have read it.
    struct Silence(Arc<Mutex<Vec<ThreadId>>>);

    impl Read for Silence {
        fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(thread::current().id());
            bytes.fill(0);
            Ok(bytes.len())
        }
    }

    #[test]
    fn the_first_reason_stands_where_ffmpeg_finds_no_sample() {
        let none = || Error::Read { path: "a".into(), reason: InvalidSignal::NoSamples.into() };
        let mut refusal = Some(ReadError::Unsupported("G.999".into()));
        let explained =
            |error, refusal: &mut Option<_>| explained(error, refusal, Losses::default()).to_string();
        assert_eq!(explained(none(), &mut refusal), "a: unsupported encoding: G.999");
        assert_eq!(explained(none(), &mut None), none().to_string());
        let other = Error::Read { path: "a".into(), reason: ReadError::Empty };
        assert!(explained(other, &mut Some(ReadError::Missing)).contains("empty"));
    }

    #[test]
    fn one_thread_reads_all_blocks() {
        let threads = Arc::new(Mutex::new(Vec::new()));
        let raw = "16000:1:s16".parse().unwrap();
        let reader = Reader::from_raw_stream("silence", Silence(threads.clone()), raw);
        let mut source = Source::from(reader);
        for count in [Count::Exact(100_000), Count::Available(100_000), Count::Exact(200_000)] {
            let block;
            (source, block) = source.read(count).unwrap();
            assert!(!block[0].is_empty());
        }
        let threads = threads.lock().unwrap();
        assert!(threads.len() > 2 && threads.iter().all(|id| *id == threads[0]), "{threads:?}");
    }
}
