//! One recording from its source to its outputs, block by block.

use super::ffmpeg::{self, Encoding, Ffmpeg};
use super::live::Aligned;
use super::processing::{Processing, Section};
use super::terminal::{
    check_standard_output, interrupted, interruptible, is_device, is_standard, name, open_device, printable,
    seekable_output, usage,
};
use alphamf::denoiser::{
    NoiseProfile, SessionOutput, SessionSettings, SpeechLevel, SpeechLevels, Statistics,
};
use alphamf::signal::{SampleFormat, Signal};
use alphamf::{Cancelled, Denoiser, Session};
use alphamf_eval::plot::{Caption, Figure, FrequencyScale, MIN_DRAWS, RecordingPlot};
use alphamf_files::{Container, Error, Layout, Losses, Metadata, ReadError, Reader, WriteError, Writer};
use anyhow::Context;
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// A recording to denoise.
pub struct Recording<'a> {
    pub denoiser: &'a Denoiser,
    /// Mix, channels and dither.
    pub session: &'a SessionSettings,
    pub processing: &'a Processing,
    pub input: &'a Path,
    pub output: &'a Path,
    /// Where what was taken out goes.
    pub residual: Option<&'a Path>,
    /// The scale of frequency if it is to be drawn.
    pub draw: Option<FrequencyScale>,
    /// Whether to tell the levels of the voice.
    pub levels: bool,
}

/// What came of a recording.
#[derive(Debug, Serialize)]
pub struct Found {
    #[serde(flatten)]
    pub statistics: Statistics,
    pub input_format: String,
    pub output_format: String,
    pub clipped_samples: u64,
    pub damaged_packets: u64,
    /// Per channel, in the places of what is lost.
    pub silent_samples: u64,
    /// Per channel, at the end.
    pub missing_samples: u64,
    pub samples_not_finite: u64,
    pub ends_early: bool,
    /// Of `--live`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_seconds: Option<f64>,
    pub processing_seconds: f64,
    pub real_time_factor: f64,
    #[serde(skip)]
    pub figure: Option<Figure>,
    /// Those of the voice, as a table.
    #[serde(skip)]
    pub levels: Option<String>,
}

impl Found {
    /// What a person should know of, each in a few words.
    pub fn notes(&self) -> Vec<String> {
        [
            (self.statistics.clipped_input_samples, "samples came clipped, and stay so"),
            (self.clipped_samples, "samples clipped in the result"),
            (self.damaged_packets, "damaged packets replaced with silence"),
            (self.missing_samples, "samples missing at the end"),
            (self.samples_not_finite, "samples that were not finite replaced with zeros"),
            (self.statistics.clicks as u64, "clicks repaired"),
            (self.statistics.heavy_tailed_blocks as u64, "blocks with heavy-tailed noise"),
            (self.statistics.divergences as u64, "moves of the sampler diverged and were rejected"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .chain(self.ends_early.then(|| "unexpected end of file".to_owned()))
        .collect()
    }
}

/// Told the seconds that are done and, if known, how many there are; may ask to stop.
pub type OnProgress<'a> = &'a mut (dyn FnMut(f64, Option<f64>) -> ControlFlow<()> + Send);

impl Recording<'_> {
    /// Denoises it.
    pub fn denoise(&self, progress: OnProgress) -> anyhow::Result<Found> {
        let began = Instant::now();
        let is_file = !is_standard(self.input) && (self.input.is_file() || !self.input.exists());
        if self.processing.noise_from.is_some() && !is_file {
            return Err(usage("--noise-from needs a file, as the stretch is read before the rest"));
        }
        let mut reader = self.open()?;
        let (sample_rate, channels) = (reader.sample_rate(), reader.channels());
        let (length, input_format) = (reader.length(), reader.format());
        let duration = length.map(|samples| samples as f64 / f64::from(sample_rate));
        let metadata = reader.metadata().clone();
        let in_input = || name(self.input, "standard input").display().to_string();

        let settings = SessionSettings {
            residual: self.residual.is_some(),
            deviation: self.draw.is_some() && self.denoiser.settings().draws() >= MIN_DRAWS,
            levels: self.levels || self.draw.is_some(),
            ..self.session.clone()
        };
        let session = self.denoiser.session(sample_rate, channels, settings);
        let mut session = session.with_context(in_input)?;
        if let Some(stretch) = self.processing.noise_from {
            session.set_noise_profile(&self.noise(stretch)?).with_context(in_input)?;
        }
        let layout = self.layout(&reader, &session);
        let mut output = self.create(self.output, layout, &metadata)?;
        let mut residual = self
            .residual
            .map(|path| self.create(path, Layout { container: self.container(path), ..layout }, &metadata))
            .transpose()?;
        let window = self.denoiser.dictionary().header().window_seconds;
        let plot = self.draw.map(|scale| RecordingPlot::new(sample_rate, channels, window, scale));
        let mut plot = plot.transpose().with_context(in_input)?;
        let mut levels = self.levels.then(|| LEVELS_HEADER.to_owned());

        let live = self.processing.live.settings(self.denoiser, self.session.mix);
        let live = live.map(|settings| Aligned::new(self.denoiser, sample_rate, channels, settings));
        let mut live = live.transpose().with_context(in_input)?;
        // The session gathers blocks itself: this is how often a stream is looked at.
        let size = live.as_ref().map_or(session.block_samples().div_ceil(8), Aligned::block_samples);
        let mut samples = 0;
        loop {
            let block;
            (reader, block) = read(reader, size)?;
            let last = block[0].is_empty();
            let mut advance = |seconds: f64| progress(seconds, duration);
            samples += block[0].len() as u64;
            let portion = match &mut live {
                Some(live) => {
                    if advance(samples as f64 / f64::from(sample_rate)).is_break() {
                        return Err(Cancelled.into());
                    }
                    let voice = if last { live.finish() } else { live.push(&block) };
                    Ok(SessionOutput { speech: voice, residual: Vec::new() })
                }
                None if last => session.finish_with_progress(&mut advance),
                None => {
                    let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
                    session.push_with_progress(&block, &mut advance)
                }
            };
            let SessionOutput { speech: voice, residual: removed } = portion.with_context(in_input)?;
            output.write_block(&voice)?;
            if let Some(residual) = &mut residual {
                residual.write_block(&removed)?;
            }
            let done = session.take_levels();
            if let Some(plot) = &mut plot {
                plot.push(&block, &voice);
                plot.push_deviations(&session.take_gain_std());
                plot.push_levels(&done);
            }
            if let Some(table) = &mut levels {
                for (channel, levels) in done.iter().enumerate() {
                    add_levels(table, channel, levels);
                }
            }
            if last {
                break;
            }
            if interrupted().is_break() {
                return Err(Cancelled.into());
            }
        }
        let losses = reader.losses();
        if self.processing.strict && losses.any() {
            return Err(Incomplete { name: in_input(), losses }.into());
        }
        residual.map(Output::finish).transpose()?;
        let clipped_samples = output.finish()?;
        let (mut statistics, taken) = (session.statistics(), began.elapsed().as_secs_f64());
        if live.is_some() {
            // All else is for a session to find.
            statistics.samples = samples;
            statistics.duration_seconds = samples as f64 / f64::from(sample_rate);
        }
        Ok(Found {
            input_format: input_format.to_string(),
            output_format: match self.processing.encoded(self.output) {
                Some(kind) => format!("{kind} by ffmpeg"),
                None => format!("{} {:?}", layout.format, layout.container),
            },
            clipped_samples,
            damaged_packets: losses.damaged_packets,
            silent_samples: losses.silent_samples,
            missing_samples: losses.missing_samples,
            samples_not_finite: losses.not_finite,
            ends_early: losses.ends_early,
            latency_seconds: self.processing.live.latency_seconds(),
            processing_seconds: taken,
            real_time_factor: taken / statistics.duration_seconds,
            figure: plot.map(|plot| {
                plot.finish(Caption {
                    name: name(self.input, "standard input")
                        .file_name()
                        .unwrap_or_default()
                        .display()
                        .to_string(),
                    sample_rate,
                    channels,
                    seconds: statistics.duration_seconds,
                    snr_before_db: statistics.snr_before_db,
                    snr_after_db: statistics.snr_after_db,
                })
            }),
            levels,
            statistics,
        })
    }

    fn open(&self) -> anyhow::Result<Reader> {
        let (input, raw, salvage) = (self.input.to_owned(), self.processing.raw, self.processing.salvage);
        // Sound that goes with pictures begins with them.
        let in_time = self.processing.encoded(self.output).is_some_and(ffmpeg::Kind::has_video)
            && ffmpeg::Kind::of(self.input).is_some_and(ffmpeg::Kind::has_video);
        let open = move || {
            let standard = name(&input, "standard input");
            let reader = match (is_standard(&input), raw) {
                (true, None) => Reader::from_stream(standard, io::stdin()),
                (true, Some(raw)) => Reader::from_raw_stream(standard, io::stdin(), raw),
                (false, None) => open_any(&input, in_time),
                (false, Some(raw)) => Reader::open_raw(&input, raw),
            };
            reader.map(|reader| reader.salvage(salvage))
        };
        Ok(interruptible(open)??)
    }

    /// Begins an output: a file that appears when it is complete, or a stream.
    fn create(&self, path: &Path, layout: Layout, metadata: &Metadata) -> anyhow::Result<Output> {
        let plain = |writer| Output { writer, encoding: None };
        let failed = |path: &Path| {
            let path = path.to_owned();
            |error| Error::Write { path, reason: WriteError::Io(error) }
        };
        if is_standard(path) {
            let name = Path::new("standard output");
            check_standard_output().map_err(failed(name))?;
            let writer = match seekable_output() {
                Some(file) => Writer::to_seekable_with(name, layout, metadata, file)?,
                None => Writer::to_stream_with(name, layout, metadata, io::stdout())?,
            };
            return Ok(plain(writer));
        }
        if is_device(path) {
            let stream = open_device(path)?.map_err(failed(path))?;
            return Ok(plain(Writer::to_stream_with(path, layout, metadata, stream)?));
        }
        if let Some((kind, ffmpeg)) = self.processing.encoded(path).zip(Ffmpeg::find()) {
            let is_original =
                !is_standard(self.input) && self.input.is_file() && self.processing.raw.is_none();
            let original = is_original.then_some(self.input);
            let (writer, encoding) = ffmpeg.encode(path, kind, layout, metadata, original)?;
            return Ok(Output { writer, encoding: Some(encoding) });
        }
        Ok(plain(Writer::create_with(path, layout, metadata)?))
    }

    fn container(&self, path: &Path) -> Container {
        self.processing.container().unwrap_or_else(|| Container::from_path(path))
    }

    fn layout(&self, reader: &Reader, session: &Session) -> Layout {
        let container = self.container(self.output);
        let depth = self.processing.format.and_then(|format| format.depth).unwrap_or(reader.format());
        let format = match (container, depth) {
            (Container::Flac, depth) if depth.bits() > 24 => SampleFormat::Int24,
            _ => depth,
        };
        Layout {
            sample_rate: reader.sample_rate(),
            channels: reader.channels(),
            format,
            container,
            length: reader.length(),
            speakers: reader.speakers(),
            dither: session.dither(reader.format(), format),
        }
    }

    /// The noise of the stretch.
    fn noise(&self, stretch: Section) -> anyhow::Result<NoiseProfile> {
        let mut reader = self.open()?;
        let sample_rate = reader.sample_rate();
        let sample = |seconds: f64| (seconds * f64::from(sample_rate)).round() as u64;
        let (start, end) = (sample(stretch.start), stretch.end.map_or(u64::MAX, sample));
        let mut profile = self.denoiser.noise_profile(sample_rate, reader.channels())?;
        let block_samples = 16 * u64::from(sample_rate);
        let mut position = 0;
        while position < end {
            let goal = if position < start { start } else { end };
            let block;
            (reader, block) = read(reader, (goal - position).min(block_samples) as usize)?;
            if block[0].is_empty() {
                break;
            }
            if position >= start {
                let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
                profile.push(&block)?;
            }
            position += block[0].len() as u64;
        }
        if position <= start || position < stretch.end.map_or(0, sample) {
            let seconds = position as f64 / f64::from(sample_rate);
            return Err(usage(format!("--noise-from: {} ends at {seconds:.2} s", self.input.display())));
        }
        Ok(profile)
    }
}

/// The columns of a table of levels.
const LEVELS_HEADER: &str = "channel,start_seconds,low_hz,high_hz,level_dbfs,lower_dbfs,upper_dbfs\n";

/// Adds the levels of a channel, counted from nothing, or of all that share one gain; silence is left empty.
fn add_levels(table: &mut String, channel: usize, levels: &SpeechLevels) {
    let SpeechLevels { edges_hertz, slot_seconds, first_slot, cells } = levels;
    let bands = edges_hertz.len().saturating_sub(1).max(1);
    for (slot, cells) in (*first_slot..).zip(cells.chunks_exact(bands)) {
        let start = slot as f64 * slot_seconds;
        for (edges, cell) in edges_hertz.windows(2).zip(cells) {
            let (low, high) = (edges[0], edges[1]);
            *table += &format!("{},{start:.1},{low:.1},{high:.1},", channel + 1);
            *table += &match cell {
                Some(SpeechLevel { level_dbfs, lower_dbfs, upper_dbfs }) => {
                    format!("{level_dbfs:.2},{lower_dbfs:.2},{upper_dbfs:.2}\n")
                }
                None => ",,\n".to_owned(),
            };
        }
    }
}

/// The next samples of every channel, and the reader for those after them; Ctrl-C ends the waiting for them.
fn read(mut reader: Reader, samples: usize) -> anyhow::Result<(Reader, Vec<Vec<f32>>)> {
    let (reader, block) = interruptible(move || {
        let block = reader.read_block(samples);
        (reader, block)
    })?;
    Ok((reader, block?))
}

/// Opens a file, by way of ffmpeg where that is needed; see [`Ffmpeg::decode`] for `in_time`.
fn open_any(input: &Path, in_time: bool) -> Result<Reader, Error> {
    const WITHOUT_FFMPEG: &str = " (ffmpeg, which reads more, is not on the PATH)";
    let ffmpeg = Ffmpeg::find();
    if let (true, Some(ffmpeg)) = (in_time, &ffmpeg) {
        return ffmpeg.decode(input, in_time);
    }
    let unread = match Reader::open(input) {
        Err(Error::Read { path, reason: ReadError::Unsupported(what) }) if ffmpeg.is_none() => {
            return Err(Error::Read { path, reason: ReadError::Unsupported(what + WITHOUT_FFMPEG) });
        }
        Err(Error::Read { path, reason: ReadError::NotAudio(what) }) if ffmpeg.is_none() => {
            return Err(Error::Read { path, reason: ReadError::NotAudio(what + WITHOUT_FFMPEG) });
        }
        Err(error @ Error::Read { reason: ReadError::Unsupported(_) | ReadError::NotAudio(_), .. }) => error,
        other => return other,
    };
    // What it does not read either is what it was.
    ffmpeg.filter(|_| input.is_file()).and_then(|ffmpeg| ffmpeg.decode(input, in_time).ok()).ok_or(unread)
}

/// A whole recording. What it lacks is told, or refused if `strict`.
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

/// A recording that is refused for what it lacks.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {losses}, and --strict refuses that")]
pub struct Incomplete {
    name: String,
    losses: Losses,
}

/// A file or stream that is being written.
struct Output {
    writer: Writer,
    /// Of a file that ffmpeg writes.
    encoding: Option<Encoding>,
}

impl Output {
    fn write_block(&mut self, channels: &[Vec<f32>]) -> Result<(), Error> {
        let written = self.writer.write_block(channels);
        if let Some(encoding) = self.encoding.take_if(|_| written.is_err()) {
            // Why it does not listen any more says more than that it does not.
            encoding.finish()?;
        }
        written
    }

    /// Completes it and returns how many samples were clipped.
    fn finish(self) -> Result<u64, Error> {
        let clipped = self.writer.finish();
        self.encoding.map(Encoding::finish).transpose()?;
        clipped
    }
}
