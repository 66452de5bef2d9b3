//! Processing of one recording from its source to its outputs, block by block.

mod engine;
mod found;
mod levels;
mod sink;
mod source;
mod speech;

use super::failure::usage;
use super::ffmpeg::{self, Kind};
use super::interrupts::check_interrupt;
use super::live::AlignedDenoiser;
use super::picture;
use super::processing::{Processing, Section};
use super::reports::Reports;
use super::streams::{TextOutput, is_standard, name};
use alphamf::denoiser::{NoiseProfile, SessionOutput, SessionSettings, SpeechLevels, Statistics};
use alphamf::signal::SampleFormat;
use alphamf::{Denoiser, Session};
use alphamf_eval::plot::{Caption, MIN_DRAWS, RecordingPlot};
use alphamf_files::{Container, Dither, OutputSpec};
use anyhow::Context;
use engine::Engine;
use found::Counted;
pub use found::{Found, Incomplete};
use sink::{Complete, Output};
use source::Count;
pub use source::{Source, read_whole};
pub use speech::SpeechFormat;
use speech::Track;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

/// A recording to denoise, and its outputs.
pub struct Recording<'a> {
    pub denoiser: &'a Denoiser,
    /// Mix, channels and dither.
    pub session: &'a SessionSettings,
    pub processing: &'a Processing,
    pub input: &'a Path,
    pub output: &'a Path,
    /// All reports except the statistics, which are written later.
    pub reports: Reports<&'a Path>,
    /// Whether outputs and reports replace existing files.
    pub replace: bool,
}

/// A denoised recording, whose complete outputs still have temporary names.
pub struct Denoised<'a> {
    recording: &'a Recording<'a>,
    speech: Complete,
    residual: Option<Complete>,
    reports: ReportWriters,
    caption: Caption,
    found: Found,
}

/// Receives the processed seconds and, if known, the duration; may cancel.
pub type OnProgress<'a> = &'a mut (dyn FnMut(f64, Option<f64>) -> ControlFlow<()> + Send);

impl Recording<'_> {
    /// Denoises the recording, and completes its outputs.
    pub fn denoise(&self, progress: OnProgress) -> anyhow::Result<Denoised<'_>> {
        let began = Instant::now();
        self.check_input()?;
        let mut source = self.open()?;
        let input_format = source.format();
        let mut engine = self.engine(&source)?;
        let spec = self.output_spec(&source, &engine.session);
        let mut outputs = self.outputs(spec, &source)?;
        let mut reports = self.reports(&spec)?;
        let seconds = |samples: u64| samples as f64 / f64::from(spec.sample_rate);
        let duration = spec.length.map(seconds);
        loop {
            let block;
            (source, block) = source.read(engine.count())?;
            let denoised = engine.denoise(&block, &mut |seconds| progress(seconds, duration));
            let denoised = denoised.with_context(|| self.input_name())?;
            outputs.write(&denoised)?;
            let bit_rate = source.reader().lossy_bit_rate();
            reports.push(&block, &denoised.speech, &mut engine.session, bit_rate)?;
            if block[0].is_empty() {
                break;
            }
            check_interrupt()?;
        }
        let losses = source.losses(engine.samples);
        if self.processing.strict && losses.any() {
            return Err(Incomplete { name: self.input_name(), losses }.into());
        }
        let left_out = outputs.left_out(&source);
        let Outputs { speech, residual, .. } = outputs;
        let speech = speech.complete()?;
        let residual = residual.map(Output::complete).transpose()?;
        let (statistics, taken) = (engine.statistics(), began.elapsed().as_secs_f64());
        let caption = self.caption(&spec, &statistics);
        let found = Found {
            input_format: input_format.to_string(),
            output_format: match self.processing.encoded(self.output) {
                Some(kind) => format!("{kind} by ffmpeg"),
                None => format!("{} {}", spec.format, spec.container),
            },
            clipped_samples: speech.clipped,
            losses,
            left_out,
            latency_seconds: engine.latency_seconds(),
            speech_sections_seconds: engine.speech_sections(),
            processing_seconds: taken,
            real_time_factor: taken / statistics.duration_seconds,
            statistics: Counted { statistics, is_live: engine.is_live() },
        };
        Ok(Denoised { recording: self, speech, residual, reports, caption, found })
    }

    /// Refuses options that need to read a stream twice.
    fn check_input(&self) -> anyhow::Result<()> {
        let is_file = !is_standard(self.input) && (self.input.is_file() || !self.input.exists());
        if self.processing.noise_from.is_some() && !is_file {
            return Err(usage("--noise-from needs a file, as the section is read before the rest"));
        }
        Ok(())
    }

    /// The input's name in messages.
    fn input_name(&self) -> String {
        name(self.input, "standard input").display().to_string()
    }

    fn open(&self) -> anyhow::Result<Source> {
        let Processing { raw, salvage, .. } = *self.processing;
        // Audio for a video output is aligned with the video.
        let is_video = |kind: Option<Kind>| kind.is_some_and(Kind::has_video);
        let in_time = is_video(self.processing.encoded(self.output)) && is_video(Kind::of(self.input));
        Source::open(self.input, raw, salvage, in_time)
    }

    /// The denoising engine for a source.
    fn engine(&self, source: &Source) -> anyhow::Result<Engine> {
        let (sample_rate, channels) = (source.reader().sample_rate(), source.reader().channels());
        let settings = SessionSettings {
            residual: self.reports.residual.is_some(),
            gain_std: self.reports.plot.is_some() && self.denoiser.settings().draws() >= MIN_DRAWS,
            levels: self.reports.levels.is_some() || self.reports.plot.is_some(),
            speech_track: self.reports.speech.is_some(),
            ..self.session.clone()
        };
        let in_input = || self.input_name();
        let mut session = self.denoiser.session(sample_rate, channels, settings).with_context(in_input)?;
        if let Some(section) = self.processing.noise_from {
            session.set_noise_profile(&self.noise(section)?).with_context(in_input)?;
        }
        let live = self.processing.live.settings(self.denoiser, self.session.mix);
        let live = live.map(|settings| AlignedDenoiser::new(self.denoiser, sample_rate, channels, settings));
        let live = live.transpose().with_context(in_input)?;
        Ok(Engine::new(session, live, sample_rate, channels))
    }

    /// Opens the outputs.
    fn outputs(&self, spec: OutputSpec, source: &Source) -> anyhow::Result<Outputs> {
        let is_original = !is_standard(self.input) && self.input.is_file() && self.processing.raw.is_none();
        let original = is_original.then_some(self.input);
        let create = |path: &Path, dither| {
            let spec = OutputSpec { container: self.container(path), dither, ..spec };
            Output::create(
                path,
                self.replace,
                spec,
                source.reader().metadata(),
                self.processing.encoded(path),
                original,
            )
        };
        let has_pictures =
            spec.container == Container::Flac || self.processing.encoded(self.output).is_some();
        Ok(Outputs {
            speech: create(self.output, spec.dither)?,
            // Opposite dither, so that output and residual add up to the input.
            residual: self
                .reports
                .residual
                .map(|path| create(path, spec.dither.map(Dither::negated)))
                .transpose()?,
            has_pictures,
        })
    }

    /// Caption of the recording's figure.
    fn caption(&self, spec: &OutputSpec, statistics: &Statistics) -> Caption {
        let name = name(self.input, "standard input").file_name().unwrap_or_default();
        Caption {
            name: name.display().to_string(),
            sample_rate: spec.sample_rate,
            channels: spec.channels,
            seconds: statistics.duration_seconds,
            snr_before_db: statistics.snr_before_db,
            snr_after_db: statistics.snr_after_db,
        }
    }

    /// Starts the requested reports.
    fn reports(&self, spec: &OutputSpec) -> anyhow::Result<ReportWriters> {
        let window = self.denoiser.dictionary().header().window_seconds;
        let plot = self
            .reports
            .plot
            .map(|(_, scale)| RecordingPlot::new(spec.sample_rate, spec.channels, window, scale));
        let mut plot = plot.transpose().with_context(|| self.input_name())?;
        if let Some(plot) = &mut plot {
            plot.set_mix(self.session.mix);
        }
        Ok(ReportWriters {
            plot,
            levels: self.reports.levels.map(|path| levels::Table::create(path, self.replace)).transpose()?,
            speech: self.reports.speech.map(|_| Track::default()),
        })
    }

    fn container(&self, path: &Path) -> Container {
        self.processing.container().unwrap_or_else(|| Container::from_path(path))
    }

    fn output_spec(&self, source: &Source, session: &Session) -> OutputSpec {
        let reader = source.reader();
        let container = self.container(self.output);
        let depth = self.processing.format.and_then(|format| format.depth).unwrap_or(source.format());
        let format = match (container, depth) {
            (Container::Flac, depth) if depth.bits() > 24 => SampleFormat::Int24,
            _ => depth,
        };
        OutputSpec {
            sample_rate: reader.sample_rate(),
            channels: reader.channels(),
            format,
            container,
            length: reader.length(),
            channel_mask: reader.channel_mask(),
            dither: session.dither(source.format(), format).map(Dither::new),
        }
    }

    /// Estimates the noise profile from a section of the recording.
    fn noise(&self, section: Section) -> anyhow::Result<NoiseProfile> {
        let mut source = self.open()?;
        let (sample_rate, channels) = (source.reader().sample_rate(), source.reader().channels());
        let sample = |seconds: f64| (seconds * f64::from(sample_rate)).round() as u64;
        let (start, end) = (sample(section.start), section.end.map_or(u64::MAX, sample));
        if end <= start {
            return Err(usage("--noise-from: the section is shorter than one sample"));
        }
        let mut profile = self.denoiser.noise_profile(sample_rate, channels)?;
        let block_samples = 16 * u64::from(sample_rate);
        let mut position = 0;
        while position < end {
            let goal = if position < start { start } else { end };
            let block;
            (source, block) = source.read(Count::Exact((goal - position).min(block_samples) as usize))?;
            if block[0].is_empty() {
                break;
            }
            if position >= start {
                let block: Vec<&[f32]> = block.iter().map(Vec::as_slice).collect();
                profile.push(&block)?;
            }
            position += block[0].len() as u64;
        }
        if position <= start || position < section.end.map_or(0, sample) {
            let seconds = position as f64 / f64::from(sample_rate);
            return Err(usage(format!("--noise-from: {} ends at {seconds:.2} s", self.input.display())));
        }
        Ok(profile)
    }
}

impl Denoised<'_> {
    /// Temporary file of the output; none for a device or a stream.
    pub fn content(&self) -> Option<&Path> {
        self.speech.content()
    }

    /// Gives the outputs their names, and writes the reports.
    pub fn persist(self) -> anyhow::Result<Found> {
        self.speech.persist()?;
        self.residual.map(Complete::persist).transpose()?;
        self.reports.finish(self.recording, self.caption)?;
        Ok(self.found)
    }
}

/// The outputs of a recording.
struct Outputs {
    speech: Output,
    residual: Option<Output>,
    /// Whether `speech` keeps a cover picture.
    has_pictures: bool,
}

impl Outputs {
    fn write(&mut self, denoised: &SessionOutput) -> anyhow::Result<()> {
        self.speech.write_block(&denoised.speech)?;
        if let Some(residual) = &mut self.residual {
            residual.write_block(&denoised.residual)?;
        }
        Ok(())
    }

    /// Parts of the input that the output lacks, a few words each.
    fn left_out(&self, source: &Source) -> Vec<String> {
        // Outputs of ffmpeg list their omissions themselves.
        let mut left_out = self.speech.left_out();
        let pictures = if self.has_pictures { 0 } else { source.reader().metadata().pictures() };
        for (count, what) in [(source.other_tracks(), ffmpeg::OTHER_TRACKS), (pictures, ffmpeg::PICTURES)] {
            if count > 0 && !left_out.iter().any(|found| found.contains(what)) {
                left_out.push(ffmpeg::left_out(count, what));
            }
        }
        left_out
    }
}

/// Writers of the reports.
struct ReportWriters {
    plot: Option<RecordingPlot>,
    levels: Option<levels::Table>,
    speech: Option<Track>,
}

impl ReportWriters {
    /// Adds a block before and after denoising, and the session's results for it. The bit rate of a lossy codec is per channel.
    fn push(
        &mut self,
        before: &[Vec<f32>],
        after: &[Vec<f32>],
        session: &mut Session,
        lossy_bit_rate: Option<f64>,
    ) -> anyhow::Result<()> {
        let mut found: Vec<SpeechLevels> = session.take_levels();
        if let Some(bit_rate) = lossy_bit_rate {
            found.iter_mut().for_each(|levels| levels.widen_for_codec(bit_rate));
        }
        if let Some(plot) = &mut self.plot {
            plot.push(before, after);
            plot.push_deviations(&session.take_gain_std());
            plot.push_levels(&found);
        }
        if let Some(table) = &mut self.levels {
            table.add(&found)?;
        }
        if let Some(track) = &mut self.speech {
            track.add(session.take_speech_track());
        }
        Ok(())
    }

    /// Completes the reports of a recording.
    fn finish(self, recording: &Recording, caption: Caption) -> anyhow::Result<()> {
        let Self { plot, levels, speech } = self;
        let (name, seconds) = (caption.name.clone(), caption.seconds);
        if let (Some((path, _)), Some(plot)) = (recording.reports.plot, plot) {
            picture::write(&plot.finish(caption), path, recording.replace)?;
        }
        levels.map(levels::Table::finish).transpose()?;
        if let (Some((path, format)), Some(track)) = (recording.reports.speech, speech) {
            track.write(TextOutput::create(path, recording.replace)?, format, &name, seconds)?;
        }
        Ok(())
    }
}
