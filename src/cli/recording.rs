//! One recording from its source to its outputs, block by block.

use super::picture::{self, Levels};
use super::terminal::{interrupted, interruptible, is_device, usage};
use alphamf::audio::{self, Container, Error, Layout, RawFormat, Reader, SampleFormat, WriteError, Writer};
use alphamf::inference::{DenoiseError, DenoiseStream, Denoiser, MonteCarlo, NoiseProfile, Summary};
use alphamf::plot::{Columns, Figure};
use alphamf::random::Streams;
use anyhow::Context;
use clap::ValueEnum;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

/// Options of what is read, made of it, and written.
#[derive(Debug, Clone, clap::Args)]
pub struct Processing {
    /// Read samples without a header, such as 16000:1:s16; formats are u8, s8, s16, s24, s32, f32, f64, alaw, mulaw.
    #[arg(long, value_name = "RATE:CHANNELS:FORMAT")]
    raw: Option<RawFormat>,

    /// What to write: u8, s16, s24, s32 or f32, and wav or flac, or both as in flac:s24. The depth is the
    /// input's if not given, the kind of file that of the output's name.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,

    /// How much of the result is the denoised recording, 0 to 1; the rest is the recording as it was.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = parse_share)]
    mix: f32,

    /// Whether all channels share one gain, so that the stereo image stays, or are denoised one by one.
    #[arg(long, value_name = "HOW", default_value = "shared")]
    channels: Channels,

    /// A stretch that holds only noise, to learn it from: seconds or minutes:seconds, such as 0..1.5 or 1:20..1:24.
    #[arg(long, value_name = "START..END")]
    noise_from: Option<Stretch>,
}

/// How channels are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Channels {
    Shared,
    Separate,
}

/// A kind of file, a depth, or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Format {
    pub container: Option<Container>,
    depth: Option<SampleFormat>,
}

/// Why FLAC is not written as asked.
const SHALLOW: &str = "FLAC is written with 24 bits at most";

impl Format {
    /// Whether it asks for more than 24 bits.
    fn is_deep(self) -> bool {
        matches!(self.depth, Some(SampleFormat::Int32 | SampleFormat::Float32))
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut format = Self::default();
        for part in text.split(':') {
            let repeated = match part {
                "wav" => format.container.replace(Container::Wav).is_some(),
                "flac" => format.container.replace(Container::Flac).is_some(),
                "u8" => format.depth.replace(SampleFormat::Int8).is_some(),
                "s16" => format.depth.replace(SampleFormat::Int16).is_some(),
                "s24" => format.depth.replace(SampleFormat::Int24).is_some(),
                "s32" => format.depth.replace(SampleFormat::Int32).is_some(),
                "f32" => format.depth.replace(SampleFormat::Float32).is_some(),
                _ => return Err(format!("{part:?}: expected u8, s16, s24, s32, f32, wav or flac")),
            };
            if repeated {
                return Err("expected one depth and one kind of file at most".to_owned());
            }
        }
        if format.container == Some(Container::Flac) && format.is_deep() {
            return Err(SHALLOW.to_owned());
        }
        Ok(format)
    }
}

/// A stretch of time, s.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Stretch {
    start: f64,
    /// The end of the recording if not given.
    end: Option<f64>,
}

impl FromStr for Stretch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected START..END in seconds or minutes:seconds, such as 0..1.5 or 1:20..1:24";
        let (start, end) = text.split_once("..").ok_or(EXPECTED)?;
        let start = if start.is_empty() { 0.0 } else { parse_time(start).ok_or(EXPECTED)? };
        let end = if end.is_empty() { None } else { Some(parse_time(end).ok_or(EXPECTED)?) };
        if end.is_some_and(|end| end <= start) {
            return Err("expected an end after the start".to_owned());
        }
        Ok(Self { start, end })
    }
}

/// Seconds from `seconds`, `minutes:seconds` or `hours:minutes:seconds`.
fn parse_time(text: &str) -> Option<f64> {
    let mut total = 0.0;
    let parts: Vec<&str> = text.split(':').collect();
    for (place, part) in parts.iter().enumerate() {
        let value: f64 = part.parse().ok()?;
        let whole = place + 1 == parts.len() || value.fract() == 0.0;
        let in_place = place == 0 || value < 60.0;
        if !(value.is_finite() && value.is_sign_positive() && whole && in_place) {
            return None;
        }
        total = 60.0 * total + value;
    }
    (parts.len() <= 3).then_some(total)
}

fn parse_share(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 1".to_owned()),
    }
}

impl Processing {
    /// The kind of file that is asked for whatever the output's name.
    pub fn container(&self) -> Option<Container> {
        self.format.and_then(|format| format.container)
    }

    /// What the record of a run says of these options.
    pub fn record(&self) -> serde_json::Value {
        let noise_from = self.noise_from.map(|stretch| (stretch.start, stretch.end));
        serde_json::json!({ "mix": self.mix, "channels": self.channels, "noise_from_seconds": noise_from })
    }

    /// Refuses the name of a kind of file that is read but not written, or not in the depth that is asked for.
    pub fn check_name(&self, output: &Path) -> anyhow::Result<()> {
        let container = self.container().unwrap_or_else(|| Container::from_path(output));
        if container == Container::Flac && self.format.is_some_and(Format::is_deep) {
            return Err(usage(format!("{}: {SHALLOW}", output.display())));
        }
        if self.container().is_some() || is_written(output) || !audio::has_extension(output) {
            return Ok(());
        }
        let name = output.display();
        Err(usage(format!("{name}: only WAV and FLAC are written: name it so, or say which by --format")))
    }
}

/// Whether a file of this name is written as such.
pub fn is_written(name: &Path) -> bool {
    let extension = name.extension().unwrap_or_default();
    extension.eq_ignore_ascii_case("wav") || extension.eq_ignore_ascii_case("flac")
}

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What an input or output is called in messages.
pub fn name<'a>(path: &'a Path, standard: &'a str) -> &'a Path {
    if is_standard(path) { Path::new(standard) } else { path }
}

/// A recording to denoise.
pub struct Recording<'a> {
    pub denoiser: &'a Denoiser,
    pub processing: &'a Processing,
    pub input: &'a Path,
    pub output: &'a Path,
    /// Where what was taken out goes.
    pub residual: Option<&'a Path>,
    /// Whether to draw it.
    pub draw: bool,
}

/// What came of a recording.
#[derive(Debug, Serialize)]
pub struct Found {
    pub sample_rate: u32,
    pub channels: usize,
    /// Per channel.
    pub samples: u64,
    pub duration_seconds: f64,
    pub input_format: String,
    pub output_format: String,
    /// None for silence.
    pub estimated_snr_db: Option<f64>,
    pub attenuation_db: Option<f64>,
    pub clipped_samples: u64,
    pub clicks: usize,
    pub heavy_tailed_blocks: usize,
    pub damaged_packets: u64,
    pub divergences: usize,
    pub monte_carlo: Option<Precision>,
    pub processing_seconds: f64,
    pub real_time_factor: f64,
    #[serde(skip)]
    pub figure: Option<Figure>,
}

/// How exact the posterior mean of the gain is; see [`MonteCarlo`].
#[derive(Debug, Serialize)]
pub struct Precision {
    /// Of a block.
    pub draws: usize,
    pub gains_followed: u64,
    pub gain_standard_error: f64,
    /// None if no gain varied.
    pub effective_draws: Option<f64>,
}

impl Found {
    /// What a person should know of, each in a few words.
    pub fn notes(&self) -> Vec<String> {
        [
            (self.clipped_samples, "samples clipped"),
            (self.damaged_packets, "damaged packets replaced with silence"),
            (self.clicks as u64, "clicks removed"),
            (self.heavy_tailed_blocks as u64, "blocks with heavy-tailed noise"),
            (self.divergences as u64, "moves of the sampler diverged and were rejected"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// Told the seconds that are done and, if known, how many there are; may ask to stop.
pub type Progress<'a> = &'a mut dyn FnMut(f64, Option<f64>) -> ControlFlow<()>;

impl Recording<'_> {
    /// Denoises it.
    pub fn denoise(&self, progress: Progress) -> anyhow::Result<Found> {
        let began = Instant::now();
        let is_file = !is_standard(self.input) && (self.input.is_file() || !self.input.exists());
        if self.processing.noise_from.is_some() && !is_file {
            return Err(usage("--noise-from needs a file, as the stretch is read before the rest"));
        }
        let mut reader = self.open()?;
        let (sample_rate, channels) = (reader.sample_rate(), reader.channels());
        let (length, input_format) = (reader.length(), reader.format());
        let duration = length.map(|samples| samples as f64 / f64::from(sample_rate));
        let layout = self.layout(&reader);
        let in_input = || name(self.input, "standard input").display().to_string();

        let width = match self.processing.channels {
            Channels::Shared => channels,
            Channels::Separate => 1,
        };
        let groups: Vec<Range<usize>> =
            (0..channels).step_by(width).map(|first| first..first + width).collect();
        let window = self.denoiser.dictionary().header().window_seconds;
        let level = || Levels::new(&layout, window).with_context(in_input);
        let mut levels = if self.draw { Some([level()?, level()?]) } else { None };
        let mut deviations = vec![Columns::new(1); groups.len()];
        let mut streams: Vec<DenoiseStream> = groups
            .iter()
            .map(|group| self.denoiser.stream(sample_rate, group.len()))
            .collect::<Result<_, _>>()
            .with_context(in_input)?;
        if let Some(stretch) = self.processing.noise_from {
            for (stream, profile) in streams.iter_mut().zip(self.noise(stretch, &groups)?) {
                stream.start_from(&profile).with_context(in_input)?;
            }
        }
        let mut sink = Sink {
            mix: self.processing.mix,
            waiting: vec![Vec::new(); channels],
            output: create(self.output, layout)?,
            residual: self
                .residual
                .map(|path| create(path, Layout { container: self.container(path), ..layout }))
                .transpose()?,
            input_energy: vec![0.0; channels],
            output_energy: 0.0,
            samples: 0,
        };

        if let Some([before, _]) = &levels {
            for (stream, deviation) in streams.iter_mut().zip(&mut deviations) {
                let bins = before.bins();
                *deviation = Columns::new(bins);
                stream.show_deviation(move |gains| {
                    gains.chunks_exact(bins).for_each(|frame| deviation.push(frame.iter().copied()));
                });
            }
        }

        // The streams gather blocks themselves: this is how often a live recording is looked at.
        let size = streams.first().map_or(1, DenoiseStream::block_samples).div_ceil(8);
        let mut summaries = Vec::new();
        let mut samples_read = 0;
        loop {
            let block;
            (reader, block) = read(reader, size)?;
            let last = block[0].is_empty();
            samples_read += block[0].len() as u64;
            let seconds = |samples: u64| samples as f64 / f64::from(sample_rate);
            let (before, span) = (seconds(sink.samples), seconds(samples_read - sink.samples));
            let mut denoised = Vec::with_capacity(channels);
            for (index, group) in groups.iter().enumerate() {
                // The streams work one after the other.
                let share = 1.0 / groups.len() as f64;
                let mut advance = |seconds: f64| {
                    let done = index as f64 * span + (seconds - before).clamp(0.0, span);
                    progress(before + share * done, duration)
                };
                if last {
                    let (rest, summary) = streams.remove(0).finish(&mut advance).with_context(in_input)?;
                    denoised.extend(rest);
                    summaries.push(summary);
                } else {
                    let block: Vec<&[f32]> = block[group.clone()].iter().map(Vec::as_slice).collect();
                    denoised.extend(streams[index].push(&block, &mut advance).with_context(in_input)?);
                }
            }
            sink.push(&block, &mut denoised)?;
            if let Some([before, after]) = &mut levels {
                before.push(&block);
                after.push(&denoised);
            }
            if last {
                break;
            }
            if interrupted().is_break() {
                return Err(DenoiseError::Interrupted.into());
            }
        }
        drop(streams);
        let energies: Vec<f64> =
            groups.iter().map(|group| sink.input_energy[group.clone()].iter().sum()).collect();
        let input_energy: f64 = energies.iter().sum();
        let (samples, output_energy) = (sink.samples, sink.output_energy);
        let clipped_samples = sink.finish()?;
        let (duration, taken) = (samples as f64 / f64::from(sample_rate), began.elapsed().as_secs_f64());
        Ok(Found {
            sample_rate,
            channels,
            samples,
            duration_seconds: duration,
            input_format: input_format.to_string(),
            output_format: format!("{} {:?}", layout.format, layout.container),
            estimated_snr_db: estimated_snr(&summaries, &energies),
            attenuation_db: decibels(input_energy / output_energy),
            clipped_samples,
            clicks: summaries.iter().map(|summary| summary.clicks).sum(),
            heavy_tailed_blocks: summaries.iter().map(|summary| summary.heavy_tailed_blocks).sum(),
            damaged_packets: reader.damaged_packets(),
            divergences: summaries.iter().map(|summary| summary.divergences).sum(),
            monte_carlo: self.precision(&summaries),
            processing_seconds: taken,
            real_time_factor: taken / duration,
            figure: levels.map(|[before, after]| {
                let [before, after] = [before.finish(), after.finish()];
                picture::figure(before, after, &deviations, duration, f64::from(sample_rate) / 2.0)
            }),
        })
    }

    /// None if too little is drawn to say.
    fn precision(&self, summaries: &[Summary]) -> Option<Precision> {
        let mut found = MonteCarlo::default();
        summaries.iter().for_each(|summary| found.add(&summary.monte_carlo));
        let settings = self.denoiser.settings();
        (found.gains > 0).then(|| Precision {
            draws: settings.iterations - settings.burn_in,
            gains_followed: found.gains,
            gain_standard_error: found.standard_error(),
            effective_draws: Some(found.effective_draws()).filter(|draws| draws.is_finite()),
        })
    }

    fn open(&self) -> anyhow::Result<Reader> {
        let (input, raw) = (self.input.to_owned(), self.processing.raw);
        let open = move || {
            let standard = name(&input, "standard input");
            match (is_standard(&input), raw) {
                (true, None) => Reader::from_stream(standard, io::stdin()),
                (true, Some(raw)) => Reader::from_raw_stream(standard, io::stdin(), raw),
                (false, None) => Reader::open(&input),
                (false, Some(raw)) => Reader::open_raw(&input, raw),
            }
        };
        Ok(interruptible(open)??)
    }

    fn container(&self, path: &Path) -> Container {
        self.processing.container().unwrap_or_else(|| Container::from_path(path))
    }

    fn layout(&self, reader: &Reader) -> Layout {
        let container = self.container(self.output);
        let depth = self.processing.format.and_then(|format| format.depth).unwrap_or(reader.format());
        let format = match (container, depth) {
            (Container::Flac, SampleFormat::Int32 | SampleFormat::Float32) => SampleFormat::Int24,
            _ => depth,
        };
        let reduced = format.is_integer() && format.bits() < reader.format().bits();
        Layout {
            sample_rate: reader.sample_rate(),
            channels: reader.channels(),
            format,
            container,
            length: reader.length(),
            // A stream that no block of the recording has.
            dither: reduced.then(|| Streams::new(self.denoiser.settings().seed).child(u64::MAX)),
        }
    }

    /// The noise of the stretch, for every group of channels.
    fn noise(&self, stretch: Stretch, groups: &[Range<usize>]) -> anyhow::Result<Vec<NoiseProfile>> {
        let mut reader = self.open()?;
        let sample_rate = reader.sample_rate();
        let sample = |seconds: f64| (seconds * f64::from(sample_rate)).round() as u64;
        let (start, end) = (sample(stretch.start), stretch.end.map_or(u64::MAX, sample));
        let mut profiles: Vec<NoiseProfile> = groups
            .iter()
            .map(|group| self.denoiser.noise_profile(sample_rate, group.len()))
            .collect::<Result<_, _>>()?;
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
                for (profile, group) in profiles.iter_mut().zip(groups) {
                    let block: Vec<&[f32]> = block[group.clone()].iter().map(Vec::as_slice).collect();
                    profile.push(&block);
                }
            }
            position += block[0].len() as u64;
        }
        if position <= start || position < stretch.end.map_or(0, sample) {
            let seconds = position as f64 / f64::from(sample_rate);
            return Err(usage(format!("--noise-from: {} ends at {seconds:.2} s", self.input.display())));
        }
        Ok(profiles)
    }
}

/// The ratio of speech to noise of all streams, dB, from what each found and its energy.
fn estimated_snr(summaries: &[Summary], energies: &[f64]) -> Option<f64> {
    let speech_of = |(summary, energy): (&Summary, &f64)| {
        if *energy > 0.0 { energy / (1.0 + 10.0_f64.powf(-summary.input_snr_db / 10.0)) } else { 0.0 }
    };
    let speech: f64 = summaries.iter().zip(energies).map(speech_of).sum();
    decibels(speech / (energies.iter().sum::<f64>() - speech))
}

fn decibels(ratio: f64) -> Option<f64> {
    Some(10.0 * ratio.log10()).filter(|level| level.is_finite())
}

/// The next samples of every channel, and the reader for those after them; Ctrl-C ends the waiting for them.
fn read(mut reader: Reader, samples: usize) -> anyhow::Result<(Reader, Vec<Vec<f32>>)> {
    let (reader, block) = interruptible(move || {
        let block = reader.read_block(samples);
        (reader, block)
    })?;
    Ok((reader, block?))
}

/// Where the results go.
struct Sink {
    mix: f32,
    /// Samples of every channel whose result is not there yet.
    waiting: Vec<Vec<f32>>,
    output: Writer,
    residual: Option<Writer>,
    input_energy: Vec<f64>,
    output_energy: f64,
    /// Samples per channel so far.
    samples: u64,
}

impl Sink {
    /// Takes the next samples of the recording and those that are denoised.
    fn push(&mut self, recorded: &[Vec<f32>], denoised: &mut [Vec<f32>]) -> anyhow::Result<()> {
        let energy = |samples: &[f32]| samples.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let mut removed = Vec::with_capacity(denoised.len());
        for ((waiting, recorded), (result, sum)) in
            self.waiting.iter_mut().zip(recorded).zip(denoised.iter_mut().zip(&mut self.input_energy))
        {
            waiting.extend_from_slice(recorded);
            let before: Vec<f32> = waiting.drain(..result.len()).collect();
            for (after, before) in result.iter_mut().zip(&before) {
                *after = self.mix * *after + (1.0 - self.mix) * before;
            }
            *sum += energy(&before);
            self.output_energy += energy(result);
            if self.residual.is_some() {
                removed.push(before.iter().zip(&*result).map(|(before, after)| before - after).collect());
            }
        }
        self.samples += denoised[0].len() as u64;
        self.output.write_block(denoised)?;
        if let Some(residual) = &mut self.residual {
            residual.write_block(&removed)?;
        }
        Ok(())
    }

    /// Completes the outputs and returns how many samples of the result were clipped.
    fn finish(self) -> anyhow::Result<u64> {
        self.residual.map(Writer::finish).transpose()?;
        Ok(self.output.finish()?)
    }
}

/// Begins an output: a file that appears when it is complete, or a stream.
fn create(path: &Path, layout: Layout) -> Result<Writer, Error> {
    if is_standard(path) {
        return Writer::to_stream("standard output", layout, io::stdout());
    }
    if is_device(path) {
        let stream = File::options().write(true).open(path);
        let stream =
            stream.map_err(|error| Error::Write { path: path.to_owned(), reason: WriteError::Io(error) })?;
        return Writer::to_stream(path, layout, stream);
    }
    Writer::create(path, layout)
}
