//! `denoise join TAKE... -o FILE`: takes of one scene by several recorders as the channels of one file.

mod clock;

use super::claims::{Claims, check_absent};
use super::common::Common;
use super::failure::{Failure, usage};
use super::processing::is_written;
use super::progress::Progress;
use super::record::Snapshot;
use super::recording::Source;
use super::resampler::Resampler;
use super::streams::{begin, check_output, is_device, is_standard, name};
use super::terminal::{printable, say};
use alphamf::Cancelled;
use alphamf::signal::{SampleFormat, counted};
use alphamf_files::{Container, Metadata, OutputSpec, Writer};
use anyhow::{Context, anyhow, ensure};
use clock::{Clock, ClockMeter, Found, MAX_DRIFT_PPM, MAX_SHIFT_SECONDS, Mismatch};
use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Samples per channel that are read at once.
const BLOCK: usize = 1 << 16;
/// Largest drift at which the peaks of windows are exact, parts per million. Takes with faster drift are read again at
/// the estimated speed, at most `MAX_REFINEMENTS` times.
const EXACT_DRIFT_PPM: f64 = 100.0;
const MAX_REFINEMENTS: usize = 2;
/// Maximum number of channels of the file, as for `--channels array`.
const MAX_CHANNELS: usize = 16;

/// Arguments of `denoise join`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  denoise join phone.wav recorder.wav -o both.wav && denoise both.wav voice.wav --channels array

Takes may start up to 10 s apart, and their clocks may drift. Both are estimated from the sound that the takes \
share, and corrected. The output has the sample rate of the first take and covers the time that all takes share.")]
pub struct Arguments {
    /// Read these takes of one scene.
    ///
    /// The first sets the time. Other takes are shifted and resampled.
    #[arg(required = true, num_args = 2.., value_name = "TAKE")]
    takes: Vec<PathBuf>,

    /// Write the channels of all takes.
    #[arg(short, long, value_name = "FILE", help_heading = "Input and output")]
    output: PathBuf,

    /// Overwrite an existing output.
    #[arg(long, help_heading = "Input and output")]
    force: bool,
}

/// Joins takes.
pub fn run(arguments: &Arguments, common: &Common) -> anyhow::Result<ExitCode> {
    let Arguments { takes, output, force } = arguments;
    let mut claims = Claims::default();
    let mut repeated = None;
    for take in takes {
        repeated = repeated.or(claims.registered(take).map(|first| (take, first.to_owned())));
        claims.read(take);
    }
    claims.write(output)?;
    // A missing file is reported on opening.
    if let Some(take) = takes.iter().find(|path| is_standard(path) || path.exists() && !path.is_file()) {
        let name = name(take, "standard input").display();
        return Err(usage(format!("{name}: expected a regular file: takes are read twice")));
    }
    if !is_written(output) || is_device(output) {
        return Err(usage(format!("{}: expected the name of a WAV or FLAC file", output.display())));
    }
    check_output(output)?;
    check_absent(output, *force, "")?;
    if let Some((take, first)) = repeated {
        let also = if *take == first { String::new() } else { format!(", as {}", first.display()) };
        return Err(usage(format!("{} is given twice{also}: expected different takes", take.display())));
    }
    let originals: Vec<Snapshot> = takes.iter().map(|path| Snapshot::of(path)).collect();
    let sources = takes.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let channels: usize = sources.iter().map(|source| source.reader().channels()).sum();
    if channels > MAX_CHANNELS {
        return Err(usage(format!("the takes have {channels} channels; expected at most {MAX_CHANNELS}")));
    }
    let rate = sources[0].reader().sample_rate();
    // Refuses layouts that the format cannot hold, before the takes are read.
    Writer::to_stream(output, spec(rate, channels, output, None), &Metadata::default(), io::sink())?;
    let progress = Progress::new("joining", common.quiet);
    let length = sources[0].reader().length().map_or(f64::INFINITY, |samples| samples as f64);
    let proceed = |fraction: f64| match progress.update(fraction.min(1.0)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Cancelled),
    };
    // Estimating the clocks is half of the work.
    let plan = Plan::new(takes, sources, &|done| proceed(0.5 * done as f64 / length))?;
    let check = || originals.iter().try_for_each(Snapshot::check);
    check()?;
    let joined =
        plan.write(takes, channels, (output, *force), &|done| proceed(0.5 + 0.5 * done as f64 / length))?;
    check()?;
    let clipped = joined.finish()?;
    drop(progress);
    if !common.quiet {
        for (path, clock) in takes[1..].iter().zip(&plan.clocks) {
            say(&format!("{}: {}", path.display(), sentence(clock, rate)));
        }
        let [start, end] = [plan.start, plan.end].map(|position| position as f64 / f64::from(rate));
        // FLAC clips at full scale, which floating-point and resampled takes may exceed.
        let loss = match clipped {
            0 => String::new(),
            count => format!("; {} clipped in the output", counted(count, "sample")),
        };
        say(&format!(
            "{}: {channels} channels, {start:.1} to {end:.1} s of {}{loss}",
            output.display(),
            takes[0].display()
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Opens a take, with ffmpeg where needed.
fn open(take: &Path) -> anyhow::Result<Source> {
    Source::open(take, None, false, false)
}

/// Format of the output. `sample_rate` and `length` are those of the first take.
fn spec(sample_rate: u32, channels: usize, output: &Path, length: Option<u64>) -> OutputSpec {
    let container = Container::from_path(output);
    let format = if container == Container::Flac { SampleFormat::Int24 } else { SampleFormat::Float32 };
    OutputSpec { sample_rate, channels, format, container, length, channel_mask: Some(0), dither: None }
}

/// Reports missing and damaged parts of a take, of which `samples` per channel were read.
fn warn_of_losses(take: &Path, source: &Source, samples: u64) {
    let losses = source.losses(samples);
    if losses.any() {
        tracing::warn!("{}", printable(&format!("{}: {losses}", take.display())));
    }
}

/// Describes the correction of a take.
fn sentence(clock: &Clock, rate: u32) -> String {
    let seconds = clock.shift / f64::from(rate);
    let when = if seconds < 0.0 { "later" } else { "earlier" };
    let ppm = 1e6 * clock.drift;
    let speed = match ppm {
        ..-0.05 => format!("{:.1} ppm slow", -ppm),
        0.05.. => format!("{ppm:.1} ppm fast"),
        _ => "equally fast".to_owned(),
    };
    format!("starts {:.4} s {when}, clock {speed}", seconds.abs())
}

/// Reads all takes, the others at the clocks set in [`Aligned`]. Returns a clock meter for each of the others, and the
/// lengths of all takes in samples of the first.
fn measure(
    first: &mut Source,
    others: &mut [Aligned],
    rate: u32,
    proceed: &dyn Fn(u64) -> Result<(), Cancelled>,
) -> anyhow::Result<(Vec<ClockMeter>, Vec<u64>)> {
    let mut meters: Vec<ClockMeter> = others.iter().map(|_| ClockMeter::new(rate)).collect();
    let mut lengths = vec![0; 1 + others.len()];
    loop {
        let mut blocks = vec![mono(&first.read_block(BLOCK)?)];
        for take in &mut *others {
            blocks.extend(take.read(BLOCK)?);
        }
        if blocks.iter().all(Vec::is_empty) {
            return Ok((meters, lengths));
        }
        lengths.iter_mut().zip(&blocks).for_each(|(length, block)| *length += block.len() as u64);
        meters.iter_mut().zip(&blocks[1..]).for_each(|(meter, take)| meter.push(&blocks[0], take));
        proceed(lengths[0])?;
    }
}

/// Alignment of takes in one file.
struct Plan {
    /// Clocks of all takes but the first, relative to the first.
    clocks: Vec<Clock>,
    /// Section that all takes share, samples of the first.
    start: u64,
    end: u64,
}

impl Plan {
    /// Reads all takes and estimates their clocks. `proceed` receives the number of samples of the first take read so
    /// far.
    fn new(
        takes: &[PathBuf],
        mut sources: Vec<Source>,
        proceed: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> anyhow::Result<Self> {
        let rate = sources[0].reader().sample_rate();
        let mut first = sources.remove(0);
        let mut others: Vec<Aligned> =
            sources.into_iter().map(|source| Aligned::new(source, 1, Clock::default(), 0, rate)).collect();
        let (meters, lengths) = measure(&mut first, &mut others, rate, proceed)?;
        warn_of_losses(&takes[0], &first, lengths[0]);
        takes[1..]
            .iter()
            .zip(&others)
            .for_each(|(path, take)| warn_of_losses(path, &take.source, take.length));
        let shortest = (0..takes.len()).min_by_key(|&take| lengths[take]).unwrap_or(0);
        let too_short = || {
            anyhow!("less than 1 s of it was found in all takes: expected takes that share 1 s or more")
                .context(Failure::Unusable(takes[shortest].clone()))
        };
        ensure!(lengths[shortest] >= u64::from(rate), too_short());
        let refusal = |mismatch, path: &Path| {
            let first = takes[0].display();
            let reason = match mismatch {
                Mismatch::NoCommonSound => {
                    anyhow!(
                        "it has no sound in common with {first} within {MAX_SHIFT_SECONDS} s: expected takes of one scene"
                    )
                }
                Mismatch::Drift(ppm) => anyhow!(
                    "its clock is {:.0} ppm {} than that of {first}: expected at most {MAX_DRIFT_PPM} ppm (is its sample rate right?)",
                    ppm.abs(),
                    if ppm > 0.0 { "faster" } else { "slower" }
                ),
            };
            reason.context(Failure::Unusable(path.to_owned()))
        };
        let mut found = Vec::new();
        for (meter, path) in meters.into_iter().zip(&takes[1..]) {
            let mut of_take = meter.finish().map_err(|mismatch| refusal(mismatch, path))?;
            // Fast drift blurs the peaks. Read at its estimated speed, the take is compared exactly.
            let mut residual = of_take.clock;
            for _ in 0..MAX_REFINEMENTS {
                if residual.drift.abs() < 1e-6 * EXACT_DRIFT_PPM {
                    break;
                }
                let speed = Clock { shift: 0.0, drift: of_take.clock.drift };
                let mut aligned = [Aligned::new(open(path)?, 1, speed, 0, rate)];
                let (meters, _) =
                    measure(&mut open(&takes[0])?, &mut aligned, rate, &|_| proceed(lengths[0]))?;
                for meter in meters {
                    let refined = meter.finish().map_err(|mismatch| refusal(mismatch, path))?;
                    residual = refined.clock;
                    of_take = Found { clock: residual.after(speed), ..refined };
                }
            }
            of_take.clock.check().map_err(|mismatch| refusal(mismatch, path))?;
            found.push(of_take);
        }
        for (found, path) in found.iter().zip(&takes[1..]) {
            if let Some(position) = found.unmatched_from {
                let (seconds, first) = (position / f64::from(rate), takes[0].display());
                let lack = format!(
                    "{}: no sound in common with {first} after {seconds:.0} s of it: if samples are missing there, the rest is not aligned",
                    path.display()
                );
                tracing::warn!("{}", printable(&lack));
            }
        }
        let clocks: Vec<Clock> = found.iter().map(|found| found.clock).collect();
        let (mut start, mut end) = (0, lengths[0]);
        for (clock, &length) in clocks.iter().zip(&lengths[1..]) {
            // The cast to unsigned moves a position before the first take to its start.
            start = start.max(clock.to_reference(0.0).ceil() as u64);
            end = end.min(clock.to_reference(length as f64) as u64);
        }
        ensure!(start + u64::from(rate) <= end, too_short());
        Ok(Self { clocks, start, end })
    }

    /// Writes the section that all takes share; the caller finishes the file. An existing file is replaced if
    /// `replace`. `proceed` receives the number of samples of the first take processed so far.
    fn write(
        &self,
        takes: &[PathBuf],
        channels: usize,
        (output, replace): (&Path, bool),
        proceed: &dyn Fn(u64) -> Result<(), Cancelled>,
    ) -> anyhow::Result<Writer> {
        let mut first = open(&takes[0])?;
        let rate = first.reader().sample_rate();
        let others = takes[1..].iter().zip(&self.clocks);
        let others = others.map(|(path, &clock)| {
            let source = open(path)?;
            let channels = source.reader().channels();
            Ok(Aligned::new(source, channels, clock, self.start, rate))
        });
        let mut others = others.collect::<anyhow::Result<Vec<Aligned>>>()?;
        let file = begin(output, replace).with_context(|| Failure::Output(output.to_owned()))?;
        let spec = spec(rate, channels, output, Some(self.end - self.start));
        let mut writer = Writer::to_file(output, spec, &Metadata::default(), file)?;
        let block = |left: u64| left.min(BLOCK as u64) as usize;
        let mut done = 0;
        // A take that was shortened since the first reading ends early; the caller refuses it.
        let mut next = |left: u64| first.read_block(block(left)).map(|found| (found[0].len(), found));
        while done < self.start {
            let (count, _) = next(self.start - done)?;
            if count == 0 {
                break;
            }
            done += count as u64;
        }
        while done < self.end {
            let (count, mut samples) = next(self.end - done)?;
            if count == 0 {
                break;
            }
            for take in &mut others {
                let mut channels = take.read(count)?;
                channels.iter_mut().for_each(|channel| channel.resize(count, 0.0));
                samples.extend(channels);
            }
            writer.write_block(&samples)?;
            done += count as u64;
            proceed(done)?;
        }
        Ok(writer)
    }
}

/// Sums all channels with decreasing weights, so that two of opposite sign do not cancel.
fn mono(block: &[Vec<f32>]) -> Vec<f32> {
    const WEIGHT: f32 = 0.7;
    let mut sum = block[0].clone();
    let mut weight = 1.0;
    for channel in &block[1..] {
        weight *= WEIGHT;
        sum.iter_mut().zip(channel).for_each(|(sum, sample)| *sum += weight * sample);
    }
    sum
}

/// A take resampled to the clock of the reference.
struct Aligned {
    source: Source,
    /// Samples of the take per sample of the reference.
    step: f64,
    /// Position in the take of the next sample of the reference, samples.
    position: f64,
    /// Samples per channel that have been read.
    length: u64,
    /// Resampler and input queue of every channel of the take, or of their sum.
    channels: Vec<(Resampler<1>, VecDeque<f32>)>,
}

impl Aligned {
    /// Starts at sample `start` of a reference with sample rate `rate`, Hz. `clock` is that of the take at the sample
    /// rate of the reference. `channels` is the number of channels of the take, or 1 for their sum.
    fn new(source: Source, channels: usize, clock: Clock, start: u64, rate: u32) -> Self {
        let ratio = f64::from(source.reader().sample_rate()) / f64::from(rate);
        let position = ratio * clock.to_take(start as f64);
        let channel = |_| {
            let mut resampler = Resampler::new((1.0 / ratio).min(1.0));
            resampler.start_at(position);
            (resampler, VecDeque::new())
        };
        let channels = (0..channels).map(channel).collect();
        Self { source, step: ratio * (1.0 + clock.drift), position, length: 0, channels }
    }

    /// Reads the next `count` samples of every channel, or fewer at the end.
    fn read(&mut self, mut count: usize) -> Result<Vec<Vec<f32>>, alphamf_files::Error> {
        let Self { source, step, position, length, channels } = self;
        let wanted = channels[0].0.wants(*step, count);
        while channels[0].1.len() < wanted {
            let mut block = source.read_block(BLOCK)?;
            if block[0].is_empty() {
                let left = (*length as f64 - *position) / *step;
                count = count.min(left.ceil() as usize);
                break;
            }
            *length += block[0].len() as u64;
            if channels.len() < block.len() {
                block = vec![mono(&block)];
            }
            channels.iter_mut().zip(block).for_each(|((_, queue), samples)| queue.extend(samples));
        }
        *position += *step * count as f64;
        let read = |(resampler, queue): &mut (Resampler<1>, VecDeque<f32>)| {
            let mut pull = || Some([queue.pop_front().unwrap_or(0.0)]);
            (0..count).filter_map(|_| resampler.next(*step, &mut pull)).map(|[sample]| sample).collect()
        };
        Ok(channels.iter_mut().map(read).collect())
    }
}
